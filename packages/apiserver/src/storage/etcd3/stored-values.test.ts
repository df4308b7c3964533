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
