// data plane: the B+tree of one bucket, planned in one pass and written in a second
/**
 * Entries come in order, so leaves are filled one after the other and the branches above them
 * follow behind the last leaf, level by level, the root last. The plan keeps eight bytes per leaf:
 * its first entry and its page.
 */
import {
  ELEMENT_BYTES,
  FLAG_BRANCH,
  FLAG_LEAF,
  PAGE_HEADER_BYTES,
  writePageHeader,
} from './pages.ts';

export const PAGE_BYTES = 4096;
/** Entries looked at per step: a tenth of a millisecond, or half of one where memory is cold. */
const STEP_ENTRIES = 256;
/** Branches planned per step, each of which looks at a record or two. */
const STEP_BRANCHES = 128;

/** What a bucket holds, in order of keys. */
export interface EntrySource {
  readonly count: number;
  keySize(index: number): number;
  valueSize(index: number): number;
  /** Write the bytes at `at` and return the end. */
  writeKey(index: number, out: Buffer, at: number): number;
  writeValue(index: number, out: Buffer, at: number): number;
}

/** Growing columns of nodes: the first entry below each, and its page. */
class Nodes {
  firsts: Uint32Array = new Uint32Array(64);
  pages: Uint32Array = new Uint32Array(64);
  length = 0;

  add(first: number, page: number): void {
    if (this.length === this.firsts.length) {
      this.firsts = wider(this.firsts);
      this.pages = wider(this.pages);
    }
    this.firsts[this.length] = first;
    this.pages[this.length++] = page;
  }
}

function wider(column: Uint32Array): Uint32Array {
  const next = new Uint32Array(column.length * 2);
  next.set(column);
  return next;
}

/** How the children of a level are dealt out to branches, filled one after the other. */
class Deal {
  /** First child of each branch, and behind the last one their number. */
  readonly starts: number[] = [0];
  /** Bytes of each branch. */
  readonly bytes: number[] = [];
  #filled = PAGE_HEADER_BYTES;
  #count = 0;

  /** The next child takes so many bytes of its branch. */
  add(size: number): void {
    if (this.#filled + size > PAGE_BYTES && this.#count - this.starts.at(-1)! >= 2) {
      this.bytes.push(this.#filled);
      this.starts.push(this.#count);
      this.#filled = PAGE_HEADER_BYTES;
    }
    this.#filled += size;
    this.#count++;
  }

  /** No branch may be left with a single child when it can take one from the branch before. */
  end(sizeOf: (child: number) => number): void {
    this.bytes.push(this.#filled);
    const last = this.starts.length - 1;
    if (last > 0 && this.#count - this.starts[last]! === 1) {
      const size = sizeOf(--this.starts[last]!);
      this.bytes[last]! += size;
      this.bytes[last - 1]! -= size;
    }
    this.starts.push(this.#count);
  }
}

/** A branch page: children [from, to) of the level below. */
interface Branch {
  readonly level: number;
  readonly from: number;
  readonly to: number;
  readonly page: number;
}

export class BucketTree {
  readonly name: string;
  readonly #source: EntrySource;
  /** Level 0 are the leaves. */
  readonly #levels: Nodes[] = [new Nodes()];
  readonly #branches: Branch[] = [];
  /** How the last level is dealt out: leaves as they are closed, there may be a million. */
  #deal = new Deal();
  /** The level above it while it is planned, and how many of its branches are. */
  #above: { readonly nodes: Nodes; readonly deal: Deal } | null = null;
  #dealt = 0;
  #hasLeaves = false;
  #nextPage: number;
  #planned = 0;
  #leafFirst = 0;
  #leafBytes = PAGE_HEADER_BYTES;
  #rendered = 0;
  /** Page of the root, once planned. */
  root = 0;

  constructor(name: string, source: EntrySource, firstPage: number) {
    this.name = name;
    this.#source = source;
    this.#nextPage = firstPage;
  }

  /** One past the last page of the bucket, once planned. */
  get nextPage(): number {
    return this.#nextPage;
  }

  /** Plans some entries, or branches; true when the whole tree is planned. */
  plan(): boolean {
    const source = this.#source;
    const end = Math.min(source.count, this.#planned + STEP_ENTRIES);
    for (; this.#planned < end; this.#planned++) {
      const index = this.#planned;
      const size = ELEMENT_BYTES + source.keySize(index) + source.valueSize(index);
      if (this.#leafBytes + size > PAGE_BYTES && index > this.#leafFirst) this.#closeLeaf();
      this.#leafBytes += size;
    }
    if (this.#planned < source.count) return false;
    if (!this.#hasLeaves) this.#closeLeaf();
    this.#hasLeaves = true;
    return this.#planBranches();
  }

  #closeLeaf(): void {
    this.#levels[0]!.add(this.#leafFirst, this.#nextPage);
    // An empty bucket is one leaf without entries, under no branch.
    if (this.#source.count > 0) this.#deal.add(this.#elementBytes(this.#leafFirst));
    this.#nextPage += Math.ceil(this.#leafBytes / PAGE_BYTES);
    this.#leafFirst = this.#planned;
    this.#leafBytes = PAGE_HEADER_BYTES;
  }

  /** Some branches over the last level; true when that is the root alone. */
  #planBranches(): boolean {
    const level = this.#levels.length - 1;
    const below = this.#levels[level]!;
    if (below.length === 1) {
      this.root = below.pages[0]!;
      return true;
    }
    const deal = this.#deal;
    const sizeOf = (child: number): number => this.#elementBytes(below.firsts[child]!);
    if (this.#above === null) {
      deal.end(sizeOf);
      this.#above = { nodes: new Nodes(), deal: new Deal() };
      this.#dealt = 0;
    }
    const above = this.#above;
    const end = Math.min(deal.starts.length - 1, this.#dealt + STEP_BRANCHES);
    for (; this.#dealt < end; this.#dealt++) {
      const from = deal.starts[this.#dealt]!;
      above.nodes.add(below.firsts[from]!, this.#nextPage);
      above.deal.add(sizeOf(from));
      const to = deal.starts[this.#dealt + 1]!;
      this.#branches.push({ level, from, to, page: this.#nextPage });
      this.#nextPage += Math.ceil(deal.bytes[this.#dealt]! / PAGE_BYTES);
    }
    if (this.#dealt < deal.starts.length - 1) return false;
    this.#levels.push(above.nodes);
    this.#deal = above.deal;
    this.#above = null;
    return false;
  }

  /** What an entry's key takes in a branch. */
  #elementBytes(entry: number): number {
    return ELEMENT_BYTES + this.#source.keySize(entry);
  }

  /** Bytes that the next node takes, whole pages; 0 when all are written. */
  nextBytes(): number {
    const page = this.#pageAt(this.#rendered);
    return page < 0 ? 0 : (this.#pageAfter(this.#rendered) - page) * PAGE_BYTES;
  }

  /** Page of the n-th node in the order of writing, -1 behind the last. */
  #pageAt(index: number): number {
    const leaves = this.#levels[0]!;
    if (index < leaves.length) return leaves.pages[index]!;
    return this.#branches[index - leaves.length]?.page ?? -1;
  }

  #pageAfter(index: number): number {
    const next = this.#pageAt(index + 1);
    return next < 0 ? this.#nextPage : next;
  }

  /** Writes the next node at `at`, where `nextBytes()` zero bytes lie. */
  renderNext(out: Buffer, at: number): void {
    const leaves = this.#levels[0]!;
    const index = this.#rendered;
    const overflow = this.nextBytes() / PAGE_BYTES - 1;
    this.#rendered++;
    if (index < leaves.length) this.#renderLeaf(index, overflow, out, at);
    else this.#renderBranch(this.#branches[index - leaves.length]!, overflow, out, at);
  }

  #renderLeaf(index: number, overflow: number, out: Buffer, at: number): void {
    const source = this.#source;
    const leaves = this.#levels[0]!;
    const from = leaves.firsts[index]!;
    const to = index + 1 < leaves.length ? leaves.firsts[index + 1]! : source.count;
    writePageHeader(out, at, leaves.pages[index]!, FLAG_LEAF, to - from, overflow);
    let element = at + PAGE_HEADER_BYTES;
    let data = element + (to - from) * ELEMENT_BYTES;
    for (let entry = from; entry < to; entry++) {
      const value = source.writeKey(entry, out, data);
      const end = source.writeValue(entry, out, value);
      out.writeUInt32LE(0, element);
      out.writeUInt32LE(data - element, element + 4);
      out.writeUInt32LE(value - data, element + 8);
      out.writeUInt32LE(end - value, element + 12);
      element += ELEMENT_BYTES;
      data = end;
    }
  }

  #renderBranch(branch: Branch, overflow: number, out: Buffer, at: number): void {
    const below = this.#levels[branch.level]!;
    const { from, to } = branch;
    writePageHeader(out, at, branch.page, FLAG_BRANCH, to - from, overflow);
    let element = at + PAGE_HEADER_BYTES;
    let data = element + (to - from) * ELEMENT_BYTES;
    for (let child = from; child < to; child++) {
      const end = this.#source.writeKey(below.firsts[child]!, out, data);
      out.writeUInt32LE(data - element, element);
      out.writeUInt32LE(end - data, element + 4);
      out.writeUInt32LE(below.pages[child]!, element + 8);
      out.writeUInt32LE(0, element + 12);
      element += ELEMENT_BYTES;
      data = end;
    }
  }
}
