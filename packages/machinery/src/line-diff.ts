/** Two texts side by side in one: the unified form that error texts show of objects that differ. */

/** Lines that are the same around each change. */
const CONTEXT = 3;

/**
 * Pairs of lines that are compared, some 20 ms: where the middles of two texts are longer, all of
 * the one goes and all of the other comes.
 */
const CELLS_MAX = 4_000_000;
const NO_CELLS = new Int32Array(0);

interface Change {
  readonly mark: ' ' | '-' | '+';
  readonly line: string;
  /** Lines before this one in either text. */
  readonly before: number;
  readonly after: number;
}

/** Hunks of `before` against `after`, each line with its end; '' where they are the same. */
export function lineDiff(before: readonly string[], after: readonly string[]): string {
  const changes = changesOf(before, after);
  let text = '';
  let at = 0;
  while (at < changes.length) {
    const first = changes.findIndex(({ mark }, index) => index >= at && mark !== ' ');
    if (first < 0) break;
    let last = first;
    for (let index = first; index < changes.length && index - last <= CONTEXT * 2 + 1; index++) {
      if (changes[index]?.mark !== ' ') last = index;
    }
    const hunk = changes.slice(Math.max(at, first - CONTEXT), last + CONTEXT + 1);
    text += hunkText(hunk);
    at = last + CONTEXT + 1;
  }
  return text;
}

function hunkText(hunk: readonly Change[]): string {
  const [first] = hunk;
  const range = (mark: '-' | '+', start: number): string => {
    const length = hunk.filter((one) => one.mark === ' ' || one.mark === mark).length;
    const from = length === 0 ? start : start + 1;
    return length === 1 ? String(from) : `${from},${length}`;
  };
  const head = `@@ -${range('-', first?.before ?? 0)} +${range('+', first?.after ?? 0)} @@\n`;
  return head + hunk.map(({ mark, line }) => `${mark}${line}\n`).join('');
}

/**
 * The longest lines in common stay; what is between them goes, then comes. Lines that both begin
 * with are set aside first.
 */
function changesOf(before: readonly string[], after: readonly string[]): Change[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  // of long texts the ends, too, though a line in them may have a partner further in front
  const isLong = (before.length - head + 1) * (after.length - head + 1) > CELLS_MAX;
  while (isLong && tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const changes: Change[] = [];
  const push = (mark: Change['mark'], b: number, a: number): void => {
    const line = (mark === '+' ? after[a] : before[b]) ?? '';
    changes.push({ mark, line, before: b, after: a });
  };
  for (let at = 0; at < head; at++) push(' ', at, at);
  const marks = marksOf(
    before.slice(head, before.length - tail),
    after.slice(head, after.length - tail),
  );
  let [b, a] = [head, head];
  for (const mark of marks) {
    push(mark, b, a);
    if (mark !== '+') b++;
    if (mark !== '-') a++;
  }
  for (; b < before.length; b++, a++) push(' ', b, a);
  return changes;
}

/** What becomes of each line, in order. */
function marksOf(before: readonly string[], after: readonly string[]): Change['mark'][] {
  const marks: Change['mark'][] = [];
  const width = after.length + 1;
  const isSmall = (before.length + 1) * width <= CELLS_MAX;
  const common = isSmall ? commonLengths(before, after) : NO_CELLS;
  let b = 0;
  let a = 0;
  while (b < before.length || a < after.length) {
    const isSame = isSmall && b < before.length && a < after.length && before[b] === after[a];
    const goes = (common[(b + 1) * width + a] ?? 0) >= (common[b * width + a + 1] ?? 0);
    const mark = isSame ? ' ' : b < before.length && (goes || a >= after.length) ? '-' : '+';
    marks.push(mark);
    if (mark !== '+') b++;
    if (mark !== '-') a++;
  }
  return marks;
}

/** How many lines the rests have in common from each place: a row for each line of `before`. */
function commonLengths(before: readonly string[], after: readonly string[]): Int32Array {
  const width = after.length + 1;
  const common = new Int32Array((before.length + 1) * width);
  for (let b = before.length - 1; b >= 0; b--) {
    for (let a = after.length - 1; a >= 0; a--) {
      const at = b * width + a;
      const below = common[at + width] ?? 0;
      const right = common[at + 1] ?? 0;
      const isSame = before[b] === after[a];
      common[at] = isSame ? (common[at + width + 1] ?? 0) + 1 : Math.max(below, right);
    }
  }
  return common;
}
