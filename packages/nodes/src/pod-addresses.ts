/**
 * Addresses of pods: of the network of their node (`spec.podCIDR`) where it has one, and else of
 * the common pool. What is given out of nodes' networks is a set of numbers.
 */
import { addressNumber, parseCidr, type AddressPool } from './addresses.ts';

/** In larger networks the search begins anywhere, once so many addresses were taken. */
const TRIES_IN_ORDER = 256;

/** An IPv4 network as two numbers; a length of 0: the node has none. */
export interface NodeNetwork {
  readonly base: number;
  readonly length: number;
}

export const NO_NETWORK: NodeNetwork = { base: 0, length: 0 };

/** The network that a node's `spec.podCIDR` names; IPv6 counts as none. */
export function networkOf(cidr: string): NodeNetwork {
  const found = parseCidr(cidr);
  if (found === undefined) return NO_NETWORK;
  return { base: found.base, length: 32 - Math.log2(found.size) };
}

export class PodAddresses {
  readonly #pool: AddressPool;
  /** Of nodes' networks; bounded by the number of pods. */
  readonly #taken: Set<number> = new Set();

  constructor(pool: AddressPool) {
    this.#pool = pool;
  }

  /** A free address, or -1 when the network has none left. */
  allocate({ base, length }: NodeNetwork = NO_NETWORK): number {
    if (length === 0) return this.#pool.allocate();
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

  /** Marks the address that a pod has from before; -1 where the text is none. */
  take(text: string): number {
    const address = addressNumber(text);
    if (address < 0) return address;
    if (this.#pool.covers(address)) this.#pool.take(address);
    else this.#taken.add(address);
    return address;
  }

  free(address: number): void {
    if (!this.#taken.delete(address)) this.#pool.free(address);
  }
}
