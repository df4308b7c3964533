/**
 * Nodes and pods for property tests, drawn from small pools so that ties, shortages, shared
 * domains and repeated classes are frequent, with every feature that placement knows.
 */
import type { Random } from '@megaplane/base/random';
import type { BudgetObject, KubeObject, NodeObject, PodObject } from '../api/objects.ts';

const HOST = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const APPS = ['a', 'b', 'c', 'd'];

/** Which features a workload has, from 0 (never) to 1. */
export interface Mix {
  readonly podAffinity: number;
  readonly spread: number;
  readonly ports: number;
  /** Nodes whose host name is not their own. */
  readonly strangers: number;
  /** Pods that are more important than others, and budgets that protect some. */
  readonly priorities: number;
  /** Pods with claims. */
  readonly volumes?: number;
}

const CLAIMS = 8;
const DISKS = 'disk.example.com';
const SPACE = 'space.example.com';

export class RandomWorkload {
  readonly #random: Random;
  readonly #mix: Mix;

  constructor(random: Random, mix: Mix) {
    this.#random = random;
    this.#mix = mix;
  }

  of<T>(list: readonly T[]): T {
    const value = list[this.#random.below(list.length)];
    if (value === undefined) throw new Error('nothing to draw from');
    return value;
  }

  chance(part: number): boolean {
    return this.#random.next() < part;
  }

  node(name: string): NodeObject {
    const taints = [
      { key: 'soft', value: 'a', effect: 'PreferNoSchedule' },
      { key: 'soft', value: 'b', effect: 'PreferNoSchedule' },
      { key: 'hard', effect: 'NoSchedule' },
      { key: 'out', effect: 'NoExecute' },
    ].filter(() => this.chance(0.12));
    const isStranger = this.chance(this.#mix.strangers);
    const labels: Record<string, string> = {};
    if (!isStranger || this.chance(0.5)) labels[HOST] = isStranger ? 'elsewhere' : name;
    if (this.chance(0.92)) labels[ZONE] = this.of(['za', 'zb', 'zc']);
    if (this.chance(0.6)) labels['rack'] = this.of(['r1', 'r2', 'r3', 'r4']);
    if (this.chance(0.5)) labels['disk'] = this.of(['ssd', 'hdd']);
    const allocatable: Record<string, string> = {
      cpu: this.of(['4', '8', '3900m']),
      memory: this.of(['8Gi', '16Gi', '7.5G']),
      pods: this.of(['4', '10', '110']),
    };
    if (this.chance(0.2)) allocatable['example.com/gpu'] = '2';
    if (this.chance(0.3)) allocatable['ephemeral-storage'] = '10Gi';
    const declaredFeatures = ['UserNamespacesHostNetworkSupport'];
    const images = this.chance(0.2)
      ? this.#some(2, () => ({
          names: [this.of(['app:1', 'app:2'])],
          sizeBytes: 800_000_000,
        }))
      : [];
    return {
      kind: 'Node',
      metadata: { name, labels },
      spec: { ...(this.chance(0.08) ? { unschedulable: true } : {}), taints },
      status: { allocatable, images, ...(this.chance(0.5) ? { declaredFeatures } : {}) },
    };
  }

  /** Who owns pods, and what of namespaces selectors look at. */
  objects(): KubeObject[] {
    const service = (name: string, selector: object): KubeObject =>
      ({ kind: 'Service', metadata: { name, namespace: 'n1' }, spec: { selector } }) as KubeObject;
    const owner = (kind: string, matchLabels: object): KubeObject =>
      ({
        kind,
        metadata: { name: 'own', namespace: 'n2' },
        spec: { selector: { matchLabels } },
      }) as KubeObject;
    return [
      { kind: 'Namespace', metadata: { name: 'n1', labels: { team: 'x' } } },
      { kind: 'Namespace', metadata: { name: 'n2', labels: { team: this.of(['x', 'y']) } } },
      service('s', { app: 'c' }),
      service('t', { app: 'd', tier: 'web' }),
      owner('ReplicaSet', { app: 'a' }),
      owner('StatefulSet', { tier: 'web' }),
      ...((this.#mix.volumes ?? 0) > 0 ? this.#storage() : []),
    ];
  }

  /** A claim, with a volume or without. */
  claim(): KubeObject {
    const namespace = this.of(['n1', 'n2']);
    const index = this.#random.below(CLAIMS);
    return this.#claim(`c${index}`, namespace, this.chance(0.5) ? `${namespace}-v${index}` : '');
  }

  /** How volumes are made, and where there is space for them. */
  making(): KubeObject[] {
    const late = { provisioner: DISKS, volumeBindingMode: 'WaitForFirstConsumer' };
    const expression = { key: this.of([ZONE, ZONE, HOST]), values: ['za', 'n1', 'n2', 'n3'] };
    const classes: Readonly<Record<string, object>> = {
      late,
      zoned: { ...late, allowedTopologies: [{ matchLabelExpressions: [expression] }] },
      counted: { ...late, provisioner: SPACE },
      static: { ...late, provisioner: 'kubernetes.io/no-provisioner' },
      now: { provisioner: DISKS },
    };
    const named = (kind: string, name: string, rest: object): KubeObject => {
      return { kind, metadata: { name }, ...rest };
    };
    const found = Object.entries(classes).map(([name, rest]) => named('StorageClass', name, rest));
    found.push(named('CSIDriver', SPACE, { spec: { storageCapacity: this.chance(0.9) } }));
    for (let index = 0; index < 4; index++) {
      const matchLabels = this.of([{ [ZONE]: 'za' }, { [HOST]: 'n2' }, { disk: 'ssd' }]);
      const capacity = this.of(['2Gi', '20Gi']);
      const rest = { storageClassName: 'counted', capacity, nodeTopology: { matchLabels } };
      found.push(named('CSIStorageCapacity', `space-${index}`, rest));
    }
    if (this.chance(0.7)) return found;
    const storageClassName = this.of(['late', 'static']);
    const open = { storageClassName, capacity: { storage: '5Gi' }, accessModes: ['ReadWriteMany'] };
    found.push(named('PersistentVolume', 'open', { spec: open, status: { phase: 'Available' } }));
    return found;
  }

  /** Claims, nearly all with a volume, and how many volumes nodes can have. */
  #storage(): KubeObject[] {
    const found = this.making();
    for (let index = 0; index < CLAIMS; index++) {
      for (const namespace of ['n1', 'n2']) {
        const name = `${namespace}-v${index}`;
        found.push(this.#claim(`c${index}`, namespace, this.chance(0.95) ? name : ''));
        if (this.chance(0.97)) found.push(this.#volume(name));
      }
    }
    for (let index = 0; index < 16; index++) {
      const count = this.of([2, 5, 9, 30]);
      const drivers = this.chance(0.7) ? [{ name: DISKS, allocatable: { count } }] : [];
      found.push({
        kind: 'CSINode',
        metadata: { name: `n${index}` },
        spec: { drivers },
      } as KubeObject);
    }
    for (let index = 0; index < 4; index++) {
      const source = { persistentVolumeName: `n1-v${this.#random.below(CLAIMS)}` };
      const spec = { attacher: DISKS, nodeName: `n${this.#random.below(16)}`, source };
      found.push({ kind: 'VolumeAttachment', metadata: { name: `a${index}` }, spec } as KubeObject);
    }
    return found;
  }

  #claim(name: string, namespace: string, volumeName: string): KubeObject {
    const isBound = volumeName !== '' && this.chance(0.98);
    const annotations = isBound ? { 'pv.kubernetes.io/bind-completed': 'yes' } : {};
    const accessModes = [this.chance(0.95) ? 'ReadWriteMany' : 'ReadWriteOncePod'];
    const metadata = { name, namespace, annotations };
    const storageClassName = this.of(['late', 'late', 'zoned', 'counted', 'static', 'now', '']);
    const resources = { requests: { storage: this.of(['1Gi', '4Gi']) } };
    const free = isBound ? {} : { storageClassName, resources };
    return {
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: { accessModes, volumeName, ...free },
    } as KubeObject;
  }

  #volume(name: string): KubeObject {
    const labels = this.chance(0.2) ? { [ZONE]: this.of(['za', 'zb__zc']) } : {};
    const key = this.of([HOST, ZONE, 'disk']);
    const values = { [HOST]: ['n1', 'n2', 'n3'], [ZONE]: ['za', 'zb'], disk: ['ssd'] }[key];
    const nodeSelectorTerms = [{ matchExpressions: [{ key, operator: 'In', values }] }];
    const nodeAffinity = this.chance(0.3) ? { required: { nodeSelectorTerms } } : {};
    const csi = { driver: DISKS, volumeHandle: name };
    return {
      kind: 'PersistentVolume',
      metadata: { name, labels },
      spec: { csi, nodeAffinity },
    } as KubeObject;
  }

  /** Allows so many pods of an app to be evicted. */
  budget(name: string): KubeObject {
    const namespace = this.of(['n1', 'n2']);
    const spec = { selector: { matchLabels: { app: this.of(APPS) } } };
    const disruptedPods = this.chance(0.2) ? { p1: '2030-01-01T00:00:00Z' } : {};
    const status = { disruptionsAllowed: this.#random.below(3), disruptedPods };
    const kind = 'PodDisruptionBudget';
    const budget: BudgetObject = { kind, metadata: { name, namespace }, spec, status };
    return budget;
  }

  metadata(name: string): PodObject['metadata'] {
    const labels: Record<string, string> = {};
    if (this.chance(0.95)) labels['app'] = this.of(APPS);
    if (this.chance(0.4)) labels['tier'] = this.of(['web', 'db']);
    const kind = this.of(['ReplicaSet', 'StatefulSet', '', '']);
    const owner = { apiVersion: 'apps/v1', kind, name: 'own', controller: true };
    const ownerReferences = kind === '' ? {} : { ownerReferences: [owner] };
    return { name, namespace: this.of(['n1', 'n2']), labels, ...ownerReferences };
  }

  spec(): PodObject['spec'] {
    const spec: Record<string, unknown> = {
      priority: this.chance(this.#mix.priorities) ? this.of([-5, 5, 10, 20]) : 0,
      containers: [this.#container()],
      preemptionPolicy: this.of(['Never', 'PreemptLowerPriority', 'PreemptLowerPriority']),
    };
    if (this.chance(0.03)) Object.assign(spec, { hostNetwork: true, hostUsers: false });
    if (this.chance(0.4)) {
      const key = this.chance(0.5) ? { key: this.of(['hard', 'soft', 'out']) } : {};
      spec['tolerations'] = [{ operator: 'Exists', ...key }];
    }
    if (this.chance(0.15)) spec['nodeSelector'] = { disk: this.of(['ssd', 'hdd']) };
    const affinity: Record<string, unknown> = { ...this.#nodeAffinity() };
    if (this.chance(this.#mix.podAffinity)) affinity['podAffinity'] = this.#podAffinity(0.7);
    if (this.chance(this.#mix.podAffinity)) affinity['podAntiAffinity'] = this.#podAffinity(0.5);
    if (Object.keys(affinity).length > 0) spec['affinity'] = affinity;
    if (this.chance(this.#mix.spread)) {
      spec['topologySpreadConstraints'] = this.#some(2, () => this.#constraint());
    }
    if (this.chance(this.#mix.volumes ?? 0)) {
      const claimed = this.#some(3, () => this.#random.below(CLAIMS));
      spec['volumes'] = [...new Set(claimed)].map((index) => ({
        name: `v${index}`,
        persistentVolumeClaim: { claimName: `c${index}` },
      }));
    }
    if (this.chance(0.08)) {
      const volumes = (spec['volumes'] ?? []) as readonly object[];
      const image = { reference: this.of(['app:1', 'app:2', 'other']) };
      spec['volumes'] = [...volumes, { name: 'image', image }];
    }
    return spec;
  }

  /** What kubelets tell of a pod that runs, which may have been resized. */
  running(startTime: string): PodObject['status'] & object {
    if (!this.chance(0.1)) return { startTime };
    const requests = { cpu: this.of(['100m', '700m', '2']), memory: this.of(['64Mi', '2Gi']) };
    return { startTime, containerStatuses: [{ name: 'c', resources: { requests } }] };
  }

  #some<T>(most: number, draw: () => T): T[] {
    return Array.from({ length: 1 + this.#random.below(most) }, draw);
  }

  #container(): Record<string, unknown> {
    const requests: Record<string, string> = {};
    if (this.chance(0.7)) requests['cpu'] = this.of(['100m', '500m', '1', '2500m', '9']);
    if (this.chance(0.6)) requests['memory'] = this.of(['64Mi', '1Gi', '3G', '5Gi']);
    if (this.chance(0.1)) requests['example.com/gpu'] = '1';
    if (this.chance(0.1)) requests['ephemeral-storage'] = '4Gi';
    const ports = this.chance(this.#mix.ports)
      ? this.#some(2, () => ({
          hostPort: this.of([80, 443]),
          protocol: this.of(['TCP', 'UDP']),
          ...(this.chance(0.5) ? { hostIP: this.of(['10.0.0.1', '10.0.0.2']) } : {}),
        }))
      : [];
    return {
      name: 'c',
      image: this.of(['app:1', 'app:2', 'other']),
      resources: { requests },
      ports,
    };
  }

  #nodeAffinity(): Record<string, unknown> {
    const zone = {
      matchExpressions: [{ key: ZONE, operator: this.of(['In', 'NotIn']), values: ['za'] }],
    };
    if (this.chance(0.25)) {
      const preferred = [
        { weight: this.of([1, 7, 30]), preference: zone },
        { weight: 5, preference: { matchExpressions: [{ key: 'disk', operator: 'Exists' }] } },
      ];
      return { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } };
    }
    if (!this.chance(0.2)) return {};
    const values = this.#some(2, () => `n${this.#random.below(16)}`);
    const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values }] };
    const terms = this.of([[zone], [named], [named, zone], [{ ...named, ...zone }]]);
    const required = { nodeSelectorTerms: terms };
    return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
  }

  /** `required`: the share of sets with a required term. */
  #podAffinity(required: number): Record<string, unknown> {
    const affinity: Record<string, unknown> = {};
    if (this.chance(required)) {
      const terms = this.#some(this.chance(0.2) ? 2 : 1, () => this.#term());
      affinity['requiredDuringSchedulingIgnoredDuringExecution'] = terms;
    }
    if (this.chance(1.1 - required)) {
      affinity['preferredDuringSchedulingIgnoredDuringExecution'] = this.#some(2, () => ({
        weight: this.of([1, 10, 100]),
        podAffinityTerm: this.#term(),
      }));
    }
    return affinity;
  }

  #selector(): Record<string, unknown> {
    if (this.chance(0.05)) return {};
    if (this.chance(0.7)) return { labelSelector: { matchLabels: { app: this.of(APPS) } } };
    if (this.chance(0.1)) return { labelSelector: {} };
    const values = this.#some(2, () => this.of(APPS));
    const expressions = [
      { key: 'app', operator: this.of(['In', 'NotIn']), values },
      { key: 'tier', operator: this.of(['Exists', 'DoesNotExist']) },
    ];
    return { labelSelector: { matchExpressions: expressions.slice(this.#random.below(2)) } };
  }

  #term(): Record<string, unknown> {
    const term = { topologyKey: this.of([HOST, ZONE, ZONE, 'rack']), ...this.#selector() };
    if (this.chance(0.15))
      return { ...term, namespaces: this.#some(2, () => this.of(['n1', 'n2'])) };
    if (!this.chance(0.15)) return term;
    const matchLabels = this.chance(0.3) ? {} : { team: this.of(['x', 'y']) };
    return { ...term, namespaceSelector: { matchLabels } };
  }

  #constraint(): Record<string, unknown> {
    const whenUnsatisfiable = this.of(['DoNotSchedule', 'ScheduleAnyway']);
    const isHard = whenUnsatisfiable === 'DoNotSchedule';
    return {
      maxSkew: this.of([1, 1, 2, 5]),
      topologyKey: this.of([HOST, ZONE, ZONE, 'rack']),
      whenUnsatisfiable,
      ...this.#selector(),
      ...(isHard && this.chance(0.3) ? { minDomains: this.of([2, 5]) } : {}),
      ...(this.chance(0.3) ? { nodeAffinityPolicy: this.of(['Honor', 'Ignore']) } : {}),
      ...(this.chance(0.3) ? { nodeTaintsPolicy: this.of(['Honor', 'Ignore']) } : {}),
      ...(this.chance(0.2) ? { matchLabelKeys: ['tier'] } : {}),
    };
  }
}
