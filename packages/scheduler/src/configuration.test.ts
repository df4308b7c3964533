import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { parseConfiguration } from './configuration.ts';
import { createProfile } from './profile.ts';

const HEAD: JsonObject = {
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
};

function errorsOf(body: JsonObject): readonly string[] {
  const parsed = parseConfiguration({ ...HEAD, ...body });
  return parsed.ok ? [] : parsed.errors;
}

test('what is left out has the defaults', () => {
  const parsed = parseConfiguration(HEAD);
  assert(parsed.ok);
  const { configuration } = parsed;
  assert.equal(configuration.percentageOfNodesToScore, 100);
  assert.equal(configuration.initialBackoffMs, 1000);
  assert.equal(configuration.maxBackoffMs, 10_000);
  assert.equal(configuration.leaderElection.name, 'kube-scheduler');
});

test('another kind, unknown members and what is not supported are refused by name', () => {
  assert.match(errorsOf({ kind: 'Pod' }).join(), /expected kubescheduler/);
  assert.deepEqual(errorsOf({ extenders: [] }), ['extenders: not supported']);
  assert.match(errorsOf({ percentageOfNodesToScore: 101 }).join(), /percentageOfNodesToScore/);
  assert.match(
    errorsOf({ podMaxBackoffSeconds: 1, podInitialBackoffSeconds: 2 }).join(),
    /greater than or equal/,
  );
});

test('profiles are checked: names, points and plugins', () => {
  const profile = (value: JsonObject): string => errorsOf({ profiles: [value] }).join('; ');
  assert.match(profile({ plugins: { scores: {} } }), /plugins\.scores: not supported/);
  const unknown = { plugins: { score: { enabled: [{ name: 'NodeLabel' }] } } };
  assert.match(
    profile(unknown),
    /profiles\[0\]\.plugins\.score\.enabled\[0\]\.name: Invalid value/,
  );
  const removed = { plugins: { filter: { enabled: [{ name: 'EBSLimits' }] } } };
  assert.match(profile(removed), /was removed/);
  const twice = { name: 'NodeAffinity' };
  assert.match(profile({ plugins: { score: { enabled: [twice, twice] } } }), /Duplicate value/);
  const names = errorsOf({ profiles: [{ schedulerName: 'a' }, { schedulerName: 'a' }] });
  assert.deepEqual(names, ['profiles[1].schedulerName: Duplicate value: "a"']);
  const unnamed = errorsOf({ profiles: [{ schedulerName: 'a' }, {}] });
  assert.deepEqual(unnamed, ['profiles[1].schedulerName: Required value']);
});

test('a plugin named in a point goes first there and has the weight given there', () => {
  const { weights, filter } = createProfile({
    plugins: {
      multiPoint: { enabled: [{ name: 'ImageLocality', weight: 3 }] },
      score: { enabled: [{ name: 'NodeAffinity', weight: 9 }] },
      filter: { disabled: [{ name: 'TaintToleration' }] },
    },
  });
  assert.deepEqual([...weights].slice(0, 2), [
    ['NodeAffinity', 9],
    ['TaintToleration', 3],
  ]);
  assert.equal(weights.get('ImageLocality'), 3);
  assert(!filter.some(({ name }) => name === 'TaintToleration'));
});

test('with everything disabled in a point only what is named there runs', () => {
  const { weights } = createProfile({
    plugins: {
      score: { disabled: [{ name: '*' }], enabled: [{ name: 'InterPodAffinity', weight: 4 }] },
    },
  });
  assert.deepEqual([...weights], [['InterPodAffinity', 4]]);
});
