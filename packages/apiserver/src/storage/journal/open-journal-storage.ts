// shell: follows the group of a journal
/**
 * `--journal`: the state of a group, from its journal, as the storage of this server. It is held
 * once, in the form in which servers with a store of their own keep it. What is written here goes
 * to the member that leads; what is read and watched is here.
 */
import { everyMs } from '@megaplane/base/deferred';
import { GroupReader } from '@megaplane/etcd/group-reader';
import { journalAccess, openJournal } from '@megaplane/etcd/journal';
import type { Journal } from '@megaplane/store/journal';
import { addTemplateSource } from '@megaplane/machinery/apply/field-templates';
import { parseJson } from '@megaplane/machinery/json-text';
import type { StorageOptions } from '@megaplane/store/contract';
import { TEMPLATES_PREFIX, TemplateKeeper } from '../../managedfields/template-keeper.ts';
import { SealedStorage } from '../encryption/sealed-storage.ts';
import type { ValueSealer } from '../encryption/value-sealer.ts';
import { Compactor } from '../etcd3/compactor.ts';
import { EVENT_TTL_MS, parseDuration, tlsReader, type EtcdFlags } from '../etcd3/etcd-options.ts';
import { EtcdRequests } from '../etcd3/etcd-requests.ts';
import { EtcdStorage } from '../etcd3/etcd-storage.ts';
import type { Origin } from '../etcd3/origin.ts';
import { MASTER_LEASE_SECONDS } from '../master-leases.ts';
import { packedDefinition } from '../packed-definitions.ts';
import { EXPECT_ANY, type Storage } from '../storage.ts';
import { leaseOf, type JournalFlags } from './journal-flags.ts';

const COMPACTION_MS = 5 * 60_000;
const TICK_MS = 500;

export interface JournalStorageOptions {
  readonly flags: EtcdFlags & JournalFlags;
  /** History and memory of what is held here. */
  readonly policy: StorageOptions;
  /** Encryption at rest; null: none. */
  readonly sealer: ValueSealer | null;
  /** How long a server is believed to live that is not heard of; tests are impatient. */
  readonly masterLeaseSeconds?: number;
  /** Called where nothing but a new start helps. */
  readonly onLost: (message: string) => void;
  readonly log: (level: 'error' | 'warn' | 'info', message: string) => void;
}

/** Resolves once the state is here. Rejects with what to do where that cannot be. */
export async function openJournalStorage(options: JournalStorageOptions): Promise<Storage> {
  const { flags, log } = options;
  const tell = (message: string): void => log('warn', message);
  tlsReader(flags);
  return await followJournal(
    await openJournal(flags.journal ?? '', journalAccess(flags), tell),
    options,
  );
}

/** The same with a journal that is open; it is closed with the storage. */
export async function followJournal(
  journal: Journal,
  options: JournalStorageOptions,
): Promise<Storage> {
  const { flags, log, sealer, policy } = options;
  const tell = (message: string): void => log('warn', message);
  let reader: GroupReader;
  try {
    reader = await GroupReader.open({
      storage: policy,
      journal,
      tls: tlsReader(flags),
      leaseMs: leaseOf(flags),
      log: tell,
      onRenewed: (store) => storage.renew(store),
      onFailure: (why) => options.onLost(why),
    });
  } catch (error) {
    await journal.close();
    throw error;
  }
  const templates = new Templates(reader);
  const eventTtlMs = parseDuration('event-ttl', flags.eventTtl, EVENT_TTL_MS);
  const compactionMs = parseDuration(
    'etcd-compaction-interval',
    flags.etcdCompactionInterval,
    COMPACTION_MS,
  );
  const compactor = new Compactor(reader, tell);
  const timer = everyMs(TICK_MS, () => storage.tick(performance.now())).unref();
  const storage = new EtcdStorage({
    origin: originOf(reader),
    store: reader.store,
    past: null,
    encode: packedDefinition,
    prepare: (value) => templates.prepare(value),
    showsOpened: false,
    isStale: () => false,
    eventTtlSeconds: Math.max(1, Math.round(eventTtlMs / 1000)),
    masterLeaseSeconds: options.masterLeaseSeconds ?? MASTER_LEASE_SECONDS,
    requests: new EtcdRequests(),
    compacts: false,
    onError: (error) => {
      log('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
    },
    stop: async () => {
      clearInterval(timer);
      compactor.stop();
      templates.close();
      reader.close();
      await journal.close();
    },
  });
  storage.onPublish(() => storage.settle());
  compactor.start(compactionMs);
  if (sealer === null) return storage;
  return new SealedStorage(storage, sealer, (message) => log('error', message));
}

function originOf(reader: GroupReader): Origin {
  return {
    get fault() {
      return reader.fault;
    },
    write: (write) => reader.write(write),
    grantLease: (ttlSeconds) => reader.grantLease(ttlSeconds),
    newest: () => reader.newest(),
    nudge: null,
  };
}

/** Those of the group: each is in the journal before the first object that refers to it. */
class Templates {
  readonly #reader: GroupReader;
  readonly #keeper = new TemplateKeeper();
  readonly #removeSource: () => void;

  constructor(reader: GroupReader) {
    this.#reader = reader;
    this.#removeSource = addTemplateSource((id) => {
      const kept = this.#find(Buffer.from(TEMPLATES_PREFIX + id));
      return kept === null ? undefined : parseJson(kept.toString('utf8'));
    });
  }

  #find(key: Buffer): Buffer | null {
    const { store } = this.#reader;
    const ref = store.get(key, 0, key.length);
    if (ref <= 0) return null;
    const size = store.unpackedSize(ref);
    if (size === 0) {
      return Buffer.from(store.record(ref).subarray(store.valueAt(ref), store.valueTo(ref)));
    }
    const bytes = Buffer.alloc(size);
    return bytes.subarray(0, store.unpack(ref, bytes, 0));
  }

  /** See `EtcdStorageParts.prepare`. */
  prepare(value: Buffer): Promise<string | null> | null {
    const missing: { readonly key: Buffer; readonly value: Buffer }[] = [];
    this.#keeper.keep(value, (key, record) => {
      if (this.#find(key) !== null) return true;
      missing.push({ key, value: record });
      // not until the journal has it
      return false;
    });
    return missing.length === 0 ? null : this.#write(missing);
  }

  async #write(
    records: readonly { readonly key: Buffer; readonly value: Buffer }[],
  ): Promise<string | null> {
    const writes = records.map((one) => this.#reader.write({ ...one, expected: EXPECT_ANY }));
    for (const result of await Promise.all(writes)) if (!result.ok) return result.message;
    return null;
  }

  close(): void {
    this.#removeSource();
  }
}
