// shell: machines that join clusters as Nodes, whose kubelets somebody simulates
/**
 * What the Kubernetes provider does: a machine that is configured becomes a Node of the cluster
 * that its blob leads to, and is Configured once that Node is Ready; a machine that drains waits
 * until no pods are left on its Node, or for its grace, and takes the Node away. Kubelets are
 * played by `megaplane nodes` in that cluster.
 *
 * A blob is a kubeconfig with everything in it. It comes from a cluster, so that it may not name
 * files of this machine, sockets or programs.
 */
import { INSTANCE_TYPE_KEY, ZONE_KEY } from '../contract/api.ts';
import { createHash } from 'node:crypto';
import { pauseMs, unawaited } from '@megaplane/base/deferred';
import { createKubeClient, inlineEndpoint } from '@megaplane/client/kube-client';
import type { KubeClient } from '@megaplane/client/kube-client';
import { systemTimers } from '@megaplane/client/system-timers';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Machine } from '../contract/tables/provider.ts';
import type { Started } from './provider.ts';

/** Clusters that are connected to at once; the one that was used longest ago is let go. */
export const CLUSTERS_MAX = 256;
const LOOK_MS = 500;
const TRY_MS_MAX = 10_000;
const HOSTNAME_KEY = 'kubernetes.io/hostname';

export interface NodeJoinsOptions {
  /** A transition ended; '' where all went well. */
  readonly settle: (id: string, operationId: string, failure: string) => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export class NodeJoins {
  readonly #options: NodeJoinsOptions;
  readonly #clients = new Map<string, Promise<KubeClient>>();
  /** Machine -> the operation that counts for it. */
  readonly #current = new Map<string, string>();
  #isStopped = false;

  constructor(options: NodeJoinsOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
    for (const client of this.#clients.values()) unawaited(client.then((one) => one.close()));
    this.#clients.clear();
  }

  /** Begins what a transition means. */
  started(started: Started): void {
    const { kind, machine, operationId } = started;
    this.#current.set(machine.id, operationId);
    if (kind !== 'configure' && kind !== 'drain') return;
    const work = kind === 'configure' ? this.#join(started) : this.#leave(started);
    unawaited(
      work.then(
        (failure) => this.#settle(machine.id, operationId, failure),
        (error: unknown) => this.#settle(machine.id, operationId, (error as Error).message),
      ),
    );
  }

  #settle(id: string, operationId: string, failure: string): void {
    if (this.#isStopped || this.#current.get(id) !== operationId) return;
    this.#current.delete(id);
    this.#options.settle(id, operationId, failure);
  }

  #counts(id: string, operationId: string): boolean {
    return !this.#isStopped && this.#current.get(id) === operationId;
  }

  /** Why it cannot join; '' once its Node is Ready. The provider's timeout ends the wait. */
  async #join({ machine, operationId, bootstrapBlob }: Started): Promise<string> {
    const client = await this.#clientOf(bootstrapBlob);
    if (typeof client === 'string') return client;
    const path = `/api/v1/nodes/${encodeURIComponent(machine.id)}`;
    while (this.#counts(machine.id, operationId)) {
      const found = await client.request({ method: 'GET', path, timeoutMs: TRY_MS_MAX });
      if (found.ok) {
        const own = stringAt(found.object, 'spec', 'providerID') === providerIdOf(machine);
        if (!own) return `the cluster has a node ${machine.id} of another provider`;
        if (isReady(found.object)) return '';
      } else if (found.code === 404) {
        const body = nodeOf(machine);
        const made = await client.request({ method: 'POST', path: '/api/v1/nodes', body });
        if (!made.ok && made.code >= 400 && made.code < 500 && made.code !== 409) {
          return `the node was refused: ${made.status.message ?? made.code}`;
        }
        // allocatable is what the scheduler goes by; a create leaves status out
        if (made.ok) await putStatus(client, path, machine);
      } else if (found.code === 401 || found.code === 403) {
        return `the blob gives no right to nodes: ${found.status.message ?? found.code}`;
      }
      await pauseMs(LOOK_MS);
    }
    return 'it was given up';
  }

  /** Waits for pods to go, for its grace at most, and takes the Node away. */
  async #leave(started: Started): Promise<string> {
    const { machine, operationId, bootstrapBlob, graceSeconds = 0 } = started;
    const client = await this.#clientOf(bootstrapBlob);
    // nobody can reach the cluster any more: the machine is free all the same
    if (typeof client === 'string') return '';
    const deadlineMs = systemTimers.nowMs() + graceSeconds * 1000;
    const name = encodeURIComponent(machine.id);
    const pods = `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}&limit=500`;
    while (this.#counts(machine.id, operationId) && systemTimers.nowMs() < deadlineMs) {
      const found = await client.request({ method: 'GET', path: pods, timeoutMs: TRY_MS_MAX });
      if (found.ok && listAt(found.object, 'items').every((pod) => staysToTheEnd(pod))) break;
      await pauseMs(LOOK_MS);
    }
    while (this.#counts(machine.id, operationId)) {
      const path = `/api/v1/nodes/${name}`;
      const gone = await client.request({ method: 'DELETE', path, timeoutMs: TRY_MS_MAX });
      if (gone.ok || gone.code === 404 || gone.code === 401 || gone.code === 403) return '';
      await pauseMs(LOOK_MS);
    }
    return 'it was given up';
  }

  /** A client for the cluster of a blob, or what is wrong with the blob. */
  async #clientOf(blob: Uint8Array | undefined): Promise<KubeClient | string> {
    const text = Buffer.from(blob ?? []).toString('utf8');
    const key = createHash('sha256').update(text).digest('hex');
    let client = this.#clients.get(key);
    if (client === undefined) {
      const endpoint = inlineEndpoint(text, 'the bootstrap blob');
      if (typeof endpoint === 'string') return endpoint;
      client = createKubeClient({ endpoint, userAgent: 'megaplane-fleet-provider' });
    }
    this.#clients.delete(key);
    this.#clients.set(key, client);
    if (this.#clients.size > CLUSTERS_MAX) {
      for (const [oldest, one] of this.#clients) {
        this.#clients.delete(oldest);
        unawaited(one.then((made) => made.close()));
        break;
      }
    }
    return client;
  }
}

function providerIdOf({ id }: Machine): string {
  return `megaplane://${id}`;
}

function nodeOf(machine: Machine): JsonObject {
  const { id, instanceType, zone } = machine;
  const labels = {
    ...machine.labels,
    [HOSTNAME_KEY]: id,
    ...(instanceType === '' ? {} : { [INSTANCE_TYPE_KEY]: instanceType }),
    ...(zone === '' ? {} : { [ZONE_KEY]: zone }),
  };
  return {
    ...{ apiVersion: 'v1', kind: 'Node' },
    metadata: { name: id, labels, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
    spec: { providerID: providerIdOf(machine) },
    status: statusOf(machine),
  };
}

function statusOf({ resources, allocatable }: Machine): JsonObject {
  const capacity = { pods: '110', ...resources?.resources };
  return { capacity, allocatable: { ...capacity, ...allocatable?.resources } };
}

async function putStatus(client: KubeClient, path: string, machine: Machine): Promise<void> {
  await client.request({
    ...{ method: 'PATCH', path: `${path}/status`, contentType: 'application/merge-patch+json' },
    ...{ body: { status: statusOf(machine) }, timeoutMs: TRY_MS_MAX },
  });
}

function isReady(node: JsonObject): boolean {
  return listAt(node, 'status', 'conditions').some((condition) => {
    return stringAt(condition, 'type') === 'Ready' && stringAt(condition, 'status') === 'True';
  });
}

/** Pods that nobody evicts: of DaemonSets, of the node itself, and those that have ended. */
function staysToTheEnd(pod: unknown): boolean {
  const value = pod as JsonObject;
  const phase = stringAt(value, 'status', 'phase');
  if (phase === 'Succeeded' || phase === 'Failed') return true;
  const annotations = objectAt(value, 'metadata', 'annotations') ?? {};
  if (Object.hasOwn(annotations, 'kubernetes.io/config.mirror')) return true;
  return listAt(value, 'metadata', 'ownerReferences').some((owner) => {
    return stringAt(owner, 'kind') === 'DaemonSet';
  });
}
