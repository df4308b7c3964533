import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { StoredValues, type StorageMedia } from './stored-values.ts';

const KEY = '/registry/mutatingadmissionpolicybindings/a';
const MEDIA: readonly StorageMedia[] = ['application/vnd.kubernetes.protobuf', 'application/json'];

for (const media of MEDIA) {
  test(`mutating policies are kept as upstream keeps them, for its last minor, in ${media}`, () => {
    const values = new StoredValues(media);
    const apiVersion = 'admissionregistration.k8s.io/v1';
    const kind = 'MutatingAdmissionPolicyBinding';
    const metadata = { name: 'a', uid: 'u', generation: 1 };
    const own = encodeCanonical({ kind, apiVersion, metadata, spec: { policyName: 'p' } });
    const kept = values.encode(KEY, own);
    assert.match(kept.toString('latin1'), /admissionregistration\.k8s\.io\/v1beta1/);
    assert.equal(values.decode(KEY, kept).toString(), own.toString());
  });
}

test('rules of device taints are kept in the version that upstream keeps', () => {
  const key = '/registry/devicetaintrules/a';
  const spec = { taint: { key: 'k', effect: 'NoSchedule', timeAdded: '2026-01-01T00:00:00Z' } };
  const own = encodeCanonical({
    kind: 'DeviceTaintRule',
    apiVersion: 'resource.k8s.io/v1beta2',
    metadata: { name: 'a', uid: 'u', generation: 1 },
    spec,
  });
  for (const media of MEDIA) {
    const values = new StoredValues(media);
    const kept = values.encode(key, own);
    assert.match(kept.toString('latin1'), /resource\.k8s\.io\/v1alpha3/);
    assert.deepEqual(JSON.parse(values.decode(key, kept).toString()).spec, spec);
  }
});
