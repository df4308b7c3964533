/** The checks of the certification, by area. Each says what a provider must do. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CapacityType, MachineState as State } from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';
import type { Bench, Check } from './certify-bench.ts';

const METADATA = { 'bigfleet.lucy.sh/assigned-priority': '7', 'x/unknown ': 'ä\n' };
const GARBAGE = new Uint8Array([1, 2, 3, 255]);
const NOT_FOUND = GRPC_CODES.notFound;
const INVALID = GRPC_CODES.invalidArgument;
const FENCED = GRPC_CODES.failedPrecondition;

async function code(bench: Bench, call: Promise<unknown>, expected: number): Promise<void> {
  const found = await bench.refused(call);
  bench.holds(found === expected, `code ${found}, not ${expected}`);
}

function sortedText(metadata: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function shapeFault(machine: Machine): string {
  const { state, pricePerHour: price, interruptionProbability: share } = machine;
  const isUnmade = state === State.SPECULATIVE || state === State.CREATING;
  const isBound = state === State.CONFIGURED || state === State.DRAINING;
  const hasHost = machine.host !== undefined && machine.host.ref !== '';
  if (machine.id === '') return 'it has no id';
  if (state === State.UNSPECIFIED) return 'it has no state';
  if (isUnmade && hasHost) return 'it has a host before it is made';
  if (!isUnmade && state !== State.FAILED && !hasHost) return 'it has no host';
  if (isUnmade && machine.cluster !== '') return 'it has a cluster before it is made';
  if (isBound && machine.cluster === '') return 'it is bound to no cluster';
  if (!(price >= 0 && price < Infinity)) return `its price is ${price}`;
  if (!(share >= 0 && share <= 1)) return `its interruption probability is ${share}`;
  if (machine.capacityType === CapacityType.SPOT && share === 0) return 'spot is never interrupted';
  if (state === State.FAILED && machine.lastError === '') return 'it failed for no reason';
  return '';
}

export const CHECKS: readonly Check[] = [
  {
    area: 'lifecycle',
    name: 'a machine is made, bound, released, and bears its id all the time',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.speculative();
      const ack = await bench.create(id);
      bench.holds(ack.operationId !== '', 'the answer has no operation');
      bench.holds(ack.machine?.id === id, 'the answer shows another machine');
      const idle = await bench.reaches(id, State.IDLE);
      bench.holds(shapeFault(idle) === '', shapeFault(idle));
      await bench.configure(id);
      await bench.reaches(id, State.CONFIGURED);
      await bench.released(id);
      await bench.delete(id);
      const gone = await bench.reaches(id, State.SPECULATIVE);
      bench.holds(shapeFault(gone) === '', shapeFault(gone));
    },
  },
  {
    area: 'lifecycle',
    name: 'a machine that cannot be given back says that Delete is unimplemented',
    profiles: ['bare-metal'],
    run: async (bench) => {
      const { id } = await bench.idle();
      await code(bench, bench.delete(id), GRPC_CODES.unimplemented);
      await bench.reaches(id, State.IDLE);
    },
  },
  {
    area: 'transitions',
    name: 'a configured machine is neither made nor deleted nor bound elsewhere',
    run: async (bench) => {
      const { id } = await bench.configured();
      await bench.refusedUnfenced(bench.create(id));
      await bench.refusedUnfenced(bench.delete(id));
      await bench.refusedUnfenced(bench.configure(id, { clusterId: 'another' }));
      const machine = await bench.get(id);
      const isSame = machine.state === State.CONFIGURED && machine.cluster === 'certify';
      bench.holds(isSame, 'a call that was refused has changed it');
      await bench.released(id);
    },
  },
  {
    area: 'transitions',
    name: 'a speculative machine is neither configured nor drained',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.speculative();
      await bench.refusedUnfenced(bench.configure(id));
      await bench.refusedUnfenced(bench.drain(id));
      await bench.reaches(id, State.SPECULATIVE);
    },
  },
  {
    area: 'arguments',
    name: 'unknown machines are not found, and empty ids and negative numbers are invalid',
    run: async (bench) => {
      const nobody = 'there is no such machine';
      await code(bench, bench.get(nobody), NOT_FOUND);
      await code(bench, bench.create(nobody), NOT_FOUND);
      await code(bench, bench.drain(nobody), NOT_FOUND);
      await code(bench, bench.get(''), INVALID);
      await code(bench, bench.create(''), INVALID);
      await code(bench, bench.configure(''), INVALID);
      const { id } = await bench.idle();
      await code(bench, bench.drain(id, -1n), INVALID);
      await code(bench, bench.create(id, { ...bench.token(), shardEpoch: -1n }), INVALID);
    },
  },
  {
    area: 'fencing',
    name: 'a token that is not newer is refused, and nothing is done',
    run: async (bench) => {
      const { id } = await bench.idle();
      const old = bench.token();
      await bench.create(id);
      await code(bench, bench.configure(id, old), FENCED);
      await code(bench, bench.create(id, old), FENCED);
      await bench.reaches(id, State.IDLE);
    },
  },
  {
    area: 'fencing',
    name: 'a token counts also where the call is refused for another reason',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.configure(id);
      await bench.reaches(id, State.CONFIGURED);
      const token = bench.token();
      await bench.refusedUnfenced(bench.configure(id, { clusterId: 'another', ...token }));
      await code(bench, bench.configure(id, { clusterId: 'another', ...token }), FENCED);
      await bench.released(id);
    },
  },
  {
    area: 'fencing',
    name: 'a new epoch begins sequences anew, and the old epoch is over',
    run: async (bench) => {
      const { id } = await bench.idle();
      const before = bench.token();
      await bench.create(id, before);
      bench.epoch++;
      await bench.create(id, { ...bench.token(), sequenceNumber: 0n });
      const late = { ...before, sequenceNumber: before.sequenceNumber + 1000n };
      await code(bench, bench.create(id, late), FENCED);
    },
  },
  {
    area: 'fencing',
    name: 'tokens count for one shard and one machine',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.create(id);
      const other = { shardId: `${bench.options.shard}-b`, shardEpoch: 1n, sequenceNumber: 1n };
      await bench.create(id, other);
      await bench.create(id);
      const nobody = { shardId: '', shardEpoch: 0n, sequenceNumber: 0n };
      await bench.create(id, nobody);
      await bench.create(id, nobody);
    },
  },
  {
    area: 'idempotence',
    name: 'a call for what is under way or done is the same operation; a later one is another',
    run: async (bench) => {
      const { id } = await bench.idle();
      const first = await bench.configure(id);
      const again = await bench.configure(id);
      bench.holds(first.operationId === again.operationId, 'two operations under way');
      await bench.reaches(id, State.CONFIGURED);
      const done = await bench.configure(id);
      bench.holds(first.operationId === done.operationId, 'what is done was done again');
      await bench.released(id);
      const later = await bench.configure(id);
      bench.holds(first.operationId !== later.operationId, 'a later operation has an old id');
      await bench.reaches(id, State.CONFIGURED);
      await bench.released(id);
    },
  },
  {
    area: 'idempotence',
    name: 'of many calls at once for one target all are one operation',
    run: async (bench) => {
      const { id } = await bench.idle();
      const nobody = { shardId: '', shardEpoch: 0n, sequenceNumber: 0n };
      const calls = Array.from({ length: 20 }, () => bench.configure(id, nobody));
      const ids = new Set((await Promise.all(calls)).map(({ operationId }) => operationId));
      bench.holds(ids.size === 1, `${ids.size} operations`);
      await bench.reaches(id, State.CONFIGURED);
      await bench.released(id);
    },
  },
  {
    area: 'metadata',
    name: 'cluster and metadata come back byte for byte, and go together when a drain ends',
    run: async (bench) => {
      const { id } = await bench.idle();
      const ack = await bench.configure(id, { shardMetadata: METADATA });
      bench.holds(ack.machine?.cluster === 'certify', 'no cluster while it is configured');
      const machine = await bench.reaches(id, State.CONFIGURED);
      const kept = sortedText(machine.shardMetadata);
      const given = sortedText(METADATA);
      bench.holds(kept === given, `metadata came back as ${kept}`);
      const idle = await bench.released(id);
      const isCleared = idle.cluster === '' && Object.keys(idle.shardMetadata).length === 0;
      bench.holds(isCleared, 'the binding outlives the drain');
    },
  },
  {
    area: 'shape',
    name: 'each machine has the fields of its state, and a price and a probability that are ones',
    run: async (bench) => {
      const { machines } = await bench.list();
      const ids = new Set(machines.map(({ id }) => id));
      bench.holds(ids.size === machines.length, 'two machines have one id');
      for (const machine of machines) {
        const fault = shapeFault(machine);
        bench.holds(fault === '', `${machine.id}: ${fault}`);
      }
    },
  },
  {
    area: 'list',
    name: 'a filter by states shows exactly those, and a limit is kept',
    run: async (bench) => {
      const all = (await bench.list()).machines;
      const states = [State.IDLE, State.SPECULATIVE];
      const some = (await bench.list({ states })).machines;
      const expected = all.filter(({ state }) => states.includes(state as 1));
      bench.holds(some.length === expected.length, `${some.length}, not ${expected.length}`);
      const one = (await bench.list({ maxResults: 1 })).machines;
      bench.holds(one.length === Math.min(1, all.length), `${one.length} machines, not 1`);
    },
  },
  {
    area: 'list',
    name: 'a cursor shows what changed since; time alone changes no cursor; garbage shows all',
    run: async (bench) => {
      const { id } = await bench.idle();
      const whole = await bench.list();
      const garbage = await bench.list({ sinceRevision: GARBAGE });
      bench.holds(garbage.machines.length === whole.machines.length, 'garbage hides machines');
      if (whole.revision.length === 0) return;
      await bench.options.sleep(100);
      const later = await bench.list();
      const isSame = Buffer.compare(later.revision, whole.revision) === 0;
      bench.holds(isSame, 'the cursor moved while nothing happened');
      await bench.configure(id);
      await bench.reaches(id, State.CONFIGURED);
      const changes = await bench.list({ sinceRevision: whole.revision });
      bench.holds(
        changes.machines.some((machine) => machine.id === id),
        'a change is not shown',
      );
      const hasMoved = Buffer.compare(changes.revision, whole.revision) !== 0;
      bench.holds(hasMoved, 'the cursor stayed where it was');
      await bench.released(id);
    },
  },
];
