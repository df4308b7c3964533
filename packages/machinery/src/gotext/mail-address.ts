/**
 * Addresses of mail as Go's `mail.ParseAddress` takes them (RFC 5322): with or without a name in
 * front, quoted local parts, literals as domains, letters beyond ASCII.
 */

const ATOM = String.raw`[A-Za-z0-9!#$%&'*+\-/=?^_\x60{|}~\u0080-\uffff]`;
const DOT_ATOM = new RegExp(`^${ATOM}+(?:\\.${ATOM}+)*`);
/** Words of a name in front may have points anywhere. */
const LOOSE_ATOM = new RegExp(`^(?:${ATOM}|\\.)+`);
// oxlint-disable-next-line no-control-regex -- what a quoted string may not hold
const QUOTED = /^"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*"/;
const LITERAL = /^\[([^[\]\\\s]*)\]/;

export function isEmail(text: string): boolean {
  const rest = skipSpace(text);
  const alone = addrSpec(rest);
  if (alone !== null) return isEnd(alone);
  const after = angleAddress(displayName(rest));
  return after !== null && isEnd(after);
}

function skipSpace(text: string): string {
  return text.replace(/^[ \t]+/, '');
}

/** Nothing but comments may follow. */
function isEnd(text: string): boolean {
  return /^(?:[ \t]*\([^()\\]*\))*[ \t]*$/.test(text);
}

/** What follows an `a@b`; null where there is none. */
function addrSpec(text: string): string | null {
  const local = QUOTED.exec(text) ?? DOT_ATOM.exec(text);
  if (local === null || local[0] === '""') return null;
  const at = skipSpace(text.slice(local[0].length));
  if (!at.startsWith('@')) return null;
  const domain = skipSpace(at.slice(1));
  const found = LITERAL.exec(domain) ?? DOT_ATOM.exec(domain);
  return found === null ? null : domain.slice(found[0].length);
}

/** What follows the words of a name. */
function displayName(text: string): string {
  let rest = text;
  for (;;) {
    rest = skipSpace(rest);
    const word = QUOTED.exec(rest) ?? LOOSE_ATOM.exec(rest);
    if (word === null) return rest;
    rest = rest.slice(word[0].length);
  }
}

function angleAddress(text: string): string | null {
  if (!text.startsWith('<')) return null;
  const after = addrSpec(skipSpace(text.slice(1)));
  return after !== null && after.startsWith('>') ? after.slice(1) : null;
}
