/**
 * Writes the status of requests: `Acknowledged` for those that a roll-up has carried, and a reason
 * for those that none can carry. A request whose write fails is still pending at the next roll-up.
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { requestsPathIn } from '../contract/api.ts';
import type { RollingRollUp } from '../rollup/rolling.ts';
import { MERGE_PATCH } from './cluster-api.ts';

/** Writes under way. */
export const WRITES_MAX = 64;

export interface RequestStatusOptions {
  readonly client: Client;
  readonly rollUp: RollingRollUp;
  /** `namespace/name` of a row, '' if it is gone. */
  readonly keyOf: (row: number) => string;
}

export class RequestStatus {
  readonly #options: RequestStatusOptions;
  /** Rows whose write is under way, and those that wait. */
  readonly #busy = new Set<number>();
  #queue: number[] = [];
  #at = 0;
  /** Row -> the refusal that its status tells. */
  readonly #told = new Map<number, string>();
  acknowledged = 0;
  failures = 0;

  constructor(options: RequestStatusOptions) {
    this.#options = options;
    options.client.onRoom(() => this.#go());
  }

  /** A roll-up went to the shard: what was pending is in it. */
  rolledUp(): void {
    const { pending, refused } = this.#options.rollUp;
    this.#queue = [...pending];
    this.#at = 0;
    for (const [row, refusal] of refused) {
      if (this.#told.get(row) !== refusal.message) this.#queue.push(row);
    }
    for (const row of this.#told.keys()) if (!refused.has(row)) this.#told.delete(row);
    this.#go();
  }

  #go(): void {
    const { client, rollUp } = this.#options;
    while (this.#at < this.#queue.length && this.#busy.size < WRITES_MAX && client.room() > 0) {
      const row = this.#queue[this.#at++] ?? 0;
      if (this.#busy.has(row)) continue;
      const refusal = rollUp.refused.get(row);
      if (refusal === undefined && !rollUp.pending.has(row)) continue;
      const nowText = new Date(client.timers.wallMs()).toISOString();
      if (refusal === undefined) this.#write(row, acknowledgedStatus(nowText), '');
      else this.#write(row, refusedStatus(refusal, nowText), refusal.message);
    }
  }

  #write(row: number, status: JsonObject, told: string): void {
    const key = this.#options.keyOf(row);
    const slash = key.indexOf('/');
    if (slash < 0) return;
    const path = `${requestsPathIn(key.slice(0, slash))}/${key.slice(slash + 1)}/status`;
    this.#busy.add(row);
    const body = JSON.stringify({ status });
    const isTaken = this.#options.client.send('PATCH', path, MERGE_PATCH, body, (code) => {
      this.#busy.delete(row);
      if (code === 200) {
        if (told === '') this.acknowledged++;
        else this.#told.set(row, told);
      } else if (code !== 404) this.failures++;
      this.#go();
    });
    if (!isTaken) this.#busy.delete(row);
  }
}

/** A request that was refused before, and is no more, has no condition any more. */
function acknowledgedStatus(nowText: string): JsonObject {
  return { phase: 'Acknowledged', acknowledgedAt: nowText, conditions: null };
}

function refusedStatus(
  refusal: { readonly reason: string; readonly message: string },
  nowText: string,
): JsonObject {
  const { reason, message } = refusal;
  const condition = {
    ...{ type: 'Translatable', status: 'False', reason, message },
    lastTransitionTime: nowText,
  };
  return { phase: 'Pending', conditions: [condition] };
}
