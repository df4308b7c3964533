/** What users do to a cluster, by a seed: the same seed does the same to any cluster. */
import assert from 'node:assert/strict';
import type { Random } from '@megaplane/base/random';
import { CONTENT, type ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { healthyOf } from './cluster-invariants.ts';
import type { ClusterSimulation } from './cluster-simulation.ts';
import type { SimulatedFleet } from './simulated-fleet.ts';

const KEPT = ['a', 'b'] as const;
const ZONES = 3;
/** At most this share of the nodes is frozen at a time: more stops evictions, as it must. */
const FROZEN_SHARE = 0.2;

/** Passing namespaces that there are at a time, beside those that go. */
const PASSING = 1;

/** Evictions of one deed. */
const EVICTIONS = 3;

/** Pods that a passing namespace may have. */
export const QUOTA_PODS = 3;

interface Kind {
  readonly root: string;
  readonly resource: string;
  readonly kind: string;
}

const kind = (root: string, resource: string, name: string): Kind => ({
  root,
  resource,
  kind: name,
});
const APPS = '/apis/apps/v1';
const CORE = '/api/v1';

export const KINDS: Readonly<
  Record<
    'deployment' | 'stateful' | 'daemon' | 'job' | 'budget' | 'service' | 'map' | 'quota',
    Kind
  >
> = {
  deployment: kind(APPS, 'deployments', 'Deployment'),
  stateful: kind(APPS, 'statefulsets', 'StatefulSet'),
  daemon: kind(APPS, 'daemonsets', 'DaemonSet'),
  job: kind('/apis/batch/v1', 'jobs', 'Job'),
  budget: kind('/apis/policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget'),
  service: kind(CORE, 'services', 'Service'),
  map: kind(CORE, 'configmaps', 'ConfigMap'),
  quota: kind(CORE, 'resourcequotas', 'ResourceQuota'),
};

/** How Jobs take failures and successes, beside the plain way. */
const JOB_POLICIES: readonly JsonObject[] = [
  {},
  { completionMode: 'Indexed', backoffLimitPerIndex: 1_000 },
  { completionMode: 'Indexed', successPolicy: { rules: [{ succeededCount: 1 }] } },
  {
    podReplacementPolicy: 'Failed',
    podFailurePolicy: {
      rules: [
        { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
      ],
    },
  },
];

interface Wanted {
  readonly namespace: string;
  readonly kind: Kind;
  readonly name: string;
  readonly spec: JsonObject;
}

export class SimulatedUsers {
  readonly #cluster: ClusterSimulation;
  readonly #fleet: SimulatedFleet;
  readonly #random: Random;
  readonly #isQuiet: boolean;
  readonly #passing: string[] = [];
  /** What was made or changed last and not removed since, by path. */
  readonly #wanted: Map<string, Wanted> = new Map();
  #count = 0;
  #nodes = 0;

  /** On a quiet day, budgets must tell the truth whenever they are asked. */
  constructor(
    cluster: ClusterSimulation,
    fleet: SimulatedFleet,
    random: Random,
    isQuiet: boolean = false,
  ) {
    this.#isQuiet = isQuiet;
    this.#cluster = cluster;
    this.#fleet = fleet;
    this.#random = random;
  }

  async begin(nodes: number): Promise<void> {
    for (const name of ['default', 'kube-node-lease', 'kube-system', ...KEPT]) {
      await this.#make('/api/v1/namespaces', 'Namespace', name, {});
    }
    for (let i = 0; i < nodes; i++) await this.#addNode();
    await this.#put('a', KINDS.daemon, 'agent', this.#workload('agent', {}));
  }

  async #addNode(): Promise<void> {
    const i = this.#nodes++;
    await this.#fleet.addNode(`node-${i}`, `zone-${i % ZONES}`);
  }

  /** One thing that a user or the world does. */
  async act(): Promise<void> {
    const namespace = KEPT[this.#below(KEPT.length)] ?? 'a';
    const which = this.#below(100);
    const name = `w${this.#below(4)}`;
    if (which < 30) return this.#deploy(namespace, name);
    if (which < 40) return this.#remove(namespace, KINDS.deployment, name);
    if (which < 50) return this.#keepState(namespace, `s${this.#below(2)}`);
    if (which < 60) return this.#runJob(namespace);
    if (which < 65) return this.#own(namespace);
    if (which < 75) return this.#passingNamespace();
    if (which < 83) return this.#freeze();
    if (which < 85) return this.#updateDaemon();
    if (which < 90) return this.#replaceNode();
    return this.#evict(namespace);
  }

  /** All nodes are well again, and nobody does anything more. */
  end(): void {
    for (const name of this.#fleet.nodes.keys()) this.#fleet.freeze(name, false);
  }

  #below(count: number): number {
    return this.#random.below(count);
  }

  #workload(app: string, more: JsonObject): JsonObject {
    const image = `img:${this.#below(3)}`;
    const template = {
      metadata: { labels: { app } },
      spec: { containers: [{ name: 'c', image }] },
    };
    return { selector: { matchLabels: { app } }, template, ...more };
  }

  async #make(path: string, kind: string, name: string, spec: JsonObject): Promise<boolean> {
    const apiVersion = path.startsWith('/apis/') ? path.split('/').slice(2, 4).join('/') : 'v1';
    const body = { apiVersion, kind, metadata: { name }, spec };
    return (await this.#cluster.ask('POST', path, body)).ok;
  }

  async #put(namespace: string, kind: Kind, name: string, spec: JsonObject): Promise<void> {
    const path = pathOf(kind, namespace);
    this.#wanted.set(`${path}/${name}`, { namespace, kind, name, spec });
    const changed = await this.#cluster.ask(
      'PATCH',
      `${path}/${name}`,
      { spec },
      CONTENT.mergePatch,
    );
    if (!changed.ok) await this.#make(path, kind.kind, name, spec);
  }

  async #remove(namespace: string, kind: Kind, name: string): Promise<void> {
    const policies = ['Background', 'Foreground'];
    const propagationPolicy = policies[this.#below(2)] ?? '';
    const path = `${pathOf(kind, namespace)}/${name}`;
    this.#wanted.delete(path);
    await this.#cluster.ask('DELETE', path, { propagationPolicy });
  }

  /**
   * What was changed while it was still on its way out, as on rough days, went in the end: who
   * wants it makes it anew.
   */
  async finish(): Promise<void> {
    for (const [path, { namespace, kind, name, spec }] of this.#wanted) {
      const known = await this.#cluster.ask('GET', path);
      if (!known.ok) await this.#make(pathOf(kind, namespace), kind.kind, name, spec);
    }
  }

  /** Another template, half of the nodes at a time: by a gap or by a second pod. */
  async #updateDaemon(): Promise<void> {
    const limits = [
      { maxUnavailable: '50%', maxSurge: 0 },
      { maxUnavailable: 0, maxSurge: '50%' },
    ];
    const rollingUpdate = limits[this.#below(limits.length)] ?? {};
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate };
    await this.#put('a', KINDS.daemon, 'agent', this.#workload('agent', { updateStrategy }));
  }

  async #deploy(namespace: string, name: string): Promise<void> {
    const replicas = this.#below(7);
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };
    const spec = this.#workload(name, { replicas, strategy, revisionHistoryLimit: 2 });
    await this.#put(namespace, KINDS.deployment, name, spec);
    const selector = { matchLabels: { app: name } };
    await this.#put(namespace, KINDS.budget, name, { selector, maxUnavailable: 1 });
    const ports = [{ port: 80, protocol: 'TCP' }];
    await this.#put(namespace, KINDS.service, name, { selector: { app: name }, ports });
  }

  async #keepState(namespace: string, name: string): Promise<void> {
    const podManagementPolicy = name === 's0' ? 'OrderedReady' : 'Parallel';
    const replicas = this.#below(4);
    const path = `${pathOf(KINDS.stateful, namespace)}/${name}`;
    const known = await this.#cluster.ask('GET', path);
    const spec = this.#workload(name, { replicas, serviceName: name });
    if (!known.ok) spec['podManagementPolicy'] = podManagementPolicy;
    await this.#put(namespace, KINDS.stateful, name, spec);
  }

  async #runJob(namespace: string): Promise<void> {
    const path = pathOf(KINDS.job, namespace);
    const containers = [{ name: 'c', image: 'img:0' }];
    const spec = {
      ...JOB_POLICIES[this.#below(JOB_POLICIES.length)],
      completions: 1 + this.#below(5),
      parallelism: 1 + this.#below(3),
      backoffLimit: 1_000,
      ttlSecondsAfterFinished: 60,
      template: { spec: { restartPolicy: 'Never', containers } },
    };
    await this.#make(path, 'Job', `job-${this.#count++}`, spec);
  }

  /** Two objects that own each other, and one that is owned by what is not there. */
  async #own(namespace: string): Promise<void> {
    const path = pathOf(KINDS.map, namespace);
    const names = ['left', 'right'].map((one) => `${one}-${this.#count}`);
    this.#count++;
    const uids: string[] = [];
    for (const name of names) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
      const answer = await this.#cluster.ask('POST', path, body);
      uids.push(answer.ok ? stringAt(answer.object, 'metadata', 'uid') : '');
    }
    const ofOther = (i: number): JsonObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: names[1 - i] ?? '',
      uid: uids[1 - i] ?? '',
      blockOwnerDeletion: true,
    });
    for (const [i, name] of names.entries()) {
      const body = { metadata: { ownerReferences: [ofOther(i)] } };
      await this.#cluster.ask('PATCH', `${path}/${name}`, body, CONTENT.mergePatch);
    }
    await this.#cluster.ask('DELETE', `${path}/${names[0]}`, { propagationPolicy: 'Foreground' });
  }

  /** A namespace comes with all kinds of things in it, and another goes. */
  async #passingNamespace(): Promise<void> {
    const name = `passing-${this.#count++}`;
    this.#passing.push(name);
    const old = this.#passing.length > PASSING ? this.#passing.shift() : undefined;
    if (old !== undefined) await this.#cluster.ask('DELETE', `/api/v1/namespaces/${old}`);
    await this.#make('/api/v1/namespaces', 'Namespace', name, {});
    const hard = { pods: String(QUOTA_PODS) };
    const quotas = pathOf(KINDS.quota, name);
    await this.#make(quotas, 'ResourceQuota', 'q', { hard });
    // Until somebody says so in its status a quota holds nobody, as upstream.
    const status = { hard, used: { pods: '0' } };
    await this.#cluster.ask('PATCH', `${quotas}/q/status`, { status }, CONTENT.mergePatch);
    await this.#deploy(name, 'w0');
  }

  /** Up to three nodes of a zone fall silent at once. */
  #freeze(): void {
    const all = [...this.#fleet.nodes];
    const frozen = all.filter(([, { isFrozen }]) => isFrozen);
    const first = this.#below(all.length);
    const count = 1 + this.#below(3);
    const room = Math.floor(FROZEN_SHARE * all.length) - frozen.length;
    if (room < 1) for (const [name] of frozen) this.#fleet.freeze(name, false);
    for (let i = 0; i < Math.min(room, count); i++) {
      const [name = ''] = all[(first + ZONES * i) % all.length] ?? [];
      this.#fleet.freeze(name, true);
    }
  }

  async #replaceNode(): Promise<void> {
    const names = [...this.#fleet.nodes.keys()];
    await this.#fleet.removeNode(names[this.#below(names.length)] ?? '');
    await this.#addNode();
  }

  /** Pods of a namespace are evicted one upon the other, as by one who drains. */
  async #evict(namespace: string): Promise<void> {
    for (let i = 0; i < EVICTIONS; i++) {
      const path = `/api/v1/namespaces/${namespace}/pods`;
      const pods = itemsOf(await this.#cluster.ask('GET', path));
      const sorted = pods.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
      const pod = sorted[this.#below(Math.max(1, pods.length))];
      if (pod !== undefined) await this.#evictOne(namespace, pod, pods);
    }
  }

  /** What is evicted, its budget allowed, and healthy pods enough are left. */
  async #evictOne(namespace: string, pod: JsonObject, pods: readonly JsonObject[]): Promise<void> {
    const all = itemsOf(await this.#cluster.ask('GET', pathOf(KINDS.budget, namespace)));
    const budget = all.find((one) => healthyOf(one, [pod]).length > 0);
    const name = nameOf(pod);
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    const answer = await this.#cluster.ask('POST', path, body);
    if (!answer.ok || budget === undefined) return;
    const what = `${namespace}/${name} by ${JSON.stringify(objectAt(budget, 'status'))}`;
    assert(numberAt(budget, 'status', 'disruptionsAllowed') > 0, `evicted ${what}`);
    if (!this.#isQuiet) return;
    const left = healthyOf(budget, pods).length - 1;
    assert(left >= numberAt(budget, 'status', 'desiredHealthy'), `${left} left of ${what}`);
  }
}

function itemsOf(answer: ClientResponse): JsonObject[] {
  return answer.ok ? (listAt(answer.object, 'items') as JsonObject[]) : [];
}

const nameOf = (object: JsonObject): string => stringAt(object, 'metadata', 'name');

export function pathOf({ root, resource }: Kind, namespace: string): string {
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
  return `${root}${scope}/${resource}`;
}
