/**
 * Patterns that the runtime's own engine may match: those that mean the same in RE2's language and
 * in JavaScript's, and that backtracking cannot make slow. Nearly all patterns of real schemas are
 * of this form: anchored at both ends, characters and classes one after the other, groups that may
 * be absent. RE2's engine takes some ten times as long for them.
 */

/** Letters, digits and signs that mean themselves in both languages. */
const LITERAL = `[A-Za-z0-9_ ,:;=@/!%&~"'<>#-]`;
const ESCAPED = String.raw`\\[.\-/+*?()[\]{}^$|\\]`;
/** What may stand in a class of ASCII: ranges, and signs; dashes only at its ends. */
const MEMBER = String.raw`(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ ,:;=@/!%.*+]|\\[.\-/])`;
const CLASS = String.raw`\[(?:-${MEMBER}+|${MEMBER}+-?)\]`;
const REPEATED = String.raw`(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})`;
const UNIT = `(?:${CLASS}|${ESCAPED}|${LITERAL})${REPEATED}?`;
const PLAIN = new RegExp(String.raw`^\^(?:${UNIT}|\((?:\?:)?(?:${UNIT})+\)\??)*\$$`);

/** Each of these tries all places of a text for each place that the one before it tries. */
const OPEN = /(?<!\\)(?:[*+]|\{\d+,\d*\})/g;
const OPTIONAL = /(?<!\\|\()\?/g;
const OPEN_MAX = 2;
const OPTIONAL_MAX = 3;

/** Longer texts are RE2's. */
export const PLAIN_CHARS_MAX = 128;

/** A pattern of RE2 for JavaScript's engine; null where it has to stay RE2's. */
export function plainPattern(pattern: string): RegExp | null {
  if (pattern.length > PLAIN_CHARS_MAX || !PLAIN.test(pattern)) return null;
  const open = pattern.match(OPEN)?.length ?? 0;
  const optional = pattern.match(OPTIONAL)?.length ?? 0;
  return open > OPEN_MAX || optional > OPTIONAL_MAX ? null : new RegExp(pattern);
}
