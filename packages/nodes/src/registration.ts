/**
 * Registers the nodes that `--create` asks for.
 *
 * So many at once that the server always has the next ones at hand, and no more: whatever waits in
 * the client's queue, or at the server, waits before the renewals of nodes that are there already.
 */
import type { Client } from '@megaplane/client/client';
import { CONTENT, STATUS_NONE } from '@megaplane/client/client';
import { secondTime } from './lease-object.ts';
import { nodeName } from './node-object.ts';
import type { Part } from './membership.ts';
import type { NodeBodies } from './node-object.ts';
import type { SimulatorMetrics } from './simulator-metrics.ts';

const PATH = '/api/v1/nodes';
/** Registrations under way at once. */
export const UNDER_WAY_MAX = 256;
export const RETRY_MS = 500;

export interface RegistrationOptions {
  readonly client: Client;
  readonly bodies: NodeBodies;
  readonly count: number;
  /** Of the numbers those are ours that leave `index` when divided by `count`. */
  readonly part: Part;
  readonly metrics: SimulatorMetrics;
  /** Whether a node of this name is there already; it is left as it is. */
  exists(name: string): boolean;
  readonly log: (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;
}

/** One pass over the numbers from 0 to `count`. */
export class Registration {
  readonly #options: RegistrationOptions;
  #next = 0;
  #failed: number[] = [];
  #refusals = 0;
  #underWay = 0;
  #isPumping = false;
  #isStopped = false;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#next = options.part.index;
  }

  /** Some are not made yet. */
  get isUnderWay(): boolean {
    return this.#underWay > 0 || this.#failed.length > 0 || this.#next < this.#options.count;
  }

  /** Registers no more. */
  stop(): void {
    this.#isStopped = true;
  }

  start(): void {
    this.#options.client.onRoom(() => this.#pump());
    this.#pump();
  }

  #pump(): void {
    if (this.#isPumping || this.#isStopped) return;
    this.#isPumping = true;
    const { client, bodies, count } = this.#options;
    const now = secondTime(client.timers.wallMs());
    while (this.#underWay < UNDER_WAY_MAX && (this.#failed.length > 0 || this.#next < count)) {
      const index = this.#failed.pop() ?? this.#take();
      if (this.#options.exists(nodeName(index))) continue;
      const body = bodies.body(index, now);
      if (!client.send('POST', PATH, CONTENT.json, body, this.#onAnswer, index)) {
        // The client tells when it has room again.
        this.#failed.push(index);
        break;
      }
      this.#underWay++;
    }
    this.#isPumping = false;
  }

  #take(): number {
    const index = this.#next;
    this.#next += this.#options.part.count;
    return index;
  }

  readonly #onAnswer = (
    status: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    index: number,
  ): void => {
    const { client, metrics, log } = this.#options;
    this.#underWay--;
    if (status === 201) metrics.nodesCreated++;
    if (status === 201 || status === 409) {
      this.#pump();
      return;
    }
    metrics.errors++;
    const isPassing = status === STATUS_NONE || status === 429 || status >= 500;
    if (isPassing) {
      this.#failed.push(index);
      client.timers.after(RETRY_MS * (1 + client.random()), () => this.#pump());
    } else if (this.#refusals++ === 0) {
      // One line: when one node is refused for what it is, all of them are.
      const text = Buffer.from(bytes.subarray(start, end)).toString('utf8');
      log('error', `node-${index} is refused (${status}): ${text.slice(0, 500)}`);
    }
  };
}
