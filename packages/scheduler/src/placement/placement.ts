/**
 * Finds the node of a pod: by the ranked index of its class where that is exact, by full
 * evaluation where the pod or the cluster has something that the index does not know.
 */
import { ClassIndex } from './class-index.ts';
import { ABSENT, ClassRules, KeptRules } from './topology/class-rules.ts';
import { ClassScan } from './class-scan.ts';
import { Constraints, SPREADS_OVER_CHOSEN } from './topology/constraints.ts';
import type { Cycle } from '../framework/runtime/cycle.ts';
import { NO_DECISIONS, type PlacementMetrics, type PlacementOptions } from './placement-options.ts';
import type { CycleMeter } from '../framework/cycle-meter.ts';
import { CROWD_MIN } from './crowd.ts';
import { portsRule } from './topology/pod-counters.ts';
import { DomainPick } from './domain-pick.ts';
import { Evaluator, type Decision } from './evaluator.ts';
import { DeviceGate } from './device-gate.ts';
import { Evictions } from '../preemption/evictions.ts';
import { Rivals } from '../preemption/rivals.ts';
import type { Asking } from '../extenders/extender-rounds.ts';
import {
  failureOf,
  isResolvableGate,
  NOBODY_TO_EVICT,
  refusalOf,
  type Failure,
  type Objections,
} from './topology/failure.ts';
import type { FastProfile } from './topology/fast-profile.ts';
import { GroupSearch } from './group-search.ts';
import { IndexShelf, type IndexKey } from './index-shelf.ts';
import { hasLesser, pickNamed } from './named-pick.ts';
import { NodeGroups } from '../cache/node-groups.ts';
import { backedResources } from '../dynamicresources/extended-resources.ts';
import { ONLY_CLAIMS, type PodClass } from '../cache/pod-class.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { Reservation } from '../framework/reservation.ts';
import { TieWalk } from '../collections/tie-walk.ts';
import { VolumeGate } from './volume-gate.ts';
import { scatteredPick, SCATTERED_NODES_MIN } from './scattered-pick.ts';
import type { ShardPort } from '../sharding/scatter/summed-try.ts';
import { NOT_SO_EASY, SCATTERED, type Task } from './task.ts';

/** A search costs about as much as ranking this many nodes. */
const NODES_PER_SEARCH = 128;
const NO_GATES: ReadonlyMap<number, number> = new Map();
const NO_NODES: ReadonlySet<number> = new Set();
const NO_CONSTRAINTS = new Constraints();

/** Nodes that are named where a decision was not the best. */
const BEST_SHOWN_MAX = 5;
/** Shapes of nodes from which on a search is no better than a look at all nodes. */
const SHAPES_MAX = 2048;

export class Placement {
  readonly metrics: PlacementMetrics = { ...NO_DECISIONS };
  /** The last decision that was not that of full evaluation; whoever reports it empties it. */
  mismatch = '';
  /** Why the last `decide` found no node. */
  failure: Failure | null = null;
  /** Those who look at the nodes where full evaluation is called for; null: nobody does. */
  shards: ShardPort | null = null;
  /** What the last `decide` found to be done before the pod is bound. */
  reservations: readonly Reservation[] = [];
  readonly #options: PlacementOptions;
  readonly #evaluator: Evaluator;
  readonly #shelf: IndexShelf;
  /** Made for the first pod that is searched for. */
  #groups: NodeGroups | null = null;
  #search: GroupSearch | null = null;
  readonly #kept = new KeptRules();
  readonly #walk: TieWalk;
  readonly #domainPick: DomainPick;
  readonly #rivals: Rivals;
  readonly #evictions: Evictions;
  readonly #volumes: VolumeGate;
  readonly #devices: DeviceGate;
  #decisions = 0;
  /** Placed pods by priority, to know whether there is anybody to evict. */
  readonly #priorities = new Map<number, number>();

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.#evaluator = new Evaluator(options.percentageOfNodesToScore, options.extenders);
    this.#walk = new TieWalk(options.random, options.tie);
    this.#domainPick = new DomainPick(this.#walk, options.random);
    this.#shelf = new IndexShelf(options.nodes, options.indexes);
    const { nodes, pods, identities, objects, nominator } = options;
    identities.nodeClasses.onGone((gone) => this.#shelf.forget(gone));
    const rivals = (this.#rivals = new Rivals(nominator, nodes, pods, identities));
    const keyOf = (id: number): string => options.keyOf(id);
    this.#evictions = new Evictions({ nodes, pods, identities, objects, rivals, keyOf });
    this.#volumes = new VolumeGate(options);
    this.#devices = new DeviceGate(options);
  }

  /** Who is told how long full evaluations take. */
  set meter(meter: CycleMeter) {
    this.#evaluator.meter = meter;
  }

  /** A pod took a node (1) or left it (-1). */
  count(id: number, delta: 1 | -1): void {
    const { pods, identities, terms } = this.#options;
    terms.count(id, delta);
    const { priority, diskCount } = identities.classes.get(pods.podClass.get(id));
    if (diskCount > 0) this.#volumes.count(pods.node.get(id), delta * diskCount);
    const count = (this.#priorities.get(priority) ?? 0) + delta;
    if (count === 0) this.#priorities.delete(priority);
    else this.#priorities.set(priority, count);
  }

  /** The node for a pod, or -1: then `failure` says why; or SCATTERED: others have to be asked. */
  decide(id: number): number {
    const { pods, identities, profiles } = this.#options;
    this.failure = null;
    this.reservations = [];
    const podClass = identities.classes.get(pods.podClass.get(id));
    const active = profiles.get(podClass.schedulerName);
    if (active === undefined) throw new Error(`no profile is named ${podClass.schedulerName}`);
    const { fast, profile } = active;
    const constraints = this.#options.terms.constraintsOf(id, profile);
    if (fast === null) return this.#evaluate(id, profile);
    const task = this.#taskOf(id, podClass, profile, fast, constraints);
    if (task === null || this.#slowReason(task) !== '') return this.#evaluate(id, profile);
    const node =
      task.podClass.nodeNames === null ? this.#decideFast(task) : this.#decideNamed(task);
    const { delayed } = task;
    const { devices } = task.podClass;
    if (node === NOT_SO_EASY || devices?.isWrong === true) return this.#evaluate(id, profile);
    if (node === SCATTERED) return node;
    if (this.#isCheckDue) this.#check(id, node, profile);
    if (node < 0) return node;
    if (delayed.length > 0) this.reservations = this.#volumes.reserve(node, delayed, profile);
    return devices === null ? node : this.#reserveDevices(id, node, profile);
  }

  /** Whether this decision is one of those that are compared with full evaluation. */
  get #isCheckDue(): boolean {
    const { checkedEvery } = this.#options;
    return checkedEvery > 0 && ++this.#decisions % checkedEvery === 0;
  }

  /** Other where something happened that a full evaluation might see. */
  get #stamp(): string {
    const { nodes, objects, nominator } = this.#options;
    return `${nodes.version} ${objects.changeCount} ${nominator.end}`;
  }

  /** As `decide`, and nobody is asked. */
  decideHere(id: number): number {
    const { shards } = this;
    this.shards = null;
    try {
      return this.decide(id);
    } finally {
      this.shards = shards;
    }
  }

  #reserveDevices(id: number, node: number, profile: Profile): number {
    const found = this.#devices.reserve(id, node, profile);
    if ('code' in found) return this.#evaluate(id, profile);
    this.reservations = found;
    return node;
  }

  /** Whether the node of a pod cannot be found without asking somebody. */
  asks(id: number): boolean {
    const { pods, identities, extenders } = this.#options;
    if (extenders.length === 0) return false;
    const { template } = identities.classes.get(pods.podClass.get(id));
    return extenders.some((extender) => extender.isInterested(template));
  }

  /**
   * The node for a pod about which extenders have to be asked, or shards; or -1: then `failure`
   * says why. `isGone`: whether the pod has gone meanwhile.
   */
  *decideAsking(id: number, isGone: () => boolean): Asking<number> {
    const { pods, identities, profiles, view, nominator } = this.#options;
    this.failure = null;
    this.reservations = [];
    const { schedulerName } = identities.classes.get(pods.podClass.get(id));
    const profile = profiles.get(schedulerName)?.profile;
    if (profile === undefined) throw new Error(`no profile is named ${schedulerName}`);
    this.metrics.evaluated++;
    const { shards } = this;
    if (shards !== null && !this.asks(id) && this.#isScattered(profile)) {
      this.metrics.scattered++;
      const { meter } = this.#evaluator;
      const before = this.#stamp;
      const tried = yield* scatteredPick(this.#options, shards, id, profile, meter, isGone);
      shards.decided(tried.how);
      if (isGone()) return -1;
      if (tried.how === 'found') {
        const isSame = before === this.#stamp && pods.news?.size === 0;
        if (isSame && this.#isCheckDue)
          this.#check(id, this.#options.nodes.find(tried.name), profile);
        return this.#reserve(tried.name, tried.cycle);
      }
    }
    view.refresh();
    const pod = view.podAt(id);
    return this.#take(yield* this.#evaluator.decideAsking(pod, view, profile, nominator));
  }

  #taskOf(
    id: number,
    podClass: PodClass,
    profile: Profile,
    fast: FastProfile,
    constraints: Constraints,
  ): Task | null {
    const { nominator, nodes } = this.#options;
    let own = -1;
    let hasRivals = false;
    if (nominator.size > 0) {
      this.#rivals.prepare();
      const name = nominator.nodeOf(id);
      const node = name === '' ? -1 : nodes.find(name);
      if (node >= 0 && nodes.isPresent(node)) own = node;
      hasRivals = nominator.hasRivals(id, podClass.priority);
    }
    const plain = { withoutRoom: null, delayed: [] };
    const task = { id, podClass, profile, fast, constraints, own, hasRivals, ...plain };
    if (podClass.claims.length === 0 && podClass.exotic !== ONLY_CLAIMS) return task;
    // Volumes of pods that wait for a node count there too.
    return own >= 0 || hasRivals ? null : this.#withClaims(task);
  }

  /** With what claims for volumes and devices say; null: full evaluation must tell. */
  #withClaims(task: Task): Task | null {
    const { id, profile } = task;
    let { podClass, withoutRoom, delayed } = task;
    if (podClass.exotic === ONLY_CLAIMS) {
      const claiming = this.#devices.say(id, podClass, profile);
      if (claiming === null) return null;
      podClass = claiming;
    }
    if (podClass.claims.length > 0) {
      const said = this.#volumes.say(id, podClass, profile);
      if (said === null) return null;
      ({ podClass, excluded: withoutRoom, delayed } = said);
    }
    // Of two sorts of promises the evaluator tells which is asked for first.
    if (delayed.length > 0 && podClass.devices !== null) return null;
    return { ...task, podClass, withoutRoom, delayed };
  }

  /** A pod that names its nodes, as those of daemons do: no other node is looked at. */
  #decideNamed(task: Task): number {
    const { podClass, fast, own, constraints, withoutRoom } = task;
    if (own >= 0) return NOT_SO_EASY;
    const { nodes, random } = this.#options;
    const rules = this.#rulesOf(podClass, fast);
    rules.prepare();
    const isFree = (node: number): boolean =>
      withoutRoom?.has(node) !== true && this.#judgeBesideRivals(task, rules, node) >= 0;
    const { feasible, best, verdicts } = pickNamed(rules, nodes, isFree);
    // What others say is a matter of score here, and of one node that matters nothing.
    if (feasible > 1 && (!constraints.isEmpty || constraints.slow !== '')) return NOT_SO_EASY;
    this.metrics.indexed++;
    if (feasible === 0) return this.#fail(task, rules, { verdicts, gates: NO_GATES });
    return best[random.below(best.length)] ?? NOT_SO_EASY;
  }

  #decideFast(task: Task): number {
    const { own, podClass, fast, constraints } = task;
    if (own >= 0) {
      const rules = this.#rulesOf(podClass, fast);
      rules.prepare();
      this.metrics.indexed++;
      if (this.#judgeBesideRivals(task, rules, own) >= 0) return own;
    }
    return constraints.isEmpty ? this.#decideAlone(task) : this.#decideAmong(task);
  }

  /** A node for a pod about which other pods have nothing to say. */
  #decideAlone(task: Task): number {
    const { podClass, fast } = task;
    const { nodeClass } = podClass;
    const isIndexed =
      podClass.devices !== null ||
      this.#shelf.peek(nodeClass) !== null ||
      this.#shelf.isWorthIt(nodeClass, NODES_PER_SEARCH);
    if (!isIndexed) return this.#searchFor(task);
    const index = this.#indexOf(nodeClass, task, []);
    this.metrics.indexed++;
    const excluded = this.#excludedFor(task, index.rules);
    const node =
      excluded.size === 0
        ? index.pick(this.#walk)
        : this.#domainPick.find(index, NO_CONSTRAINTS, null, fast, excluded);
    if (node >= 0) return node;
    return this.#fail(task, index.rules, { verdicts: index.verdicts, gates: NO_GATES });
  }

  /** A node for a pod about which other pods have. */
  #decideAmong(task: Task): number {
    const { podClass, fast, constraints } = task;
    const { nodeClass } = podClass;
    const { keys, hosts } = constraints;
    const index = this.#indexOf(constraints.keyOf(nodeClass), task, keys);
    this.metrics.indexed++;
    const excluded = this.#excludedFor(task, index.rules);
    let crowded = 0;
    for (const { byNode } of hosts) crowded += byNode.size;
    const crowd =
      crowded < CROWD_MIN || excluded.size > 0
        ? null
        : this.#shelf.crowd(constraints.hostKeyOf(nodeClass), index, hosts);
    const pick = this.#domainPick;
    const node = pick.find(index, constraints, crowd, fast, excluded);
    if (node >= 0) return node;
    return this.#fail(task, index.rules, { verdicts: index.verdicts, gates: pick.kept });
  }

  /** Score or verdict of a node that the pod would share with those that wait for it. */
  #judgeBesideRivals({ id, podClass, hasRivals }: Task, rules: ClassRules, node: number): number {
    if (!hasRivals || !this.#rivals.lend(node, id, podClass.priority)) return rules.judge(node);
    const verdict = rules.judge(node);
    this.#rivals.giveBack();
    return verdict;
  }

  /** Nodes that would do, were they not to be left to others; `rules` must be prepared. */
  #excludedFor(task: Task, rules: ClassRules): ReadonlySet<number> {
    if (!task.hasRivals) return task.withoutRoom ?? NO_NODES;
    const excluded = new Set<number>();
    for (const node of this.#rivals.nodes) {
      if (rules.judge(node) < 0) continue;
      if (this.#judgeBesideRivals(task, rules, node) < 0) excluded.add(node);
    }
    return excluded;
  }

  /** Verdicts with those of nodes that are to be left to others. */
  #besideRivals(
    task: Task,
    rules: ClassRules,
    verdicts: ReadonlyMap<number, number>,
  ): ReadonlyMap<number, number> {
    if (!task.hasRivals) return verdicts;
    const adjusted = new Map(verdicts);
    const add = (verdict: number, delta: 1 | -1): void => {
      const count = (adjusted.get(verdict) ?? 0) + delta;
      if (count === 0) adjusted.delete(verdict);
      else adjusted.set(verdict, count);
    };
    for (const node of this.#rivals.nodes) {
      const before = rules.judge(node);
      const after = this.#judgeBesideRivals(task, rules, node);
      if (before === after || before === ABSENT) continue;
      if (before < 0) add(before, -1);
      if (after < 0) add(after, 1);
    }
    return adjusted;
  }

  #indexOf(key: IndexKey, { podClass, fast }: Task, keys: readonly string[]): ClassIndex {
    return this.#shelf.take(key, () => {
      return new ClassIndex(this.#rulesOf(podClass, fast, keys), this.#options.nodes, this.#groups);
    });
  }

  #rulesOf(podClass: PodClass, fast: FastProfile, keys: readonly string[] = []): ClassRules {
    const { nodes, terms } = this.#options;
    const { ports } = podClass;
    const counter = ports.length === 0 ? null : terms.counters.counterOf(portsRule(ports));
    return new ClassRules(podClass, nodes, fast, keys, counter);
  }

  /** Whether a node is feasible for a class now, as far as the index can tell. */
  isFeasible(classId: number, node: number): boolean {
    return this.isNamed(classId, node) && this.#judge(classId, node) >= 0;
  }

  /** Whether a node has room for a class beside rivals of a pod, or could: without lesser pods. */
  hasRoom(classId: number, node: number, id: number = -1): boolean {
    const { identities } = this.#options;
    if (!this.isNamed(classId, node)) return false;
    const { priority, ports, template } = identities.classes.get(classId);
    this.#rivals.prepare();
    this.#rivals.lend(node, id, priority);
    const evicts = template.spec.preemptionPolicy !== 'Never' && this.#rivals.spare(node, priority);
    const verdict = this.#judge(classId, node);
    this.#rivals.giveBack();
    return verdict >= 0 || (evicts && ports.length > 0);
  }

  isNamed(classId: number, node: number): boolean {
    const { nodeNames } = this.#options.identities.classes.get(classId);
    return nodeNames === null || nodeNames.has(this.#options.nodes.nameOf(node));
  }

  #judge(classId: number, node: number): number {
    const { identities, profiles } = this.#options;
    const podClass = identities.classes.get(classId);
    const fast = profiles.get(podClass.schedulerName)?.fast ?? null;
    if (fast === null) return 0;
    const known = this.#shelf.peek(podClass.nodeClass);
    const rules = known === null ? this.#rulesOf(podClass, fast) : known.rules;
    rules.prepare();
    return rules.judge(node);
  }

  get indexes(): { readonly size: number; readonly built: number } {
    return this.#shelf;
  }

  get ranksVictims(): boolean {
    return this.#evictions.isInUse;
  }

  get indexBytes(): number {
    const groups = this.#groups?.memoryBytes ?? 0;
    return this.#shelf.memoryBytes + groups + this.#evictions.memoryBytes;
  }

  /** Why the index cannot decide; empty if it can. */
  #slowReason({ podClass, profile, fast, constraints, own, hasRivals }: Task): string {
    if (profile.own.some((one) => one.appliesTo?.(podClass.template) ?? true)) {
      return 'plugins of users';
    }
    if (podClass.exotic !== '') return podClass.exotic;
    if (this.#isBacked(podClass)) return 'resources that devices stand for';
    const hasPorts = podClass.ports.length > 0;
    if ((hasRivals || own >= 0) && constraints.hasGates) return 'nominated pods';
    const { haveTerms, havePorts } = this.#rivals;
    if (hasRivals && (haveTerms || (hasPorts && havePorts))) return 'nominated pods';
    if (podClass.nodeNames !== null) {
      if (constraints.hasGates) return 'named nodes about which other pods have a say';
      return constraints.slow === SPREADS_OVER_CHOSEN ? '' : constraints.slow;
    }
    if (constraints.needsOwnHostnames && this.#options.nodes.sharedHostnames > 0) {
      return 'host names that nodes may share';
    }
    const asksInOrder = hasPorts || constraints.hasGates;
    if (asksInOrder && !fast.isDefaultOrder) return 'another order of plugins';
    return constraints.slow;
  }

  /** Whether devices may have to give what the pod asks for. */
  #isBacked({ requests }: PodClass): boolean {
    return (
      requests.scalars.size > 0 && backedResources({ requests }, this.#options.objects).size > 0
    );
  }

  /** For a class that has no index: a search, which does not tell why there is no node. */
  #searchFor(task: Task): number {
    const { podClass, fast } = task;
    const groups = (this.#groups ??= new NodeGroups(this.#options.nodes));
    groups.catchUp();
    const rules = this.#kept.of(podClass, () => this.#rulesOf(podClass, fast));
    rules.prepare();
    const excluded = this.#excludedFor(task, rules);
    // Nodes of a group differ in their names, and in the ports that are taken.
    const isAlike = !podClass.isNameBound && podClass.ports.length === 0;
    const shapes = groups.offering(rules.wanted)?.size ?? groups.shapes.length;
    if (shapes <= SHAPES_MAX && isAlike) {
      this.#search ??= new GroupSearch(groups);
      const node = this.#search.find(rules, excluded);
      if (node >= 0) {
        this.metrics.searched++;
        return node;
      }
    }
    return this.#scan(task, rules, excluded);
  }

  #scan(task: Task, rules: ClassRules, excluded: ReadonlySet<number>): number {
    const { nodes, random } = this.#options;
    this.metrics.scanned++;
    this.#shelf.spend(task.podClass.nodeClass, nodes.count);
    const scan = new ClassScan(rules, nodes, random, excluded);
    if (scan.node >= 0) return scan.node;
    return this.#fail(task, rules, { verdicts: scan.verdicts, gates: NO_GATES });
  }

  #fail(task: Task, rules: ClassRules, { verdicts, gates }: Objections): number {
    const { id, podClass, profile, constraints, own, fast } = task;
    // What volumes and devices have to do with it, only they can tell.
    if (task.withoutRoom !== null || podClass.devices !== null) return this.#evaluate(id, profile);
    const objections = { verdicts: this.#besideRivals(task, rules, verdicts), gates };
    const mayEvict =
      podClass.template.spec.preemptionPolicy !== 'Never' &&
      profile.postFilter.some(({ name }) => name === 'DefaultPreemption');
    const isOfUse =
      ([...objections.verdicts.keys()].some((verdict) => ClassRules.isResolvable(verdict)) ||
        [...gates.keys()].some(isResolvableGate)) &&
      this.#hasLesser(podClass);
    let preemption = NOBODY_TO_EVICT;
    if (mayEvict && isOfUse) {
      const isNamed = podClass.nodeNames !== null;
      if (isNamed || constraints.hasGates || podClass.ports.length > 0) {
        return this.#evaluate(id, profile);
      }
      this.#rivals.prepare();
      preemption = this.#evictions.find(id, own, () => this.#rulesOf(podClass, fast));
    }
    const { nodes, nominator } = this.#options;
    const failure = failureOf(podClass, rules, objections, profile, nodes.count, preemption);
    const clearsNomination = mayEvict || failure.clearsNomination;
    if (nominator.nodeOf(id) === '' && !task.hasRivals) this.failure = failure;
    else if (preemption !== NOBODY_TO_EVICT) this.failure = { ...failure, isIndexed: false };
    else this.failure = { ...failure, isIndexed: false, clearsNomination };
    return -1;
  }

  /** Whether there is anybody whom a pod of the class could evict. */
  #hasLesser({ priority, nodeNames }: PodClass): boolean {
    if (!this.#priorities.keys().some((other) => other < priority)) return false;
    return nodeNames === null || hasLesser(nodeNames, priority, this.#options);
  }

  /** Counts a decision that full evaluation would not have made. */
  #check(id: number, node: number, profile: Profile): void {
    const { view, nodes, nominator } = this.#options;
    view.refresh();
    const decision = new Evaluator(100).decide(view.podAt(id), view, profile, nominator);
    const isSame =
      node < 0
        ? decision.kind === 'failed' && decision.message === this.failure?.message
        : decision.kind === 'placed' && decision.best.includes(nodes.nameOf(node));
    this.metrics.checked++;
    if (isSame) return;
    this.metrics.mismatched++;
    const chosen = node < 0 ? (this.failure?.message ?? '') : nodes.nameOf(node);
    const wanted = decision.kind === 'placed' ? decision.best.slice(0, BEST_SHOWN_MAX) : [];
    const text = decision.kind === 'failed' ? decision.message : wanted.join(', ');
    this.mismatch = `pod ${view.podAt(id).key}: decided ${chosen}; full evaluation says ${text}`;
  }

  /** Whether shards are to look at the nodes. All must be looked at, and none before others. */
  #isScattered({ percentageOfNodesToScore }: Profile): boolean {
    const { nodes, tie, scatteredNodesMin = SCATTERED_NODES_MIN } = this.#options;
    const percentage = percentageOfNodesToScore ?? this.#options.percentageOfNodesToScore;
    if (this.shards?.isThere !== true || tie === 'upstream') return false;
    return percentage === 100 && nodes.count >= Math.max(1, scatteredNodesMin);
  }

  #evaluate(id: number, profile: Profile): number {
    if (this.#isScattered(profile)) return SCATTERED;
    const { view, nominator } = this.#options;
    this.metrics.evaluated++;
    view.refresh();
    return this.#take(this.#evaluator.decide(view.podAt(id), view, profile, nominator));
  }

  #take(decision: Decision): number {
    const { view, nodes } = this.#options;
    switch (decision.kind) {
      case 'placed':
        return this.#reserve(this.#walk.pick(decision), decision.cycle);
      case 'failed': {
        const { message, rejecters, nomination, clearsNomination, isError, writes } = decision;
        const victims = nomination?.victims.map(({ key }) => view.rowOf(key)) ?? [];
        this.failure = {
          message,
          rejecters,
          isError,
          clearsNomination,
          isIndexed: false,
          writes,
          nomination: nomination === null ? null : { node: nodes.find(nomination.node), victims },
        };
        return -1;
      }
    }
  }

  /** Asks the plugins for what is to be done before the pod is bound to the node. */
  #reserve(name: string, cycle: Cycle): number {
    const node = cycle.snapshot.node(name);
    const outcome = node === undefined ? [] : cycle.reserve(node);
    if (Array.isArray(outcome)) {
      this.reservations = outcome;
      return this.#options.nodes.find(name);
    }
    this.failure = refusalOf(outcome);
    return -1;
  }
}
