/** Controllers, kubelets and people of the simulated cluster. */
import type { BudgetObject, KubeObject, NodeObject, PodObject } from '../api/objects.ts';
import { keyOf } from '../api/objects.ts';
import type { ClaimObject, VolumeObject } from '../framework/volumes.ts';
import type { ApiServer } from './api-server.sim.ts';
import { CLAIM, DEVICES, VOLUME, ZONE, nodeOf, type DeviceClaim } from './room.sim.ts';
import type { World } from './world.sim.ts';

const LOOK_MS = 500;
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const DRIVER = 'gpu.example.com';

interface ReplicaSet {
  readonly name: string;
  replicas: number;
  readonly template: PodObject['spec'];
}

export class Controllers {
  readonly replicaSets: ReplicaSet[] = [];
  readonly #world: World;
  readonly #server: ApiServer;
  #serial = 0;

  constructor(world: World, server: ApiServer) {
    this.#world = world;
    this.#server = server;
    server.put('StorageClass', {
      metadata: { name: 'near' },
      provisioner: 'disks.example.com',
      volumeBindingMode: 'WaitForFirstConsumer',
    } as KubeObject);
    server.put('DeviceClass', { metadata: { name: 'gpu' }, spec: {} } as KubeObject);
    server.put('Namespace', { metadata: { name: 'default' } });
    server.put('CSIDriver', { metadata: { name: 'disks.example.com' } });
    world.every(LOOK_MS, () => {
      this.#replicate();
      this.#budget();
      this.#collect();
      this.#bindDisks();
      this.#freeDevices();
    });
  }

  setNode(name: string, cpu: number, spec: NodeObject['spec'] = {}): void {
    const labels = { [ZONE]: `z${Number(name.slice(1)) % 2}`, 'kubernetes.io/hostname': name };
    const allocatable = {
      cpu: String(cpu),
      memory: '64000000000',
      pods: '12',
      'example.com/gpu': 1,
    };
    this.#server.put('Node', {
      metadata: { name, labels },
      spec,
      status: { allocatable },
    } as never);
    const devices = Array.from({ length: DEVICES }, (_, at) => ({ name: `${name}-d${at}` }));
    const pool = { name, generation: 1, resourceSliceCount: 1 };
    const slice = { driver: DRIVER, nodeName: name, pool, devices };
    if (this.#server.get('ResourceSlice', `slice-${name}`) !== undefined) return;
    this.#server.put('ResourceSlice', {
      metadata: { name: `slice-${name}` },
      spec: slice,
    } as KubeObject);
  }

  addPod(name: string, spec: PodObject['spec'], app = ''): void {
    if (this.#server.get('Pod', `default/${name}`) !== undefined) return;
    const labels = app === '' ? {} : { app };
    const volumes = (spec.volumes ?? []).map((volume) => ({
      ...volume,
      persistentVolumeClaim: { claimName: name },
    }));
    const resourceClaims = (spec.resourceClaims ?? []).map(({ name: own }) => ({
      name: own,
      resourceClaimName: name,
    }));
    const things = {
      ...(volumes.length > 0 ? { volumes } : {}),
      ...(resourceClaims.length > 0 ? { resourceClaims } : {}),
    };
    // What a pod names may come after it.
    const delays = [this.#world.random.below(600), this.#world.random.below(600)];
    if (volumes.length > 0) this.#world.at(delays[0]!, () => this.#addDiskClaim(name));
    if (resourceClaims.length > 0) this.#world.at(delays[1]!, () => this.#addDeviceClaim(name));
    const metadata = { name, namespace: 'default', labels };
    this.#server.put('Pod', {
      metadata,
      spec: { schedulerName: 'default-scheduler', ...spec, ...things },
    });
  }

  addGang(priority: number): void {
    const group = `g${++this.#serial}`;
    const size = 2 + this.#world.random.below(3);
    const spec = { schedulingPolicy: { gang: { minCount: size } } };
    this.#server.put('PodGroup', {
      metadata: { name: group, namespace: 'default' },
      spec,
    } as KubeObject);
    const containers = [{ name: 'c', resources: { requests: { cpu: '2' } } }];
    const schedulingGroup = { podGroupName: group };
    for (let i = 0; i < size; i++) {
      this.addPod(`${group}-${i}`, { priority, containers, schedulingGroup });
    }
  }

  /** As `kubectl drain`: only what budgets allow. */
  drain(name: string): void {
    const node = this.#server.get<NodeObject>('Node', name);
    if (node === undefined) return;
    this.#server.put('Node', { ...node, spec: { ...node.spec, unschedulable: true } });
    for (const pod of this.#pods()) {
      const budgets = this.#budgetsOf(pod);
      const isAllowed = budgets.every(({ status }) => (status?.disruptionsAllowed ?? 0) > 0);
      if (nodeOf(pod) !== name || !isAllowed) continue;
      this.#server.deletePod(keyOf(pod));
      this.#budget();
    }
  }

  #pods(): PodObject[] {
    return this.#server.all<PodObject>('Pod');
  }

  #replicate(): void {
    for (const { name, replicas, template } of this.replicaSets) {
      const own = this.#pods().filter(
        ({ metadata }) =>
          metadata.labels?.['app'] === name && metadata.deletionTimestamp === undefined,
      );
      for (let i = own.length; i < replicas; i++) {
        this.addPod(`${name}-${++this.#serial}`, template, name);
      }
      for (const pod of own.slice(replicas)) this.#server.deletePod(keyOf(pod));
    }
  }

  #budgetsOf({ metadata: { labels = {} } }: PodObject): BudgetObject[] {
    const app = labels['app'] ?? '';
    const all = this.#server.all<BudgetObject>('PodDisruptionBudget');
    return all.filter(({ spec }) => app !== '' && spec?.selector?.matchLabels?.['app'] === app);
  }

  #budget(): void {
    for (const budget of this.#server.all<BudgetObject>('PodDisruptionBudget')) {
      const app = budget.spec?.selector?.matchLabels?.['app'];
      const all = this.#pods().filter(({ metadata }) => metadata.labels?.['app'] === app);
      const healthy = all.filter(
        (pod) => nodeOf(pod) !== '' && pod.metadata.deletionTimestamp === undefined,
      );
      const { replicas = 0 } = this.replicaSets.find(({ name }) => name === app) ?? {};
      const disruptionsAllowed = Math.max(0, healthy.length - Math.max(0, replicas - 1));
      if (budget.status?.disruptionsAllowed === disruptionsAllowed) continue;
      this.#server.put('PodDisruptionBudget', { ...budget, status: { disruptionsAllowed } });
    }
  }

  /** Pods of nodes that are gone go, too, and what was made for pods goes with them. */
  #collect(): void {
    for (const pod of this.#pods()) {
      const node = nodeOf(pod);
      const isLost = node !== '' && this.#server.get('Node', node) === undefined;
      if (!isLost) continue;
      const group = pod.spec.schedulingGroup?.podGroupName;
      if (group !== undefined) this.#server.put('Lost', { metadata: { name: group } });
      this.#server.delete('Pod', keyOf(pod));
    }
    for (const kind of [CLAIM, 'ResourceClaim']) {
      for (const claim of this.#server.all(kind)) {
        if (this.#server.get('Pod', keyOf(claim)) !== undefined) continue;
        this.#server.delete(kind, keyOf(claim));
      }
    }
    for (const volume of this.#server.all<VolumeObject>(VOLUME)) {
      const { name = '', uid } = volume.spec?.claimRef ?? {};
      const isLeft = name !== '' && this.#claim(name)?.metadata.uid !== uid;
      if (isLeft) this.#server.delete(VOLUME, keyOf(volume));
    }
  }

  #claim(name: string): ClaimObject | undefined {
    return this.#server.get<ClaimObject>(CLAIM, `default/${name}`);
  }

  #addDiskClaim(name: string): void {
    if (this.#claim(name) !== undefined) return;
    const requests = { storage: '1Gi' };
    this.#server.put<ClaimObject>(CLAIM, {
      metadata: { name, namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'near', resources: { requests } },
      status: { phase: 'Pending' },
    });
  }

  #addDeviceClaim(name: string): void {
    if (this.#server.get('ResourceClaim', `default/${name}`) !== undefined) return;
    const requests = [{ name: 'r', exactly: { deviceClassName: 'gpu', count: 1 } }];
    const spec = { devices: { requests } };
    this.#server.put('ResourceClaim', {
      metadata: { name, namespace: 'default' },
      spec,
    } as KubeObject);
  }

  /** A disk that lies in a zone, free for a claim. */
  addDisk(zone: string, claimRef?: object): VolumeObject {
    const matchExpressions = [{ key: ZONE, operator: 'In', values: [zone] }];
    return this.#server.put<VolumeObject>(VOLUME, {
      metadata: { name: `disk-${++this.#serial}` },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'near',
        ...(claimRef === undefined ? {} : { claimRef }),
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      },
      status: { phase: claimRef === undefined ? 'Available' : 'Bound' },
    });
  }

  /** Binds what the scheduler has matched, and makes the disks that it asks for. */
  #bindDisks(): void {
    for (const claim of this.#server.all<ClaimObject>(CLAIM)) {
      if ((claim.spec?.volumeName ?? '') !== '') continue;
      const { name, uid, annotations } = claim.metadata;
      const matched = this.#server
        .all<VolumeObject>(VOLUME)
        .find(({ spec }) => spec?.claimRef?.uid === uid);
      if (matched !== undefined) this.#bindDisk(claim, matched);
      const selected = annotations?.[SELECTED_NODE] ?? '';
      if (matched !== undefined || selected === '') continue;
      const node = this.#server.get<NodeObject>('Node', selected);
      if (node === undefined || this.#world.chance(20)) {
        this.#server.put(CLAIM, { ...claim, metadata: { ...claim.metadata, annotations: {} } });
        continue;
      }
      const claimRef = { namespace: 'default', name, uid };
      this.#bindDisk(claim, this.addDisk(node.metadata.labels?.[ZONE] ?? '', claimRef));
    }
  }

  #bindDisk(claim: ClaimObject, volume: VolumeObject): void {
    const annotations = { ...claim.metadata.annotations, 'pv.kubernetes.io/bind-completed': 'yes' };
    const spec = { ...claim.spec, volumeName: volume.metadata.name };
    const metadata = { ...claim.metadata, annotations };
    this.#server.put(CLAIM, { ...claim, metadata, spec, status: { phase: 'Bound' } });
  }

  /** Devices of pods that are gone are free again. */
  #freeDevices(): void {
    const uids = new Set(this.#pods().map(({ metadata }) => metadata.uid));
    for (const claim of this.#server.all<DeviceClaim>('ResourceClaim')) {
      const { reservedFor = [], allocation: _, ...rest } = claim.status ?? {};
      const left = reservedFor.filter(({ uid }) => uids.has(uid));
      if (left.length === reservedFor.length) continue;
      const status = left.length === 0 ? rest : { ...claim.status, reservedFor: left };
      this.#server.put('ResourceClaim', { ...claim, status });
    }
  }
}
