/**
 * Generic ephemeral volumes: each is a claim that is made from the template in the pod, named after
 * the pod and the volume, and owned by the pod, with which it goes.
 */
import type { Client } from '@megaplane/client/client';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { Announce } from '../framework/event-recorder.ts';
import { livePod } from '../framework/uncached-pod.ts';
import type { Counter } from '../framework/metrics-registry.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { controllerReference, isControlledBy, ownerOfObject } from '../framework/pod-control.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 10;
const CLAIMS = '/api/v1/persistentvolumeclaims';
const MARK = Buffer.from('"volumeClaimTemplate"');

export interface EphemeralOptions extends ControllerContext {
  readonly announce: Announce;
  readonly pods: PodRows;
}

export class EphemeralController {
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
        const spec = scan === null ? undefined : specOfInterest(bytes, scan);
        if (scan === null || spec === undefined) return;
        const key = pods.informer.keyOf(row);
        if (scan.nodeNameStart < 0 || this.#isShort(key, spec)) this.#workers.add(key);
      },
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /** Pods that run have their claims already, but for those that were made for a node by name. */
  #isShort(pod: string, spec: Buffer): boolean {
    const volumes = templatesOf(pod, parseJson(spec.toString('utf8')) as JsonObject);
    return volumes.some(({ key }) => this.#claims.get(key) === undefined);
  }

  async #work(key: string): Promise<WorkResult> {
    const pod = await livePod(this.#client, key);
    if (typeof pod === 'string') return pod;
    const [namespace = '', name = ''] = key.split('/');
    for (const { volume, key: claim, template } of templatesOf(key, objectAt(pod, 'spec'))) {
      const failure = await this.#ensure(pod, claim, template);
      if (failure === '') continue;
      const text = `ephemeral volume ${volume}: ${failure}`;
      const uid = stringAt(pod, 'metadata', 'uid');
      this.#announce('Pod', namespace, name, 'Warning', 'FailedBinding', text, uid);
      // As upstream: those after it wait, too.
      return 'retry';
    }
    return 'done';
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

/** The spec of a pod with such volumes; most have none. */
function specOfInterest(bytes: Buffer, { specStart, specEnd }: ObjectScan): Buffer | undefined {
  const spec = specStart < 0 ? undefined : bytes.subarray(specStart, specEnd);
  return spec?.includes(MARK) === true ? spec : undefined;
}

interface Ephemeral {
  readonly volume: string;
  /** Of its claim. */
  readonly key: string;
  readonly template: JsonObject;
}

/** The ephemeral volumes of the pod of a key. */
function templatesOf(pod: string, spec: JsonObject | undefined): Ephemeral[] {
  return listAt(spec, 'volumes').flatMap((one) => {
    const template = objectAt(one, 'ephemeral', 'volumeClaimTemplate');
    const volume = stringAt(one, 'name');
    return template === undefined ? [] : [{ volume, key: `${pod}-${volume}`, template }];
  });
}
