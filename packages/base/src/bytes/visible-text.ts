/**
 * Words of clients (names of users, user agents, paths) in texts that people read: what moves a
 * cursor, ends a line or turns the direction of writing stands there by its code, so that nobody
 * writes lines into a log, or sequences to the terminal that shows it.
 */
const HIDDEN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** What nearly every value is. */
const PLAIN = /^[\w.:/-]*$/;

function coded(letter: string): string {
  const code = letter.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** A text on one line. */
export function visibleText(text: string): string {
  return text.replaceAll(HIDDEN, coded);
}

/** A text of several lines: those after the first are indented, and so are no lines of others. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visibleText).join('\n\t');
}

/** The same on one line, as the value of a label in the text format of Prometheus. */
export function labelValue(text: string): string {
  if (PLAIN.test(text)) return text;
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll(HIDDEN, (letter) => `\\${coded(letter)}`);
}
