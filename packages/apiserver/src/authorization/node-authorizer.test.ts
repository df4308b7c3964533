import { test } from 'node:test';
import assert from 'node:assert/strict';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { identityOf, type Identity } from '../request/identity.ts';
import { AccessModel } from '../testing/access.sim.ts';

/** Tokens are names of nodes. */
const nodes = (token: string): Identity => identityOf(`system:node:${token}`, ['system:nodes']);

/** A cluster with two nodes, and objects that pods of the first refer to. */
function cluster(): AccessModel {
  const model = new AccessModel({ tokenReaders: () => [nodes] });
  const make = (path: string, body: JsonObject): void => {
    const answer = model.ask('POST', path, body);
    assert.equal(answer.status, 201, answer.text);
  };
  for (const name of ['a', 'b', 'kube-node-lease']) {
    make('/api/v1/namespaces', { metadata: { name } });
  }
  for (const name of ['n1', 'n2']) make('/api/v1/nodes', { metadata: { name } });
  make('/api/v1/namespaces/a/serviceaccounts', { metadata: { name: 'default' } });
  make('/api/v1/namespaces/a/pods', pod('p1', 'n1'));
  make('/api/v1/persistentvolumes', {
    metadata: { name: 'disk' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      claimRef: { namespace: 'a', name: 'data' },
      csi: {
        driver: 'd',
        volumeHandle: 'h',
        nodeStageSecretRef: { name: 'stage', namespace: 'b' },
        controllerPublishSecretRef: { name: 'attach', namespace: 'b' },
      },
    },
  });
  make('/api/v1/namespaces/a/persistentvolumeclaims', {
    metadata: { name: 'data' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      volumeName: 'disk',
    },
  });
  return model;
}

function pod(name: string, nodeName: string): JsonObject {
  const image = 'x';
  return {
    metadata: { name },
    spec: {
      nodeName,
      serviceAccountName: 'default',
      imagePullSecrets: [{ name: 'pull' }],
      initContainers: [{ name: 'i', image, envFrom: [{ configMapRef: { name: 'from-map' } }] }],
      containers: [
        {
          name: 'c',
          image,
          env: [
            { name: 'A', valueFrom: { secretKeyRef: { name: 'env-secret', key: 'k' } } },
            { name: 'B', valueFrom: { configMapKeyRef: { name: 'env-map', key: 'k' } } },
          ],
          envFrom: [{ secretRef: { name: 'from-secret' } }],
        },
      ],
      volumes: [
        { name: 'v1', secret: { secretName: 'volume-secret' } },
        { name: 'v2', configMap: { name: 'volume-map' } },
        {
          name: 'v3',
          projected: {
            sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'pm' } }],
          },
        },
        { name: 'v4', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'v5', csi: { driver: 'd', nodePublishSecretRef: { name: 'publish' } } },
      ],
    },
  };
}

const isRefused = (model: AccessModel, node: string, path: string, method = 'GET'): boolean =>
  model.ask(method, path, method === 'POST' ? {} : undefined, node).status === 403;

test('a kubelet reads what its pods refer to, and nobody else’s', () => {
  const model = cluster();
  const secrets = ['pull', 'env-secret', 'from-secret', 'volume-secret', 'projected', 'publish'];
  const maps = ['env-map', 'from-map', 'volume-map', 'pm'];
  const paths = [
    ...secrets.map((name) => `/api/v1/namespaces/a/secrets/${name}`),
    ...maps.map((name) => `/api/v1/namespaces/a/configmaps/${name}`),
    '/api/v1/namespaces/a/persistentvolumeclaims/data',
    '/api/v1/persistentvolumes/disk',
    '/api/v1/namespaces/b/secrets/stage',
    '/api/v1/namespaces/a/pods/p1',
    '/api/v1/namespaces/a/serviceaccounts/default',
    '/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dpull',
  ];
  for (const path of paths) {
    assert.equal(isRefused(model, 'n1', path), false, `n1 ${path}`);
    assert.equal(isRefused(model, 'n2', path), true, `n2 ${path}`);
  }
  for (const path of [
    '/api/v1/secrets',
    '/api/v1/namespaces/a/secrets',
    '/api/v1/namespaces/b/secrets/pull',
    '/api/v1/namespaces/a/secrets/other',
    '/api/v1/namespaces/b/secrets/attach',
    '/api/v1/pods',
    '/api/v1/nodes',
    '/api/v1/nodes/n2',
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dn2',
    '/api/v1/persistentvolumes',
    '/apis/coordination.k8s.io/v1/namespaces/a/leases/n1',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2',
    '/apis/storage.k8s.io/v1/csinodes/n2',
    '/apis/resource.k8s.io/v1/resourceslices',
    '/apis/apps/v1/deployments',
  ]) {
    assert.equal(isRefused(model, 'n1', path), true, path);
  }
  for (const path of [
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1',
    // that there is no such field is told by the list
    '/api/v1/pods?fieldSelector=bad%3Dx,spec.nodeName%3Dn1',
    '/api/v1/nodes/n1',
    '/api/v1/nodes?fieldSelector=metadata.name%3Dn1',
    '/api/v1/services',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1',
    '/apis/storage.k8s.io/v1/csinodes/n1',
    '/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1',
  ]) {
    assert.equal(isRefused(model, 'n1', path), false, path);
  }
});

test('refusals say why, in upstream’s words', () => {
  const model = cluster();
  const { text } = model.ask('GET', '/api/v1/namespaces/a/secrets/s', undefined, 'n2');
  assert.ok(text.includes('in API group \\"\\" in the namespace \\"a\\": no relationship found'));
  assert.match(text, /between node 'n2' and this object/);
  const list = model.ask('GET', '/api/v1/pods', undefined, 'n1').text;
  assert.match(list, /can only list\/watch pods with spec.nodeName field selector/);
  const node = model.ask('GET', '/api/v1/nodes/n2', undefined, 'n1').text;
  assert.match(node, /node 'n1' cannot read 'n2', only its own Node object/);
});

test('a pod that was bound just now opens what it needs, one that went closes it', () => {
  const model = cluster();
  const secret = '/api/v1/namespaces/a/secrets/pull';
  assert.equal(isRefused(model, 'n2', secret), true);
  assert.equal(model.ask('POST', '/api/v1/namespaces/a/pods', pod('p2', 'n2')).status, 201);
  assert.equal(isRefused(model, 'n2', secret), false);
  const gone = model.ask('DELETE', '/api/v1/namespaces/a/pods/p2?gracePeriodSeconds=0');
  assert.equal(gone.status, 200);
  model.nowMs += 10_001;
  assert.equal(isRefused(model, 'n2', secret), true);
});

test('a mirror pod opens nothing to the node that made it', () => {
  const model = cluster();
  const annotations = { 'kubernetes.io/config.mirror': 'x' };
  const volumes = [{ name: 'v', configMap: { name: 'settings' } }];
  const mirror = {
    metadata: { name: 'mirror', annotations },
    spec: { nodeName: 'n2', containers: [{ name: 'c', image: 'i' }], volumes },
  };
  assert.equal(model.ask('POST', '/api/v1/namespaces/a/pods', mirror).status, 201);
  assert.equal(isRefused(model, 'n2', '/api/v1/namespaces/a/pods/mirror'), false);
  assert.equal(isRefused(model, 'n2', '/api/v1/namespaces/a/configmaps/settings'), true);
});

test('tokens are made for accounts of the node’s own pods', () => {
  const model = cluster();
  const path = '/api/v1/namespaces/a/serviceaccounts/default/token';
  const text = (node: string): string => model.ask('POST', path, {}, node).text;
  assert.match(text('n2'), /no relationship found between node 'n2'/);
  assert.doesNotMatch(text('n1'), /no relationship/);
});
