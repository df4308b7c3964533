/** Two texts side by side in one: the unified form that error texts show of objects that differ. */

/** Lines that are the same around each change. */
const CONTEXT = 3;

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

/** The longest lines in common stay; what is between them goes, then comes. */
function changesOf(before: readonly string[], after: readonly string[]): Change[] {
  const common = commonLengths(before, after);
  const changes: Change[] = [];
  let b = 0;
  let a = 0;
  while (b < before.length || a < after.length) {
    const isSame = b < before.length && a < after.length && before[b] === after[a];
    const goes = (common[b + 1]?.[a] ?? -1) >= (common[b]?.[a + 1] ?? -1);
    const mark = isSame ? ' ' : b < before.length && (goes || a >= after.length) ? '-' : '+';
    changes.push({ mark, line: (mark === '+' ? after[a] : before[b]) ?? '', before: b, after: a });
    if (mark !== '+') b++;
    if (mark !== '-') a++;
  }
  return changes;
}

/** How many lines the rests from each place have in common, in order. */
function commonLengths(before: readonly string[], after: readonly string[]): number[][] {
  const common = Array.from({ length: before.length + 1 }, () =>
    Array.from({ length: after.length + 1 }, () => 0),
  );
  for (let b = before.length - 1; b >= 0; b--) {
    const row = common[b] ?? [];
    const next = common[b + 1] ?? [];
    for (let a = after.length - 1; a >= 0; a--) {
      row[a] =
        before[b] === after[a] ? (next[a + 1] ?? 0) + 1 : Math.max(next[a] ?? 0, row[a + 1] ?? 0);
    }
  }
  return common;
}
