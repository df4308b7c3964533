/**
 * Generic ephemeral volumes: each is a claim that is made from the template in the pod, named after
 * the pod and the volume, and owned by the pod, with which it goes.
 */
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { Announce } from '../announce.ts';
import { livePod } from '../live-pod.ts';
import type { Counter } from '../metric-board.ts';
import type { PartOptions } from '../part-options.ts';
import { ObjectCache } from '../object-cache.ts';
import { controllerReference, isControlledBy, ownerOfObject } from '../pod-control.ts';
import type { PodRows } from '../pod-rows.ts';
import { Workers, type WorkResult } from '../workers.ts';

const WORKERS = 10;
const CLAIMS = '/api/v1/persistentvolumeclaims';
const MARK = Buffer.from('"volumeClaimTemplate"');

export interface EphemeralOptions extends PartOptions {
  readonly announce: Announce;
  readonly pods: PodRows;
}

export class EphemeralPart {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #claims: ObjectCache;
  readonly #announce: Announce;
  readonly #creations: Counter;
  readonly #failures: Counter;

  constructor({ client, informers, pods, announce, onError, workers }: EphemeralOptions) {
    this.#client = client;
    this.#announce = announce;
    const subsystem = 'ephemeral_volume_controller';
    const help = 'Number of PersistentVolumeClaim creation requests';
    const { metrics } = informers;
    this.#creations = metrics.counter(`${subsystem}_create_total`, help);
    this.#failures = metrics.counter(`${subsystem}_create_failures_total`, `${help} that failed`);
    const queue = informers.queues.queue('ephemeral_volume');
    this.#workers = new Workers(
      client.timers,
      workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      queue,
    );
    this.#claims = new ObjectCache(informers, CLAIMS, (_key, after, before) => {
      // A claim that goes while its pod is there is made again.
      const owner = listAt(before, 'metadata', 'ownerReferences').find(
        (one) => stringAt(one, 'kind') === 'Pod',
      );
      if (after !== undefined || owner === undefined) return;
      const namespace = stringAt(before, 'metadata', 'namespace');
      this.#workers.add(`${namespace}/${stringAt(owner, 'name')}`);
    });
    pods.listen({
      changed: (row, bytes, scan) => {
        if (scan !== null && isOfInterest(bytes, scan)) this.#workers.add(pods.informer.keyOf(row));
      },
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(key: string): Promise<WorkResult> {
    const pod = await livePod(this.#client, key);
    if (typeof pod === 'string') return pod;
    const [namespace = '', name = ''] = key.split('/');
    let result: WorkResult = 'done';
    for (const volume of listAt(pod, 'spec', 'volumes')) {
      const template = objectAt(volume, 'ephemeral', 'volumeClaimTemplate');
      if (template === undefined) continue;
      const claim = `${name}-${stringAt(volume, 'name')}`;
      const failure = await this.#ensure(pod, `${namespace}/${claim}`, template);
      if (failure === '') continue;
      result = 'retry';
      const text = `ephemeral volume ${stringAt(volume, 'name')}: ${failure}`;
      const uid = stringAt(pod, 'metadata', 'uid');
      this.#announce('Pod', namespace, name, 'Warning', 'FailedBinding', text, uid);
    }
    return result;
  }

  /** '' where the claim is there and the pod's own, else what is in the way. */
  async #ensure(pod: JsonObject, key: string, template: JsonObject): Promise<string> {
    const known = this.#claims.get(key);
    const [namespace = '', name = ''] = key.split('/');
    if (known !== undefined) {
      // One of another owner is never used: the pod waits until it is gone.
      if (isControlledBy(known, stringAt(pod, 'metadata', 'uid'))) return '';
      const of = `${namespace}/${stringAt(pod, 'metadata', 'name')}`;
      return `PVC ${key} was not created for pod ${of} (pod is not owner)`;
    }
    const ownerReferences = [controllerReference(ownerOfObject('v1', 'Pod', pod))];
    const metadata: JsonObject = { name, ownerReferences };
    for (const field of ['labels', 'annotations']) {
      const given = objectAt(template, 'metadata', field);
      if (given !== undefined) metadata[field] = given;
    }
    const spec = objectAt(template, 'spec') ?? {};
    const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec };
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
    const answer = await this.#client.request({ method: 'POST', path, body });
    this.#creations.add();
    if (answer.ok) return '';
    this.#failures.add();
    return `create PVC ${name}: ${answer.status.message ?? `code ${answer.code}`}`;
  }
}

/** Pods that run have their claims already; most have no such volume. */
function isOfInterest(bytes: Buffer, { specStart, specEnd, nodeNameStart }: ObjectScan): boolean {
  if (nodeNameStart >= 0 || specStart < 0) return false;
  return bytes.subarray(specStart, specEnd).includes(MARK);
}
