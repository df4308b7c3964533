/**
 * An API server, its store, all controllers and a fleet of nodes in one process, under one seeded
 * clock: users do what users do while answers are lost, requests refused, watches cut, clocks jump
 * and the server and the controllers are started anew. Afterwards everything must be as the
 * specifications say, and the same as after the same deeds on a quiet day.
 *
 * With MEGAPLANE_LONG: a thousand nodes for a week. A failure names its seed;
 * `MEGAPLANE_SEED=n` plays it again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { ClientRequest } from '@megaplane/client/client';
import { Manager } from '@megaplane/controllers/manager';
import { chosenControllers, type ControllersOptions } from '@megaplane/controllers/options';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { ClusterSimulation, type Fault } from './cluster-simulation.ts';
import { SimulatedFleet } from './simulated-fleet.ts';
import { KINDS, pathOf, QUOTA_PODS, SimulatedUsers } from './simulated-users.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const SEED = Number(process.env['MEGAPLANE_SEED'] ?? (IS_LONG ? Date.now() % 1e6 : 7));
const NODES = IS_LONG ? 1_000 : 8;
const RENEW_MS = IS_LONG ? 300_000 : 10_000;
const DEEDS = IS_LONG ? 2_000 : 12;
const DEED_MS = IS_LONG ? 300_000 : 15_000;
/** After the last deed and the last trouble, everything comes to rest in so long. */
const REST_MS = IS_LONG ? 4 * 3_600_000 : 420_000;
/** Of one path: what is refused is asked again ever more seldom. */
const REQUESTS_PER_MINUTE_MAX = 60;

function newManager(cluster: ClusterSimulation, random: Random): Manager {
  const chosen = chosenControllers(['*', 'tokencleaner']);
  assert(typeof chosen !== 'string');
  const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
  const options: ControllersOptions = {
    kubeconfig: '',
    nodeMonitorGracePeriodMs: 5 * RENEW_MS,
    nodeStartupGracePeriodMs: 6 * RENEW_MS,
    log,
  };
  const monotonicMs = (): number => cluster.timers.nowMs();
  const manager = new Manager({
    ...{ client: cluster, chosen, options, rootCa: 'PEM', random, monotonicMs, log },
  });
  manager.start();
  return manager;
}

/** What goes wrong; nothing on a quiet day. */
class Troubles {
  readonly #random: Random;
  readonly #cluster: ClusterSimulation;
  #manager: Manager;
  #storm: Fault = 'none';

  constructor(cluster: ClusterSimulation, random: Random) {
    this.#cluster = cluster;
    this.#random = random;
    this.#manager = newManager(cluster, random);
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
      default:
    }
  }

  restartManager(): void {
    this.#manager.stop();
    this.#manager = newManager(this.#cluster, this.#random);
  }

  end(): void {
    this.#storm = 'none';
    this.#cluster.faultOf = () => 'none';
  }

  stop(): void {
    this.#manager.stop();
  }
}

async function list(cluster: ClusterSimulation, path: string): Promise<JsonObject[]> {
  const answer = await Promise.all([cluster.ask('GET', path), cluster.settle()]);
  const [{ ok }] = answer;
  assert(ok, path);
  const [found] = answer;
  return found.ok ? (listAt(found.object, 'items') as JsonObject[]) : [];
}

const nameOf = (object: JsonValue | undefined): string =>
  `${stringAt(object, 'metadata', 'namespace')}/${stringAt(object, 'metadata', 'name')}`;

function controllerOf(object: JsonObject): string {
  const owner = listAt(object, 'metadata', 'ownerReferences').find(
    (one) => objectAt({ one }, 'one')?.['controller'] === true,
  );
  return stringAt(owner, 'uid');
}

/** What is there, told so that it does not depend on names and times. */
async function summaryOf(cluster: ClusterSimulation): Promise<readonly string[]> {
  const pods = await list(cluster, '/api/v1/pods');
  const sets = await list(cluster, pathOf({ ...KINDS.deployment, resource: 'replicasets' }, ''));
  const lines: string[] = [];
  const ofOwner = (uid: string): string => {
    const own = pods.filter((pod) => controllerOf(pod) === uid);
    const isReady = (pod: JsonObject): boolean =>
      listAt(pod, 'status', 'conditions').some(
        (one) => stringAt(one, 'type') === 'Ready' && stringAt(one, 'status') === 'True',
      );
    return `${own.filter(isReady).length}/${own.length} pods`;
  };
  for (const deployment of await list(cluster, pathOf(KINDS.deployment, ''))) {
    const uid = stringAt(deployment, 'metadata', 'uid');
    const wanted = numberAt(deployment, 'spec', 'replicas');
    const active = sets.filter(
      (set) => controllerOf(set) === uid && numberAt(set, 'spec', 'replicas') > 0,
    );
    const image = listAt(deployment, 'spec', 'template', 'spec', 'containers')[0];
    const shown = active.map((set) => ofOwner(stringAt(set, 'metadata', 'uid'))).join(', ');
    lines.push(`deployment ${nameOf(deployment)} ${stringAt(image, 'image')} ${wanted}: ${shown}`);
  }
  for (const kind of [KINDS.stateful, KINDS.daemon]) {
    for (const one of await list(cluster, pathOf(kind, ''))) {
      const wanted = numberAt(one, 'spec', 'replicas');
      const shown = ofOwner(stringAt(one, 'metadata', 'uid'));
      lines.push(`${kind.kind} ${nameOf(one)} ${wanted}: ${shown}`);
    }
  }
  for (const budget of await list(cluster, pathOf(KINDS.budget, ''))) {
    const [healthy, allowed] = ['currentHealthy', 'disruptionsAllowed'].map((one) =>
      numberAt(budget, 'status', one),
    );
    lines.push(`budget ${nameOf(budget)}: ${healthy} healthy, ${allowed} may go`);
  }
  for (const kind of [KINDS.job, KINDS.map, KINDS.service]) {
    for (const one of await list(cluster, pathOf(kind, '')))
      lines.push(`${kind.kind} ${nameOf(one)}`);
  }
  for (const namespace of await list(cluster, '/api/v1/namespaces')) {
    lines.push(`namespace ${nameOf(namespace)} ${stringAt(namespace, 'status', 'phase')}`);
  }
  return lines.toSorted();
}

/** What must hold at rest, whatever happened. */
async function assertAtRest(cluster: ClusterSimulation, fleet: SimulatedFleet): Promise<void> {
  const pods = await list(cluster, '/api/v1/pods');
  const nodes = await list(cluster, '/api/v1/nodes');
  const owners = new Set<string>();
  for (const kind of [KINDS.deployment, KINDS.stateful, KINDS.daemon, KINDS.job, KINDS.map]) {
    for (const one of await list(cluster, pathOf(kind, ''))) owners.add(uidOf(one));
  }
  const sets = await list(cluster, pathOf({ ...KINDS.deployment, resource: 'replicasets' }, ''));
  for (const set of sets) owners.add(uidOf(set));
  for (const one of [...pods, ...sets]) {
    assert(owners.has(controllerOf(one)), `${nameOf(one)} is an orphan: ${JSON.stringify(one)}`);
  }
  for (const pod of pods) {
    const node = stringAt(pod, 'spec', 'nodeName');
    assert(fleet.nodes.has(node), `${nameOf(pod)} is on "${node}", which is not there`);
    assert.equal(stringAt(pod, 'metadata', 'deletionTimestamp'), '', `${nameOf(pod)} never goes`);
  }
  assert.equal(nodes.length, fleet.nodes.size);
  for (const node of nodes) {
    assert.deepEqual(listAt(node, 'spec', 'taints'), [], `${nameOf(node)} has taints`);
  }
  for (const set of sets) {
    const wanted = numberAt(set, 'spec', 'replicas');
    const own = pods.filter((pod) => controllerOf(pod) === uidOf(set));
    const isHeld = nameOf(set).startsWith('passing-');
    const most = isHeld ? Math.min(wanted, QUOTA_PODS) : wanted;
    assert.equal(own.length, most, `${nameOf(set)} has ${own.length}`);
  }
  for (const map of await list(cluster, pathOf(KINDS.map, ''))) {
    assert.equal(listAt(map, 'metadata', 'ownerReferences').length, 0, `${nameOf(map)} is left`);
  }
}

function uidOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'uid');
}

/** Counts what controllers ask of each path in each minute; tells the most. */
class Meter {
  readonly #counts: Map<string, number> = new Map();
  #minute = 0;
  most: readonly [count: number, what: string] = [0, ''];

  count({ method, path }: ClientRequest, nowMs: number): void {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) this.#counts.clear();
    this.#minute = minute;
    // Collections are not objects: what is made there has no name yet.
    if (method === 'POST' || method === 'GET') return;
    const what = `${method} ${path.split('?')[0]}`;
    const count = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, count);
    if (count > this.most[0]) this.most = [count, what];
  }
}

/** Lives through the deeds of a seed, with troubles or without. */
async function live(seed: number, isQuiet: boolean): Promise<readonly string[]> {
  const cluster = new ClusterSimulation(seed);
  const meter = new Meter();
  cluster.heard = (request) => meter.count(request, cluster.timers.nowMs());
  const fleet = new SimulatedFleet(cluster, new Random(seed).fork('fleet'), RENEW_MS);
  const users = new SimulatedUsers(cluster, fleet, new Random(seed).fork('users'));
  const during = async (deed: Promise<void>): Promise<void> => {
    let isDone = false;
    void deed.finally(() => (isDone = true));
    while (!isDone) await cluster.settle();
    await deed;
  };
  const troubles = new Troubles(cluster, new Random(seed).fork('troubles'));
  await during(users.begin(NODES));
  await cluster.advance(60_000);
  if (!isQuiet) troubles.begin();
  for (let i = 0; i < DEEDS; i++) {
    if (!isQuiet) troubles.step();
    await during(users.act());
    await cluster.advance(DEED_MS);
  }
  troubles.end();
  users.end();
  await cluster.advance(REST_MS);
  await assertAtRest(cluster, fleet);
  const summary = await summaryOf(cluster);
  const before = meter.most;
  assert(before[0] <= REQUESTS_PER_MINUTE_MAX, `${before[0]} in a minute: ${before[1]}`);
  troubles.stop();
  return summary;
}

test('a cluster lives through a rough day as through a quiet one', async () => {
  const quiet = await live(SEED, true);
  const rough = await live(SEED, false);
  assert.deepEqual(rough, quiet, `seed ${SEED}`);
});
