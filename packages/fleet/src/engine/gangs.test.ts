/** What the better engine does with gangs: each difference by itself, beside the strict answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountsOf } from './amounts.ts';
import { BETTER, type Differences, STRICT } from './differences.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import type { NeedMessage } from './need-message.ts';
import { Operator, profileOf } from './profile.ts';
import { type Cycle, SHARD_DEFAULTS, Shard } from './shard.ts';

const GANG = gangOf(100);

function gangOf(priority: number): ReturnType<typeof profileOf> {
  const requirements = [{ key: 'rack', operator: Operator.SAME, values: [] }];
  const buckets = { interruptionBucket: 0, reclamationBucket: 0 } as const;
  return profileOf({ requirements, spread: [], priority, ...buckets });
}

function gang(group: string, cores: number, unit = 4, profile = GANG): NeedMessage {
  return { profile, group, aggregate: { cpu: `${cores}` }, minUnit: { cpu: `${unit}` } };
}

function machine(id: string, cores: number, told: Partial<Machine> = {}): Machine {
  return {
    ...{ id, state: 'Idle', cluster: '', instanceType: 'm', zone: 'z', price: cores },
    ...{ capacityType: 'Reserved', labels: new Map([['rack', 'r1']]), idleSince: 0 },
    ...{ allocatable: amountsOf({ cpu: `${cores}` }), interruptionProbability: 0 },
    ...{ stamp: NO_STAMP, ...told },
  };
}

function bound(id: string, cores: number, group: string, cluster = 'c'): Machine {
  const stamp = { ...NO_STAMP, fingerprint: GANG.fingerprint, group, priority: 100 };
  return machine(id, cores, { state: 'Configured', cluster, stamp });
}

function worldOf(differences: Differences, machines: readonly Machine[]): Shard {
  const shard = new Shard({ ...SHARD_DEFAULTS, differences, checkEachCycles: 1 });
  for (const told of machines) shard.inventory.put(told, 0);
  return shard;
}

function told({ actions }: Cycle): string[] {
  return actions.map(({ kind, machine: { id } }) => `${kind} ${id}`).toSorted();
}

/** Two clusters with a gang each; `first` and `second` are told what they want, in cores. */
function halves(differences: Differences, cores: readonly [number, number], priority = 100): Shard {
  const first = ['a', 'b', 'c'].map((id) => bound(id, 4, 'g', 'c'));
  const second = ['d', 'e', 'f'].map((id) => bound(id, 4, 'g', 'd'));
  const shard = worldOf(differences, [...first, ...second]);
  shard.rollup({ cluster: 'c', time: 0, needs: [gang('g', cores[0])] });
  shard.rollup({ cluster: 'd', time: 1, needs: [gang('g', cores[1], 4, gangOf(priority))] });
  return shard;
}

test('of two gangs that lack one machine each, the first gets one of the other', () => {
  assert.deepEqual(told(halves(STRICT, [16, 16]).cycle(0)), []);
  assert.deepEqual(told(halves({ ...BETTER, halvesYield: false }, [16, 16]).cycle(0)), []);
  const shard = halves(BETTER, [16, 16]);
  assert.deepEqual(told(shard.cycle(0)), ['Preempt d']);
  // while it drains nobody else goes; then the first is whole, and nothing moves any more
  const drained = bound('d', 4, 'g', 'd');
  shard.inventory.put({ ...drained, state: 'Draining' }, 10);
  assert.deepEqual(told(shard.cycle(10)), []);
  shard.inventory.put({ ...drained, state: 'Idle', cluster: '', stamp: NO_STAMP }, 20);
  assert.deepEqual(told(shard.cycle(20)), ['Bootstrap d']);
  shard.inventory.put(bound('d', 4, 'g', 'c'), 30);
  for (let cycle = 3; cycle < 50; cycle++) assert.deepEqual(told(shard.cycle(cycle * 10)), []);
});

test('a gang that cannot be whole yields to one that can, though it stands before it', () => {
  assert.deepEqual(told(halves(BETTER, [40, 16]).cycle(0)), ['Preempt a']);
});

test('gangs that can both not be whole, and ones that matter more, lose nothing', () => {
  assert.deepEqual(told(halves(BETTER, [40, 40]).cycle(0)), []);
  assert.deepEqual(told(halves(BETTER, [40, 16], 50).cycle(0)), []);
});

test('a gang that has its machines keeps them when one comes that could hold it whole', () => {
  for (const [steadyFolds, wanted] of [
    [false, ['Bootstrap big', 'Reclaim a']],
    [true, []],
  ] as const) {
    const machines = [bound('a', 4, 'g'), bound('b', 4, 'g')];
    const shard = worldOf({ ...STRICT, steadyFolds }, machines);
    shard.rollup({ cluster: 'c', time: 0, needs: [gang('g', 8)] });
    assert.deepEqual(told(shard.cycle(0)), []);
    shard.inventory.put(machine('big', 8), 10);
    assert.deepEqual(told(shard.cycle(10)), wanted);
    // told once more, in another size: it is the same gang
    shard.rollup({ cluster: 'c', time: 20, needs: [gang('g', 7)] });
    assert.equal(told(shard.cycle(20)).includes('Bootstrap big'), !steadyFolds);
  }
});

test('while the one machine that could hold a gang is being made, no others are bought', () => {
  for (const [steadyFolds, wanted] of [
    [false, ['Bootstrap a', 'Bootstrap b']],
    [true, []],
  ] as const) {
    const small = ['a', 'b'].map((id) => machine(id, 4, { price: 100 }));
    const slot = machine('big', 8, { state: 'Speculative', price: 1 });
    const shard = worldOf({ ...BETTER, steadyFolds }, [slot, ...small]);
    shard.rollup({ cluster: 'c', time: 0, needs: [gang('g', 8)] });
    const [action] = shard.cycle(0).actions;
    assert.deepEqual([action?.kind, action?.machine.id], ['Provision', 'big']);
    const fingerprint = action?.profile?.fingerprint ?? '';
    const stamp = { ...NO_STAMP, fingerprint, group: action?.group ?? '' };
    shard.inventory.put({ ...slot, state: 'Creating', stamp }, 10);
    assert.deepEqual(told(shard.cycle(10)), wanted);
  }
});

test('a gang spans machines where the one that could hold it is taken by who matters more', () => {
  const high = profileOf({
    ...{ requirements: [], spread: [], priority: 1000 },
    ...{ interruptionBucket: 0, reclamationBucket: 0 },
  });
  const first = { profile: high, group: '', aggregate: { cpu: '8' }, minUnit: { cpu: '8' } };
  const machines = [
    // gone once it is bound: until then it is a machine that could hold the gang
    machine('big', 8),
    ...['a', 'b'].map((id) => machine(id, 4)),
  ];
  for (const [spansShort, wanted] of [
    [false, []],
    [true, ['Bootstrap a', 'Bootstrap b']],
  ] as const) {
    const shard = worldOf({ ...BETTER, spansShort }, machines);
    shard.rollup({ cluster: 'c', time: 0, needs: [first, gang('g', 8)] });
    assert.deepEqual(told(shard.cycle(0)), ['Bootstrap big']);
    const stamp = { ...NO_STAMP, fingerprint: high.fingerprint, priority: 1000 };
    shard.inventory.put({ ...machine('big', 8), state: 'Configured', cluster: 'c', stamp }, 10);
    assert.deepEqual(told(shard.cycle(10)), wanted, `spansShort ${spansShort}`);
  }
});

test('gangs folded into one row get the one machine that holds one, and span others', () => {
  const machines = [machine('big', 8), ...['a', 'b'].map((id) => machine(id, 4, { price: 100 }))];
  const shard = worldOf(BETTER, machines);
  shard.rollup({ cluster: 'c', time: 0, needs: [gang('g1', 8), gang('g2', 8)] });
  const all: string[] = [];
  for (let cycle = 0; cycle < 30; cycle++) {
    const decided = shard.cycle(cycle * 10);
    all.push(...told(decided));
    for (const { machine: it, profile, group = '' } of decided.actions) {
      const stamp = { ...NO_STAMP, fingerprint: profile?.fingerprint ?? '', group, priority: 100 };
      shard.inventory.put({ ...it, state: 'Configured', cluster: 'c', stamp }, cycle * 10);
    }
  }
  assert.deepEqual(all, ['Bootstrap big', 'Bootstrap a', 'Bootstrap b']);
});
