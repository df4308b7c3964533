/**
 * The networks that addresses of Services come from: every ServiceCIDR that is ready and not on its
 * way out, as upstream's allocator of several ranges has it.
 */
import { ipText, networkStart, parseIp, parseNetwork } from '@megaplane/machinery/ip-address';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decodeRow } from '../../serializer/encoder.ts';
import { findServed, rangeOf } from '../../storage/served.ts';
import type { RuleContext } from '../rest/behaviour.ts';

export type Family = 'IPv4' | 'IPv6';

/** Where no flag says otherwise. */
export const SERVICE_RANGE = '10.96.0.0/16';

/** Upstream's bounds for the addresses at the start of a network that are asked for by name. */
const NAMED_MIN = 16n;
const NAMED_MAX = 256n;
/** Of a network, one address in so many. */
const NAMED_SHARE = 16n;
/** Longer networks of IPv6 have more addresses than upstream counts. */
const IPV6_BITS_MIN = 64;

export interface Network {
  /** As `10.96.0.0/16`. */
  readonly text: string;
  readonly family: Family;
  /** Given to nobody, as is the last address of IPv4. */
  readonly start: bigint;
  readonly first: bigint;
  readonly last: bigint;
  /** The first of those that are given to whoever names none, while there are any. */
  readonly unnamed: bigint;
}

/** Of text such as `10.96.0.0/16`; null for what is no network that addresses can come from. */
export function networkOf(text: string): Network | null {
  const network = parseNetwork(text);
  if (network === undefined) return null;
  const { bits, bitsMax } = network;
  const family = bitsMax === 32 ? 'IPv4' : 'IPv6';
  if (family === 'IPv6' && bits < IPV6_BITS_MIN) return null;
  const start = numberOf(networkStart(network), family);
  const size = 1n << BigInt(bitsMax - bits);
  const first = start + 1n;
  const last = start + size - (family === 'IPv4' ? 2n : 1n);
  return { text, family, start, first, last, unnamed: first + namedOf(size) };
}

function namedOf(size: bigint): bigint {
  if (size <= NAMED_MIN) return 0n;
  const share = size / NAMED_SHARE;
  if (share < NAMED_MIN) return NAMED_MIN;
  return share > NAMED_MAX ? NAMED_MAX : share;
}

/** The families that a cluster of these ranges has; the first is what Services get unasked. */
export function familiesOf(ranges: readonly string[]): Family[] {
  return ranges.map((range) => (range.includes(':') ? 'IPv6' : 'IPv4'));
}

/** Where the networks of Services are found. */
export type NetworkScope = Pick<RuleContext, 'world' | 'services'>;

/** The networks that new addresses may be of; those of the flag where no object tells of any. */
export function networksOf({ world, services }: NetworkScope, family: Family): readonly Network[] {
  const served = findServed('networking.k8s.io', 'v1', 'servicecidrs');
  const found: Network[] = [];
  const add = (cidr: unknown): void => {
    const network = typeof cidr === 'string' ? networkOf(cidr) : null;
    if (network?.family === family) found.push(network);
  };
  let isToldOf = false;
  if (served !== undefined) {
    const { start, end } = rangeOf(served, '');
    world.storage.page(start, end, 0, (row) => {
      isToldOf = true;
      const object = decodeRow(served, row, row.modRevision);
      if (isReady(object)) for (const cidr of listAt(object, 'spec', 'cidrs')) add(cidr);
      return true;
    });
  }
  if (!isToldOf) for (const range of services.serviceRanges) add(range);
  return found;
}

/** One that nobody has judged yet is ready: perhaps there is no controller that would. */
function isReady(object: JsonObject): boolean {
  if (objectAt(object, 'metadata')?.['deletionTimestamp'] !== undefined) return false;
  const conditions = listAt(object, 'status', 'conditions');
  const ready = conditions.find((one) => stringAt(one, 'type') === 'Ready');
  return ready === undefined || stringAt(ready, 'status') === 'True';
}

/** Whether an address may be given out of a network. */
export function holds({ family, first, last }: Network, address: string): boolean {
  const parsed = parseIp(address);
  if (parsed === undefined || (parsed.isIpv4 ? 'IPv4' : 'IPv6') !== family) return false;
  const number = numberOf(parsed.bytes, family);
  return number >= first && number <= last;
}

/**
 * A free address, '' where none is: the next one from where `below` draws, among those that are
 * named seldom, and only then among the others.
 */
export function freeAddressIn(
  network: Network,
  isFree: (address: string) => boolean,
  below: (n: number) => number,
): string {
  const { first, last, unnamed } = network;
  return (
    freeBetween(network, unnamed, last, isFree, below) ||
    freeBetween(network, first, unnamed - 1n, isFree, below)
  );
}

function freeBetween(
  { family }: Network,
  from: bigint,
  to: bigint,
  isFree: (address: string) => boolean,
  below: (n: number) => number,
): string {
  const room = to - from + 1n;
  if (room <= 0n) return '';
  const drawn = drawBelow(room, below);
  for (let step = 0n; step < room; step++) {
    const address = addressText(from + ((drawn + step) % room), family);
    if (isFree(address)) return address;
  }
  return '';
}

const HALF = 1n << 32n;

function drawBelow(room: bigint, below: (n: number) => number): bigint {
  if (room <= HALF) return BigInt(below(Number(room)));
  const half = (): bigint => BigInt(below(Number(HALF)));
  return ((half() << 32n) | half()) % room;
}

function numberOf(bytes: Uint8Array, family: Family): bigint {
  let number = 0n;
  for (const byte of bytes.subarray(family === 'IPv4' ? 12 : 0))
    number = number * 256n + BigInt(byte);
  return number;
}

export function addressText(number: bigint, family: Family): string {
  const bytes = new Uint8Array(16);
  for (let at = 15, rest = number; rest > 0n; at--, rest >>= 8n) bytes[at] = Number(rest & 0xffn);
  return ipText({ bytes, isIpv4: family === 'IPv4' });
}
