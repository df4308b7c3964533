/**
 * The operator's end of `Shard.Session`, without a world: it dials, says Hello, and has two lanes
 * to the shard. Roll-ups lie in a slot of one, where a newer one takes the place of an older one:
 * each is complete. Answers wait in a queue of their own, which goes first, so that a large roll-up
 * delays no bootstrap.
 *
 *     waiting     until when, with pauses that double from 500 ms to 30 s
 *     dialing     the stream is not open yet
 *     open        Hello was said, frames go both ways
 *
 * What arrives on a stream that was replaced counts for nothing.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Backoff } from '@megaplane/client/backoff';
import { OperatorMessageSchema, ShardMessageSchema } from '../contract/tables/shard.ts';
import type { ShardMessage } from '../contract/tables/shard.ts';

export const PROTOCOL_VERSION = 'v1alpha1';
/** Answers that wait; more are dropped, as the shard asks again. */
export const ANSWERS_MAX = 256;
const BACKOFF = { baseMs: 500, capMs: 30_000, jitter: 0.2, resetMs: 60_000 };
const TAG_ROLLUP = 0x12;

type State =
  | { readonly kind: 'waiting'; readonly untilMs: number }
  | { readonly kind: 'dialing'; readonly stream: number }
  | { readonly kind: 'open'; readonly stream: number };

export interface SessionMetrics {
  sessions: number;
  dropped: number;
  /** Frames that were none. */
  malformed: number;
}

export class Session {
  readonly metrics: SessionMetrics = { sessions: 0, dropped: 0, malformed: 0 };
  readonly #clusterId: string;
  readonly #backoff: Backoff;
  #state: State = { kind: 'waiting', untilMs: -Infinity };
  #streams = 0;
  #hello: Uint8Array | null = null;
  #rollUp: Buffer | null = null;
  #answers: Uint8Array[] = [];

  constructor(clusterId: string, random: () => number) {
    this.#clusterId = clusterId;
    this.#backoff = new Backoff(BACKOFF, random);
  }

  get isOpen(): boolean {
    return this.#state.kind === 'open';
  }

  /** When to call `dial` next; Infinity while a stream is there. */
  get wakeMs(): number {
    return this.#state.kind === 'waiting' ? this.#state.untilMs : Infinity;
  }

  /** The number of the stream to open now, or 0: none. */
  dial(nowMs: number): number {
    if (this.#state.kind !== 'waiting' || nowMs < this.#state.untilMs) return 0;
    const stream = ++this.#streams;
    this.#state = { kind: 'dialing', stream };
    return stream;
  }

  /** `stream` is open: Hello goes first. */
  opened(stream: number): void {
    if (this.#state.kind !== 'dialing' || this.#state.stream !== stream) return;
    this.#state = { kind: 'open', stream };
    this.metrics.sessions++;
    const value = { clusterId: this.#clusterId, protocolVersion: PROTOCOL_VERSION };
    this.#hello = encoded({ case: 'hello', value });
  }

  /** `stream` ended, or could not be opened. */
  ended(stream: number, nowMs: number): void {
    if (this.#state.kind === 'waiting' || this.#state.stream !== stream) return;
    this.#state = { kind: 'waiting', untilMs: nowMs + this.#backoff.next(nowMs) };
    this.#hello = null;
    // who asked is gone; whoever comes asks again
    this.#answers = [];
  }

  /** What the shard said, or undefined where it is nothing to us. */
  received(stream: number, bytes: Uint8Array): ShardMessage | undefined {
    if (this.#state.kind !== 'open' || this.#state.stream !== stream) return undefined;
    try {
      return fromBinary(ShardMessageSchema, bytes);
    } catch {
      this.metrics.malformed++;
      return undefined;
    }
  }

  /** Puts a roll-up (bytes of `ClusterCapacityNeeds`) in the place of one that was not sent. */
  offerRollUp(needs: Uint8Array): void {
    if (this.#rollUp !== null) this.metrics.dropped++;
    const head = Buffer.allocUnsafe(6);
    let at = 0;
    head[at++] = TAG_ROLLUP;
    let rest = needs.length;
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) head[at++] = (rest & 0x7f) | 0x80;
    head[at++] = rest;
    this.#rollUp = Buffer.concat([head.subarray(0, at), needs]);
  }

  /** False where the answer was dropped: nobody is there to hear it, or too many wait. */
  answer(payload: OperatorPayload): boolean {
    if (!this.isOpen || this.#answers.length >= ANSWERS_MAX) {
      this.metrics.dropped++;
      return false;
    }
    this.#answers.push(encoded(payload));
    return true;
  }

  /** The next frame to send on the open stream. */
  next(): Uint8Array | undefined {
    if (!this.isOpen) return undefined;
    const hello = this.#hello;
    this.#hello = null;
    if (hello !== null) return hello;
    const answer = this.#answers.shift();
    if (answer !== undefined) return answer;
    const rollUp = this.#rollUp ?? undefined;
    this.#rollUp = null;
    return rollUp;
  }
}

export type OperatorPayload = NonNullable<
  MessageInitShape<typeof OperatorMessageSchema>['payload']
>;

function encoded(payload: OperatorPayload): Uint8Array {
  return toBinary(OperatorMessageSchema, create(OperatorMessageSchema, { payload }));
}
