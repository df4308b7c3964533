// data plane: records in append-only arenas, addressed by 16-byte granules
/**
 * A record is one version of one key. Records are appended to arenas of ARENA_BYTES, each arena
 * belongs to one class (keys of one durability and history budget), so what is superseded
 * together lies together and whole arenas come free.
 *
 * ```
 *   byte  0  u32  key id             (this process only)
 *         4  u32  previous ref       (this process only; 0 = none)
 *         8  f64  mod revision
 *        16  f64  create revision    (0 in a tombstone)
 *        24  u32  version            (0 in a tombstone)
 *        28  u32  value size
 *        32  u32  sub: order inside the revision
 *        36  u32  flags << 24 | key size
 *       [40  u32 u32  lease id low, high   when FLAG_LEASE]
 *            key, zero-padded to 4 bytes, then value, zero-padded to 16
 * ```
 *
 * The log holds exactly these bytes, so writing is copying and replay is reading. A ref counts
 * granules: the upper bits name the arena, the lower GRANULE_BITS the place in it; 2^32 of them
 * address 64 GiB. A record larger than an arena gets a span of neighbouring arena numbers.
 */
import { unpackValue } from './packing.ts';

export const ARENA_BITS = 22;
export const ARENA_BYTES: number = 1 << ARENA_BITS;
export const GRANULE_BITS: number = ARENA_BITS - 4;
const GRANULE_MASK = (1 << GRANULE_BITS) - 1;
export const HEADER_BYTES = 40;
export const FLAG_TOMBSTONE = 1;
export const FLAG_LEASE = 2;
export const FLAG_GARBAGE = 4;
/** The value is written as `packing.ts` says; in memory only, the log never has it. */
export const FLAG_PACKED = 8;
export const KEY_BYTES_MAX = 0xffffff;
/**
 * Arenas are cut from blocks of shared memory. Memory that is not shared counts as pressure: the
 * collector marks the whole heap for each 64 MiB of it, 8 % of the processor at 150 MB/s, and the
 * longest pauses. Memory that was never written is not resident. Blocks are small, because one that
 * is used at all is resident as a whole.
 */
const BLOCK_ARENAS = 2;
/**
 * Blocks without any arena in use that are kept, so that churn does not allocate: 32 MiB, and of
 * large stores one part in so many.
 */
const SPARE_BLOCKS_MIN = 4;
const SPARE_PARTS = 24;
/** Spares go, too, when no arena was begun for so long. */
const QUIET_MS = 2000;
/** So much more memory makes the collector look for garbage. */
const PRESSURE_BYTES: number = 64 * 1024 * 1024;
/** Pauses between attempts to have dropped blocks found: each is twice as long, up to a limit. */
const SETTLE_MS_MIN = 250;
/** No attempt while blocks are dropped now and then: each marks the whole heap. */
const DROPPED_MS_MIN = 1000;
const SETTLE_MS_MAX = 64_000;
const ARENAS_MAX = 1 << (32 - GRANULE_BITS);
/** Appending streams: new records of each class, and survivors of each class. */
export const CLASSES_MAX = 64;

interface Block {
  readonly memory: SharedArrayBuffer;
  /** Places that are not taken. */
  readonly free: number[];
}

/** Fresh memory for records that another thread lays in it. */
export interface Reserved {
  readonly blocks: readonly SharedArrayBuffer[];
  /** Number of the first arena; the others follow, in the order of the blocks. */
  readonly first: number;
}

/** Who touches memory before it is needed. */
export interface Warmer {
  /**
   * Begins with so many bytes that nobody has yet, and gives them to `done` in a later turn. False
   * where it will not: what asks seldom can wait for its memory.
   */
  warm(sizeBytes: number, done: (memory: SharedArrayBuffer) => void): boolean;
}

const EMPTY_BYTES = Buffer.alloc(0);
const EMPTY_WORDS = new Uint32Array(0);
const EMPTY_DOUBLES = new Float64Array(0);

export class Arenas {
  readonly bytes: Buffer[] = [EMPTY_BYTES];
  readonly words: Uint32Array[] = [EMPTY_WORDS];
  readonly doubles: Float64Array[] = [EMPTY_DOUBLES];
  /** Appended bytes; a spanning arena's followers have 0. */
  readonly used: number[] = [0];
  /** Bytes of records that are not garbage. */
  readonly live: number[] = [0];
  readonly classOf: number[] = [0];
  /** Highest revision in the arena. */
  readonly lastRevision: number[] = [0];
  /** How many arena numbers the arena takes; 0 = free or a follower. */
  readonly span: number[] = [1];
  /** Arena that stream `s` appends to, 0 = none yet. Streams: class, CLASSES_MAX + class. */
  readonly open: Uint32Array = new Uint32Array(CLASSES_MAX * 2);
  /** Arenas that nothing is appended to any more, since the sweep last looked. */
  readonly closed: number[] = [];
  /** Bytes of records of each class that are not garbage. */
  readonly classBytes: Float64Array = new Float64Array(CLASSES_MAX);
  /** What those of them take less because they are packed. */
  readonly classSaved: Float64Array = new Float64Array(CLASSES_MAX);
  /** Whether the arena has records that nobody has tried to pack. */
  readonly isFresh: boolean[] = [false];
  readonly #freeNumbers: number[] = [];
  readonly #blocks: Set<Block> = new Set();
  /** Blocks with a free place; the one to take from last. */
  readonly #roomy: Block[] = [];
  readonly #blockOf: (Block | null)[] = [null];
  /** Dropped blocks that the collector has not found yet, and how often that changed. */
  #dropped = 0;
  #changes = 0;
  #changesSeen = 0;
  #droppedMs = -Infinity;
  readonly #found = new FinalizationRegistry<null>(() => {
    this.#dropped--;
    this.#changes++;
    this.#settlePauseMs = SETTLE_MS_MIN;
  });
  /** All of them are freed: what one collection finds is, at latest, when the next one ends. */
  #isFreed = true;
  readonly #next = new FinalizationRegistry<number>((changes) => {
    this.#isFreed ||= changes === this.#changes;
  });
  /** How many blocks were dropped since it was made to look for them. */
  #droppedFresh = 0;
  #settlePauseMs: number = SETTLE_MS_MIN;
  /** Here and below not 0: a fraction where whole numbers were costs all code that is compiled. */
  #settledMs = -Infinity;
  /** How many arenas were begun, and what that was when it was looked at, and since when. */
  #begun = 0;
  #begunSeen = 0;
  #quietSinceMs = -Infinity;
  #hasSpares = false;
  /** For the shell: without one, memory is touched as records are written. */
  warmer: Warmer | null = null;
  #isWarming = false;
  #allocatedBytes = 0;
  #liveBytes = 0;
  #savedBytes = 0;

  /** Bytes of all arenas in use. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /** Bytes of arenas in use, without the room that is left in the open ones. */
  get usedBytes(): number {
    let room = 0;
    for (const arena of this.open) room += this.bytes[arena]!.length - this.used[arena]!;
    return this.#allocatedBytes - room;
  }

  /** Bytes of records that are not garbage. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** The same as if none of them was packed: what a snapshot takes. */
  get rawBytes(): number {
    return this.#liveBytes + this.#savedBytes;
  }

  /** Bytes that a record takes, headers and padding included. */
  static sizeOf(keySize: number, valueSize: number, hasLease: boolean): number {
    const head = HEADER_BYTES + (hasLease ? 8 : 0);
    return (head + ((keySize + 3) & ~3) + valueSize + 15) & ~15;
  }

  /** Makes room for one record in a stream; all of it zero except what a reused arena held. */
  allocate(stream: number, size: number): number {
    let arena = this.open[stream]!;
    let at = this.used[arena]!;
    // Refs name places in the first ARENA_BYTES only: behind a giant nothing is added.
    if (arena === 0 || at >= ARENA_BYTES || at + size > this.bytes[arena]!.length) {
      arena = this.#openArena(stream, size);
      at = 0;
    }
    this.used[arena] = at + size;
    this.#keep(arena, size);
    return ((arena << GRANULE_BITS) | (at >>> 4)) >>> 0;
  }

  #openArena(stream: number, size: number): number {
    const span = Math.max(1, Math.ceil(size / ARENA_BYTES));
    let arena = 0;
    if (span === 1 && this.#freeNumbers.length > 0) {
      arena = this.#freeNumbers.pop()!;
    } else {
      arena = this.bytes.length;
      if (arena + span > ARENAS_MAX) throw tooMuch();
      for (let i = 0; i < span; i++) this.#addNumber();
    }
    if (span === 1) this.#takePlace(arena);
    else this.#view(arena, new SharedArrayBuffer(span * ARENA_BYTES), 0, span * ARENA_BYTES);
    this.#begin(arena, stream, span);
    return arena;
  }

  /** An arena that has its memory takes records of a stream from now on. */
  #begin(arena: number, stream: number, span: number): void {
    this.#begun++;
    this.used[arena] = 0;
    this.live[arena] = 0;
    this.classOf[arena] = stream % CLASSES_MAX;
    this.lastRevision[arena] = 0;
    this.span[arena] = span;
    this.isFresh[arena] = stream < CLASSES_MAX;
    this.#allocatedBytes += span * ARENA_BYTES;
    if (this.open[stream] !== 0) {
      this.closed.push(this.open[stream]!);
      this.#warmNext();
    }
    this.open[stream] = arena;
  }

  /** A stream that has filled one arena will fill another, and that one after it. */
  #warmNext(): void {
    if (this.warmer === null || this.#isWarming || this.#hasRoom()) return;
    this.#isWarming = this.warmer.warm(BLOCK_ARENAS * ARENA_BYTES, (memory) => {
      this.#isWarming = false;
      this.#hasSpares = true;
      this.#addBlock(memory);
      this.#dropBlocks(this.#sparesMax);
    });
  }

  /** Places for the next arenas, as many as a block has. */
  #hasRoom(): boolean {
    let places = 0;
    for (let i = this.#roomy.length - 1; i >= 0 && places < BLOCK_ARENAS; i--) {
      places += this.#roomy[i]!.free.length;
    }
    return places >= BLOCK_ARENAS;
  }

  /** Makes arenas for so many bytes; nothing else allocates until `endReserve`. */
  reserve(bytes: number): Reserved {
    const count = Math.ceil(bytes / (BLOCK_ARENAS * ARENA_BYTES));
    const first = this.bytes.length;
    if (first + count * BLOCK_ARENAS > ARENAS_MAX) throw tooMuch();
    const blocks = Array.from({ length: count }, () => this.#addBlock().memory);
    // The last block made is taken from first.
    blocks.reverse();
    for (let arena = first; arena < first + count * BLOCK_ARENAS; arena++) {
      this.#addNumber();
      this.#takePlace(arena);
    }
    return { blocks, first };
  }

  /** A record lies in a reserved arena now; the arena is the open one of its class from then on. */
  adopt(ref: number, klass: number): void {
    const arena = ref >>> GRANULE_BITS;
    const size = this.size(ref);
    if (this.span[arena] === 0) this.#begin(arena, klass, 1);
    this.used[arena] = ((ref & GRANULE_MASK) << 4) + size;
    this.#keep(arena, size);
  }

  #keep(arena: number, size: number): void {
    this.live[arena]! += size;
    this.classBytes[this.classOf[arena]!]! += size;
    this.#liveBytes += size;
  }

  /** So many bytes less than a record would take, or took, unpacked. */
  save(klass: number, bytes: number): void {
    this.classSaved[klass]! += bytes;
    this.#savedBytes += bytes;
  }

  /** Reserved arenas without a record are as free as any others. */
  endReserve({ blocks, first }: Reserved): void {
    for (let arena = first + blocks.length * BLOCK_ARENAS - 1; arena >= first; arena--) {
      if (this.span[arena] !== 0) continue;
      this.#givePlace(arena);
      this.#forgetNumber(arena);
    }
  }

  /** Whoever lays records in reserved arenas may still do so: nothing is added there. */
  abandonReserve(): void {
    this.open.fill(0);
  }

  #addBlock(memory = new SharedArrayBuffer(BLOCK_ARENAS * ARENA_BYTES)): Block {
    const free = Array.from({ length: BLOCK_ARENAS }, (_, place) => BLOCK_ARENAS - 1 - place);
    const fresh = { memory, free };
    this.#blocks.add(fresh);
    this.#roomy.push(fresh);
    return fresh;
  }

  #takePlace(arena: number): void {
    if (this.#roomy.length === 0) this.#addBlock();
    const block = this.#roomy.at(-1)!;
    const place = block.free.pop()!;
    if (block.free.length === 0) this.#roomy.pop();
    this.#blockOf[arena] = block;
    this.#view(arena, block.memory, place * ARENA_BYTES, ARENA_BYTES);
  }

  #view(arena: number, memory: SharedArrayBuffer, at: number, size: number): void {
    this.bytes[arena] = Buffer.from(memory, at, size);
    this.words[arena] = new Uint32Array(memory, at, size >> 2);
    this.doubles[arena] = new Float64Array(memory, at, size >> 3);
  }

  #givePlace(arena: number): void {
    const block = this.#blockOf[arena];
    if (block === null || block === undefined) return;
    this.#blockOf[arena] = null;
    block.free.push(this.bytes[arena]!.byteOffset / ARENA_BYTES);
    // Full blocks are filled first: whole blocks come free sooner.
    if (block.free.length === 1) this.#roomy.push(block);
    if (block.free.length < BLOCK_ARENAS) return;
    this.#hasSpares = true;
    this.#dropBlocks(this.#sparesMax);
  }

  get #sparesMax(): number {
    return Math.max(SPARE_BLOCKS_MIN, Math.floor(this.#blocks.size / SPARE_PARTS));
  }

  #dropBlocks(keep: number): void {
    let spares = 0;
    for (const block of this.#blocks) {
      if (block.free.length < BLOCK_ARENAS || ++spares <= keep) continue;
      this.#blocks.delete(block);
      this.#roomy.splice(this.#roomy.indexOf(block), 1);
      this.#found.register(block.memory, null);
      this.#dropped++;
      this.#changes++;
      this.#isFreed = false;
      this.#droppedFresh++;
      this.#settlePauseMs = SETTLE_MS_MIN;
    }
    const freshBytes = this.#droppedFresh * BLOCK_ARENAS * ARENA_BYTES;
    if (freshBytes >= PRESSURE_BYTES) this.#hurryCollector();
  }

  /**
   * Nothing is left to give back for now: what was dropped is to be found, spares as well, unless
   * arenas come and go all the time, as those of leases do.
   */
  settle(nowMs: number): void {
    if (this.#begun !== this.#begunSeen) {
      this.#begunSeen = this.#begun;
      this.#quietSinceMs = nowMs;
    } else if (this.#hasSpares && nowMs - this.#quietSinceMs >= QUIET_MS) {
      this.#hasSpares = false;
      this.#dropBlocks(0);
    }
    if (this.#isFreed) return;
    if (this.#changes !== this.#changesSeen) {
      this.#changesSeen = this.#changes;
      this.#droppedMs = nowMs;
    }
    if (nowMs - this.#droppedMs < DROPPED_MS_MIN) return;
    if (nowMs - this.#settledMs < this.#settlePauseMs) return;
    this.#settledMs = nowMs;
    this.#settlePauseMs = Math.min(this.#settlePauseMs * 2, SETTLE_MS_MAX);
    this.#hurryCollector();
  }

  /**
   * Dropped blocks go back to the system when the collector finds them, which may take long where
   * little is allocated. It begins to look under pressure, and goes on under more of it.
   */
  #hurryCollector(): void {
    this.#droppedFresh = 0;
    // Counts as pressure, is never written, and is garbage at once.
    const pressure = new ArrayBuffer(PRESSURE_BYTES);
    if (this.#dropped === 0) this.#next.register(pressure, this.#changes);
  }

  #addNumber(): void {
    this.bytes.push(EMPTY_BYTES);
    this.words.push(EMPTY_WORDS);
    this.doubles.push(EMPTY_DOUBLES);
    this.used.push(0);
    this.live.push(0);
    this.classOf.push(0);
    this.lastRevision.push(0);
    this.span.push(0);
    this.isFresh.push(false);
    this.#blockOf.push(null);
  }

  /** True while some stream still appends to the arena. */
  isOpen(arena: number): boolean {
    const klass = this.classOf[arena]!;
    return this.open[klass] === arena || this.open[CLASSES_MAX + klass] === arena;
  }

  /** Gives an arena back; the caller knows that no ref into it is left. */
  release(arena: number): void {
    const span = this.span[arena]!;
    // not its negation: -0 is no whole number to the engine, and all its compiled code would go
    this.#keep(arena, 0 - this.live[arena]!);
    this.#allocatedBytes -= span * ARENA_BYTES;
    this.#givePlace(arena);
    for (let i = arena; i < arena + span; i++) this.#forgetNumber(i);
  }

  #forgetNumber(arena: number): void {
    this.bytes[arena] = EMPTY_BYTES;
    this.words[arena] = EMPTY_WORDS;
    this.doubles[arena] = EMPTY_DOUBLES;
    this.used[arena] = 0;
    this.live[arena] = 0;
    this.span[arena] = 0;
    this.#freeNumbers.push(arena);
  }

  /** Drops spare memory, for when it is to go back to the system now. */
  releaseSpares(): void {
    this.#dropBlocks(0);
    if (this.#droppedFresh > 0) this.#hurryCollector();
  }

  /** Marks a record dead. True when the arena holds nothing live any more. */
  markGarbage(ref: number): boolean {
    const arena = ref >>> GRANULE_BITS;
    const words = this.words[arena]!;
    const at = (ref & GRANULE_MASK) << 2;
    if ((words[at + 9]! & (FLAG_GARBAGE << 24)) !== 0) return false;
    words[at + 9]! |= FLAG_GARBAGE << 24;
    const size = this.size(ref);
    this.#keep(arena, -size);
    if (this.isPacked(ref)) this.save(this.classOf[arena]!, size - this.rawSize(ref));
    return this.live[arena] === 0;
  }

  keyId(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![(ref & GRANULE_MASK) << 2]!;
  }

  setKeyId(ref: number, id: number): void {
    this.words[ref >>> GRANULE_BITS]![(ref & GRANULE_MASK) << 2] = id;
  }

  previous(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 1]!;
  }

  /**
   * The put that was there before the revision of `ref`, which may have changed the key twice. 0
   * without one, and where `ref` makes the key, as in etcd.
   */
  before(ref: number): number {
    const revision = this.modRevision(ref);
    if (this.createRevision(ref) === revision) return 0;
    let older = this.previous(ref);
    while (older !== 0 && this.modRevision(older) === revision) older = this.previous(older);
    return older === 0 || this.isTombstone(older) ? 0 : older;
  }

  setPrevious(ref: number, previous: number): void {
    this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 1] = previous;
  }

  modRevision(ref: number): number {
    return this.doubles[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 1) + 1]!;
  }

  createRevision(ref: number): number {
    return this.doubles[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 1) + 2]!;
  }

  version(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 6]!;
  }

  valueSize(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 7]!;
  }

  sub(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 8]!;
  }

  flags(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 9]! >>> 24;
  }

  keySize(ref: number): number {
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 9]! & KEY_BYTES_MAX;
  }

  leaseLow(ref: number): number {
    if ((this.flags(ref) & FLAG_LEASE) === 0) return 0;
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 10]!;
  }

  leaseHigh(ref: number): number {
    if ((this.flags(ref) & FLAG_LEASE) === 0) return 0;
    return this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 11]!;
  }

  isTombstone(ref: number): boolean {
    const last = this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 9]!;
    return (last & (FLAG_TOMBSTONE << 24)) !== 0;
  }

  isPacked(ref: number): boolean {
    const last = this.words[ref >>> GRANULE_BITS]![((ref & GRANULE_MASK) << 2) + 9]!;
    return (last & (FLAG_PACKED << 24)) !== 0;
  }

  /** Size of the value as it was put, where it is packed; else 0. */
  unpackedSize(ref: number): number {
    if (!this.isPacked(ref)) return 0;
    return this.words[ref >>> GRANULE_BITS]![this.valueAt(ref) >> 2]!;
  }

  /** Writes a packed value into `out`; returns where it ends. */
  unpack(ref: number, out: Buffer, at: number): number {
    const from = this.valueAt(ref);
    return unpackValue(this.buffer(ref), from, from + this.valueSize(ref), out, at);
  }

  /** Bytes that the record would take unpacked: as budgets count it. */
  rawSize(ref: number): number {
    if (!this.isPacked(ref)) return this.size(ref);
    const hasLease = (this.flags(ref) & FLAG_LEASE) !== 0;
    return Arenas.sizeOf(this.keySize(ref), this.unpackedSize(ref), hasLease);
  }

  /** Offset of the key in `buffer(ref)`. */
  keyAt(ref: number): number {
    const head = (this.flags(ref) & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8;
    return ((ref & GRANULE_MASK) << 4) + head;
  }

  valueAt(ref: number): number {
    return this.keyAt(ref) + ((this.keySize(ref) + 3) & ~3);
  }

  buffer(ref: number): Buffer {
    return this.bytes[ref >>> GRANULE_BITS]!;
  }

  /** Bytes that the record takes in its arena. */
  size(ref: number): number {
    const words = this.words[ref >>> GRANULE_BITS]!;
    const at = (ref & GRANULE_MASK) << 2;
    const last = words[at + 9]!;
    const head = (last & (FLAG_LEASE << 24)) === 0 ? HEADER_BYTES : HEADER_BYTES + 8;
    return (head + (((last & KEY_BYTES_MAX) + 3) & ~3) + words[at + 7]! + 15) & ~15;
  }
}

function tooMuch(): Error {
  return new Error('the store holds 64 GiB, its largest size');
}

/** Arena number of a ref. */
export function arenaOf(ref: number): number {
  return ref >>> GRANULE_BITS;
}

/** Byte offset of a ref in its arena. */
export function offsetOf(ref: number): number {
  return (ref & GRANULE_MASK) << 4;
}

/** The ref of a byte offset in an arena. */
export function refAt(arena: number, offset: number): number {
  return ((arena << GRANULE_BITS) | (offset >>> 4)) >>> 0;
}
