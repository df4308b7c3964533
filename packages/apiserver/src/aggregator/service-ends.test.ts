/** An extension whose Service nobody stands behind is not available, and it is told why. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { World } from '../lister/world.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { AccessModel } from '../testing/access.sim.ts';
import { missingEnds } from './service-ends.ts';
import type { RemoteSpec } from './remote-publications.ts';

const SPEC = { namespace: 'default', service: 's', port: 443 } as RemoteSpec;
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const SERVICE = { spec: { type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] } };

test('slices are looked for, then a ready end in them at the port of the name', () => {
  const storage = new StorageModel();
  const model = new AccessModel({ storage });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  const world = new World(storage, {
    nowMs: () => 0,
    below: () => 0,
    uuid: () => '',
    defer: () => {},
    deferPiece: () => {},
  });
  const told = (): string => {
    const found = missingEnds(world, SPEC, SERVICE);
    return found === null ? '' : `${found.reason}: ${found.message}`;
  };
  const slice = (name: string, port: string, ready: boolean): void => {
    const labels = { 'kubernetes.io/service-name': 's' };
    model.ask('POST', SLICES, {
      metadata: { name, labels },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.1.1'], conditions: { ready } }],
      ports: [{ name: port, port: 6443 }],
    });
  };
  const where = 'service/s in "default"';
  assert.equal(told(), `EndpointsNotFound: cannot find endpointslices for ${where}`);
  slice('a', 'https', false);
  slice('b', 'http', true);
  const none = `MissingEndpoints: endpointslices for ${where} have no addresses with port name`;
  assert.equal(told(), `${none} "https"`);
  slice('c', 'https', true);
  assert.equal(told(), '');
  const named = { spec: { type: 'ExternalName', externalName: 'x.example' } };
  assert.equal(missingEnds(world, SPEC, named), null, 'names are looked up by those who dial');
});
