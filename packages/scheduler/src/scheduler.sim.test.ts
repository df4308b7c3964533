// A world that goes wrong: requests and answers are lost, pods are bound by others or deleted while
// they are being bound and come again by the same name, important pods push others aside, nodes
// come and go, the server is gone for a minute or sheds most requests, watches miss what happens,
// the scheduler restarts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { STATUS_NONE, type Client, type SendDone } from '@megaplane/client/client';
import { ApiWriter } from './api-writer.ts';
import { EventWriter } from './event-writer.ts';
import type { PodGroupObject } from './gangs/pod-groups.ts';
import type { NodeObject, PodObject } from './objects.ts';
import { PreBinder } from './pre-binder.ts';
import { SchedulerCore } from './scheduler-core.ts';
import { SchedulerMetrics } from './scheduler-metrics.ts';
import { SchedulingLoop } from './scheduling-loop.ts';

const SEEDS = process.env['MEGAPLANE_LONG'] === '1' ? 200 : 4;
const STEPS = 300;
const SECOND_MS = 1000;
const OUTAGE_MS = 60_000;
const STORM_MS = 20_000;
/** Longer than any pod waits without a reason. */
const SETTLE_MS = 900_000;

interface Happening {
  readonly atMs: number;
  readonly order: number;
  run(): void;
}

interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

interface Answer {
  readonly code: number;
  readonly text: string;
}

/** As the client gives it up after some tries. */
const BUSY: Answer = { code: 429, text: '{"message":"too many requests"}' };
const NO_ANSWER: Answer = { code: STATUS_NONE, text: 'connection reset' };

/** The API server's truth, and a scheduler that sees it late. */
class World {
  readonly random: Random;
  readonly pods = new Map<string, PodObject>();
  readonly nodes = new Map<string, NodeObject>();
  readonly groups = new Map<string, PodGroupObject>();
  readonly faults: string[] = [];
  nowMs = 1_000_000;
  isCalm = false;
  binds = 0;
  evictions = 0;
  /** Evictions for which nobody waited any more. */
  vain = 0;
  #happenings: Happening[] = [];
  #order = 0;
  #outageEndMs = 0;
  #stormEndMs = 0;
  /** The watch is cut off, and what happens meanwhile is not told afterwards. */
  #isDeaf = false;
  #scheduler: Scheduler;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.#scheduler = new Scheduler(this);
  }

  chance(percent: number): boolean {
    return !this.isCalm && this.random.below(100) < percent;
  }

  at(delayMs: number, run: () => void): void {
    this.#happenings.push({ atMs: this.nowMs + delayMs, order: this.#order++, run });
  }

  /** Lets what is due happen until a moment. */
  runUntil(endMs: number): void {
    for (;;) {
      let next: Happening | null = null;
      for (const one of this.#happenings) {
        const isEarlier =
          next === null ||
          one.atMs < next.atMs ||
          (one.atMs === next.atMs && one.order < next.order);
        if (one.atMs <= endMs && isEarlier) next = one;
      }
      if (next === null) break;
      const due = next;
      this.#happenings = this.#happenings.filter((one) => one !== due);
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.run();
    }
    this.nowMs = endMs;
  }

  get isOut(): boolean {
    return this.nowMs < this.#outageEndMs;
  }

  /** The server is there, but takes few requests. */
  get isStormy(): boolean {
    return this.nowMs < this.#stormEndMs;
  }

  goStormy(): void {
    this.#stormEndMs = this.nowMs + STORM_MS;
  }

  goOut(): void {
    this.#outageEndMs = this.nowMs + OUTAGE_MS;
  }

  /** The watch is lost for so long that everything is read anew. */
  goDeaf(): void {
    if (this.#isDeaf || this.isOut) return;
    this.#isDeaf = true;
    this.at(this.random.below(10 * SECOND_MS), () => {
      this.#isDeaf = false;
      this.#tell((scheduler) => scheduler.relist());
    });
  }

  /** What the old one sent has arrived before the new one looks: that is what its lease is for. */
  restart(): void {
    const before = this.#scheduler;
    before.stop();
    this.at(SECOND_MS, () => {
      if (this.#scheduler === before) this.#scheduler = new Scheduler(this);
    });
  }

  /** Changes reach the watch in order, late, and after an outage only. */
  #tell(run: (scheduler: Scheduler) => void): void {
    if (this.#isDeaf) return;
    const scheduler = this.#scheduler;
    const outageMs = Math.max(0, this.#outageEndMs - this.nowMs);
    const slowMs = outageMs + this.random.below(600);
    const lateMs = Math.max(slowMs, scheduler.watchedMs - this.nowMs);
    scheduler.watchedMs = this.nowMs + lateMs;
    this.at(lateMs, () => run(scheduler));
  }

  setNode(node: NodeObject): void {
    this.nodes.set(node.metadata.name, node);
    this.#tell((scheduler) => scheduler.seeNode(node));
  }

  dropNode(name: string): void {
    this.nodes.delete(name);
    for (const [key, { spec }] of this.pods) if (spec.nodeName === name) this.dropPod(key);
    this.#tell((scheduler) => scheduler.missNode(name));
  }

  setPod(key: string, pod: PodObject): void {
    this.pods.set(key, pod);
    this.#tell((scheduler) => scheduler.seePod(key, pod));
  }

  dropPod(key: string): void {
    if (this.pods.delete(key)) this.#tell((scheduler) => scheduler.missPod(key));
  }

  setGroup(name: string, minCount: number): void {
    const spec = { schedulingPolicy: { gang: { minCount } } };
    this.#setGroup(name, { metadata: { name, namespace: 'default' }, spec });
  }

  #setGroup(name: string, group: PodGroupObject): void {
    this.groups.set(name, group);
    this.#tell((scheduler) => scheduler.seeGroup(group));
  }

  cpuLeft(name: string): number {
    let left = Number(this.nodes.get(name)?.status?.allocatable?.['cpu'] ?? 0);
    for (const pod of this.pods.values()) if (pod.spec.nodeName === name) left -= cpuOf(pod);
    return left;
  }

  /** What the API server makes of a request. */
  serve(method: string, path: string, body: string): Answer {
    const [, namespace = '', name = '', sub = ''] =
      /namespaces\/([^/]+)\/pods\/([^/]+)\/?(.*)$/.exec(path) ?? [];
    const key = `${namespace}/${name}`;
    const pod = this.pods.get(key);
    const group = /podgroups\/([^/]+)/.exec(path)?.[1];
    if (group !== undefined) return this.#serveGroup(group, method, body);
    if (name === '') return { code: 201, text: '{}' };
    if (pod === undefined) return { code: 404, text: '{"message":"not found"}' };
    if (method === 'GET') return { code: 200, text: JSON.stringify(pod) };
    if (sub === 'binding') return this.#bind(key, pod, JSON.parse(body) as Binding);
    if (method === 'DELETE') return this.#delete(key, pod, body);
    if (method === 'PATCH') return this.#patchStatus(key, pod, JSON.parse(body) as StatusPatch);
    return { code: 200, text: '{}' };
  }

  #serveGroup(name: string, method: string, body: string): Answer {
    if (method === 'PUT') this.#setGroup(name, JSON.parse(body) as PodGroupObject);
    return { code: 200, text: JSON.stringify(this.groups.get(name)) };
  }

  #delete(key: string, pod: PodObject, body: string): Answer {
    const { preconditions = {} } = body === '' ? {} : (JSON.parse(body) as DeleteOptions);
    const { uid = '' } = preconditions;
    if (uid !== '' && uid !== pod.metadata.uid) return { code: 409, text: '{"message":"uid"}' };
    // It may have come by the name of one that ran.
    const isOther = uid === '' && (pod.spec.nodeName ?? '') === '';
    if (isOther) this.faults.push(`${key} is evicted from nowhere`);
    this.#evict(key, pod);
    return { code: 200, text: '{}' };
  }

  /** A victim takes its time. Somebody more important must be waiting for its room. */
  #evict(key: string, pod: PodObject): void {
    this.evictions++;
    const waiting = [...this.pods.values()].filter(({ spec }) => (spec.nodeName ?? '') === '');
    if (!waiting.some(({ spec }) => (spec.priority ?? 0) > (pod.spec.priority ?? 0))) {
      // Those for whom it was to go may have gone themselves while the request was on its way.
      this.vain++;
    }
    if (pod.metadata.deletionTimestamp !== undefined) return;
    const deletionTimestamp = new Date(this.nowMs).toISOString();
    this.setPod(key, { ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
    const { uid } = pod.metadata;
    this.at(this.random.below(5 * SECOND_MS), () => {
      if (this.pods.get(key)?.metadata.uid === uid) this.dropPod(key);
    });
  }

  #patchStatus(key: string, pod: PodObject, { metadata, status }: StatusPatch): Answer {
    const { uid = pod.metadata.uid } = metadata ?? {};
    if (uid !== pod.metadata.uid) return { code: 409, text: '{"message":"uid"}' };
    const { nominatedNodeName, conditions = [] } = status;
    const told = new Set(conditions.map(({ type }) => type));
    const others = (pod.status?.conditions ?? []).filter(({ type }) => !told.has(type));
    const { nominatedNodeName: before, ...rest } = pod.status ?? {};
    const nominated = nominatedNodeName === undefined ? before : (nominatedNodeName ?? undefined);
    const named = nominated === undefined ? {} : { nominatedNodeName: nominated };
    const all = { ...rest, ...named, conditions: [...others, ...conditions] };
    this.setPod(key, { ...pod, status: all });
    return { code: 200, text: '{}' };
  }

  #bind(key: string, pod: PodObject, { metadata, target }: Binding): Answer {
    if (metadata.uid !== pod.metadata.uid) return { code: 409, text: '{"message":"uid"}' };
    if ((pod.spec.nodeName ?? '') !== '') return { code: 409, text: '{"message":"assigned"}' };
    if (this.nodes.has(target.name) && this.cpuLeft(target.name) < cpuOf(pod)) {
      this.faults.push(`${key} overcommits ${target.name}`);
    }
    this.binds++;
    this.setPod(key, { ...pod, spec: { ...pod.spec, nodeName: target.name } });
    if (!this.nodes.has(target.name)) this.at(2000, () => this.dropPod(key));
    return { code: 201, text: '{}' };
  }
}

interface StatusPatch {
  readonly metadata?: { readonly uid?: string };
  readonly status: {
    readonly nominatedNodeName?: string | null;
    readonly conditions?: NonNullable<NonNullable<PodObject['status']>['conditions']>;
  };
}

interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string };
}

interface Binding {
  readonly metadata: { readonly uid: string };
  readonly target: { readonly name: string };
}

function cpuOf({ spec }: PodObject): number {
  return Number(spec.containers?.[0]?.resources?.requests?.['cpu'] ?? 0);
}

/** The scheduler's own parts around a client that is as bad as the world. */
class Scheduler {
  readonly core: SchedulerCore;
  /** When the watch delivers what it was told last. */
  watchedMs = 0;
  readonly #world: World;
  readonly #keys: string[] = [];
  readonly #rows = new Map<string, number>();
  readonly #nodeNames = new Set<string>();
  readonly #free: number[] = [];
  readonly #loop: SchedulingLoop;
  readonly #writer: ApiWriter;
  readonly #preBinder: PreBinder;
  #isStopped = false;

  constructor(world: World) {
    this.#world = world;
    const keyOf = (id: number): string => this.#keys[id] ?? '';
    const core = new SchedulerCore({ seed: 7, keyOf });
    this.core = core;
    const client = this.#client();
    const metrics = new SchedulerMetrics(() => 0);
    this.#writer = new ApiWriter({
      client,
      core,
      metrics,
      keyOf,
      events: new EventWriter({ client, host: 'sim', eventsPerSecondMax: 10 }),
      monotonicMs: () => world.nowMs,
      onProgress: () => this.#loop.wake(),
      undo: () => {},
      bindElsewhere: () => Promise.resolve(''),
      log: () => {},
    });
    this.#preBinder = new PreBinder({
      client,
      core,
      metrics: metrics.work,
      onReady: () => {},
      onFailure: () => {},
      onWaiting: () => {},
      onTrouble: () => {},
    });
    const clock = { nowMs: () => world.nowMs, monotonicMs: () => world.nowMs };
    this.#loop = new SchedulingLoop({
      core,
      writer: this.#writer,
      preBinder: this.#preBinder,
      metrics,
      clock,
      mayDecide: () => true,
      ask: () => Promise.resolve([]),
      onMismatch: (text) => world.faults.push(text),
      defer: (run) => this.#later(1, run),
    });
    for (const group of world.groups.values()) this.seeGroup(group);
    for (const node of world.nodes.values()) this.seeNode(node);
    for (const [key, pod] of world.pods) this.seePod(key, pod);
    this.#loop.setSynced();
    this.#loop.setLeading(true);
    this.#every(SECOND_MS, () => core.tick(world.nowMs));
    this.#every(30 * SECOND_MS, () => core.flush(world.nowMs));
  }

  stop(): void {
    this.#isStopped = true;
    this.#loop.setLeading(false);
  }

  seeGroup(group: PodGroupObject): void {
    if (!this.#isStopped) this.core.objectSeen('PodGroup', group, this.#world.nowMs);
  }

  /** What is there comes first, what is gone last, as informers have it. */
  relist(): void {
    const world = this.#world;
    for (const group of world.groups.values()) this.seeGroup(group);
    for (const node of world.nodes.values()) this.seeNode(node);
    for (const [key, pod] of world.pods) this.seePod(key, pod);
    for (const name of this.#nodeNames) if (!world.nodes.has(name)) this.missNode(name);
    for (const key of this.#rows.keys()) if (!world.pods.has(key)) this.missPod(key);
  }

  seeNode(node: NodeObject): void {
    if (this.#isStopped) return;
    this.#nodeNames.add(node.metadata.name);
    this.core.nodeSeen(node, this.#world.nowMs);
    this.#loop.wake();
  }

  missNode(name: string): void {
    if (!this.#isStopped) this.core.nodeGone(name, this.#world.nowMs);
  }

  seePod(key: string, pod: PodObject): void {
    if (this.#isStopped) return;
    const known = this.#rows.get(key);
    const id = known ?? this.#free.pop() ?? this.#keys.length;
    this.#rows.set(key, id);
    this.#keys[id] = key;
    const bytes = Buffer.from(JSON.stringify(pod));
    this.core.podSeen(id, known === undefined, bytes, 0, bytes.length, this.#world.nowMs);
    this.#loop.wake();
  }

  missPod(key: string): void {
    const id = this.#rows.get(key);
    if (this.#isStopped || id === undefined) return;
    this.#writer.forget(id);
    this.core.podGone(id, this.#world.nowMs);
    this.#rows.delete(key);
    this.#free.push(id);
    this.#loop.wake();
  }

  #later(delayMs: number, run: () => void): void {
    this.#world.at(delayMs, () => {
      if (!this.#isStopped) run();
    });
  }

  #every(periodMs: number, run: () => void): void {
    this.#later(periodMs, () => {
      run();
      this.#loop.wake();
      this.#every(periodMs, run);
    });
  }

  /** Late, and sometimes lost on the way there or back; a stopped scheduler hears nothing. */
  #request(method: string, path: string, body: string, done: (answer: Answer) => void): void {
    const world = this.#world;
    const thereMs = world.random.below(200);
    const backMs = world.random.below(200);
    const isLost = world.chance(5);
    const isUnheard = world.chance(5);
    const isShed = world.isStormy && world.chance(70);
    // A request that was sent arrives, whether or not its sender still lives.
    world.at(thereMs, () => {
      const isGone = isLost || world.isOut;
      const answer = isGone ? NO_ANSWER : isShed ? BUSY : world.serve(method, path, body);
      this.#later(backMs, () => done(isUnheard ? NO_ANSWER : answer));
    });
  }

  #client(): Client {
    const world = this.#world;
    const timers = {
      nowMs: () => world.nowMs,
      wallMs: () => world.nowMs,
      after: (delayMs: number, fire: () => void) => {
        this.#later(delayMs, fire);
        return () => {};
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
        done(code, bytes, 0, bytes.length, tag);
      });
      return true;
    };
    // As the client's, but answering at once when it does: promises are not of this world's time.
    const request = ({ method, path, body = '' }: ClientRequest): object => ({
      // eslint-disable-next-line unicorn/no-thenable
      then: (resolve: (response: object) => void) => {
        this.#request(method, path, JSON.stringify(body), ({ code, text }) => {
          const isFine = code >= 200 && code < 300;
          resolve(
            isFine
              ? { ok: true, code, object: JSON.parse(text) as object }
              : { ok: false, code, status: { message: text } },
          );
        });
      },
    });
    const client = { timers, send, request, room: () => 100, onRoom: () => {}, random: () => 0.5 };
    return client as unknown as Client;
  }
}

let serial = 0;

/** Names come again: each pod has another uid. */
function newPod(world: World, cpu: number, more: object = {}, prefix = 'p'): void {
  const name = `${prefix}${world.random.below(200)}`;
  if (world.pods.has(`default/${name}`)) return;
  serial++;
  const uid = `00000000-0000-0000-0000-${String(serial).padStart(12, '0')}`;
  world.setPod(`default/${name}`, {
    metadata: { name, namespace: 'default', uid },
    spec: {
      schedulerName: 'default-scheduler',
      priority: world.random.below(4) === 0 ? 100 : 0,
      containers: [{ name: 'c', resources: { requests: { cpu: String(cpu) } } }],
      ...more,
    },
  });
}

/** As a StatefulSet does it. */
function replacePod(world: World, key: string): void {
  const pod = world.pods.get(key);
  if (pod === undefined) return;
  world.dropPod(key);
  const { nodeName: _, ...spec } = pod.spec;
  const uid = `00000000-0000-0000-0000-${String(serial++).padStart(12, '0')}`;
  const { namespace = '', name } = pod.metadata;
  world.setPod(key, { metadata: { name, namespace, uid }, spec });
}

function newGang(world: World): string {
  const group = `g${serial++}`;
  const size = 2 + world.random.below(3);
  world.setGroup(group, size);
  const more = { priority: 0, schedulingGroup: { podGroupName: group } };
  for (let i = 0; i < size; i++) newPod(world, 2, more, `${group}-${i}-`);
  return group;
}

function newNode(world: World, name: string, cpu: number, unschedulable = false): void {
  const allocatable = { cpu: String(cpu), memory: '64Gi', pods: '110' };
  world.setNode({
    metadata: { name, labels: {} },
    spec: { unschedulable },
    status: { allocatable },
  });
}

/** One thing that people, controllers or bad luck do. */
function disturb(world: World): void {
  const { random } = world;
  const keys = [...world.pods.keys()];
  const someKey = keys[random.below(Math.max(1, keys.length))] ?? '';
  const names = [...world.nodes.keys()];
  const someNode = names[random.below(Math.max(1, names.length))] ?? '';
  const dice = random.below(100);
  if (dice < 55) newPod(world, 1 + random.below(3));
  else if (dice < 58) newGang(world);
  else if (dice < 60) {
    world.goDeaf();
    for (const key of keys.slice(0, 3)) replacePod(world, key);
  } else if (dice < 72) world.dropPod(someKey);
  else if (dice < 80) newNode(world, `n${random.below(8)}`, 8);
  else if (dice < 84) world.dropNode(someNode);
  else if (dice < 90) bindByHand(world, someKey);
  else if (dice < 94) world.restart();
  else if (dice < 95) world.goOut();
  else if (dice < 97) world.goStormy();
}

/** Somebody else binds a pod, to a node that is cordoned: two who fill one node overfill it. */
function bindByHand(world: World, key: string): void {
  const pod = world.pods.get(key);
  if (pod === undefined || (pod.spec.nodeName ?? '') !== '') return;
  const cordoned = `by-hand-${serial++}`;
  newNode(world, cordoned, 64, true);
  world.setPod(key, { ...pod, spec: { ...pod.spec, nodeName: cordoned } });
}

/** Pods without a node; but those of a gang that has lost some of its pods have to wait. */
function forgotten(world: World): string[] {
  const sizes = new Map<string, number>();
  const groupOf = ({ spec }: PodObject): string => spec.schedulingGroup?.podGroupName ?? '';
  for (const pod of world.pods.values()) {
    sizes.set(groupOf(pod), (sizes.get(groupOf(pod)) ?? 0) + 1);
  }
  const waiting = [...world.pods].filter(([, pod]) => {
    const wanted = world.groups.get(groupOf(pod))?.spec?.schedulingPolicy?.gang?.minCount ?? 0;
    return (pod.spec.nodeName ?? '') === '' && (sizes.get(groupOf(pod)) ?? 0) >= wanted;
  });
  return waiting.map(([key]) => key);
}

/** Gangs of which some pods have a node and some have none. */
function brokenGangs(world: World, gangs: readonly string[]): string[] {
  return gangs.filter((gang) => {
    const members = [...world.pods].filter(([key]) => key.startsWith(`default/${gang}-`));
    const placed = members.filter(([, { spec }]) => (spec.nodeName ?? '') !== '');
    return placed.length > 0 && placed.length < members.length;
  });
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`nothing is forgotten, bound twice or overcommitted in world ${seed}`, async () => {
    const world = new World(seed);
    for (let i = 0; i < 4; i++) newNode(world, `n${i}`, 8);
    for (let step = 0; step < STEPS; step++) {
      disturb(world);
      world.runUntil(world.nowMs + world.random.below(400));
      await Promise.resolve();
    }
    world.isCalm = true;
    world.runUntil(world.nowMs + OUTAGE_MS);
    // No restart makes up for what is missed from here on.
    world.goDeaf();
    for (const key of [...world.pods.keys()].slice(0, 3)) replacePod(world, key);
    const gangs = Array.from({ length: 10 }, () => newGang(world));
    world.runUntil(world.nowMs + OUTAGE_MS);
    await Promise.resolve();
    assert.deepEqual(brokenGangs(world, gangs), []);
    for (let i = 0; i < 40; i++) newNode(world, `last${i}`, 64);
    for (let waitedMs = 0; waitedMs < SETTLE_MS; waitedMs += SECOND_MS) {
      world.runUntil(world.nowMs + SECOND_MS);
      await Promise.resolve();
    }
    assert.deepEqual(forgotten(world), []);
    assert.deepEqual(world.faults, []);
    assert(world.vain <= world.evictions / 2, `${world.vain} of ${world.evictions} in vain`);
    assert(world.binds > 20, `only ${world.binds} pods were bound`);
  });
}
