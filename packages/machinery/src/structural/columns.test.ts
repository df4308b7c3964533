import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../json/json-value.ts';
import { customPrinterOf } from './columns.ts';
import { JsonPath } from './json-path.ts';

const NOW = Date.UTC(2026, 0, 2);
const OBJECT: JsonObject = {
  metadata: {
    name: 'w',
    creationTimestamp: '2026-01-01T00:00:00Z',
    annotations: { 'example.com/a.b': 'dotted' },
  },
  spec: { replicas: 3, ratio: 0.5, tags: ['x', 'y'], on: true, map: { b: 1, a: null } },
  status: {
    conditions: [
      { type: 'Synced', status: 'False', n: 1 },
      { type: 'Ready', status: 'True', n: 2 },
    ],
  },
};

function find(path: string): unknown {
  return JsonPath.parse(path)?.find(OBJECT);
}

test('paths lead through fields, indexes, slices, filters, unions and descents', () => {
  assert.deepEqual(find('.spec.replicas'), [3]);
  assert.deepEqual(find(".spec['replicas']"), [3]);
  assert.deepEqual(find(`.metadata.annotations.example\\.com/a\\.b`), ['dotted']);
  assert.deepEqual(find(`.metadata.annotations['example\\.com/a\\.b']`), ['dotted']);
  assert.deepEqual(find('.spec.tags[1]'), ['y']);
  assert.deepEqual(find('.spec.tags[-1]'), ['y']);
  assert.deepEqual(find('.spec.tags[0:1]'), ['x']);
  assert.deepEqual(find('.spec.tags[*]'), ['x', 'y']);
  assert.deepEqual(find(`.status.conditions[?(@.type=="Ready")].status`), ['True']);
  assert.deepEqual(find(`.status.conditions[?(@.type == 'Ready')].status`), ['True']);
  assert.deepEqual(find('.status.conditions[?(@.n > 1)].type'), ['Ready']);
  assert.deepEqual(find('.status.conditions[?(@.none)].type'), []);
  assert.deepEqual(find(`.spec['ratio','on']`), [0.5, true]);
  assert.deepEqual(find('..replicas'), [3]);
  assert.deepEqual(find('.spec.none.deeper'), []);
  assert.deepEqual(find('.spec.replicas.deeper'), []);
});

test('odd paths lead where the parser of client-go leads them', () => {
  assert.deepEqual(find(`.metadata.annotations['example.com/a.b']`), []);
  assert.deepEqual(find('.spec.tags[5]'), []);
  assert.deepEqual(find('.spec.tags[0:9]'), []);
  assert.deepEqual(find('.spec.tags[0:2:2]'), ['x']);
  assert.deepEqual(find('.spec.tags[*].deeper'), []);
  assert.deepEqual(find('.spec.map.*'), [1, null]);
  assert.deepEqual(find('.spec replicas'), []);
  assert.deepEqual(find('.spec .replicas'), [3]);
  assert.deepEqual(find('.spec "text"'), ['text']);
  assert.deepEqual(find('.spec.replicas}{.spec.on'), [3]);
  assert.deepEqual(find('.status.conditions[?(@.type==Ready)].status'), []);
  assert.deepEqual(find('.status.conditions[?(@.n=="2")].status'), []);
});

test('text that is no path is told from one', () => {
  const paths = [
    '.spec[',
    '.spec[x]',
    '.a[?(@.x ==)]',
    '.a.[',
    '.[?(]',
    `.a["b"]`,
    '..*',
    '.a[?(@.b=~"c")]',
  ];
  for (const path of paths) assert.equal(JsonPath.parse(path), null, path);
});

test('columns end before a path that cannot be read', () => {
  const paths = ['.spec.replicas', '.spec["on"]', '.spec.ratio'];
  const columns = paths.map((jsonPath) => ({ name: 'One', type: 'string', jsonPath }));
  const printer = customPrinterOf(columns);
  assert.deepEqual(printer.columns.length, 2);
  assert.deepEqual(printer.row(OBJECT, NOW).cells, ['w', '3']);
});

test('cells have the type of their column, or nothing', () => {
  const column = (name: string, type: string, jsonPath: string): JsonObject => {
    return { name, type, jsonPath };
  };
  const printer = customPrinterOf([
    column('Replicas', 'integer', '.spec.replicas'),
    column('Ratio', 'number', '.spec.ratio'),
    column('On', 'boolean', '.spec.on'),
    column('Tags', 'string', '.spec.tags'),
    column('Map', 'string', '.spec.map'),
    column('Wrong', 'integer', '.spec.on'),
    column('Absent', 'string', '.spec.absent'),
    column('Null', 'string', '.spec.map.a'),
    column('No date', 'date', '.spec.none'),
    column('Age', 'date', '.metadata.creationTimestamp'),
    column('Bad', 'date', '.metadata.name'),
    { ...column('Wide', 'string', '.metadata.name'), priority: 1, description: 'Its name.' },
  ]);
  assert.deepEqual(printer.row(OBJECT, NOW).cells, [
    'w',
    3,
    0.5,
    true,
    '["x","y"]',
    '{"a":null,"b":1}',
    null,
    null,
    '<no value>',
    null,
    '24h',
    '<invalid>',
    'w',
  ]);
  assert.deepEqual(printer.columns.at(-1), {
    name: 'Wide',
    type: 'string',
    format: '',
    description: 'Its name.',
    priority: 1,
  });
  const { description } = printer.columns[1] ?? {};
  assert.equal(
    description,
    'Custom resource definition column (in JSONPath format): .spec.replicas',
  );
  assert.deepEqual(customPrinterOf([]).row(OBJECT, NOW).cells, ['w', '24h']);
});
