/** Cursors of lists: which life of the provider, and up to which change. Opaque to others. */

const CURSOR_BYTES = 16;

export function writeCursor(instance: number, revision: number): Uint8Array {
  const bytes = new Uint8Array(CURSOR_BYTES);
  const view = new DataView(bytes.buffer);
  view.setFloat64(0, instance);
  view.setFloat64(8, revision);
  return bytes;
}

/** The revision of a cursor; 0, which is before all, for one that this life did not give. */
export function readCursor(bytes: Uint8Array, instance: number, revisionMax: number): number {
  if (bytes.length !== CURSOR_BYTES) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const revision = view.getFloat64(8);
  const isOurs = view.getFloat64(0) === instance && Number.isSafeInteger(revision);
  return isOurs && revision > 0 && revision <= revisionMax ? revision : 0;
}
