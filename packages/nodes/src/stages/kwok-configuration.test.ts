import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readKwokDefaults } from './kwok-configuration.ts';

const HEAD = 'apiVersion: config.kwok.x-k8s.io/v1alpha1\nkind: KwokConfiguration';
const read = (options: string, warnings: string[] = []): object =>
  readKwokDefaults('kwok.yaml', `kind: Stage\n---\n${HEAD}\noptions: ${options}\n`, (text) =>
    warnings.push(text),
  );

test('options of a KwokConfiguration are defaults of flags', () => {
  const warnings: string[] = [];
  const found = read(
    '{cidr: 10.1.0.0/16, nodeIP: 10.0.0.9, nodePort: 10250, manageAllNodes: true, ' +
      'manageNodesWithLabelSelector: "a=b", enableCRDs: [Stage], nodePlayStageParallelism: 4}',
    warnings,
  );
  assert.deepEqual(found, {
    cidr: '10.1.0.0/16',
    nodeIp: '10.0.0.9',
    nodePort: 10_250,
    manageAllNodes: true,
    manageNodesWithLabelSelector: 'a=b',
    enableCrds: ['Stage'],
  });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /kwok\.yaml:5:\d+: .*nodePlayStageParallelism.*means nothing/);
});

test('an option that is none, or of another type, is told with its line and column', () => {
  assert.throws(() => read('{cider: 10.1.0.0/16}'), /kwok\.yaml:5:\d+: .*cider/);
  assert.throws(() => read('{nodePort: many}'), /kwok\.yaml:5:\d+: .*nodePort.*number/);
  assert.throws(() => read('{nodePort: 65536}'), /kwok\.yaml:5:\d+: .*nodePort: must lie/);
  assert.throws(() => read('{nodeLeaseDurationSeconds: -1}'), /kwok\.yaml:5:\d+: .*0 or more/);
  assert.throws(() => read('{manageAllNodes: "yes"}'), /kwok\.yaml:5:\d+: .*manageAllNodes/);
});

test('tracing is known, and named where it is asked for', () => {
  const warnings: string[] = [];
  read('{}\ntracing: { endpoint: "localhost:4317", samplingRatePerMillion: 5 }', warnings);
  assert.match(warnings.join(), /kwok\.yaml:6:\d+: tracing\.endpoint: means nothing here/);
  read('{}\ntracing: {}');
});
