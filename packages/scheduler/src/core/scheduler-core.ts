/**
 * The scheduler as a machine: it is told what the API server says and what time it is, and answers
 * with pods to bind and failures to report. It opens no connection and owns no clock.
 */
import { isDeepStrictEqual } from 'node:util';
import { Random } from '@megaplane/base/random';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { activeProfiles } from '../placement/active-profiles.ts';
import type { CoreOptions } from './core-options.ts';
import type { Attempt } from '../queue/attempt.ts';
import { Bell } from '../queue/bell.ts';
import { ClusterView, type ClaimStatuses } from '../view/cluster-view.ts';
import type { ResourceClaimObject } from '../devices/device-objects.ts';
import { EXTENDERS, createExtenders, type Extender } from '../extenders/extender.ts';
import type { Question } from '../extenders/extender.ts';
import type { Asking } from '../extenders/extender-rounds.ts';
import { refusalOf, type Failure } from '../placement/topology/failure.ts';
import { Gatekeeper } from '../queue/gatekeeper.ts';
import { Identities } from '../cache/identities.ts';
import { gangCycle, UNSCHEDULABLE, type GangHost } from '../podgroup/gang-cycle.ts';
import { groupCondition } from '../podgroup/group-condition.ts';
import { eventName } from '../framework/event-name.ts';
import { factsOf, type NodeFacts } from '../cache/node-facts.ts';
import { NodeReader } from '../cache/node-reader.ts';
import { NodeTable } from '../cache/node-table.ts';
import { NominationKeeper } from '../queue/nomination-keeper.ts';
import { Nominator } from '../placement/topology/nominator.ts';
import { keyOf as keyOfObject, type KubeObject, type NodeObject } from '../api/objects.ts';
import { ObjectStore } from '../cache/object-store.ts';
import { Occupancy } from '../placement/occupancy.ts';
import { INDEX_BYTES_MAX, SEARCHED_NODES_MIN } from '../placement/index-shelf.ts';
import { Placement } from '../placement/placement.ts';
import { SCATTERED } from '../placement/task.ts';
import type { ActiveProfile } from '../placement/placement-options.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import { usageOf } from '../cache/pod-class.ts';
import { takeIdentity } from '../cache/pod-identity.ts';
import { PodReader } from '../cache/pod-reader.ts';
import { PLACE, PodTable } from '../cache/pod-table.ts';
import type { ObjectWrite } from '../framework/reservation.ts';
import { Reservations } from './reservations.ts';
import { QUEUE_LIMITS, SchedulingQueue } from '../queue/scheduling-queue.ts';
import { TermWatch } from '../placement/topology/term-watch.ts';
import type { GroupTry } from '../metrics/work-metrics.ts';
import type { Answer } from '../extenders/extender-answer.ts';

/** Decisions under way: about a pod for which extenders are asked, or about a gang. */
type Task = Asking<readonly Attempt[]>;

/** In place of a node: the pod is no longer there to have one. */
const GONE = -4;
const NO_REASON = { code: 'error', reasons: ['no reason is known'], plugin: '' } as const;

export class SchedulerCore {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly objects: ObjectStore = new ObjectStore();
  readonly queue: SchedulingQueue;
  readonly nominator: Nominator;
  readonly placement: Placement;
  readonly profiles: ReadonlyMap<string, ActiveProfile>;
  readonly reservations: Reservations;
  readonly extenders: readonly Extender[];
  readonly gatekeeper: Gatekeeper;
  /** What was told of last, as upstream's metrics call it; empty if it was no news. */
  lastEvent = '';
  /** What extenders have to be asked before the decision under way goes on (`answer`). */
  question: Question | null = null;
  /** The group that was decided about last; who takes it in drops it. */
  groupTry: GroupTry | null = null;
  #task: Task | null = null;
  /** Still to be told. */
  #decided: readonly { readonly tag: number; readonly attempt: Attempt }[] = [];
  /** The group that the pod just seen joined. */
  #grown = '';
  /** Something happened while extenders were asked. */
  #missesEvents = false;
  readonly #writes: ObjectWrite[] = [];
  readonly #reader: PodReader;
  readonly #nodeReader: NodeReader;
  readonly view: ClusterView;
  readonly #occupancy: Occupancy;
  readonly bell: Bell;
  readonly #nominations: NominationKeeper;
  readonly #claimStatuses = new Map<number, ClaimStatuses>();

  constructor(options: CoreOptions) {
    const random = new Random(options.seed);
    this.nodes = new NodeTable(random.fork('nodes'));
    this.pods = new PodTable(this.nodes);
    this.identities = new Identities(this.nodes.usages);
    this.queue = new SchedulingQueue(
      this.pods,
      this.identities,
      options.queueLimits ?? QUEUE_LIMITS,
    );
    this.nominator = new Nominator(this.pods, this.identities);
    this.view = new ClusterView(this.nodes, this.pods, this.identities, this.objects, {
      keyOf: (id) => options.keyOf(id),
      nominatedNode: (id) => this.nominator.nodeOf(id),
      claimStatuses: (id) => this.#claimStatuses.get(id),
    });
    this.reservations = new Reservations(this.objects);
    this.nominator.view = this.view;
    this.extenders = createExtenders(options.extenders ?? []);
    this.profiles = activeProfiles(options);
    this.gatekeeper = new Gatekeeper(this.objects, this.view, this.profiles);
    const terms = new TermWatch(this.identities, this.pods, this.nodes, this.objects);
    const { nodes, pods, identities, queue, objects, nominator, view, profiles, extenders } = this;
    this.placement = new Placement({
      ...{ nodes, pods, identities, terms, view, nominator, objects, profiles, extenders },
      keyOf: (id) => options.keyOf(id),
      percentageOfNodesToScore: options.percentageOfNodesToScore ?? 100,
      random: random.fork('ties'),
      tie: options.tie ?? 'random',
      indexes: {
        bytesMax: options.indexBytesMax ?? INDEX_BYTES_MAX,
        searchedNodesMin: options.searchedNodesMin ?? SEARCHED_NODES_MIN,
      },
      checkedEvery: options.checkedEvery ?? 0,
      scatteredNodesMin: options.scatteredNodesMin,
    });
    const { placement } = this;
    this.#occupancy = new Occupancy({ nodes, pods, identities, placement, terms });
    this.bell = new Bell({ queue, placement, view, objects, nodes, pods, identities, nominator });
    this.#nominations = new NominationKeeper({ nominator, queue, nodes, view, bell: this.bell });
    this.#reader = new PodReader(this.identities, this.nodes, random.fork('pods'));
    this.#nodeReader = new NodeReader(random.fork('likenesses of nodes'));
  }

  /** Pods with a node that the API server has not confirmed. */
  get assumed(): number {
    return this.#occupancy.assumed;
  }

  /** A node is new or has changed. */
  nodeSeen(object: NodeObject, nowMs: number): void {
    this.#nodeSeen(factsOf(object), nowMs);
  }

  /** The same, from the node's JSON. */
  nodeBytesSeen(bytes: Buffer, start: number, end: number, nowMs: number): void {
    this.#nodeSeen(this.#nodeReader.read(bytes, start, end), nowMs);
  }

  #nodeSeen(facts: NodeFacts, nowMs: number): void {
    const { nodes } = this;
    const known = nodes.find(facts.name);
    const isNew = known < 0 || !nodes.isPresent(known);
    this.lastEvent = isNew ? 'NodeAdd' : '';
    const before = isNew ? null : this.view.bareNodeAt(known);
    const { version } = nodes;
    const node = nodes.set(facts);
    // A heartbeat is no news.
    if (nodes.version === version) return;
    if (before === null) this.bell.nodeAdded(node, nowMs);
    else this.lastEvent = this.bell.nodeChanged(node, before, nowMs);
  }

  nodeGone(name: string, nowMs: number): void {
    const id = this.nodes.find(name);
    this.lastEvent = 'NodeDelete';
    if (id < 0 || !this.nodes.isPresent(id)) return;
    const node = this.view.bareNodeAt(id);
    this.nodes.remove(id);
    this.bell.ring({ event: 'nodeRemoved', node }, 'NodeDelete', nowMs);
  }

  /** An object of a small kind that plugins ask for. */
  objectSeen(kind: string, object: KubeObject, nowMs: number): void {
    const key = keyOfObject(object);
    const before = this.objects.watched(kind, key);
    this.objects.set(kind, object);
    const event = `${eventName(kind)}${before === undefined ? 'Add' : 'Update'}`;
    this.lastEvent = event;
    if (kind === 'ResourceClaim') this.#claimSeen(key, before, object, event, nowMs);
    else if (kind === 'PodGroup') this.#groupGrew(key, event, nowMs);
    else this.bell.objectSeen({ event: 'object', kind, before, after: object }, event, nowMs);
  }

  /** The API server took an object that we wrote; the watch will show it later. */
  objectWritten(kind: string, object: KubeObject): void {
    // Of pods only what tables hold is known.
    if (kind !== 'Pod') this.objects.written(kind, object);
  }

  objectGone(kind: string, key: string, nowMs: number): void {
    const before = this.objects.object(kind, key);
    this.objects.delete(kind, key);
    this.lastEvent = `${eventName(kind)}Delete`;
    this.bell.objectSeen({ event: 'object', kind, before }, this.lastEvent, nowMs);
  }

  /** A pod is new or has changed; `bytes` is its JSON. False if it cannot be read. */
  podSeen(
    id: number,
    isNew: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    nowMs: number,
  ): boolean {
    if (isNew) {
      this.pods.begin(id, nowMs);
      // An empty identity, so that there is always one to release.
      if (this.pods.known.get(id) === 0) this.#setIdentity(id, null);
    }
    if (!this.#reader.read(bytes, start, end)) return false;
    const { facts } = this.#reader;
    // The row of its node must outlive the pod that it follows.
    if (facts.node >= 0) this.nodes.hold(facts.node);
    const isOther = !isNew && this.pods.isOther(id, facts.uid);
    if (isOther) this.#succeed(id, nowMs);
    this.#take(id, facts, isNew || isOther, nowMs);
    return true;
  }

  /** A pod went and another of its name came while nobody looked. */
  #succeed(id: number, nowMs: number): void {
    this.#writes.push(...this.podGone(id, nowMs));
    this.pods.begin(id, nowMs);
  }

  #take(id: number, facts: PodFacts, isNew: boolean, nowMs: number): void {
    this.#occupancy.setTerminating(id, facts.isTerminating);
    this.#occupancy.setStart(id, facts.startMs);
    this.pods.specGeneration.set(id, facts.specGeneration);
    this.pods.version.set(id, facts.version);
    this.pods.setUid(id, facts.uid);
    if (facts.claims !== '') {
      this.#claimStatuses.set(id, parseJson(facts.claims) as unknown as ClaimStatuses);
      if (this.#occupancy.isPlaced(id)) this.pods.news?.add(id);
    }
    if (facts.node >= 0) this.#assigned(id, facts, nowMs);
    else this.#pending(id, facts, isNew, nowMs);
    if (this.#grown !== '') this.#groupGrew(this.#grown, 'UnschedulablePodAdd', nowMs);
  }

  podGone(id: number, nowMs: number): readonly ObjectWrite[] {
    const undone = this.reservations.giveBack(this.pods.tagOf(id));
    const podClass = this.pods.podClass.get(id);
    const wasPlaced = this.#occupancy.isPlaced(id);
    this.lastEvent = wasPlaced ? 'AssignedPodDelete' : 'UnschedulablePodDelete';
    if (wasPlaced) this.#leave(id, nowMs);
    else this.#drop(id, nowMs);
    if (!wasPlaced && this.queue.waiting.isAwake(podClass)) this.queue.follow(podClass, nowMs);
    this.#setIdentity(id, null);
    this.#claimStatuses.delete(id);
    this.gatekeeper.claimants.set(id, []);
    this.pods.generation.add(id, 1);
    return undone;
  }

  /**
   * Tries the next pod; null when none wants to be tried, or `question` has to be answered first. A
   * node found is assumed at once.
   */
  attempt(nowMs: number): Attempt | null {
    if (this.#decided.length > 0) return this.#nextDecided();
    const id = this.#pop(nowMs);
    if (id < 0) return null;
    this.view.nowMs = nowMs;
    const isPlaced = (other: number): boolean => this.#occupancy.isPlaced(other);
    const missing = this.gatekeeper.groups.missingOf(id, isPlaced);
    if (!this.placement.asks(id) && missing === 0) {
      const node = this.placement.decide(id);
      if (node !== SCATTERED) {
        const attempt = this.#settle(id, node, nowMs);
        this.#tellGroup(attempt, nowMs);
        return attempt;
      }
    }
    this.#task = missing > 0 ? this.#decideGang(id, missing, nowMs) : this.#decideOne(id, nowMs);
    return this.#advance(this.#task.next());
  }

  /** The next pod whose group, if it has one, is there with enough pods; -1 if none waits. */
  #pop(nowMs: number): number {
    const { queue, gatekeeper } = this;
    for (;;) {
      const id = queue.pop();
      const group = id < 0 ? '' : gatekeeper.groups.groupOf(id);
      if (group === '' || gatekeeper.groups.problemOf(group) === '') return id;
      this.#nominations.end(id, nowMs);
      queue.addGated(id);
    }
  }

  /** A pod that goes alone is all that was tried of its group. */
  #tellGroup({ id, kind }: Attempt, nowMs: number): void {
    const key = this.gatekeeper.groups.groupOf(id);
    const group = key === '' ? undefined : this.objects.object('PodGroup', key);
    if (group === undefined) return;
    const result = kind === 'bind' ? 'scheduled' : 'unschedulable';
    this.groupTry = { result, profile: this.#classOf(id).schedulerName };
    const write = groupCondition(key, kind === 'bind' ? '' : UNSCHEDULABLE);
    if (write.change(group as unknown as JsonObject, nowMs) !== null) this.#writes.push(write);
  }

  /** Goes on with the decision that asked; null if its pod is gone, or there is more to ask. */
  answer(answers: readonly Answer[], nowMs: number): Attempt | null {
    this.question = null;
    this.view.nowMs = nowMs;
    return this.#task === null ? null : this.#advance(this.#task.next(answers));
  }

  #advance(step: IteratorResult<Question, readonly Attempt[]>): Attempt | null {
    if (step.done !== true) {
      this.question = step.value;
      return null;
    }
    this.#task = null;
    this.#decided = step.value.map((attempt) => ({ tag: this.pods.tagOf(attempt.id), attempt }));
    return this.#nextDecided();
  }

  /** Between two of a gang's pods some time may pass, and pods may go. */
  #nextDecided(): Attempt | null {
    const next = this.#decided.find(({ tag, attempt: { id, kind } }) => {
      if (this.pods.rowOf(tag) < 0) return false;
      const isAssumed = this.pods.place.get(id) === PLACE.assumed;
      return kind === 'failed' ? !this.#occupancy.isPlaced(id) : isAssumed;
    });
    this.#decided = next === undefined ? [] : this.#decided.slice(this.#decided.indexOf(next) + 1);
    return next?.attempt ?? null;
  }

  /** The node of a gang's pod. Shards are not asked: the others must not change meanwhile. */
  *#find(id: number): Asking<number> {
    return this.placement.asks(id) ? yield* this.#ask(id) : this.placement.decideHere(id);
  }

  /** The node for a pod while others think: pods go in the meantime, and nodes do. */
  *#ask(id: number): Asking<number> {
    const tag = this.pods.tagOf(id);
    this.pods.place.set(id, PLACE.asked);
    const { changes } = this.queue;
    const isGone = (): boolean =>
      this.pods.rowOf(tag) < 0 || this.pods.place.get(id) !== PLACE.asked;
    const node = yield* this.placement.decideAsking(id, isGone);
    if (this.queue.changes !== changes) this.#missesEvents = true;
    if (isGone()) return GONE;
    this.pods.place.set(id, PLACE.none);
    const isLost = node < 0 ? this.placement.failure === null : !this.nodes.isPresent(node);
    if (!isLost) return node;
    const reasons = ['the node that was found is gone'];
    this.placement.failure = refusalOf({ code: 'error', reasons, plugin: EXTENDERS });
    return -1;
  }

  *#decideOne(id: number, nowMs: number): Task {
    const node = yield* this.#ask(id);
    if (node === GONE) return [];
    const attempt = this.#settle(id, node, nowMs);
    this.#tellGroup(attempt, nowMs);
    if (attempt.kind === 'failed') this.#catchUp(id, nowMs);
    return [attempt];
  }

  /** What happened while extenders thought would have woken the pod, had it waited already. */
  #catchUp(id: number, nowMs: number): void {
    if (this.#missesEvents) this.queue.wake(id, 'AssignedPodDelete', nowMs);
    this.#missesEvents = false;
  }

  *#decideGang(first: number, missing: number, nowMs: number): Task {
    const { queue, placement, nominator } = this;
    const group = this.gatekeeper.groups.groupOf(first);
    const ids = [first, ...queue.takeAll(this.gatekeeper.groups.membersOf(group))];
    const order = ids.toSorted((one, other) => this.#isBefore(one, other));
    const before = new Map(ids.map((id) => [id, nominator.nodeOf(id)]));
    const host: GangHost = {
      schedulerOf: (id) => this.#classOf(id).schedulerName,
      decide: (id) => this.#find(id),
      failure: () => placement.failure ?? refusalOf(NO_REASON),
      reservations: () => placement.reservations,
      assume: (id, node, reservations) => {
        this.#assume(id, node, nowMs);
        this.reservations.take(this.pods.tagOf(id), reservations);
      },
      release: (id) => {
        this.reservations.giveBack(this.pods.tagOf(id));
        this.#occupancy.leave(id);
        nominator.set(id, before.get(id));
      },
      nominate: (id, to) => nominator.set(id, to < 0 ? before.get(id) : this.nodes.nameOf(to)),
    };
    const { outcomes, message, isJudged, result } = yield* gangCycle(host, order, missing);
    if (isJudged) this.#writes.push(groupCondition(group, message, result === 'error'));
    if (isJudged) this.groupTry = { result, profile: this.#classOf(first).schedulerName };
    const attempts = outcomes.map((outcome): Attempt => {
      if (outcome.kind === 'placed') return { ...outcome, kind: 'bind' };
      const { id, failure } = outcome;
      return { kind: 'failed', id, failure, displaced: this.#reject(id, failure, nowMs) };
    });
    this.#nominations.moved(attempts, before, nowMs);
    if (message !== '') this.#catchUp(first, nowMs);
    return attempts;
  }

  /** Writes that came of decisions and that nobody waits for; each is handed out once. */
  takeWrites(): readonly ObjectWrite[] {
    return this.#writes.splice(0);
  }

  #isBefore(one: number, other: number): number {
    const more = this.#classOf(other).priority - this.#classOf(one).priority;
    return more || this.pods.firstMs.get(one) - this.pods.firstMs.get(other);
  }

  #classOf(id: number) {
    return this.identities.classes.get(this.pods.podClass.get(id));
  }

  #settle(id: number, node: number, nowMs: number): Attempt {
    if (node >= 0) {
      const { reservations } = this.placement;
      this.#assume(id, node, nowMs);
      this.reservations.take(this.pods.tagOf(id), reservations);
      return { kind: 'bind', id, node, reservations };
    }
    const { failure } = this.placement;
    if (failure === null) throw new Error('a pod found no node, and nothing says why');
    return { kind: 'failed', id, failure, displaced: this.#reject(id, failure, nowMs) };
  }

  /** The API server did not take a binding: the pod gives its node back and is tried later. */
  bindFailed(tag: number, nowMs: number): readonly ObjectWrite[] {
    const undone = this.reservations.giveBack(tag);
    const id = this.pods.rowOf(tag);
    if (id < 0 || this.pods.place.get(id) !== PLACE.assumed) return undone;
    this.#leave(id, nowMs);
    this.queue.fail(id, nowMs);
    return undone;
  }

  /** Once a second. */
  tick(nowMs: number): void {
    this.queue.tick(nowMs);
  }

  /** Twice a minute. */
  flush(nowMs: number): void {
    this.queue.flushUnschedulable(nowMs);
  }

  /** The row of its node is held, and is let go. */
  #assigned(id: number, facts: PodFacts, nowMs: number): void {
    const { pods } = this;
    this.lastEvent = pods.place.get(id) === PLACE.bound ? 'AssignedPodUpdate' : 'AssignedPodAdd';
    const isSame = pods.node.get(id) === facts.node && pods.usage.get(id) === facts.usage;
    if (isSame) {
      this.#occupancy.confirm(id);
      this.nodes.letGo(facts.node);
      this.nodes.usages.release(facts.usage);
      return this.#replaceIdentity(id, facts, nowMs);
    }
    const { usage, node } = facts;
    if (this.#occupancy.isPlaced(id)) this.#leave(id, nowMs);
    else this.#drop(id, nowMs);
    this.#setIdentity(id, facts);
    this.#occupancy.enter(id, node, usage, PLACE.bound);
    this.nodes.letGo(node);
    this.bell.podAdded(id, nowMs);
  }

  #pending(id: number, facts: PodFacts, isNew: boolean, nowMs: number): void {
    const { pods, queue } = this;
    this.lastEvent = isNew ? 'UnschedulablePodAdd' : 'UnschedulablePodUpdate';
    this.nodes.usages.release(facts.usage);
    // A version from before our binding; what the binding made of the pod will come.
    if (pods.place.get(id) === PLACE.assumed) return this.#replaceIdentity(id, facts, nowMs);
    const [classBefore, labelsBefore] = [pods.podClass.get(id), pods.labels.get(id)];
    const { nominated } = facts;
    const wasGated = this.#classOf(id).isGated;
    this.#setIdentity(id, facts);
    const isOther = classBefore !== pods.podClass.get(id);
    const isChanged = isOther || labelsBefore !== pods.labels.get(id);
    const podClass = this.identities.classes.get(pods.podClass.get(id));
    if (!this.profiles.has(podClass.schedulerName) || pods.isTerminating.get(id) !== 0) {
      return this.#drop(id, nowMs);
    }
    const isHeldBack = this.gatekeeper.isHeldBack(id, podClass);
    this.#nominations.seen(id, nominated, isHeldBack, nowMs);
    const place = pods.place.get(id);
    // The decision under way will see to it, with the pod as it is now.
    if (place === PLACE.asked) return;
    if (isHeldBack) {
      if (place !== PLACE.gated) queue.addGated(id);
    } else if (isNew || place === PLACE.none || place === PLACE.gated) {
      const ungated = wasGated && !isNew ? 'PodSchedulingGatesEliminated' : '';
      queue.add(id, `${this.lastEvent}${ungated}`, nowMs);
    } else if (isChanged) {
      const waits = place === PLACE.unschedulable;
      // Most plugins do not look at the pod's own labels.
      if (waits && !isOther && !queue.waiting.mindsLabels(id)) return;
      // Entries of its old class are void with the change of place.
      if (waits) queue.wake(id, 'UnschedulablePodUpdate', nowMs);
      else queue.add(id, 'UnschedulablePodUpdate', nowMs);
    }
  }

  /** Only pods that name the claim care; but devices that are free again are for everybody. */
  #claimSeen(
    key: string,
    before: ResourceClaimObject | undefined,
    after: ResourceClaimObject,
    event: string,
    nowMs: number,
  ): void {
    // A finalizer makes no difference to those who name it.
    const isNews = before === undefined || !isDeepStrictEqual(before.status, after.status);
    if (isNews) this.#retry(this.gatekeeper.claimants.on(key), event, nowMs);
    this.bell.ring({ event: 'object', kind: 'ResourceClaim', before, after }, event, nowMs);
  }

  /** Pods that wait for company, and those that had too little of it, may be tried. */
  #groupGrew(key: string, event: string, nowMs: number): void {
    this.#grown = '';
    this.#retry(this.gatekeeper.groups.membersOf(key), event, nowMs);
  }

  /** Pods that wait, or that were held back and are not any more. */
  #retry(ids: Iterable<number>, event: string, nowMs: number): void {
    const { pods, queue } = this;
    for (const id of ids) {
      if (pods.place.get(id) !== PLACE.gated) queue.wake(id, event, nowMs);
      else if (!this.gatekeeper.isHeldBack(id, this.#classOf(id))) queue.add(id, event, nowMs);
    }
  }

  #assume(id: number, node: number, nowMs: number): void {
    const podClass = this.pods.podClass.get(id);
    const usage = usageOf(this.#classOf(id), this.nodes.usages);
    this.nodes.usages.retain(usage);
    // Who found a node elsewhere leaves the one that it waited for to others.
    const nominated = this.nominator.nodeOf(id);
    if (nominated !== '' && nominated !== this.nodes.nameOf(node)) this.#nominations.end(id, nowMs);
    this.nominator.delete(id);
    this.#occupancy.enter(id, node, usage, PLACE.assumed);
    if (this.queue.waiting.isAwake(podClass)) this.queue.follow(podClass, nowMs);
    this.bell.podAdded(id, nowMs);
  }

  #reject(id: number, failure: Failure, nowMs: number): readonly number[] {
    const { priority } = this.#classOf(id);
    const displaced = this.#nominations.failed(id, priority, failure, nowMs);
    if (failure.isError) this.queue.fail(id, nowMs);
    else this.queue.reject(id, failure, nowMs);
    // Where eviction did not help for want of devices, those that come free do.
    const { resourceClaims = [] } = this.#classOf(id).template.spec;
    if (resourceClaims.length > 0) this.queue.waiting.widen(id);
    return displaced;
  }

  /** A pod gives its node back, and somebody may be waiting for that. */
  #leave(id: number, nowMs: number): void {
    const pod = this.bell.isHeard('podRemoved') ? this.view.podAt(id) : null;
    this.bell.podRemoved(pod, this.#occupancy.leave(id), nowMs);
  }

  /** A pod that wants a node no more, or not from us. */
  #drop(id: number, nowMs: number): void {
    const { pods } = this;
    const podClass = pods.podClass.get(id);
    if (pods.place.get(id) !== PLACE.none) this.queue.remove(id);
    this.#nominations.end(id, nowMs);
    if (this.queue.waiting.isAwake(podClass)) this.queue.follow(podClass, nowMs);
  }

  /** A placed pod may have other labels now. */
  #replaceIdentity(id: number, facts: PodFacts, nowMs: number): void {
    const { pods } = this;
    const isSame =
      pods.podClass.get(id) === facts.podClass &&
      pods.labels.get(id) === facts.labels &&
      pods.namespace.get(id) === facts.namespace;
    if (isSame) return this.#setIdentity(id, facts);
    // A binding brings labels of the node: that is every pod, and mostly nobody waits for it.
    const before = this.bell.isHeard('podChanged') ? this.view.podAt(id) : null;
    this.#occupancy.rename(id, facts, () => this.#setIdentity(id, facts));
    this.bell.podChanged(id, before, nowMs);
  }

  #setIdentity(id: number, facts: PodFacts | null): void {
    const { pods, identities, gatekeeper } = this;
    takeIdentity(pods, identities, id, facts);
    const podClass = identities.classes.get(pods.podClass.get(id));
    const space = identities.namespaces.get(pods.namespace.get(id));
    const grown = gatekeeper.enlist(id, facts !== null && facts.node >= 0, podClass, space);
    if (grown !== '') this.#grown = grown;
  }
}
