import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { parseConfiguration } from './configuration.ts';
import { createProfile } from '../profile.ts';

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

test('what is no configuration is refused with what was expected', () => {
  const textOf = (value: JsonValue): string => {
    const parsed = parseConfiguration(value);
    return parsed.ok ? '' : parsed.errors.join();
  };
  assert.equal(textOf(5), 'the configuration is no object');
  assert.equal(textOf({}), "Object 'Kind' is missing");
  assert.match(textOf({ ...HEAD, kind: 'Pod' }), /^no kind "Pod" is registered for version/);
  assert.match(
    textOf({ ...HEAD, apiVersion: 'kubescheduler.config.k8s.io/v1beta3' }),
    /^no kind "KubeSchedulerConfiguration" is registered for version ".*v1beta3" in scheme "/,
  );
});

test('arguments of a type that nobody knows are refused, points for whole groups are taken', () => {
  const args = { kind: 'Wrong', apiVersion: 'x' };
  const profiles = [{ pluginConfig: [{ name: 'NodeAffinity', args }] }];
  const where = 'decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeAffinity';
  const scheme = 'scheme "pkg/runtime/scheme.go:111"';
  assert.deepEqual(errorsOf({ profiles }), [
    `${where}: no kind "Wrong" is registered for version "x" in ${scheme}`,
  ]);
  const plugins = { placementGenerate: { enabled: [] }, placementScore: {} };
  assert.deepEqual(errorsOf({ profiles: [{ schedulerName: 's', plugins }] }), []);
});

test('a strategy that needs a shape and has none is refused', () => {
  const args = { scoringStrategy: { type: 'RequestedToCapacityRatio' } };
  const profiles = [{ pluginConfig: [{ name: 'NodeResourcesFit', args }] }];
  assert.match(errorsOf({ profiles }).join(), /scoringStrategy.shape: Required value/);
});

test('devices may be waited for as long as the arguments say, but no less than a second', () => {
  const refusal = (bindingTimeout: string): readonly string[] => {
    const pluginConfig = [{ name: 'DynamicResources', args: { bindingTimeout } }];
    return errorsOf({ profiles: [{ pluginConfig }] });
  };
  assert.deepEqual(refusal('2m'), []);
  const path = 'profiles[0].pluginConfig[0].args.bindingTimeout';
  assert.deepEqual(refusal('1ms'), [`${path}: Invalid value: "1ms": must be at least 1 second`]);
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
