import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseYaml, readYaml } from './yaml-body.ts';

test('points, times and numbers to the base of 60 are text, as upstream reads them', () => {
  const text = [
    'fields: {.: {}}',
    'day: 2001-12-14',
    'time: 2026-01-02T03:04:05Z',
    'ports: 22:22',
    'ratio: 1:30.5',
    'half: .5',
    'large: 1_0.5',
  ].join('\n');
  assert.deepEqual(parseYaml(text), {
    value: {
      fields: { '.': {} },
      day: '2001-12-14',
      time: '2026-01-02T03:04:05Z',
      ports: '22:22',
      ratio: '1:30.5',
      half: 0.5,
      large: 10.5,
    },
  });
});

test('octal numbers of YAML 1.2 are numbers, and those that no double holds are text', () => {
  assert.deepEqual(parseYaml('a: 0o17\nb: -0O1_7\nc: 0o9\nd: 1e400\ne: 1e3\nf: -1.5e999'), {
    value: { a: 15, b: -15, c: '0o9', d: '1e400', e: 1000, f: '-1.5e999' },
  });
});

test('what JSON has no number for is refused in the words of its encoder', () => {
  assert.deepEqual(parseYaml('a: [{b: -.inf}]'), { error: 'json: unsupported value: -Inf' });
  assert.deepEqual(parseYaml('a: .nan'), { error: 'json: unsupported value: NaN' });
});

test('aliases and depths that cannot be followed are refused in words, not by exceptions', () => {
  const error = (text: string): string => {
    const read = parseYaml(text);
    return 'error' in read ? read.error : JSON.stringify(read.value);
  };
  const level = (i: number): string =>
    `a${i}: &a${i} [${Array(9)
      .fill(`*a${i - 1}`)
      .join()}]`;
  const bomb = ['a0: &a0 [x]', ...[1, 2, 3, 4, 5, 6].map(level)].join('\n');
  assert.equal(error(bomb), 'yaml: document contains excessive aliasing');
  assert.equal(error('a: *nope'), "yaml: unknown anchor 'nope' referenced");
  assert.equal(error('a: &x [*x]'), "yaml: anchor 'x' value contains itself");
  const many = `a: &a b\nc: [${Array(500).fill('*a').join()}]`;
  assert.match(error(many), /"b","b"/);
  const large = `a: &a ${'x'.repeat(100_000)}\nc: [${Array(500).fill('*a').join()}]`;
  assert.equal(error(large), 'yaml: document contains excessive aliasing');
  assert.match(error('a: {<<: 3}'), /^yaml: map merge requires map or sequence of maps/);
  assert.match(error(`a: ${'['.repeat(9000)}`), /^yaml: values are nested too deeply$/);
});

test('an alias takes no walk through all of the document', () => {
  const msOf = (map: string): number => {
    const lines = Array.from({ length: 6000 }, (_, index) => `a${index}: ${map}`);
    const before = process.cpuUsage().user;
    const read = parseYaml(['b: &b {x: 1}', 'c: &c [2]', ...lines].join('\n'));
    const spentMs = (process.cpuUsage().user - before) / 1000;
    assert.ok('value' in read, JSON.stringify(read));
    assert.deepEqual((read.value as { a5999: object }).a5999, { d: [2], x: 1 });
    return spentMs;
  };
  msOf('{x: 1, d: [2]}');
  const [plainMs, aliasMs] = [msOf('{x: 1, d: [2]}'), msOf('{<<: *b, d: *c}')];
  assert.ok(aliasMs < 4 * plainMs, `${aliasMs} ms, beside ${plainMs} ms without aliases`);
});

test('a member may have any name, and changes nothing but itself', () => {
  const read = parseYaml('a: {__proto__: {b: 1}, constructor: 2}');
  assert(!('error' in read));
  assert.equal(JSON.stringify(read.value), '{"a":{"__proto__":{"b":1},"constructor":2}}');
  assert.equal(Reflect.get(Object.prototype, 'b'), undefined);
});

test('what upstream does not take for YAML 1.1 is refused, and what it decodes is decoded', () => {
  const cases: Readonly<Record<string, unknown>> = {
    'a: \u0007': 'yaml: control characters are not allowed',
    '%YAML 1.2\n---\na: b': 'yaml: found incompatible YAML document',
    '%FOO\n---\na: b': 'yaml: found unknown directive name',
    '...': 'yaml: did not find expected node content',
    '{"a": "\\ud83d\\ude00"}': 'yaml: found invalid Unicode character escape code',
    'a: @b': 'yaml: found character that cannot start any token',
    'b: 1\na: "\\q"': 'yaml: line 2: found unknown escape character',
    '{a: b}: c': 'yaml: invalid map key: map[interface {}]interface {}{"a":"b"}',
    '~: x': 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "x"',
    'a: !!binary "x!"': 'yaml: !!binary value contains invalid base64 data',
    '%YAML 1.1\n---\na: b': { a: 'b' },
    'a: !!binary eA==': { a: 'x' },
    'a: !!float 1': { a: 1 },
    'a: b\rc: d\r': { a: 'b', c: 'd' },
  };
  for (const [text, wanted] of Object.entries(cases)) {
    const read = parseYaml(text);
    assert.deepEqual('error' in read ? read.error : read.value, wanted, text);
  }
});

interface NumberVector {
  readonly text?: string;
  readonly json?: string;
  readonly hex?: string;
  readonly error?: string;
}

test('numbers are the JSON that Go makes of them, and what is no UTF-8 is refused', () => {
  const file = join(import.meta.dirname, 'go-yaml.vectors');
  for (const vector of JSON.parse(readFileSync(file, 'utf8')) as readonly NumberVector[]) {
    const { text = '', hex = '', json, error } = vector;
    const value = hex === '' ? Buffer.from(text) : Buffer.from(hex, 'hex');
    const read = readYaml(Buffer.concat([Buffer.from('a: '), value, Buffer.from('\n')]));
    if ('error' in read) assert.equal(read.error, error, JSON.stringify(vector));
    else assert.equal(Buffer.from(read.json).toString(), `{"a":${json}}`, text);
  }
});

test('a number of millions of digits is read in no more steps than it has', () => {
  const read = readYaml(`a: ${'9'.repeat(300)}\nb: 0x${'f'.repeat(300_000)}`);
  assert.ok('json' in read);
  assert.match(Buffer.from(read.json).toString(), /^\{"a":1e\+300,"b":"0xfff/);
});
