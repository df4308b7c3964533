/** What Go's `netip.ParseAddr` says of text that is no address. */

/** Why `text` is no address, up to `ParseAddr("..."): `; for text that is one, it is general. */
export function addressFault(text: string): string {
  const first = /[.:%]/.exec(text)?.[0];
  if (first === '.') return ipv4Fault(text) || UNKNOWN;
  if (first === ':') return ipv6Fault(text) || UNKNOWN;
  return first === '%' ? 'missing IPv6 address' : UNKNOWN;
}

const UNKNOWN = 'unable to parse IP';

function at(what: string, rest: string): string {
  return `${what} (at ${JSON.stringify(rest)})`;
}

function ipv4Fault(text: string): string {
  let digits = '';
  let fields = 0;
  for (let index = 0; index < text.length; index++) {
    const letter = text[index] ?? '';
    if (/\d/.test(letter)) {
      if (digits === '0') return 'IPv4 field has octet with leading zero';
      digits += letter;
      if (Number(digits) > 255) return 'IPv4 field has value >255';
    } else if (letter === '.') {
      if (digits === '' || index === text.length - 1) {
        return at('IPv4 field must have at least one digit', text.slice(index));
      }
      if (fields === 3) return 'IPv4 address too long';
      fields++;
      digits = '';
    } else return at('unexpected character', text.slice(index));
  }
  return fields < 3 ? 'IPv4 address too short' : '';
}

function ipv6Fault(whole: string): string {
  const percent = whole.indexOf('%');
  if (percent === whole.length - 1) return 'zone must be a non-empty string';
  let rest = percent < 0 ? whole : whole.slice(0, percent);
  let hasGap = rest.startsWith('::');
  if (hasGap) rest = rest.slice(2);
  if (hasGap && rest === '') return '';
  let bytes = 0;
  while (bytes < 16) {
    const digits = /^[0-9a-fA-F]*/.exec(rest)?.[0] ?? '';
    if (digits.length > 4) return at('each group must have 4 or less digits', rest);
    if (digits === '') {
      return at('each colon-separated field must have at least one digit', rest);
    }
    if (rest[digits.length] === '.') {
      if (!hasGap && bytes !== 12) {
        return at('embedded IPv4 address must replace the final 2 fields of the address', rest);
      }
      if (bytes > 12) {
        const what = 'too many hex fields to fit an embedded IPv4 at the end of the address';
        return at(what, rest);
      }
      const fault = ipv4Fault(rest);
      if (fault !== '') return fault;
      rest = '';
      bytes += 4;
      break;
    }
    bytes += 2;
    rest = rest.slice(digits.length);
    if (rest === '') break;
    if (!rest.startsWith(':')) return at('unexpected character, want colon', rest);
    if (rest.length === 1) return at('colon must be followed by more characters', rest);
    rest = rest.slice(1);
    if (!rest.startsWith(':')) continue;
    if (hasGap) return at('multiple :: in address', rest);
    hasGap = true;
    rest = rest.slice(1);
    if (rest === '') break;
  }
  if (rest !== '') return at('trailing garbage after address', rest);
  if (bytes < 16) return hasGap ? '' : 'address string too short';
  return hasGap ? 'the :: must expand to at least one field of zeros' : '';
}
