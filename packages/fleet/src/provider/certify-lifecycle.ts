/** Certification, B1xx and B2xx: the life of a machine, and what is refused on the way. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { MachineState as State } from '../contract/tables/provider.ts';
import type { Bench, Check } from './certify-bench.ts';
import { isCleared, isStable, METADATA } from './certify-words.ts';

const NOBODY = 'there is no such machine';
const { notFound: NOT_FOUND, invalidArgument: INVALID, unimplemented } = GRPC_CODES;
const INT64_MAX = 2n ** 63n - 1n;
const OVERSIZE_BYTES: number = 8 * 1024 * 1024;

/** Sees each state on the way; `through` is the only one between. */
async function passes(bench: Bench, id: string, through: State, to: State): Promise<void> {
  const seen = await bench.trace(id, to);
  const wrong = seen.find((state) => !isStable(state) && state !== through);
  bench.holds(wrong === undefined, `on its way it was in state ${wrong}`);
}

/** A call may be taken or refused as invalid; a refusal leaves everything as it was. */
async function takenOrInvalid(bench: Bench, id: string, call: Promise<unknown>): Promise<boolean> {
  const code = await bench.outcome(call);
  bench.holds(code === 0 || code === INVALID, `code ${code}`);
  if (code === 0) {
    await bench.reaches(id, State.CONFIGURED);
    return true;
  }
  const machine = await bench.get(id);
  bench.holds(machine.state === State.IDLE && isCleared(machine), 'a refusal changed the machine');
  return false;
}

export const LIFECYCLE_CHECKS: readonly Check[] = [
  {
    id: 'B101',
    area: 'lifecycle',
    name: 'four rounds of binding and releasing leave nothing behind',
    run: async (bench) => {
      const { id } = await bench.idle();
      for (let round = 0; round < 4; round++) {
        await bench.configure(id, { shardMetadata: METADATA });
        await bench.reaches(id, State.CONFIGURED);
        const idle = await bench.released(id);
        bench.holds(isCleared(idle) && idle.lastError === '', `round ${round + 1} left something`);
      }
    },
  },
  {
    id: 'B103',
    area: 'lifecycle',
    name: 'a machine that is configured is Configuring until it is Configured',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.configure(id);
      await passes(bench, id, State.CONFIGURING, State.CONFIGURED);
      await bench.released(id);
    },
  },
  {
    id: 'B104',
    area: 'lifecycle',
    name: 'a machine that drains is Draining until it is Idle',
    run: async (bench) => {
      const { id } = await bench.configured();
      await bench.drain(id);
      await passes(bench, id, State.DRAINING, State.IDLE);
    },
  },
  {
    id: 'B105',
    area: 'lifecycle',
    name: 'states follow each other by legal edges only',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.configure(id);
      const joined = await bench.trace(id, State.CONFIGURED);
      await bench.drain(id);
      const left = await bench.trace(id, State.IDLE);
      const seen = [State.IDLE, ...joined, ...left];
      const order: readonly State[] = [
        ...[State.IDLE, State.CONFIGURING, State.CONFIGURED, State.DRAINING, State.IDLE],
      ];
      let at = 0;
      for (const state of seen) {
        const next = order.indexOf(state, at);
        bench.holds(next >= 0, `state ${state} out of order`);
        at = next;
      }
    },
  },
  {
    id: 'B106',
    area: 'lifecycle',
    name: 'a machine names its cluster while it is bound, and none afterwards',
    run: async (bench) => {
      const { id } = await bench.idle();
      const ack = await bench.configure(id);
      bench.holds(ack.machine?.cluster === 'certify', 'no cluster while it is configured');
      const bound = await bench.reaches(id, State.CONFIGURED);
      bench.holds(bound.cluster === 'certify', 'no cluster once it is configured');
      bench.holds((await bench.released(id)).cluster === '', 'a cluster after the drain');
    },
  },
  {
    id: 'B107',
    area: 'lifecycle',
    name: 'a machine at rest has a host from Idle on, and none while Speculative',
    run: async (bench) => {
      const idle = await bench.idle();
      bench.holds(idle.host !== undefined, 'no host while idle');
      await bench.configure(idle.id);
      const bound = await bench.reaches(idle.id, State.CONFIGURED);
      bench.holds(bound.host !== undefined, 'no host while configured');
      await bench.released(idle.id);
      const { machines } = await bench.list({ states: [State.SPECULATIVE] });
      bench.holds(
        machines.every(({ host }) => host === undefined),
        'a slot has a host',
      );
    },
  },
  {
    id: 'B108',
    area: 'lifecycle',
    name: 'a machine at rest stays at rest',
    run: async (bench) => {
      const { id } = await bench.configured();
      for (let look = 0; look < 10; look++) {
        await bench.options.sleep(20);
        const { state } = await bench.get(id);
        bench.holds(state === State.CONFIGURED, `it went to state ${state} by itself`);
      }
      await bench.released(id);
    },
  },
  {
    id: 'B109',
    area: 'lifecycle',
    name: 'a machine that is deleted is Deleting until it is Speculative',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.delete(id);
      await passes(bench, id, State.DELETING, State.SPECULATIVE);
    },
  },
];

export const TRANSITION_CHECKS: readonly Check[] = [
  {
    id: 'B201',
    area: 'transitions',
    name: 'a configured machine is not made, nor bound to another cluster',
    run: async (bench) => {
      const { id } = await bench.configured();
      await bench.refusedUnfenced(bench.create(id));
      await bench.refusedUnfenced(bench.configure(id, { clusterId: 'another' }));
      const machine = await bench.get(id);
      const isSame = machine.state === State.CONFIGURED && machine.cluster === 'certify';
      bench.holds(isSame, 'a call that was refused has changed it');
      await bench.released(id);
    },
  },
  {
    id: 'B202',
    area: 'transitions',
    name: 'a speculative machine is not configured',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.speculative();
      await bench.refusedUnfenced(bench.configure(id));
      await bench.reaches(id, State.SPECULATIVE);
    },
  },
  {
    id: 'B203',
    area: 'transitions',
    name: 'a drain of an idle machine changes nothing, and is not said to be fenced',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.unfenced(bench.drain(id));
      const { state } = await bench.get(id);
      bench.holds(state === State.IDLE, `it went to state ${state}`);
    },
  },
  {
    id: 'B204',
    area: 'transitions',
    name: 'a Delete out of place changes nothing, and is not said to be fenced',
    run: async (bench) => {
      const { id } = await bench.configured();
      await bench.refusedUnfenced(bench.delete(id));
      bench.holds((await bench.get(id)).state === State.CONFIGURED, 'it went');
      await bench.released(id);
      const { machines } = await bench.list({ states: [State.SPECULATIVE], maxResults: 1 });
      const [slot] = machines;
      if (slot === undefined) return;
      await bench.unfenced(bench.delete(slot.id));
      await bench.reaches(slot.id, State.SPECULATIVE);
    },
  },
  {
    id: 'B205',
    area: 'transitions',
    name: 'asked for what is so already, a provider says yes and does nothing',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.create(id);
      bench.holds((await bench.get(id)).state === State.IDLE, 'a second Create changed it');
      await bench.configure(id);
      await bench.reaches(id, State.CONFIGURED);
      await bench.configure(id);
      bench.holds((await bench.get(id)).state === State.CONFIGURED, 'a second Configure did');
      await bench.released(id);
    },
  },
  {
    id: 'B206',
    area: 'transitions',
    name: 'what is done already is the same operation',
    run: async (bench) => {
      const { id } = await bench.idle();
      const first = await bench.configure(id);
      bench.holds(first.operationId !== '', 'the answer has no operation');
      await bench.reaches(id, State.CONFIGURED);
      const again = await bench.configure(id);
      bench.holds(again.operationId === first.operationId, 'two operations');
      await bench.released(id);
    },
  },
  {
    id: 'B207',
    area: 'transitions',
    name: 'machines that are unknown are not found, and are not made',
    run: async (bench) => {
      await bench.refusedAs(bench.create(NOBODY), NOT_FOUND);
      await bench.refusedAs(bench.configure(NOBODY), NOT_FOUND);
      await bench.refusedAs(bench.drain(NOBODY), NOT_FOUND);
      await bench.refusedAs(bench.get(NOBODY), NOT_FOUND);
    },
  },
  {
    id: 'B208',
    area: 'transitions',
    name: 'an empty id is invalid',
    run: async (bench) => {
      for (const call of [
        () => bench.get(''),
        () => bench.create(''),
        () => bench.configure(''),
        () => bench.drain(''),
      ]) {
        await bench.refusedAs(call(), INVALID);
      }
    },
  },
  {
    id: 'B209',
    area: 'transitions',
    name: 'metadata that are too much are kept whole, or refused without any effect',
    run: async (bench) => {
      const { id } = await bench.idle();
      const keys = Array.from({ length: 5000 }, (_, at) => [`k${at}`, 'v'.repeat(100)]);
      const shardMetadata = Object.fromEntries(keys) as Record<string, string>;
      if (!(await takenOrInvalid(bench, id, bench.configure(id, { shardMetadata })))) return;
      const kept = Object.keys((await bench.get(id)).shardMetadata).length;
      bench.holds(kept === keys.length, `${kept} keys of ${keys.length}`);
      await bench.released(id);
    },
  },
  {
    id: 'B210',
    area: 'transitions',
    name: 'a negative grace is invalid, and drains nothing',
    run: async (bench) => {
      const { id } = await bench.configured();
      await bench.refusedAs(bench.drain(id, -1n), INVALID);
      bench.holds((await bench.get(id)).state === State.CONFIGURED, 'it drains');
      await bench.released(id);
    },
  },
  {
    id: 'B211',
    area: 'transitions',
    name: 'negative parts of a token are invalid',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.refusedAs(bench.create(id, { ...bench.token(), shardEpoch: -1n }), INVALID);
      await bench.refusedAs(bench.create(id, { ...bench.token(), sequenceNumber: -1n }), INVALID);
    },
  },
  {
    id: 'B212',
    area: 'transitions',
    name: 'the largest token there is counts as it is',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shardId = bench.anotherShard();
      const token = { shardId, shardEpoch: INT64_MAX, sequenceNumber: INT64_MAX };
      await bench.create(id, token);
      await bench.refusedAs(bench.create(id, token), GRPC_CODES.failedPrecondition);
      const older = { ...token, sequenceNumber: INT64_MAX - 1n };
      await bench.refusedAs(bench.create(id, older), GRPC_CODES.failedPrecondition);
    },
  },
  {
    id: 'B213',
    area: 'transitions',
    name: 'a blob that is too much is taken, or refused without any effect',
    run: async (bench) => {
      const { id } = await bench.idle();
      const bootstrapBlob = new Uint8Array(OVERSIZE_BYTES);
      const isTaken = await takenOrInvalid(bench, id, bench.configure(id, { bootstrapBlob }));
      if (isTaken) await bench.released(id);
    },
  },
  {
    id: 'B214',
    area: 'transitions',
    name: 'each new transition is a new operation',
    run: async (bench) => {
      const { id } = await bench.idle();
      const ids = new Set<string>();
      for (let round = 0; round < 2; round++) {
        ids.add((await bench.configure(id)).operationId);
        await bench.reaches(id, State.CONFIGURED);
        ids.add((await bench.drain(id)).operationId);
        await bench.reaches(id, State.IDLE);
      }
      bench.holds(ids.size === 4, `${ids.size} operations of 4`);
    },
  },
  {
    id: 'B215',
    area: 'transitions',
    name: 'a Delete of an unknown machine finds none, or is unimplemented',
    run: async (bench) => {
      const code = await bench.outcome(bench.delete(NOBODY));
      bench.holds(code === NOT_FOUND || code === unimplemented, `code ${code}`);
    },
  },
  {
    id: 'unimplemented',
    area: 'transitions',
    name: 'a machine that cannot be given back says that Delete is unimplemented',
    profiles: ['bare-metal'],
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.refusedAs(bench.delete(id), unimplemented);
      await bench.reaches(id, State.IDLE);
    },
  },
];
