import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import fc from 'fast-check';
import { ENDPOINTS_PER_SLICE_MAX, planSlices } from './endpoint-slices.ts';
import { ADDRESSES_MAX, planEndpoints } from './endpoints-object.ts';
import { TriggerTimes, type Backend } from './service-endpoints.ts';
import { TopologyHints } from './topology-hints.ts';

const SERVICE: JsonObject = {
  metadata: {
    name: 's',
    namespace: 'default',
    uid: 'u',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: {
    selector: { app: 'web' },
    ipFamilies: ['IPv4'],
    ports: [{ name: 'http', port: 80, targetPort: 'web', protocol: 'TCP' }],
  },
};

const NO_TOPOLOGY = { hints: new TopologyHints(), shares: undefined };

function backend(index: number, port: number, isReady: boolean): Backend {
  return {
    uid: `uid-${index}`,
    namespace: 'default',
    name: `p${index}`,
    node: 'n1',
    addresses: [`10.0.${index >> 8}.${index & 255}`],
    hostname: '',
    subdomain: '',
    ports: [['web', 'TCP', port]],
    isReady,
    isTerminating: false,
    readyS: 0,
    zone: '',
  };
}

/** Carries a plan out as the server would. */
class Slices {
  readonly all: Map<string, JsonObject> = new Map();
  writes = 0;
  #names = 0;

  sync(backends: readonly Backend[]): void {
    const plan = planSlices(SERVICE, backends, [...this.all.values()], '', NO_TOPOLOGY);
    for (const slice of plan.delete) this.all.delete(stringAt(slice, 'metadata', 'name'));
    for (const slice of plan.update) this.all.set(stringAt(slice, 'metadata', 'name'), slice);
    for (const slice of plan.create) {
      const name = `s-${++this.#names}`;
      const metadata = { ...(slice['metadata'] as JsonObject), name };
      this.all.set(name, { ...slice, metadata });
    }
    this.writes = plan.delete.length + plan.update.length + plan.create.length;
  }
}

const state = fc.array(
  fc.record({
    index: fc.nat({ max: 400 }),
    port: fc.constantFrom(80, 8080),
    isReady: fc.boolean(),
  }),
  { maxLength: 330 },
);

test('slices hold every endpoint once, a hundred at most, and then nothing is written', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 1, maxLength: 4 }), (states) => {
      const slices = new Slices();
      for (const pods of states) {
        const unique = new Map(pods.map((one) => [one.index, one]));
        const backends = [...unique.values()].map((one) =>
          backend(one.index, one.port, one.isReady),
        );
        slices.sync(backends);
        const held: string[] = [];
        for (const slice of slices.all.values()) {
          const endpoints = listAt(slice, 'endpoints');
          assert(endpoints.length <= ENDPOINTS_PER_SLICE_MAX);
          for (const one of endpoints) {
            const port = listAt(slice, 'ports')[0];
            const ready = (one as { conditions: { ready: boolean } }).conditions.ready;
            held.push(`${stringAt(one, 'targetRef', 'uid')} ${numberAt(port, 'port')} ${ready}`);
          }
        }
        const wanted = backends.map((one) => `${one.uid} ${one.ports[0]?.[2]} ${one.isReady}`);
        assert.deepEqual(held.toSorted(), wanted.toSorted());
        assert(slices.all.size >= 1, 'a service without pods has an empty slice');
        slices.sync(backends);
        assert.equal(slices.writes, 0, 'at rest nothing is written');
      }
    }),
    { numRuns: 40 },
  );
});

test('one pod more or less costs one write, however many there are', () => {
  const slices = new Slices();
  const backends = Array.from({ length: 950 }, (_, index) => backend(index, 80, true));
  slices.sync(backends);
  assert.equal(slices.all.size, 10);
  slices.sync(backends.slice(1));
  assert.equal(slices.writes, 1);
  slices.sync([...backends.slice(1), backend(2_000, 80, true)]);
  assert.equal(slices.writes, 1);
});

test('Endpoints hold a thousand addresses at most, the ready ones first', () => {
  const backends = Array.from({ length: 1_200 }, (_, index) => backend(index, 80, index >= 300));
  const object = planEndpoints(SERVICE, backends, undefined, '') ?? {};
  const [subset] = listAt(object, 'subsets');
  assert.equal(listAt(subset, 'addresses').length, 900);
  assert.equal(listAt(subset, 'notReadyAddresses').length, ADDRESSES_MAX - 900);
  const note = stringAt(object, 'metadata', 'annotations', 'endpoints.kubernetes.io/over-capacity');
  assert.equal(note, 'truncated');
  assert.equal(planEndpoints(SERVICE, backends, object, ''), undefined);
});

test('a change is dated by the earliest news, once', () => {
  const times = new TriggerTimes();
  const format = (seconds: number): string => String(seconds);
  const one = { ...backend(1, 80, true), readyS: 50 };
  const two = { ...backend(2, 80, true), readyS: 40 };
  assert.equal(times.note({ metadata: { creationTimestamp: '60' } }, [one, two], format), '40');
  assert.equal(times.note({ metadata: { creationTimestamp: '60' } }, [one, two], format), '');
  const later = { ...two, readyS: 70 };
  assert.equal(times.note({ metadata: { creationTimestamp: '60' } }, [one, later], format), '70');
});

test('endpoints that can be reached are meant for their zone, and their node, if so wished', () => {
  const hints = (wish: JsonObject, annotations: JsonObject = {}): JsonObject[] => {
    const service = {
      metadata: { ...(SERVICE['metadata'] as JsonObject), annotations },
      spec: { ...(SERVICE['spec'] as JsonObject), ...wish },
    };
    const backends = [true, false].map((isReady, at) => ({
      ...backend(at, 80, isReady),
      zone: 'za',
    }));
    const { create } = planSlices(service, backends, [], '', NO_TOPOLOGY);
    return listAt(create[0], 'endpoints').map((one) => ({ ...(one as JsonObject) }));
  };
  const said = (wish: JsonObject, annotations?: JsonObject): unknown[] =>
    hints(wish, annotations).map((one) => one['hints']);
  const forZones = [{ name: 'za' }];
  assert.deepEqual(said({}), [undefined, undefined]);
  assert.deepEqual(said({ trafficDistribution: 'PreferClose' }), [{ forZones }, undefined]);
  assert.deepEqual(said({ trafficDistribution: 'PreferSameZone' }), [{ forZones }, undefined]);
  const forNodes = [{ name: 'n1' }];
  assert.deepEqual(said({ trafficDistribution: 'PreferSameNode' }), [
    { forZones, forNodes },
    undefined,
  ]);
  const byTopology = { 'service.kubernetes.io/topology-mode': 'Auto' };
  assert.deepEqual(said({ trafficDistribution: 'PreferClose' }, byTopology), [
    undefined,
    undefined,
  ]);
});

test('ports that the same pods serve are one subset of Endpoints, whatever else they serve', () => {
  const ports = [
    { name: 'http', port: 80, targetPort: 'web', protocol: 'TCP' },
    { name: 'admin', port: 81, targetPort: 9090, protocol: 'TCP' },
  ];
  const service = { ...SERVICE, spec: { ...(SERVICE['spec'] as JsonObject), ports } };
  const backends = [
    { ...backend(1, 8080, true), ports: [] },
    backend(2, 8080, true),
    { ...backend(3, 8080, false), ports: [] },
  ];
  const subsets = listAt(planEndpoints(service, backends, undefined, ''), 'subsets').map((one) => ({
    ports: listAt(one, 'ports').map((port) => stringAt(port, 'name')),
    ready: listAt(one, 'addresses').map((address) => stringAt(address, 'targetRef', 'name')),
    notReady: listAt(one, 'notReadyAddresses').length,
  }));
  assert.deepEqual(subsets, [
    { ports: ['admin'], ready: ['p1', 'p2'], notReady: 1 },
    { ports: ['http'], ready: ['p2'], notReady: 0 },
  ]);
});

test('subsets of Endpoints keep their share of what there is room for', () => {
  const backends = Array.from({ length: 1500 }, (_, i) => backend(i, i < 500 ? 8080 : 8081, true));
  const lost = backend(1501, 8080, false);
  const object = planEndpoints(SERVICE, [...backends, lost], undefined, '');
  const subsets = listAt(object, 'subsets');
  assert.deepEqual(
    subsets.map((one) => listAt(one, 'addresses').length),
    [334, 666],
  );
  assert(subsets.every((one) => listAt(one, 'notReadyAddresses').length === 0));
});
