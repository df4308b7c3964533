/**
 * The scheduler as a machine: it is told what the API server says and what time it is, and answers
 * with pods to bind and failures to report. It opens no connection and owns no clock.
 */
import { Random } from '@megaplane/base/random';
import { ClaimWatch } from './claim-watch.ts';
import type { ExtenderConfiguration } from './configuration/configuration.ts';
import { ClusterView, type ClaimStatuses } from './cluster-view.ts';
import { Evaluator } from './evaluator.ts';
import type { ResourceClaimObject } from './devices/device-objects.ts';
import { EXTENDERS, createExtenders, type Extender } from './extenders/extender.ts';
import type { Answer, Question } from './extenders/extender.ts';
import type { Asking } from './extenders/extender-rounds.ts';
import { refusalOf, type Failure } from './failure.ts';
import { fastProfileOf } from './fast-profile.ts';
import { Identities } from './identities.ts';
import { factsOf } from './node-facts.ts';
import { NodeTable } from './node-table.ts';
import { Nominator } from './nominator.ts';
import type { KubeObject, NodeObject, PodObject } from './objects.ts';
import { keyOf as keyOfObject } from './objects.ts';
import { ObjectStore } from './object-store.ts';
import { INDEX_BYTES_MAX, SEARCHED_NODES_MIN } from './index-shelf.ts';
import { Placement } from './placement.ts';
import type { ActiveProfile } from './placement.ts';
import type { PodFacts } from './pod-facts.ts';
import { createPodClass, usageOf, type PodClass } from './pod-class.ts';
import { PodReader } from './pod-reader.ts';
import { PLACE, PodTable } from './pod-table.ts';
import { createProfile, EXACT, type Compatibility, type ProfileConfiguration } from './profile.ts';
import type { ObjectWrite, Reservation } from './reservation.ts';
import { Reservations } from './reservations.ts';
import { QUEUE_LIMITS, SchedulingQueue, type QueueLimits } from './scheduling-queue.ts';
import { TermWatch } from './term-watch.ts';

export interface CoreOptions {
  readonly profiles?: readonly ProfileConfiguration[];
  /** 100 looks at all nodes; 0 adapts as upstream does. */
  readonly percentageOfNodesToScore?: number;
  readonly compatibility?: Compatibility;
  readonly queueLimits?: QueueLimits;
  readonly indexBytesMax?: number;
  readonly searchedNodesMin?: number;
  readonly checkedEvery?: number;
  readonly extenders?: readonly ExtenderConfiguration[];
  readonly seed: number;
  /** `namespace/name` of a pod's row. */
  keyOf(id: number): string;
}

/** What became of one try. */
export type Attempt =
  | {
      readonly kind: 'bind';
      readonly id: number;
      readonly node: number;
      /** To be done before the pod is bound. */
      readonly reservations: readonly Reservation[];
    }
  | {
      readonly kind: 'failed';
      readonly id: number;
      readonly failure: Failure;
      /** Pods that lost their claim to the node that this one waits for now. */
      readonly displaced: readonly number[];
    };

/** A decision that waits for answers. */
interface Pause {
  readonly id: number;
  readonly tag: number;
  readonly asking: Asking<number>;
  /** Of the cluster, when the decision began. */
  readonly changes: number;
}

/** What a row stands for between two pods. */
const NOTHING: PodObject = { metadata: { name: '' }, spec: {} };

/** Steps of a pod's generation fit into this many bits of a tag. */
const GENERATIONS = 2 ** 16;
const ROWS: number = 2 ** 32;

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
  /** Pods with a node that the API server has not confirmed. */
  assumed = 0;
  /** What extenders have to be asked before the decision under way goes on (`answer`). */
  question: Question | null = null;
  #pause: Pause | null = null;
  readonly #reader: PodReader;
  readonly #view: ClusterView;
  readonly #terms: TermWatch;
  readonly #claimStatuses = new Map<number, ClaimStatuses>();
  readonly #claimants = new ClaimWatch();

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
    this.#view = new ClusterView(this.nodes, this.pods, this.identities, this.objects, {
      keyOf: (id) => options.keyOf(id),
      nominatedNode: (id) => this.nominator.nodeOf(id),
      claimStatuses: (id) => this.#claimStatuses.get(id),
    });
    this.reservations = new Reservations(this.objects);
    this.nominator.view = this.#view;
    this.extenders = createExtenders(options.extenders ?? []);
    this.profiles = activeProfiles(options);
    this.#terms = new TermWatch(this.identities, this.pods, this.nodes, this.objects);
    this.placement = new Placement({
      nodes: this.nodes,
      pods: this.pods,
      identities: this.identities,
      terms: this.#terms,
      view: this.#view,
      nominator: this.nominator,
      objects: this.objects,
      keyOf: (id) => options.keyOf(id),
      profiles: this.profiles,
      percentageOfNodesToScore: options.percentageOfNodesToScore ?? 100,
      extenders: this.extenders,
      random: random.fork('ties'),
      indexes: {
        bytesMax: options.indexBytesMax ?? INDEX_BYTES_MAX,
        searchedNodesMin: options.searchedNodesMin ?? SEARCHED_NODES_MIN,
      },
      checkedEvery: options.checkedEvery ?? 0,
    });
    this.#reader = new PodReader(this.identities, this.nodes, random.fork('pods'));
  }

  /** A node is new or has changed. */
  nodeSeen(object: NodeObject, nowMs: number): void {
    const before = this.nodes.find(object.metadata.name);
    const isNew = before < 0 || !this.nodes.isPresent(before);
    const node = this.nodes.set(factsOf(object));
    this.#nodeHelps(node, isNew ? 'NodeAdd' : 'NodeUpdate', nowMs);
  }

  nodeGone(name: string, nowMs: number): void {
    const node = this.nodes.find(name);
    if (node < 0) return;
    this.nodes.remove(node);
    this.queue.wakeOthers('node', 'NodeDelete', nowMs);
  }

  /** An object of a small kind that plugins ask for. */
  objectSeen(kind: string, object: KubeObject, nowMs: number): void {
    const key = keyOfObject(object);
    const before = this.objects.object(kind, key);
    this.objects.set(kind, object);
    const event = `${kind}${before === undefined ? 'Add' : 'Update'}`;
    if (kind === 'ResourceClaim') this.#claimSeen(key, before, object, event, nowMs);
    else this.queue.wakeOthers('object', event, nowMs);
  }

  /** The API server took an object that we wrote; the watch will show it later. */
  objectWritten(kind: string, object: KubeObject): void {
    this.objects.assume(kind, object);
  }

  objectGone(kind: string, key: string): void {
    this.objects.delete(kind, key);
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
    this.#setTerminating(id, facts.isTerminating);
    this.#setStart(id, facts.startMs);
    this.pods.specGeneration.set(id, facts.specGeneration);
    this.pods.uid0.set(id, facts.uid[0] ?? 0);
    this.pods.uid1.set(id, facts.uid[1] ?? 0);
    this.pods.uid2.set(id, facts.uid[2] ?? 0);
    this.pods.uid3.set(id, facts.uid[3] ?? 0);
    if (facts.claims !== '') {
      this.#claimStatuses.set(id, JSON.parse(facts.claims) as ClaimStatuses);
    }
    if (facts.node >= 0) this.#assigned(id, facts, nowMs);
    else this.#pending(id, facts, isNew, nowMs);
    return true;
  }

  podGone(id: number, nowMs: number): readonly ObjectWrite[] {
    const undone = this.reservations.giveBack(this.tagOf(id));
    const podClass = this.pods.podClass.get(id);
    const wasPlaced = this.#isPlaced(id);
    if (wasPlaced) this.#leave(id, nowMs);
    else this.#drop(id, nowMs);
    if (!wasPlaced && this.queue.waiting.isAwake(podClass)) this.queue.follow(podClass, nowMs);
    this.#setIdentity(id, null);
    this.#claimStatuses.delete(id);
    this.#claimants.set(id, []);
    this.pods.generation.add(id, 1);
    return undone;
  }

  /**
   * Tries the next pod; null when none wants to be tried, or `question` has to be answered first. A
   * node found is assumed at once.
   */
  attempt(nowMs: number): Attempt | null {
    const id = this.queue.pop();
    if (id < 0) return null;
    this.#view.nowMs = nowMs;
    if (!this.placement.asks(id)) return this.#settle(id, this.placement.decide(id), nowMs);
    this.pods.place.set(id, PLACE.asked);
    const asking = this.placement.decideAsking(id);
    this.#pause = { id, tag: this.tagOf(id), asking, changes: this.queue.changes };
    return this.#advance(asking.next(), nowMs);
  }

  /** Goes on with the decision that asked; null if its pod is gone, or there is more to ask. */
  answer(answers: readonly Answer[], nowMs: number): Attempt | null {
    const pause = this.#pause;
    this.question = null;
    return pause === null ? null : this.#advance(pause.asking.next(answers), nowMs);
  }

  #advance(step: IteratorResult<Question, number>, nowMs: number): Attempt | null {
    const pause = this.#pause;
    if (pause === null) return null;
    const { id, tag, changes } = pause;
    if (step.done !== true) {
      this.question = step.value;
      return null;
    }
    this.#pause = null;
    // While extenders think, pods go, and nodes do.
    if (this.rowOf(tag) < 0 || this.pods.place.get(id) !== PLACE.asked) return null;
    this.pods.place.set(id, PLACE.none);
    const isGone =
      step.value < 0 ? this.placement.failure === null : !this.nodes.isPresent(step.value);
    if (isGone) {
      const reasons = ['the node that was found is gone'];
      this.placement.failure = refusalOf({ code: 'error', reasons, plugin: EXTENDERS });
      return this.#settle(id, -1, nowMs);
    }
    const attempt = this.#settle(id, step.value, nowMs);
    // What happened in the meantime would have woken the pod, had it been waiting already.
    const isStale = attempt.kind === 'failed' && this.queue.changes !== changes;
    if (isStale) this.queue.wake(id, 'AssignedPodDelete', nowMs);
    return attempt;
  }

  #settle(id: number, node: number, nowMs: number): Attempt {
    if (node >= 0) {
      const { reservations } = this.placement;
      this.#assume(id, node, nowMs);
      this.reservations.take(this.tagOf(id), reservations);
      return { kind: 'bind', id, node, reservations };
    }
    const { failure } = this.placement;
    if (failure === null) throw new Error('a pod found no node, and nothing says why');
    return { kind: 'failed', id, failure, displaced: this.#reject(id, failure, nowMs) };
  }

  /** A number that names this pod even when its row goes to another one. */
  tagOf(id: number): number {
    return (this.pods.generation.get(id) % GENERATIONS) * ROWS + id;
  }

  /** The row of a tag, or -1 if that pod is gone. */
  rowOf(tag: number): number {
    const id = tag % ROWS;
    const generation = Math.floor(tag / ROWS);
    return this.pods.generation.get(id) % GENERATIONS === generation ? id : -1;
  }

  /** The API server did not take a binding: the pod gives its node back and is tried later. */
  bindFailed(tag: number, nowMs: number): readonly ObjectWrite[] {
    const undone = this.reservations.giveBack(tag);
    const id = this.rowOf(tag);
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

  get memoryBytes(): number {
    return this.nodes.memoryBytes + this.pods.memoryBytes + this.placement.indexBytes;
  }

  #isPlaced(id: number): boolean {
    return this.pods.node.get(id) >= 0;
  }

  #assigned(id: number, facts: PodFacts, nowMs: number): void {
    const { pods } = this;
    const isSame = pods.node.get(id) === facts.node && pods.usage.get(id) === facts.usage;
    if (isSame) {
      if (pods.place.get(id) === PLACE.assumed) this.assumed--;
      pods.place.set(id, PLACE.bound);
      this.nodes.usages.release(facts.usage);
      return this.#replaceIdentity(id, facts);
    }
    const { usage, node } = facts;
    this.nodes.hold(node);
    if (this.#isPlaced(id)) this.#leave(id, nowMs);
    else this.#drop(id, nowMs);
    this.#setIdentity(id, facts);
    this.#enter(id, node, usage, PLACE.bound);
    this.nodes.letGo(node);
    this.queue.wakeOthers('podAdded', 'AssignedPodAdd', nowMs);
  }

  #pending(id: number, facts: PodFacts, isNew: boolean, nowMs: number): void {
    const { pods, queue } = this;
    this.nodes.usages.release(facts.usage);
    // A version from before our binding; what the binding made of the pod will come.
    if (pods.place.get(id) === PLACE.assumed) return this.#replaceIdentity(id, facts);
    const before = pods.podClass.get(id) * ROWS + pods.labels.get(id);
    const { nominated } = facts;
    this.#setIdentity(id, facts);
    const isChanged = before !== pods.podClass.get(id) * ROWS + pods.labels.get(id);
    const podClass = this.identities.classes.get(pods.podClass.get(id));
    if (!this.profiles.has(podClass.schedulerName) || pods.isTerminating.get(id) !== 0) {
      return this.#drop(id, nowMs);
    }
    if (nominated !== '') this.nominator.set(id, nominated);
    const place = pods.place.get(id);
    // The decision under way will see to it, with the pod as it is now.
    if (place === PLACE.asked) return;
    if (podClass.isGated || this.#isHeldBack(id, podClass)) {
      if (place !== PLACE.gated) queue.addGated(id);
    } else if (isNew || place === PLACE.none || place === PLACE.gated) {
      queue.add(id, isNew ? 'UnschedulablePodAdd' : 'UnschedulablePodUpdate', nowMs);
    } else if (isChanged) {
      // Entries of its old class are void with the change of place.
      if (place === PLACE.unschedulable) queue.wake(id, 'UnschedulablePodUpdate', nowMs);
      else queue.add(id, 'UnschedulablePodUpdate', nowMs);
    }
  }

  /** Whether a plugin wants the pod not to be tried, for what it names is not there. */
  #isHeldBack(id: number, { schedulerName, template }: PodClass): boolean {
    const profile = this.profiles.get(schedulerName)?.profile;
    const claims = template.spec.resourceClaims ?? [];
    if (profile === undefined || claims.length === 0) return false;
    const pod = this.#view.podAt(id);
    const made = pod.pod.status?.resourceClaimStatuses ?? [];
    const names = claims.flatMap(({ name, resourceClaimName }) => {
      const own = resourceClaimName ?? made.find((one) => one.name === name)?.resourceClaimName;
      return own === undefined ? [] : [`${pod.namespace}/${own}`];
    });
    this.#claimants.set(id, names);
    return Evaluator.gateOf(pod, this.#view, profile) !== null;
  }

  /** Only pods that name the claim care; but devices that are free again are for everybody. */
  #claimSeen(
    key: string,
    before: ResourceClaimObject | undefined,
    after: ResourceClaimObject,
    event: string,
    nowMs: number,
  ): void {
    const { pods, queue } = this;
    for (const id of this.#claimants.on(key)) {
      const podClass = this.identities.classes.get(pods.podClass.get(id));
      if (pods.place.get(id) === PLACE.gated) {
        if (!podClass.isGated && !this.#isHeldBack(id, podClass)) queue.add(id, event, nowMs);
      } else {
        queue.wake(id, event, nowMs);
      }
    }
    const isFreed =
      before?.status?.allocation !== undefined && after.status?.allocation === undefined;
    if (isFreed) queue.wakeOthers('object', event, nowMs);
  }

  #assume(id: number, node: number, nowMs: number): void {
    const podClass = this.pods.podClass.get(id);
    const { usages } = this.nodes;
    const usage = usageOf(this.identities.classes.get(podClass), usages);
    usages.retain(usage);
    this.nominator.delete(id);
    this.#enter(id, node, usage, PLACE.assumed);
    this.assumed++;
    if (this.queue.waiting.isAwake(podClass)) this.queue.follow(podClass, nowMs);
    this.queue.wakeOthers('podAdded', 'AssignedPodAdd', nowMs);
  }

  #reject(id: number, failure: Failure, nowMs: number): readonly number[] {
    let displaced: readonly number[] = [];
    if (failure.nomination !== null) {
      const { priority } = this.identities.classes.get(this.pods.podClass.get(id));
      const node = this.nodes.nameOf(failure.nomination.node);
      displaced = this.nominator.below(node, priority);
      for (const other of displaced) this.nominator.delete(other);
      this.nominator.set(id, node);
    } else if (failure.clearsNomination) {
      this.nominator.delete(id);
    }
    if (failure.isError) this.queue.fail(id, nowMs);
    else this.queue.reject(id, failure, nowMs);
    return displaced;
  }

  #enter(id: number, node: number, usage: number, place: number): void {
    this.pods.attach(id, node, usage);
    this.pods.place.set(id, place);
    this.placement.count(id, 1);
    this.#countSibling(id);
  }

  /** Whoever ranks pods by how long they have run must hear of it. */
  #setStart(id: number, startMs: number): void {
    const { pods } = this;
    if (pods.startMs.get(id) === startMs) return;
    pods.startMs.set(id, startMs);
    if (this.placement.ranksVictims && pods.node.get(id) >= 0) {
      this.nodes.log.append(pods.node.get(id));
    }
  }

  /** Pods that leave are not counted among their siblings any more. */
  #setTerminating(id: number, isTerminating: number): void {
    const { pods } = this;
    if (pods.isTerminating.get(id) === isTerminating) return;
    pods.isTerminating.set(id, isTerminating);
    const node = pods.node.get(id);
    if (node < 0) return;
    this.#uncountSibling(id);
    this.#countSibling(id);
    this.nodes.log.append(node);
  }

  #countSibling(id: number): void {
    if (this.pods.isTerminating.get(id) !== 0) return;
    this.pods.counted.set(id, 1);
    this.#terms.counters.staying(id, 1);
  }

  #uncountSibling(id: number): void {
    if (this.pods.counted.get(id) === 0) return;
    this.#terms.counters.staying(id, -1);
    this.pods.counted.set(id, 0);
  }

  /** A pod gives its node back, and somebody may be waiting for that. */
  #leave(id: number, nowMs: number): void {
    const { pods } = this;
    const node = pods.node.get(id);
    const usage = pods.usage.get(id);
    this.placement.count(id, -1);
    this.#uncountSibling(id);
    pods.detach(id);
    this.nodes.usages.release(usage);
    if (pods.place.get(id) === PLACE.assumed) this.assumed--;
    pods.place.set(id, PLACE.none);
    if (this.nodes.isPresent(node)) this.#roomOn(node, nowMs);
  }

  #roomOn(node: number, nowMs: number): void {
    const { queue, placement } = this;
    queue.wakeClasses(
      (podClass) => placement.isFeasible(podClass, node),
      'AssignedPodDelete',
      nowMs,
    );
    queue.wakeOthers('podRemoved', 'AssignedPodDelete', nowMs);
  }

  /** A node that will do now, or that would do but for another reason than before. */
  #nodeHelps(node: number, event: string, nowMs: number): void {
    const { queue, placement } = this;
    queue.wakeClasses((podClass) => placement.isJudgedAnew(podClass, node), event, nowMs);
    queue.wakeOthers('node', event, nowMs);
  }

  /** A pod that wants a node no more, or not from us. */
  #drop(id: number, nowMs: number): void {
    const { pods } = this;
    const podClass = pods.podClass.get(id);
    this.nominator.delete(id);
    if (pods.place.get(id) === PLACE.none) return;
    this.queue.remove(id);
    if (this.queue.waiting.isAwake(podClass)) this.queue.follow(podClass, nowMs);
  }

  /** A placed pod may have other labels now: those who count pods by labels must hear of it. */
  #replaceIdentity(id: number, facts: PodFacts): void {
    const { pods } = this;
    const isSame =
      pods.podClass.get(id) === facts.podClass &&
      pods.labels.get(id) === facts.labels &&
      pods.namespace.get(id) === facts.namespace;
    if (isSame) return this.#setIdentity(id, facts);
    this.placement.count(id, -1);
    this.#uncountSibling(id);
    this.#setIdentity(id, facts);
    this.placement.count(id, 1);
    this.#countSibling(id);
    this.nodes.log.append(pods.node.get(id));
  }

  /** Takes over what the facts hold; what the row held is released. */
  #setIdentity(id: number, facts: PodFacts | null): void {
    const { pods, identities } = this;
    const fresh = facts ?? {
      podClass: identities.classes.acquire('', () => createPodClass(NOTHING)),
      labels: identities.acquireLabels({}),
      namespace: identities.acquireNamespace(''),
      owner: identities.acquireOwner(undefined),
    };
    if (pods.known.get(id) === 1) {
      identities.release({
        podClass: pods.podClass.get(id),
        labels: pods.labels.get(id),
        namespace: pods.namespace.get(id),
        owner: pods.owner.get(id),
      });
    }
    pods.known.set(id, 1);
    pods.podClass.set(id, fresh.podClass);
    pods.labels.set(id, fresh.labels);
    pods.namespace.set(id, fresh.namespace);
    pods.owner.set(id, fresh.owner);
  }
}

function activeProfiles(options: CoreOptions): ReadonlyMap<string, ActiveProfile> {
  const compatibility = options.compatibility ?? EXACT;
  const isExact = (options.percentageOfNodesToScore ?? 100) === 100;
  const profiles = new Map<string, ActiveProfile>();
  for (const configuration of options.profiles ?? [{}]) {
    const profile = createProfile(configuration, compatibility);
    const { isBalanceChangeScored } = compatibility;
    const fast = isExact ? fastProfileOf(profile, configuration, isBalanceChangeScored) : null;
    profiles.set(profile.schedulerName, { profile, fast });
  }
  return profiles;
}
