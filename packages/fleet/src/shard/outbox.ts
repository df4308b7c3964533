/**
 * Frames that wait for one operator to take them. A frame with a key takes the place of an older
 * one with the same key, at the end of the queue; others are all sent, in order.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { ShardMessageSchema } from '../contract/tables/shard.ts';
import type { ShardPayload } from './effects.ts';

/** An operator that lets more wait is too slow: its session is ended, and it hears all anew. */
export const FRAMES_WAITING_MAX = 200_000;

export class Outbox {
  readonly #waiting = new Map<string, ShardPayload>();
  #count = 0;

  get waiting(): number {
    return this.#waiting.size;
  }

  /** False if too much waits. */
  put(payload: ShardPayload): boolean {
    const key = keyOf(payload) ?? `#${++this.#count}`;
    this.#waiting.delete(key);
    this.#waiting.set(key, payload);
    return this.#waiting.size <= FRAMES_WAITING_MAX;
  }

  next(): Uint8Array | undefined {
    for (const [key, payload] of this.#waiting) {
      this.#waiting.delete(key);
      return toBinary(ShardMessageSchema, create(ShardMessageSchema, { payload }));
    }
    return undefined;
  }
}

function keyOf(payload: ShardPayload): string | undefined {
  const isKeyed = payload.case === 'nodeStateUpdate' || payload.case === 'availableCapacity';
  return isKeyed ? payload.value.supersedesKey : undefined;
}
