/**
 * Registers the nodes that `--create` asks for.
 *
 * So many at once that the server always has the next ones at hand, and no more: whatever waits in
 * the client's queue, or at the server, waits before the renewals of nodes that are there already.
 */
import type { Client } from '@megaplane/client/client';
import { CONTENT, STATUS_NONE } from '@megaplane/client/client';
import { secondTime } from '../lease/lease-object.ts';
import { nodeName } from './node-object.ts';
import type { Part } from '../client/membership.ts';
import type { NodeBodies } from './node-object.ts';
import { BackPressure } from '../client/back-pressure.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

const PATH = '/api/v1/nodes';
/** Registrations under way at once. */
export const UNDER_WAY_MAX = 256;
/** First and longest pause after failures; each is stretched by up to as much again. */
export const RETRY_MS = 500;
export const RETRY_MS_MAX = 8000;

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

/**
 * One pass over the numbers from 0 to `count`.
 *
 * What fails waits with all that failed with it, ever longer while some do; and nothing else is
 * sent meanwhile unless the server takes others, so that a server in trouble is asked a few times
 * a minute. What it refuses for good is tried again like that, too: webhooks change their mind.
 */
export class Registration {
  readonly #options: RegistrationOptions;
  #next = 0;
  /** To be sent before the next ones. */
  readonly #again: number[] = [];
  /** These wait for the pause to end. */
  readonly #failed: number[] = [];
  /** Those that the server refused for what they are, and has not judged otherwise since. */
  readonly #refused: Set<number> = new Set();
  #pauses = 0;
  #isWaiting = false;
  /** Nothing was taken since the last failure. */
  #isHeld = false;
  #underWay = 0;
  #isPumping = false;
  #isStopped = false;
  #room: BackPressure | null = null;
  #hasToldRefusal = false;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#next = options.part.index;
  }

  /** Some are not made yet, and it is not for the server's rules. */
  get isUnderWay(): boolean {
    if (this.#next < this.#options.count) return true;
    return this.#underWay + this.#again.length + this.#failed.length > this.#refused.size;
  }

  /** Registers no more. */
  stop(): void {
    this.#isStopped = true;
    this.#room?.stop();
  }

  start(): void {
    this.#room = new BackPressure(this.#options.client, () => this.#pump());
    this.#pump();
  }

  #pump(): void {
    if (this.#isPumping || this.#isStopped || this.#isHeld) return;
    this.#isPumping = true;
    const { client, bodies, count } = this.#options;
    const now = secondTime(client.timers.wallMs());
    while (this.#underWay < UNDER_WAY_MAX && (this.#again.length > 0 || this.#next < count)) {
      const index = this.#again.pop() ?? this.#take();
      if (this.#options.exists(nodeName(index))) {
        this.#refused.delete(index);
        continue;
      }
      const body = bodies.body(index, now);
      if (!client.send('POST', PATH, CONTENT.json, body, this.#onAnswer, index)) {
        // The client tells when it has room again.
        this.#again.push(index);
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
    const { metrics } = this.#options;
    this.#underWay--;
    if (status === 201) metrics.nodesCreated++;
    if (status === 201 || status === 409) {
      this.#refused.delete(index);
      this.#isHeld = false;
      if (this.#failed.length === 0) this.#pauses = 0;
      this.#pump();
      return;
    }
    metrics.errors++;
    this.#failed.push(index);
    const isPassing = status === STATUS_NONE || status === 429 || status >= 500;
    if (isPassing) this.#refused.delete(index);
    else this.#refuse(index, status, Buffer.from(bytes.subarray(start, end)).toString('utf8'));
    this.#wait();
  };

  #refuse(index: number, status: number, text: string): void {
    this.#refused.add(index);
    if (this.#hasToldRefusal) return;
    this.#hasToldRefusal = true;
    // One line: when one node is refused for what it is, all of them are.
    this.#options.log('error', `node-${index} is refused (${status}): ${text.slice(0, 500)}`);
  }

  #wait(): void {
    this.#isHeld = true;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const { client } = this.#options;
    const pauseMs = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** Math.min(10, this.#pauses++));
    client.timers.after(pauseMs * (1 + client.random()), () => {
      this.#isWaiting = false;
      this.#isHeld = false;
      this.#again.push(...this.#failed.splice(0));
      this.#pump();
    });
  }
}
