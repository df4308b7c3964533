/** Frames of the event that is being handed out: each is encoded once per encoding and type. */
import type { Encoder, EventType } from '../encoder.ts';
import { Sink } from '../sink.ts';
import type { StorageEvent } from '../storage.ts';

interface Entry {
  readonly sink: Sink;
  /** Which event it holds: revisions do not tell, several changes may share one. */
  turn: number;
}

const TYPES: Readonly<Record<EventType, number>> = { ADDED: 0, MODIFIED: 1, DELETED: 2 };
/** The types and bookmarks. */
const KINDS = 4;
const BOOKMARK = 3;
/** Encodings that are told apart; their number has an end, but tables ask for times as well. */
const ENCODINGS_MAX = 1024;

export class FrameCache {
  readonly #encodings = new Map<string, number>();
  readonly #shared = new Map<string, Encoder>();
  #entries: Entry[] = [];
  #turn = 0;

  /** A number for what writes equal frames; good as long as the cache is not emptied. */
  encodingOf(encoder: Encoder): number {
    let found = this.#encodings.get(encoder.id);
    if (found === undefined) {
      if (this.#encodings.size >= ENCODINGS_MAX) return -1;
      this.#encodings.set(encoder.id, (found = this.#encodings.size));
    }
    return found;
  }

  /**
   * An encoder that writes what `encoder` does, the same for all watches: thousands of watches need
   * not keep one each. Tables know the time of their request and stay apart.
   */
  shared(encoder: Encoder): Encoder {
    if (encoder.id.startsWith('table')) return encoder;
    const found = this.#shared.get(encoder.id);
    if (found !== undefined) return found;
    if (this.#shared.size < ENCODINGS_MAX) this.#shared.set(encoder.id, encoder);
    return encoder;
  }

  /** Another event, or another revision of bookmarks, is handed out from here on. */
  nextTurn(): void {
    this.#turn++;
  }

  /** The frame of `change`; what the sink holds is good until the next call. */
  frame(encoding: number, encoder: Encoder, type: EventType, change: StorageEvent): Sink {
    const entry = this.#entry(encoding, TYPES[type]);
    if (entry.turn !== this.#turn) {
      entry.turn = encoding < 0 ? -1 : this.#turn;
      entry.sink.length = 0;
      const row = type === 'DELETED' ? change.previous : change.value;
      encoder.frame(entry.sink, type, row, change.revision, false);
    }
    return entry.sink;
  }

  /** The bookmark at `revision`, which must be the same for all calls of one turn. */
  bookmark(encoding: number, encoder: Encoder, revision: number): Sink {
    const entry = this.#entry(encoding, BOOKMARK);
    if (entry.turn !== this.#turn) {
      entry.turn = encoding < 0 ? -1 : this.#turn;
      entry.sink.length = 0;
      encoder.bookmark(entry.sink, revision, false);
    }
    return entry.sink;
  }

  #entry(encoding: number, kind: number): Entry {
    const index = (encoding + 1) * KINDS + kind;
    let entry = this.#entries[index];
    if (entry === undefined) {
      for (let at = this.#entries.length; at <= index; at++) {
        this.#entries[at] = { sink: new Sink(4096), turn: -1 };
      }
      entry = this.#entries[index] ?? { sink: new Sink(4096), turn: -1 };
    }
    return entry;
  }
}
