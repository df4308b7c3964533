import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identityOf } from '../../request/identity.ts';
import { admittingModel, messageOf, podOf } from '../../testing/admitting.sim.ts';

test('a kubelet touches its own node, its pods and what they run with, and nothing else', () => {
  const model = admittingModel({
    tokenReaders: () => [(token) => identityOf(`system:node:${token}`, ['system:nodes'])],
    authorizers: [() => ({ allowed: true, reason: '' })],
  });
  const ask = (method: string, path: string, body: object): string => {
    const answer = model.ask(method, path, body, { authorization: 'Bearer n1' });
    return answer.status < 300 ? 'done' : messageOf(answer).replace(/^.* is forbidden: /, '');
  };
  const pods = '/api/v1/namespaces/n/pods';
  for (const node of ['n1', 'n2']) {
    model.expect(201, 'POST', '/api/v1/nodes', { metadata: { name: node } });
    model.expect(201, 'POST', pods, podOf(`on-${node}`, {}, { nodeName: node }));
  }
  const status = { status: { phase: 'Running' } };
  assert.equal(ask('PATCH', `${pods}/on-n1/status`, status), 'done');
  assert.equal(
    ask('PATCH', `${pods}/on-n2/status`, status),
    'node "n1" can only update pod status for pods with spec.nodeName set to itself',
  );
  // a tainted node may tell its status all the same
  const taints = [{ key: 'a', effect: 'NoSchedule' }];
  model.expect(200, 'PATCH', '/api/v1/nodes/n1', { spec: { taints } });
  const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  assert.equal(ask('PATCH', '/api/v1/nodes/n1/status', ready), 'done');
  assert.equal(
    ask('PATCH', '/api/v1/nodes/n1/status', { ...ready, spec: { taints: [] } }),
    'node "n1" is not allowed to modify taints',
  );
  const labels = { metadata: { labels: { a: 'b' } } };
  assert.equal(
    ask('PATCH', `${pods}/on-n1/status`, labels),
    'node "n1" cannot update labels through pod status',
  );
  const evict = (name: string): string =>
    ask('POST', `${pods}/${name}/eviction`, { metadata: { name } });
  assert.match(evict('on-n2'), /^node n1 can only evict pods with spec.nodeName set to itself/);
  assert.equal(evict('on-n1'), 'done');
  assert.match(
    ask('POST', pods, podOf('new')),
    /^pod does not have "kubernetes.io\/config.mirror"/,
  );
  const uid = (
    JSON.parse(model.ask('GET', '/api/v1/nodes/n1').text) as { metadata: { uid: string } }
  ).metadata.uid;
  const mirror = (owner: object, more: object = {}): object => ({
    metadata: {
      name: 'mirror',
      annotations: { 'kubernetes.io/config.mirror': 'x' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid, ...owner }],
    },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }], ...more },
  });
  assert.match(ask('POST', pods, mirror({})), /with a controller owner reference set to itself/);
  const volumes = [{ name: 'v', secret: { secretName: 's' } }];
  assert.equal(
    ask('POST', pods, mirror({ controller: true }, { volumes })),
    'a mirror pod may not reference secrets',
  );
  const projected = [{ name: 'v', projected: { sources: [{ configMap: { name: 'm' } }] } }];
  assert.equal(
    ask('POST', pods, mirror({ controller: true }, { volumes: projected })),
    'node "n1" can not create pods that reference configmaps',
  );
  const resourceClaims = [{ name: 'r', resourceClaimName: 'r' }];
  assert.equal(
    ask('POST', pods, mirror({ controller: true }, { resourceClaims })),
    'node "n1" can not create pods that reference resourceclaims',
  );
  assert.match(
    ask('POST', pods, mirror({ controller: true, uid: 'other' })),
    /^node n1 UID mismatch: expected other got /,
  );
  const configMap = { name: 'c', namespace: 'n', kubeletConfigKey: 'k' };
  assert.equal(
    ask('PATCH', '/api/v1/nodes/n1', { spec: { configSource: { configMap } } }),
    'node "n1" is not allowed to update configSource to a new non-nil configSource',
  );
  assert.equal(ask('POST', pods, mirror({ controller: true })), 'done');
  const csi = '/apis/storage.k8s.io/v1/csinodes';
  assert.equal(ask('POST', csi, { metadata: { name: 'n1' }, spec: { drivers: [] } }), 'done');
  assert.match(
    ask('POST', csi, { metadata: { name: 'n2' }, spec: { drivers: [] } }),
    /^can only access CSINode with the same name/,
  );
});

test('a kubelet gets tokens for the audiences that its pod mounts, or its drivers ask for', () => {
  const audienceVerb = 'request-serviceaccounts-token-audience';
  const model = admittingModel({
    tokenReaders: () => [(token) => identityOf(`system:node:${token}`, ['system:nodes'])],
    authorizers: [
      (_, what) => ({
        allowed: what.verb !== audienceVerb || what.resource === 'granted',
        reason: '',
      }),
    ],
  });
  model.expect(201, 'POST', '/api/v1/nodes', { metadata: { name: 'n1' } });
  const spec = { tokenRequests: [{ audience: 'driven' }] };
  model.expect(201, 'POST', '/apis/storage.k8s.io/v1/csidrivers', {
    metadata: { name: 'd' },
    spec,
  });
  const sources = [{ serviceAccountToken: { path: 'p', audience: 'mounted' } }];
  const volumes = [
    { name: 'v', projected: { sources } },
    { name: 'w', csi: { driver: 'd' } },
  ];
  const pods = '/api/v1/namespaces/n/pods';
  const ask = (name: string, ...audiences: string[]): string => {
    const pod = JSON.parse(model.ask('GET', `${pods}/${name}`).text) as {
      metadata: { uid: string };
    };
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name, uid: pod.metadata.uid };
    const answer = model.ask(
      'POST',
      '/api/v1/namespaces/n/serviceaccounts/default/token',
      { spec: { audiences, boundObjectRef } },
      { authorization: 'Bearer n1' },
    );
    // nobody signs tokens here: what is let through is not found
    return answer.status === 404 ? 'done' : messageOf(answer).replace(/^.* is forbidden: /, '');
  };
  model.expect(201, 'POST', pods, podOf('p', {}, { nodeName: 'n1', volumes }));
  for (const audience of ['', 'mounted', 'driven', 'granted']) {
    assert.equal(ask('p', audience), 'done', audience);
  }
  assert.equal(ask('p', 'mounted', 'driven'), 'node may only request 0 or 1 audiences');
  assert.equal(
    ask('p', 'other'),
    'audience "other" not found in pod spec volume, ' +
      'system:node:n1 is not authorized to request tokens for this audience',
  );
  const lost = [{ name: 'w', csi: { driver: 'gone' } }];
  model.expect(201, 'POST', pods, podOf('q', {}, { nodeName: 'n1', volumes: lost }));
  assert.equal(
    ask('q', 'granted'),
    'error validating audience "granted": csidriver.storage.k8s.io "gone" not found',
  );
  const moved = [{ name: 'w', cinder: { volumeID: 'v' } }];
  model.expect(201, 'POST', pods, podOf('r', {}, { nodeName: 'n1', volumes: moved }));
  assert.equal(
    ask('r', 'granted'),
    'error validating audience "granted": ' +
      'csidriver.storage.k8s.io "cinder.csi.openstack.org" not found',
  );
});

test('what a kubelet writes besides is its own, or refused in upstream’s words', () => {
  const model = admittingModel({
    tokenReaders: () => [(token) => identityOf(`system:node:${token.slice(1)}`, ['system:nodes'])],
    authorizers: [() => ({ allowed: true, reason: '' })],
  });
  const ask = (method: string, path: string, body: object = {}, node = 'n1'): string => {
    const answer = model.ask(method, path, body, { authorization: `Bearer :${node}` });
    return answer.status < 300 ? 'done' : messageOf(answer).replace(/^.* is forbidden: /, '');
  };
  const pods = '/api/v1/namespaces/n/pods';
  for (const node of ['n1', 'n2']) {
    model.expect(201, 'POST', '/api/v1/nodes', { metadata: { name: node } });
    model.expect(201, 'POST', pods, podOf(`on-${node}`, {}, { nodeName: node }));
  }
  assert.equal(
    ask('PATCH', `${pods}/on-n1`, { metadata: { labels: { a: 'b' } } }),
    'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
  );
  assert.equal(
    ask('POST', `${pods}/on-n1/binding`, { metadata: { name: 'p' }, target: { name: 'n1' } }),
    `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`,
  );
  assert.equal(
    ask('POST', `${pods}/none/eviction`, { metadata: { name: 'none' } }),
    'pod "none" not found',
  );
  assert.equal(ask('DELETE', '/api/v1/nodes'), 'node "n1" is not allowed to modify node ""');
  const told = { status: { phase: 'Running' } };
  assert.equal(ask('PATCH', '/api/v1/nodes/n1/status', told), 'done');
  const taints = [{ key: 'a', effect: 'NoSchedule' }];
  assert.equal(
    ask('PATCH', '/api/v1/nodes/n1/status', { spec: { taints } }),
    'node "n1" is not allowed to modify taints',
  );
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u' }];
  assert.equal(
    ask('PATCH', '/api/v1/nodes/n1', { metadata: { ownerReferences } }),
    'node "n1" is not allowed to modify ownerReferences',
  );
  assert.equal(
    ask('PATCH', '/api/v1/nodes/n1', {
      metadata: { labels: { 'a.node-restriction.kubernetes.io/x': 'v' } },
    }),
    'is not allowed to modify labels: a.node-restriction.kubernetes.io/x',
  );
  const claims = '/api/v1/namespaces/n/persistentvolumeclaims';
  const resources = { requests: { storage: '1Gi' } };
  const spec = { accessModes: ['ReadWriteOnce'], resources };
  assert.equal(
    ask('POST', claims, { metadata: { name: 'c' }, spec }),
    'may only update PVC status',
  );
  model.expect(201, 'POST', claims, { metadata: { name: 'c' }, spec });
  const grown = { status: { capacity: { storage: '2Gi' } } };
  assert.equal(ask('PATCH', `${claims}/c/status`, grown), 'done');
  assert.equal(
    ask('PATCH', `${claims}/c/status`, { status: { phase: 'Lost' } }),
    'node "n1" is not allowed to update fields other than status.quantity and ' +
      'status.conditions: @@ -25,7 +25,7 @@\n   "VolumeAttributesClassName": null\n  },\n' +
      '  "Status": {\n-  "Phase": "Pending",\n+  "Phase": "Lost",\n   "AccessModes": null,\n' +
      '   "Capacity": null,\n   "Conditions": null,\n',
  );
  const signerName = 'kubernetes.io/kubelet-serving';
  const request = { request: 'Zm9v', signerName, usages: ['client auth'] };
  const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  assert.equal(
    ask('POST', requests, { metadata: { name: 'r' }, spec: request }),
    'unable to parse csr: PEM block type must be CERTIFICATE REQUEST',
  );
  assert.equal(
    ask('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'm' } }, ''),
    'could not determine node from user "system:node:"',
  );
  const mirror = (volume: object): string => {
    const { uid } = (
      JSON.parse(model.ask('GET', '/api/v1/nodes/n1').text) as { metadata: { uid: string } }
    ).metadata;
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid, controller: true };
    const annotations = { 'kubernetes.io/config.mirror': 'x' };
    return ask('POST', pods, {
      metadata: { name: 'm', annotations, ownerReferences: [owner] },
      spec: {
        nodeName: 'n1',
        containers: [{ name: 'c', image: 'i' }],
        volumes: [{ name: 'v', ...volume }],
      },
    });
  };
  const bundle = { clusterTrustBundle: { name: 'x', path: 'y' } };
  assert.equal(
    mirror({ projected: { sources: [bundle] } }),
    'node "n1" can not create pods that reference clustertrustbundles',
  );
  assert.equal(
    mirror({ glusterfs: { endpoints: 'e', path: 'p' } }),
    'node "n1" can not create pods that reference endpoints (via glusterFS volumes)',
  );
  assert.equal(mirror({ hostPath: { path: '/x' } }), 'done');
});
