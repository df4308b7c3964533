/** As much of etcd as a coordinator sees, for tests: keys with revisions, and leases in a clock. */
import type { Keeping, LeaseId, Write } from './keeping.ts';

interface Kept {
  readonly value: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly lease: number;
}

type Fault = 'none' | 'unavailable' | 'lost answers';

export class SimulatedEtcd {
  readonly #keys = new Map<string, Kept>();
  readonly #leases = new Map<number, { readonly ttlMs: number; untilMs: number }>();
  #revision = 1;
  #lease = 0;
  nowMs = 0;
  /** Of the next calls. */
  fault: Fault = 'none';

  get keys(): string[] {
    return [...this.#keys.keys()].sort();
  }

  put(key: string, value: string): void {
    this.#put(key, Buffer.from(value), 0);
  }

  #put(key: string, value: Buffer, lease: number): void {
    this.#revision++;
    const createRevision = this.#keys.get(key)?.createRevision ?? this.#revision;
    this.#keys.set(key, { value, createRevision, modRevision: this.#revision, lease });
  }

  /** Time passes; leases end, and their keys with them. */
  pass(ms: number): void {
    this.nowMs += ms;
    for (const [id, { untilMs }] of this.#leases) if (untilMs <= this.nowMs) this.#end(id);
  }

  #end(id: number): void {
    if (!this.#leases.delete(id)) return;
    for (const [key, { lease }] of this.#keys) if (lease === id) this.#remove(key);
  }

  #remove(key: string): void {
    this.#revision++;
    this.#keys.delete(key);
  }

  client(): Keeping {
    const down = { ok: false, code: 14, message: 'etcd is away' } as const;
    const answer = async <T>(make: () => T) => {
      await Promise.resolve();
      if (this.fault === 'unavailable') return down;
      const value = make();
      return this.fault === 'lost answers' ? down : ({ ok: true, value } as const);
    };
    return {
      range: ({ key, end, limit = Infinity }) =>
        answer(() => {
          const first = key.toString();
          const last = end?.toString();
          const names = this.keys.filter((name) => {
            return last === undefined ? name === first : name >= first && name < last;
          });
          const kvs = names.slice(0, limit || Infinity).flatMap((name) => {
            const kept = this.#keys.get(name);
            return kept === undefined ? [] : [{ key: Buffer.from(name), ...kept }];
          });
          return { revision: this.#revision, kvs, more: kvs.length < names.length };
        }),
      write: (write) => answer(() => this.#write(write)),
      grantLease: (ttlSeconds) =>
        answer((): LeaseId => {
          const ttlMs = ttlSeconds * 1000;
          this.#leases.set(++this.#lease, { ttlMs, untilMs: this.nowMs + ttlMs });
          return { high: 0, low: this.#lease };
        }),
      keepLease: ({ low }) =>
        answer(() => {
          const lease = this.#leases.get(low);
          if (lease === undefined) return 0;
          lease.untilMs = this.nowMs + lease.ttlMs;
          return lease.ttlMs / 1000;
        }),
      revokeLease: ({ low }) =>
        answer(() => {
          this.#end(low);
          return this.#revision;
        }),
    };
  }

  #write({ key, expected, value, lease, guard }: Write) {
    const name = key.toString();
    const kept = this.#keys.get(name);
    const guarded = guard === undefined ? undefined : this.#keys.get(guard.key.toString());
    const isGuarded = guard === undefined || guarded?.createRevision === guard.createRevision;
    const found = kept === undefined ? null : { key, ...kept };
    const isExpected = expected < 0 || (kept?.modRevision ?? 0) === expected;
    if (!isGuarded || !isExpected) return { revision: this.#revision, succeeded: false, found };
    if (value === null) this.#remove(name);
    else this.#put(name, value, lease?.low ?? 0);
    return { revision: this.#revision, succeeded: true, found: null };
  }
}
