/**
 * The journal: an ordered, replicated list of entries by an engine that others trust.
 *
 * Entries have positions 1, 2, 3 and so on, without gaps. The promises that the members of a group
 * rest on (docs/journal-protocol.md):
 *
 * - an append says behind which position it belongs, and is written there or not at all;
 * - what was once written or read stays in its place, until it is trimmed from the front;
 * - an append is `appended` once the engine holds it as safely as it was told to;
 * - an outcome that is not known is `unknown`, never a guess. The same append may be made again
 *   as often as needed: at most one of them is written, as they belong in the same place.
 *
 * Calls never reject: what may go wrong is a value. docs/journal-engines.md tells how to write one.
 */

/** What came of an append. */
export type AppendOutcome =
  /** It stands at `expected + 1`. */
  | { readonly kind: 'appended' }
  /** Something else stood there when it came; an earlier attempt of the same append, maybe. */
  | { readonly kind: 'moved' }
  /** Refused for want of room; it is not written now, and not later. */
  | { readonly kind: 'full'; readonly why: string }
  /** It may be written, now or later. */
  | { readonly kind: 'unknown'; readonly why: string }
  /** The engine was not reached: this attempt is not written, and will not be. */
  | { readonly kind: 'unavailable'; readonly why: string }
  /** The journal is not the one that was opened, or must not be used: nothing goes on. */
  | { readonly kind: 'gone'; readonly why: string };

export interface JournalEntry {
  readonly position: number;
  readonly bytes: Buffer;
}

export type ReadOutcome =
  /** In order and without gaps from the position asked for; none: nothing came in time. */
  | { readonly kind: 'entries'; readonly entries: readonly JournalEntry[] }
  /** The position was trimmed; the first one that is left, or the next one that is written. */
  | { readonly kind: 'trimmed'; readonly first: number }
  | { readonly kind: 'unavailable'; readonly why: string }
  | { readonly kind: 'gone'; readonly why: string };

export type EndOutcome =
  | {
      readonly kind: 'end';
      /** Position of the first entry that is left; `last + 1` when none is. */
      readonly first: number;
      /** Position of the last entry ever written, 0 in a new journal. May be behind the truth. */
      readonly last: number;
      readonly bytes: number;
      /** Infinity where the engine tells no limit. */
      readonly bytesMax: number;
    }
  | { readonly kind: 'unavailable'; readonly why: string }
  | { readonly kind: 'gone'; readonly why: string };

export type TrimOutcome =
  | { readonly kind: 'trimmed' }
  | { readonly kind: 'unavailable'; readonly why: string }
  | { readonly kind: 'gone'; readonly why: string };

export interface Journal {
  /** For messages: where it is, without secrets. */
  readonly name: string;
  /** Bytes of the largest entry. */
  readonly entryBytesMax: number;
  /** Writes `entry` behind position `expected`. The entry is the caller's again afterwards. */
  append(entry: Buffer, expected: number): Promise<AppendOutcome>;
  /** Entries from `from` on, some of those that are there; waits up to `waitMs` for the first. */
  read(from: number, waitMs: number): Promise<ReadOutcome>;
  end(): Promise<EndOutcome>;
  /** Entries up to `position` may go. The last one ever written stays. */
  trim(position: number): Promise<TrimOutcome>;
  close(): Promise<void>;
}
