/** Nodes, pods, controllers and schedulers in a world that goes wrong, and who disturbs them. */
import type { NodeObject, PodObject } from '../api/objects.ts';
import { ApiServer } from './api-server.sim.ts';
import { Controllers } from './controllers.sim.ts';
import { Laws } from './laws.sim.ts';
import { nodeOf } from './room.sim.ts';
import { SchedulerProcess } from './scheduler-process.sim.ts';
import { World } from './world.sim.ts';

const SECOND_MS = 1000;

export class Cluster {
  readonly world: World;
  readonly server: ApiServer;
  readonly laws: Laws;
  readonly controllers: Controllers;
  readonly schedulers: SchedulerProcess[] = [];
  #serial = 0;
  readonly #isSharded: boolean;

  /** `isSharded`: each scheduler has shards, which it needs for every pod. */
  constructor(seed: number, isSharded = false) {
    this.#isSharded = isSharded;
    this.world = new World(seed);
    this.server = new ApiServer(this.world);
    this.laws = new Laws(this.world, this.server);
    this.controllers = new Controllers(this.world, this.server);
    for (let i = 0; i < 4; i++) this.controllers.setNode(`n${i}`, 8);
    for (let i = 0; i < 3; i++) this.#addReplicaSet(i);
    for (let i = 0; i < 2; i++) this.#startScheduler(i);
  }

  #startScheduler(at: number): void {
    const name = `scheduler-${++this.#serial}`;
    const die = (): void => this.restart(at);
    const { world, server, laws } = this;
    const isSharded = this.#isSharded;
    this.schedulers[at] = new SchedulerProcess(world, server, laws, { name, isSharded }, die);
  }

  restart(at: number): void {
    const before = this.schedulers[at];
    if (before === undefined || before.isStopped) return;
    before.stop();
    this.world.at(SECOND_MS, () => this.#startScheduler(at));
  }

  #addReplicaSet(at: number): void {
    const name = `app${at}`;
    const template = { ...this.randomSpec(name), priority: at * 10 };
    this.controllers.replicaSets.push({ name, replicas: 3, template });
    this.server.put('PodDisruptionBudget', {
      metadata: { name, namespace: 'default' },
      spec: { selector: { matchLabels: { app: name } } },
      status: { disruptionsAllowed: 0 },
    } as never);
  }

  randomSpec(app = ''): PodObject['spec'] {
    const { random } = this.world;
    const one = (percent: number): boolean => random.below(100) < percent;
    const requests = {
      cpu: String(1 + random.below(3)),
      ...(one(10) ? { 'example.com/gpu': '1' } : {}),
    };
    const ports = one(10) ? [{ hostPort: 8000 + random.below(2), containerPort: 80 }] : [];
    const terms = [
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app } } },
    ];
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: terms };
    return {
      priority: [0, 0, 0, 50, 100][random.below(5)] ?? 0,
      ...(one(10) ? { preemptionPolicy: 'Never' } : {}),
      containers: [{ name: 'c', resources: { requests }, ports }],
      ...(one(15)
        ? { nodeSelector: { 'topology.kubernetes.io/zone': `z${random.below(2)}` } }
        : {}),
      ...(one(20) ? { tolerations: [{ key: 'bad', operator: 'Exists' }] } : {}),
      ...(app !== '' && one(40) ? { affinity: { podAntiAffinity } } : {}),
      ...(one(15) ? { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: '' } }] } : {}),
      ...(one(15) ? { resourceClaims: [{ name: 'd', resourceClaimName: '' }] } : {}),
    };
  }

  /** One thing that people, controllers or bad luck do. */
  disturb(): void {
    const { world, server, controllers } = this;
    const { random } = world;
    const pod = world.pick(server.all<PodObject>('Pod'));
    const node = world.pick(server.all<NodeObject>('Node'));
    const at = random.below(2);
    if (this.#isSharded && random.below(100) < 30) this.schedulers[at]?.shards?.disturb();
    const dice = random.below(100);
    if (dice < 40) controllers.addPod(`p${random.below(60)}`, this.randomSpec());
    else if (dice < 45) controllers.addGang([0, 100][random.below(2)] ?? 0);
    else if (dice < 58) this.#removePod(pod);
    else if (dice < 68)
      controllers.setNode(`n${random.below(6)}`, 4 + random.below(3) * 2, this.#spec());
    else if (dice < 71 && node !== undefined) server.delete('Node', node.metadata.name);
    else if (dice < 74 && node !== undefined) controllers.drain(node.metadata.name);
    else if (dice < 77) this.#bindByHand(pod);
    else if (dice < 80) this.#resize(pod);
    else if (dice < 83) controllers.addDisk(`z${at}`);
    else if (dice < 85) this.restart(at);
    else if (dice < 87) this.schedulers[at]?.pause(random.below(30 * SECOND_MS));
    else if (dice < 89) this.schedulers[at]?.setClock((random.below(3) - 1) * 86_400_000);
    else if (dice < 91) this.schedulers[at]?.goDeaf();
    else if (dice < 92) world.goOut();
    else if (dice < 94) world.goStormy();
    else {
      const one = world.pick(controllers.replicaSets);
      if (one !== undefined) one.replicas = random.below(5);
    }
  }

  #spec(): NonNullable<NodeObject['spec']> {
    const isBad = this.world.random.below(4) === 0;
    return isBad ? { taints: [{ key: 'bad', effect: 'NoSchedule' }] } : {};
  }

  /** Names come again: as a StatefulSet does it, some at once. */
  #removePod(pod: PodObject | undefined): void {
    if (pod === undefined) return;
    const { name, namespace = '' } = pod.metadata;
    const group = pod.spec.schedulingGroup?.podGroupName;
    if (group !== undefined) this.server.put('Lost', { metadata: { name: group } });
    if (this.world.random.below(2) === 0) this.server.deletePod(`${namespace}/${name}`);
    else {
      this.server.delete('Pod', `${namespace}/${name}`);
      const isAgain = name.startsWith('p') && this.world.random.below(2) === 0;
      if (isAgain) this.controllers.addPod(name, this.randomSpec());
    }
  }

  #bindByHand(pod: PodObject | undefined): void {
    const node = this.world.pick(this.server.all<NodeObject>('Node'));
    if (pod === undefined || node === undefined || nodeOf(pod) !== '') return;
    if (pod.spec.schedulingGroup !== undefined || pod.spec.resourceClaims !== undefined) return;
    this.server.put('Pod', { ...pod, spec: { ...pod.spec, nodeName: node.metadata.name } });
  }

  #resize(pod: PodObject | undefined): void {
    if (pod === undefined || nodeOf(pod) === '') return;
    const requests = { cpu: String(1 + this.world.random.below(4)) };
    const containers = [{ ...pod.spec.containers?.[0], name: 'c', resources: { requests } }];
    this.server.put('Pod', { ...pod, spec: { ...pod.spec, containers } });
  }
}
