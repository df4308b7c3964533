/** Certification, B7xx, B10xx, B11xx: lanes of their own, for which a provider must be prepared. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { MachineState as State } from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';
import type { Bench, Check } from './certify-bench.ts';
import { pages } from './certify-records.ts';
import {
  costFault,
  Incomplete,
  isCleared,
  isStable,
  METADATA,
  shapeFault,
  sortedText,
} from './certify-words.ts';

const FENCED = GRPC_CODES.failedPrecondition;
const SCALE_MIN = 10_000;
const TRIES_MAX = 200;
const BATCH = 100;
const SOAK_ROUNDS = 50;

/** Tries transitions of a kind until one fails; the machine that failed, at rest. */
async function failing(bench: Bench, begin: (bench: Bench) => Promise<string>): Promise<Machine> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const machine = await bench.settled(await begin(bench));
    if (machine.state === State.FAILED) return machine;
    if (machine.state === State.CONFIGURED) await bench.drain(machine.id);
  }
  throw new Incomplete(`of ${TRIES_MAX} transitions none failed: prepare the provider for it`);
}

async function configuring(bench: Bench): Promise<string> {
  const [idle] = (await bench.list({ states: [State.IDLE], maxResults: 1 })).machines;
  const machine = idle ?? (await bench.settled(await creating(bench)));
  if (machine.state === State.IDLE) await bench.configure(machine.id);
  return machine.id;
}

async function creating(bench: Bench): Promise<string> {
  const { id } = await bench.speculative();
  await bench.create(id);
  return id;
}

async function draining(bench: Bench): Promise<string> {
  const [bound] = (await bench.list({ states: [State.CONFIGURED], maxResults: 1 })).machines;
  const machine = bound ?? (await bench.settled(await configuring(bench)));
  if (machine.state === State.CONFIGURED) await bench.drain(machine.id, 0n);
  return machine.id;
}

function isFailure({ state, lastError }: Machine): boolean {
  return state === State.FAILED && lastError !== '';
}

const fault = (id: string, name: string, run: (bench: Bench) => Promise<void>): Check => ({
  id,
  area: 'failures',
  name,
  profiles: ['fault'],
  run,
});

export const FAULT_CHECKS: readonly Check[] = [
  fault('B701', 'a Configure that fails leaves a failed machine with a reason', async (bench) => {
    bench.holds(isFailure(await failing(bench, configuring)), 'there is no reason');
  }),
  fault('B702', 'a Create that fails leaves a failed machine with a reason', async (bench) => {
    bench.holds(isFailure(await failing(bench, creating)), 'there is no reason');
  }),
  fault('B703', 'a transition that takes too long fails, and says so', async (bench) => {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const machine = await failing(bench, configuring);
      if (/tim(e|ed)[ -]?out|deadline|too long/i.test(machine.lastError)) return;
    }
    throw new Incomplete('none took too long: prepare the provider for it');
  }),
  fault('B704', 'what has failed stays failed, whatever ends later', async (bench) => {
    const { id } = await failing(bench, configuring);
    for (let look = 0; look < 20; look++) {
      await bench.options.sleep(50);
      bench.holds((await bench.get(id)).state === State.FAILED, 'it came back');
    }
  }),
  fault(
    'B705',
    'a failed machine is refused, not as fenced, or comes back whole',
    async (bench) => {
      const { id } = await failing(bench, configuring);
      const code = await bench.outcome(bench.configure(id));
      bench.holds(code !== FENCED, 'the code says that it was fenced');
      const machine = await bench.settled(id);
      const isWell = machine.state !== State.FAILED && machine.lastError === '';
      bench.holds(isFailure(machine) || isWell, 'it is neither failed nor well');
    },
  ),
  fault('B706', 'a Drain without grace ends Idle or failed with a reason', async (bench) => {
    for (let tries = 0; tries < 10; tries++) {
      const machine = await bench.settled(await draining(bench));
      const isIdle = machine.state === State.IDLE && isCleared(machine);
      bench.holds(isIdle || isFailure(machine), `it ended in state ${machine.state}`);
    }
  }),
  fault('B707', 'a failed machine is still shown, with its reason', async (bench) => {
    const { id, lastError } = await failing(bench, configuring);
    const { machines } = await bench.list({ states: [State.FAILED] });
    const listed = machines.find((machine) => machine.id === id);
    bench.holds(listed?.lastError === lastError, 'List shows another reason');
    bench.holds((await bench.get(id)).lastError === lastError, 'Get shows another reason');
  }),
];

async function restarted(bench: Bench): Promise<void> {
  const { restart } = bench.options;
  if (restart === undefined) throw new Incomplete('nobody says how the provider is restarted');
  await restart();
}

const durable = (id: string, name: string, run: (bench: Bench) => Promise<void>): Check => ({
  id,
  area: 'restart',
  name,
  profiles: ['durable'],
  run,
});

export const DURABLE_CHECKS: readonly Check[] = [
  durable('B1001', 'tokens count over a restart', async (bench) => {
    const { id } = await bench.idle();
    const token = bench.token();
    await bench.create(id, token);
    await restarted(bench);
    await bench.refusedAs(bench.create(id, token), FENCED);
  }),
  durable(
    'B1002',
    'what was done before a restart is the same operation after it',
    async (bench) => {
      const { id } = await bench.idle();
      const { operationId } = await bench.configure(id);
      await bench.reaches(id, State.CONFIGURED);
      await restarted(bench);
      const again = await bench.configure(id);
      bench.holds(again.operationId === operationId, 'it is another operation');
      await bench.released(id);
    },
  ),
  durable('B1003', 'cluster and metadata are kept over a restart', async (bench) => {
    const { id } = await bench.idle();
    await bench.configure(id, { shardMetadata: METADATA });
    await bench.reaches(id, State.CONFIGURED);
    await restarted(bench);
    const machine = await bench.get(id);
    bench.holds(machine.cluster === 'certify', 'the cluster is lost');
    bench.holds(sortedText(machine.shardMetadata) === sortedText(METADATA), 'metadata are lost');
    await bench.released(id);
  }),
  durable('B1004', 'all machines are there after a restart, in their states', async (bench) => {
    await bench.idle();
    const shown = async (): Promise<string> =>
      (await bench.list()).machines
        .map(({ id, state }) => `${id} ${state}`)
        .toSorted()
        .join();
    const before = await shown();
    await restarted(bench);
    bench.holds((await shown()) === before, 'machines are others');
  }),
  durable('B1005', 'cursors and operations after a restart are new ones', async (bench) => {
    const { id } = await bench.idle();
    const before = await bench.configure(id);
    await bench.reaches(id, State.CONFIGURED);
    await restarted(bench);
    const { revision } = await bench.list();
    await bench.list({ sinceRevision: Uint8Array.from(revision) });
    const after = await bench.drain(id);
    bench.holds(after.operationId !== before.operationId, 'an operation has an old id');
    await bench.reaches(id, State.IDLE);
  }),
  durable(
    'B1006',
    'a transition that a restart broke off ends one way or another',
    async (bench) => {
      const { id } = await bench.idle();
      await bench.configure(id);
      await restarted(bench);
      const machine = await bench.settled(id);
      bench.holds(isStable(machine.state) || isFailure(machine), `state ${machine.state}`);
      if (machine.state === State.CONFIGURED) await bench.released(id);
    },
  ),
  durable(
    'B1007',
    'a shard that was not heard before a restart is heard after it',
    async (bench) => {
      const { id } = await bench.idle();
      await bench.create(id);
      await restarted(bench);
      const shardId = bench.anotherShard();
      await bench.create(id, { shardId, shardEpoch: 1n, sequenceNumber: 0n });
    },
  ),
];

async function whole(bench: Bench): Promise<Machine[]> {
  const { machines } = await bench.list();
  if (machines.length >= SCALE_MIN) return machines;
  throw new Incomplete(`${machines.length} machines: ${SCALE_MIN} are needed`);
}

const scale = (id: string, name: string, run: (bench: Bench) => Promise<void>): Check => ({
  id,
  area: 'scale',
  name,
  profiles: ['scale'],
  run,
});

/** Binds a batch and releases it; answers what was seen on the way. */
async function churn(bench: Bench, size: number): Promise<Set<string>> {
  const machines = await bench.several(size);
  const acks = await Promise.all(machines.map(({ id }) => bench.configure(id)));
  const ids = new Set(acks.map(({ operationId }) => operationId));
  bench.holds(ids.size === size, `${ids.size} operations of ${size}`);
  for (const { id } of machines) await bench.reaches(id, State.CONFIGURED);
  for (const { id } of machines) await bench.drain(id);
  for (const { id } of machines) {
    const idle = await bench.reaches(id, State.IDLE);
    bench.holds(isCleared(idle), `${id} keeps its binding`);
  }
  return new Set(machines.map(({ id }) => id));
}

export const SCALE_CHECKS: readonly Check[] = [
  scale(
    'B1101',
    'a List of ten thousand and more is whole, and each record is one',
    async (bench) => {
      for (const machine of await whole(bench)) {
        const wrong = shapeFault(machine) || costFault(machine);
        bench.holds(wrong === '', `${machine.id}: ${wrong}`);
      }
    },
  ),
  scale('B1102', 'a cursor shows exactly what changed since', async (bench) => {
    await whole(bench);
    await bench.several(BATCH);
    const { revision } = await bench.list();
    if (revision.length === 0) return;
    const changed = await churn(bench, BATCH);
    const shown = await bench.list({ sinceRevision: Uint8Array.from(revision) });
    const ids = new Set(shown.machines.map(({ id }) => id));
    bench.holds(ids.size === changed.size, `${ids.size} machines of ${changed.size}`);
    bench.holds(
      [...changed].every((id) => ids.has(id)),
      'others are shown',
    );
  }),
  scale('B1103', 'pages show each machine once', async (bench) => {
    const all = await whole(bench);
    const found = await pages(bench, 997);
    bench.holds(new Set(found).size === found.length, 'a machine is shown twice');
    bench.holds(found.length === all.length, `${found.length} machines of ${all.length}`);
  }),
  scale('B1104', 'many rounds leave nothing behind', async (bench) => {
    await whole(bench);
    for (let round = 0; round < SOAK_ROUNDS; round++) await churn(bench, 5);
  }),
  scale('B1105', 'no machine is lost, and none appears', async (bench) => {
    const before = (await whole(bench)).map(({ id }) => id).sort();
    await churn(bench, BATCH);
    const after = (await bench.list()).machines.map(({ id }) => id).sort();
    bench.holds(before.join() === after.join(), 'machines are others');
  }),
  scale('B1106', 'calls are answered within their deadlines', async (bench) => {
    // a call that takes longer than its deadline has failed
    const all = await whole(bench);
    for (const { id } of all.slice(0, BATCH)) await bench.get(id);
    await bench.list();
  }),
  scale('B1107', 'a whole List is answered within its deadline, again and again', async (bench) => {
    await whole(bench);
    for (let round = 0; round < 5; round++) await bench.list();
  }),
  scale('B1108', 'a hundred transitions at once are a hundred operations', async (bench) => {
    await whole(bench);
    await churn(bench, BATCH);
  }),
  scale('B1109', 'machines at rest stay at rest', async (bench) => {
    const at = new Map((await whole(bench)).map(({ id, state }) => [id, state]));
    await bench.options.sleep(1000);
    for (const { id, state } of await whole(bench)) {
      bench.holds(at.get(id) === state || state !== State.FAILED, `${id} failed by itself`);
    }
  }),
];
