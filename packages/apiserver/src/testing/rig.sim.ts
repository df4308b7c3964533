/** An API server on a real store in memory, with a clock that stands until it is moved. */
import assert from 'node:assert/strict';
import { Store } from '@megaplane/store/store';
import { createApiServer } from '../server/assembly.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ExchangeModel } from './exchange-model.sim.ts';
import type { ApiServer } from '../server/server.ts';

/** One line of a watch. */
export interface WatchedEvent {
  readonly type: string;
  readonly object: {
    readonly metadata: {
      readonly name?: string;
      readonly namespace?: string;
      readonly resourceVersion: string;
      readonly annotations?: Readonly<Record<string, string>>;
    };
    readonly code?: number;
  };
}

export const MERGE: Readonly<Record<string, string>> = {
  'content-type': 'application/merge-patch+json',
};

export class Rig {
  readonly store: Store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  readonly api: ApiServer;
  nowMs: number = Date.UTC(2026, 0, 2, 3, 4, 5);
  readonly #later: (() => void)[] = [];
  #uuids = 0;

  constructor(namespaces: readonly string[] = ['a', 'b']) {
    const storage = new EmbeddedStorage(this.store, () => Promise.resolve());
    const edge = {
      nowMs: () => this.nowMs,
      below: () => 0,
      uuid: () => this.#uuid(),
      defer: (work: () => void) => void this.#later.push(work),
      deferPiece: (work: () => void) => void this.#later.push(work),
    };
    this.api = createApiServer({ storage, edge, address: '127.0.0.1:6443' });
    for (const name of namespaces) {
      assert.equal(this.ask('POST', '/api/v1/namespaces', { metadata: { name } }).status, 201);
      const accounts = `/api/v1/namespaces/${name}/serviceaccounts`;
      assert.equal(this.ask('POST', accounts, { metadata: { name: 'default' } }).status, 201);
    }
  }

  /** Spread over all hashes, as random ones are. */
  #uuid(): string {
    const mixed = Math.imul(++this.#uuids, 0x9e3779b1) >>> 0;
    const head = mixed.toString(16).padStart(8, '0');
    return `${head}-0000-4000-8000-${String(this.#uuids).padStart(12, '0')}`;
  }

  ask(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): ExchangeModel {
    const exchange = new ExchangeModel(method, path, body, headers);
    this.api.handle(exchange);
    this.settle();
    return exchange;
  }

  /** Lets the store tell its news, and everything that was put off happen. */
  settle(): void {
    this.store.flush();
    for (let work = this.#later.shift(); work !== undefined; work = this.#later.shift()) work();
  }

  /** Lets time pass, a second at a time. */
  pass(seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      this.nowMs += 1000;
      this.api.tick(this.nowMs);
      this.settle();
    }
  }

  /** Writes several objects at one revision, as a transaction of etcd does. */
  writeTogether(values: ReadonlyMap<string, object | null>): void {
    this.store.begin();
    for (const [path, value] of values) {
      const key = Buffer.from(path);
      if (value === null) this.store.delete(key, 0, key.length);
      else {
        const bytes = Buffer.from(JSON.stringify(value));
        this.store.put(key, 0, key.length, bytes, 0, bytes.length, 0);
      }
    }
    this.store.commit();
    this.settle();
  }
}

/** The events that a watch has sent so far. */
export function eventsOf(watch: ExchangeModel): WatchedEvent[] {
  const lines = watch.text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as WatchedEvent);
}

/** `ADDED a/x@7`, one a line. */
export function storyOf(watch: ExchangeModel): string[] {
  return eventsOf(watch).map(({ type, object }) => {
    const { name = '', namespace = '', resourceVersion } = object.metadata;
    return type === 'BOOKMARK' ? `BOOKMARK @${resourceVersion}` : `${type} ${namespace}/${name}`;
  });
}
