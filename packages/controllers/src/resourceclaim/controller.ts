/**
 * Claims of devices (resource.k8s.io/v1). A pod that names a template gets a claim of its own,
 * which goes with it; who has ended is taken from `reservedFor`, and a claim that nobody uses any
 * more is given back: its allocation and the scheduler's finalizer go.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { Announce } from '../framework/event-recorder.ts';
import { groupVersionOf, type ApiResource } from '../framework/api-resources.ts';
import { livePod, podPath } from '../framework/uncached-pod.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import {
  PHASE_FAILED,
  PHASE_RUNNING,
  PHASE_SUCCEEDED,
  REPLICA_BOUND,
  REPLICA_DELETING,
} from '../columns/replica-pods.ts';
import { ClaimMetrics } from './claim-metrics.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 10;
const VERSION = 'resource.k8s.io/v1';
const ROOT = `/apis/${VERSION}`;
const MARK = Buffer.from('"resourceClaims"');
const CLAIM_NAME = 'resource.kubernetes.io/pod-claim-name';
const FINALIZER = 'resource.kubernetes.io/delete-protection';
/** Bytes of the part of a claim's name that the server adds five to. */
const BASE_NAME_MAX = 57;
/** Owners of claims that may use one: more are never reserved at a time by the API. */
const RESERVED_MAX = 256;

export interface ResourceClaimsOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly announce: Announce;
}

/** Works on `pod namespace/name` and `claim namespace/name`. */
export class ResourceClaimsController {
  readonly #options: ResourceClaimsOptions;
  readonly #client: Client;
  readonly #metrics: ClaimMetrics;
  readonly #workers: Workers<string>;
  #claims: ObjectCache | undefined;
  /** By a pod's key: claims that it owns or that are reserved for it. */
  readonly #claimsOfPod: Map<string, Set<string>> = new Map();
  /** By a template's key: pods that wait for it. */
  readonly #waiting: Map<string, Set<string>> = new Map();

  constructor(options: ResourceClaimsOptions) {
    this.#options = options;
    const { client, informers, onError, pods } = options;
    this.#client = client;
    this.#metrics = new ClaimMetrics(informers.metrics);
    const queue = informers.queues.queue('resource_claim');
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      queue,
    );
    pods.listen({ changed: (row, bytes, scan) => this.#podChanged(row, bytes, scan) });
  }

  /** Begins once the server has the kinds; one without them has no such pods either. */
  setResources(found: readonly ApiResource[]): void {
    const has = (name: string): boolean =>
      found.some((one) => groupVersionOf(one) === VERSION && one.resource === name);
    if (this.#claims !== undefined || !has('resourceclaims')) return;
    const { informers } = this.#options;
    this.#claims = new ObjectCache(informers, `${ROOT}/resourceclaims`, (key, after, before) => {
      this.#metrics.changed(before, after);
      for (const pod of usersOf(before)) this.#forget(pod, key);
      for (const pod of usersOf(after)) this.#note(pod, key);
      if (after !== undefined) this.#workers.add(`claim ${key}`);
      else for (const pod of usersOf(before)) this.#workers.add(`pod ${pod}`);
    });
    const templates = new ObjectCache(informers, `${ROOT}/resourceclaimtemplates`, (key) => {
      for (const pod of this.#waiting.get(key) ?? []) this.#workers.add(`pod ${pod}`);
      this.#waiting.delete(key);
    });
    this.#templateOf = (key) => templates.get(key);
  }

  #templateOf: (key: string) => JsonObject | undefined = () => undefined;

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #note(pod: string, claim: string): void {
    const known = this.#claimsOfPod.get(pod);
    if (known === undefined) this.#claimsOfPod.set(pod, new Set([claim]));
    else known.add(claim);
  }

  #forget(pod: string, claim: string): void {
    const known = this.#claimsOfPod.get(pod);
    if (known?.delete(claim) === true && known.size === 0) this.#claimsOfPod.delete(pod);
  }

  #podChanged(row: number, bytes: Buffer, scan: ObjectScan | null): void {
    if (this.#claims === undefined) return;
    const key = this.#options.pods.informer.keyOf(row);
    if (scan === null || this.#isOver(row)) {
      for (const claim of this.#claimsOfPod.get(key) ?? []) this.#workers.add(`claim ${claim}`);
      return;
    }
    // One that runs has its claims; most pods have none.
    if (this.#options.pods.pods.phaseOf(row) === PHASE_RUNNING) return;
    if (scan.specStart < 0 || !bytes.subarray(scan.specStart, scan.specEnd).includes(MARK)) return;
    this.#workers.add(`pod ${key}`);
  }

  /** Ended, or to be deleted before it was ever bound. */
  #isOver(row: number): boolean {
    const { pods } = this.#options.pods;
    const flags = pods.flags.get(row);
    const isNever = (flags & REPLICA_DELETING) !== 0 && (flags & REPLICA_BOUND) === 0;
    const phase = pods.phaseOf(row);
    return isNever || phase === PHASE_SUCCEEDED || phase === PHASE_FAILED;
  }

  async #work(key: string): Promise<WorkResult> {
    const at = key.indexOf(' ');
    const object = key.slice(at + 1);
    return key.startsWith('pod ') ? this.#workPod(object) : this.#workClaim(object);
  }

  /** A pod: what it names gets made, and told to it. */
  async #workPod(key: string): Promise<WorkResult> {
    const pod = await livePod(this.#client, key);
    // One that has ended needs no claim: what it had is taken from it, and must not come again.
    if (typeof pod === 'string') return pod;
    const told = listAt(pod, 'status', 'resourceClaimStatuses');
    const statuses = new Map(told.map((one) => [stringAt(one, 'name'), one]));
    let isNew = false;
    for (const wanted of listAt(pod, 'spec', 'resourceClaims')) {
      const at = stringAt(wanted, 'name');
      if (stringAt(wanted, 'resourceClaimTemplateName') === '') continue;
      if (this.#hasClaim(pod, statuses.get(at))) continue;
      const claim = await this.#claimFor(pod, key, wanted);
      if ('error' in claim) return this.#tellFailure(pod, at, claim);
      isNew = true;
      statuses.set(at, { name: at, resourceClaimName: claim.name });
    }
    if (isNew) {
      const body = { status: { resourceClaimStatuses: [...statuses.values()] } };
      const written = await this.#client.request({
        ...{ method: 'PATCH', path: `${podPath(key)}/status`, body },
        contentType: CONTENT.strategicPatch,
      });
      if (!written.ok && written.code !== 404) return 'retry';
    }
    if (stringAt(pod, 'spec', 'nodeName') === '') return 'done';
    return this.#reserveAll(pod, statuses);
  }

  /** What was told before is not made again, unless its claim is gone or another's. */
  #hasClaim(pod: JsonObject, status: JsonValue | undefined): boolean {
    if (status === undefined) return false;
    const name = stringAt(status, 'resourceClaimName');
    if (name === '') return true;
    const known = this.#claims?.get(`${stringAt(pod, 'metadata', 'namespace')}/${name}`);
    return known !== undefined && ownerOf(known)?.uid === stringAt(pod, 'metadata', 'uid');
  }

  #tellFailure(
    pod: JsonObject,
    claim: string,
    { error, isWaiting }: { readonly error: string; readonly isWaiting: boolean },
  ): WorkResult {
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const name = stringAt(pod, 'metadata', 'name');
    const text = `PodResourceClaim ${claim}: ${error}`;
    const uid = stringAt(pod, 'metadata', 'uid');
    const reason = 'FailedResourceClaimCreation';
    this.#options.announce('Pod', namespace, name, 'Warning', reason, text, uid);
    return isWaiting ? 'done' : 'retry';
  }

  /** The claim of a pod that an earlier try made without telling it, or a new one. */
  async #claimFor(
    pod: JsonObject,
    key: string,
    wanted: JsonValue,
  ): Promise<{ readonly name: string } | { readonly error: string; readonly isWaiting: boolean }> {
    const at = stringAt(wanted, 'name');
    const uid = stringAt(pod, 'metadata', 'uid');
    for (const known of this.#claimsOfPod.get(key) ?? []) {
      const claim = this.#claims?.get(known);
      if (claim === undefined || ownerOf(claim)?.uid !== uid) continue;
      if (stringAt(claim, 'metadata', 'annotations', CLAIM_NAME) !== at) continue;
      return { name: stringAt(claim, 'metadata', 'name') };
    }
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const templateName = stringAt(wanted, 'resourceClaimTemplateName');
    const template = this.#templateOf(`${namespace}/${templateName}`);
    if (template === undefined) {
      const waiting = this.#waiting.get(`${namespace}/${templateName}`);
      if (waiting === undefined) this.#waiting.set(`${namespace}/${templateName}`, new Set([key]));
      else waiting.add(key);
      const missing = `resourceclaimtemplate.resource.k8s.io "${templateName}" not found`;
      return { error: `resource claim template "${templateName}": ${missing}`, isWaiting: true };
    }
    const path = `${ROOT}/namespaces/${namespace}/resourceclaims`;
    const body = claimOf(pod, at, template);
    const answer = await this.#client.request({ method: 'POST', path, body });
    this.#metrics.created(body, answer.ok);
    if (answer.ok) return { name: stringAt(answer.object, 'metadata', 'name') };
    const text = answer.status.message ?? `code ${answer.code}`;
    return { error: `create ResourceClaim : ${text}`, isWaiting: false };
  }

  /** A pod that came with its node has passed the scheduler by: it is reserved for here. */
  async #reserveAll(
    pod: JsonObject,
    statuses: ReadonlyMap<string, JsonValue>,
  ): Promise<WorkResult> {
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const uid = stringAt(pod, 'metadata', 'uid');
    for (const wanted of listAt(pod, 'spec', 'resourceClaims')) {
      const given = stringAt(wanted, 'resourceClaimName');
      const made = stringAt(statuses.get(stringAt(wanted, 'name')), 'resourceClaimName');
      const name = given === '' ? made : given;
      const claim = name === '' ? undefined : this.#claims?.get(`${namespace}/${name}`);
      if (claim === undefined || objectAt(claim, 'status', 'allocation') === undefined) continue;
      const reserved = listAt(claim, 'status', 'reservedFor');
      const isThere = reserved.some((one) => stringAt(one, 'uid') === uid);
      if (isThere || reserved.length >= RESERVED_MAX) continue;
      const entry = { resource: 'pods', name: stringAt(pod, 'metadata', 'name'), uid };
      const status = { ...objectAt(claim, 'status'), reservedFor: [...reserved, entry] };
      if ((await this.#put(claim, { status }, '/status')) === undefined) return 'retry';
    }
    return 'done';
  }

  /** A claim: who uses it no more is taken off; one that nobody uses is given back. */
  async #workClaim(key: string): Promise<WorkResult> {
    const claim = this.#claims?.get(key);
    if (claim === undefined) return 'done';
    const namespace = stringAt(claim, 'metadata', 'namespace');
    const before = listAt(claim, 'status', 'reservedFor');
    const reservedFor: JsonValue[] = [];
    for (const one of before) {
      const isPod = stringAt(one, 'resource') === 'pods' && stringAt(one, 'apiGroup') === '';
      const use = isPod ? await this.#useOf(namespace, one) : 'used';
      if (use === 'unknown') return 'retry';
      if (use === 'used') reservedFor.push(one);
    }
    const isFree = reservedFor.length === 0;
    const isShorter = reservedFor.length < before.length;
    const isGoing = isFree && stringAt(claim, 'metadata', 'deletionTimestamp') !== '';
    let present: JsonObject | undefined = claim;
    if (isShorter || isGoing) {
      present = await this.#giveBack(claim, isShorter, reservedFor);
      if (present === undefined) return 'retry';
    }
    const owner = ownerOf(claim);
    if (!isFree || owner === undefined) return 'done';
    const row = this.#options.pods.informer.find(namespace, owner.name);
    if (row < 0 || !this.#isOver(row)) return 'done';
    const path = `${ROOT}/namespaces/${namespace}/resourceclaims/${key.split('/')[1] ?? ''}`;
    const answer = await this.#client.request({ method: 'DELETE', path });
    return answer.ok || answer.code === 404 ? 'done' : 'retry';
  }

  /** The informer may not know a pod yet: only the server can say that it is gone. */
  async #useOf(namespace: string, entry: JsonValue): Promise<'used' | 'over' | 'unknown'> {
    const { informer } = this.#options.pods;
    const row = informer.find(namespace, stringAt(entry, 'name'));
    if (row >= 0 && this.#isOver(row)) return 'over';
    const path = `/api/v1/namespaces/${namespace}/pods/${stringAt(entry, 'name')}`;
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) return answer.code === 404 ? 'over' : 'unknown';
    const isSame = stringAt(answer.object, 'metadata', 'uid') === stringAt(entry, 'uid');
    return isSame ? 'used' : 'over';
  }

  /** Without users the allocation goes, and with it what keeps the claim from being deleted. */
  async #giveBack(
    claim: JsonObject,
    isShorter: boolean,
    reservedFor: JsonValue[],
  ): Promise<JsonObject | undefined> {
    const isKept = listAt(claim, 'metadata', 'finalizers').includes(FINALIZER);
    const { allocation, reservedFor: _, ...status } = objectAt(claim, 'status') ?? {};
    const stays = reservedFor.length > 0 || !isKept;
    let present: JsonObject | undefined = claim;
    if (isShorter || (isKept && allocation !== undefined)) {
      const next = {
        ...status,
        ...(stays && allocation !== undefined ? { allocation } : {}),
        ...(reservedFor.length > 0 ? { reservedFor } : {}),
      };
      present = await this.#put(claim, { status: next }, '/status');
    }
    if (present === undefined || stays) return present;
    const finalizers = listAt(present, 'metadata', 'finalizers').filter((one) => one !== FINALIZER);
    const metadata = { ...objectAt(present, 'metadata'), finalizers };
    return this.#put(present, { metadata }, '');
  }

  /** Refused where the claim has changed since: then all is looked at again. */
  async #put(
    claim: JsonObject,
    change: JsonObject,
    subresource: string,
  ): Promise<JsonObject | undefined> {
    const namespace = stringAt(claim, 'metadata', 'namespace');
    const name = stringAt(claim, 'metadata', 'name');
    const path = `${ROOT}/namespaces/${namespace}/resourceclaims/${name}${subresource}`;
    const body = { ...claim, apiVersion: VERSION, kind: 'ResourceClaim', ...change };
    const answer = await this.#client.request({ method: 'PUT', path, body });
    if (answer.ok) return answer.object;
    return answer.code === 404 ? claim : undefined;
  }
}

/** Keys of the pods that own a claim or have it reserved. */
function usersOf(claim: JsonObject | undefined): string[] {
  if (claim === undefined) return [];
  const namespace = stringAt(claim, 'metadata', 'namespace');
  const owner = ownerOf(claim);
  const users = listAt(claim, 'status', 'reservedFor')
    .filter((one) => stringAt(one, 'resource') === 'pods')
    .map((one) => stringAt(one, 'name'));
  if (owner !== undefined) users.push(owner.name);
  return users.map((name) => `${namespace}/${name}`);
}

/** The pod that a claim was made for. */
function ownerOf(claim: JsonObject): { readonly name: string; readonly uid: string } | undefined {
  const owner = listAt(claim, 'metadata', 'ownerReferences').find(
    (one) =>
      valueAt(one, 'controller') === true &&
      stringAt(one, 'kind') === 'Pod' &&
      stringAt(one, 'apiVersion') === 'v1',
  );
  if (owner === undefined) return undefined;
  return { name: stringAt(owner, 'name'), uid: stringAt(owner, 'uid') };
}

/** The claim that a template makes for a pod. */
function claimOf(pod: JsonObject, at: string, template: JsonObject): JsonObject {
  const name = stringAt(pod, 'metadata', 'name');
  const uid = stringAt(pod, 'metadata', 'uid');
  const labels = objectAt(template, 'spec', 'metadata', 'labels');
  return {
    apiVersion: VERSION,
    kind: 'ResourceClaim',
    metadata: {
      generateName: baseName(name, at),
      annotations: { ...objectAt(template, 'spec', 'metadata', 'annotations'), [CLAIM_NAME]: at },
      ...(labels === undefined ? {} : { labels }),
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }],
    },
    spec: objectAt(template, 'spec', 'spec') ?? {},
  };
}

/** Names that are too long are cut in proportion, so that both can still be told. */
function baseName(pod: string, claim: string): string {
  const whole = `${pod}-${claim}-`;
  if (whole.length <= BASE_NAME_MAX) return whole;
  const cut = (name: string): string =>
    name.slice(0, Math.floor((name.length * BASE_NAME_MAX) / whole.length));
  return `${cut(pod)}-${cut(claim)}`;
}
