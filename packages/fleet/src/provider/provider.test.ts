import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { Random } from '@megaplane/base/random';
import * as fc from 'fast-check';
import { CallError } from '../contract/calls.ts';
import {
  ConfigureRequestSchema,
  CreateRequestSchema,
  DeleteRequestSchema,
  DrainRequestSchema,
  ListFilterSchema,
  MachineState as State,
} from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';
import { simulatedBackend, staticBackend } from './backends.ts';
import { readCatalogue, readInventory } from './catalogue.ts';
import { Provider, stateName } from './provider.ts';

const LATENCY = { minMs: 100, maxMs: 100 };
const LATENCIES = { create: LATENCY, configure: LATENCY, drain: LATENCY, delete: LATENCY };

function offer(more: object = {}): object {
  const resources = { cpu: 4, memory: '16Gi' };
  const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', slots: 2, price: 1 };
  return { ...facts, resources, ...more };
}

function provider(more: object = {}, latencies: object = LATENCIES, seed = 1): Provider {
  const catalogue = readCatalogue({ offers: [offer(more)], latencies } as never);
  const backend = simulatedBackend(catalogue, new Random(seed));
  return new Provider({ machines: catalogue.machines, backend, timeoutMs: 10_000, instance: 7 });
}

/** Plays `verb machine [sequence]` lines at their times; shows state, or the code of a refusal. */
function play(made: Provider, script: string): string[] {
  const shown: string[] = [];
  let sequence = 0n;
  for (const line of script.trim().split('\n')) {
    const [at = '', verb = '', id = '', given] = line.trim().split(' ');
    const nowMs = Number(at);
    sequence = given === undefined ? sequence + 1n : BigInt(given);
    const machineId = `m4-a-ondemand-${id}`;
    const token = { machineId, shardId: 's', shardEpoch: 1n, sequenceNumber: sequence };
    try {
      let machine: Machine | undefined;
      if (verb === 'get') machine = made.get(machineId, nowMs);
      else if (verb === 'create') {
        ({ machine } = made.create(create(CreateRequestSchema, token), nowMs));
      } else if (verb === 'configure') {
        const request = { ...token, clusterId: 'c1', shardMetadata: { k: 'v' } };
        ({ machine } = made.configure(create(ConfigureRequestSchema, request), nowMs));
      } else if (verb === 'drain') {
        ({ machine } = made.drain(create(DrainRequestSchema, token), nowMs));
      } else ({ machine } = made.delete(create(DeleteRequestSchema, token), nowMs));
      const host = machine?.host === undefined ? '' : ' host';
      const cluster = machine?.cluster === '' ? '' : ` ${machine?.cluster}`;
      shown.push(`${stateName(machine?.state ?? 0)}${host}${cluster}`);
    } catch (error) {
      assert.ok(error instanceof CallError, String(error));
      shown.push(`code ${error.code}`);
    }
  }
  return shown;
}

test('a machine goes through its life, and each call is answered at once', () => {
  const script = `
    0 create 0
    99 get 0
    100 get 0
    100 configure 0
    200 get 0
    200 drain 0
    300 get 0
    300 delete 0
    400 get 0`;
  assert.deepEqual(play(provider(), script), [
    ...['CREATING', 'CREATING', 'IDLE host', 'CONFIGURING host c1', 'CONFIGURED host c1'],
    ...['DRAINING host c1', 'IDLE host', 'DELETING host', 'SPECULATIVE'],
  ]);
});

test('what is illegal changes nothing, what is stale is fenced, also after a refusal', () => {
  const script = `
    0 drain 0 5
    0 drain 0 5
    0 create 0 4
    0 create 0 6
    0 create 1 1
    50 configure 0 7
    100 create nobody 1
    100 configure 0 8
    100 create 0 9
    100 get 0`;
  assert.deepEqual(play(provider(), script), [
    ...['code 13', 'code 9', 'code 9', 'CREATING', 'CREATING', 'code 13', 'code 5'],
    ...['CONFIGURING host c1', 'code 13', 'CONFIGURING host c1'],
  ]);
});

test('what takes too long has failed, and what failed stays so', () => {
  const slow = { ...LATENCIES, create: { minMs: 20_000 } };
  const made = provider({}, slow);
  const script = `
    0 create 0
    10000 get 0
    10000 create 0
    30000 get 0`;
  assert.deepEqual(play(made, script), ['CREATING', 'FAILED', 'code 13', 'FAILED']);
  assert.equal(made.get('m4-a-ondemand-0', 0).lastError, 'create timed out');
  const broken = provider({}, { ...LATENCIES, create: { failures: 1 } });
  assert.deepEqual(play(broken, '0 create 0\n0 get 0'), ['CREATING', 'FAILED']);
});

test('an offer that is out of stock is refused, until a machine is given back', () => {
  const script = `
    0 create 0
    0 create 1
    100 delete 0
    200 get 0
    200 create 1`;
  assert.deepEqual(play(provider({ stock: 1 }), script), [
    ...['CREATING', 'code 8', 'DELETING host', 'SPECULATIVE', 'CREATING'],
  ]);
});

test('a spot machine that is taken away drains and goes, by legal edges only', () => {
  const more = { capacityType: 'Spot', interruptionProbability: 1 };
  const catalogue = readCatalogue({ offers: [offer(more)], latencies: LATENCIES } as never);
  const backend = simulatedBackend(catalogue, new Random(1));
  const { machines } = catalogue;
  const made = new Provider({ machines, backend, timeoutMs: 10_000, instance: 7 });
  const id = 'm4-a-spot-0';
  made.create(create(CreateRequestSchema, { machineId: id }), 0);
  made.configure(create(ConfigureRequestSchema, { machineId: id, clusterId: 'c' }), 100);
  const states = [150, 200, 300, 400].map((nowMs) => stateName(made.get(id, nowMs).state));
  assert.deepEqual(states, ['CONFIGURING', 'DRAINING', 'DELETING', 'SPECULATIVE']);
  assert.equal(made.wakeMs, Infinity);
});

test('hosts of a list are idle, bound and released, and cannot be given back', () => {
  const file = {
    machines: [{ id: 'h1', instanceType: 'metal', zone: 'a', resources: { cpu: 8 } }],
  };
  const machines = readInventory(file);
  const made = new Provider({ machines, backend: staticBackend(), timeoutMs: 1000, instance: 7 });
  const [first] = made.list(create(ListFilterSchema), 0).machines;
  assert.deepEqual([first?.state, first?.host?.ref, first?.pricePerHour], [State.IDLE, 'h1', 0]);
  made.configure(create(ConfigureRequestSchema, { machineId: 'h1', clusterId: 'c' }), 0);
  assert.equal(made.get('h1', 0).state, State.CONFIGURED);
  const remove = create(DeleteRequestSchema, { machineId: 'h1' });
  assert.throws(
    () => made.delete(remove, 0),
    (error) => (error as CallError).code === 12,
  );
});

test('cursors show changes in order, also page by page, and none of another life', () => {
  const made = provider({ slots: 5 });
  const list = (more: object): ReturnType<Provider['list']> =>
    made.list(create(ListFilterSchema, more), 1000);
  const whole = list({});
  assert.equal(whole.machines.length, 5);
  assert.deepEqual(list({}).revision, whole.revision);
  for (const id of [3, 1, 4]) {
    made.create(create(CreateRequestSchema, { machineId: `m4-a-ondemand-${id}` }), 0);
  }
  const first = list({ sinceRevision: whole.revision, maxResults: 2 });
  const rest = list({ sinceRevision: first.revision });
  assert.deepEqual(
    [...first.machines, ...rest.machines].map(({ id }) => id.slice(-1)),
    ['3', '1', '4'],
  );
  assert.deepEqual(list({ sinceRevision: rest.revision }).machines, []);
  const walked: string[] = [];
  for (let since = new Uint8Array(); walked.length < 5;) {
    const page = list({ maxResults: 2, sinceRevision: since });
    walked.push(...page.machines.map(({ id }) => id.slice(-1)));
    since = Uint8Array.from(page.revision);
  }
  assert.deepEqual(walked.toSorted(), ['0', '1', '2', '3', '4']);
  const other = new Uint8Array(whole.revision);
  other[3] = (other[3] ?? 0) ^ 1;
  for (const sinceRevision of [other, new Uint8Array([1]), new Uint8Array(16).fill(255)]) {
    assert.equal(list({ sinceRevision }).machines.length, 5);
  }
});

test('whatever is called, machines stay in their grid and edges stay legal', () => {
  const edges = new Set(
    (
      '12 23 28 34 37 45 48 43 56 63 68 71 78 11 22 33 44 55 66 77 88 ' +
      // several steps between two looks
      '13 15 46 53 51 57 35 36 31 61 67 41 38 18 58 16 14 21 24 25 26 27 42 47 62 65 64 17 72 73'
    ).split(' '),
  );
  const call = fc.record({
    verb: fc.constantFrom('create', 'configure', 'drain', 'delete'),
    slot: fc.nat(2),
    waitMs: fc.nat(150),
  });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 40 }), fc.nat(99), (calls, seed) => {
      const failing = { ...LATENCY, failures: 0.1 };
      const latencies = { create: failing, configure: failing, drain: failing, delete: failing };
      const made = provider({ slots: 3 }, latencies, seed);
      const before = new Map<string, number>();
      let nowMs = 0;
      for (const { verb, slot, waitMs } of calls) {
        nowMs += waitMs;
        play(made, `${nowMs} ${verb} ${slot} ${nowMs}`);
        for (const machine of made.list(create(ListFilterSchema), nowMs).machines) {
          const { id, state, cluster, host, lastError } = machine;
          assert.ok(edges.has(`${before.get(id) ?? 1}${state}`), `${before.get(id)} to ${state}`);
          before.set(id, state);
          const isUnmade = state === State.SPECULATIVE || state === State.CREATING;
          assert.equal(isUnmade && (cluster !== '' || host !== undefined), false);
          if (state === State.CONFIGURED || state === State.DRAINING) assert.equal(cluster, 'c1');
          if (state === State.IDLE) assert.equal(cluster, '');
          if (state === State.FAILED) assert.notEqual(lastError, '');
        }
      }
    }),
    { seed: 5, numRuns: 60 },
  );
});

test('a file that is wrong is refused with what is wrong', () => {
  const refusals: readonly (readonly [object, RegExp])[] = [
    [{ offers: [offer({ price: -1 })] }, /offers\[0\].price is negative/],
    [{ offers: [offer({ price: NaN })] }, /price is negative/],
    [{ offers: [offer({ interruptionProbability: 2 })] }, /between 0 and 1/],
    [{ offers: [offer({ capacityType: 'Rented' })] }, /capacityType Rented: one of BareMetal/],
    [{ offers: [offer({ slots: -1 })] }, /slots is no whole number/],
    [{ offers: [offer({ slots: 1e9 })] }, /over 5000000 slots/],
    [{ offers: [offer({ resources: { cpu: 'x' } })] }, /resources\[cpu\]: x is no quantity/],
    [{ offers: [offer({ instanceType: '' })] }, /no instanceType/],
    [{ offers: [7] }, /offers\[0\] is no object/],
    [{ offers: [], latencies: { create: { failures: 2 } } }, /latencies.create/],
  ];
  for (const [file, message] of refusals) {
    assert.throws(() => readCatalogue(file as never), message, JSON.stringify(file));
  }
  assert.throws(() => readInventory({ machines: [{ instanceType: 'x' }] }), /has no id/);
});
