// data plane: one bit per address
/** Addresses of pods: a pool of IPv4 addresses, one bit each, given out next-fit. */
import { assert } from '@megaplane/base/assert';

/** The largest pool: a /8, two megabytes of bits. */
export const PREFIX_LENGTH_MIN = 8;

const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** Parses `10.0.0.0/16`; undefined where it is no IPv4 network of /8 to /30. */
export function parseCidr(text: string): { base: number; size: number } | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return undefined;
  const parts = match.slice(1, 5).map(Number);
  const length = Number(match[5]);
  if (parts.some((part) => part > 255) || length < PREFIX_LENGTH_MIN || length > 30) {
    return undefined;
  }
  const size = 2 ** (32 - length);
  const address = parts.reduce((sum, part) => sum * 256 + part, 0);
  return { base: address - (address % size), size };
}

/** Dotted text of a 32-bit address. */
export function addressText(address: number): string {
  const high = Math.floor(address / 65_536);
  return `${high >>> 8}.${high & 255}.${(address >>> 8) & 255}.${address & 255}`;
}

/** The number behind dotted text, or -1. */
export function addressNumber(text: string): number {
  let address = 0;
  let part = 0;
  let parts = 1;
  let digits = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || ++parts > 4) return -1;
      address = address * 256 + part;
      part = digits = 0;
      continue;
    }
    if (code < ZERO || code > NINE || ++digits > 3) return -1;
    part = part * 10 + code - ZERO;
    if (part > 255) return -1;
  }
  return parts === 4 && digits > 0 ? address * 256 + part : -1;
}

/**
 * The addresses of one network. The first (the network) and the last (broadcast) are never given
 * out. Addresses that are in use from before are marked; foreign ones are ignored.
 */
export class AddressPool {
  readonly #base: number;
  readonly #size: number;
  readonly #bits: Uint32Array;
  readonly #first: number;
  readonly #end: number;
  #cursor: number;
  #used = 0;

  /** Of the addresses one of `count` parts is given out, number `index`. */
  constructor(cidr: string, index = 0, count = 1) {
    const network = parseCidr(cidr);
    assert(network !== undefined, `no IPv4 network of /8 to /30: ${cidr}`);
    this.#base = network.base;
    this.#size = network.size;
    this.#bits = new Uint32Array(Math.ceil(network.size / 32));
    this.#first = Math.max(1, Math.floor((network.size * index) / count));
    this.#end = Math.min(network.size - 1, Math.floor((network.size * (index + 1)) / count));
    this.#cursor = this.#first;
  }

  get used(): number {
    return this.#used;
  }

  /** How many addresses can be in use at once. */
  get capacity(): number {
    return this.#size - 2;
  }

  /** A free address, or -1 when all are taken. */
  allocate(): number {
    if (this.#used >= this.capacity) return -1;
    for (let tried = this.#first; tried < this.#end; tried++) {
      const at = this.#cursor;
      this.#cursor = at + 1 >= this.#end ? this.#first : at + 1;
      const word = this.#bits[at >>> 5]!;
      if ((word & (1 << (at & 31))) === 0) {
        this.#bits[at >>> 5] = word | (1 << (at & 31));
        this.#used++;
        return this.#base + at;
      }
    }
    return -1;
  }

  /** Whether the address lies in the network. */
  covers(address: number): boolean {
    return address >= this.#base && address < this.#base + this.#size;
  }

  /** Marks an address as taken. */
  take(address: number): void {
    const at = address - this.#base;
    if (at < 1 || at >= this.#size - 1 || this.#has(at)) return;
    this.#bits[at >>> 5]! |= 1 << (at & 31);
    this.#used++;
  }

  /** Gives an address back. */
  free(address: number): void {
    const at = address - this.#base;
    if (at < 1 || at >= this.#size - 1 || !this.#has(at)) return;
    this.#bits[at >>> 5]! &= ~(1 << (at & 31));
    this.#used--;
  }

  #has(at: number): boolean {
    return (this.#bits[at >>> 5]! & (1 << (at & 31))) !== 0;
  }
}
