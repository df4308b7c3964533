// data plane: one class of pods against one node
import type { PodCounter } from './pod-counters.ts';
import type { FastProfile } from './fast-profile.ts';
import { percent } from '../../collections/integers.ts';
import { HOSTNAME_KEY, matchableOf } from '../../cache/node-facts.ts';
import { matchesTerm } from '../../api/node-selector.ts';
import type { NodeTable } from '../../cache/node-table.ts';
import {
  hasUntolerated,
  isTolerated,
  softTaints,
} from '../../framework/plugins/taint-toleration.ts';
import type { NodeDevices, PodClass } from '../../cache/pod-class.ts';

/** Verdicts of nodes that will not do; zero or more is a score. */
export const ABSENT = -1;
export const CORDONED = -2;
export const TAINTED = -3;
export const UNMATCHED = -4;
export const PORT_TAKEN = -5;
/** No devices for the claims of the pod; full evaluation tells why. */
export const NO_DEVICES = -6;
/** The pod names nodes, and not this one: it is not looked at. */
export const UNNAMED = -7;
/** At and below: shortages, `-(SHORT + 2 * mask + hopeless)`. */
const SHORT = 16;

const PODS_BIT = 1;
const CPU_BIT = 2;
const MEMORY_BIT = 4;
const EPHEMERAL_BIT = 8;
const FIRST_SCALAR_BIT = 16;

/** Capacities of which bounds are told. */
const CAPACITY_MAX: number = 2 ** 45;

const CORDON_TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
const IMAGE_BYTES_MIN: number = 23 * 1024 * 1024;
const IMAGE_BYTES_MAX: number = 1000 * 1024 * 1024;

/** What of a node's kind is scored by comparison with feasible nodes, or gated by its domain. */
export interface RawPair {
  readonly softTaints: number;
  readonly affinity: number;
  /** Of the topology keys that the rules were made for; undefined where a node has none. */
  readonly values: readonly (string | undefined)[];
  readonly hasHostname: boolean;
}

/**
 * Judges nodes for one class. What depends on labels and taints alone is found out once per kind
 * of node; the rest is arithmetic on columns, to the last bit that of the plugins.
 */
export class ClassRules {
  readonly pairs: RawPair[] = [];
  /** Which of `pairs` the node of the last `judge` has. */
  pair = 0;
  readonly podClass: PodClass;
  readonly #keys: readonly string[];
  readonly #devices: NodeDevices | null;
  /** Pods that hold a port that the class wants. */
  readonly ports: PodCounter | null;
  readonly #pairNumbers = new Map<string, number>();
  readonly #table: NodeTable;
  readonly #profile: FastProfile;
  readonly #scalars: { readonly scalar: number; readonly name: string; readonly amount: number }[];
  /** Scalar resources without which a node will not do. */
  readonly wanted: readonly number[];
  readonly #isBalanced: boolean;
  readonly #isNameBound: boolean;
  readonly #milliCpu: number;
  readonly #memory: number;
  readonly #ephemeral: number;
  readonly #scoreMilliCpu: number;
  readonly #scoreMemory: number;
  readonly #images: readonly string[];
  readonly #toleratesCordon: boolean;
  /** By kind of node: 0 unknown, negative a verdict, else 1 + index of the raw pair. */
  #kindMemo: Int32Array = new Int32Array(64);
  #kindEpoch = 0;
  /** By image set: 1 + score, 0 unknown. */
  #imageMemo: Int16Array = new Int16Array(64);
  #imageStamp = -1;
  #imageRound = 0;
  #hasImages = false;

  /**
   * `keys`: topology keys by which nodes are told apart. `ports`: counts pods that hold a host
   * port that the class wants; needed for classes that want any.
   */
  constructor(
    podClass: PodClass,
    table: NodeTable,
    profile: FastProfile,
    keys: readonly string[] = [],
    ports: PodCounter | null = null,
  ) {
    this.podClass = podClass;
    this.#keys = keys;
    this.#devices = podClass.devices;
    this.ports = ports;
    this.#table = table;
    this.#profile = profile;
    this.#scalars = [...podClass.requests.scalars]
      .filter(([, amount]) => amount !== 0)
      .map(([name, amount]) => ({ scalar: table.scalars.numberOf(name), name, amount }));
    const isWanted = ({ amount }: { readonly amount: number }): boolean => amount > 0;
    this.wanted = this.#scalars.filter(isWanted).map(({ scalar }) => scalar);
    this.#isNameBound = podClass.isNameBound;
    this.#milliCpu = podClass.requests.milliCpu;
    this.#memory = podClass.requests.memory;
    this.#ephemeral = podClass.requests.ephemeral;
    this.#scoreMilliCpu = podClass.scoreMilliCpu;
    this.#scoreMemory = podClass.scoreMemory;
    const { images, volumeImages } = podClass;
    this.#images = profile.areImageVolumesScored ? [...images, ...volumeImages] : images;
    this.#isBalanced = this.#milliCpu !== 0 || this.#memory !== 0;
    this.#toleratesCordon = isTolerated(CORDON_TAINT, podClass.tolerations);
  }

  /** Whether the answer is the same for all nodes of a group. */
  get isAlike(): boolean {
    return !this.#isNameBound && this.ports === null && this.#devices === null;
  }

  /** The greatest score that `judge` can answer. */
  get scoreMax(): number {
    const { fitWeight, balanceWeight, imageWeight } = this.#profile;
    return 100 * (fitWeight + balanceWeight + imageWeight);
  }

  /** The greatest score that `pairScore` can answer. */
  get pairScoreMax(): number {
    return 100 * (this.#profile.taintWeight + this.#profile.affinityWeight);
  }

  /**
   * Must be called before a series of `judge`. The answer changes when what was judged before is
   * void, because images of the class came or went.
   */
  prepare(): number {
    const table = this.#table;
    if (this.#kindEpoch !== table.kinds.epoch) {
      this.#kindEpoch = table.kinds.epoch;
      this.#kindMemo.fill(0);
    }
    const hadImages = this.#hasImages;
    // The share of nodes with an image changes with every node; without images nothing does.
    const stamp = table.images.version + (hadImages ? table.version : 0);
    if (stamp === this.#imageStamp) return this.#imageRound;
    this.#hasImages = table.images.holdsAny(this.#images);
    this.#imageStamp = table.images.version + (this.#hasImages ? table.version : 0);
    this.#imageMemo.fill(0);
    if (hadImages || this.#hasImages) this.#imageRound++;
    return this.#imageRound;
  }

  /** The part of the score that is the node's own, or a negative verdict. Sets `pair`. */
  judge(id: number): number {
    const table = this.#table;
    if (table.present.get(id) === 0) return ABSENT;
    const fixed = this.#judgeKind(id);
    if (fixed < 0) return fixed;
    this.pair = fixed - 1;
    if (this.ports !== null && this.ports.byNode.get(id) > 0) return PORT_TAKEN;
    const size = table.size.get(id);
    const milliCpu = table.sizeMilliCpu.get(size);
    const memory = table.sizeMemory.get(size);
    const usedCpu = table.milliCpu.get(id);
    const usedMemory = table.memory.get(id);
    const wantedCpu = this.#milliCpu;
    const wantedMemory = this.#memory;
    const wantedEphemeral = this.#ephemeral;
    let short = table.pods.get(id) + 1 > table.sizePods.get(size) ? PODS_BIT : 0;
    if (wantedCpu > 0 && wantedCpu > milliCpu - usedCpu) short |= CPU_BIT;
    if (wantedMemory > 0 && wantedMemory > memory - usedMemory) short |= MEMORY_BIT;
    if (wantedEphemeral > 0) {
      const free = table.sizeEphemeral.get(size) - table.ephemeral.get(id);
      if (wantedEphemeral > free) short |= EPHEMERAL_BIT;
    }
    if (this.#scalars.length > 0) short |= this.#scalarShortage(id);
    if (short !== 0) return this.#shortage(id, short);
    if (this.#devices !== null && !this.#devices.has(id)) return NO_DEVICES;
    const profile = this.#profile;
    let score = 0;
    if (profile.fitWeight > 0) {
      const fullCpu = table.milliCpuNonZero.get(id) + this.#scoreMilliCpu;
      const fullMemory = table.memoryNonZero.get(id) + this.#scoreMemory;
      score += profile.fitWeight * leastAllocated(milliCpu, fullCpu, memory, fullMemory);
    }
    if (profile.balanceWeight > 0 && this.#isBalanced) {
      const balance = this.#balance(milliCpu, usedCpu, memory, usedMemory);
      score += profile.balanceWeight * balance;
    }
    if (this.#hasImages) score += profile.imageWeight * this.#imageScore(table.imageSet.get(id));
    return score;
  }

  /**
   * The most that `judge` can answer for nodes of a size and image set whose pods request from
   * `cpuMin` to `cpuMax` and from `memoryMin` to `memoryMax`; negative if none of them has room.
   */
  bound(
    shape: { readonly milliCpu: number; readonly memory: number; readonly imageSet: number },
    cpuMin: number,
    cpuMax: number,
    memoryMin: number,
    memoryMax: number,
  ): number {
    const { milliCpu, memory } = shape;
    // Beyond that products wrap as upstream's do, and less usage need not score more.
    if (milliCpu > CAPACITY_MAX || memory > CAPACITY_MAX) return this.scoreMax;
    const wantedCpu = this.#milliCpu;
    const wantedMemory = this.#memory;
    if (wantedCpu > 0 && wantedCpu > milliCpu - cpuMin) return ABSENT;
    if (wantedMemory > 0 && wantedMemory > memory - memoryMin) return ABSENT;
    const profile = this.#profile;
    let score = 0;
    if (profile.fitWeight > 0) {
      // What is counted for pods that request nothing only comes on top of what is requested.
      const fullCpu = cpuMin + this.#scoreMilliCpu;
      const fullMemory = memoryMin + this.#scoreMemory;
      score += profile.fitWeight * leastAllocated(milliCpu, fullCpu, memory, fullMemory);
    }
    if (profile.balanceWeight > 0 && this.#isBalanced) {
      let most = 100;
      if (milliCpu !== 0 && memory !== 0) {
        most = balanceMost(
          (cpuMin + wantedCpu) / milliCpu,
          (cpuMax + wantedCpu) / milliCpu,
          (memoryMin + wantedMemory) / memory,
          (memoryMax + wantedMemory) / memory,
        );
        if (profile.isBalanceChangeScored) {
          const before = balanceLeast(
            cpuMin / milliCpu,
            cpuMax / milliCpu,
            memoryMin / memory,
            memoryMax / memory,
          );
          most = 50 + Math.trunc((50 + most - before) / 2);
        }
      } else if (profile.isBalanceChangeScored) {
        most = 75;
      }
      score += profile.balanceWeight * most;
    }
    if (this.#hasImages) score += profile.imageWeight * this.#imageScore(shape.imageSet);
    return score;
  }

  /** What taints and affinity add on top, given the greatest raw scores of all feasible nodes. */
  pairScore(pair: number, softMax: number, affinityMax: number): number {
    const raw = this.pairs[pair]!;
    const { taintWeight, affinityWeight } = this.#profile;
    const soft = softMax === 0 ? 0 : Math.trunc((100 * raw.softTaints) / softMax);
    const affinity = affinityMax === 0 ? 0 : Math.trunc((100 * raw.affinity) / affinityMax);
    return taintWeight * (100 - soft) + affinityWeight * affinity;
  }

  /** The reasons behind a verdict, as upstream words them; none for a node that is not there. */
  reasonsOf(verdict: number): string[] {
    if (verdict === CORDONED) return ['node(s) were unschedulable'];
    if (verdict === TAINTED) return ['node(s) had untolerated taint(s)'];
    if (verdict === UNMATCHED) return ["node(s) didn't match Pod's node affinity/selector"];
    if (verdict === UNNAMED) return ["node(s) didn't satisfy plugin(s) [NodeAffinity]"];
    if (verdict === PORT_TAKEN) {
      return ["node(s) didn't have free ports for the requested pod ports"];
    }
    const mask = (-verdict - SHORT) >>> 1;
    const reasons: string[] = [];
    if ((mask & PODS_BIT) !== 0) reasons.push('Too many pods');
    if ((mask & CPU_BIT) !== 0) reasons.push('Insufficient cpu');
    if ((mask & MEMORY_BIT) !== 0) reasons.push('Insufficient memory');
    if ((mask & EPHEMERAL_BIT) !== 0) reasons.push('Insufficient ephemeral-storage');
    for (const [index, { name }] of this.#scalars.entries()) {
      if ((mask & (FIRST_SCALAR_BIT << index)) !== 0) reasons.push(`Insufficient ${name}`);
    }
    return reasons;
  }

  /** Whether evicting pods could change a verdict. */
  static isResolvable(verdict: number): boolean {
    return verdict === PORT_TAKEN || (verdict <= -SHORT && ((-verdict - SHORT) & 1) === 0);
  }

  /** The plugin behind a verdict; none for a node that is not there. */
  static pluginOf(verdict: number): string {
    if (verdict === ABSENT) return '';
    if (verdict === CORDONED) return 'NodeUnschedulable';
    if (verdict === TAINTED) return 'TaintToleration';
    if (verdict === PORT_TAKEN) return 'NodePorts';
    const isOfNames = verdict === UNMATCHED || verdict === UNNAMED;
    return isOfNames ? 'NodeAffinity' : 'NodeResourcesFit';
  }

  #judgeKind(id: number): number {
    const kind = this.#table.kind.get(id);
    if (this.#isNameBound) return this.#evaluateKind(kind, this.#table.nameOf(id));
    return this.judgeKind(kind);
  }

  /** 1 + index of the raw pair of a kind of node, or a negative verdict; not for bound classes. */
  judgeKind(kind: number): number {
    if (kind >= this.#kindMemo.length) {
      const grown = new Int32Array(Math.max(2 * this.#kindMemo.length, kind + 1));
      grown.set(this.#kindMemo);
      this.#kindMemo = grown;
    }
    let known = this.#kindMemo[kind]!;
    if (known === 0) known = this.#kindMemo[kind] = this.#evaluateKind(kind, '');
    return known;
  }

  #evaluateKind(kindId: number, name: string): number {
    const kind = this.#table.kinds.get(kindId);
    const { tolerations, nodes, preferred } = this.podClass;
    if (kind.isCordoned && !this.#toleratesCordon) return CORDONED;
    if (hasUntolerated(kind.taints, tolerations)) return TAINTED;
    const matchable = matchableOf(kind, name);
    if (!nodes.matches(matchable)) return UNMATCHED;
    let affinity = 0;
    for (const { weight, term } of preferred) {
      if (matchesTerm(term, matchable)) affinity += weight;
    }
    const soft = softTaints(kind.taints, tolerations);
    const values = this.#keys.map((key) => kind.labels[key]);
    const hasHostname = kind.hasOwnHostname || kind.labels[HOSTNAME_KEY] !== undefined;
    const pair = { softTaints: soft, affinity, values, hasHostname };
    const key = JSON.stringify(pair);
    let index = this.#pairNumbers.get(key);
    if (index === undefined) {
      index = this.pairs.push(pair) - 1;
      this.#pairNumbers.set(key, index);
    }
    return index + 1;
  }

  #scalarShortage(id: number): number {
    const table = this.#table;
    const capacity = table.sizes.get(table.size.get(id)).resources.scalars;
    let short = 0;
    for (let i = 0; i < this.#scalars.length; i++) {
      const { scalar, name, amount } = this.#scalars[i]!;
      const free = (capacity.get(name) ?? 0) - table.scalarUsed(scalar, id);
      if (amount > free) short |= FIRST_SCALAR_BIT << i;
    }
    return short;
  }

  #shortage(id: number, mask: number): number {
    const table = this.#table;
    const capacity = table.sizes.get(table.size.get(id)).resources;
    const { requests } = this.podClass;
    let isHopeless =
      ((mask & CPU_BIT) !== 0 && requests.milliCpu > capacity.milliCpu) ||
      ((mask & MEMORY_BIT) !== 0 && requests.memory > capacity.memory) ||
      ((mask & EPHEMERAL_BIT) !== 0 && requests.ephemeral > capacity.ephemeral);
    for (let i = 0; i < this.#scalars.length; i++) {
      const { name, amount } = this.#scalars[i]!;
      if (amount > (capacity.scalars.get(name) ?? 0)) isHopeless = true;
    }
    return -(SHORT + 2 * mask + (isHopeless ? 1 : 0));
  }

  #balance(milliCpu: number, usedCpu: number, memory: number, usedMemory: number): number {
    const cpu = usedCpu + this.#milliCpu;
    const after = balance(milliCpu, cpu, memory, usedMemory + this.#memory);
    if (!this.#profile.isBalanceChangeScored) return after;
    const before = balance(milliCpu, usedCpu, memory, usedMemory);
    return 50 + Math.trunc((50 + after - before) / 2);
  }

  #imageScore(set: number): number {
    if (set >= this.#imageMemo.length) {
      const grown = new Int16Array(Math.max(2 * this.#imageMemo.length, set + 1));
      grown.set(this.#imageMemo);
      this.#imageMemo = grown;
    }
    const known = this.#imageMemo[set]!;
    if (known !== 0) return known - 1;
    const { containerCount } = this.podClass;
    const bytes = this.#table.images.scaledBytes(set, this.#images, this.#table.count);
    const max = IMAGE_BYTES_MAX * containerCount;
    const clamped = Math.min(Math.max(bytes, IMAGE_BYTES_MIN), max);
    const score = Math.trunc((100 * (clamped - IMAGE_BYTES_MIN)) / (max - IMAGE_BYTES_MIN));
    this.#imageMemo[set] = score + 1;
    return score;
  }
}

/** Classes whose rules are kept. */
const KEPT_MAX = 64;

/** Rules of the classes that were asked for last: what they know of kinds of nodes is kept. */
export class KeptRules {
  readonly #byClass = new Map<PodClass, ClassRules>();

  of(podClass: PodClass, make: () => ClassRules): ClassRules {
    let rules = this.#byClass.get(podClass);
    // Counters of ports may end.
    if (rules !== undefined && rules.ports === null) return rules;
    if (this.#byClass.size >= KEPT_MAX) this.#byClass.clear();
    rules = make();
    this.#byClass.set(podClass, rules);
    return rules;
  }
}

/** NodeResourcesFit, LeastAllocated, CPU and memory of equal weight. */
function leastAllocated(
  milliCpu: number,
  wantedCpu: number,
  memory: number,
  wantedMemory: number,
): number {
  let sum = 0;
  let count = 0;
  if (milliCpu !== 0) {
    if (wantedCpu <= milliCpu) sum += percent(milliCpu - wantedCpu, milliCpu);
    count++;
  }
  if (memory !== 0) {
    if (wantedMemory <= memory) sum += percent(memory - wantedMemory, memory);
    count++;
  }
  return count === 0 ? 0 : Math.trunc(sum / count);
}

/** NodeResourcesBalancedAllocation over CPU and memory, in upstream's float operations. */
function balance(milliCpu: number, usedCpu: number, memory: number, usedMemory: number): number {
  if (milliCpu === 0 || memory === 0) return 100;
  const cpuPart = Math.min(1, usedCpu / milliCpu);
  const memoryPart = Math.min(1, usedMemory / memory);
  return Math.trunc((1 - Math.abs(cpuPart - memoryPart) / 2) * 100);
}

/** The best balance with parts of CPU and memory within bounds. */
function balanceMost(cpuMin: number, cpuMax: number, memoryMin: number, memoryMax: number): number {
  const above = Math.min(1, cpuMin) - Math.min(1, memoryMax);
  const below = Math.min(1, memoryMin) - Math.min(1, cpuMax);
  return Math.trunc((1 - Math.max(0, above, below) / 2) * 100);
}

/** The worst one. */
function balanceLeast(
  cpuMin: number,
  cpuMax: number,
  memoryMin: number,
  memoryMax: number,
): number {
  const above = Math.min(1, cpuMax) - Math.min(1, memoryMin);
  const below = Math.min(1, memoryMax) - Math.min(1, cpuMin);
  return Math.trunc((1 - Math.max(above, below) / 2) * 100);
}
