/**
 * kwok's kinds as objects of the server, where its CustomResourceDefinitions are there: what they
 * say counts beside what files say, and takes their place where both have one name.
 *
 * The server is asked again from time to time, since definitions may come later.
 */
import type { Client } from '@megaplane/client/client';
import { Discovery } from '@megaplane/client/discovery';
import { createInformer, type Informer } from '@megaplane/client/informer';
import { HOST_KINDS } from '../server/port-config.ts';
import { STAGE_API_VERSION } from './stage-file.ts';
import { parseJson } from '@megaplane/machinery/json-text';

const GROUP_PATH: string = `/apis/${STAGE_API_VERSION}`;
/** How often the server is asked which of the kinds it has. */
export const DISCOVERY_MS = 30_000;
/** So long after the first reading of a kind its objects are waited for at the start. */
export const FIRST_READ_MS = 10_000;

/** One object: what files call a document. */
export interface KwokObject {
  readonly kind: string;
  /** `namespace/name`. */
  readonly key: string;
  /** JSON, which is YAML too. */
  readonly text: string;
}

export interface KwokObjectsOptions {
  readonly client: Client;
  /** Kinds that are read; empty: all that the server has, but for `HOST_KINDS`. */
  readonly kinds: readonly string[];
  /** `object` null: it is gone. Not called before `start` has resolved. */
  onChange(kind: string, key: string, object: KwokObject | null): void;
  onTrouble(message: string): void;
}

export class KwokObjects {
  readonly #options: KwokObjectsOptions;
  readonly #discovery: Discovery;
  readonly #informers: Map<string, Informer> = new Map();
  readonly #objects: Map<string, KwokObject> = new Map();
  #isStarted = false;
  #isStopped = false;
  #cancel: () => void = () => {};

  constructor(options: KwokObjectsOptions) {
    this.#options = options;
    this.#discovery = new Discovery(options.client);
  }

  /** Resolves when the objects of the kinds that the server has are there; never rejects. */
  async start(): Promise<void> {
    await this.#look();
    const waits = [...this.#informers.values()].filter(({ isSynced }) => !isSynced);
    const { timers } = this.#options.client;
    const endMs = timers.nowMs() + FIRST_READ_MS;
    while (waits.some(({ isSynced }) => !isSynced) && timers.nowMs() < endMs) {
      await new Promise<void>((resolve) => timers.after(20, resolve));
    }
    this.#isStarted = true;
  }

  /** Objects of a kind, in the order of their names. */
  of(kind: string): readonly KwokObject[] {
    const found = [...this.#objects.values()].filter((object) => object.kind === kind);
    return found.toSorted((left, right) => (left.key < right.key ? -1 : 1));
  }

  /** All objects but stages. */
  others(): readonly KwokObject[] {
    return [...this.#objects.values()].filter(({ kind }) => kind !== 'Stage');
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    for (const informer of this.#informers.values()) informer.stop();
  }

  async #look(): Promise<void> {
    const { client, kinds } = this.#options;
    try {
      const found = await this.#discovery.kindsOf(STAGE_API_VERSION);
      if (this.#isStopped) return;
      for (const { kind, resource } of found) {
        const isWanted = kinds.length === 0 ? !HOST_KINDS.has(kind) : kinds.includes(kind);
        if (isWanted && !this.#informers.has(kind)) this.#read(kind, resource);
      }
    } catch {
      // A server without the group says 404, one in trouble something else: it is asked again.
      if (this.#isStopped) return;
    }
    this.#cancel = client.timers.after(DISCOVERY_MS, () => void this.#look());
  }

  #read(kind: string, resource: string): void {
    const { client } = this.#options;
    const informer = createInformer({
      client,
      path: `${GROUP_PATH}/${resource}`,
      handler: {
        onUpsert: (id, _isNew, bytes, start, end) => {
          const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
          this.#put(kind, informer.keyOf(id), text.toString('utf8'));
        },
        onDelete: (id) => {
          const key = informer.keyOf(id);
          this.#objects.delete(`${kind} ${key}`);
          if (this.#isStarted) this.#options.onChange(kind, key, null);
        },
        onTrouble: (message) => this.#options.onTrouble(message),
      },
    });
    this.#informers.set(kind, informer);
    informer.start();
  }

  #put(kind: string, key: string, text: string): void {
    // items of lists carry neither kind nor version
    const apiVersion = STAGE_API_VERSION;
    const whole = JSON.stringify({ ...(parseJson(text) as object), apiVersion, kind });
    const object: KwokObject = { kind, key, text: whole };
    this.#objects.set(`${kind} ${key}`, object);
    if (this.#isStarted) this.#options.onChange(kind, key, object);
  }
}
