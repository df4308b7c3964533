// shell
/** For tests: API servers on an etcd, asked without a socket. */
import { randomInt, randomUUID } from 'node:crypto';
import type { Journal } from '@megaplane/store/journal';
import type { StorageOptions } from '@megaplane/store/contract';
import { createApiServer } from '../server/assembly.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import type { ValueSealer } from '../storage/encryption/value-sealer.ts';
import { ExchangeModel } from './exchange-model.sim.ts';
import type { ApiServer } from '../server/server.ts';
import type { Storage } from '../storage/storage.ts';
import type { EtcdFlags } from '../storage/etcd3/etcd-options.ts';
import { followJournal } from '../storage/journal/open-journal-storage.ts';
import { openEtcd, type EtcdOptions } from '../storage/etcd3/open-etcd.ts';

const IN_MEMORY: StorageOptions = { dataDir: null, durability: 'none', prefixes: [] };
const ANSWER_MS_MAX = 60_000;

export class TestServer {
  readonly storage: Storage;
  readonly api: ApiServer;
  readonly #timer: NodeJS.Timeout;
  /** Picks the first of what is free, so that servers that pick at once pick the same. */
  isPredictable = false;

  constructor(storage: Storage) {
    this.storage = storage;
    this.api = createApiServer({
      storage,
      edge: {
        nowMs: () => Date.now(),
        below: (n) => (this.isPredictable ? 0 : randomInt(n)),
        uuid: () => randomUUID(),
        defer: (work) => setImmediate(work),
        deferPiece: (work) => setImmediate(work),
      },
      address: '127.0.0.1:6443',
    });
    this.#timer = setInterval(() => this.api.tick(Date.now()), 100);
  }

  /** Makes the namespaces and all else that a new cluster has. */
  async bootstrap(): Promise<void> {
    const facts = { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 6443 };
    await new Promise((done) => {
      bootstrap(this.api.parts.world, facts, done);
    });
  }

  /** One request, as soon as it was answered whole; or a watch, as it starts. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ExchangeModel> {
    const exchange = new ExchangeModel(method, path, body, headers);
    this.api.handle(exchange);
    const endMs = performance.now() + ANSWER_MS_MAX;
    while (!(path.includes('watch=') ? exchange.status !== 0 : exchange.isEnded)) {
      if (performance.now() > endMs) throw new Error(`${method} ${path} was not answered`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return exchange;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.storage.close();
  }
}

/** A server on the etcd of these flags; `logged` collects what it says. */
export async function startServer(
  flags: EtcdFlags,
  sealer: ValueSealer | null = null,
  logged: string[] = [],
  more: Pick<EtcdOptions, 'masterLeaseSeconds'> = {},
): Promise<TestServer> {
  const storage = await openEtcd({
    flags,
    policy: IN_MEMORY,
    sealer,
    ...more,
    onLost: (message) => logged.push(`lost ${message}`),
    log: (level, message) => logged.push(`${level} ${message}`),
  });
  return new TestServer(storage);
}

/** A server on the group of an open journal, which it closes. */
export async function followGroup(
  journal: Journal,
  leaseMs: number,
  logged: string[] = [],
  sealer: ValueSealer | null = null,
): Promise<TestServer> {
  const storage = await followJournal(journal, {
    flags: { leaderLease: leaseMs },
    policy: IN_MEMORY,
    sealer,
    onLost: (message) => logged.push(`lost ${message}`),
    log: (level, message) => logged.push(`${level} ${message}`),
  });
  return new TestServer(storage);
}

/** Waits until `check` holds. */
export async function until(what: string, check: () => boolean, msMax = 60_000): Promise<void> {
  const endMs = performance.now() + msMax;
  while (!check()) {
    if (performance.now() > endMs) throw new Error(`not reached in ${msMax} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
