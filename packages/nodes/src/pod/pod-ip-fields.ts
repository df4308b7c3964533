/** Addresses of pods in the bytes of a status. */
import { parseJson } from '@megaplane/machinery/json-text';
import { findPath, pathOf, skipValue } from '@megaplane/machinery/scan';

const POD_IPS = pathOf('podIPs');
const POD_IP = pathOf('podIP');

/** `podIPs` of the status `bytes[start..end)`, or the one `podIP`. */
export function podIps(bytes: Uint8Array, start: number, end: number): string[] {
  const at = start < 0 ? -1 : findPath(bytes, start, end, POD_IPS);
  const all =
    at < 0 ? [] : (parseJson(jsonAt(bytes, at, end)) as ({ ip?: string } | null)[] | null);
  const texts = (all ?? []).flatMap((item) => item?.ip ?? []);
  const one = texts.length > 0 || start < 0 ? -1 : findPath(bytes, start, end, POD_IP);
  return one < 0 ? texts : [textAt(bytes, one, end)];
}

export function jsonAt(bytes: Uint8Array, at: number, end: number): string {
  const length = skipValue(bytes, at, end) - at;
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('utf8');
}

/** The text that begins at `at`, of an address: nothing in it is escaped. */
export function textAt(bytes: Uint8Array, at: number, end: number): string {
  const text = bytes.subarray(at + 1, skipValue(bytes, at, end) - 1);
  return Buffer.from(text.buffer, text.byteOffset, text.length).toString('latin1');
}
