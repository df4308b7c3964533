import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeInfo } from './node-info.ts';
import { labelsOf } from '../api/objects.ts';
import type { VolumeObject } from './volumes.ts';
import { isReachableOn, translatedVolume } from './volume-topology.ts';

const OLD_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const OLD_REGION = 'failure-domain.beta.kubernetes.io/region';
const ZONE = 'topology.kubernetes.io/zone';
const DRIVERS_ZONE = 'topology.ebs.csi.aws.com/zone';
const annotations = {
  'storage.alpha.kubernetes.io/migrated-plugins': 'kubernetes.io/aws-ebs,kubernetes.io/gce-pd',
};
const LEFT = { metadata: { name: 'n', annotations } };
const KEPT = { metadata: { name: 'n' } };

function volume(required: object | undefined, labels: Record<string, string> = {}): VolumeObject {
  const spec = {
    awsElasticBlockStore: { volumeID: 'vol-1' },
    ...(required === undefined ? {} : { nodeAffinity: { required } }),
  };
  return { kind: 'PersistentVolume', metadata: { name: 'v', labels }, spec };
}

function on(labels: Record<string, string>): Pick<NodeInfo, 'labels'> {
  return { labels: labelsOf(labels) };
}

function within(...expressions: readonly (readonly [string, readonly string[]])[]): object {
  const matchExpressions = expressions.map(([key, values]) => ({ key, operator: 'In', values }));
  return { nodeSelectorTerms: [{ matchExpressions }] };
}

test('zones of a built-in volume are those of its driver where the node leaves it to one', () => {
  const old = volume(within([OLD_ZONE, ['a']], [OLD_REGION, ['r']]));
  const node = on({ [DRIVERS_ZONE]: 'a', 'topology.kubernetes.io/region': 'r' });
  assert.equal(isReachableOn(old, node, LEFT), true);
  assert.equal(isReachableOn(old, node, KEPT), false);
  assert.equal(isReachableOn(old, node, undefined), false);
  const before = on({ [OLD_ZONE]: 'a', [OLD_REGION]: 'r' });
  assert.equal(isReachableOn(old, before, LEFT), false);
  assert.equal(isReachableOn(old, before, KEPT), true);
});

test('zones of the labels are taken where the volume has no other', () => {
  const labelled = volume(undefined, { [ZONE]: 'a__b' });
  const at = (zone: string): boolean => isReachableOn(labelled, on({ [DRIVERS_ZONE]: zone }), LEFT);
  assert.deepEqual(['a', 'b', 'c'].map(at), [true, true, false]);
  assert.equal(isReachableOn(labelled, on({}), KEPT), true);
});

test('what names no zone stays as it is', () => {
  const bare = volume(undefined, { [ZONE]: '' });
  assert.equal(translatedVolume(bare), bare);
  const csi = { metadata: { name: 'v', labels: { [ZONE]: 'a' } }, spec: { csi: {} } };
  assert.equal(translatedVolume(csi as unknown as VolumeObject), csi);
});
