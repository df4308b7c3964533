import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson } from '@megaplane/machinery/json-text';
import { parseYaml } from './yaml/yaml-body.ts';
import { yamlText } from './printed-text.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 500 : 20_000;

test('objects are printed as kubectl users know them', () => {
  const object = {
    metadata: {
      name: 'a',
      creationTimestamp: '2026-01-02T03:04:05Z',
      managedFields: [{ manager: 'm', fieldsV1: { 'f:data': { '.': {}, 'k:{"name":"c"}': {} } } }],
      annotations: { b: '', a: 'true', a10: '1', a9: 'x: y', n: "it's # one" },
      finalizers: [],
    },
    data: { script: '#!/bin/sh\necho\n', end: 'a\nb', tab: 'a\tb', 'x.y/z': '-', y: '1e+3' },
    status: null,
    replicas: 3,
  };
  assert.equal(
    yamlText(object),
    `data:
  end: |-
    a
    b
  script: |
    #!/bin/sh
    echo
  tab: "a\\tb"
  x.y/z: '-'
  "y": "1e+3"
metadata:
  annotations:
    a: "true"
    a9: 'x: y'
    a10: "1"
    b: ""
    "n": 'it''s # one'
  creationTimestamp: "2026-01-02T03:04:05Z"
  finalizers: []
  managedFields:
  - fieldsV1:
      f:data:
        .: {}
        k:{"name":"c"}: {}
    manager: m
  name: a
replicas: 3
status: null
`,
  );
});

test('a long string is folded at the first space beyond column 80', () => {
  const words = 'word '.repeat(20).trim();
  assert.equal(yamlText({ a: words }), `a: ${'word '.repeat(15)}word\n  word word word word\n`);
});

test('what is printed is read as what it was', () => {
  const text = fc.oneof(
    fc.string(),
    fc
      .array(
        fc.constantFrom(' ', '\n', ':', '#', '-', 'a', '1', '"', "'", '.', 'true', 'é', '\u0001'),
      )
      .map((parts) => parts.join('')),
  );
  // the library takes some texts for numbers that upstream's does not: `.`, `0.`, `1e3`
  const isOdd = (one: string): boolean => /^[-+]?[0-9_]*\.?[0-9_]*([eE][-+]?[0-9]*)?$/.test(one);
  const safe = text.filter((one) => !isOdd(one) || one === '');
  const key = fc
    .stringMatching(/^[A-Za-z0-9.:{}"/_-]{1,20}$/)
    .filter((one) => one !== '__proto__' && !isOdd(one));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      safe,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }));
  fc.assert(
    fc.property(value, (one) => {
      const read = parseYaml(yamlText({ one } as Parameters<typeof yamlText>[0]));
      assert.deepEqual(read, { value: { one } });
    }),
    { numRuns: RUNS },
  );
});

test('breaks of lines that other readers fold are written by their names', () => {
  const text = 'a\u2028b \u2029 c\u0085\u2028';
  const yaml = yamlText({ text });
  assert.equal(yaml, 'text: "a\\Lb \\P c\\N\\L"\n');
  assert.deepEqual(parseYaml(yaml), { value: { text } });
});

test('a string that is almost a number of a hundred kilobytes is printed in time', () => {
  const before = process.cpuUsage();
  yamlText({ a: `${'0'.repeat(100_000)}!` });
  const { user } = process.cpuUsage(before);
  assert(user < 1_500_000, `${user / 1000} ms`);
});

test('what is printed of a large value costs no more for each of its parts', () => {
  const costMs = (parts: number): number => {
    const items = Array.from({ length: parts }, (_, index) => ({ name: `item-${index}`, index }));
    const used = process.cpuUsage();
    const text = yamlText({ items });
    const { user, system } = process.cpuUsage(used);
    assert.equal(text.split('\n').length, 2 * parts + 2);
    return (user + system) / 1000;
  };
  costMs(2000);
  const few = Math.max(1, costMs(2000));
  assert.ok(costMs(40_000) < 100 * few, 'twenty times as much takes a hundred times as long');
});

test('numbers are written as upstream’s library writes what it reads of JSON', () => {
  for (const [json, yaml] of [
    ['1000000', '1000000'],
    ['100000.5', '100000.5'],
    ['1234567.5', '1.2345675e+06'],
    ['123456789.12345679', '1.2345678912345679e+08'],
    ['0.0001', '0.0001'],
    ['0.00001', '1e-05'],
    ['1e-7', '1e-07'],
    ['1e20', '1e+20'],
    ['1e300', '1e+300'],
    ['9007199254740993', '9007199254740993'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['18446744073709551616', '1.8446744073709552e+19'],
  ] as const) {
    assert.equal(yamlText(parseJson(json)), `${yaml}\n`, json);
  }
});
