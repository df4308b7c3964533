// shell: connects to etcd and starts what follows it
/** `--etcd-servers`: from flags to a storage that is loaded and follows its cluster. */
import { everyMs } from '@megaplane/base/deferred';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints, type Endpoint } from '@megaplane/etcd/client/endpoints';
import type { StorageOptions } from '@megaplane/store/contract';
import { openStore } from '@megaplane/store/open';
import { Replica } from '@megaplane/store/replica';
import type { ValueSealer } from '../encryption/value-sealer.ts';
import { MASTER_LEASE_SECONDS } from '../master-leases.ts';
import type { Storage } from '../storage.ts';
import { Compactor } from './compactor.ts';
import {
  EVENT_TTL_MS,
  parseDuration,
  parseMedia,
  parseOverrides,
  tlsReader,
  type EtcdFlags,
} from './etcd-options.ts';
import { EtcdRequests } from './etcd-requests.ts';
import { EtcdStorage } from './etcd-storage.ts';
import { Feed } from './feed.ts';
import { KeyMap } from './key-map.ts';
import { EtcdOrigin } from './origin.ts';
import { PastReader } from './past-rows.ts';
import { RoutedStorage } from './routed-storage.ts';
import { StoredValues } from './stored-values.ts';

const COMPACTION_MS = 5 * 60_000;
const TICK_MS = 500;

export interface EtcdOptions {
  readonly flags: EtcdFlags;
  /** History and memory of the replica. */
  readonly policy: StorageOptions;
  /** Encryption at rest; null: none. */
  readonly sealer: ValueSealer | null;
  /** How long a server is believed to live that is not heard of; tests are impatient. */
  readonly masterLeaseSeconds?: number;
  /** Called where nothing but a new start helps. */
  readonly onLost: (message: string) => void;
  readonly log: (level: 'error' | 'warn' | 'info', message: string) => void;
}

/**
 * Connects, loads the state, and follows it. Rejects with an Error that names the flag where a
 * cluster cannot be reached.
 */
export async function openEtcd(options: EtcdOptions): Promise<Storage> {
  const { flags } = options;
  const endpoints = parseEndpoints('--etcd-servers', flags.etcdServers ?? '');
  const overrides = parseOverrides(flags.etcdServersOverrides ?? '');
  const opened: EtcdStorage[] = [];
  try {
    const requests = new EtcdRequests();
    const main = await openOne(options, endpoints, requests);
    opened.push(main);
    if (overrides.length === 0) return main;
    const places: { prefix: Buffer; storage: Storage }[] = [];
    for (const override of overrides) {
      const storage = await openOne(options, override.endpoints, requests);
      opened.push(storage);
      for (const prefix of override.prefixes) {
        places.push({ prefix: Buffer.from(prefix), storage });
      }
    }
    return new RoutedStorage(main, places);
  } catch (error) {
    await Promise.all(opened.map((storage) => storage.close()));
    throw error;
  }
}

async function openOne(
  options: EtcdOptions,
  endpoints: readonly Endpoint[],
  requests: EtcdRequests,
): Promise<EtcdStorage> {
  const { flags, log, sealer } = options;
  const keys = new KeyMap(flags.etcdPrefix ?? '/registry');
  const values = new StoredValues(parseMedia(flags.storageMediaType));
  const eventTtlMs = parseDuration('event-ttl', flags.eventTtl, EVENT_TTL_MS);
  const compactionMs = parseDuration(
    'etcd-compaction-interval',
    flags.etcdCompactionInterval,
    COMPACTION_MS,
  );
  const tls = tlsReader(flags);
  const client = new EtcdClient({ endpoints, tls, log: (message) => log('warn', message) });
  const store = openStore({ ...options.policy, dataDir: null });
  const replica = new Replica(store.store);
  const seals = new Map<string, string>();
  const feed = new Feed({
    client,
    keys,
    replica,
    decode: (key, value) => opened(key, value, { keys, values, sealer, seals, log }),
    onApplied: () => storage.settle(),
    onGap: () => storage.lose(),
    onLost: options.onLost,
    log,
  });
  const compactor = new Compactor(client, (message) => log('warn', message));
  const timer = everyMs(TICK_MS, () => storage.tick(performance.now())).unref();
  const storage = new EtcdStorage({
    origin: new EtcdOrigin(client, feed, keys),
    store: replica.store,
    showsOpened: true,
    compacts: true,
    requests,
    past: new PastReader(client, keys, pastDecoder({ keys, values, sealer, log })),
    encode: (key, value) => {
      const name = key.toString();
      const bytes = values.encode(name, value);
      return sealer === null ? bytes : sealer.seal(name, keys.outward(key), bytes);
    },
    isStale: (key) => {
      if (sealer === null) return false;
      const name = key.toString();
      return (seals.get(name) ?? '') !== sealer.sealOf(name);
    },
    eventTtlSeconds: Math.max(1, Math.round(eventTtlMs / 1000)),
    masterLeaseSeconds: options.masterLeaseSeconds ?? MASTER_LEASE_SECONDS,
    onError: (error) => {
      log('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
    },
    stop: async () => {
      clearInterval(timer);
      compactor.stop();
      feed.stop();
      client.close();
      await store.close();
    },
  });
  const failure = await feed.start();
  if (failure !== null) {
    await storage.close();
    const where = endpoints.map(({ url }) => url).join(',');
    throw new Error(`--etcd-servers: cannot load from ${where}: ${failure}; is etcd running?`);
  }
  compactor.start(compactionMs);
  return storage;
}

interface Decoding {
  readonly keys: KeyMap;
  readonly values: StoredValues;
  readonly sealer: ValueSealer | null;
  /** By key: how a value is sealed, where it is. */
  readonly seals: Map<string, string>;
  readonly log: EtcdOptions['log'];
}

/** How values of the past are sealed says nothing of what is kept now. */
function pastDecoder(decoding: Omit<Decoding, 'seals'>): (key: Buffer, value: Buffer) => Buffer {
  return (key, value) => opened(key, value, { ...decoding, seals: new Map() });
}

/** A value of etcd as the replica keeps it; as it is where it cannot be opened. */
function opened(key: Buffer, value: Buffer, decoding: Decoding): Buffer {
  const { keys, values, sealer, seals, log } = decoding;
  const name = key.toString();
  if (sealer === null) return values.decode(name, value);
  try {
    const open = sealer.open(name, keys.outward(key), value);
    if (open.seal === '') seals.delete(name);
    else seals.set(name, open.seal);
    return values.decode(name, open.value);
  } catch (error) {
    log('error', `${name} cannot be read: ${error instanceof Error ? error.message : 'unknown'}`);
    return value;
  }
}
