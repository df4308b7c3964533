// data plane: the response with events that was made last
/**
 * Watches of one range that were asked for alike are sent the same but for their ids. So the
 * first of a turn leaves its response here, and the others only put their id in front of the
 * events. It stands where it was made, and is good until another one is made.
 *
 *     bytes   ... | header | watch id | events ... |
 *                 start    idAt       eventsAt     end
 */
import { sizeVarint, writeInt64, writeVarint64 } from '@megaplane/wire/protobuf-write';
import type { EtcdContext } from '../call/context.ts';
import type { WatchId } from './watch-request.ts';

/** Header, id and the mark of a fragment, at most. */
export const HEAD_ROOM_BYTES = 64;
const scratch: Buffer = Buffer.alloc(16);
const NONE: Buffer = Buffer.alloc(0);

export class WatchResponse {
  readonly #context: EtcdContext;
  readonly #head: Buffer = Buffer.alloc(HEAD_ROOM_BYTES);
  bytes: Buffer = NONE;
  start = 0;
  end = 0;
  /** Events in it. */
  count = 0;
  /** There was more to read behind it. */
  isMore = false;
  #reading = 0;
  #kind = 0;
  #idBytes = 0;
  #eventsAt = 0;
  #revision = 0;

  constructor(context: EtcdContext) {
    this.#context = context;
  }

  /** Writes what stands in front of the events, into the room before them. */
  make(
    bytes: Buffer,
    eventsAt: number,
    end: number,
    id: WatchId,
    revision: number,
    isFragment: boolean,
  ): void {
    this.bytes = bytes;
    this.end = end;
    this.#eventsAt = eventsAt;
    this.#revision = revision;
    const head = this.#head;
    let at = this.#context.writeHeader(head, 0, revision);
    const idAt = at;
    at = writeId(head, at, id);
    this.#idBytes = at - idAt;
    if (isFragment) {
      head[at++] = 0x38;
      head[at++] = 1;
    }
    this.start = eventsAt - at;
    for (let i = 0; i < at; i++) bytes[this.start + i] = head[i]!;
  }

  /** From now on it stands for a reading, see RevisionedStore.watchReading. */
  keepFor(reading: number, kind: number, count: number, isMore: boolean): void {
    this.#reading = reading;
    this.#kind = kind;
    this.count = count;
    this.isMore = isMore;
  }

  /** Its memory serves something else. */
  forget(): void {
    this.#reading = 0;
  }

  isFor(reading: number, kind: number): boolean {
    return reading !== 0 && reading === this.#reading && kind === this.#kind;
  }

  /** The same for another watch. */
  readdress(id: WatchId): void {
    if (idSize(id) === this.#idBytes) {
      writeId(this.bytes, this.#eventsAt - this.#idBytes, id);
    } else {
      this.make(this.bytes, this.#eventsAt, this.end, id, this.#revision, false);
    }
  }
}

function idSize(id: WatchId): number {
  if (id === 0) return 0;
  return typeof id === 'number' && id > 0 && id < 2 ** 28 ? 1 + sizeVarint(id) : -1;
}

/** Bytes that `writeId` writes. */
export function idBytes(id: WatchId): number {
  return writeId(scratch, 0, id);
}

export function writeId(out: Buffer, at: number, id: WatchId): number {
  if (id === 0) return at;
  out[at] = 0x10;
  if (typeof id === 'bigint') {
    const bits = BigInt.asUintN(64, id);
    return writeVarint64(out, at + 1, Number(bits & 0xffffffffn), Number(bits >> 32n));
  }
  return writeInt64(out, at + 1, id);
}
