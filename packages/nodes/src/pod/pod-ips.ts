/** The addresses that pods have, by row of their informer: one of each family at most. */
import { Uint32Column, Uint8Column } from '@megaplane/base/column';
import { addressNumber, addressText } from '../columns/addresses.ts';
import { address6Number, address6Text, Ip6Column } from '../columns/ip6-column.ts';
import type { PodAddresses, PodNetwork } from './pod-addresses.ts';

/** Addresses as columns: IPv4 and IPv6 of a row, and which of them comes first. */
export class IpPairs {
  readonly #four = new Uint32Column();
  readonly #six = new Ip6Column();
  /** 1: the address of IPv6 is the first; rows without one take no room. */
  readonly #isSixFirst = new Uint8Column();

  /** Takes the first address of each family, in their order. */
  set(id: number, texts: readonly string[]): void {
    const only = texts.length === 1 ? addressNumber(texts[0] ?? '') : -1;
    if (only > 0) {
      // most hosts and pods have one
      this.#four.set(id, only);
      this.#six.set(id, 0n);
      if (this.#isSixFirst.get(id) === 1) this.#isSixFirst.set(id, 0);
      return;
    }
    const four = texts.find((text) => addressNumber(text) > 0);
    const six = texts.find((text) => address6Number(text) > 0n);
    this.#four.set(id, four === undefined ? 0 : addressNumber(four));
    this.#six.set(id, six === undefined ? 0n : address6Number(six));
    const isSixFirst =
      six !== undefined && texts.find((one) => one === four || one === six) === six;
    if (isSixFirst !== (this.#isSixFirst.get(id) === 1))
      this.#isSixFirst.set(id, isSixFirst ? 1 : 0);
  }

  has(id: number): boolean {
    return this.#four.get(id) > 0 || this.#six.get(id) > 0n;
  }

  get(id: number): readonly string[] {
    const four = this.#four.get(id);
    const six = this.#six.get(id);
    if (six === 0n) return four === 0 ? [] : [addressText(four)];
    if (four === 0) return [address6Text(six)];
    const texts = [addressText(four), address6Text(six)];
    return this.#isSixFirst.get(id) === 1 ? texts.reverse() : texts;
  }
}

/** Gives pods their addresses, and takes them back. */
export class PodIps {
  readonly #addresses: PodAddresses;
  readonly #pairs = new IpPairs();

  constructor(addresses: PodAddresses) {
    this.#addresses = addresses;
  }

  /** The row has a new owner. */
  reset(id: number): void {
    this.#pairs.set(id, []);
  }

  has(id: number): boolean {
    return this.#pairs.has(id);
  }

  /** Addresses that the pod has from before: they are not given out again. */
  keep(id: number, texts: readonly string[]): void {
    if (texts.length === 0 || this.has(id)) return;
    this.#pairs.set(id, texts);
    for (const text of this.#pairs.get(id)) this.#addresses.take(text);
  }

  /** What the pod has, or is given now, of its node's networks; none where none are left. */
  of(id: number, networks: readonly PodNetwork[]): readonly string[] {
    if (!this.has(id)) this.#pairs.set(id, this.#addresses.allocate(networks));
    return this.#pairs.get(id);
  }

  /** The pod is gone. */
  free(id: number): void {
    for (const text of this.#pairs.get(id)) this.#addresses.free(text);
    this.#pairs.set(id, []);
  }
}
