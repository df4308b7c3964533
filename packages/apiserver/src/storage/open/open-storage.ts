// shell: opens what an API server keeps its objects in
import { randomInt } from 'node:crypto';
import type { OpenStore } from '@megaplane/store/open';
import { openStore } from '@megaplane/store/open';
import { EmbeddedStorage } from '../embedded/embedded-storage.ts';
import { EventLeases } from '../event-leases.ts';
import { openSealer } from '../encryption/open-sealer.ts';
import { SealedStorage } from '../encryption/sealed-storage.ts';
import type { ValueSealer } from '../encryption/value-sealer.ts';
import { EVENT_TTL_MS, parseDuration, type EtcdFlags } from '../etcd3/etcd-options.ts';
import type { JournalFlags } from '../journal/journal-flags.ts';
import type { Storage } from '../storage.ts';
import { storagePolicy } from '../storage-policy.ts';

export interface StorageFlags extends EtcdFlags, JournalFlags {
  readonly dataDir: string;
  readonly durability?: string;
  readonly historyLimit?: string;
  readonly memoryLimitBytes?: number;
  readonly listenClientUrls?: string;
  readonly encryptionProviderConfig?: string;
  readonly encryptionProviderConfigAutomaticReload?: boolean;
}

export interface OpenStorage {
  readonly storage: Storage;
  /** The store in this process; null where storage is an etcd cluster. */
  readonly embedded: OpenStore | null;
  /** Settles only when the storage cannot go on. */
  readonly failure: Promise<Error>;
}

type Log = (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;

/**
 * The embedded store, the group of `--journal`, or the cluster of `--etcd-servers`. Rejects with
 * what to do.
 */
export async function openStorage(flags: StorageFlags, log: Log): Promise<OpenStorage> {
  const { durability = '', historyLimit = '', memoryLimitBytes } = flags;
  const policy = storagePolicy(flags.dataDir, durability, historyLimit);
  const limited =
    memoryLimitBytes === undefined ? policy : { ...policy, memoryBytesMax: memoryLimitBytes };
  const { promise: failure, resolve: fail } = Promise.withResolvers<Error>();
  const sealer = sealerOf(flags, log);
  if (flags.journal !== undefined) {
    refuseBesideJournal(flags);
    const { openJournalStorage } = await import('../journal/open-journal-storage.ts');
    const onLost = (message: string): void => fail(new Error(message));
    const storage = await openJournalStorage({ flags, policy: limited, sealer, onLost, log });
    return { storage, embedded: null, failure };
  }
  if (flags.etcdServers !== undefined) {
    refuseEmbeddedOnly(flags, '--etcd-servers');
    const { openEtcd } = await import('../etcd3/open-etcd.ts');
    const storage = await openEtcd({
      flags,
      policy: limited,
      sealer,
      onLost: (message) => fail(new Error(message)),
      log,
    });
    return { storage, embedded: null, failure };
  }
  const embedded = openStore(limited);
  const { cutBytes } = embedded.replayed;
  if (cutBytes > 0) {
    log(
      'warn',
      `the log ended in the middle of a record, as after a crash: its last ${cutBytes} bytes ` +
        `are cut off and kept beside it as *.torn`,
    );
  }
  embedded.store.onLogFailure((message) => fail(new Error(message)));
  const ttlMs = parseDuration('event-ttl', flags.eventTtl, EVENT_TTL_MS);
  const events = new EventLeases(
    embedded.store.leases,
    Math.max(1, Math.round(ttlMs / 1000)),
    () => performance.now(),
    (n) => randomInt(n),
  );
  const plain = new EmbeddedStorage(embedded.store, () => embedded.close(), events);
  const storage =
    sealer === null ? plain : new SealedStorage(plain, sealer, (message) => log('error', message));
  return { storage, embedded, failure };
}

function sealerOf(flags: StorageFlags, log: Log): ValueSealer | null {
  const { encryptionProviderConfig: file, encryptionProviderConfigAutomaticReload } = flags;
  if (file === undefined) return null;
  return openSealer(file, encryptionProviderConfigAutomaticReload ?? false, log).sealer;
}

/** Flags that mean nothing where the objects are elsewhere. */
function refuseEmbeddedOnly({ durability, listenClientUrls }: StorageFlags, where: string): void {
  if (durability !== undefined) {
    throw new Error(`--durability is for the embedded store; with ${where}, those decide`);
  }
  if (listenClientUrls !== undefined) {
    throw new Error(`--listen-client-urls serves the embedded store; leave out ${where}`);
  }
}

function refuseBesideJournal(flags: StorageFlags): void {
  refuseEmbeddedOnly(flags, '--journal');
  const { etcdServers, etcdServersOverrides, etcdPrefix } = flags;
  if (etcdServers !== undefined || etcdServersOverrides !== undefined) {
    throw new Error(
      '--journal and --etcd-servers: objects are in one of them; leave out the other',
    );
  }
  if (etcdPrefix !== undefined && etcdPrefix !== '/registry') {
    throw new Error('--etcd-prefix: servers on one --journal share all keys; leave it out');
  }
}
