// data plane: the store as etcd's database file
/**
 * What `Maintenance.Snapshot` sends and `store snapshot` writes: buckets `key` (every kept record
 * in order of revision), `lease`, `alarm`, `meta`, users and roles, and the others that etcd
 * expects, empty. History
 * reaches back as far as all prefixes have it: where a prefix has a history budget, the file counts
 * as compacted at its cut.
 */
import { RevisionOrder } from '@megaplane/store/revision-order';
import type { Store } from '@megaplane/store/store';
import { writeInt64Field, writeVarint64Field } from '@megaplane/wire/protobuf-write';
import { AUTH_DOCUMENT } from '../auth/auth-state.ts';
import { authBuckets } from './auth-buckets.ts';
import {
  SEPARATOR,
  PUT_KEY_BYTES,
  backendKeySize,
  backendValueSize,
  writeBackendKey,
  writeBackendValue,
  writeUInt64,
} from '../codec/backend-record.ts';
import { BackupLeases } from './backup-leases.ts';
import { BboltImage, listSource } from '../bbolt/image.ts';
import type { EntrySource } from '../bbolt/tree.ts';

export const STORAGE_VERSION = '3.6.0';

type Pair = readonly [Buffer, Buffer];

/** A database file in the making. */
export class Backup {
  readonly #order: RevisionOrder;
  readonly #leases: BackupLeases;
  readonly #image: BboltImage;
  #isOrdered = false;
  readonly revision: number;

  /** As of now; `term` and `nowMs` are those of the server. */
  constructor(store: Store, term: number, nowMs: number) {
    this.revision = store.appliedRevision;
    let boundary = store.compactRevision;
    for (const klass of store.classes.all) {
      if (klass.boundary > 0) boundary = Math.max(boundary, klass.boundary);
    }
    this.#leases = new BackupLeases(store.leases.copyRows(), nowMs);
    const order = new RevisionOrder(store, this.revision, 'backup', boundary);
    this.#order = order;
    const none = listSource([]);
    const users = authBuckets(store.documents.get(AUTH_DOCUMENT));
    const meta = metaPairs(this.revision, boundary, term);
    this.#image = new BboltImage([
      { name: 'alarm', entries: listSource(alarmPairs(store)) },
      { name: 'auth', entries: listSource(users.auth) },
      { name: 'authRoles', entries: listSource(users.authRoles) },
      { name: 'authUsers', entries: listSource(users.authUsers) },
      { name: 'cluster', entries: none },
      { name: 'key', entries: keySource(store, order) },
      { name: 'lease', entries: this.#leases },
      { name: 'members', entries: none },
      { name: 'members_removed', entries: none },
      { name: 'meta', entries: listSource(meta) },
    ]);
  }

  /** One step of preparation; true when `size` is known and `next` may be called. */
  step(): boolean {
    if (!this.#isOrdered) {
      this.#isOrdered = this.#order.step();
      return false;
    }
    return this.#leases.step() && this.#image.plan();
  }

  get size(): number {
    return this.#image.size;
  }

  /** Records in the file, once prepared. */
  get records(): number {
    return this.#order.length;
  }

  /** The next bytes of the file, valid until the next call; null after the last. */
  next(): Buffer | null {
    const piece = this.#image.next();
    if (piece === null) this.end();
    return piece;
  }

  /** Gives up, or is done: the store may free and move records again. */
  end(): void {
    this.#order.end();
  }
}

function keySource(store: Store, order: RevisionOrder): EntrySource {
  return {
    get count() {
      return order.length;
    },
    keySize: (index) => backendKeySize(store, order.refs[index]!),
    valueSize: (index) => backendValueSize(store, order.refs[index]!),
    writeKey: (index, out, at) => writeBackendKey(store, order.refs[index]!, out, at),
    writeValue: (index, out, at) => writeBackendValue(store, order.refs[index]!, out, at),
  };
}

/** The key is the alarm's message itself. */
function alarmPairs(store: Store): readonly Pair[] {
  const pairs = store.alarms.list().map(({ kind, memberHigh, memberLow }): Pair => {
    const key = Buffer.alloc(24);
    const at = writeVarint64Field(key, 0, 1, memberLow, memberHigh);
    return [key.subarray(0, writeInt64Field(key, at, 2, kind)), Buffer.alloc(0)];
  });
  return pairs.sort((a, b) => a[0].compare(b[0]));
}

function metaPairs(revision: number, compacted: number, term: number): readonly Pair[] {
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    writeUInt64(bytes, 0, value);
    return bytes;
  };
  const pairs: Pair[] = [[Buffer.from('consistent_index'), number(revision)]];
  if (compacted > 0) {
    const at = Buffer.alloc(PUT_KEY_BYTES);
    writeUInt64(at, 0, compacted);
    at[8] = SEPARATOR;
    pairs.push([Buffer.from('finishedCompactRev'), at]);
    pairs.push([Buffer.from('scheduledCompactRev'), at]);
  }
  pairs.push([Buffer.from('storageVersion'), Buffer.from(STORAGE_VERSION)]);
  pairs.push([Buffer.from('term'), number(term)]);
  return pairs;
}
