/**
 * The life of a cluster under one seeded clock: an API server with its store, all controllers and a
 * fleet of nodes in one process. Users do what users do while, on a rough day, answers are lost,
 * requests refused, watches cut, clocks jump and the server and the controllers are started anew.
 */
import assert from 'node:assert/strict';
import { Random } from '@megaplane/base/random';
import { stringAt } from '@megaplane/machinery/json';
import type { ClientRequest } from '@megaplane/client/client';
import { Manager } from '@megaplane/controllers/manager';
import { chosenControllers, type ControllersOptions } from '@megaplane/controllers/options';
import { assertSettled } from './audit/settled-laws.ts';
import { assertAtRest, assertAtStep, summaryOf } from './cluster-invariants.ts';
import { Auditor } from './audit/auditor.ts';
import { ClusterSimulation, type Fault } from './cluster-simulation.ts';
import { SimulatedClock } from './simulated-timers.ts';
import { SimulatedFleet } from './simulated-fleet.ts';
import { SimulatedUsers } from './simulated-users.ts';

/** Of what is refused: pauses that double from 5 ms on let so many tries into a minute. */
const TRIES_PER_MINUTE = 14;
/** The fleet does something each second, and each news ends a pause. */
const NEWS_PER_MINUTE = 60;
export interface LifePlan {
  readonly seed: number;
  readonly isQuiet: boolean;
  readonly nodes: number;
  /** How often a node renews its lease; it is silent after five times that. */
  readonly renewMs: number;
  readonly deeds: number;
  /** From one deed to the next. */
  readonly deedMs: number;
  /** After the last deed and the last trouble, everything comes to rest in so long. */
  readonly restMs: number;
  /** On a quiet day, invariants are checked after so many deeds. */
  readonly checkedDeeds: number;
  /** Told after each deed. */
  readonly lived?: (deeds: number) => void;
}

function newManager(
  cluster: ClusterSimulation,
  clock: SimulatedClock,
  random: Random,
  renewMs: number,
): Manager {
  const client = cluster.at(clock);
  const chosen = chosenControllers(['*', 'tokencleaner']);
  assert(typeof chosen !== 'string');
  const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
  const options: ControllersOptions = {
    kubeconfig: '',
    nodeMonitorGracePeriodMs: 5 * renewMs,
    nodeStartupGracePeriodMs: 6 * renewMs,
    log,
  };
  const monotonicMs = (): number => clock.monotonicMs();
  const manager = new Manager({
    ...{ client, chosen, options, rootCa: 'PEM', random, monotonicMs, log },
  });
  manager.start();
  return manager;
}

/** What goes wrong; nothing on a quiet day. */
class Troubles {
  readonly #random: Random;
  readonly #cluster: ClusterSimulation;
  readonly #renewMs: number;
  /** Of the server, the nodes and the controllers. */
  readonly #clocks: readonly SimulatedClock[];
  readonly #clock: SimulatedClock;
  /** Clocks are set wrong by so much at most: what waits for them is over before the end. */
  readonly #wrongMsMax: number;
  /** Told when controllers begin anew. */
  readonly #began: () => void;
  #manager: Manager;
  #storm: Fault = 'none';

  constructor(
    cluster: ClusterSimulation,
    fleet: SimulatedFleet,
    random: Random,
    { renewMs, restMs }: LifePlan,
    began: () => void,
  ) {
    this.#wrongMsMax = restMs / 4;
    const clock = new SimulatedClock(cluster.timers);
    this.#clocks = [cluster.serverClock, fleet.clock, clock];
    this.#clock = clock;
    this.#renewMs = renewMs;
    this.#began = began;
    this.#cluster = cluster;
    this.#random = random;
    this.#manager = newManager(cluster, clock, random, renewMs);
  }

  begin(): void {
    this.#cluster.faultOf = () => {
      if (this.#storm !== 'none') return this.#random.below(4) > 0 ? this.#storm : 'none';
      const faults = ['lost', 'refused', 'throttled', 'unreachable'] as const;
      return this.#random.below(20) === 0 ? (faults[this.#random.below(4)] ?? 'none') : 'none';
    };
  }

  step(): void {
    this.#storm = 'none';
    switch (this.#random.below(8)) {
      case 0:
        this.#cluster.restart();
        break;
      case 1:
        this.#cluster.cut();
        break;
      case 2:
        this.restartManager();
        break;
      case 3:
        this.#storm = 'throttled';
        break;
      case 4:
        this.#cluster.timers.jump(this.#random.below(120_000));
        break;
      case 5:
        this.#setClock(this.#random.below(2 * this.#wrongMsMax) - this.#wrongMsMax);
        break;
      default:
    }
  }

  /** Of one machine, or of all at once, back or forward. */
  #setClock(aheadMs: number): void {
    const which = this.#random.below(this.#clocks.length + 1);
    for (const [i, clock] of this.#clocks.entries()) {
      if (i === which || which === this.#clocks.length) clock.set(aheadMs);
    }
  }

  restartManager(): void {
    this.#manager.stop();
    this.#manager = newManager(this.#cluster, this.#clock, this.#random, this.#renewMs);
    this.#began();
  }

  end(): void {
    this.#storm = 'none';
    this.#cluster.faultOf = () => 'none';
    for (const clock of this.#clocks) clock.set(0);
  }

  stop(): void {
    this.#manager.stop();
  }
}

/**
 * Counts in each minute how often controllers say the same of one path, one time after the other;
 * tells the most. A status that goes on with each pod of a rollout is no repetition, however many
 * there are; that many of them are said again in a storm of refusals is one of each.
 */
class Meter {
  readonly #said: Map<string, { readonly text: string; count: number }> = new Map();
  #minute = 0;
  most: readonly [count: number, what: string] = [0, ''];

  count({ method, path, body }: ClientRequest, nowMs: number): void {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) this.#said.clear();
    this.#minute = minute;
    // Collections are not objects: what is made there has no name yet.
    if (method === 'POST' || method === 'GET') return;
    const what = `${method} ${path.split('?')[0]}`;
    const text = JSON.stringify(body ?? null).replaceAll(/"resourceVersion":"\d+"/g, '');
    const before = this.#said.get(what);
    const count = before?.text === text ? before.count + 1 : 1;
    this.#said.set(what, { text, count });
    if (count > this.most[0]) this.most = [count, `${what} ${text}`];
  }
}

/** Lives through the deeds of a seed, with troubles or without; tells what is there at the end. */
export async function live(plan: LifePlan): Promise<readonly string[]> {
  const { seed, isQuiet, renewMs } = plan;
  const cluster = new ClusterSimulation(seed);
  const meter = new Meter();
  const auditor = new Auditor(cluster.store, cluster.timers, isQuiet, 5 * renewMs);
  cluster.stored = () => auditor.look();
  cluster.asked = (method, path, body) => {
    if (method !== 'DELETE') return;
    auditor.removed(path, typeof body === 'object' ? stringAt(body, 'propagationPolicy') : '');
  };
  cluster.lost = ({ method }) => void (method === 'POST' && auditor.creationLost());
  cluster.heard = (request) => meter.count(request, cluster.timers.nowMs());
  const fleet = new SimulatedFleet(cluster, new Random(seed).fork('fleet'), renewMs);
  const users = new SimulatedUsers(cluster, fleet, new Random(seed).fork('users'), isQuiet);
  const during = async (deed: Promise<void>): Promise<void> => {
    let isDone = false;
    void deed.finally(() => (isDone = true));
    while (!isDone) await cluster.settle();
    await deed;
  };
  const began = (): void => auditor.controllersBegan();
  const troubles = new Troubles(cluster, fleet, new Random(seed).fork('troubles'), plan, began);
  await during(users.begin(plan.nodes));
  await cluster.advance(60_000);
  if (!isQuiet) troubles.begin();
  for (let i = 1; i <= plan.deeds; i++) {
    if (!isQuiet) troubles.step();
    await during(users.act());
    await cluster.advance(plan.deedMs);
    if (isQuiet) assertSettled(auditor);
    if (isQuiet && i % plan.checkedDeeds === 0) await assertAtStep(cluster, fleet);
    plan.lived?.(i);
  }
  troubles.end();
  users.end();
  await cluster.advance(plan.restMs / 2);
  await during(users.finish());
  await cluster.advance(plan.restMs / 2);
  assertSettled(auditor);
  await assertAtRest(cluster, fleet);
  const before = meter.most;
  const summary = await summaryOf(cluster);
  const [count, what] = before;
  const countMax = isQuiet ? TRIES_PER_MINUTE : TRIES_PER_MINUTE + NEWS_PER_MINUTE;
  assert(count <= countMax, `said ${count} times in a minute: ${what}`);
  troubles.stop();
  return summary;
}
