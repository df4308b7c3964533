/**
 * Frames of events: each is encoded once per encoding and type, and the same bytes go to every
 * watch. What the wire cannot send at once it keeps by one copy for all. Watches that read the log
 * by themselves because their clients are slow find frames that others were sent a moment ago.
 */
import type { SharedBytes } from '@megaplane/wire/exchange';
import type { Encoder, EventType } from '../serializer/encoder.ts';
import { Sink } from '../sink/sink.ts';
import type { StorageEvent } from '../storage/storage.ts';

const TYPES: Readonly<Record<EventType, number>> = { ADDED: 0, MODIFIED: 1, DELETED: 2 };
/** The types and bookmarks. */
const KINDS = 4;
const BOOKMARK = 3;
/** Encodings that are told apart; their number has an end, but tables ask for times as well. */
const ENCODINGS_MAX = 1024;
/** Frames kept for watches that are behind. */
const RECENT_BYTES_MAX: number = 16 * 1024 * 1024;

/** The encoded frame that is being handed out. */
export class Frame implements SharedBytes {
  readonly sink: Sink = new Sink(4096);
  /** Which event it holds: revisions do not tell, several changes may share one. */
  turn = -1;
  #kept: Buffer | null = null;

  /** Empties it for another event. */
  begin(turn: number): Sink {
    this.turn = turn;
    this.#kept = null;
    this.sink.length = 0;
    return this.sink;
  }

  kept(): Buffer {
    this.#kept ??= this.sink.take();
    return this.#kept;
  }
}

/** A frame of the past, with the key of its object: several changes may share a revision. */
interface Recent extends SharedBytes {
  readonly key: Buffer;
  readonly bytes: Buffer;
}

export class FrameCache {
  readonly #encodings = new Map<string, number>();
  readonly #shared = new Map<string, Encoder>();
  #frames: Frame[] = [];
  #turn = 0;
  /** By revision, type and encoding. */
  readonly #recent = new Map<number, Recent>();
  /** Their numbers, the oldest at `#oldest`: a map that loses its first entries is slow to walk. */
  #order: number[] = [];
  #oldest = 0;
  #recentBytes = 0;
  /** Somebody was, since the last tick. */
  #isBehind = false;

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
   * not keep one each. Tables know the columns of their definition and stay apart.
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

  /** The frame of `change`, good until the next call. */
  frame(encoding: number, encoder: Encoder, type: EventType, change: StorageEvent): Frame {
    const frame = this.#frame(encoding, TYPES[type]);
    if (frame.turn !== this.#turn) {
      const row = type === 'DELETED' ? change.previous : change.value;
      const sink = frame.begin(encoding < 0 ? -1 : this.#turn);
      encoder.frame(sink, type, row, change.revision, false);
    }
    return frame;
  }

  /**
   * The frame of a `change` that was handed out before, for one of several watches that are behind.
   */
  again(encoding: number, encoder: Encoder, type: EventType, change: StorageEvent): Recent {
    this.#isBehind = true;
    const { key, keyStart, keyEnd } = change.value;
    const id = (change.revision * KINDS + TYPES[type]) * ENCODINGS_MAX + encoding;
    const found = this.#recent.get(id);
    if (found !== undefined && found.key.compare(key, keyStart, keyEnd) === 0) return found;
    scratch.length = 0;
    const row = type === 'DELETED' ? change.previous : change.value;
    encoder.frame(scratch, type, row, change.revision, false);
    const bytes = scratch.take();
    const made = { key: Buffer.from(key.subarray(keyStart, keyEnd)), bytes, kept: () => bytes };
    if (encoding >= 0 && found === undefined) this.#remember(id, made);
    return made;
  }

  #remember(id: number, made: Recent): void {
    this.#recent.set(id, made);
    this.#order.push(id);
    this.#recentBytes += made.bytes.length;
    while (this.#recentBytes > RECENT_BYTES_MAX) {
      const oldest = this.#order[this.#oldest++] ?? 0;
      this.#recentBytes -= this.#recent.get(oldest)?.bytes.length ?? 0;
      this.#recent.delete(oldest);
    }
    if (this.#oldest * 2 <= this.#order.length) return;
    this.#order = this.#order.slice(this.#oldest);
    this.#oldest = 0;
  }

  /** About once a second: forgets the frames of the past when nobody was behind meanwhile. */
  tick(): void {
    if (!this.#isBehind && this.#recent.size > 0) {
      this.#recent.clear();
      this.#order = [];
      this.#oldest = 0;
      this.#recentBytes = 0;
    }
    this.#isBehind = false;
  }

  /** The bookmark at `revision`, which must be the same for all calls of one turn. */
  bookmark(encoding: number, encoder: Encoder, revision: number): Sink {
    const frame = this.#frame(encoding, BOOKMARK);
    if (frame.turn !== this.#turn) {
      encoder.bookmark(frame.begin(encoding < 0 ? -1 : this.#turn), revision, false, false);
    }
    return frame.sink;
  }

  #frame(encoding: number, kind: number): Frame {
    const index = (encoding + 1) * KINDS + kind;
    for (let at = this.#frames.length; at <= index; at++) this.#frames[at] = new Frame();
    return this.#frames[index] ?? new Frame();
  }
}

const scratch = new Sink(4096);
