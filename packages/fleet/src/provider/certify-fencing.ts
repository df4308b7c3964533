/** Certification, B3xx and B4xx: who may still change a machine, and calls that overtake others. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { MachineState as State } from '../contract/tables/provider.ts';
import type { Bench, Check } from './certify-bench.ts';
import { isCleared } from './certify-words.ts';

const FENCED = GRPC_CODES.failedPrecondition;
const NOBODY_TOKEN = { shardId: '', shardEpoch: 0n, sequenceNumber: 0n };
const BURST = 20;

/** Tokens by chance: accepted if and only if newer than all before. */
export async function obeysOrder(bench: Bench, rounds: number): Promise<void> {
  const { id } = await bench.idle();
  const shardId = bench.anotherShard();
  let newest: readonly [bigint, bigint] = [-1n, -1n];
  for (let round = 0; round < rounds; round++) {
    const [shardEpoch, sequenceNumber] = [bench.below(4), bench.below(8)] as const;
    const token = {
      shardId,
      shardEpoch: BigInt(shardEpoch),
      sequenceNumber: BigInt(sequenceNumber),
    };
    const [epoch, sequence] = newest;
    const isNewer =
      token.shardEpoch > epoch || (token.shardEpoch === epoch && token.sequenceNumber > sequence);
    const code = await bench.outcome(bench.create(id, token));
    const shown = `${shardEpoch}/${sequenceNumber} after ${epoch}/${sequence}`;
    bench.holds(code === (isNewer ? 0 : FENCED), `${shown}: code ${code} (seed ${bench.seed})`);
    if (isNewer) newest = [token.shardEpoch, token.sequenceNumber];
  }
}

export const FENCING_CHECKS: readonly Check[] = [
  {
    id: 'B301',
    area: 'fencing',
    name: 'a token that is not newer is fenced before anybody looks whether the machine is there',
    run: async (bench) => {
      const nobody = `nobody-${bench.below(1e9)}`;
      const token = bench.token();
      await bench.refusedAs(bench.create(nobody, token), GRPC_CODES.notFound);
      await bench.refusedAs(bench.create(nobody, token), FENCED);
    },
  },
  {
    id: 'B302',
    area: 'fencing',
    name: 'tokens count for one shard and one machine',
    run: async (bench) => {
      const { id } = await bench.idle();
      const old = bench.token();
      await bench.create(id);
      const other = { shardId: bench.anotherShard(), shardEpoch: 1n, sequenceNumber: 1n };
      await bench.create(id, other);
      await bench.create(id);
      await bench.refusedAs(bench.create(id, old), FENCED);
    },
  },
  {
    id: 'B303',
    area: 'fencing',
    name: 'a token passes if it is newer, by epoch and then by sequence',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shardId = bench.anotherShard();
      const at = (epoch: bigint, sequence: bigint): Promise<number> =>
        bench.outcome(bench.create(id, { shardId, shardEpoch: epoch, sequenceNumber: sequence }));
      const expected = [
        [1n, 5n, 0],
        [1n, 5n, FENCED],
        [1n, 4n, FENCED],
        [1n, 6n, 0],
        [2n, 0n, 0],
        [1n, 99n, FENCED],
        [2n, 1n, 0],
      ] as const;
      for (const [epoch, sequence, code] of expected) {
        const found = await at(epoch, sequence);
        bench.holds(found === code, `${epoch}/${sequence}: code ${found}, not ${code}`);
      }
    },
  },
  {
    id: 'B305',
    area: 'fencing',
    name: 'reading is never fenced',
    run: async (bench) => {
      const { id } = await bench.idle();
      const old = bench.token();
      await bench.create(id);
      for (let round = 0; round < 3; round++) {
        await bench.refusedAs(bench.create(id, old), FENCED);
        await bench.get(id);
        await bench.list({ maxResults: 1 });
      }
    },
  },
  {
    id: 'B306',
    area: 'fencing',
    name: 'a Configure of long ago is fenced, although it is done already',
    run: async (bench) => {
      const { id } = await bench.idle();
      const token = bench.token();
      await bench.configure(id, token);
      await bench.reaches(id, State.CONFIGURED);
      await bench.refusedAs(bench.configure(id, token), FENCED);
      await bench.released(id);
    },
  },
  {
    id: 'B307',
    area: 'fencing',
    name: 'a Drain of long ago is fenced, although it is done already',
    run: async (bench) => {
      const { id } = await bench.configured();
      const token = bench.token();
      await bench.drain(id, 1n, token);
      await bench.reaches(id, State.IDLE);
      await bench.refusedAs(bench.drain(id, 1n, token), FENCED);
    },
  },
  {
    id: 'B308',
    area: 'fencing',
    name: 'a token with nothing in it passes, and passes again',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.create(id, NOBODY_TOKEN);
      await bench.create(id, NOBODY_TOKEN);
    },
  },
  {
    id: 'B309',
    area: 'fencing',
    name: 'tokens that rise pass with every call that changes a machine',
    run: async (bench) => {
      const { id } = await bench.idle();
      await bench.create(id);
      await bench.configure(id);
      await bench.reaches(id, State.CONFIGURED);
      await bench.released(id);
    },
  },
  {
    id: 'B310',
    area: 'fencing',
    name: 'a new epoch begins sequences anew, and the old epoch is over',
    run: async (bench) => {
      const { id } = await bench.idle();
      const before = bench.token();
      await bench.create(id, before);
      bench.epoch++;
      await bench.create(id, { ...bench.token(), sequenceNumber: 0n });
      const late = { ...before, sequenceNumber: before.sequenceNumber + 1000n };
      await bench.refusedAs(bench.create(id, late), FENCED);
    },
  },
  {
    id: 'B311',
    area: 'fencing',
    name: 'a token counts also where the call is refused for another reason',
    run: async (bench) => {
      const { id } = await bench.configured();
      const token = bench.token();
      await bench.refusedUnfenced(bench.configure(id, { clusterId: 'another', ...token }));
      await bench.refusedAs(bench.configure(id, { clusterId: 'another', ...token }), FENCED);
      await bench.released(id);
    },
  },
  {
    id: 'B312',
    area: 'fencing',
    name: 'tokens by chance pass if and only if they are newer than all before',
    run: (bench) => obeysOrder(bench, 50),
  },
];

/** Of many calls at once for one target all are one operation, which happens once. */
async function isOne(
  bench: Bench,
  id: string,
  call: () => Promise<{ operationId: string; machine?: { state: State } | undefined }>,
  states: readonly State[],
): Promise<void> {
  const acks = await Promise.all(Array.from({ length: BURST }, call));
  const ids = new Set(acks.map(({ operationId }) => operationId));
  bench.holds(ids.size === 1 && !ids.has(''), `${ids.size} operations`);
  const torn = acks.find(({ machine }) => !states.some((state) => state === machine?.state));
  bench.holds(torn === undefined, `an answer shows state ${torn?.machine?.state}`);
  const [, end] = states;
  if (end !== undefined) await bench.reaches(id, end);
}

export const CONCURRENCY_CHECKS: readonly Check[] = [
  {
    id: 'B401',
    area: 'concurrency',
    name: 'of many Creates at once one is carried out',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.speculative();
      const states = [State.CREATING, State.IDLE];
      await isOne(bench, id, () => bench.create(id, NOBODY_TOKEN), states);
    },
  },
  {
    id: 'B402',
    area: 'concurrency',
    name: 'of many Configures at once one is carried out',
    run: async (bench) => {
      const { id } = await bench.idle();
      const states = [State.CONFIGURING, State.CONFIGURED];
      await isOne(bench, id, () => bench.configure(id, NOBODY_TOKEN), states);
      await bench.released(id);
    },
  },
  {
    id: 'B403',
    area: 'concurrency',
    name: 'of many Drains at once one is carried out, and clears the binding',
    run: async (bench) => {
      const { id } = await bench.configured();
      await isOne(bench, id, () => bench.drain(id, 1n, NOBODY_TOKEN), [State.DRAINING, State.IDLE]);
      bench.holds(isCleared(await bench.get(id)), 'the binding outlives the drain');
    },
  },
  {
    id: 'B404',
    area: 'concurrency',
    name: 'of two calls that exclude each other at most one is carried out',
    run: async (bench) => {
      const { id } = await bench.idle();
      const both = [bench.configure(id, NOBODY_TOKEN), bench.drain(id, 1n, NOBODY_TOKEN)];
      const codes = await Promise.all(both.map((call) => bench.outcome(call)));
      bench.holds(!codes.includes(FENCED), 'a race is said to be fenced');
      const machine = await bench.settled(id);
      const isOneOf = machine.state === State.IDLE || machine.state === State.CONFIGURED;
      bench.holds(isOneOf, `it ended in state ${machine.state}`);
      if (machine.state === State.CONFIGURED) await bench.released(id);
    },
  },
  {
    id: 'B405',
    area: 'concurrency',
    name: 'between an old and a new life of a shard the new one wins, however calls mix',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shardId = bench.anotherShard();
      const token = (shardEpoch: bigint, sequenceNumber: bigint) => ({
        ...{ shardId, shardEpoch, sequenceNumber },
      });
      await bench.create(id, token(2n, 1n));
      const calls = Array.from({ length: BURST }, (_, at) => {
        const isZombie = at % 2 === 0;
        const call = bench.create(id, token(isZombie ? 1n : 2n, BigInt(at + 2)));
        return bench.outcome(call).then((code) => ({ code, isZombie }));
      });
      for (const { code, isZombie } of await Promise.all(calls)) {
        if (isZombie) bench.holds(code === FENCED, `the old life got code ${code}`);
      }
      const last = await bench.outcome(bench.create(id, token(2n, 1000n)));
      bench.holds(last === 0, `the new life got code ${last}`);
    },
  },
  {
    id: 'B406',
    area: 'concurrency',
    name: 'an operation belongs to a machine and a target, whoever asks',
    run: async (bench) => {
      const { id } = await bench.idle();
      const tokens = Array.from({ length: 5 }, () => ({
        ...{ shardId: bench.anotherShard(), shardEpoch: 1n, sequenceNumber: 1n },
      }));
      const acks = await Promise.all(tokens.map((token) => bench.configure(id, token)));
      const ids = new Set(acks.map(({ operationId }) => operationId));
      bench.holds(ids.size === 1, `${ids.size} operations`);
      await bench.reaches(id, State.CONFIGURED);
      await bench.released(id);
    },
  },
  {
    id: 'B407',
    area: 'concurrency',
    name: 'several machines at once are several operations, and do not touch each other',
    run: async (bench) => {
      const machines = await bench.several(3);
      const acks = await Promise.all(machines.map(({ id }) => bench.configure(id)));
      const ids = new Set(acks.map(({ operationId }) => operationId));
      bench.holds(ids.size === machines.length, `${ids.size} operations`);
      for (const { id } of machines) await bench.reaches(id, State.CONFIGURED);
      for (const { id } of machines) await bench.released(id);
    },
  },
  {
    id: 'B408',
    area: 'concurrency',
    name: 'each answer of a burst shows the machine on its way, or there',
    run: async (bench) => {
      const { id } = await bench.idle();
      const states = [State.CONFIGURING, State.CONFIGURED];
      await isOne(bench, id, () => bench.configure(id, NOBODY_TOKEN), states);
      await bench.released(id);
    },
  },
  {
    id: 'B409',
    area: 'concurrency',
    name: 'of many Deletes at once one is carried out',
    profiles: ['cloud'],
    run: async (bench) => {
      const { id } = await bench.idle();
      const states = [State.DELETING, State.SPECULATIVE];
      await isOne(bench, id, () => bench.delete(id, NOBODY_TOKEN), states);
    },
  },
];
