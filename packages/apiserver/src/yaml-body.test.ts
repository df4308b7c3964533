import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYaml } from './yaml-body.ts';

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
