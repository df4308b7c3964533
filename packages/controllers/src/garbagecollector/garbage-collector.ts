/**
 * Deletes what nobody owns any more.
 *
 * The graph tells which objects to look at; before anything is deleted the object, and each owner
 * that is not in sight, are read from the server. An owner whose kind is unknown, or that cannot
 * be read, is never taken for gone.
 */
import { CONTENT, type ClientResponse } from '@megaplane/client/client';
import type { Informer } from '@megaplane/client/informer';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { Random } from '@megaplane/base/random';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import {
  collectionPath,
  groupResourceOf,
  groupVersionOf,
  objectPath,
  type ApiResource,
} from '../framework/api-resources.ts';
import { dumpGraph } from './graph-dot.ts';
import {
  FOREGROUND,
  GarbageGraph,
  ORPHANING,
  referencesOf,
  type OwnerReference,
} from './garbage-graph.ts';
import { hashOf } from '../columns/node-scan.ts';
import type { Counter } from '../framework/metrics-registry.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 64;
const ROWS_PER_RESOURCE = 2 ** 32;
/** An owner of unknown kind may become known when its definition is installed. */
const UNKNOWN_AGAIN_MS = 30_000;
/** References to other namespaces that are remembered as told; older ones may be told again. */
const TOLD_MAX = 10_000;
const UNBLOCKED_AGAIN_MS = 100;
/** Events come and go by themselves and own nothing. */
const IGNORED = new Set(['events', 'events.events.k8s.io']);

type Verdict = 'solid' | 'waiting' | 'dangling' | 'unknown' | 'unreadable';

interface Watched {
  resource: ApiResource;
  readonly informer: Informer;
}

/** Resources that are watched or rest; rows of the graph tell them apart by 16 bits. */
const RESOURCES_MAX = 65_536;
/** A number goes to another resource when no work that has it can be under way any more. */
const NUMBER_RESTS_MS = 600_000;

type Live = Extract<ClientResponse, { readonly ok: true }>;

export interface GarbageCollectorOptions extends ControllerContext {
  readonly random: Random;
  readonly announce: Announce;
}

export class GarbageCollector {
  readonly #options: GarbageCollectorOptions;
  readonly graph: GarbageGraph;
  /** By number. */
  readonly #watched: (Watched | undefined)[] = [];
  /** Numbers of what is watched no more, and since when: the oldest first. */
  readonly #resting: { readonly index: number; readonly sinceMs: number }[] = [];
  /** Numbers by version and kind. */
  readonly #byKind: Map<string, number> = new Map();
  readonly #workers: Workers<number>;
  /** Uids of dependent and owner. */
  readonly #toldForeign: Set<string> = new Set();
  deletions = 0;

  readonly #syncErrors: Counter;

  constructor(options: GarbageCollectorOptions) {
    this.#options = options;
    const help = 'Number of garbage collector resources sync errors';
    const name = 'garbagecollector_controller_resources_sync_error_total';
    this.#syncErrors = options.informers.metrics.counter(name, help);
    this.graph = new GarbageGraph(options.random, {
      check: (resource, row) => this.#workers.add(resource * ROWS_PER_RESOURCE + row),
      locate: (resource, row, reference) => this.#locate(resource, row, reference),
      calledHash: (resource, row, reference) => this.#calledHash(resource, row, reference),
      placeHash: (resource, row) => hashOfKey(resource, this.#keyOf(resource, row)),
    });
    this.#workers = new Workers(
      options.client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(Math.floor(key / ROWS_PER_RESOURCE), key % ROWS_PER_RESOURCE),
      options.onError,
      options.informers.queues.queue('garbage_collector_attempt_to_delete'),
    );
  }

  /**
   * Watches what is not watched yet, and ends what is served no more. With `isWhole` false some of
   * what is served may be missing: then nothing ends.
   */
  setResources(resources: readonly ApiResource[], isWhole: boolean): void {
    if (!isWhole) this.#syncErrors.add();
    const wanted = resources.filter(
      (one) =>
        ['delete', 'list', 'watch'].every((verb) => one.verbs.includes(verb)) &&
        !IGNORED.has(groupResourceOf(one)),
    );
    const kinds = new Set(wanted.map(kindOf));
    for (const [kind, index] of isWhole ? [...this.#byKind] : []) {
      if (!kinds.has(kind)) this.#retire(index, kind);
    }
    for (const resource of wanted) {
      const known = this.#watched[this.#byKind.get(kindOf(resource)) ?? -1];
      if (known === undefined) this.#watch(resource);
      else known.resource = resource;
    }
  }

  #watch(resource: ApiResource): void {
    const index = this.#takeNumber();
    if (index === undefined) {
      const name = groupResourceOf(resource);
      const text = `${name} is not collected: ${RESOURCES_MAX} kinds are watched or rest`;
      return this.#options.onError(new Error(text));
    }
    this.graph.addResource(index);
    const informer = this.#options.informers.subscribe(
      { path: collectionPath(resource) },
      {
        onUpsert: (row, isNew, bytes, _start, _end, scan) =>
          this.graph.upsert(index, row, isNew, bytes, scan),
        onDelete: (row) => this.graph.remove(index, row),
      },
    );
    this.#watched[index] = { resource, informer };
    this.#byKind.set(kindOf(resource), index);
  }

  #takeNumber(): number | undefined {
    const oldest = this.#resting[0];
    const restedMs = this.#options.client.timers.nowMs() - (oldest?.sinceMs ?? Infinity);
    if (restedMs >= NUMBER_RESTS_MS) return this.#resting.shift()?.index;
    return this.#watched.length < RESOURCES_MAX ? this.#watched.length : undefined;
  }

  #retire(index: number, kind: string): void {
    this.#byKind.delete(kind);
    const watched = this.#watched[index];
    if (watched === undefined) return;
    this.#options.informers.drop({ path: collectionPath(watched.resource) });
    this.graph.retire(index, watched.informer.idLimit);
    this.#watched[index] = undefined;
    this.#resting.push({ index, sinceMs: this.#options.client.timers.nowMs() });
  }

  /** Begins to delete; before, only the graph is built. */
  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /** The graph, or what of it hangs together with these uids, for people. */
  dump(uids: readonly string[]): Generator<string> {
    const kinds = this.#watched.map((watched, index) => ({
      group: watched?.resource.group ?? '',
      version: watched?.resource.version ?? '',
      kind: watched?.resource.kind ?? '',
      rowEnd: watched?.informer.idLimit ?? 0,
      nameOf: (row: number) => this.#nameOf(index, row),
    }));
    return dumpGraph(this.graph, kinds, uids);
  }

  /** Objects that wait to be looked at. */
  get pending(): number {
    return this.#workers.queue.size;
  }

  /**
   * References name a version; any served version of the same group and kind is the same object.
   * What is in a version that is not served cannot be looked for: it is unknown, and not gone.
   */
  #resourceOf({ apiVersion, kind }: OwnerReference): number | undefined {
    const exact = this.#byKind.get(`${apiVersion} ${kind}`);
    if (exact !== undefined) return exact;
    const [version = '', group = ''] = apiVersion.split('/').toReversed();
    const found = this.#watched.findIndex(
      (watched) =>
        watched?.resource.kind === kind &&
        watched.resource.group === group &&
        watched.resource.served.includes(version),
    );
    return found < 0 ? undefined : found;
  }

  #locate(dependent: number, row: number, owner: OwnerReference): [number, number] | undefined {
    const index = this.#resourceOf(owner);
    const watched = index === undefined ? undefined : this.#watched[index];
    if (index === undefined || watched === undefined) return undefined;
    const namespace = watched.resource.namespaced ? this.#namespaceOf(dependent, row) : '';
    const found = watched.informer.find(namespace, owner.name);
    return found < 0 ? undefined : [index, found];
  }

  #calledHash(dependent: number, row: number, owner: OwnerReference): number {
    const index = this.#resourceOf(owner);
    const watched = index === undefined ? undefined : this.#watched[index];
    if (index === undefined || watched === undefined) return 0;
    if (!watched.resource.namespaced) return hashOfKey(index, owner.name);
    const namespace = this.#namespaceOf(dependent, row);
    return namespace === '' ? 0 : hashOfKey(index, `${namespace}/${owner.name}`);
  }

  #keyOf(resource: number, row: number): string {
    return this.#watched[resource]?.informer.keyOf(row) ?? '';
  }

  #namespaceOf(resource: number, row: number): string {
    const watched = this.#watched[resource];
    if (watched === undefined || !watched.resource.namespaced) return '';
    return watched.informer.keyOf(row).split('/')[0] ?? '';
  }

  #nameOf(resource: number, row: number): [namespace: string, name: string] {
    const watched = this.#watched[resource];
    const key = watched?.informer.keyOf(row) ?? '';
    if (watched === undefined || !watched.resource.namespaced) return ['', key];
    const slash = key.indexOf('/');
    return [key.slice(0, slash), key.slice(slash + 1)];
  }

  async #work(resource: number, row: number): Promise<WorkResult> {
    const watched = this.#watched[resource];
    if (watched === undefined || !watched.informer.has(row)) return 'done';
    if (this.graph.isSettled(resource, row)) return 'done';
    const [namespace, name] = this.#nameOf(resource, row);
    const path = objectPath(watched.resource, namespace, name);
    const uid = this.graph.uidOf(resource, row);
    if (this.graph.flagsOf(resource, row) === 0 && this.graph.isAbandoned(resource, row)) {
      const version = watched.informer.resourceVersionOf(row);
      const gone = await this.#delete(path, uid, String(version), 'Background');
      if (gone !== 'retry') return gone;
      // It has changed since: look at it as it is now.
    }
    const answer = await this.#options.client.request({ method: 'GET', path });
    if (!answer.ok) return answer.code === 404 ? 'done' : 'retry';
    if (stringAt(answer.object, 'metadata', 'uid') !== uid) return 'done';
    if (stringAt(answer.object, 'metadata', 'deletionTimestamp') !== '') {
      return this.#finishDeletion(resource, row, path, answer);
    }
    return this.#judge(resource, row, path, answer);
  }

  async #judge(resource: number, row: number, path: string, live: Live): Promise<WorkResult> {
    const references = referencesOf(listAt(live.object, 'metadata', 'ownerReferences'));
    if (references.length === 0) return 'done';
    const verdicts: Verdict[] = [];
    for (const reference of references) {
      verdicts.push(await this.#verdictOn(resource, row, reference));
    }
    if (verdicts.includes('unreadable')) return 'retry';
    const has = (verdict: Verdict): boolean => verdicts.includes(verdict);
    if (has('unknown')) return { againMs: UNKNOWN_AGAIN_MS };
    if (has('solid')) {
      if (!has('dangling') && !has('waiting')) return 'done';
      const kept = references.filter((_, index) => verdicts[index] === 'solid');
      return this.#keepReferences(path, live, kept);
    }
    const uid = stringAt(live.object, 'metadata', 'uid');
    const version = stringAt(live.object, 'metadata', 'resourceVersion');
    const isForeground = has('waiting') && this.graph.hasDependents(resource, row);
    if (isForeground && this.#isInCircle(resource, row) && isBlocking(live.object)) {
      const freed = await this.#unblock(path, live);
      // It comes again with its change, and is deleted then.
      return freed === 'done' ? { againMs: UNBLOCKED_AGAIN_MS } : freed;
    }
    const policy = isForeground ? 'Foreground' : policyOf(live.object);
    return this.#delete(path, uid, version, policy);
  }

  /** True where a dependent waits for its own dependents: it may wait for this one. */
  #isInCircle(resource: number, row: number): boolean {
    let isFound = false;
    this.graph.dependents(resource, row, (other, otherRow) => {
      if ((this.graph.flagsOf(other, otherRow) & FOREGROUND) !== 0) isFound = true;
    });
    return isFound;
  }

  /** Owners in a circle would wait for each other for ever: this one holds none up any more. */
  #unblock(path: string, live: Live): Promise<WorkResult> {
    const ownerReferences = listAt(live.object, 'metadata', 'ownerReferences').map((one) =>
      isObject(one) ? { ...one, blockOwnerDeletion: false } : one,
    );
    return this.#patchMetadata(path, live, { ownerReferences });
  }

  async #verdictOn(resource: number, row: number, owner: OwnerReference): Promise<Verdict> {
    const index = this.#resourceOf(owner);
    const watched = index === undefined ? undefined : this.#watched[index];
    // Who is gone by that uid may have been something else: such an owner is never judged.
    if (index === undefined || watched === undefined) return 'unknown';
    const namespace = this.#namespaceOf(resource, row);
    // A cluster-scoped object cannot name an owner in a namespace; upstream keeps such objects.
    if (watched.resource.namespaced && namespace === '') {
      this.#searchElsewhere(resource, row, owner, index);
      return 'unknown';
    }
    if (this.graph.isAbsent(owner.uid)) return 'dangling';
    const place = this.#locate(resource, row, owner);
    if (place !== undefined && this.graph.hasUid(place[0], place[1], owner.uid)) {
      return (this.graph.flagsOf(place[0], place[1]) & FOREGROUND) === 0 ? 'solid' : 'waiting';
    }
    const path = objectPath(
      watched.resource,
      watched.resource.namespaced ? namespace : '',
      owner.name,
    );
    const answer = await this.#options.client.request({ method: 'GET', path });
    if (!answer.ok && answer.code !== 404) return 'unreadable';
    if (answer.ok && stringAt(answer.object, 'metadata', 'uid') === owner.uid) {
      return isForeground(answer.object) ? 'waiting' : 'solid';
    }
    if (this.#searchElsewhere(resource, row, owner, index) < 0) this.graph.markAbsent(owner.uid);
    return 'dangling';
  }

  /**
   * Where the owner is that is not where the dependent says: its row, or -1 where there is none.
   * One in another namespace counts as gone for this dependent, whose user is told so once; for
   * those beside it it is there.
   */
  #searchElsewhere(resource: number, row: number, owner: OwnerReference, index: number): number {
    const informer = this.#watched[index]?.informer;
    const found = this.graph.search(index, owner.uid, informer?.idLimit ?? 0);
    if (found === undefined || informer === undefined) return 0;
    if (found >= 0) this.#tellForeign(resource, row, owner, informer, found);
    return found;
  }

  #tellForeign(
    resource: number,
    row: number,
    owner: OwnerReference,
    informer: Informer,
    found: number,
  ): void {
    const [namespace, name] = this.#nameOf(resource, row);
    // A wrong name beside it is a wrong reference all the same, but none that people are told of.
    const place = informer.keyOf(found);
    if (place.slice(0, Math.max(0, place.indexOf('/'))) === namespace) return;
    const { apiVersion, kind, uid } = owner;
    const where = `namespace: ${namespace}, name: ${owner.name}, uid: ${uid}`;
    const text =
      `ownerRef [${apiVersion}/${kind}, ${where}] does not exist ` + `in namespace "${namespace}"`;
    const dependent = this.#watched[resource]?.resource.kind ?? '';
    const reason = 'OwnerRefInvalidNamespace';
    const ownUid = this.graph.uidOf(resource, row);
    const told = `${ownUid} ${uid}`;
    if (this.#toldForeign.has(told)) return;
    this.#toldForeign.add(told);
    if (this.#toldForeign.size > TOLD_MAX) {
      for (const oldest of this.#toldForeign.keys().take(1)) this.#toldForeign.delete(oldest);
    }
    this.#options.announce(dependent, namespace, name, 'Warning', reason, text, ownUid);
  }

  async #keepReferences(
    path: string,
    live: Live,
    kept: readonly OwnerReference[],
  ): Promise<WorkResult> {
    const uids = new Set(kept.map(({ uid }) => uid));
    const ownerReferences = listAt(live.object, 'metadata', 'ownerReferences').filter((one) =>
      uids.has(stringAt(one, 'uid')),
    );
    return this.#patchMetadata(path, live, {
      ownerReferences: ownerReferences.length === 0 ? null : [...ownerReferences],
    });
  }

  async #patchMetadata(path: string, live: Live, change: JsonObject): Promise<WorkResult> {
    const resourceVersion = stringAt(live.object, 'metadata', 'resourceVersion');
    const written = await this.#options.client.request({
      method: 'PATCH',
      path,
      contentType: CONTENT.mergePatch,
      body: { metadata: { resourceVersion, ...change } },
    });
    return written.ok || written.code === 404 ? 'done' : 'retry';
  }

  async #delete(
    path: string,
    uid: string,
    resourceVersion: string,
    propagationPolicy: string,
  ): Promise<WorkResult> {
    const preconditions = { uid, resourceVersion };
    const body = { propagationPolicy, preconditions };
    const gone = await this.#options.client.request({ method: 'DELETE', path, body });
    if (gone.ok) this.deletions++;
    return gone.ok || gone.code === 404 ? 'done' : 'retry';
  }

  /** The object is being deleted: it may wait for its dependents, or for their release. */
  async #finishDeletion(
    resource: number,
    row: number,
    path: string,
    live: Live,
  ): Promise<WorkResult> {
    const flags = this.graph.flagsOf(resource, row);
    if ((flags & ORPHANING) !== 0) {
      if (!(await this.#orphan(resource, row))) return 'retry';
      return this.#dropFinalizer(path, live, 'orphan');
    }
    if ((flags & FOREGROUND) === 0) return 'done';
    const blocking: [number, number][] = [];
    this.graph.dependents(resource, row, (other, otherRow, isBlocking) => {
      if (isBlocking) blocking.push([other, otherRow]);
    });
    if (blocking.length === 0) return this.#dropFinalizer(path, live, 'foregroundDeletion');
    for (const [other, otherRow] of blocking) {
      if (this.graph.flagsOf(other, otherRow) !== 0) continue;
      this.#workers.add(other * ROWS_PER_RESOURCE + otherRow);
    }
    return 'done';
  }

  /** Takes the owner out of every dependent; true when all of them are free. */
  async #orphan(resource: number, row: number): Promise<boolean> {
    const uid = this.graph.uidOf(resource, row);
    const paths: string[] = [];
    this.graph.dependents(resource, row, (other, otherRow) => {
      const [namespace, name] = this.#nameOf(other, otherRow);
      const watched = this.#watched[other];
      if (watched !== undefined) paths.push(objectPath(watched.resource, namespace, name));
    });
    let isFree = true;
    for (const path of paths) {
      const live = await this.#options.client.request({ method: 'GET', path });
      if (!live.ok) {
        if (live.code !== 404) isFree = false;
        continue;
      }
      const all = referencesOf(listAt(live.object, 'metadata', 'ownerReferences'));
      const kept = all.filter((one) => one.uid !== uid);
      if (kept.length === all.length) continue;
      if ((await this.#keepReferences(path, live, kept)) !== 'done') isFree = false;
    }
    return isFree;
  }

  async #dropFinalizer(path: string, live: Live, finalizer: string): Promise<WorkResult> {
    const before = listAt(live.object, 'metadata', 'finalizers');
    const after = before.filter((one) => one !== finalizer);
    if (after.length === before.length) return 'done';
    return this.#patchMetadata(path, live, { finalizers: after.length === 0 ? null : [...after] });
  }
}

function kindOf(resource: ApiResource): string {
  return `${groupVersionOf(resource)} ${resource.kind}`;
}

/** Never 0. */
function hashOfKey(resource: number, key: string): number {
  const bytes = Buffer.from(`${resource}/${key}`);
  return hashOf(bytes, 0, bytes.length) || 1;
}

function isBlocking(object: JsonObject): boolean {
  return listAt(object, 'metadata', 'ownerReferences').some(
    (one) => isObject(one) && one['blockOwnerDeletion'] === true,
  );
}

function isForeground(object: JsonObject): boolean {
  return (
    stringAt(object, 'metadata', 'deletionTimestamp') !== '' &&
    listAt(object, 'metadata', 'finalizers').includes('foregroundDeletion')
  );
}

function policyOf(object: JsonObject): string {
  const finalizers = listAt(object, 'metadata', 'finalizers');
  if (finalizers.includes('orphan')) return 'Orphan';
  return finalizers.includes('foregroundDeletion') ? 'Foreground' : 'Background';
}
