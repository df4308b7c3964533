import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import fc from 'fast-check';
import { planSlices } from './endpoint-slices.ts';
import type { Backend } from './service-endpoints.ts';
import { TopologyHints, type ZoneShares } from './topology-hints.ts';

const HALVES: ZoneShares = new Map([
  ['za', 0.5],
  ['zb', 0.5],
]);

/** A service that asks for hints, with its slices as the server has them. */
class Hinted {
  slices: JsonObject[] = [];
  writes = 0;
  mode = 'Auto';
  readonly #hints = new TopologyHints();

  /** What events say. */
  sync(backends: readonly Backend[], shares: ZoneShares): string[] {
    const annotations = { 'service.kubernetes.io/topology-mode': this.mode };
    const service = {
      metadata: { name: 's', namespace: 'default', uid: 'u', annotations },
      spec: { selector: { app: 'web' }, ipFamilies: ['IPv4'], ports: [{ port: 80 }] },
    };
    const topology = { hints: this.#hints, shares };
    const plan = planSlices(service, backends, this.slices, '', topology);
    const nameOf = (slice: JsonObject): string => stringAt(slice, 'metadata', 'name');
    const gone = new Set([...plan.delete, ...plan.update].map(nameOf));
    const made = plan.create.map((slice, at) => ({
      ...slice,
      metadata: { ...(slice['metadata'] as JsonObject), name: `${this.writes}-${at}` },
    }));
    const kept = this.slices.filter((slice) => !gone.has(nameOf(slice)));
    this.slices = [...kept, ...plan.update, ...made];
    this.writes += plan.create.length + plan.update.length + plan.delete.length;
    return plan.events.map((one) => `${one.type} ${one.message}`);
  }

  /** Endpoints by the zone that they are hinted at; '' for none. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const endpoint of this.slices.flatMap((slice) => listAt(slice, 'endpoints'))) {
      const zones = listAt(endpoint, 'hints', 'forZones').map((one) => stringAt(one, 'name'));
      counts[zones.join()] = (counts[zones.join()] ?? 0) + 1;
    }
    return counts;
  }
}

function backendsIn(zone: string, count: number, from = 0): Backend[] {
  return Array.from({ length: count }, (_, index) => ({
    uid: `uid-${from + index}`,
    namespace: 'default',
    name: `p${from + index}`,
    node: 'n',
    addresses: [`10.0.0.${from + index}`],
    hostname: '',
    subdomain: '',
    ports: [],
    isReady: true,
    isTerminating: false,
    readyS: 0,
    zone,
  }));
}

test('zones get endpoints by their share of the processors, and keep them', () => {
  const service = new Hinted();
  const seven = backendsIn('za', 7);
  const enabled = ['Normal Topology Aware Hints has been enabled, addressType: IPv4'];
  assert.deepEqual(service.sync(seven, HALVES), enabled);
  assert.deepEqual(service.counts(), { za: 4, zb: 3 });
  const { writes } = service;
  assert.deepEqual(service.sync(seven, HALVES), []);
  assert.equal(service.writes, writes, 'at rest nothing is written');
  service.mode = 'Disabled';
  assert.deepEqual(service.sync(seven, HALVES), [
    'Warning Topology Aware Hints has been disabled, addressType: IPv4',
  ]);
  assert.deepEqual(service.counts(), { '': 7 });
  assert.deepEqual(service.sync(seven, HALVES), []);
});

test('there are no hints where nodes do not tell enough, or endpoints are too few', () => {
  const service = new Hinted();
  const why = (backends: Backend[], shares: ZoneShares): string[] => service.sync(backends, shares);
  const family = 'addressType: IPv4';
  assert.deepEqual(why(backendsIn('za', 3), undefined), [
    'Warning Insufficient Node information: allocatable CPU or zone not specified on one or more ' +
      `nodes, ${family}`,
  ]);
  assert.deepEqual(why(backendsIn('za', 1), HALVES), [
    `Warning Insufficient number of endpoints (1 endpoints, 2 zones), ${family}`,
  ]);
  assert.deepEqual(why(backendsIn('za', 3), HALVES), [
    'Warning Unable to allocate minimum required endpoints to each zone without exceeding ' +
      `overload threshold (3 endpoints, 2 zones), ${family}`,
  ]);
  assert.deepEqual(why([...backendsIn('za', 3), ...backendsIn('', 3, 3)], HALVES), [
    `Warning One or more endpoints do not have a zone specified, ${family}`,
  ]);
  assert.deepEqual(service.counts(), { '': 6 });
});

const zones = fc.dictionary(fc.constantFrom('za', 'zb', 'zc'), fc.integer({ min: 1, max: 16 }), {
  minKeys: 2,
});
const placed = fc.array(fc.constantFrom('za', 'zb', 'zc'), { maxLength: 250 });

test('hints of any cluster overload no zone by much more than a fifth', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(zones, placed), { minLength: 1, maxLength: 4 }), (states) => {
      const service = new Hinted();
      for (const [processors, anywhere] of states) {
        const places = anywhere.filter((zone) => zone in processors);
        const total = Object.values(processors).reduce((sum, one) => sum + one, 0);
        const shares = new Map(Object.entries(processors).map(([z, one]) => [z, one / total]));
        const backends = places.flatMap((zone, index) => backendsIn(zone, 1, index));
        service.sync(backends, shares);
        const counts = service.counts();
        if (counts[''] !== undefined) {
          assert.equal(counts[''], places.length, 'all or none');
          continue;
        }
        for (const [zone, share] of shares) {
          // As upstream: a zone that is over by less than half of an endpoint gives none.
          const least = Math.ceil((places.length * share) / 1.2) - 1;
          assert((counts[zone] ?? 0) >= least, `${zone}: ${counts[zone]} of at least ${least}`);
        }
      }
    }),
    { numRuns: 50 },
  );
});
