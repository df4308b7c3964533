/**
 * Which shard a node belongs to: rendezvous hashing (Thaler and Ravishankar, 1996). Every member
 * computes it from the list of members alone; when one joins or leaves, only its own share moves.
 */

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** FNV-1a of the text's UTF-16 units, 32 bits. */
function hashText(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

/** Spreads all bits over all bits (the finalizer of MurmurHash3). */
function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** What as good nodes are drawn by: of all, the one with the least. 32 bits. */
export function markOf(node: string, seed: number): number {
  return mix(hashText(node, FNV_OFFSET) ^ seed);
}

export class Rendezvous {
  /** Sorted, so that all agree whatever order they were named in. */
  readonly members: readonly string[];
  readonly #seeds: Uint32Array;

  constructor(members: Iterable<string>) {
    this.members = [...new Set(members)].toSorted();
    this.#seeds = Uint32Array.from(this.members, (name) => mix(hashText(name, FNV_OFFSET)));
  }

  /** Place of the owner among `members`; -1 without members. */
  indexOf(node: string): number {
    const hash = hashText(node, FNV_OFFSET);
    let best = -1;
    let most = -1;
    for (let i = 0; i < this.#seeds.length; i++) {
      const weight = mix(hash ^ (this.#seeds[i] ?? 0));
      if (weight > most) {
        most = weight;
        best = i;
      }
    }
    return best;
  }

  /** Name of the owner; empty without members. */
  ownerOf(node: string): string {
    return this.members[this.indexOf(node)] ?? '';
  }
}
