// shell: keeps a replica at what etcd holds
/**
 * Loads the state of a prefix, then follows etcd's watch of it.
 *
 *     load -> watch -> (broken) -> watch again from the last revision
 *                   -> (compacted: what came between is gone) -> compare with the state -> watch
 *
 * A revision of the replica is complete: events of one revision are applied together, and the
 * replica is at revision R only when nothing up to R is missing. In the quiet, etcd says how far
 * it is: by itself now and then, and when asked (`nudge`). Before 3.4.31 and 3.5.13 an answer to
 * such a question may overtake events (etcd issue 15220), so those are not believed; there a
 * marker key is written, whose own event tells the same.
 */
import { afterMs, everyMs } from '@megaplane/base/deferred';
import type { EtcdClient, EtcdWatch } from '@megaplane/etcd/client/client';
import type { KeyValue, WatchAnswer } from '@megaplane/etcd/client/messages';
import type { Replica } from '@megaplane/store/replica';
import type { KeyMap } from './key-map.ts';

/** Keys asked for at once; halved where an answer would be too large. */
const PAGE_KEYS_MAX = 1000;
const PAGE_KEYS_MIN = 1;
/** Etcd is asked for a sign of life this often, and left when it gives none for so long. */
const HEARTBEAT_MS = 2000;
const SILENCE_MS_MAX = 8000;
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 2000;
/** Code of gRPC: the message would be too large. */
const RESOURCE_EXHAUSTED = 8;
/** Code of gRPC that etcd gives for compacted revisions, among others. */
const OUT_OF_RANGE = 11;

export interface FeedOptions {
  readonly client: EtcdClient;
  readonly keys: KeyMap;
  readonly replica: Replica;
  /** A value of etcd in the form of the replica; never throws. */
  readonly decode: (key: Buffer, value: Buffer) => Buffer;
  /** The replica has moved on. */
  readonly onApplied: () => void;
  /** Changes were missed, and the replica shows the state after them. */
  readonly onGap: () => void;
  /** The replica can never be right again: the process must start anew. */
  readonly onLost: (message: string) => void;
  readonly log: (level: 'warn' | 'info', message: string) => void;
}

export class Feed {
  readonly #options: FeedOptions;
  #watch: EtcdWatch | null = null;
  #heardMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;
  #failures = 0;
  #reason = 'the state was not loaded yet';
  /** Answers to `nudge` can be believed. */
  tellsProgress = false;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Why the replica falls behind; null while it follows. */
  get fault(): string | null {
    if (this.#reason !== '') return this.#options.client.fault || this.#reason;
    const silentMs = performance.now() - this.#heardMs;
    return silentMs > SILENCE_MS_MAX ? `no sign of life for ${Math.round(silentMs)} ms` : null;
  }

  /** Resolves once the first state is in; with the reason where that does not come. */
  async start(): Promise<string | null> {
    const failure = await this.#load();
    if (failure !== null) return failure;
    this.#timer = everyMs(HEARTBEAT_MS, () => this.#beat());
    this.#timer.unref();
    void this.#follow();
    return null;
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#watch?.cancel();
    this.#watch = null;
  }

  /** Asks etcd to say how far it is. */
  nudge(): void {
    this.#watch?.requestProgress();
  }

  #beat(): void {
    if (this.#watch === null) return;
    const silentMs = performance.now() - this.#heardMs;
    if (silentMs > SILENCE_MS_MAX) {
      this.#watch.leave(`its watch was silent for ${Math.round(silentMs)} ms`);
    } else {
      this.#watch.requestProgress();
    }
  }

  /** The first state, as of one revision; null, or what went wrong. */
  async #load(): Promise<string | null> {
    const { replica } = this.#options;
    const state = await this.#pages((page) => {
      for (const kv of page.kvs) {
        const own = this.#own(kv);
        replica.seed(own.key, own.value, kv.modRevision, kv.createRevision, kv.version);
      }
    });
    if (typeof state === 'number') {
      replica.advance(state, true);
      return null;
    }
    if (!state.isCompacted) return state.message;
    // what is in stays in: the rest comes as differences to it
    return this.#compare();
  }

  #own({ key, value }: KeyValue): { readonly key: Buffer; readonly value: Buffer } {
    const own = this.#options.keys.inward(key);
    return { key: own, value: this.#options.decode(own, value) };
  }

  /** Walks through all keys at one revision, which it gives. */
  async #pages(take: (page: Page) => void): Promise<number | Failure> {
    const { client, keys } = this.#options;
    let key = keys.start;
    let revision = 0;
    let limit = PAGE_KEYS_MAX;
    for (;;) {
      const result = await client.range({ key, end: keys.end, revision, limit });
      if (!result.ok) {
        if (result.code === RESOURCE_EXHAUSTED && limit > PAGE_KEYS_MIN) {
          limit = Math.max(PAGE_KEYS_MIN, limit >> 2);
          continue;
        }
        const isCompacted = result.code === OUT_OF_RANGE && revision > 0;
        return { message: result.message, isCompacted };
      }
      const { kvs, more } = result.value;
      if (revision === 0) revision = result.value.revision;
      const last = kvs.at(-1);
      const isLast = !more || last === undefined;
      const end = isLast ? keys.end : Buffer.concat([last.key, ZERO]);
      take({ start: key, end, kvs: kvs.filter((kv) => !keys.isMarker(kv.key)) });
      if (isLast) return revision;
      key = end;
    }
  }

  /** Brings the replica to the newest state where the way there is not known any more. */
  async #compare(): Promise<string | null> {
    const { replica } = this.#options;
    for (;;) {
      const changed: KeyValue[] = [];
      const gone: Buffer[] = [];
      const state = await this.#pages((page) => this.#differences(page, changed, gone));
      if (typeof state !== 'number') {
        if (state.isCompacted) continue;
        return state.message;
      }
      const isBack = state < replica.revision;
      if (isBack || changed.some((kv) => kv.modRevision <= replica.revision)) {
        const [now, before] = [state, replica.revision];
        this.#options.onLost(
          `--etcd-servers: etcd is at revision ${now} with another past than the one followed to ` +
            `${before} (restored from a backup?); this server must start anew to show its state`,
        );
        return 'etcd has another past';
      }
      this.#adopt(changed, gone, state);
      return null;
    }
  }

  #differences({ start, end, kvs }: Page, changed: KeyValue[], gone: Buffer[]): void {
    const { replica, keys } = this.#options;
    const { store } = replica;
    const theirs = new Map(kvs.map((kv) => [keys.inward(kv.key).toString('latin1'), kv]));
    const [from, to] = [keys.inward(start), keys.inward(end)];
    const bytes = Buffer.concat([from, to]);
    const page = { refs: new Uint32Array(16), length: 0, count: 0, more: false };
    store.range(bytes, 0, from.length, from.length, bytes.length, 0, 0, page);
    for (const ref of page.refs.subarray(0, page.length)) {
      const key = store.record(ref).toString('latin1', store.keyAt(ref), store.keyTo(ref));
      const kv = theirs.get(key);
      theirs.delete(key);
      if (kv === undefined) gone.push(Buffer.from(key, 'latin1'));
      else if (kv.modRevision !== store.modRevision(ref)) changed.push(kv);
    }
    changed.push(...theirs.values());
  }

  #adopt(changed: readonly KeyValue[], gone: readonly Buffer[], revision: number): void {
    const { replica, onApplied, onGap } = this.#options;
    const turns = Map.groupBy(changed, (kv) => kv.modRevision);
    if (gone.length > 0 && !turns.has(revision)) turns.set(revision, []);
    for (const [at, kvs] of [...turns].toSorted(([a], [b]) => a - b)) {
      replica.begin(at);
      for (const kv of kvs) {
        const { key, value } = this.#own(kv);
        replica.adopt(key, value, kv.createRevision, kv.version);
      }
      if (at === revision) for (const key of gone) replica.delete(key);
      replica.commit();
    }
    replica.advance(revision, true);
    onGap();
    onApplied();
  }

  /** Watches, again and again, until stopped. */
  async #follow(): Promise<void> {
    const { log } = this.#options;
    while (!this.#isStopped) {
      const outcome = await this.#watchOnce();
      if (this.#isStopped) return;
      if (outcome === 'compacted') {
        log('warn', 'etcd: what happened since the last event was compacted; comparing states');
        const failure = await this.#compare();
        if (failure !== null) await this.#rest(failure);
      } else {
        await this.#rest(outcome);
      }
    }
  }

  async #rest(reason: string): Promise<void> {
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** this.#failures);
    if (this.#reason === '' && this.#failures === 0) {
      this.#options.log('warn', `etcd: the watch ended: ${reason}`);
    }
    this.#reason = reason;
    this.#failures++;
    const { promise, resolve } = Promise.withResolvers<void>();
    afterMs(waitMs, resolve).unref();
    await promise;
  }

  /** One watch until its end: `compacted`, or why it ended. */
  async #watchOnce(): Promise<string> {
    const { client, keys, replica, log } = this.#options;
    const version = await client.version();
    if (!version.ok) return version.message;
    this.tellsProgress = hasOrderedProgress(version.value);
    const { promise, resolve } = Promise.withResolvers<string>();
    // Not from the next revision on: to a watch of what is still to come etcd 3.6 tells no
    // progress, and where nothing happens it would seem dead. What comes again is left out below.
    const watch = await client.watch(keys.start, keys.end, replica.revision, {
      onAnswer: (answer) => {
        this.#heardMs = performance.now();
        if (answer.compactRevision > 0) resolve('compacted');
        else if (answer.isCanceled) resolve(answer.reason || 'etcd cancelled the watch');
        else if (answer.isCreated) {
          if (this.#reason !== '') log('info', `etcd: following from revision ${replica.revision}`);
          this.#reason = '';
          this.#failures = 0;
        } else this.#take(answer);
      },
      onEnd: resolve,
    });
    if (watch === null) return client.fault;
    this.#watch = watch;
    this.#heardMs = performance.now();
    const outcome = await promise;
    if (this.#watch === watch) this.#watch = null;
    watch.cancel();
    return outcome;
  }

  #take(answer: WatchAnswer): void {
    const { replica, keys, onApplied } = this.#options;
    if (this.#isStopped) return;
    const { events } = answer;
    if (events.length === 0) {
      if (answer.isRequested && !this.tellsProgress) return;
      replica.advance(answer.revision);
      onApplied();
      return;
    }
    for (let at = 0; at < events.length;) {
      const revision = events[at]?.kv.modRevision ?? 0;
      const first = at;
      while (events[at]?.kv.modRevision === revision) at++;
      if (revision <= replica.revision) continue;
      const own = events.slice(first, at).filter((one) => !keys.isMarker(one.kv.key));
      if (own.length === 0) {
        replica.advance(revision);
        continue;
      }
      replica.begin(revision);
      for (const { isDelete, kv } of own) {
        if (isDelete) replica.delete(keys.inward(kv.key));
        else {
          const { key, value } = this.#own(kv);
          replica.put(key, value);
        }
      }
      replica.commit();
    }
    onApplied();
  }
}

interface Failure {
  readonly message: string;
  readonly isCompacted: boolean;
}

interface Page {
  readonly start: Buffer;
  readonly end: Buffer;
  readonly kvs: readonly KeyValue[];
}

const ZERO = Buffer.from([0]);

/** Upstream's rule of which versions answer requests for progress in order. */
export function hasOrderedProgress(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map(Number);
  if (major !== 3) return major > 3;
  if (minor === 4) return patch >= 31;
  if (minor === 5) return patch >= 13;
  return minor > 5;
}
