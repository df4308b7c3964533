/** Standard base64, and Go's word on where a text is not base64. */

const DIGIT = /^[A-Za-z0-9+/]$/;
const PADDED = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const RAW = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3})?$/;

/**
 * The bytes, or the place of the first byte that is wrong. Line ends are passed over. Raw base64
 * has no padding, and none is allowed.
 */
export function decodeBase64(text: string, isRaw = false): Buffer | number {
  if ((isRaw ? RAW : PADDED).test(text)) return Buffer.from(text, 'base64');
  const bare = text.replaceAll(/[\r\n]/g, '');
  if (bare !== text && (isRaw ? RAW : PADDED).test(bare)) return Buffer.from(bare, 'base64');
  return firstWrong(text, isRaw);
}

/** As Go's decoder looks for it, by digits of a group of four. */
function firstWrong(text: string, isRaw: boolean): number {
  for (let at = 0, digits = 0; ; at++) {
    // The end inside a group is told by the digits before it, as if no line end were among them.
    if (at === text.length) return at - digits;
    const found = text.charAt(at);
    if (found === '\r' || found === '\n') continue;
    if (DIGIT.test(found)) digits = (digits + 1) % 4;
    else if (found !== '=' || isRaw || digits < 2) return at;
    else return wrongPadding(text, at, digits);
  }
}

/** Behind the first `=`, after two or three digits of the last group. */
function wrongPadding(text: string, at: number, digits: number): number {
  const next = afterLineEnds(text, at + 1);
  if (digits === 3 || next === text.length) return next;
  return text.charAt(next) === '=' ? afterLineEnds(text, next + 1) : next - 1;
}

function afterLineEnds(text: string, from: number): number {
  let at = from;
  while (text.charAt(at) === '\r' || text.charAt(at) === '\n') at++;
  return at;
}
