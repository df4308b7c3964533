import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { needOf } from './cell.ts';
import { rollUp } from './full.ts';

const STRICT = { groupsByNamespace: false };

function request(spec: JsonObject, more: JsonObject = {}, namespace = 'default'): JsonObject {
  const whole = { priority: 0, resources: { cpu: '1' }, ...spec };
  return { metadata: { name: 'r', namespace }, spec: whole, ...more };
}

function fingerprints(...requests: readonly JsonObject[]): string[] {
  return rollUp(requests, STRICT).rows.map((row) => row.fingerprint);
}

function groups(...coLocations: readonly JsonObject[]): string[] {
  const requests = coLocations.map((coLocation) => request({ coLocation }));
  return rollUp(requests, STRICT).rows.map((row) => row.group);
}

test('a fingerprint tells priority, buckets, requirements and hard spread', () => {
  const spec = {
    priority: -7,
    interruptionPenalty: 8,
    reclamationPenalty: '0.5',
    requirements: [
      { key: 'b', operator: 'In', values: ['9', '10', 'B', 'a', 'é'] },
      { key: 'b', operator: 'DoesNotExist' },
      { key: 'a', operator: 'NotIn', values: ['x', 'x'] },
      { key: 'c', operator: 'Exists', values: null },
    ],
    topologySpread: [
      { topologyKey: 'z', maxSkew: 2, whenUnsatisfiable: 'DoNotSchedule' },
      { topologyKey: 'y', maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway' },
      { topologyKey: 'x', maxSkew: -1, whenUnsatisfiable: 'DoNotSchedule' },
    ],
    coLocation: { topologyKey: 'b' },
  };
  assert.deepEqual(fingerprints(request(spec)), [
    'p=-7|ipb=6|rpb=2|reqs=a:2:x,x;b:1:10,9,B,a,é;b:4:;b:5:;c:3:;|spr=x:-1:1;z:2:1;',
  ]);
});

test('requests of one profile and group are one row, sums and largest units by resource', () => {
  const { rows, pending } = rollUp(
    [
      request({ resources: { cpu: '1500m', memory: '1Gi' } }),
      request({ resources: { cpu: '250m', memory: '3Gi', gpu: 0 } }, { status: { phase: '' } }),
      request({ resources: { memory: '1' } }, { status: { phase: 'Acknowledged' } }),
      request({ priority: 1, resources: {} }, { status: { phase: 'Other' } }),
    ],
    STRICT,
  );
  const [first, second] = rows.map(needOf);
  assert.equal(rows.length, 2);
  assert.deepEqual(first?.aggregateResources, {
    ...{ cpu: '1750m', memory: '4294967297', gpu: '0' },
  });
  assert.deepEqual(first?.minUnit, { cpu: '1500m', memory: '3Gi', gpu: '0' });
  assert.deepEqual([second?.priority, second?.aggregateResources], [1, {}]);
  assert.deepEqual(pending, ['default/r', 'default/r']);
});

test('a gang is a topology key and a selector in canonical form', () => {
  assert.deepEqual(
    groups(
      { topologyKey: '' },
      { topologyKey: 'rack' },
      { topologyKey: 'rack', labelSelector: null },
      { topologyKey: 'rack', labelSelector: {} },
      { topologyKey: 'rack', labelSelector: { matchLabels: { b: '2', a: '1' } } },
      {
        topologyKey: 'rack',
        labelSelector: {
          matchExpressions: [
            { key: 'a', operator: 'NotIn', values: ['z', 'y'] },
            { key: 'a', operator: 'Exists' },
          ],
        },
      },
    ),
    ['', 'rack\0', 'rack\0;', 'rack\0a=1,b=2,;', 'rack\0;a Exists ;a NotIn y,z;'],
  );
});

test('gangs of two namespaces are one for the reference, and two by option', () => {
  const coLocation = { topologyKey: 'rack' };
  const requests = [request({ coLocation }, {}, 'x'), request({ coLocation }, {}, 'y')];
  assert.equal(rollUp(requests, STRICT).rows.length, 1);
  const { rows } = rollUp(requests, { groupsByNamespace: true });
  assert.deepEqual(
    rows.map(({ group }) => group),
    ['rack\0\0x', 'rack\0\0y'],
  );
});

test('what cannot be carried is left out with its reason, and nothing else suffers', () => {
  const cases: readonly (readonly [JsonObject, string, RegExp])[] = [
    [
      { requirements: [{ key: 'a', operator: 'Gt', values: ['1'] }] },
      'UnknownOperator',
      /"Gt" on a/,
    ],
    [{ requirements: [{ key: 'a', operator: 'in' }] }, 'UnknownOperator', /"in"/],
    [{ requirements: [{ key: 'a', operator: 'Same' }] }, 'UnknownOperator', /"Same"/],
    [{ requirements: [{ key: 'a', operator: 'constructor' }] }, 'UnknownOperator', /constructor/],
    [{ requirements: [{ key: 'a', operator: 'In', values: [1] }] }, 'MalformedSpec', /values/],
    [{ resources: { cpu: '1Q' } }, 'MalformedQuantity', /resources\[cpu\]: "1Q"/],
    [{ resources: { cpu: {} } }, 'MalformedQuantity', /resources\[cpu\]/],
    [{ interruptionPenalty: 'lots' }, 'MalformedQuantity', /interruptionPenalty: "lots"/],
    [{ reclamationPenalty: true }, 'MalformedQuantity', /reclamationPenalty/],
    [{ priority: 2 ** 31 }, 'MalformedSpec', /priority/],
    [{ priority: 0.5 }, 'MalformedSpec', /priority/],
    [
      { topologySpread: [{ topologyKey: 'z', maxSkew: 1e10, whenUnsatisfiable: 'DoNotSchedule' }] },
      'MalformedSpec',
      /maxSkew/,
    ],
  ];
  for (const [spec, reason, message] of cases) {
    const { rows, skipped, pending } = rollUp([request({}), request(spec, {}, 'bad')], STRICT);
    const refusal = skipped.get('bad/r');
    assert.equal(refusal?.reason, reason, JSON.stringify(spec));
    assert.match(refusal?.message ?? '', message);
    assert.deepEqual([rows.length, skipped.size, pending], [1, 1, ['default/r']]);
  }
  const bare = rollUp([{ metadata: { name: 'r', namespace: 'n' } }], STRICT);
  assert.equal(bare.skipped.get('n/r')?.reason, 'MalformedSpec');
});

test('a resource may have any name', () => {
  const resources = JSON.parse('{"__proto__":"2","constructor":"3"}') as JsonObject;
  const [need] = rollUp([request({ resources }), request({ resources })], STRICT).rows.map(needOf);
  assert.deepEqual(Object.entries(need?.aggregateResources ?? {}), [
    ['__proto__', '4'],
    ['constructor', '6'],
  ]);
});
