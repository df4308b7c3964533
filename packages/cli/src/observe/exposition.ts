/**
 * Metrics in Prometheus' text format, as far as they are wanted, and what happened between two
 * readings of them: rates of counters and quantiles of histograms.
 *
 * Families are maps from the labels as they were written to the value, since a program writes the
 * labels of a series the same way each time. Nothing is kept of families that nobody wants.
 */

/** Series of a family, by their labels as written (without the braces). */
export type Family = ReadonlyMap<string, number>;
export type Families = ReadonlyMap<string, Family>;

/** Series that are kept of one reading; what comes beyond is left out. */
export const SERIES_MAX = 50_000;
/** Longer lines are no metric of ours. */
const LINE_CHARS_MAX = 4096;

/** Reads the families that are wanted; lines that are no sample are left out. */
export function readFamilies(text: string, wanted: ReadonlySet<string>): Families {
  const families = new Map<string, Map<string, number>>();
  let series = 0;
  let start = 0;
  while (start < text.length && series < SERIES_MAX) {
    let end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    const nameEnd = end - start > LINE_CHARS_MAX ? -1 : nameEndOf(text, start, end);
    const name = nameEnd < 0 ? '' : text.slice(start, nameEnd);
    if (wanted.has(name) && addSample(families, name, text.slice(nameEnd, end))) series++;
    start = end + 1;
  }
  return families;
}

/** Where the name of a sample ends; -1 for a comment. */
function nameEndOf(text: string, start: number, end: number): number {
  if (text.charCodeAt(start) === 0x23) return -1;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x7b || code === 0x20) return at;
  }
  return -1;
}

function addSample(
  families: Map<string, Map<string, number>>,
  name: string,
  rest: string,
): boolean {
  const close = rest.startsWith('{') ? rest.lastIndexOf('}') : 0;
  if (close < 0) return false;
  const labels = close === 0 ? '' : rest.slice(1, close);
  const [word = ''] = rest
    .slice(close === 0 ? 0 : close + 1)
    .trim()
    .split(' ');
  const value = word === '+Inf' ? Infinity : Number(word);
  if (word === '' || Number.isNaN(value)) return false;
  let family = families.get(name);
  if (family === undefined) families.set(name, (family = new Map()));
  family.set(labels, value);
  return true;
}

/** The value of a label; '' where the series has none of that name. */
export function labelOf(labels: string, name: string): string {
  const head = `${name}="`;
  let at = labels.indexOf(head);
  while (at > 0 && labels[at - 1] !== ',') at = labels.indexOf(head, at + 1);
  if (at < 0) return '';
  let value = '';
  for (let index = at + head.length; index < labels.length; index++) {
    const letter = labels[index] ?? '';
    if (letter === '"') return value;
    if (letter !== '\\') value += letter;
    else {
      const escaped = labels[++index] ?? '';
      value += escaped === 'n' ? '\n' : escaped;
    }
  }
  return value;
}

/** The sum of a family, or of the series whose labels are meant; NaN where there is none. */
export function sumOf(
  families: Families,
  name: string,
  isMeant: (labels: string) => boolean = () => true,
): number {
  let sum = NaN;
  for (const [labels, value] of families.get(name) ?? []) {
    if (isMeant(labels)) sum = (Number.isNaN(sum) ? 0 : sum) + value;
  }
  return sum;
}

/** Two readings of one program, and the seconds between them. */
export interface Span {
  readonly before: Families;
  readonly now: Families;
  readonly seconds: number;
}

/** What a counter has grown by; a counter that fell was begun anew, and counts from zero. */
function growth(now: number, before: number | undefined): number {
  return before === undefined || now < before ? now : now - before;
}

/**
 * Growth per second by group. `groupOf` returns the group of a series, null to leave it out; `''`
 * is the one group of those who want one.
 */
export function ratesOf(
  { before, now, seconds }: Span,
  name: string,
  groupOf: (labels: string) => string | null = () => '',
): Map<string, number> {
  const old = before.get(name);
  const rates = new Map<string, number>();
  for (const [labels, value] of now.get(name) ?? []) {
    const group = groupOf(labels);
    if (group === null) continue;
    const rate = growth(value, old?.get(labels)) / seconds;
    rates.set(group, (rates.get(group) ?? 0) + rate);
  }
  return rates;
}

/** The rate of all series that are meant; NaN where the program has no such counter. */
export function rateOf(
  span: Span,
  name: string,
  isMeant: (labels: string) => boolean = () => true,
): number {
  return ratesOf(span, name, (labels) => (isMeant(labels) ? '' : null)).get('') ?? NaN;
}

/** What came into each bucket of a histogram: ascending bounds, and counts that are not summed. */
export interface Buckets {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

/** The buckets of a histogram by group, of the time between two readings. */
export function bucketsOf(
  { before, now }: Span,
  name: string,
  groupOf: (labels: string) => string | null = () => '',
): Map<string, Buckets> {
  const family = `${name}_bucket`;
  const old = before.get(family);
  const cumulative = new Map<string, Map<number, number>>();
  for (const [labels, value] of now.get(family) ?? []) {
    const group = groupOf(labels);
    if (group === null) continue;
    const word = labelOf(labels, 'le');
    const bound = word === '+Inf' ? Infinity : Number(word);
    let counts = cumulative.get(group);
    if (counts === undefined) cumulative.set(group, (counts = new Map()));
    counts.set(bound, (counts.get(bound) ?? 0) + growth(value, old?.get(labels)));
  }
  return new Map([...cumulative].map(([group, counts]) => [group, separate(counts)]));
}

function separate(cumulative: ReadonlyMap<number, number>): Buckets {
  const sorted = [...cumulative].sort(([a], [b]) => a - b);
  const counts = sorted.map(([, count], index) =>
    Math.max(0, count - (sorted[index - 1]?.[1] ?? 0)),
  );
  return { bounds: sorted.map(([bound]) => bound), counts };
}

/**
 * The value below which `part` of what was counted lies, on a straight line within its bucket, as
 * Prometheus' histogram_quantile; the last finite bound for what lies beyond; NaN of nothing.
 */
export function quantileOf({ bounds, counts }: Buckets, part: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return NaN;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    const bound = bounds[index] ?? Infinity;
    const low = index === 0 ? 0 : (bounds[index - 1] ?? 0);
    if (below + count >= total * part) {
      if (bound === Infinity) return low;
      return count === 0 ? bound : low + ((bound - low) * (total * part - below)) / count;
    }
    below += count;
  }
  return NaN;
}

/** A quantile of all series that are meant, of the time between two readings. */
export function quantileBetween(
  span: Span,
  name: string,
  part: number,
  isMeant: (labels: string) => boolean = () => true,
): number {
  const buckets = bucketsOf(span, name, (labels) => (isMeant(labels) ? '' : null)).get('');
  return buckets === undefined ? NaN : quantileOf(buckets, part);
}
