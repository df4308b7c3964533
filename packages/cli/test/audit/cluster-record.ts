/**
 * Everything that is stored in a simulated cluster, as it is now and since when: each change is
 * taken from the store itself, in order and with what was before, whoever watches or does not.
 */
import assert from 'node:assert/strict';
import { EmbeddedStorage } from '@megaplane/apiserver/embedded-storage';
import { emptyEvent, type StorageEvent, type StorageWatch } from '@megaplane/apiserver/storage';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Store } from '@megaplane/store/store';

export interface AuditClock {
  nowMs(): number;
  /** Milliseconds in which somebody ran: without those that the clock jumped over. */
  awakeMs(): number;
}

/** Of these there is nothing to say; leases are counted by their time alone. */
const UNSEEN = new Set(['events', 'ipaddresses', 'masterleases', 'ranges', 'templates']);

/** An object as it was stored last. */
export class Sight {
  readonly kind: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly madeMs: number;
  object: JsonObject;
  /** Since when it is on its way out. */
  goingMs: number = Infinity;
  goneMs: number = Infinity;
  /** When it was ready the last time. */
  readyMs: number = -Infinity;
  isReady = false;
  /** When its spec was changed the last time. */
  specMs: number;
  /** Replicas that were wanted, and until when; those wanted now have no end. */
  readonly wanted: { readonly count: number; untilMs: number }[] = [];

  constructor(object: JsonObject, nowMs: number) {
    this.object = object;
    this.kind = stringAt(object, 'kind');
    this.uid = stringAt(object, 'metadata', 'uid');
    this.namespace = stringAt(object, 'metadata', 'namespace');
    this.name = stringAt(object, 'metadata', 'name');
    this.madeMs = nowMs;
    this.specMs = nowMs;
  }

  get isGoing(): boolean {
    return this.goingMs !== Infinity;
  }

  get isGone(): boolean {
    return this.goneMs !== Infinity;
  }

  /** Whether it is ready or was so after a moment. */
  wasReady(sinceMs: number): boolean {
    return this.isReady || this.readyMs >= sinceMs;
  }

  get phase(): string {
    return stringAt(this.object, 'status', 'phase');
  }

  get hasEnded(): boolean {
    return this.phase === 'Succeeded' || this.phase === 'Failed';
  }

  get nodeName(): string {
    return stringAt(this.object, 'spec', 'nodeName');
  }

  get title(): string {
    return `${this.kind} ${this.namespace}/${this.name}`;
  }

  get controller(): string {
    const owners = listAt(this.object, 'metadata', 'ownerReferences') as JsonObject[];
    return stringAt(
      owners.find((one) => one['controller'] === true),
      'uid',
    );
  }

  label(name: string): string {
    return stringAt(this.object, 'metadata', 'labels', name);
  }

  condition(type: string): JsonObject | undefined {
    const all = listAt(this.object, 'status', 'conditions') as JsonObject[];
    return all.find((one) => stringAt(one, 'type') === type);
  }

  is(type: string): boolean {
    return stringAt(this.condition(type), 'status') === 'True';
  }

  wantedMost(sinceMs: number): number {
    return Math.max(0, ...this.#wantedSince(sinceMs));
  }

  wantedLeast(sinceMs: number): number {
    return Math.min(...this.#wantedSince(sinceMs));
  }

  #wantedSince(sinceMs: number): number[] {
    return this.wanted.filter(({ untilMs }) => untilMs >= sinceMs).map(({ count }) => count);
  }

  set(object: JsonObject, nowMs: number): void {
    const wasReady = this.isReady;
    const generation = numberAt(this.object, 'metadata', 'generation');
    if (numberAt(object, 'metadata', 'generation') !== generation) this.specMs = nowMs;
    this.object = object;
    this.isReady = this.is('Ready');
    if (this.isReady || wasReady) this.readyMs = nowMs;
    const isGoing = stringAt(object, 'metadata', 'deletionTimestamp') !== '';
    if (isGoing && !this.isGoing) this.goingMs = nowMs;
    const spec = objectAt(object, 'spec');
    if (typeof spec?.['replicas'] !== 'number') return;
    const last = this.wanted.at(-1);
    if (last?.count === spec['replicas']) return;
    if (last !== undefined) last.untilMs = nowMs;
    this.wanted.push({ count: spec['replicas'], untilMs: Infinity });
  }
}

/** `before` is what was stored; of what is new it is undefined, and `sight` is as it is now. */
export interface Change {
  readonly sight: Sight;
  readonly before: JsonObject | undefined;
  readonly isGone: boolean;
  readonly wasGoing: boolean;
}

export class ClusterRecord {
  readonly #watch: StorageWatch;
  readonly #event: StorageEvent = emptyEvent();
  readonly #byKey: Map<string, Sight> = new Map();
  readonly #byKind: Map<string, Set<Sight>> = new Map();
  readonly #byOwner: Map<string, Set<Sight>> = new Map();
  readonly #byNamespace: Map<string, Set<Sight>> = new Map();
  readonly #byUid: Map<string, Sight> = new Map();
  readonly #clock: AuditClock;
  /** When the lease of each node was written last, by the clock that nobody jumps over. */
  readonly renewedMs: Map<string, number> = new Map();

  constructor(store: Store, clock: AuditClock) {
    const storage = new EmbeddedStorage(store, () => Promise.resolve());
    const bounds = ['/registry/', '/registry0'].map((one) => Buffer.from(one)) as [Buffer, Buffer];
    const watch = storage.watch(...bounds, 0, () => {});
    assert(watch !== null);
    this.#watch = watch;
    this.#clock = clock;
  }

  /** Tells each change that was stored since the last time. */
  read(told: (change: Change) => void): void {
    const event = this.#event;
    for (;;) {
      const outcome = this.#watch.next(event);
      if (outcome === 'idle') return;
      assert.equal(outcome, 'event', 'history is read as it is made');
      const { value } = event;
      const key = value.key.latin1Slice(value.keyStart, value.keyEnd);
      const [, , resource = '', namespace] = key.split('/');
      if (resource === 'leases' && namespace === 'kube-node-lease') {
        const name = key.slice(key.lastIndexOf('/') + 1);
        if (!event.isDelete) this.renewedMs.set(name, this.#clock.awakeMs());
      } else if (!UNSEEN.has(resource)) this.#take(key, told);
    }
  }

  #take(key: string, told: (change: Change) => void): void {
    const { isDelete, value } = this.#event;
    const known = this.#byKey.get(key);
    const nowMs = this.#clock.nowMs();
    if (isDelete) {
      if (known === undefined) return;
      known.goneMs = nowMs;
      this.#byKey.delete(key);
      this.#unlink(known);
      told({ sight: known, before: known.object, isGone: true, wasGoing: known.isGoing });
      return;
    }
    const text = value.bytes.utf8Slice(value.start, value.end);
    if (!text.startsWith('{')) return;
    const object = JSON.parse(text) as JsonObject;
    const before = known?.object;
    const wasGoing = known?.isGoing ?? false;
    const sight = known ?? new Sight(object, nowMs);
    if (known !== undefined) this.#unlink(known);
    sight.set(object, nowMs);
    this.#byKey.set(key, sight);
    this.#link(sight);
    told({ sight, before, isGone: false, wasGoing });
  }

  #link(sight: Sight): void {
    this.#byUid.set(sight.uid, sight);
    add(this.#byKind, sight.kind, sight);
    if (sight.namespace !== '') add(this.#byNamespace, sight.namespace, sight);
    for (const uid of ownersOf(sight)) add(this.#byOwner, uid, sight);
  }

  #unlink(sight: Sight): void {
    if (sight.isGone) {
      this.#byUid.delete(sight.uid);
      this.#byKind.get(sight.kind)?.delete(sight);
      drop(this.#byNamespace, sight.namespace, sight);
    }
    for (const uid of ownersOf(sight)) drop(this.#byOwner, uid, sight);
  }

  ofKind(kind: string): ReadonlySet<Sight> {
    return this.#byKind.get(kind) ?? NONE;
  }

  ownedBy(uid: string): ReadonlySet<Sight> {
    return this.#byOwner.get(uid) ?? NONE;
  }

  inNamespace(name: string): ReadonlySet<Sight> {
    return this.#byNamespace.get(name) ?? NONE;
  }

  withUid(uid: string): Sight | undefined {
    return this.#byUid.get(uid);
  }

  node(name: string): Sight | undefined {
    return this.#byKey.get(`/registry/minions/${name}`);
  }

  /** Who holds the lease of the controllers. */
  get leader(): string {
    const lease = this.#byKey.get('/registry/leases/kube-system/kube-controller-manager');
    return stringAt(lease?.object, 'spec', 'holderIdentity');
  }

  namespace(name: string): Sight | undefined {
    return this.#byKey.get(`/registry/namespaces/${name}`);
  }
}

const NONE: ReadonlySet<Sight> = new Set();

export function ownersOf({ object }: Sight): string[] {
  return listAt(object, 'metadata', 'ownerReferences').map((one) => stringAt(one, 'uid'));
}

function add(map: Map<string, Set<Sight>>, key: string, sight: Sight): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, new Set([sight]));
  else known.add(sight);
}

function drop(map: Map<string, Set<Sight>>, key: string, sight: Sight): void {
  const known = map.get(key);
  known?.delete(sight);
  if (known?.size === 0) map.delete(key);
}
