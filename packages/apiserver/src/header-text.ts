/** Anything beyond ASCII: nearly no header field has it. */
const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * What the value of a header field, or a query, says. The wire hands its bytes over one by one
 * (latin1); Go's servers and clients, and so kubectl's `--as`, take them for UTF-8.
 */
export function headerText(value: string): string {
  return BEYOND_ASCII.test(value) ? Buffer.from(value, 'latin1').toString() : value;
}

/** A request target in ASCII: what stands in it beyond that is escaped, as Go writes it. */
export function plainTarget(target: string): string {
  const escaped = (byte: string): string =>
    `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  return target.replaceAll(/[\x80-\xff]/g, escaped);
}
