import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { parseConfiguration } from './configuration.ts';
import { createProfile } from '../framework/runtime/profile.ts';

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
  // Recorded from kube-scheduler v1.36.1.
  assert.equal(
    textOf(5),
    "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go value of " +
      'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
      'Kind string "json:\\"kind,omitempty\\"" }',
  );
  assert.equal(textOf(null), "Object 'Kind' is missing");
  assert.equal(textOf({}), "Object 'Kind' is missing");
  const shown = parseConfiguration({ ...HEAD, apiVersion: '' }, [], {
    text: 'the text',
    repeated: [],
  });
  assert(!shown.ok);
  assert.equal(shown.errors.join(), "Object 'apiVersion' is missing in 'the text'");
  assert.equal(textOf({ ...HEAD, apiVersion: 'a/b/c' }), 'unexpected GroupVersion string: a/b/c');
  assert.equal(
    textOf({ ...HEAD, apiVersion: 5 }),
    "couldn't get version/kind; json parse error: json: cannot unmarshal number into " +
      'Go struct field .apiVersion of type string',
  );
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

test('arguments of another version are refused', () => {
  const args = { apiVersion: 'x/y' };
  const profiles = [{ pluginConfig: [{ name: 'NodeAffinity', args }] }];
  assert.deepEqual(errorsOf({ profiles }), [
    'decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeAffinity: no kind ' +
      '"NodeAffinityArgs" is registered for version "x/y" in scheme "pkg/runtime/scheme.go:111"',
  ]);
});

test('a duration that is none is told before all that was of a wrong type', () => {
  const election = { leaseDuration: 'x', leaderElect: 5 };
  const where = 'Go struct field KubeSchedulerConfiguration.DebuggingConfiguration';
  assert.deepEqual(errorsOf({ enableProfiling: 5, leaderElection: election }), [
    'time: invalid duration "x"',
  ]);
  assert.deepEqual(errorsOf({ enableProfiling: 5 }), [
    `json: cannot unmarshal number into ${where}.enableProfiling of type bool`,
  ]);
  assert.deepEqual(errorsOf({ extenders: [{ httpTimeout: 5 }] }), [
    'json: cannot unmarshal number into Go struct field Extender.extenders.httpTimeout ' +
      'of type string',
  ]);
});

test('profiles of which one says nothing of queue sort and one an empty list are the same', () => {
  const empty = { schedulerName: 'b', plugins: { queueSort: { enabled: [] } } };
  assert.deepEqual(errorsOf({ profiles: [{ schedulerName: 'a' }, empty] }), []);
});

test('a strategy has a shape where it needs one, and nowhere else', () => {
  const refusal = (scoringStrategy: JsonObject): string => {
    const pluginConfig = [{ name: 'NodeResourcesFit', args: { scoringStrategy } }];
    return errorsOf({ profiles: [{ pluginConfig }] }).join();
  };
  const path = 'scoringStrategy.requestedToCapacityRatio';
  const needing = refusal({ type: 'RequestedToCapacityRatio' });
  assert(needing.includes(`${path}: Required value: must be specified when type is`), needing);
  const other = refusal({ type: 'LeastAllocated', requestedToCapacityRatio: {} });
  assert(other.includes(`${path}: Forbidden: must be nil when type is not`), other);
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

test('weights are summed in the order of the file, so that one below zero may come last', () => {
  const parsed = (names: readonly string[]): boolean => {
    const enabled = names.map((name) =>
      name === 'ImageLocality' ? { name, weight: -1 } : { name },
    );
    const multiPoint = { disabled: [{ name: '*' }], enabled: [] };
    const queue = { queueSort: { enabled: [{ name: 'PrioritySort' }] } };
    const bind = { bind: { enabled: [{ name: 'DefaultBinder' }] } };
    const plugins = { multiPoint, ...queue, ...bind, score: { enabled } };
    const kind = 'KubeSchedulerConfiguration';
    const apiVersion = 'kubescheduler.config.k8s.io/v1';
    const profiles = [{ schedulerName: 'one', plugins }];
    return parseConfiguration({ apiVersion, kind, profiles }).ok;
  };
  assert.ok(parsed(['NodeAffinity', 'ImageLocality']));
  assert.ok(!parsed(['ImageLocality', 'NodeAffinity']));
});
