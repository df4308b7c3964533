// data plane: reads a Node's bytes in place
/** What a kubelet wants to know of a Node's bytes, found without parsing them. */
import { parseJson } from '@megaplane/machinery/json-text';
import {
  findPath,
  integerAt,
  matches,
  MemberCursor,
  pathOf,
  skipSpace,
  skipValue,
} from '@megaplane/machinery/scan';
import { jsonAt, textAt } from '../pod/pod-ip-fields.ts';

const POD_CIDR = pathOf('podCIDR');
const POD_CIDRS = pathOf('podCIDRs');

const PORT = pathOf('kubeletEndpoint', 'Port');
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const CONDITIONS = encode('conditions');
const ADDRESSES = encode('addresses');
const ALLOCATABLE = encode('allocatable');
const DAEMON_ENDPOINTS = encode('daemonEndpoints');
const TYPE = encode('type');
const STATUS = encode('status');
const ADDRESS = encode('address');
const READY = encode('"Ready"');
const TRUE = encode('"True"');
const INTERNAL_IP = encode('"InternalIP"');
const EXTERNAL_IP = encode('"ExternalIP"');
const COMMA = 0x2c;
const BRACKET = 0x5b;
const cursor = new MemberCursor();
const top = new MemberCursor();

/** Where the members of a status stand that a kubelet looks at; -1 where they are missing. */
export class StatusScan {
  conditions = -1;
  addresses = -1;
  /** The status says what pods may use. */
  hasAllocatable = false;
  /** Port of the node's kubelet, or -1. */
  port = -1;

  /** Finds them in the status object `bytes[start..end)`; a `start` of -1: there is none. */
  scan(bytes: Uint8Array, start: number, end: number): void {
    this.conditions = this.addresses = this.port = -1;
    this.hasAllocatable = false;
    if (start < 0 || !top.open(bytes, start, end)) return;
    while (top.next()) {
      const { valueStart, valueEnd } = top;
      if (top.is(CONDITIONS)) this.conditions = valueStart;
      else if (top.is(ADDRESSES)) this.addresses = valueStart;
      else if (top.is(ALLOCATABLE)) this.hasAllocatable = true;
      else if (top.is(DAEMON_ENDPOINTS)) this.port = portAt(bytes, valueStart, valueEnd);
    }
  }
}

function portAt(bytes: Uint8Array, start: number, end: number): number {
  const at = findPath(bytes, start, end, PORT);
  return at < 0 ? -1 : integerAt(bytes, at, end);
}

/** True if the condition `Ready` is `True` in the list of conditions at `start`. */
export function isReady(bytes: Uint8Array, start: number, end: number): boolean {
  const at = find(bytes, start, end, READY, STATUS);
  return at >= 0 && matches(bytes, at, skipValue(bytes, at, end), TRUE);
}

/** True if the list of addresses at `start` has one of type InternalIP. */
export function hasInternalAddress(bytes: Uint8Array, start: number, end: number): boolean {
  return find(bytes, start, end, INTERNAL_IP, ADDRESS) >= 0;
}

/**
 * The addresses in the list at `start`: those of type InternalIP, then those of type ExternalIP, as
 * kubelets order them.
 */
export function hostAddresses(bytes: Uint8Array, start: number, end: number): string[] {
  const internal: string[] = [];
  const external: string[] = [];
  let at = start;
  if (at < 0 || bytes[at] !== BRACKET) return internal;
  do {
    at = skipSpace(bytes, at + 1, end);
    if (!cursor.open(bytes, at, end)) break;
    let into: string[] | null = null;
    let text = '';
    while (cursor.next()) {
      const { valueStart, valueEnd } = cursor;
      if (cursor.is(ADDRESS)) text = textAt(bytes, valueStart, end);
      else if (!cursor.is(TYPE)) continue;
      else if (matches(bytes, valueStart, valueEnd, INTERNAL_IP)) into = internal;
      else if (matches(bytes, valueStart, valueEnd, EXTERNAL_IP)) into = external;
    }
    into?.push(text);
    at = skipValue(bytes, at, end);
    if (at >= 0) at = skipSpace(bytes, at, end);
  } while (at >= 0 && at < end && bytes[at] === COMMA);
  return external.length === 0 ? internal : [...internal, ...external];
}

/** `podCIDRs` of the spec `bytes[start..end)`, or the one `podCIDR`. */
export function podCidrs(bytes: Uint8Array, start: number, end: number): string[] {
  const all = start < 0 ? -1 : findPath(bytes, start, end, POD_CIDRS);
  const texts = all < 0 ? [] : textsAt(bytes, all, end);
  const one = texts.length > 0 || start < 0 ? -1 : findPath(bytes, start, end, POD_CIDR);
  return one < 0 ? texts : [textAt(bytes, one, end)];
}

/** The texts of the list that begins at `at`; other items are left out. */
function textsAt(bytes: Uint8Array, at: number, end: number): string[] {
  const items: unknown = parseJson(jsonAt(bytes, at, end));
  return Array.isArray(items) ? items.filter((item) => typeof item === 'string') : [];
}

/** Where the member `wanted` stands in the item of the list at `start` whose `type` is `type`. */
function find(
  bytes: Uint8Array,
  start: number,
  end: number,
  type: Uint8Array,
  wanted: Uint8Array,
): number {
  let at = start;
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
