import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterBytes, refusal } from './capacity.ts';
import { chosenComponents } from './plan.ts';

test('components are named, or left out of all', () => {
  assert.deepEqual(chosenComponents(['nodes', 'apiserver']), ['apiserver', 'nodes']);
  assert.deepEqual(chosenComponents(['-controllers']), ['apiserver', 'scheduler', 'nodes']);
  assert.match(String(chosenComponents(['-controllers', 'nodes'])), /either name/);
  assert.match(String(chosenComponents(['kubelet'])), /no component "kubelet"/);
  assert.match(String(chosenComponents(['-apiserver'])), /cannot be left out/);
  assert.match(String(chosenComponents(['nodes'])), /cannot be left out/);
});

test('a cluster that does not fit is refused with what it would take and what would fit', () => {
  const memoryBytes = 24 * 2 ** 30;
  assert.equal(refusal(100_000, 100_000, memoryBytes), undefined);
  const text = refusal(10_000_000, 0, memoryBytes) ?? '';
  assert.match(text, /10000000 nodes would take about \d+\.\d GiB; this machine has 24\.0 GiB/);
  const fitting = Number(/--nodes (\d+) would fit/.exec(text)?.[1]);
  assert(clusterBytes(fitting, 0) <= memoryBytes && clusterBytes(fitting + 2000, 0) > memoryBytes);
  assert.match(refusal(1, 100_000_000, memoryBytes) ?? '', /take fewer/);
});
