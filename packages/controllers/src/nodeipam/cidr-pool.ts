/**
 * Equal pieces of one block of addresses, given to nodes: as upstream's range allocator, the next
 * piece after the last one given, around and around. A piece is a number below `size`; which ones
 * are taken is a bit each.
 */
import { assert } from '@megaplane/base/assert';
import { isIP } from 'node:net';

/** A block is cut into at most so many pieces: sixteen bits between the two masks. */
export const MASK_BITS_MAX = 16;
/** A plan cuts it further: sixteen million pieces, two mebibytes of marks. */
export const PLAN_BITS_MAX = 24;

/** A block of addresses: `bits` wide, 32 or 128. */
export interface Block {
  readonly base: bigint;
  readonly mask: number;
  readonly bits: 32 | 128;
}

/** Reads `10.0.0.0/8` or `fd00::/48`; undefined where it is none, or has bits beyond its mask. */
export function parseBlock(text: string): Block | undefined {
  const slash = text.indexOf('/');
  const address = text.slice(0, Math.max(0, slash));
  const version = isIP(address);
  const mask = Number(text.slice(slash + 1));
  const bits = version === 4 ? 32 : 128;
  if (version === 0 || !/^\d{1,3}$/.test(text.slice(slash + 1)) || mask > bits) return undefined;
  const base = version === 4 ? numberOf4(address) : numberOf6(address);
  const rest = (1n << BigInt(bits - mask)) - 1n;
  return (base & rest) === 0n ? { base, mask, bits } : undefined;
}

function numberOf4(address: string): bigint {
  return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
}

function numberOf6(address: string): bigint {
  const last = address.slice(address.lastIndexOf(':') + 1);
  const isMixed = last.includes('.');
  const tail4 = isMixed ? numberOf4(last) : 0n;
  const text = isMixed ? `${address.slice(0, -last.length)}${words(tail4)}` : address;
  const [head = '', tail] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right];
  return groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

function words(value: bigint): string {
  return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
}

/** The text of a block, with IPv6 in its shortest form (RFC 5952). */
export function blockText({ base, mask, bits }: Block): string {
  if (bits === 32) {
    const parts = [24n, 16n, 8n, 0n].map((shift) => String((base >> shift) & 255n));
    return `${parts.join('.')}/${mask}`;
  }
  const groups = Array.from({ length: 8 }, (_, i) => (base >> BigInt(112 - 16 * i)) & 0xffffn);
  let best = 0;
  let bestAt = -1;
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0n) length++;
    if (length > best && length > 1) [best, bestAt] = [length, at];
  }
  const hex = (list: readonly bigint[]): string => list.map((one) => one.toString(16)).join(':');
  if (bestAt < 0) return `${hex(groups)}/${mask}`;
  return `${hex(groups.slice(0, bestAt))}::${hex(groups.slice(bestAt + best))}/${mask}`;
}

export class CidrPool {
  readonly block: Block;
  readonly size: number;
  readonly #nodeMask: number;
  readonly #taken: Uint8Array;
  #next = 0;
  #count = 0;
  /** Pieces that the last allocation found taken. */
  passed = 0;

  /** `nodeMask` is that of a piece; throws where the block cannot be cut so. */
  constructor(block: Block, nodeMask: number, bitsMax: number = MASK_BITS_MAX) {
    const bits = nodeMask - block.mask;
    if (bits < 0 || nodeMask > block.bits) {
      throw new Error(`pieces of /${nodeMask} do not fit into ${blockText(block)}`);
    }
    if (bits > bitsMax) {
      const text = `${blockText(block)} has more than 2^${bitsMax} pieces of /${nodeMask}`;
      throw new Error(text);
    }
    this.block = block;
    this.#nodeMask = nodeMask;
    this.size = 2 ** bits;
    this.#taken = new Uint8Array(Math.ceil(this.size / 8));
  }

  /** Pieces that are taken. */
  get count(): number {
    return this.#count;
  }

  /** The next free piece, taken now; undefined where none is left. */
  allocate(): Block | undefined {
    for (let i = 0; i < this.size; i++) {
      const at = (this.#next + i) % this.size;
      if (this.#isTaken(at)) continue;
      this.passed = i;
      this.#set(at, true);
      this.#next = (at + 1) % this.size;
      return this.#piece(at);
    }
    return undefined;
  }

  /** The piece of this number, taken now; undefined where there is none, or another has it. */
  take(at: number): Block | undefined {
    this.passed = 0;
    if (!(at >= 0 && at < this.size) || this.#isTaken(at)) return undefined;
    this.#set(at, true);
    return this.#piece(at);
  }

  /** All pieces that overlap a block are taken; false where none of them is of this pool. */
  occupy(block: Block): boolean {
    return this.#each(block, true);
  }

  release(block: Block): void {
    this.#each(block, false);
  }

  #each(block: Block, isTaken: boolean): boolean {
    if (block.bits !== this.block.bits) return false;
    const shift = BigInt(block.bits - this.#nodeMask);
    const last = block.base + (1n << BigInt(block.bits - block.mask)) - 1n;
    const first = (block.base - this.block.base) >> shift;
    const end = (last - this.block.base) >> shift;
    if (end < 0n || first >= BigInt(this.size)) return false;
    const from = Number(first < 0n ? 0n : first);
    const to = end >= BigInt(this.size) ? this.size - 1 : Number(end);
    for (let at = from; at <= to; at++) if (this.#isTaken(at) !== isTaken) this.#set(at, isTaken);
    return true;
  }

  #piece(at: number): Block {
    assert(this.#isTaken(at), 'a piece that is given is taken');
    const { base, bits } = this.block;
    const shift = BigInt(bits - this.#nodeMask);
    return { base: base + (BigInt(at) << shift), mask: this.#nodeMask, bits };
  }

  #isTaken(at: number): boolean {
    return (((this.#taken[at >> 3] ?? 0) >> (at & 7)) & 1) === 1;
  }

  #set(at: number, isTaken: boolean): void {
    const bit = 1 << (at & 7);
    const byte = this.#taken[at >> 3] ?? 0;
    this.#taken[at >> 3] = isTaken ? byte | bit : byte & ~bit;
    assert(((byte & bit) !== 0) !== isTaken, 'a piece is taken once, and freed once');
    this.#count += isTaken ? 1 : -1;
    assert(this.#count >= 0 && this.#count <= this.size, 'pieces that are taken are of the pool');
  }
}
