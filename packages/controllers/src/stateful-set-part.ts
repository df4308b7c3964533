/** StatefulSets: pods with ordinals and claims, made, updated and taken away in their order. */
import type { Random } from '@megaplane/base/random';
import { CONTENT, type Client, type ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { PartOptions } from './part-options.ts';
import type { Announce } from './announce.ts';
import { ControllerRevisions, REVISIONS_PATH } from './controller-revisions.ts';
import { Expectations } from './expectations.ts';
import { ObjectCache } from './object-cache.ts';
import { PodClaims, type Adopted } from './pod-claims.ts';
import { failureOf, ownerOfObject, PodControl, revisionOf, type PodOwner } from './pod-control.ts';
import { PodRevisions } from './pod-revisions.ts';
import type { PodRows } from './pod-rows.ts';
import {
  PHASE_FAILED,
  PHASE_RUNNING,
  PHASE_SUCCEEDED,
  REPLICA_DELETING,
  REPLICA_READY,
} from './replica-pods.ts';
import {
  claimOwners,
  claimsOfOrdinal,
  identityOf,
  nextSteps,
  podOfOrdinal,
  statefulStatus,
  type StatefulPod,
  type StatefulStep,
  type StatefulView,
} from './stateful/stateful-set.ts';
import { Workers, type WorkResult } from './workers.ts';

const WORKERS = 5;
const ROOT = '/apis/apps/v1';
const HASH_LABEL = 'controller.kubernetes.io/hash';
/** How soon it is looked again whether the informer shows what was written. */
const EXPECTATION_LOOK_MS = 20;

export interface StatefulSetPartOptions extends PartOptions {
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

export class StatefulSetPart {
  readonly #options: StatefulSetPartOptions;
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #sets: ObjectCache;
  readonly #claims: ObjectCache;
  readonly #ownership: PodClaims;
  readonly #revisions: ControllerRevisions;
  readonly #ofPods: PodRevisions;
  readonly #expectations = new Expectations();

  constructor(options: StatefulSetPartOptions) {
    this.#options = options;
    const { client, informers, pods, random, onError } = options;
    this.#client = client;
    this.#workers = new Workers(
      client.timers,
      WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('statefulset'),
    );
    this.#ownership = new PodClaims(client, new PodControl(client, options.announce), pods);
    this.#sets = new ObjectCache(informers, `${ROOT}/statefulsets`, (key, after) => {
      this.#ownership.note(key, after);
      if (after !== undefined) this.#workers.add(key);
      else this.#expectations.forget(key);
    });
    this.#claims = new ObjectCache(informers, '/api/v1/persistentvolumeclaims', () => {});
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
    const nowMs = this.#client.timers.nowMs();
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
    for (const one of claimed.adopted) await this.#giveIdentity(key, owner, one);
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
      found.push({
        ordinal: Number(ordinal[0]),
        name,
        revision: this.#ofPods.of(row),
        isDeleting: (flags & REPLICA_DELETING) !== 0,
        isFailed: phase === PHASE_FAILED,
        isSucceeded: phase === PHASE_SUCCEEDED,
        isReady,
        isAvailable: isReady && (minReadyMs === 0 || readyMs + minReadyMs <= nowMs),
      });
    }
    return found.toSorted((a, b) => a.ordinal - b.ordinal);
  }

  /** Claims first, then the steps that may be taken; false where something failed. */
  async #act(round: Round): Promise<boolean> {
    const steps = nextSteps(round.view);
    for (const pod of round.view.pods) {
      const isCondemned = steps.some(
        (step) => step.kind === 'delete' && step.isScaleDown && step.pod === pod,
      );
      if (!(await this.#keepClaims(round, pod, isCondemned))) return false;
    }
    const results = await Promise.all(steps.map((step) => this.#take(round, step)));
    return results.every((isOk) => isOk);
  }

  #take(round: Round, step: StatefulStep): Promise<boolean> {
    switch (step.kind) {
      case 'create':
        return this.#create(round, step.ordinal, step.isUpdate);
      case 'delete':
        return this.#delete(round, step.pod);
      case 'recreate': {
        const how = step.pod.isFailed ? 'failed' : 'terminated';
        const where = `${round.owner.namespace}/${round.owner.name}`;
        const text = `StatefulSet ${where} is recreating ${how} Pod ${step.pod.name}`;
        const reason = step.pod.isFailed ? 'RecreatingFailedPod' : 'RecreatingTerminatedPod';
        this.#tell(round.owner, step.pod.isFailed ? 'Warning' : 'Normal', reason, text);
        return this.#delete(round, step.pod);
      }
    }
  }

  async #create(round: Round, ordinal: number, isUpdate: boolean): Promise<boolean> {
    const { key, owner, view, templates, nowMs } = round;
    const pod = `${owner.name}-${ordinal}`;
    for (const claim of claimsOfOrdinal(view.set, owner, ordinal)) {
      if (!(await this.#makeClaim(owner, pod, claim))) return false;
    }
    const revision = isUpdate ? view.update : view.current;
    const template = templates.get(revision) ?? objectAt(view.set, 'spec', 'template') ?? {};
    const body = podOfOrdinal(view.set, template, owner, ordinal, revision);
    const path = `/api/v1/namespaces/${owner.namespace}/pods`;
    const answer = await this.#client.request({ method: 'POST', path, body });
    if (answer.ok) this.#expectations.expectRevision(key, revisionOf(answer.object), nowMs);
    this.#tellWrite(owner, 'Create', `Pod ${pod}`, answer);
    return answer.ok;
  }

  async #makeClaim(owner: PodOwner, pod: string, claim: JsonObject): Promise<boolean> {
    const name = stringAt(claim, 'metadata', 'name');
    if (this.#claims.get(`${owner.namespace}/${name}`) !== undefined) return true;
    const path = `/api/v1/namespaces/${owner.namespace}/persistentvolumeclaims`;
    const answer = await this.#client.request({ method: 'POST', path, body: claim });
    if (!answer.ok && answer.code === 409) return true;
    const text = `create Claim ${name} Pod ${pod} in StatefulSet ${owner.name}`;
    if (answer.ok) this.#tell(owner, 'Normal', 'SuccessfulCreate', `${text} success`);
    else {
      const why = `${text} failed error: ${failureOf(answer).text}`;
      this.#tell(owner, 'Warning', 'FailedCreate', why);
    }
    return answer.ok;
  }

  /** An adopted pod gets the labels that pods of a set are known by. */
  async #giveIdentity(key: string, owner: PodOwner, { name, revision }: Adopted): Promise<void> {
    const path = `/api/v1/namespaces/${owner.namespace}/pods/${name}`;
    const body = { metadata: { labels: identityOf(name) } };
    const contentType = CONTENT.mergePatch;
    const answer = await this.#client.request({ method: 'PATCH', path, contentType, body });
    // One that has been a set's before has them already.
    if (!answer.ok || revisionOf(answer.object) === revision) return;
    this.#expectations.expectRevision(key, revisionOf(answer.object), this.#client.timers.nowMs());
    this.#tellWrite(owner, 'Update', `Pod ${name}`, answer);
  }

  /** Owner references of a pod's claims as the retention policy wants them. */
  async #keepClaims(round: Round, pod: StatefulPod, isCondemned: boolean): Promise<boolean> {
    const { owner, view } = round;
    const { informer } = this.#options.pods;
    let written: ClientResponse | undefined;
    for (const wanted of claimsOfOrdinal(view.set, owner, pod.ordinal)) {
      const name = stringAt(wanted, 'metadata', 'name');
      const claim = this.#claims.get(`${owner.namespace}/${name}`);
      if (claim === undefined) continue;
      const before = [...listAt(claim, 'metadata', 'ownerReferences')];
      const taker = isCondemned ? await this.#ownerOfPod(owner, pod.name) : null;
      const after = claimOwners(before, view.set, owner, taker);
      if (equals(before, after) || informer.find(owner.namespace, pod.name) < 0) continue;
      const path = `/api/v1/namespaces/${owner.namespace}/persistentvolumeclaims/${name}`;
      const metadata = { ...objectAt(claim, 'metadata'), ownerReferences: after };
      const body = { ...claim, apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata };
      const answer = await this.#client.request({ method: 'PUT', path, body });
      if (!answer.ok && answer.code !== 404) return false;
      if (answer.ok) written = answer;
    }
    if (written !== undefined && !isCondemned) {
      this.#tellWrite(owner, 'Update', `Pod ${pod.name}`, written);
    }
    return true;
  }

  async #ownerOfPod({ namespace }: PodOwner, name: string): Promise<PodOwner | null> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const answer = await this.#client.request({ method: 'GET', path });
    return answer.ok ? ownerOfObject('v1', 'Pod', answer.object) : null;
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
