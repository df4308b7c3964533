/**
 * Go's `%q` of a string, as its programs' messages print values.
 *
 * Printable characters stay, control characters become `\n`-like, `\x07` or `\u2028` escapes, and
 * a lone surrogate (no character at all) becomes U+FFFD.
 */
export function quoted(text: string): string {
  if (/^[ !#-[\]-~]*$/.test(text)) return `"${text}"`;
  let out = '"';
  for (const character of text) out += escaped(character);
  return out + '"';
}

const SHORT = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

function escaped(character: string): string {
  const short = SHORT.get(character);
  if (short !== undefined) return short;
  if (character === ' ') return character;
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  if (!/[\p{C}\p{Z}]/u.test(character)) return character;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`;
  return `\\U${code.toString(16).padStart(8, '0')}`;
}
