/** Anything beyond ASCII: nearly no header field has it. */
const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * What the value of a header field, or a query, says. The wire hands its bytes over one by one
 * (latin1); Go's servers and clients, and so kubectl's `--as`, take them for UTF-8.
 */
export function headerText(value: string): string {
  return BEYOND_ASCII.test(value) ? Buffer.from(value, 'latin1').toString() : value;
}

/** The same the other way: a text as the field value that says it, one character a byte. */
export function fieldValue(text: string): string {
  return PLAIN.test(text) ? text : Buffer.from(text).toString('latin1');
}

const PLAIN = /^[\x20-\x7e]*$/;
/** What RFC 9110 (5.5) lets values hold: bytes, none of them a control character but the tab. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** The name of the first field that HTTP cannot carry; undefined where all of them can be sent. */
export function unsendableField(fields: readonly string[]): string | undefined {
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    if (!NAME.test(name) || !VALUE.test(value)) return name;
  }
  return undefined;
}

/** A request target in ASCII: what stands in it beyond that is escaped, as Go writes it. */
export function plainTarget(target: string): string {
  const escaped = (byte: string): string =>
    `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  return target.replaceAll(/[\x80-\xff]/g, escaped);
}
