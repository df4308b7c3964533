/** Standard base64, and Go's word on where a text is not base64. */

const ALPHABET = /^[A-Za-z0-9+/]$/;
const PADDED = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const RAW = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3})?$/;

/**
 * The bytes, or the place of the first byte that is wrong. Line ends are passed over. Raw base64
 * has no padding, and none is allowed.
 */
export function decodeBase64(text: string, isRaw = false): Buffer | number {
  if ((isRaw ? RAW : PADDED).test(text)) return Buffer.from(text, 'base64');
  const bare = text.replaceAll(/[\r\n]/g, '');
  return bare === text ? firstWrong(text, isRaw) : decodeBase64(bare, isRaw);
}

function firstWrong(text: string, isRaw: boolean): number {
  for (let at = 0; at < text.length; at += 4) {
    for (let digit = 0; digit < 4; digit++) {
      const place = at + digit;
      // The end inside a group of four is told by where the group begins.
      if (place >= text.length) return at;
      if (ALPHABET.test(text.charAt(place))) continue;
      if (text.charAt(place) !== '=' || digit < 2 || isRaw) return place;
      if (digit === 3) return place + 1;
      if (place + 1 >= text.length) return text.length;
      return text.charAt(place + 1) === '=' ? place + 2 : place;
    }
  }
  return text.length;
}
