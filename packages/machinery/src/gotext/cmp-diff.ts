/**
 * Two texts side by side in one: the unified form that error texts show of objects that differ,
 * cut as Python's difflib (and its copy in Go, github.com/pmezard/go-difflib) cuts it: the longest
 * run of lines that both have is kept, then the longest on either side of it, and so on.
 */

/** Lines that are the same around each change. */
const CONTEXT = 3;

/** Lines of texts from this length on that are "popular" begin no run. */
const POPULAR_FROM = 200;

/** Pairs of equal lines that are looked at, some 50 ms: what is left over then goes and comes. */
const PAIRS_MAX = 4_000_000;
const NO_PLACES: readonly number[] = [];

/** Lines `before` to `beforeEnd` of the one text stand for `after` to `afterEnd` of the other. */
interface Span {
  readonly before: number;
  readonly beforeEnd: number;
  readonly after: number;
  readonly afterEnd: number;
}

interface Part extends Span {
  readonly isSame: boolean;
}

/** Hunks of `before` against `after`, each line with its end; '' where they are the same. */
export function lineDiff(before: readonly string[], after: readonly string[]): string {
  const parts = partsOf(before, after);
  let text = '';
  let hunk: Part[] = [];
  for (const [index, part] of parts.entries()) {
    if (!part.isSame) {
      hunk.push(part);
      continue;
    }
    const isLast = index === parts.length - 1;
    const length = part.beforeEnd - part.before;
    if (hunk.length > 0 && (isLast || length > CONTEXT * 2)) {
      text += hunkText([...hunk, firstOf(part)], before, after);
      hunk = [];
    }
    if (!isLast) hunk.push(hunk.length === 0 ? lastOf(part) : part);
  }
  return hunk.some(({ isSame }) => !isSame) ? text + hunkText(hunk, before, after) : text;
}

function firstOf(part: Part): Part {
  const length = Math.min(CONTEXT, part.beforeEnd - part.before);
  return { ...part, beforeEnd: part.before + length, afterEnd: part.after + length };
}

function lastOf(part: Part): Part {
  const length = Math.min(CONTEXT, part.beforeEnd - part.before);
  return { ...part, before: part.beforeEnd - length, after: part.afterEnd - length };
}

function hunkText(
  hunk: readonly Part[],
  before: readonly string[],
  after: readonly string[],
): string {
  const [first] = hunk;
  const last = hunk.at(-1);
  const range = (start = 0, end = 0): string => {
    const from = end === start ? start : start + 1;
    return end - start === 1 ? String(from) : `${from},${end - start}`;
  };
  let text = `@@ -${range(first?.before, last?.beforeEnd)}`;
  text += ` +${range(first?.after, last?.afterEnd)} @@\n`;
  for (const part of hunk) {
    const gone = before.slice(part.before, part.beforeEnd);
    const come = part.isSame ? [] : after.slice(part.after, part.afterEnd);
    for (const line of gone) text += `${part.isSame ? ' ' : '-'}${line}\n`;
    for (const line of come) text += `+${line}\n`;
  }
  return text;
}

/** The texts in order: what both have, and between such parts what goes and comes. */
function partsOf(before: readonly string[], after: readonly string[]): Part[] {
  const parts: Part[] = [];
  let at = { before: 0, after: 0 };
  const end = { before: before.length, beforeEnd: before.length };
  const ends = { ...end, after: after.length, afterEnd: after.length };
  for (const run of [...commonRuns(before, after), ends]) {
    if (at.before < run.before || at.after < run.after) {
      const between = { before: at.before, beforeEnd: run.before };
      parts.push({ ...between, after: at.after, afterEnd: run.after, isSame: false });
    }
    const previous = parts.at(-1);
    if (previous?.isSame === true) {
      parts[parts.length - 1] = { ...previous, beforeEnd: run.beforeEnd, afterEnd: run.afterEnd };
    } else if (run.before < run.beforeEnd) {
      parts.push({ ...run, isSame: true });
    }
    at = { before: run.beforeEnd, after: run.afterEnd };
  }
  return parts;
}

/** Runs of lines that both texts have, in order. */
function commonRuns(before: readonly string[], after: readonly string[]): Span[] {
  const search = new RunSearch(before, after);
  const runs: Span[] = [];
  const all = { before: 0, beforeEnd: before.length, after: 0, afterEnd: after.length };
  const rest: Span[] = [all];
  for (let span = rest.pop(); span !== undefined; span = rest.pop()) {
    const run = search.longest(span);
    if (run.before === run.beforeEnd) continue;
    runs.push(run);
    rest.push({ ...span, beforeEnd: run.before, afterEnd: run.after });
    rest.push({ ...span, before: run.beforeEnd, after: run.afterEnd });
  }
  return runs.toSorted((left, right) => left.before - right.before);
}

class RunSearch {
  readonly #before: readonly string[];
  readonly #after: readonly string[];
  readonly #places: ReadonlyMap<string, readonly number[]>;
  /** Lengths of the runs that end at each line of `after`, for a line of `before`. */
  #lengths: Int32Array;
  /** The line of `before`, counted over all searches, that a length was written for. */
  #written: Int32Array;
  /** The same for the line before that one. */
  #lastLengths: Int32Array;
  #lastWritten: Int32Array;
  #line = 0;
  #pairs = 0;

  constructor(before: readonly string[], after: readonly string[]) {
    this.#before = before;
    this.#after = after;
    this.#places = placesOf(after);
    this.#lengths = new Int32Array(after.length);
    this.#written = new Int32Array(after.length);
    this.#lastLengths = new Int32Array(after.length);
    this.#lastWritten = new Int32Array(after.length);
  }

  /** The longest run within `span`, of equal ones the first in `before`, then in `after`. */
  longest(span: Span): Span {
    let best = { before: span.before, after: span.after, length: 0 };
    this.#line++;
    for (let b = span.before; b < span.beforeEnd && this.#pairs < PAIRS_MAX; b++) {
      const line = ++this.#line;
      [this.#lengths, this.#lastLengths] = [this.#lastLengths, this.#lengths];
      [this.#written, this.#lastWritten] = [this.#lastWritten, this.#written];
      for (const a of this.#places.get(this.#before[b] ?? '') ?? NO_PLACES) {
        if (a < span.after) continue;
        if (a >= span.afterEnd) break;
        this.#pairs++;
        const follows = this.#lastWritten[a - 1] === line - 1;
        const length = follows ? (this.#lastLengths[a - 1] ?? 0) + 1 : 1;
        this.#lengths[a] = length;
        this.#written[a] = line;
        if (length <= best.length) continue;
        best = { before: b - length + 1, after: a - length + 1, length };
      }
    }
    return this.#grown(span, best.before, best.after, best.length);
  }

  /** The run with the popular lines on either side of it. */
  #grown(span: Span, before: number, after: number, length: number): Span {
    let [b, a, size] = [before, after, length];
    while (b > span.before && a > span.after && this.#before[b - 1] === this.#after[a - 1]) {
      b--;
      a--;
      size++;
    }
    const room = Math.min(span.beforeEnd - b, span.afterEnd - a);
    while (size < room && this.#before[b + size] === this.#after[a + size]) size++;
    return { before: b, beforeEnd: b + size, after: a, afterEnd: a + size };
  }
}

/** Where each line is, but for those that a long text has too often to tell anything. */
function placesOf(lines: readonly string[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const [at, line] of lines.entries()) {
    const known = places.get(line);
    if (known === undefined) places.set(line, [at]);
    else known.push(at);
  }
  if (lines.length < POPULAR_FROM) return places;
  const timesMax = Math.floor(lines.length / 100) + 1;
  for (const [line, at] of places) if (at.length > timesMax) places.delete(line);
  return places;
}
