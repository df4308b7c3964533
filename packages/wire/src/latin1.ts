/**
 * Buffer's direct latin1 readers and writers, which its published types leave out. They skip the
 * look-up of an encoding name, which costs more than the copying of a short string.
 */
declare global {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- merges with Node's own
  interface Buffer {
    latin1Slice(start: number, end: number): string;
    latin1Write(text: string, at: number, length: number): number;
    utf8Slice(start: number, end: number): string;
    utf8Write(text: string, at: number, length: number): number;
  }
}

/** Below this a loop is done before the engine has left JavaScript. */
const SHORT = 16;

/** Octets `bytes[start..end)` as a string of the same length. */
export function latin1Read(bytes: Buffer, start: number, end: number): string {
  return bytes.latin1Slice(start, end);
}

/** Writes a string of characters below 256; returns the offset after it. */
export function latin1Write(bytes: Buffer, at: number, text: string): number {
  const { length } = text;
  if (length >= SHORT) return at + bytes.latin1Write(text, at, length);
  for (let i = 0; i < length; i++) bytes[at + i] = text.charCodeAt(i);
  return at + length;
}
