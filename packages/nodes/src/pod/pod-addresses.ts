/**
 * Addresses of pods: of the networks of their node (`spec.podCIDRs`) where it has any, and else of
 * the common ones. What is given out of nodes' networks, and of IPv6, is a set of numbers.
 */
import { parseNetwork, networkStart } from '@megaplane/machinery/ip-address';
import { AddressPool, addressNumber, addressText, parseCidr } from '../columns/addresses.ts';
import { address6Number, address6Text } from '../columns/ip6-column.ts';

/** In larger networks the search begins anywhere, once so many addresses were taken. */
const TRIES_IN_ORDER = 256;
/** A search of a network of IPv6 gives up after so many. */
const TRIES_MAX = 70_000;
/** Longest prefix of IPv6 that leaves room for pods. */
const PREFIX6_LENGTH_MAX = 126;

/** A network of pods, by its first address and the length of its prefix. */
export type PodNetwork =
  | { readonly family: 4; readonly base: number; readonly length: number }
  | { readonly family: 6; readonly base: bigint; readonly length: number };

/** The network that a text names; undefined for what has no room for pods, or too much. */
export function networkOf(cidr: string): PodNetwork | undefined {
  if (!cidr.includes(':')) {
    const found = parseCidr(cidr);
    if (found === undefined) return undefined;
    return { family: 4, base: found.base, length: 32 - Math.log2(found.size) };
  }
  const found = parseNetwork(cidr);
  if (found === undefined || found.address.isIpv4) return undefined;
  if (found.bits < 1 || found.bits > PREFIX6_LENGTH_MAX) return undefined;
  const base = BigInt(`0x${Buffer.from(networkStart(found)).toString('hex')}`);
  return { family: 6, base, length: found.bits };
}

/** The common networks in `10.0.0.0/9` or `10.0.0.0/9,fd00::/64`; undefined for other text. */
export function commonNetworks(text: string): readonly PodNetwork[] | undefined {
  const found = text.split(',').map((cidr) => networkOf(cidr.trim()));
  const networks = found.filter((network) => network !== undefined);
  const families = new Set(networks.map(({ family }) => family));
  return networks.length === found.length && families.size === found.length ? networks : undefined;
}

/** Networks of nodes that follow from their numbers: that of node `i` is the base plus `i`. */
export interface PlannedNetworks {
  readonly base: bigint;
  /** Of the network of a node. */
  readonly length: number;
  /** Nodes that there is room for. */
  readonly nodesMax: number;
}

const USUAL_CIDR = '10.0.0.0/9';
const PLAN = /^plan:([^/]+\/\d+)\/(\d{1,3})$/;
/** Numbers of nodes are exact. */
const INDEX_BITS_MAX = 24;

/** Reads `plan:fd00:10::/76/96`, as `network plan` prints it; undefined for other text. */
export function plannedNetworks(text: string): PlannedNetworks | undefined {
  const [, cidr = '', bits = ''] = PLAN.exec(text) ?? [];
  const network = networkOf(cidr);
  const length = Number(bits);
  if (network?.family !== 6 || length < network.length || length > PREFIX6_LENGTH_MAX) {
    return undefined;
  }
  const nodesMax = 2 ** Math.min(INDEX_BITS_MAX, length - network.length);
  return { base: network.base, length, nodesMax };
}

/** Where pods of nodes without networks get addresses, by the flag: with a plan the usual ones. */
export function commonCidr(text: string): string {
  return plannedNetworks(text) === undefined ? text : USUAL_CIDR;
}

/** The network of pods of node number `index`. */
export function plannedCidr({ base, length }: PlannedNetworks, index: number): string {
  return `${address6Text(base + (BigInt(index) << BigInt(128 - length)))}/${length}`;
}

/** Gives addresses out as texts. The common networks are checked by `commonNetworks`. */
export class PodAddresses {
  readonly #common: readonly PodNetwork[];
  readonly #pool: AddressPool | undefined;
  /** Of nodes' networks; bounded by the number of pods. */
  readonly #taken: Set<number> = new Set();
  readonly #taken6: Set<bigint> = new Set();
  /** How far the common network of IPv6 was given out, and where our part of it begins. */
  #cursor6 = 0n;
  readonly #start6: bigint;

  /** Of the common networks one of `count` parts is given out, number `index`. */
  constructor(cidrs: string, index: number = 0, count: number = 1) {
    this.#common = commonNetworks(cidrs) ?? [];
    const cidr4 = cidrs.split(',').find((cidr) => !cidr.includes(':'));
    this.#pool = cidr4 === undefined ? undefined : new AddressPool(cidr4.trim(), index, count);
    const network6 = this.#common.find(({ family }) => family === 6);
    const size6 = network6 === undefined ? 0n : 1n << BigInt(128 - network6.length);
    this.#start6 = (size6 * BigInt(index)) / BigInt(count);
  }

  /** An address of each network, or of the common ones; those that have none left are left out. */
  allocate(networks: readonly PodNetwork[] = []): string[] {
    const isCommon = networks.length === 0;
    const found = (isCommon ? this.#common : networks).map((network) => {
      if (network.family === 6) return this.#allocate6(network.base, network.length, isCommon);
      const address = isCommon
        ? (this.#pool?.allocate() ?? -1)
        : this.#allocate4(network.base, network.length);
      return address < 0 ? '' : addressText(address);
    });
    return found.filter((address) => address !== '');
  }

  #allocate4(base: number, length: number): number {
    const count = 2 ** (32 - length) - 2;
    const isLarge = count > TRIES_IN_ORDER;
    for (let tried = 0; tried < count; tried++) {
      const skipped = isLarge && tried >= TRIES_IN_ORDER ? this.#taken.size : 0;
      const address = base + 1 + ((tried + skipped) % count);
      if (this.#taken.has(address)) continue;
      this.#taken.add(address);
      return address;
    }
    return -1;
  }

  #allocate6(base: bigint, length: number, isCommon: boolean): string {
    const count = (1n << BigInt(128 - length)) - 2n;
    for (let tried = 0; tried < TRIES_MAX && BigInt(tried) < count; tried++) {
      let offset = BigInt(tried);
      if (isCommon) offset = this.#start6 + this.#cursor6++;
      else if (tried >= TRIES_IN_ORDER) offset += BigInt(this.#taken6.size);
      const address = base + 1n + (offset % count);
      if (this.#taken6.has(address)) continue;
      this.#taken6.add(address);
      return address6Text(address);
    }
    return '';
  }

  /** Marks the address that a pod has from before. */
  take(text: string): void {
    const address = addressNumber(text);
    if (address < 0) {
      const address6 = address6Number(text);
      if (address6 > 0n) this.#taken6.add(address6);
    } else if (this.#pool?.covers(address) === true) this.#pool.take(address);
    else this.#taken.add(address);
  }

  free(text: string): void {
    const address = addressNumber(text);
    if (address < 0) this.#taken6.delete(address6Number(text));
    else if (!this.#taken.delete(address)) this.#pool?.free(address);
  }
}
