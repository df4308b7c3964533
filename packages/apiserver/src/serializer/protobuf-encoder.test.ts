import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtobuf } from '@megaplane/machinery/protobuf';
import { LIST_BYTES_HELD_MAX } from './protobuf-encoder.ts';
import { Rig } from '../testing/rig.sim.ts';

const MAPS = '/api/v1/namespaces/a/configmaps';
const ITEM_BYTES: number = 900 * 1024;

test('a list that is too long to be held is measured first, and says the same', () => {
  const rig = new Rig();
  const count = Math.ceil(LIST_BYTES_HELD_MAX / ITEM_BYTES) + 2;
  for (let index = 0; index < count; index++) {
    const name = `m-${String(index).padStart(3, '0')}`;
    const object = { metadata: { name }, data: { k: 'x'.repeat(ITEM_BYTES) } };
    assert.equal(rig.ask('POST', MAPS, object).status, 201);
  }
  for (const as of ['', ';as=PartialObjectMetadataList;v=v1;g=meta.k8s.io']) {
    const accept = `application/vnd.kubernetes.protobuf${as}`;
    const { bytes } = rig.ask('GET', MAPS, undefined, { accept });
    assert.equal(bytes.length > LIST_BYTES_HELD_MAX, as === '');
    if (as !== '') continue;
    const decoded = decodeProtobuf(bytes, 0, bytes.length);
    assert(decoded.ok);
    const { items } = decoded.object as { items?: { metadata: { name: string } }[] };
    const names = (items ?? []).map(({ metadata }) => metadata.name);
    assert.equal(names.length, count);
    assert.deepEqual(names, names.toSorted());
  }
});
