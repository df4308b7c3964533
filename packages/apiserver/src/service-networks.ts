/**
 * The networks that addresses of Services come from: every ServiceCIDR that is ready and not on its
 * way out, as upstream's allocator of several ranges has it. IPv4 only.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decodeRow } from './encoder.ts';
import { findServed, rangeOf } from './served.ts';
import type { World } from './world.ts';

/** The first addresses of a network are left to those who ask for one by name. */
const RESERVED_ADDRESSES = 256;

export interface Network {
  /** Its first address as a number, which is given to nobody, as is the last. */
  readonly base: number;
  readonly size: number;
}

/** Of text such as `10.96.0.0/16`; null for what is no network of IPv4. */
export function networkOf(text: string): Network | null {
  const [address = '', bits = ''] = text.split('/');
  if (!/^[\d.]+$/.test(address) || !/^\d+$/.test(bits)) return null;
  return { base: addressNumber(address), size: 2 ** (32 - Number(bits)) };
}

/** The networks that new addresses may be of; `first` where no object tells of any. */
export function networksOf(world: World, first: Network): readonly Network[] {
  const served = findServed('networking.k8s.io', 'v1', 'servicecidrs');
  if (served === undefined) return [first];
  const found: Network[] = [];
  let isToldOf = false;
  const { start, end } = rangeOf(served, '');
  world.storage.page(start, end, 0, (row) => {
    isToldOf = true;
    const object = decodeRow(served, row, row.modRevision);
    if (!isReady(object)) return true;
    for (const cidr of listAt(object, 'spec', 'cidrs')) {
      const network = typeof cidr === 'string' ? networkOf(cidr) : null;
      if (network !== null) found.push(network);
    }
    return true;
  });
  return isToldOf ? found : [first];
}

/** One that nobody has judged yet is ready: perhaps there is no controller that would. */
function isReady(object: JsonObject): boolean {
  if (objectAt(object, 'metadata')?.['deletionTimestamp'] !== undefined) return false;
  const conditions = listAt(object, 'status', 'conditions');
  const ready = conditions.find((one) => stringAt(one, 'type') === 'Ready');
  return ready === undefined || stringAt(ready, 'status') === 'True';
}

/** Whether an address may be given out of a network. */
export function holds({ base, size }: Network, address: string): boolean {
  const number = addressNumber(address);
  return number > base && number < base + size - 1;
}

/** The first address that `isFree`, from one on that `below` draws; '' where none is. */
export function freeAddressIn(
  { base, size }: Network,
  isFree: (address: string) => boolean,
  below: (n: number) => number,
): string {
  const reserved = Math.max(1, Math.min(RESERVED_ADDRESSES, Math.floor(size / 16)));
  const room = size - reserved - 1;
  const first = below(Math.max(1, room));
  for (let step = 0; step < room; step++) {
    const address = addressText(base + reserved + ((first + step) % room));
    if (isFree(address)) return address;
  }
  return '';
}

function addressNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function addressText(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}
