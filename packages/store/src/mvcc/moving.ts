// data plane: moves records to where they stay
/**
 * Moves records out of arenas that are to be given back, or whose records rest: into the class's
 * survivors' arena, packed where the class says so. Who names a record by its place is told: the
 * newer record of its key or the key's entry, and the event.
 */
import { assertWhole } from '@megaplane/base/assert';
import {
  ARENA_BYTES,
  Arenas,
  CLASSES_MAX,
  FLAG_LEASE,
  FLAG_PACKED,
  GRANULE_BITS,
  HEADER_BYTES,
  arenaOf,
  offsetOf,
} from '../record/arenas.ts';
import type { KeyClass } from '../record/classes.ts';
import { PACKED_VALUE_BYTES_MAX, Packer } from '../record/packing.ts';
import type { StoreParts } from './store-parts.ts';

/** Events behind the last one that was renamed among which the next one mostly is. */
const NEAR_EVENTS = 64;

export class Mover {
  readonly #store: StoreParts;
  readonly #packers: (Packer | undefined)[] = [];
  /** The arena that a class's packer knows. */
  readonly #known: number[] = [];
  readonly #unpacked: Buffer = Buffer.allocUnsafeSlow(PACKED_VALUE_BYTES_MAX);
  /** Behind the event that was renamed last. */
  #position = 0;

  constructor(store: StoreParts) {
    this.#store = store;
  }

  /** Moves one record, as it lies or packed; its old place counts as garbage. */
  move(ref: number, klass: KeyClass, packs: boolean): void {
    const { arenas } = this.#store;
    const isTried = packs || arenas.isPacked(ref);
    const moved = isTried ? this.#pack(ref, klass.number) : this.#copy(ref, klass.number);
    const target = arenaOf(moved);
    if (!isTried) arenas.isFresh[target] = true;
    const revision = arenas.modRevision(ref);
    if (revision > arenas.lastRevision[target]!) arenas.lastRevision[target] = revision;
    this.#redirect(ref, moved);
    this.#rename(klass, ref, moved, revision);
    // What is left behind: nobody finds it any more, and it is not moved twice.
    arenas.markGarbage(ref);
  }

  #copy(ref: number, klass: number): number {
    const { arenas } = this.#store;
    const size = arenas.size(ref);
    const moved = arenas.allocate(CLASSES_MAX + klass, size);
    const at = offsetOf(ref);
    arenas.buffer(ref).copy(arenas.buffer(moved), offsetOf(moved), at, at + size);
    return moved;
  }

  #pack(ref: number, klass: number): number {
    const { arenas } = this.#store;
    const isPacked = arenas.isPacked(ref);
    let bytes = arenas.buffer(ref);
    let from = arenas.valueAt(ref);
    let to = from + arenas.valueSize(ref);
    if (isPacked) {
      to = arenas.unpack(ref, this.#unpacked, 0);
      from = 0;
      bytes = this.#unpacked;
    }
    const packer = (this.#packers[klass] ??= new Packer());
    const stream = CLASSES_MAX + klass;
    const open = arenas.open[stream]!;
    if (this.#known[klass] !== open) {
      this.#known[klass] = open;
      packer.reset();
    }
    const packed = open === 0 ? 0 : packer.pack(bytes, from, to, arenas.bytes[open]!);
    const isLeased = (arenas.flags(ref) & FLAG_LEASE) !== 0;
    const size = Arenas.sizeOf(arenas.keySize(ref), packed, isLeased);
    // In another arena there would be nothing to copy from.
    if (packed > 0 && arenas.used[open]! + size <= ARENA_BYTES) {
      const moved = this.#lay(ref, arenas.allocate(stream, size), packer.bytes, 0, packed);
      arenas.words[open]![((moved & ((1 << GRANULE_BITS) - 1)) << 2) + 9]! |= FLAG_PACKED << 24;
      packer.noteLiterals(arenas.bytes[open]!, arenas.valueAt(moved));
      arenas.save(klass, arenas.rawSize(moved) - size);
      return moved;
    }
    const raw = Arenas.sizeOf(arenas.keySize(ref), to - from, isLeased);
    const moved = this.#lay(ref, arenas.allocate(stream, raw), bytes, from, to);
    this.#noteWhole(packer, moved, klass);
    return moved;
  }

  /** Writes the head and the key of a record, and another form of its value, to a new place. */
  #lay(ref: number, moved: number, value: Buffer, from: number, to: number): number {
    const { arenas } = this.#store;
    layHead(arenas, ref, arenas.buffer(moved), offsetOf(moved), to - from);
    value.copy(arenas.buffer(moved), arenas.valueAt(moved), from, to);
    return moved;
  }

  /** A value that lies whole in an arena is what others are copied from. */
  #noteWhole(packer: Packer, moved: number, klass: number): void {
    const { arenas } = this.#store;
    const arena = arenaOf(moved);
    if (this.#known[klass] !== arena) {
      this.#known[klass] = arena;
      packer.reset();
    }
    const from = arenas.valueAt(moved);
    packer.noteWhole(arenas.buffer(moved), from, from + arenas.valueSize(moved));
  }

  #redirect(ref: number, moved: number): void {
    const { arenas, keys } = this.#store;
    const id = arenas.keyId(moved);
    let newer = keys.head(id);
    if (newer === ref) {
      keys.loadRecord(moved);
      keys.setHead(id, moved);
      return;
    }
    while (arenas.previous(newer) !== ref) newer = arenas.previous(newer);
    arenas.setPrevious(newer, moved);
  }

  /** The event of a record that is not behind the boundary names its place. */
  #rename({ events }: KeyClass, ref: number, moved: number, revision: number): void {
    if (events.first === events.next) return;
    const { arenas } = this.#store;
    if (arenas.modRevision(events.at(events.first)) > revision) return;
    let position = this.#near(events.first, events.next, (at) => events.at(at) === ref);
    if (position < 0) {
      position = events.seek(revision);
      while (position < events.next && events.at(position) !== ref) {
        if (arenas.modRevision(events.at(position)) !== revision) return;
        position++;
      }
      if (position === events.next) return;
    }
    events.replace(position, moved);
    this.#position = position + 1;
  }

  #near(first: number, next: number, isIt: (position: number) => boolean): number {
    const from = Math.max(first, this.#position);
    const end = Math.min(next, from + NEAR_EVENTS);
    for (let position = from; position < end; position++) if (isIt(position)) return position;
    return -1;
  }
}

/** Head and key of a record, for a value of another size and form. */
function layHead(arenas: Arenas, ref: number, out: Buffer, at: number, valueSize: number): void {
  const from = offsetOf(ref);
  const bytes = arenas.buffer(ref);
  const keyAt = arenas.keyAt(ref);
  const keySize = arenas.keySize(ref);
  const size = Arenas.sizeOf(keySize, valueSize, keyAt - from > HEADER_BYTES);
  out.fill(0, at + size - 16, at + size);
  bytes.copy(out, at, from, arenas.valueAt(ref));
  out.writeUInt32LE(valueSize, at + 28);
  out[at + 39]! &= ~FLAG_PACKED;
}

/** Writes a packed record as it would lie unpacked; `Arenas.rawSize` tells its size. */
export function layUnpacked(arenas: Arenas, ref: number, out: Buffer, at: number): void {
  assertWhole(arenas.isPacked(ref), 'the record is as it was put');
  layHead(arenas, ref, out, at, arenas.unpackedSize(ref));
  arenas.unpack(ref, out, at + arenas.valueAt(ref) - offsetOf(ref));
}
