import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { Random } from '@megaplane/base/random';
import { TransitionAckSchema } from '../contract/tables/provider.ts';
import { simulatedBackend, staticBackend } from './backends.ts';
import { readCatalogue, readInventory } from './catalogue.ts';
import { certify } from './certify.ts';
import type { CertifyProfile, ProviderCalls } from './certify-bench.ts';
import type { Verdict } from './certify.ts';
import { CHECKS } from './certify-checks.ts';
import { Journal } from './journal.ts';
import { Provider } from './provider.ts';
import { certifyProvider, runProvider } from './run.ts';

const LATENCY = { minMs: 30, maxMs: 60 };
const CATALOGUE = {
  offers: [
    {
      ...{ instanceType: 'm4', zones: ['a', 'b'], capacityType: 'OnDemand', slots: 3, price: 0.2 },
      resources: { cpu: '4' },
    },
    {
      ...{ instanceType: 'm4', zones: ['a'], capacityType: 'Spot', slots: 2, price: 0.05 },
      ...{ interruptionProbability: 0.1, resources: { cpu: '4' } },
    },
  ],
  latencies: { create: LATENCY, configure: LATENCY, drain: LATENCY, delete: LATENCY },
};
const INVENTORY = {
  machines: [1, 2, 3].map((n) => ({
    id: `h${n}`,
    instanceType: 'metal',
    zone: 'z',
    resources: { cpu: '8' },
  })),
};

/** A provider in this process, under a clock that moves when somebody sleeps. */
function bench(provider: Provider): { calls: ProviderCalls; sleep: (ms: number) => Promise<void> } {
  let nowMs = 0;
  const later = async <Answer>(answer: () => Answer): Promise<Answer> => answer();
  const calls: ProviderCalls = {
    create: (request) => later(() => provider.create(request, nowMs)),
    configure: (request) => later(() => provider.configure(request, nowMs)),
    drain: (request) => later(() => provider.drain(request, nowMs)),
    delete: (request) => later(() => provider.delete(request, nowMs)),
    get: ({ id }) => later(() => provider.get(id, nowMs)),
    list: (filter) => later(() => provider.list(filter, nowMs)),
  };
  return { calls, sleep: async (ms) => void (nowMs += ms) };
}

function simulated(): Provider {
  const catalogue = readCatalogue(CATALOGUE);
  const backend = simulatedBackend(catalogue, new Random(1));
  return new Provider({ machines: catalogue.machines, backend, timeoutMs: 60_000, instance: 1 });
}

test('each behaviour of the catalogue has a check, and each check a number of its own', () => {
  const ids = CHECKS.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(ids.filter((id) => /^B\d{3,4}$/.test(id)).length, 92);
});

function failures(verdicts: readonly Verdict[]): string[] {
  return verdicts
    .filter(({ outcome }) => outcome !== 'passed')
    .map(({ area, name, outcome, why }) => `${area}: ${name}: ${outcome} ${why}`);
}

async function judged(
  provider: Provider,
  profile: CertifyProfile,
  spoil: (calls: ProviderCalls) => Partial<ProviderCalls> = () => ({}),
): Promise<readonly Verdict[]> {
  const { calls, sleep } = bench(provider);
  return certify({ ...calls, ...spoil(calls) }, { profile, sleep, shard: 's', seed: 1 });
}

test('the simulated provider and the static one are certified', async () => {
  const verdicts = await judged(simulated(), 'cloud');
  assert.deepEqual(failures(verdicts), []);
  assert.equal(verdicts.length, 69);
  const machines = readInventory(INVENTORY);
  const hosts = new Provider({ machines, backend: staticBackend(), timeoutMs: 1000, instance: 1 });
  assert.deepEqual(failures(await judged(hosts, 'bare-metal')), []);
});

test('over the wire, too', async () => {
  for (const [kind, file, profile] of [
    ['simulated', CATALOGUE, 'cloud'],
    ['static', INVENTORY, 'bare-metal'],
  ] as const) {
    const source = kind === 'static' ? { kind, file } : { kind, file, seed: 1 };
    const service = await runProvider({ host: '127.0.0.1', port: 0, source, timeoutMs: 60_000 });
    try {
      assert.deepEqual(
        failures(
          await certifyProvider({ host: '127.0.0.1', port: service.port }, { profile, seed: 1 }),
        ),
        [],
      );
    } finally {
      await service.stop();
    }
  }
});

/** Providers that do one thing wrong, and the area that notices it. */
const SPOILT: readonly (readonly [string, (calls: ProviderCalls) => Partial<ProviderCalls>])[] = [
  [
    'metadata',
    ({ get }) => ({
      get: async (ref) => ({ ...(await get(ref)), shardMetadata: {} }),
    }),
  ],
  [
    'fields',
    ({ list }) => ({
      list: async (filter) => {
        const found = await list(filter);
        const machines = found.machines.map((machine) => ({ ...machine, pricePerHour: NaN }));
        return { ...found, machines };
      },
    }),
  ],
  ['lists', ({ list }) => ({ list: (filter) => list({ ...filter, states: [], maxResults: 0 }) })],
  [
    'concurrency',
    ({ configure }) => {
      let count = 0;
      return {
        configure: async (request) => {
          const { machine } = await configure(request);
          const operationId = `op-${count++}`;
          return create(TransitionAckSchema, {
            operationId,
            ...(machine === undefined ? {} : { machine }),
          });
        },
      };
    },
  ],
  [
    'fencing',
    ({ configure, create: make }) => {
      const nobody = { shardId: '', shardEpoch: 0n, sequenceNumber: 0n };
      return {
        configure: (request) => configure({ ...request, ...nobody }),
        create: (request) => make({ ...request, ...nobody }),
      };
    },
  ],
  [
    'lifecycle',
    ({ get }) => ({
      get: async (ref) => {
        const { host: _, ...machine } = await get(ref);
        return machine;
      },
    }),
  ],
];

test('a provider that does one thing wrong is not certified', async () => {
  for (const [area, spoil] of SPOILT) {
    const verdicts = await judged(simulated(), 'cloud', spoil);
    const areas = new Set(
      verdicts.filter(({ outcome }) => outcome === 'failed').map((v) => v.area),
    );
    assert.ok(areas.has(area), `${area}: ${failures(verdicts).join('\n')}`);
  }
});

test('a provider without machines is neither certified nor failed by those checks', async () => {
  const backend = staticBackend();
  const empty = new Provider({ machines: [], backend, timeoutMs: 1000, instance: 1 });
  const verdicts = await judged(empty, 'cloud');
  assert.ok(verdicts.some(({ outcome }) => outcome === 'incomplete'));
});

test('a provider that fails some transitions, some by their time, passes its lane', async () => {
  const slow = { minMs: 10, maxMs: 4000, failures: 0.3 };
  const file = { ...CATALOGUE, latencies: { create: slow, configure: slow, drain: LATENCY } };
  const [offer] = CATALOGUE.offers;
  const catalogue = readCatalogue({ ...file, offers: [{ ...offer, slots: 400 }] });
  const backend = simulatedBackend(catalogue, new Random(3));
  const { machines } = catalogue;
  const provider = new Provider({ machines, backend, timeoutMs: 3500, instance: 1 });
  const verdicts = await judged(provider, 'fault');
  assert.deepEqual(failures(verdicts), []);
  assert.equal(verdicts.length, 7);
});

test('a provider keeps machines, tokens and operations over its death', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-provider-'));
  const options = {
    ...{ host: '127.0.0.1', port: 0, timeoutMs: 60_000, dataDir },
    source: { kind: 'simulated', file: CATALOGUE, seed: 1 } as const,
  };
  let service = await runProvider(options);
  const { port } = service;
  const restart = async (): Promise<void> => {
    await service.stop();
    service = await runProvider({ ...options, port });
  };
  try {
    const where = { host: '127.0.0.1', port };
    const verdicts = await certifyProvider(where, { profile: 'durable', seed: 1, restart });
    assert.deepEqual(failures(verdicts), []);
    assert.equal(verdicts.length, 7);
    const without = await certifyProvider(where, { profile: 'durable', seed: 1 });
    assert.ok(without.every(({ outcome }) => outcome === 'incomplete'));
  } finally {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('a journal that was cut off is read to its last whole line; another fault is told', () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-journal-'));
  const file = join(dir, 'machines.jsonl');
  try {
    const token = '{"token":["m","s","1","2"]}';
    writeFileSync(file, `{"instance":5,"life":2}\n${token}\n{"machine":{"id":"m`);
    const journal = new Journal(dir, 9);
    journal.close();
    assert.deepEqual([journal.instance, journal.life], [5, 3]);
    assert.equal(journal.left.tokens[0]?.sequenceNumber, 2n);
    writeFileSync(file, `{"instance":5,"li\n${token}\n`);
    assert.throws(() => new Journal(dir, 9), /machines\.jsonl, line 1: /);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
