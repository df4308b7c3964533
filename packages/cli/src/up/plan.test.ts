import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENGINE_FLAGS } from '../service/huge-pages.ts';
import { clusterBytes, crowd, refusal } from './capacity.ts';
import { childPlan, chosenComponents } from './plan.ts';
import type { UpOptions } from './plan.ts';

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

test('pods that find no place are told of, with how many nodes they need', () => {
  assert.equal(crowd(1100, 10), undefined);
  assert.match(crowd(1101, 10) ?? '', /1101 pods do not fit on 10 nodes.*1 would.*--nodes 11/);
});

test('an API server has the same young generation, whoever starts it', () => {
  const options = { securePort: 0, dataDir: '/srv', logLevel: 'info', logFormat: 'text' };
  const { runtimeFlags } = childPlan('apiserver', options as UpOptions);
  assert.deepEqual(runtimeFlags.slice(1), ENGINE_FLAGS.get('apiserver'));
});

test('a path that is too long for a socket leaves the socket out, not the cluster', () => {
  const options = { securePort: 0, logLevel: 'info', logFormat: 'text' } as UpOptions;
  const flagsOf = (dataDir: string): readonly string[] =>
    childPlan('apiserver', { ...options, dataDir }).args;
  assert(flagsOf('/srv/cluster').includes('--unix-socket'));
  assert(!flagsOf(`/srv/${'x'.repeat(100)}`).includes('--unix-socket'));
});

test('scheduler and controllers say how they are at usual ports that are free', () => {
  const options = { dataDir: '/srv', logLevel: 'info', logFormat: 'text' } as UpOptions;
  const ports = { schedulerPort: 10_259, controllersPort: 10_257 };
  for (const [component, port] of [
    ['scheduler', '10259'],
    ['controllers', '10257'],
  ] as const) {
    const { args } = childPlan(component, { ...options, ...ports });
    assert.equal(args[args.indexOf('--secure-port') + 1], port);
    assert(!childPlan(component, options).args.includes('--secure-port'));
  }
});

test('the API server is told of the journal whose group keeps the objects', () => {
  const journal = 'nats://127.0.0.1:4222/group';
  const some = { dataDir: '/srv', securePort: 0, logLevel: 'info', logFormat: 'text' };
  const { args } = childPlan('apiserver', { ...some, journal } as UpOptions);
  assert.equal(args[args.indexOf('--journal') + 1], journal);
  assert(!childPlan('apiserver', some as UpOptions).args.includes('--journal'));
});
