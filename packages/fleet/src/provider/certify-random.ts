/** Certification, B12xx: properties over what is made by chance; a failure tells its seed. */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { MachineState as State } from '../contract/tables/provider.ts';
import type { Bench, Check } from './certify-bench.ts';
import { obeysOrder } from './certify-fencing.ts';
import { sortedText } from './certify-words.ts';

const ROUNDS = 40;
const CHARACTERS = ['a', 'Z', '0', '/', '.', '\0', '\n', 'ß', '漢', '\u{1F600}', '', ' '];

function text(bench: Bench, longest: number): string {
  const length = bench.below(longest + 1);
  const at = (): string => CHARACTERS[bench.below(CHARACTERS.length)] ?? '';
  return Array.from({ length }, at).join('');
}

async function step(bench: Bench, id: string, state: State): Promise<State> {
  const legal = {
    create: [State.IDLE],
    configure: [State.IDLE, State.CONFIGURED],
    drain: [State.CONFIGURED],
  };
  const ends = { create: State.IDLE, configure: State.CONFIGURED, drain: State.IDLE };
  const verb = (['create', 'configure', 'drain'] as const)[bench.below(3)] ?? 'create';
  const code = await bench.outcome(bench[verb](id));
  const isLegal = legal[verb].some((one) => one === state);
  const what = `${verb} in state ${state}: code ${code} (seed ${bench.seed})`;
  // Idle is the target of a Drain: yes and no are both right there
  const isOpen = verb === 'drain' && state === State.IDLE;
  bench.holds(isOpen || (code === 0) === isLegal, what);
  bench.holds(code !== GRPC_CODES.failedPrecondition, what);
  const expected = code === 0 ? ends[verb] : state;
  return (await bench.reaches(id, expected)).state;
}

export const RANDOM_CHECKS: readonly Check[] = [
  {
    id: 'B1201',
    area: 'chance',
    name: 'many tokens by chance pass if and only if they are newer',
    run: (bench) => obeysOrder(bench, 200),
  },
  {
    id: 'B1202',
    area: 'chance',
    name: 'metadata by chance come back as they were given',
    run: async (bench) => {
      const { id } = await bench.idle();
      for (let round = 0; round < 10; round++) {
        const pairs = Array.from({ length: bench.below(8) }, (_, at) => [
          `${at}${text(bench, 12)}`,
          text(bench, 40),
        ]);
        const shardMetadata = Object.fromEntries(pairs) as Record<string, string>;
        await bench.configure(id, { shardMetadata });
        const machine = await bench.reaches(id, State.CONFIGURED);
        const isSame = sortedText(machine.shardMetadata) === sortedText(shardMetadata);
        bench.holds(isSame, `other metadata (seed ${bench.seed})`);
        await bench.released(id);
      }
    },
  },
  {
    id: 'B1203',
    area: 'chance',
    name: 'calls by chance follow the legal edges, and refusals change nothing',
    run: async (bench) => {
      const { id } = await bench.idle();
      let state: State = State.IDLE;
      for (let round = 0; round < ROUNDS; round++) state = await step(bench, id, state);
      if (state === State.CONFIGURED) await bench.released(id);
    },
  },
  {
    id: 'B1204',
    area: 'chance',
    name: 'of several shards on one machine only old tokens are fenced',
    run: async (bench) => {
      const { id } = await bench.idle();
      const shards = [0, 1, 2].map(() => ({ shardId: bench.anotherShard(), newest: -1 }));
      for (let round = 0; round < ROUNDS; round++) {
        const shard = shards[bench.below(shards.length)];
        if (shard === undefined) continue;
        const sequence = bench.below(20);
        const token = { shardEpoch: 1n, sequenceNumber: BigInt(sequence) };
        const code = await bench.outcome(bench.create(id, { shardId: shard.shardId, ...token }));
        const isNewer = sequence > shard.newest;
        const isFenced = code === GRPC_CODES.failedPrecondition;
        bench.holds(isFenced !== isNewer, `code ${code} (seed ${bench.seed})`);
        if (isNewer) shard.newest = sequence;
      }
    },
  },
  {
    id: 'B1205',
    area: 'chance',
    name: 'requests that are wrong by chance get the code that is theirs',
    run: async (bench) => {
      const { invalidArgument: invalid, notFound } = GRPC_CODES;
      const { id } = await bench.idle();
      for (let round = 0; round < ROUNDS; round++) {
        const unknown = `unknown-${bench.below(1e9)}`;
        const cases = [
          [() => bench.get(''), [invalid]],
          [() => bench.get(unknown), [notFound]],
          [() => bench.create(unknown), [notFound]],
          [() => bench.drain(id, BigInt(-1 - bench.below(1e6))), [invalid]],
          [() => bench.create(id, { ...bench.token(), shardEpoch: -7n }), [invalid]],
          [() => bench.configure(unknown), [notFound]],
        ] as const;
        const one = cases[bench.below(cases.length)];
        if (one === undefined) continue;
        const [call, codes] = one;
        const code = await bench.outcome(call());
        const isRight = codes.some((expected) => expected === code);
        bench.holds(isRight, `code ${code}, not ${codes.join()} (seed ${bench.seed})`);
      }
    },
  },
];
