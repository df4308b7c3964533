// data plane: reads a Node's bytes in place
/** What a kubelet wants to know of a Node's bytes, found without parsing them. */
import type { ScanPath } from '@megaplane/machinery/scan';
import {
  findPath,
  integerAt,
  matches,
  MemberCursor,
  pathOf,
  skipSpace,
  skipValue,
} from '@megaplane/machinery/scan';

const CONDITIONS = pathOf('conditions');
const ADDRESSES = pathOf('addresses');
const ALLOCATABLE = pathOf('allocatable');
const POD_CIDR = pathOf('podCIDR');
const PORT = pathOf('daemonEndpoints', 'kubeletEndpoint', 'Port');
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const TYPE = encode('type');
const STATUS = encode('status');
const ADDRESS = encode('address');
const READY = encode('"Ready"');
const TRUE = encode('"True"');
const INTERNAL_IP = encode('"InternalIP"');
const COMMA = 0x2c;
const BRACKET = 0x5b;
const cursor = new MemberCursor();

/** True if the condition `Ready` is `True` in the status object `bytes[start..end)`. */
export function isReady(bytes: Uint8Array, start: number, end: number): boolean {
  const at = find(bytes, start, end, CONDITIONS, READY, STATUS);
  return at >= 0 && matches(bytes, at, skipValue(bytes, at, end), TRUE);
}

/** The address of type InternalIP in the status object `bytes[start..end)`, or ''. */
export function internalAddress(bytes: Uint8Array, start: number, end: number): string {
  const at = find(bytes, start, end, ADDRESSES, INTERNAL_IP, ADDRESS);
  return at < 0 ? '' : textAt(bytes, at, end);
}

/** The port of the node's kubelet in the status object `bytes[start..end)`, or -1. */
export function kubeletPort(bytes: Uint8Array, start: number, end: number): number {
  const at = start < 0 ? -1 : findPath(bytes, start, end, PORT);
  return at < 0 ? -1 : integerAt(bytes, at, end);
}

/** `podCIDR` of the spec `bytes[start..end)`, or ''. */
export function podCidr(bytes: Uint8Array, start: number, end: number): string {
  const at = start < 0 ? -1 : findPath(bytes, start, end, POD_CIDR);
  return at < 0 ? '' : textAt(bytes, at, end);
}

/** The text that begins at `at`, of an address: nothing in it is escaped. */
function textAt(bytes: Uint8Array, at: number, end: number): string {
  const text = bytes.subarray(at + 1, skipValue(bytes, at, end) - 1);
  return Buffer.from(text.buffer, text.byteOffset, text.length).toString('latin1');
}

/** True if the status object `bytes[start..end)` says what pods may use. */
export function hasAllocatable(bytes: Uint8Array, start: number, end: number): boolean {
  return start >= 0 && findPath(bytes, start, end, ALLOCATABLE) >= 0;
}

/** Where the member `wanted` stands in the item of the list at `path` whose `type` is `type`. */
function find(
  bytes: Uint8Array,
  start: number,
  end: number,
  path: ScanPath,
  type: Uint8Array,
  wanted: Uint8Array,
): number {
  let at = start < 0 ? -1 : findPath(bytes, start, end, path);
  if (at < 0 || bytes[at] !== BRACKET) return -1;
  do {
    at = skipSpace(bytes, at + 1, end);
    if (!cursor.open(bytes, at, end)) return -1;
    let isType = false;
    let found = -1;
    while (cursor.next()) {
      if (cursor.is(TYPE)) isType = matches(bytes, cursor.valueStart, cursor.valueEnd, type);
      else if (cursor.is(wanted)) found = cursor.valueStart;
    }
    if (isType) return found;
    at = skipValue(bytes, at, end);
    if (at < 0) return -1;
    at = skipSpace(bytes, at, end);
  } while (at < end && bytes[at] === COMMA);
  return -1;
}
