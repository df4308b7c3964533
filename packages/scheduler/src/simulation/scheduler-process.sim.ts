/** The scheduler's own parts around a client and watches that are as bad as the world. */
import type { Random } from '@megaplane/base/random';
import { STATUS_NONE, type Client, type SendDone } from '@megaplane/client/client';
import { createLeaderElection, type LeaderElection } from '@megaplane/client/leader-election';
import { ApiWriter } from '../binding/api-writer.ts';
import { EventWriter } from '../binding/event-writer.ts';
import type { Failure } from '../placement/topology/failure.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { PreBinder } from '../binding/pre-binder.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { SchedulerMetrics } from '../metrics/text/scheduler-metrics.ts';
import { SchedulingLoop } from '../server/scheduling-loop.ts';
import type { Answer, ApiServer } from './api-server.sim.ts';
import { SHARDED, SimulatedShards } from './shards.sim.ts';
import type { Question } from '../extenders/extender.ts';
import type { Answer as ExtenderAnswer } from '../extenders/extender-answer.ts';
import type { World } from './world.sim.ts';

const SECOND_MS = 1000;
/** Nobody is tried again without a reason: what is forgotten stays so. */
const NEVER_MS = 1e12;
/** Who wakes has done what was due after so long at most. */
const WAKE_MS = 200;
/** As the client gives it up after some tries. */
const BUSY: Answer = { code: 429, text: '{"message":"too many requests"}' };
const NO_ANSWER: Answer = { code: STATUS_NONE, text: 'connection reset' };

/** A pod that the process is about to bind, or for which it wants others to go. */
export interface Decision {
  readonly by: SchedulerProcess;
  readonly key: string;
  readonly uid: string;
}

export interface ProcessOptions {
  readonly name: string;
  readonly isSharded: boolean;
}

export interface Witness {
  chose(decision: Decision, node: string): void;
  gaveUp(decision: Decision): void;
  evicts(decision: Decision, node: string, victims: readonly string[]): void;
  isHurt(key: string): void;
}

/** Tells a witness what was decided, before anything of it is sent. */
class WitnessedWriter extends ApiWriter {
  process: SchedulerProcess | null = null;
  witness: Witness | null = null;

  override delay(id: number, startedMs: number): void {
    this.process?.chose(id);
    super.delay(id, startedMs);
  }

  override bind(id: number, startedMs: number): void {
    this.process?.chose(id);
    super.bind(id, startedMs);
  }

  override fail(tag: number, message: string): void {
    this.process?.gaveUp(tag);
    super.fail(tag, message);
  }

  override report(id: number, failure: Failure, displaced: readonly number[]): void {
    if (failure.nomination !== null) this.process?.evicts(id, failure.nomination);
    super.report(id, failure, displaced);
  }
}

export class SchedulerProcess {
  readonly name: string;
  readonly core: SchedulerCore;
  /** What it was told of, by kind, and up to which revision. */
  readonly seen: Map<string, Map<string, KubeObject>> = new Map();
  readonly seenRevision: Map<string, number> = new Map();
  readonly election: LeaderElection;
  /** Null where it looks at all nodes by itself. */
  readonly shards: SimulatedShards | null;
  isStopped = false;
  readonly #world: World;
  readonly #server: ApiServer;
  readonly #witness: Witness;
  readonly #keys: string[] = [];
  readonly #rows = new Map<string, number>();
  readonly #free: number[] = [];
  readonly #arriveMs = new Map<string, number>();
  /** What is on its way, by kind, in order. */
  readonly #inboxes = new Map<string, News[]>();
  readonly #loop: SchedulingLoop;
  readonly #writer: WitnessedWriter;
  readonly #preBinder: PreBinder;
  readonly #unwatch: () => void;
  readonly #luck: Random;
  #pausedUntilMs = 0;
  #wallOffMs = 0;
  /** The watch is cut off, and what happens meanwhile is not told afterwards. */
  #isDeaf = false;

  constructor(
    world: World,
    server: ApiServer,
    witness: Witness,
    { name, isSharded }: ProcessOptions,
    die: () => void,
  ) {
    this.name = name;
    this.#luck = world.random.fork(name);
    this.#world = world;
    this.#server = server;
    this.#witness = witness;
    const keyOf = (id: number): string => this.#keys[id] ?? '';
    const queueLimits = {
      initialBackoffMs: SECOND_MS,
      maxBackoffMs: 10 * SECOND_MS,
      unschedulableMs: NEVER_MS,
    };
    const own = isSharded ? SHARDED : {};
    this.core = new SchedulerCore({ seed: 7, keyOf, queueLimits, checkedEvery: 7, ...own });
    const { core } = this;
    this.shards = isSharded
      ? new SimulatedShards(world, core, this.#luck, (ms, run) => this.#later(ms, run))
      : null;
    const client = this.#client();
    const metrics = new SchedulerMetrics(() => 0);
    const monotonicMs = (): number => world.nowMs;
    const mayDecide = (): boolean => this.election.isLeader;
    this.#writer = new WitnessedWriter({
      client,
      core,
      metrics,
      keyOf,
      events: new EventWriter({ client, host: 'sim', eventsPerSecondMax: 10 }),
      monotonicMs,
      onProgress: () => this.#loop.wake(),
      undo: (writes) => this.#preBinder.write(writes),
      mayDecide,
      bindElsewhere: () => Promise.resolve(''),
      log: () => {},
    });
    this.#writer.process = this;
    this.#preBinder = new PreBinder({
      client,
      core,
      metrics: metrics.work,
      onReady: (tag) => this.#writer.bindDelayed(tag),
      onFailure: (tag, message) => this.#writer.fail(tag, message),
      onWaiting: () => {},
      onTrouble: () => {},
      mayDecide,
    });
    this.#loop = new SchedulingLoop({
      core,
      writer: this.#writer,
      preBinder: this.#preBinder,
      metrics,
      clock: { nowMs: monotonicMs, monotonicMs },
      mayDecide,
      ask: (question) => this.#ask(question),
      onMismatch: (text) => world.fault(text),
      defer: (run) => this.#later(1, run),
    });
    this.election = createLeaderElection({
      client,
      namespace: 'kube-system',
      name: 'kube-scheduler',
      identity: name,
      onStartedLeading: () => this.#loop.setLeading(true),
      onStoppedLeading: die,
    });
    this.#relist();
    this.#unwatch = server.watch((kind, key, after, revision) => {
      this.#tell(kind, key, after, revision);
    });
    this.#loop.setSynced();
    this.election.start();
    this.#every(SECOND_MS, () => core.tick(world.nowMs));
    this.#every(30 * SECOND_MS, () => core.flush(world.nowMs));
  }

  stop(): void {
    this.isStopped = true;
    this.#unwatch();
    this.#loop.setLeading(false);
    this.#preBinder.stop();
  }

  async #ask(question: Question): Promise<readonly ExtenderAnswer[]> {
    this.#world.isAwaited = true;
    if (question.kind !== 'shards' || this.shards === null) return [];
    return this.shards.host.ask(question.round);
  }

  /** The process does nothing for a while and knows nothing of it. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#world.nowMs + ms);
  }

  setClock(offMs: number): void {
    this.#wallOffMs = offMs;
  }

  /** The watches are lost for so long that everything is read anew. */
  goDeaf(): void {
    if (this.#isDeaf || this.#world.outageMs > 0) return;
    this.#isDeaf = true;
    this.#later(this.#world.random.below(10 * SECOND_MS), () => {
      this.#isDeaf = false;
      this.#relist();
      this.#loop.wake();
    });
  }

  seenOf<T extends KubeObject>(kind: string): T[] {
    return [...(this.seen.get(kind)?.values() ?? [])] as T[];
  }

  chose(id: number): void {
    const node = this.core.nodes.nameOf(this.core.pods.node.get(id));
    this.#witness.chose(this.#decision(id), node);
  }

  gaveUp(tag: number): void {
    const id = this.core.pods.rowOf(tag);
    if (id >= 0) this.#witness.gaveUp(this.#decision(id));
  }

  evicts(id: number, { node, victims }: NonNullable<Failure['nomination']>): void {
    const keys = victims.map((victim) => this.#keys[victim] ?? '');
    this.#witness.evicts(this.#decision(id), this.core.nodes.nameOf(node), keys);
  }

  #decision(id: number): Decision {
    const key = this.#keys[id] ?? '';
    return { by: this, key, uid: this.seen.get('Pod')?.get(key)?.metadata.uid ?? '' };
  }

  /** What is there comes first, what is gone last, as informers have it. */
  #relist(): void {
    const server = this.#server;
    for (const kind of server.kinds) {
      if (kind === 'Lease') continue;
      const now = new Map(server.all(kind).map((object) => [keyFor(object), object]));
      for (const [key, object] of now) this.#see(kind, key, object);
      for (const key of this.seen.get(kind)?.keys() ?? []) {
        if (!now.has(key)) this.#see(kind, key, null);
      }
      this.seenRevision.set(kind, server.revision);
    }
  }

  /** Changes of a kind reach its watch in order, late, and after an outage only. */
  #tell(kind: string, key: string, after: KubeObject | null, revision: number): void {
    if (this.#isDeaf || kind === 'Lease') return;
    const world = this.#world;
    const slowMs = world.outageMs + world.random.below(600);
    const arriveMs = Math.max(world.nowMs + slowMs, this.#arriveMs.get(kind) ?? 0);
    this.#arriveMs.set(kind, arriveMs);
    const inbox = this.#inboxes.get(kind) ?? [];
    this.#inboxes.set(kind, inbox);
    inbox.push({ key, after, revision });
    this.#later(arriveMs - world.nowMs, () => this.#take(kind, inbox));
  }

  /** Who slept gets what came meanwhile piece by piece, in the order in which it came. */
  #take(kind: string, inbox: News[]): void {
    const news = inbox.shift();
    // A list that was read meanwhile had it.
    if (news !== undefined && news.revision > (this.seenRevision.get(kind) ?? 0)) {
      this.seenRevision.set(kind, news.revision);
      this.#see(kind, news.key, news.after);
    }
    this.#loop.wake();
  }

  #see(kind: string, key: string, object: KubeObject | null): void {
    const seen = this.seen.get(kind) ?? new Map<string, KubeObject>();
    this.seen.set(kind, seen);
    const { nowMs } = this.#world;
    const { core } = this;
    if (object === null) {
      if (!seen.delete(key)) return;
      if (kind === 'Node') core.nodeGone(key, nowMs);
      else if (kind === 'Pod') this.#missPod(key, nowMs);
      else core.objectGone(kind, key, nowMs);
      return;
    }
    if (seen.get(key)?.metadata.resourceVersion === object.metadata.resourceVersion) return;
    seen.set(key, object);
    if (kind === 'Node') core.nodeSeen(object, nowMs);
    else if (kind === 'Pod') this.#seePod(key, object as PodObject, nowMs);
    else core.objectSeen(kind, object, nowMs);
  }

  #seePod(key: string, pod: PodObject, nowMs: number): void {
    const known = this.#rows.get(key);
    const id = known ?? this.#free.pop() ?? this.#keys.length;
    this.#rows.set(key, id);
    this.#keys[id] = key;
    const bytes = Buffer.from(JSON.stringify(pod));
    this.core.podSeen(id, known === undefined, bytes, 0, bytes.length, nowMs);
  }

  #missPod(key: string, nowMs: number): void {
    const id = this.#rows.get(key);
    if (id === undefined) return;
    this.#writer.forget(id);
    this.#preBinder.write(this.core.podGone(id, nowMs));
    this.#rows.delete(key);
    this.#free.push(id);
  }

  /** A process that is stopped does nothing; one that sleeps does it afterwards. */
  #later(delayMs: number, run: () => void): void {
    this.#world.at(delayMs, () => {
      if (this.isStopped) return;
      const sleepMs = this.#pausedUntilMs - this.#world.nowMs;
      // Who wakes has much to do, and what is due does not come in its order.
      if (sleepMs > 0) this.#later(sleepMs + this.#luck.below(WAKE_MS), run);
      else run();
    });
  }

  #every(periodMs: number, run: () => void): void {
    this.#later(periodMs, () => {
      run();
      this.#loop.wake();
      this.#every(periodMs, run);
    });
  }

  /** Late, and sometimes lost on the way there or back. */
  #request(method: string, path: string, body: string, done: (answer: Answer) => void): void {
    const world = this.#world;
    const [thereMs, backMs] = [world.random.below(200), world.random.below(200)];
    const [isLost, isUnheard] = [world.chance(4), world.chance(path.endsWith('/binding') ? 15 : 4)];
    const isShed = world.isStormy && world.chance(70);
    // A request that was sent arrives, whether or not its sender still lives.
    world.at(thereMs, () => {
      const isGone = isLost || world.outageMs > 0;
      const isHurt = isGone || isUnheard || isShed;
      if (isHurt) this.#witness.isHurt(path);
      const served = (): Answer => this.#server.serve(method, path, body, this.name);
      const answer = isGone ? NO_ANSWER : isShed ? BUSY : served();
      // A connection that hangs is found dead much later.
      const slowMs = isUnheard ? world.random.below(8 * SECOND_MS) : 0;
      this.#later(backMs + slowMs, () => done(isUnheard ? NO_ANSWER : answer));
    });
  }

  #client(): Client {
    const world = this.#world;
    const timers = {
      nowMs: () => world.nowMs,
      wallMs: () => world.nowMs + this.#wallOffMs,
      after: (delayMs: number, fire: () => void) => {
        let isCancelled = false;
        this.#later(delayMs, () => {
          world.isAwaited = true;
          if (!isCancelled) fire();
        });
        return () => void (isCancelled = true);
      },
    };
    const send = (
      method: string,
      path: string,
      _type: string,
      body: string | null,
      done: SendDone,
      tag = 0,
    ): boolean => {
      this.#request(method, path, body ?? '', ({ code, text }) => {
        const bytes = Buffer.from(text);
        world.isAwaited = true;
        done(code, bytes, 0, bytes.length, tag);
      });
      return true;
    };
    const request = ({ method, path, body = '' }: ClientRequest): Promise<object> =>
      new Promise((resolve) => {
        const text = body === '' ? '' : JSON.stringify(body);
        this.#request(method, path, text, (answer) => {
          world.isAwaited = true;
          const { code } = answer;
          if (code < 200 || code > 299) {
            return resolve({ ok: false, code, status: { message: answer.text } });
          }
          resolve({ ok: true, code, object: JSON.parse(answer.text) as object });
        });
      });
    const client = { timers, send, request, room: () => 100, onRoom: () => {}, random: () => 0.5 };
    return client as unknown as Client;
  }
}

interface News {
  readonly key: string;
  readonly after: KubeObject | null;
  readonly revision: number;
}

interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

function keyFor({ metadata: { name, namespace = '' } }: KubeObject): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}
