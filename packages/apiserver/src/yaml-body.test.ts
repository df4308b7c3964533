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
