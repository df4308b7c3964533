/**
 * Octets that unfinished request bodies of all connections of a listener hold together, in shares.
 *
 * Each connection has a bound of its own, but a peer may have many. So nobody may hold more than
 * what stays free for others: one alone has at most half of all, each of two a third, and who comes
 * last always finds as much room as the largest holder has. Those of whom nobody knows yet who they
 * are (`isStranger`) share an eighth in the same way, address by address.
 */
import { assert } from '@megaplane/base/assert';
import type { Connection, BodyShare } from '../http/exchange.ts';

/** The part of all that strangers may hold together. */
const STRANGERS_PART = 8;
/** Groups of an IPv6 address that a network is known by: who has one has 2^64 addresses. */
const NETWORK_GROUPS = 4;

export class BodyBudget {
  readonly #bytesMax: number;
  readonly #held = new Map<string, number>();
  #used = 0;
  #usedByStrangers = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get used(): number {
    return this.#used;
  }

  /** Those that hold something. */
  get holders(): number {
    return this.#held.size;
  }

  /** False: there is no room for this one, and nothing was taken. */
  take(share: BodyShare, bytes: number): boolean {
    const key = keyOf(share);
    const own = (this.#held.get(key) ?? 0) + bytes;
    if (own > this.#bytesMax - this.#used - bytes) return false;
    if (share.isStranger) {
      const most = this.#bytesMax / STRANGERS_PART;
      if (own > most - this.#usedByStrangers - bytes) return false;
      this.#usedByStrangers += bytes;
    }
    this.#held.set(key, own);
    this.#used += bytes;
    return true;
  }

  give(share: BodyShare, bytes: number): void {
    if (bytes === 0) return;
    const key = keyOf(share);
    const own = (this.#held.get(key) ?? 0) - bytes;
    assert(own >= 0, 'more is given back than was taken');
    if (own === 0) this.#held.delete(key);
    else this.#held.set(key, own);
    this.#used -= bytes;
    if (share.isStranger) this.#usedByStrangers -= bytes;
  }
}

function keyOf({ name, isStranger }: BodyShare): string {
  return isStranger ? `?${name}` : `=${name}`;
}

/** The share of everybody behind an address, who is known by it or not at all. */
export function shareOfPeer(connection: Connection, isStranger: boolean): BodyShare {
  return { name: networkOf(connection.remoteAddress), isStranger };
}

/** An IPv4 address, or the /64 of an IPv6 address, zeros and zone left out. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const first = head === '' ? [] : head.split(':');
  if (tail === undefined) return first.slice(0, NETWORK_GROUPS).join(':');
  const last = tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0');
  return [...first, ...zeros, ...last].slice(0, NETWORK_GROUPS).join(':');
}
