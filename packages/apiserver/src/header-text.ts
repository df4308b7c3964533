/** Anything beyond ASCII: nearly no header field has it. */
const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * What the value of a header field says. The wire hands its bytes over one by one (latin1);
 * Go's servers and clients, and so kubectl's `--as`, take them for UTF-8.
 */
export function headerText(value: string): string {
  return BEYOND_ASCII.test(value) ? Buffer.from(value, 'latin1').toString() : value;
}
