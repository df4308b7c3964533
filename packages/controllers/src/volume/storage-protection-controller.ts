/**
 * Lets claims and volumes that are being deleted go when nobody uses them any more: a claim that
 * no pod on a node names, a volume that is bound to no claim. Until then a finalizer keeps them,
 * which those get here that came without it or lost it.
 */
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ControllerContext } from '../framework/controller-context.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
const CLAIM_FINALIZER = 'kubernetes.io/pvc-protection';
const VOLUME_FINALIZER = 'kubernetes.io/pv-protection';
const CLAIM = 'PersistentVolumeClaim';
const VOLUME = 'PersistentVolume';
const VOLUMES = '/api/v1/persistentvolumes';
/** Pods of a namespace that go together are one look at its claims. */
const GATHER_MS = 50;

export interface StorageProtectionOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly isClaims: boolean;
  readonly isVolumes: boolean;
}

export class StorageProtectionController {
  readonly #client: Client;
  readonly #claimWorkers: Workers<string>;
  readonly #volumeWorkers: Workers<string>;
  readonly #claims: ObjectCache | null;
  readonly #volumes: ObjectCache | null;
  /** Claims that are being deleted, by namespace. */
  readonly #going: Map<string, Set<string>> = new Map();

  constructor({ client, informers, pods, isClaims, isVolumes, onError }: StorageProtectionOptions) {
    this.#client = client;
    const { timers } = client;
    this.#claimWorkers = new Workers(
      timers,
      WORKERS,
      (key) => this.#claim(key),
      onError,
      informers.queues.queue('pvcprotection'),
    );
    this.#volumeWorkers = new Workers(
      timers,
      WORKERS,
      (key) => this.#volume(key),
      onError,
      informers.queues.queue('pvprotection'),
    );
    const claims = '/api/v1/persistentvolumeclaims';
    this.#claims = isClaims
      ? new ObjectCache(informers, claims, (key, after) => this.#claimChanged(key, after))
      : null;
    this.#volumes = isVolumes
      ? new ObjectCache(informers, VOLUMES, (key, after) => {
          if (after !== undefined && isOfInterest(after, VOLUME_FINALIZER))
            this.#volumeWorkers.add(key);
        })
      : null;
    if (isClaims) {
      pods.listen({
        changed: (row, _bytes, scan) => {
          const isEnding = scan === null || scan.deletionTimestampStart >= 0;
          if (isEnding && this.#going.size > 0) this.#podEnding(pods.informer.keyOf(row));
        },
      });
    }
  }

  start(): void {
    this.#claimWorkers.start();
    this.#volumeWorkers.start();
  }

  stop(): void {
    this.#claimWorkers.stop();
    this.#volumeWorkers.stop();
  }

  #claimChanged(key: string, after: JsonObject | undefined): void {
    const namespace = key.slice(0, key.indexOf('/'));
    if (after !== undefined && isBare(after, CLAIM_FINALIZER)) this.#claimWorkers.add(key);
    if (after !== undefined && isLeaving(after, CLAIM_FINALIZER)) {
      const going = this.#going.get(namespace);
      if (going === undefined) this.#going.set(namespace, new Set([key]));
      else going.add(key);
      this.#claimWorkers.add(key);
      return;
    }
    const going = this.#going.get(namespace);
    if (going?.delete(key) === true && going.size === 0) this.#going.delete(namespace);
  }

  #podEnding(pod: string): void {
    for (const key of this.#going.get(pod.slice(0, pod.indexOf('/'))) ?? []) {
      this.#claimWorkers.addAfter(key, GATHER_MS);
    }
  }

  async #claim(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const claim = this.#claims?.get(key);
    if (claim === undefined) return 'done';
    const [namespace = '', name = ''] = key.split('/');
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`;
    if (isBare(claim, CLAIM_FINALIZER)) return this.#keep(path, CLAIM, claim, CLAIM_FINALIZER);
    if (!isLeaving(claim, CLAIM_FINALIZER)) return 'done';
    // A pod names its claims, or owns those that were made for it.
    const owners = listAt(claim, 'metadata', 'ownerReferences').map((one) => stringAt(one, 'uid'));
    // Asked of the server: a claim must not go while a pod that we have not heard of uses it.
    let isUsed = false;
    const result = await readPages({
      client: this.#client,
      path: `/api/v1/namespaces/${namespace}/pods`,
      mustBeConsistent: true,
      onItem: (bytes, start, end) => {
        if (isUsed) return;
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        if (![name, ...owners].some((mark) => mark !== '' && text.includes(mark))) return;
        isUsed = usesClaim(parseJson(text.toString('utf8')) as JsonObject, owners, name);
      },
    });
    if (!result.ok) return 'retry';
    if (isUsed) return 'done';
    return this.#release(path, CLAIM, claim, CLAIM_FINALIZER);
  }

  async #volume(name: string): Promise<WorkResult> {
    await Promise.resolve();
    const volume = this.#volumes?.get(name);
    if (volume === undefined) return 'done';
    const path = `${VOLUMES}/${name}`;
    if (isBare(volume, VOLUME_FINALIZER)) return this.#keep(path, VOLUME, volume, VOLUME_FINALIZER);
    if (!isLeaving(volume, VOLUME_FINALIZER)) return 'done';
    if (stringAt(volume, 'status', 'phase') === 'Bound') return 'done';
    return this.#release(path, VOLUME, volume, VOLUME_FINALIZER);
  }

  #keep(path: string, kind: string, object: JsonObject, finalizer: string): Promise<WorkResult> {
    return this.#write(path, kind, object, [...finalizersOf(object), finalizer]);
  }

  #release(path: string, kind: string, object: JsonObject, finalizer: string): Promise<WorkResult> {
    const rest = finalizersOf(object).filter((one) => one !== finalizer);
    return this.#write(path, kind, object, rest);
  }

  async #write(
    path: string,
    kind: string,
    object: JsonObject,
    finalizers: readonly JsonValue[],
  ): Promise<WorkResult> {
    const metadata = { ...objectAt(object, 'metadata'), finalizers: [...finalizers] };
    const body = { ...object, apiVersion: 'v1', kind, metadata };
    const answer = await this.#client.request({ method: 'PUT', path, body });
    return answer.ok || answer.code === 404 ? 'done' : 'retry';
  }
}

function finalizersOf(object: JsonObject): readonly JsonValue[] {
  return listAt(object, 'metadata', 'finalizers');
}

function isDeleting(object: JsonObject): boolean {
  return stringAt(object, 'metadata', 'deletionTimestamp') !== '';
}

function isLeaving(object: JsonObject, finalizer: string): boolean {
  return isDeleting(object) && finalizersOf(object).includes(finalizer);
}

/** Not protected yet. */
function isBare(object: JsonObject, finalizer: string): boolean {
  return !isDeleting(object) && !finalizersOf(object).includes(finalizer);
}

function isOfInterest(object: JsonObject, finalizer: string): boolean {
  return isLeaving(object, finalizer) || isBare(object, finalizer);
}

/**
 * A pod that is on a node uses the claims that it names, and those made for it. The latter only
 * until its kubelet is done with it: its finalizers might wait for what waits for the claim.
 */
function usesClaim(pod: JsonObject, owners: readonly string[], name: string): boolean {
  if (stringAt(pod, 'spec', 'nodeName') === '') return false;
  const graceS = valueAt(pod, 'metadata', 'deletionGracePeriodSeconds');
  const isShutDown = isDeleting(pod) && graceS === 0;
  const isOwner = !isShutDown && owners.includes(stringAt(pod, 'metadata', 'uid'));
  return listAt(pod, 'spec', 'volumes').some((volume) => {
    if (stringAt(volume, 'persistentVolumeClaim', 'claimName') === name) return true;
    const made = `${stringAt(pod, 'metadata', 'name')}-${stringAt(volume, 'name')}`;
    return isOwner && objectAt(volume, 'ephemeral') !== undefined && made === name;
  });
}
