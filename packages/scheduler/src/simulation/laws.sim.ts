/** Laws that hold whatever happens, judged from what is stored and who asked for it. */
import type { BudgetObject, KubeObject, NodeObject, PodObject } from '../api/objects.ts';
import { keyOf } from '../api/objects.ts';
import type { PodGroupObject } from '../podgroup/pod-groups.ts';
import type { VolumeObject } from '../framework/volumes.ts';
import type { ApiServer, Judge } from './api-server.sim.ts';
import type { Decision, SchedulerProcess, Witness } from './scheduler-process.sim.ts';
import * as room from './room.sim.ts';
import { nodeOf, obstacle, priorityOf, type DeviceClaim, type Sight } from './room.sim.ts';
import type { World } from './world.sim.ts';

/** What somebody else did to a node, or to pods there. */
interface Interference {
  readonly kind: string;
  readonly revision: number;
}

interface Choice {
  readonly by: SchedulerProcess;
  readonly node: string;
  readonly seen: ReadonlyMap<string, number>;
}

/** Bindings of one gang take no longer than this, where nothing goes wrong. */
const GANG_MS = 5000;

export class Laws implements Judge, Witness {
  bound = 0;
  readonly #world: World;
  readonly #server: ApiServer;
  /** Last decisions, by uid. */
  readonly #choices = new Map<string, Choice>();
  readonly #interferences = new Map<string, Interference[]>();
  /** Who bound pods, by uid. */
  readonly #binders = new Map<string, string>();
  /** Pods with which something went wrong on the way. */
  readonly #hurt = new Set<string>();
  /** Pods that are to make room. */
  readonly #condemned = new Set<string>();
  readonly #gangs = new Set<string>();
  /** Schedulers that wrote claims last, by key; empty where somebody else did. */
  readonly #writers = new Map<string, string>();
  /** A scheduler's claim is being stored. */
  #isWriting = false;
  readonly #homes = new Map<string, string>();
  /** A scheduler's binding is being stored. */
  #isBinding = false;

  constructor(world: World, server: ApiServer) {
    this.#world = world;
    this.#server = server;
    server.judge = this;
    server.watch((kind, key, after, revision) => this.#stored(kind, key, after, revision));
  }

  chose({ by, key, uid }: Decision, node: string): void {
    const before = this.#choices.get(uid);
    if (before?.by === by && before.node === node) return;
    if (before?.by === by) this.#world.fault(`${key} is bound to ${node} and ${before.node}`);
    this.#leads(by, `binds ${key}`);
    this.#choices.set(uid, { by, node, seen: new Map(by.seenRevision) });
  }

  gaveUp({ uid, by, key }: Decision): void {
    const choice = this.#choices.get(uid);
    const stored = this.#server.get<PodObject>('Pod', key);
    const isBound = stored?.metadata.uid === uid && nodeOf(stored) === choice?.node;
    if (isBound && this.#binders.get(uid) === by.name) {
      this.#world.fault(`${by.name} takes its own binding of ${key} for none`);
    }
    if (choice?.by === by) this.#choices.delete(uid);
    this.#hurt.add(uid);
  }

  isHurt(path: string): void {
    const [, key = ''] = /namespaces\/(.*)$/.exec(path) ?? [];
    const [namespace = '', , name = ''] = key.split('/');
    const pod = this.#server.get('Pod', `${namespace}/${name}`);
    if (pod?.metadata.uid !== undefined) this.#hurt.add(pod.metadata.uid);
  }

  /** Whom a pod may push aside: less important ones, and those that budgets allow if it can. */
  evicts({ by, key }: Decision, node: string, victims: readonly string[]): void {
    this.#leads(by, `evicts for ${key}`);
    const sight = sightOf(by);
    const pod = sight.get<PodObject>('Pod', key);
    if (pod === undefined) return;
    if (pod.spec.preemptionPolicy === 'Never') this.#world.fault(`${key} evicts, but never may`);
    for (const victim of victims) {
      const object = sight.get<PodObject>('Pod', victim);
      if (object === undefined) continue;
      const isLess = priorityOf(object) < priorityOf(pod);
      if (!isLess) this.#world.fault(`${key} evicts ${victim}, which is as important`);
      const home = nodeOf(object);
      if (home !== '' && home !== node) this.#world.fault(`${victim} is not on ${node}`);
      this.#condemned.add(object.metadata.uid ?? '');
    }
    const broken = violations(victims, sight);
    // Who waits for a node makes it a worse choice; then no other can be called better.
    const isSimple = !sight.all<PodObject>('Pod').some(({ status }) => status?.nominatedNodeName);
    if (broken === '' || !isSimple || by.core.assumed > 0 || by.core.nominator.size > 1) return;
    for (const other of sight.all<NodeObject>('Node')) {
      if (!this.#couldSpare(pod, other, sight)) continue;
      const choice = `${key} evicts ${victims.join(' ')} from ${node} against ${broken}`;
      return this.#world.fault(`${choice}; ${other.metadata.name} needs none such`);
    }
  }

  binds(pod: PodObject, name: string, by: string): void {
    this.bound++;
    this.#binders.set(pod.metadata.uid ?? '', by);
    const key = keyOf(pod);
    const choice = this.#choices.get(pod.metadata.uid ?? '');
    if (choice === undefined) return this.#world.fault(`${key} is bound, but nobody chose so`);
    if (choice.node !== name) return;
    this.#isBinding = true;
    const node = this.#server.get<NodeObject>('Node', name);
    if (node === undefined || this.#isDisturbed(name, choice)) return;
    const problem = obstacle(pod, node, this.#podsOn(name));
    if (problem !== '') this.#world.fault(`${key} is bound to ${name}: ${problem}`);
    this.#judgeThings(pod, node);
  }

  deletes(pod: PodObject, by: string): void {
    const isMeant = this.#condemned.has(pod.metadata.uid ?? '');
    if (!isMeant) this.#world.fault(`${by} deletes ${keyOf(pod)}, which it did not choose`);
  }

  writes(kind: string, before: KubeObject, after: KubeObject, by: string): void {
    if (kind === room.VOLUME) this.#judgeVolume(before, after, by);
    if (kind !== 'ResourceClaim') return;
    this.#writers.set(keyOf(after), by);
    this.#isWriting = true;
    const taken = new Map<string, string>();
    const seen = this.#choiceFor(keyOf(after))?.seen.get(kind) ?? 0;
    for (const claim of this.#server.all<DeviceClaim>(kind)) {
      if (keyOf(claim) === keyOf(after)) continue;
      // Of what another scheduler did just before, this one cannot know.
      const isNews = Number(claim.metadata.resourceVersion) > seen;
      if (isNews && this.#writers.get(keyOf(claim)) !== by) continue;
      for (const { pool, device } of room.resultsOf(claim)) {
        taken.set(`${pool}/${device}`, keyOf(claim));
      }
    }
    for (const { pool, device } of room.resultsOf(after)) {
      const other = taken.get(`${pool}/${device}`);
      if (other !== undefined) this.#world.fault(`${keyOf(after)} gets ${other}'s ${device}`);
    }
  }

  /** Pods that wait although there is room, or could be, as far as anybody can tell. */
  forgotten(): string[] {
    const server = this.#server;
    return server
      .all<PodObject>('Pod')
      .filter((pod) => nodeOf(pod) === '' && pod.spec.schedulingGroup === undefined)
      .flatMap((pod) => {
        const nodes = server.all<NodeObject>('Node').filter((node) => this.#hasRoom(pod, node));
        const key = `${keyOf(pod)} (${pod.metadata.uid})`;
        return nodes.map(({ metadata }) => `${key} waits for ${metadata.name}`).slice(0, 1);
      });
  }

  #hasRoom(pod: PodObject, node: NodeObject): boolean {
    const { name } = node.metadata;
    const server = this.#server;
    const waiting = server.all<PodObject>('Pod').filter((other) => {
      const isNamed = nodeOf(other) === '' && other.status?.nominatedNodeName === name;
      return isNamed && other !== pod && priorityOf(other) >= priorityOf(pod);
    });
    if (waiting.length > 0 || !room.hasThings(pod, node, server)) return false;
    const mayEvict = pod.spec.preemptionPolicy !== 'Never';
    const stays = (other: PodObject): boolean => !mayEvict || priorityOf(other) >= priorityOf(pod);
    return obstacle(pod, node, this.#podsOn(name).filter(stays)) === '';
  }

  #leads({ name }: SchedulerProcess, what: string): void {
    const lease = this.#server.get<LeaseObject>('Lease', 'kube-system/kube-scheduler');
    const holder = lease?.spec?.holderIdentity ?? '';
    if (holder !== name) this.#world.fault(`${name} ${what}, but ${holder} leads`);
  }

  #choiceFor(key: string): Choice | undefined {
    return this.#choices.get(this.#server.get('Pod', key)?.metadata.uid ?? '');
  }

  #podsOn(name: string): PodObject[] {
    return this.#server.all<PodObject>('Pod').filter((pod) => nodeOf(pod) === name);
  }

  /** Whether the node was changed by others after what the decision knew of. */
  #isDisturbed(name: string, { seen }: Choice): boolean {
    const all = this.#interferences.get(name) ?? [];
    return all.some(({ kind, revision }) => revision > (seen.get(kind) ?? 0));
  }

  #judgeThings(pod: PodObject, { metadata: { name, labels = {} } }: NodeObject): void {
    const key = keyOf(pod);
    for (const claim of room.diskClaims(pod, this.#server)) {
      if (claim === undefined) continue;
      const volume = this.#server.get<VolumeObject>(room.VOLUME, claim.spec?.volumeName ?? '');
      if (volume === undefined) this.#world.fault(`${key} is bound before its disk is there`);
      else if (room.zoneOf(volume) !== labels[room.ZONE]) {
        this.#world.fault(`${key} is bound to ${name}, away from its disk`);
      }
    }
    for (const claim of room.deviceClaims(pod, this.#server)) {
      // Its controller may have taken it back, or made another.
      if (claim === undefined || !this.#writers.has(keyOf(claim))) continue;
      const isOurs = claim.status?.reservedFor?.some(({ uid }) => uid === pod.metadata.uid);
      if (isOurs !== true) this.#world.fault(`${key} is bound, but its devices are not its own`);
      const isHere = room.resultsOf(claim).every(({ pool }) => pool === name);
      if (!isHere) this.#world.fault(`${key} is bound to ${name}, away from its devices`);
    }
  }

  #judgeVolume(before: KubeObject, after: KubeObject, by: string): void {
    const was = (before as VolumeObject).spec?.claimRef?.name ?? '';
    const is = (after as VolumeObject).spec?.claimRef?.name ?? '';
    const isStolen = was !== '' && was !== is;
    if (isStolen) this.#world.fault(`${by} gives ${was}'s disk to ${is}`);
  }

  /** Whether a node could be made free without breaking a budget, by upstream's order. */
  #couldSpare(pod: PodObject, node: NodeObject, sight: Sight): boolean {
    const { name } = node.metadata;
    const all = sight.all<PodObject>('Pod').filter((other) => nodeOf(other) === name);
    const less = all.filter((other) => priorityOf(other) < priorityOf(pod));
    const safe = less.filter((other) => budgetsOf(other, sight).length === 0);
    const rest = all.filter((other) => !safe.includes(other));
    if (safe.length === 0 || !room.hasThings(pod, node, sight)) return false;
    return obstacle(pod, node, rest) === '';
  }

  #stored(kind: string, key: string, after: KubeObject | null, revision: number): void {
    const isOurs = this.#isBinding;
    this.#isBinding = false;
    if (kind === 'Node') return this.#interfere(key, { kind, revision });
    if (kind === 'ResourceClaim') {
      if (!this.#isWriting) this.#writers.delete(key);
      this.#isWriting = false;
    }
    if (kind !== 'Pod' || after === null) return;
    const pod = after as PodObject;
    const uid = pod.metadata.uid ?? '';
    const home = nodeOf(pod);
    const before = this.#homes.get(uid);
    const size = `${home} ${requestOfAll(pod)} ${JSON.stringify(pod.metadata.labels)}`;
    this.#homes.set(uid, size);
    if (home === '' || before === size) return;
    if (before !== undefined && !before.startsWith(' ') && !before.startsWith(`${home} `)) {
      this.#world.fault(`${key} is moved to ${home} from ${before}`);
    }
    if (!isOurs) this.#interfere(home, { kind, revision });
    this.#choicesOf(uid, home, { kind, revision });
    const group = pod.spec.schedulingGroup?.podGroupName ?? '';
    if (group === '' || this.#gangs.has(group)) return;
    this.#gangs.add(group);
    this.#world.at(GANG_MS, () => this.#judgeGang(group));
  }

  /** For all but the process that bound it, a binding is somebody else's doing. */
  #choicesOf(uid: string, home: string, interference: Interference): void {
    const { by } = this.#choices.get(uid) ?? {};
    if (by === undefined || by.isStopped) this.#interfere(home, interference);
  }

  #interfere(node: string, interference: Interference): void {
    const all = this.#interferences.get(node) ?? [];
    all.push(interference);
    this.#interferences.set(node, all);
  }

  #judgeGang(name: string): void {
    const server = this.#server;
    const group = server.get<PodGroupObject>('PodGroup', `default/${name}`);
    const wanted = group?.spec?.schedulingPolicy?.gang?.minCount ?? 0;
    const members = server
      .all<PodObject>('Pod')
      .filter(({ spec }) => spec.schedulingGroup?.podGroupName === name);
    const isHurt = members.some(({ metadata }) => this.#hurt.has(metadata.uid ?? ''));
    if (isHurt || members.length < wanted || server.get('Lost', name) !== undefined) return;
    const placed = members.filter((pod) => nodeOf(pod) !== '');
    const text = `${placed.length} of ${wanted} pods of ${name} have a node`;
    if (placed.length > 0 && placed.length < wanted) this.#world.fault(text);
  }
}

interface LeaseObject extends KubeObject {
  readonly spec?: { readonly holderIdentity?: string };
}

function requestOfAll({ spec }: PodObject): string {
  return JSON.stringify((spec.containers ?? []).map(({ resources }) => resources?.requests));
}

function sightOf(process: SchedulerProcess): Sight {
  return {
    get: <T extends KubeObject>(kind: string, key: string) =>
      process.seen.get(kind)?.get(key) as T | undefined,
    all: <T extends KubeObject>(kind: string) => process.seenOf<T>(kind),
  };
}

function budgetsOf({ metadata: { labels = {} } }: PodObject, sight: Sight): BudgetObject[] {
  const app = labels['app'] ?? '';
  return sight
    .all<BudgetObject>('PodDisruptionBudget')
    .filter(({ spec }) => app !== '' && spec?.selector?.matchLabels?.['app'] === app);
}

/** The budget that goes below nothing when these pods go, or empty. */
function violations(victims: readonly string[], sight: Sight): string {
  const left = new Map<string, number>();
  for (const key of victims) {
    const pod = sight.get<PodObject>('Pod', key);
    for (const budget of pod === undefined ? [] : budgetsOf(pod, sight)) {
      const { name } = budget.metadata;
      const rest = (left.get(name) ?? budget.status?.disruptionsAllowed ?? 0) - 1;
      left.set(name, rest);
      if (rest < 0) return name;
    }
  }
  return '';
}
