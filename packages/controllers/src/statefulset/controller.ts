/** StatefulSets: pods with ordinals and claims, made, updated and taken away in their order. */
import type { Random } from '@megaplane/base/random';
import { CONTENT, type Client, type ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { pathOf } from '@megaplane/machinery/scan';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { ControllerRevisions, REVISIONS_PATH } from '../framework/controller-revisions.ts';
import { Expectations } from '../framework/expectations.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { ControllerRefManager } from '../framework/controller-ref-manager.ts';
import {
  failureOf,
  ownerOfObject,
  PodControl,
  revisionOf,
  type PodOwner,
} from '../framework/pod-control.ts';
import { PodRevisions } from '../columns/pod-revisions.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import {
  PHASE_FAILED,
  PHASE_PENDING,
  PHASE_RUNNING,
  PHASE_SUCCEEDED,
  REPLICA_DELETING,
  REPLICA_READY,
} from '../columns/replica-pods.ts';
import { ClaimWriter } from './claim-writer.ts';
import {
  identityOf,
  isParallel,
  nextSteps,
  POD_NAME_LABEL,
  podOfOrdinal,
  splitPods,
  statefulStatus,
  type StatefulPod,
  type StatefulStep,
  type StatefulView,
  unnamedPods,
} from './stateful-set.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
const ROOT = '/apis/apps/v1';
const HASH_LABEL = 'controller.kubernetes.io/hash';
const POD_NAME = pathOf(POD_NAME_LABEL);
/** How soon it is looked again whether the informer shows what was written. */
const EXPECTATION_LOOK_MS = 20;
/** Of a pod whose ordinal the set wants. */
const WANTED = { isScaledAway: false } as const;

export interface StatefulSetControllerOptions extends ControllerContext {
  readonly random: Random;
  readonly pods: PodRows;
  readonly announce: Announce;
}

/** One look at a set. */
interface Round {
  readonly key: string;
  readonly owner: PodOwner;
  readonly view: StatefulView;
  /** Templates by the name of their revision. */
  readonly templates: ReadonlyMap<string, JsonObject>;
  readonly nowMs: number;
}

export class StatefulSetController {
  readonly #options: StatefulSetControllerOptions;
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #sets: ObjectCache;
  readonly #claimWriter: ClaimWriter;
  readonly #ownership: ControllerRefManager;
  readonly #revisions: ControllerRevisions;
  readonly #ofPods: PodRevisions;
  readonly #expectations = new Expectations();

  constructor(options: StatefulSetControllerOptions) {
    this.#options = options;
    const { client, informers, pods, random, onError } = options;
    this.#client = client;
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('statefulset'),
    );
    this.#ownership = new ControllerRefManager(
      client,
      new PodControl(client, options.announce),
      pods,
    );
    this.#sets = new ObjectCache(informers, `${ROOT}/statefulsets`, (key, after) => {
      this.#ownership.note(key, after);
      if (after !== undefined) this.#workers.add(key);
      else this.#expectations.forget(key);
    });
    const claims = new ObjectCache(informers, '/api/v1/persistentvolumeclaims', () => {});
    this.#claimWriter = new ClaimWriter(client, claims, (owner, type, reason, message) =>
      this.#tell(owner, type, reason, message),
    );
    const revisions = new ObjectCache(informers, REVISIONS_PATH, () => {});
    this.#revisions = new ControllerRevisions(client, revisions, HASH_LABEL);
    this.#ofPods = new PodRevisions(random.fork('stateful revisions'));
    pods.listen({ changed: (row, bytes, scan) => this.#podChanged(row, bytes, scan) });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #podChanged(row: number, bytes: Buffer, scan: ObjectScan | null): void {
    const { pods } = this.#options.pods;
    const owner = pods.ownerOf(row);
    if (scan !== null && owner >= 0) this.#ofPods.read(row, bytes, scan);
    const before = pods.ownerBefore;
    for (const one of owner === before ? [owner] : [owner, before]) {
      const key = one < 0 ? undefined : this.#sets.keyOfUid(pods.uidOf(one));
      if (key !== undefined) this.#workers.add(key);
    }
    if (scan === null || owner >= 0) return;
    const namespace = bytes.toString('utf8', scan.namespaceStart, scan.namespaceEnd);
    for (const key of this.#ownership.wanting(row, this.#sets.inNamespace(namespace))) {
      this.#workers.add(key);
    }
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const set = this.#sets.get(key);
    if (set === undefined) return 'done';
    const owner = ownerOfObject('apps/v1', 'StatefulSet', set);
    const nowMs = this.#client.timers.wallMs();
    const seen = this.#options.pods.informer.revision;
    if (!this.#expectations.isMet(key, seen, this.#options.pods.isGoing, nowMs)) {
      return { againMs: EXPECTATION_LOOK_MS };
    }
    const path = `${ROOT}/namespaces/${owner.namespace}/statefulsets/${owner.name}`;
    const claimed = await this.#ownership.claim(key, path, owner, (name) =>
      isMember(owner.name, name),
    );
    if (claimed === 'failed') return 'retry';
    for (const one of claimed.revisions) this.#expectations.expectRevision(key, one, nowMs);
    if (claimed.revisions.length > 0) return { againMs: EXPECTATION_LOOK_MS };
    const given = numberAt(set, 'status', 'collisionCount');
    const found = await this.#revisions.current(owner, set, given);
    if (found === undefined) return 'retry';
    const update = stringAt(found.revision, 'metadata', 'name');
    const known = [...found.old, found.revision];
    const templates = new Map(
      known.map((one) => [stringAt(one, 'metadata', 'name'), templateOf(one)]),
    );
    const named = stringAt(set, 'status', 'currentRevision');
    const current = templates.has(named) ? named : update;
    const minReadyMs = 1000 * numberAt(set, 'spec', 'minReadySeconds');
    const pods = this.#podsOf(owner, nowMs, minReadyMs);
    const round: Round = { key, owner, view: { set, pods, current, update }, templates, nowMs };
    const isDeleting = stringAt(set, 'metadata', 'deletionTimestamp') !== '';
    const isDone = isDeleting || (await this.#act(round));
    const isWritten = await this.#writeStatus(round, found.collisions);
    const used = new Set([current, update, ...pods.map((pod) => pod.revision)]);
    const limit = valueAt(set, 'spec', 'revisionHistoryLimit');
    const kept = typeof limit === 'number' ? limit : 10;
    const unused = found.old.filter((one) => !used.has(stringAt(one, 'metadata', 'name')));
    await this.#revisions.forget(owner, unused, kept, () => false);
    if (!isDone || !isWritten) return 'retry';
    const waits = pods.some((pod) => pod.isReady && !pod.isAvailable);
    return waits ? { againMs: Math.min(minReadyMs, 1000) } : 'done';
  }

  #podsOf(owner: PodOwner, nowMs: number, minReadyMs: number): StatefulPod[] {
    const { pods, informer } = this.#options.pods;
    const found: StatefulPod[] = [];
    const id = pods.findOwner(owner.uid);
    for (let row = pods.firstOfOwner(id); row >= 0; row = pods.nextOfOwner(row)) {
      const name = informer.keyOf(row).slice(owner.namespace.length + 1);
      const ordinal = /^\d+$/.exec(name.slice(owner.name.length + 1));
      if (!name.startsWith(`${owner.name}-`) || ordinal === null) continue;
      const flags = pods.flags.get(row);
      const phase = pods.phaseOf(row);
      const isReady = phase === PHASE_RUNNING && (flags & REPLICA_READY) !== 0;
      const readyMs = pods.readyS.get(row) * 1000;
      const labels = pods.labelsOf(row);
      found.push({
        ordinal: Number(ordinal[0]),
        name,
        revision: this.#ofPods.of(row),
        isDeleting: (flags & REPLICA_DELETING) !== 0,
        isPending: phase === PHASE_PENDING,
        isFailed: phase === PHASE_FAILED,
        isSucceeded: phase === PHASE_SUCCEEDED,
        isReady,
        isAvailable: isReady && (minReadyMs === 0 || readyMs + minReadyMs <= nowMs),
        isNamed: labels < 0 || pods.labelIn(labels, POD_NAME) === name,
      });
    }
    return found.toSorted((a, b) => a.ordinal - b.ordinal);
  }

  /** What there is first, then the steps that may be taken; false where something failed. */
  async #act(round: Round): Promise<boolean> {
    const { view } = round;
    for (const { name } of unnamedPods(view)) {
      if (!(await this.#giveIdentity(round, name))) return false;
    }
    if (!(await this.#keepClaims(round))) return false;
    const steps = nextSteps(view);
    // Few at first, twice as many when all went well: what is refused once is not asked for often.
    for (let from = 0, size = 1; from < steps.length; from += size, size *= 2) {
      const batch = steps.slice(from, from + size);
      const results = await Promise.all(batch.map((step) => this.#take(round, step)));
      if (results.includes(false)) return false;
    }
    return true;
  }

  #take(round: Round, step: StatefulStep): Promise<boolean> {
    switch (step.kind) {
      case 'create':
        return this.#create(round, step.ordinal, step.isUpdate);
      case 'delete':
      case 'recreate':
        return this.#delete(round, step.pod);
    }
  }

  async #create(round: Round, ordinal: number, isUpdate: boolean): Promise<boolean> {
    const { key, owner, view, templates, nowMs } = round;
    const name = `${owner.name}-${ordinal}`;
    if (this.#claimWriter.isStale(view.set, owner, ordinal)) return false;
    const error = await this.#claimWriter.make(view.set, owner, ordinal);
    if (error !== undefined) {
      const text = `create Pod ${name} in StatefulSet ${owner.name} failed error: ${error}`;
      this.#tell(owner, 'Warning', 'FailedCreate', text);
      return false;
    }
    const revision = isUpdate ? view.update : view.current;
    const template = templates.get(revision) ?? objectAt(view.set, 'spec', 'template') ?? {};
    const body = podOfOrdinal(view.set, template, owner, ordinal, revision);
    const path = `/api/v1/namespaces/${owner.namespace}/pods`;
    const answer = await this.#client.request({ method: 'POST', path, body });
    if (answer.ok) this.#expectations.expectRevision(key, revisionOf(answer.object), nowMs);
    if (answer.ok) {
      const pod = { name, ordinal, isPending: true, ...WANTED };
      const kept = await this.#claimWriter.keep(view.set, owner, pod);
      if (kept === 'failed') return false;
    }
    // somebody else's pod has the name: as upstream, nobody is told of each try
    if (answer.ok || answer.status.reason !== 'AlreadyExists') {
      this.#tellWrite(owner, 'Create', `Pod ${name}`, answer);
    }
    return answer.ok;
  }

  async #giveIdentity({ key, owner, nowMs }: Round, name: string): Promise<boolean> {
    const path = `/api/v1/namespaces/${owner.namespace}/pods/${name}`;
    const body = { metadata: { labels: identityOf(name) } };
    const contentType = CONTENT.mergePatch;
    const answer = await this.#client.request({ method: 'PATCH', path, contentType, body });
    if (answer.ok) this.#expectations.expectRevision(key, revisionOf(answer.object), nowMs);
    this.#tellWrite(owner, 'Update', `Pod ${name}`, answer);
    return answer.ok;
  }

  /**
   * Claims of the pods that there are: missing ones are made for pods that still wait, and owner
   * references follow the policy. In order nothing is done past a pod that is not well.
   */
  async #keepClaims({ owner, view }: Round): Promise<boolean> {
    const { set } = view;
    if (listAt(set, 'spec', 'volumeClaimTemplates').length === 0) return true;
    const [wanted, condemned] = splitPods(view);
    for (const pod of wanted) {
      if (pod.isFailed || pod.isSucceeded) {
        if (isParallel(set)) continue;
        return true;
      }
      const error = pod.isPending
        ? await this.#claimWriter.make(set, owner, pod.ordinal)
        : undefined;
      if (error !== undefined) return false;
      const isWell = pod.isAvailable && !pod.isDeleting;
      if (!isWell && !isParallel(set) && !pod.isPending) return true;
      const kept = await this.#claimWriter.keep(set, owner, { ...pod, ...WANTED });
      if (kept === 'failed') return false;
      if (kept === 'written' && !pod.isPending) this.#tellKept(owner, pod.name);
      if (!isWell && !isParallel(set)) return true;
    }
    if (wanted.length < numberAt(set, 'spec', 'replicas') && !isParallel(set)) return true;
    for (const pod of condemned) {
      const going = { ...pod, isPending: false, isScaledAway: true };
      const kept = await this.#claimWriter.keep(set, owner, going);
      if (kept === 'failed') return false;
    }
    return true;
  }

  #tellKept(owner: PodOwner, pod: string): void {
    const text = `update Pod ${pod} in StatefulSet ${owner.name} successful`;
    this.#tell(owner, 'Normal', 'SuccessfulUpdate', text);
  }

  async #delete({ key, owner, nowMs }: Round, pod: StatefulPod): Promise<boolean> {
    const path = `/api/v1/namespaces/${owner.namespace}/pods/${pod.name}`;
    const at = `${owner.namespace}/${pod.name}`;
    this.#expectations.expectDeletion(key, at, nowMs);
    const answer = await this.#client.request({ method: 'DELETE', path });
    if (!answer.ok) this.#expectations.unexpectDeletion(key, at);
    if (!answer.ok && answer.code === 404) return true;
    this.#tellWrite(owner, 'Delete', `Pod ${pod.name}`, answer);
    return answer.ok;
  }

  #tellWrite(
    owner: PodOwner,
    verb: 'Create' | 'Delete' | 'Update',
    what: string,
    answer: ClientResponse,
  ): void {
    const text = `${verb.toLowerCase()} ${what} in StatefulSet ${owner.name}`;
    if (answer.ok) this.#tell(owner, 'Normal', `Successful${verb}`, `${text} successful`);
    else {
      const why = `${text} failed error: ${failureOf(answer).text}`;
      this.#tell(owner, 'Warning', `Failed${verb}`, why);
    }
  }

  async #writeStatus({ view, owner }: Round, collisions: number): Promise<boolean> {
    const status = statefulStatus(view, collisions);
    if (equals(valueAt(view.set, 'status') ?? {}, status)) return true;
    const path = `${ROOT}/namespaces/${owner.namespace}/statefulsets/${owner.name}/status`;
    const body = { ...view.set, apiVersion: 'apps/v1', kind: 'StatefulSet', status };
    const answer = await this.#client.request({ method: 'PUT', path, body });
    return answer.ok || answer.code === 404;
  }

  #tell(owner: PodOwner, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { kind, namespace, name, uid } = owner;
    this.#options.announce(kind, namespace, name, type, reason, message, uid);
  }
}

/** Whether a pod's name is the set's with an ordinal. */
function isMember(set: string, pod: string): boolean {
  return pod.startsWith(`${set}-`) && /^\d+$/.test(pod.slice(set.length + 1));
}

/** The template that a revision keeps. */
function templateOf(revision: JsonObject): JsonObject {
  const { $patch: _patch, ...template } = objectAt(revision, 'data', 'spec', 'template') ?? {};
  return template;
}
