import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { keepAllocated } from './service-fields.ts';
import { dropTypeDependent } from './service-types.ts';

const BALANCED: JsonObject = {
  type: 'LoadBalancer',
  clusterIP: '10.96.0.9',
  clusterIPs: ['10.96.0.9'],
  allocateLoadBalancerNodePorts: true,
  loadBalancerClass: 'a.b/c',
  externalTrafficPolicy: 'Local',
  healthCheckNodePort: 30009,
  ports: [{ port: 80, nodePort: 30080 }],
};

function changed(before: JsonObject, change: JsonObject): JsonObject {
  const next: JsonObject = { spec: { ...before, ...change } };
  dropTypeDependent(next, { spec: before });
  return next['spec'] as JsonObject;
}

test('a Service that balances no more leaves behind what balancers have', () => {
  const spec = changed(BALANCED, { type: 'NodePort' });
  assert.deepEqual(spec, {
    type: 'NodePort',
    clusterIP: '10.96.0.9',
    clusterIPs: ['10.96.0.9'],
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, nodePort: 30080 }],
  });
});

test('a Service without ports of nodes keeps none, nor a name for another its address', () => {
  assert.deepEqual(changed(BALANCED, { type: 'ClusterIP' })['ports'], [{ port: 80 }]);
  const named = changed(BALANCED, { type: 'ExternalName' });
  assert.deepEqual(named, { type: 'ExternalName', ports: [{ port: 80 }] });
});

test('what the client changed beside the type stays, to be refused', () => {
  const spec = changed(BALANCED, { type: 'NodePort', loadBalancerClass: 'x.y/z' });
  assert.equal(spec['loadBalancerClass'], 'x.y/z');
});

test('the policy for traffic from outside goes with the last address outside', () => {
  const before = { type: 'ClusterIP', externalIPs: ['1.2.3.4'], externalTrafficPolicy: 'Cluster' };
  assert.equal(changed(before, { externalIPs: [] })['externalTrafficPolicy'], undefined);
  // a type that there is not reaches nobody from outside
  assert.equal(changed(before, { type: 'zz' })['externalTrafficPolicy'], undefined);
  const kept = changed(before, { externalIPs: ['1.2.3.5'] })['externalTrafficPolicy'];
  assert.equal(kept, 'Cluster');
});

test('a Service outside of the cluster has no policy for traffic within, known ones go', () => {
  const kept = (policy: string): unknown => {
    const spec: JsonObject = { type: 'ExternalName', internalTrafficPolicy: policy };
    keepAllocated({ spec }, { spec: { type: 'ClusterIP' } });
    return spec['internalTrafficPolicy'];
  };
  assert.deepEqual([kept('Local'), kept('zz')], [undefined, 'zz']);
});
