/**
 * `JSON.parse` for texts of others. V8 14.6 writes past its memory where a text that it reads is
 * nested some thousand levels deep, with whole objects or lists beside the deeper ones, and breaks
 * off (`'[[1],'.repeat(20_000) + '{'`): a body of 100 KB ended the process, most times at once. So
 * nothing nested deeper than `JSON_DEPTH_MAX` is given to it; `tools/laws.ts` sees to it that all
 * texts come this way.
 */

/**
 * Levels of brackets beyond which a text is refused. Go's parser goes to 10,000; what judges,
 * merges and tracks objects here calls itself for each level, and must not run out of stack.
 */
export const JSON_DEPTH_MAX = 1000;
/**
 * Shorter texts are not looked through: with a value beside each deeper one (five characters a
 * level) they have no more than 820 levels.
 */
const PLAIN_CHARS_MAX = 4096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

/** Parses JSON. Throws a SyntaxError where it is none, or nested too deep. */
export function parseNested(text: string): unknown {
  if (isNestedDeep(text)) {
    throw new SyntaxError(`JSON is nested more than ${JSON_DEPTH_MAX} levels deep`);
  }
  return JSON.parse(text) as unknown;
}

/** Whether a text opens more brackets at once than may be; looks at no more than it needs. */
function isNestedDeep(text: string): boolean {
  if (text.length <= PLAIN_CHARS_MAX) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      if (at < 0) return false;
    } else if (code === BRACE_OPEN || code === BRACKET_OPEN) {
      if (++depth > JSON_DEPTH_MAX) return true;
    } else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) depth--;
  }
  return false;
}

/** Where the closing quote stands; -1 without one. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2 === 1) return end;
  }
  return -1;
}
