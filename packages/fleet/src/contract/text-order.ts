/**
 * Order of texts by their UTF-8 bytes: what Go's `sort.Strings` does, and so what canonical forms
 * that cross the wire need. JavaScript's own order differs where texts have surrogates.
 */
export function byUtf8(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    const a = left.charCodeAt(at);
    const b = right.charCodeAt(at);
    if (a === b) continue;
    // a surrogate stands for a character above all that need none
    return a >= 0xd800 && b >= 0xd800 ? aboveSurrogates(a) - aboveSurrogates(b) : a - b;
  }
  return left.length - right.length;
}

function aboveSurrogates(unit: number): number {
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}
