/**
 * The life of a cluster under one seeded clock: an API server with its store, all controllers and a
 * fleet of nodes in one process. Users do what users do while, on a rough day, answers are lost,
 * requests refused, watches cut, clocks jump and the server and the controllers are started anew.
 */
import assert from 'node:assert/strict';
import { Random } from '@megaplane/base/random';
import { stringAt } from '@megaplane/machinery/json';
import type { ClientRequest } from '@megaplane/client/client';
import { assertSettled } from './audit/settled-laws.ts';
import { assertAtRest, assertAtStep, summaryOf } from './cluster-invariants.ts';
import { Auditor } from './audit/auditor.ts';
import { ClusterSimulation } from './cluster-simulation.ts';
import { SimulatedFleet } from './simulated-fleet.ts';
import { SimulatedUsers } from './simulated-users.ts';
import { Troubles } from './troubles.ts';

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
  const troubles = new Troubles(cluster, fleet, new Random(seed).fork('troubles'), auditor, plan);
  await during(users.begin(plan.nodes));
  await cluster.advance(60_000);
  if (!isQuiet) await during(troubles.begin());
  for (let i = 1; i <= plan.deeds; i++) {
    if (!isQuiet) troubles.step();
    await during(users.act());
    await cluster.advance(plan.deedMs);
    if (isQuiet) assertSettled(auditor);
    if (isQuiet && i % plan.checkedDeeds === 0) await assertAtStep(cluster, fleet);
    plan.lived?.(i);
  }
  await during(troubles.end());
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
  await during(troubles.stop());
  return summary;
}
