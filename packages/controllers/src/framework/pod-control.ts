/** Creates, deletes, adopts and releases pods for the controllers that own them. */
import { assert } from '@megaplane/base/assert';
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { Announce } from './event-recorder.ts';
import { controllerUid } from './object-cache.ts';

/** Pods that one sync creates or deletes; more for owners of many, see `burstOf`. */
export const BURST_REPLICAS = 500;
/** First batch of creations; each that succeeds is followed by one of twice its size. */
const SLOW_START_BATCH = 1;
/**
 * An owner for whom so many creations in a row went well, so short a while ago, is not begun with
 * slowly: each of its rounds would cost as many waits as there are doublings.
 */
const WARM_PODS_MIN = 64;
const WARM_MS = 10_000;
const WARM_OWNERS_MAX = 10_000;
/** A round looks at all pods of its owner: huge owners are given fewer and larger ones. */
const ROUNDS = 50;

/** Pods that one round makes or deletes for an owner of `wanted`; `least` is upstream's number. */
export function burstOf(wanted: number, least: number = BURST_REPLICAS): number {
  return Math.max(least, Math.ceil(wanted / ROUNDS));
}

/** How a write ended. `text` is what people are told. */
export type Written =
  | { readonly ok: true; readonly name: string; readonly revision: number }
  | { readonly ok: false; readonly code: number; readonly reason: string; readonly text: string };

/** The owner of pods, as references name it. */
export interface PodOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export function ownerOfObject(apiVersion: string, kind: string, object: JsonObject): PodOwner {
  const metadata = objectAt(object, 'metadata');
  const namespace = stringAt(metadata, 'namespace');
  const name = stringAt(metadata, 'name');
  return { apiVersion, kind, namespace, name, uid: stringAt(metadata, 'uid') };
}

/** The reference by which an owner controls what it owns. */
export function controllerReference({ apiVersion, kind, name, uid }: PodOwner): JsonObject {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** A pod of a template: its labels, annotations, finalizers and spec, and who controls it. */
export function podOfTemplate(template: JsonObject | undefined, owner: PodOwner): JsonObject {
  const metadata: JsonObject = { generateName: `${owner.name}-` };
  for (const field of ['labels', 'annotations', 'finalizers']) {
    const value = objectAt(template, 'metadata')?.[field];
    if (value !== undefined && value !== null) metadata[field] = value;
  }
  metadata['ownerReferences'] = [controllerReference(owner)];
  const spec = objectAt(template, 'spec') ?? {};
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec };
}

export class PodControl {
  readonly #client: Client;
  readonly #announce: Announce;
  /** When the last creations of an owner went well, by its uid. */
  readonly #warm: Map<string, number> = new Map();

  constructor(client: Client, announce: Announce) {
    this.#client = client;
    this.#announce = announce;
  }

  /**
   * Creates `count` pods in batches of 1, 2, 4 ...: a batch with a failure is the last, so that
   * what is refused is not asked for five hundred times; all at once where a large number of the
   * same owner went well just now. The failure, or undefined.
   */
  async createAll(
    owner: PodOwner,
    bodyOf: (index: number) => string,
    count: number,
    created: (revision: number) => void,
  ): Promise<Written | undefined> {
    assert(count >= 0, 'as many are made as are missing');
    const { timers } = this.#client;
    const isWarm = timers.nowMs() - (this.#warm.get(owner.uid) ?? -Infinity) < WARM_MS;
    let batch = isWarm ? count : SLOW_START_BATCH;
    for (let done = 0; done < count; done += batch, batch *= 2) {
      const size = Math.min(batch, count - done);
      const indexes = Array.from({ length: size }, (_, i) => done + i);
      const results = await Promise.all(
        indexes.map((index) => this.#create(owner, bodyOf(index), created)),
      );
      const failed = results.find((one) => !one.ok);
      if (failed === undefined) continue;
      this.#warm.delete(owner.uid);
      return failed;
    }
    if (this.#warm.size >= WARM_OWNERS_MAX) this.#warm.clear();
    if (isWarm || count >= WARM_PODS_MIN) this.#warm.set(owner.uid, timers.nowMs());
    return undefined;
  }

  async #create(
    owner: PodOwner,
    body: string,
    created: (revision: number) => void,
  ): Promise<Written> {
    const path = `/api/v1/namespaces/${owner.namespace}/pods`;
    const answer = await this.#client.request({ method: 'POST', path, body });
    if (answer.ok) {
      const name = stringAt(answer.object, 'metadata', 'name');
      const revision = revisionOf(answer.object);
      created(revision);
      this.#tell(owner, 'Normal', 'SuccessfulCreate', `Created pod: ${name}`);
      return { ok: true, name, revision };
    }
    const failure = failureOf(answer);
    if (!isNamespaceEnding(answer.status)) {
      this.#tell(owner, 'Warning', 'FailedCreate', `Error creating: ${failure.text}`);
    }
    return isNamespaceEnding(answer.status) ? { ...failure, reason: NAMESPACE_ENDING } : failure;
  }

  /** Deletes a pod; one that is gone already counts as deleted. */
  async delete(owner: PodOwner, name: string): Promise<Written> {
    const path = `/api/v1/namespaces/${owner.namespace}/pods/${name}`;
    const answer = await this.#client.request({ method: 'DELETE', path });
    if (answer.ok) {
      this.#tell(owner, 'Normal', 'SuccessfulDelete', `Deleted pod: ${name}`);
      return { ok: true, name, revision: 0 };
    }
    if (answer.code === 404) return { ok: true, name, revision: 0 };
    const failure = failureOf(answer);
    this.#tell(owner, 'Warning', 'FailedDelete', `Error deleting: ${failure.text}`);
    return failure;
  }

  /**
   * Takes an object that nobody controls, if it still is as it was seen at `revision`. Answers the
   * revision of the change, 0 where there is nothing to take any more, -1 where it failed.
   */
  async adopt(path: string, owner: PodOwner, revision: number): Promise<number> {
    const ownerReferences = [controllerReference(owner)];
    return this.#patch(path, { resourceVersion: String(revision), ownerReferences });
  }

  /** Lets an object go that no longer matches; answers as `adopt` does. */
  async release(path: string, owner: PodOwner, revision: number): Promise<number> {
    const ownerReferences = [{ $patch: 'delete', uid: owner.uid }];
    return this.#patch(path, { resourceVersion: String(revision), ownerReferences });
  }

  async #patch(path: string, metadata: JsonObject): Promise<number> {
    const contentType = CONTENT.strategicPatch;
    const body = { metadata };
    const answer = await this.#client.request({ method: 'PATCH', path, contentType, body });
    if (answer.ok) return revisionOf(answer.object);
    return answer.code === 404 || answer.code === 422 ? 0 : -1;
  }

  #tell(owner: PodOwner, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { kind, namespace, name, uid } = owner;
    this.#announce(kind, namespace, name, type, reason, message, uid);
  }
}

/** `reason` of a creation that was refused because the namespace goes: nothing to retry. */
export const NAMESPACE_ENDING = 'NamespaceTerminating';

interface Refused {
  readonly code: number;
  readonly status: { readonly reason?: string; readonly message?: string };
}

export function failureOf({ code, status }: Refused): Written & { readonly ok: false } {
  const text = status.message ?? `the server did not answer (${code})`;
  return { ok: false, code, reason: status.reason ?? '', text };
}

export function isNamespaceEnding(status: object): boolean {
  const details = 'details' in status ? (status.details as JsonObject | undefined) : undefined;
  const causes = objectAt({ details }, 'details')?.['causes'];
  return (
    Array.isArray(causes) && causes.some((cause) => stringAt(cause, 'reason') === NAMESPACE_ENDING)
  );
}

/** The resourceVersion of an answer, as a number. */
export function revisionOf(object: JsonObject): number {
  return Number(stringAt(object, 'metadata', 'resourceVersion'));
}

export function isControlledBy(object: JsonObject, uid: string): boolean {
  return controllerUid(object) === uid;
}
