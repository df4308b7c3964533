import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tlv } from '@megaplane/base/der';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { newRequest, type Wanted } from '@megaplane/machinery/certificate-request.sim';
import { identityOf } from '../../request/identity.ts';
import {
  admittingModel,
  messageOf,
  podOf,
  type AdmittingModel,
} from '../../testing/admitting.sim.ts';

const PODS = '/api/v1/namespaces/n/pods';

function label({ expect }: AdmittingModel, labels: object): string[] {
  const answer = expect(200, 'PATCH', '/api/v1/namespaces/n', { metadata: { labels } });
  return answer.headers.filter((field) => field.startsWith('299 '));
}

test('a namespace that is restricted refuses pods with a reason for each rule', () => {
  const model = admittingModel();
  label(model, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  const refused = model.expect(403, 'POST', PODS, podOf('p'));
  assert.equal(
    messageOf(refused),
    'pods "p" is forbidden: violates PodSecurity "restricted:latest": ' +
      'allowPrivilegeEscalation != false (container "c" must set ' +
      'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" ' +
      'must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or ' +
      'container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or ' +
      'container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or ' +
      '"Localhost")',
  );
  const securityContext = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const containers = [{ name: 'c', image: 'i', securityContext }];
  model.expect(201, 'POST', PODS, podOf('q', {}, { containers }));
});

test('baseline forbids the host; versions, warnings and existing pods are told', () => {
  const model = admittingModel();
  const host = {
    hostNetwork: true,
    containers: [
      { name: 'a', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }] },
      {
        name: 'b',
        image: 'i',
        securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } },
      },
    ],
    volumes: [{ name: 'v', hostPath: { path: '/' } }],
  };
  model.expect(201, 'POST', PODS, podOf('old', {}, host));
  const warnings = label(model, {
    'pod-security.kubernetes.io/enforce': 'baseline',
    'pod-security.kubernetes.io/warn': 'restricted',
    'pod-security.kubernetes.io/warn-version': 'v1.20',
  });
  assert.deepEqual(warnings, [
    '299 - "existing pods in namespace \\"n\\" violate the new PodSecurity enforce level ' +
      '\\"baseline:latest\\""',
    '299 - "old: non-default capabilities, host namespaces, hostPath volumes, hostPort, ' +
      'privileged"',
  ]);
  const refused = model.expect(403, 'POST', PODS, podOf('p', {}, host));
  assert.match(
    messageOf(refused),
    /: non-default capabilities \(container "b" must not include "NET_ADMIN" in securityContext/,
  );
  assert.match(messageOf(refused), /hostPort \(container "a" uses hostPort 80\), privileged/);
  const warned = model.expect(201, 'POST', PODS, podOf('w'));
  const [warning = ''] = warned.headers.filter((field) => field.startsWith('299 '));
  assert.match(warning, /would violate PodSecurity \\"restricted:v1.20\\": allowPrivilegeEsc/);
  assert.doesNotMatch(warning, /capabilities/);
  const wrong = model.ask('PATCH', '/api/v1/namespaces/n', {
    metadata: { labels: { 'pod-security.kubernetes.io/audit': 'secret' } },
  });
  assert.equal(wrong.status, 422);
  assert.match(messageOf(wrong), /must be one of privileged, baseline, restricted/);
});

test('runtime classes add their overhead and place, and must exist', () => {
  const model = admittingModel();
  const missing = model.expect(403, 'POST', PODS, podOf('p', {}, { runtimeClassName: 'x' }));
  assert.equal(
    messageOf(missing),
    'pods "p" is forbidden: pod rejected: RuntimeClass "x" not found',
  );
  model.expect(201, 'POST', '/apis/node.k8s.io/v1/runtimeclasses', {
    metadata: { name: 'x' },
    handler: 'h',
    overhead: { podFixed: { cpu: '10m' } },
    scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'k', operator: 'Exists' }] },
  });
  const made = model.expect(201, 'POST', PODS, podOf('p', {}, { runtimeClassName: 'x' }));
  const { spec } = JSON.parse(made.text) as {
    spec: { overhead: object; nodeSelector: object; tolerations: object[] };
  };
  assert.deepEqual(spec.overhead, { cpu: '10m' });
  assert.deepEqual(spec.nodeSelector, { a: 'b' });
  assert.deepEqual(spec.tolerations.at(-1), { key: 'k', operator: 'Exists' });
  const tolerations = [{ key: 'a', operator: 'Exists' }, { operator: 'Exists' }];
  const wide = podOf('w', {}, { runtimeClassName: 'x', tolerations });
  const { spec: tolerant } = JSON.parse(model.expect(201, 'POST', PODS, wide).text) as {
    spec: { tolerations: object[] };
  };
  assert.deepEqual(tolerant.tolerations, [{ operator: 'Exists' }]);
  const other = podOf('q', {}, { runtimeClassName: 'x', nodeSelector: { a: 'c' } });
  assert.match(messageOf(model.expect(403, 'POST', PODS, other)), /conflict: runtimeClass.sched/);
  // rules of the amounts come before it is asked where they are from
  model.expect(422, 'POST', PODS, podOf('q', {}, { overhead: { a: '1' } }));
  for (const overhead of [{ cpu: '1' }, {}]) {
    const unnamed = model.expect(403, 'POST', PODS, podOf('q', {}, { overhead }));
    assert.match(messageOf(unnamed), /Overhead set without corresponding RuntimeClass/);
  }
});

test('the order, the versions and the relaxations of the standards are those of 1.36', () => {
  const model = admittingModel();
  const enforce = 'pod-security.kubernetes.io/enforce';
  label(model, { [enforce]: 'restricted' });
  const securityContext = { privileged: true };
  const containers = [{ name: 'c', image: 'i', securityContext }];
  const refused = model.expect(403, 'POST', PODS, podOf('p', {}, { containers }));
  assert.match(messageOf(refused), /latest": privileged \(.*\), allowPrivilegeEscalation != false/);
  label(model, { [`${enforce}-version`]: 'v1.7' });
  const added = { capabilities: { add: ['NET_ADMIN'] }, runAsNonRoot: true };
  const adding = [{ name: 'c', image: 'i', securityContext: added }];
  const old = model.expect(403, 'POST', PODS, podOf('p', {}, { containers: adding }));
  assert.match(messageOf(old), /non-default capabilities/);
  label(model, { [`${enforce}-version`]: 'latest' });
  const root = {
    ...{ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, runAsUser: 0 },
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const own = { hostUsers: false, containers: [{ name: 'c', image: 'i', securityContext: root }] };
  model.expect(201, 'POST', PODS, podOf('p', {}, own));
  label(model, { [enforce]: null, [`${enforce}-version`]: null });
  model.expect(201, 'POST', PODS, podOf('q'));
  label(model, { [enforce]: 'restricted' });
  model.expect(200, 'PATCH', `${PODS}/q`, { metadata: { labels: { a: 'b' } } });
  const image = [{ op: 'replace', path: '/spec/containers/0/image', value: 'j' }];
  const headers = { 'content-type': 'application/json-patch+json' };
  assert.equal(model.ask('PATCH', `${PODS}/q`, image, headers).status, 403);
});

test('an account that lists its secrets lets pods name no others, and mirrors name none', () => {
  const { expect } = admittingModel();
  expect(201, 'POST', '/api/v1/namespaces/n/serviceaccounts', {
    metadata: { name: 'a', annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } },
    secrets: [{ name: 's' }],
  });
  const withSecret = (secretName: string): object =>
    podOf(
      secretName,
      {},
      { serviceAccountName: 'a', volumes: [{ name: 'v', secret: { secretName } }] },
    );
  expect(201, 'POST', PODS, withSecret('s'));
  assert.equal(
    messageOf(expect(403, 'POST', PODS, withSecret('t'))),
    'pods "t" is forbidden: volume with secret.secretName="t" is not allowed because service ' +
      'account a does not reference that secret',
  );
  const pull = podOf('u', {}, { serviceAccountName: 'a', imagePullSecrets: [{ name: 'x' }] });
  assert.match(messageOf(expect(403, 'POST', PODS, pull)), /imagePullSecrets\[0\]\.name="x"/);
  const mirror = {
    metadata: { name: 'm', annotations: { 'kubernetes.io/config.mirror': 'x' } },
    spec: { containers: [{ name: 'c', image: 'i', envFrom: [{ secretRef: { name: 's' } }] }] },
  };
  assert.match(
    messageOf(expect(403, 'POST', PODS, mirror)),
    /a mirror pod may not reference secrets/,
  );
});

test('an update that leaves the priority out keeps it', () => {
  const { expect } = admittingModel();
  const made = JSON.parse(expect(201, 'POST', PODS, podOf('a')).text) as {
    spec: Record<string, unknown>;
  };
  const { priority: _, preemptionPolicy: __, ...spec } = made.spec;
  expect(200, 'PUT', `${PODS}/a`, { metadata: { name: 'a' }, spec });
});

test('one priority class is the default, and those of the system stay', () => {
  const { expect } = admittingModel();
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
  const made = (name: string): object => ({ metadata: { name }, value: 1, globalDefault: true });
  expect(201, 'POST', classes, made('a'));
  assert.match(
    messageOf(expect(403, 'POST', classes, made('b'))),
    /PriorityClass a is already marked as default. Only one default can exist$/,
  );
  expect(200, 'PATCH', `${classes}/a`, { description: 'still the default' });
  expect(201, 'POST', classes, { metadata: { name: 'system-node-critical' }, value: 2000001000 });
  expect(403, 'DELETE', `${classes}/system-node-critical`);
});

test('claims and ingresses get the newest default class, and grow only where they may', () => {
  const model = admittingModel();
  const claims = '/api/v1/namespaces/n/persistentvolumeclaims';
  const spec = { resources: { requests: { storage: '1Gi' } }, accessModes: ['ReadWriteOnce'] };
  const classOf = (name: string): unknown => {
    const made = model.expect(201, 'POST', claims, { metadata: { name }, spec });
    return (JSON.parse(made.text) as { spec: { storageClassName?: string } }).spec.storageClassName;
  };
  assert.equal(classOf('early'), undefined);
  for (const allowVolumeExpansion of [false, true]) {
    const name = allowVolumeExpansion ? 'a' : 'z';
    const annotations = {
      'storageclass.kubernetes.io/is-default-class': String(allowVolumeExpansion),
    };
    const metadata = { name, annotations };
    const body = { metadata, provisioner: 'p', allowVolumeExpansion };
    model.expect(201, 'POST', '/apis/storage.k8s.io/v1/storageclasses', body);
  }
  assert.equal(classOf('late'), 'a');
  const grow = { spec: { resources: { requests: { storage: '2Gi' } } } };
  for (const name of ['early', 'late']) {
    model.expect(200, 'PATCH', `${claims}/${name}/status`, { status: { phase: 'Bound' } });
  }
  model.expect(200, 'PATCH', `${claims}/late`, grow);
  const fixed = model.expect(403, 'PATCH', `${claims}/early`, grow);
  assert.match(messageOf(fixed), /only dynamically provisioned pvc can be resized/);
});

test('a plugin that is disabled is not asked', () => {
  const off = admittingModel({ disabledPlugins: ['PodSecurity'] });
  label(off, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  off.expect(201, 'POST', PODS, podOf('p'));
});

test('new nodes are tainted and volumes protected by plugins that can be left out', () => {
  const made = (disabledPlugins: string[]): [unknown, unknown] => {
    const model = admittingModel({ disabledPlugins });
    const metadata = { name: 'x' };
    const node = { kind: 'Node', apiVersion: 'v1', metadata, spec: {} };
    const spec = {
      ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
      hostPath: { path: '/tmp/x' },
    };
    const volume = { kind: 'PersistentVolume', apiVersion: 'v1', metadata, spec };
    const madeNode = model.expect(201, 'POST', '/api/v1/nodes', node);
    const madeVolume = model.expect(201, 'POST', '/api/v1/persistentvolumes', volume);
    const { spec: nodeSpec } = JSON.parse(madeNode.text) as JsonObject;
    const { metadata: volumeMetadata } = JSON.parse(madeVolume.text) as { metadata: JsonObject };
    return [nodeSpec, volumeMetadata['finalizers']];
  };
  const taints = [{ effect: 'NoSchedule', key: 'node.kubernetes.io/not-ready' }];
  assert.deepEqual(made([]), [{ taints }, ['kubernetes.io/pv-protection']]);
  const off = ['TaintNodesByCondition', 'StorageObjectInUseProtection'];
  assert.deepEqual(made(off), [{}, undefined]);
});

test('who may not set finalizers of an owner may not block its deletion', () => {
  const tokens = (token: string) => (token === 't' ? identityOf('u', []) : null);
  const model = admittingModel({
    enabledPlugins: ['OwnerReferencesPermissionEnforcement'],
    tokenReaders: () => [tokens],
    authorizers: [
      ({ user }, { subresource }) => ({
        allowed: user === 'u' && subresource !== 'finalizers',
        reason: '',
      }),
    ],
  });
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'x' };
  const map = (name: string, blockOwnerDeletion: boolean): object => ({
    metadata: { name, ownerReferences: [{ ...owner, blockOwnerDeletion }] },
  });
  const path = '/api/v1/namespaces/n/configmaps';
  const asked = (body: object) => model.ask('POST', path, body, { authorization: 'Bearer t' });
  assert.equal(asked(map('a', false)).status, 201);
  const refused = asked(map('b', true));
  assert.equal(refused.status, 403);
  assert.match(messageOf(refused), /cannot set blockOwnerDeletion if an ownerReference refers/);
});

test('owners of custom kinds may be such that their deletion is blocked', () => {
  const { expect } = admittingModel({ enabledPlugins: ['OwnerReferencesPermissionEnforcement'] });
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
  ];
  const names = { plural: 'bees', kind: 'Bee' };
  const spec = { group: 'x.example.com', names, scope: 'Namespaced', versions };
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect(201, 'POST', definitions, { metadata: { name: 'bees.x.example.com' }, spec });
  const map = (name: string, kind: string): object => {
    const owner = { apiVersion: 'x.example.com/v1', kind, name: 'b', uid: 'x' };
    return { metadata: { name, ownerReferences: [{ ...owner, blockOwnerDeletion: true }] } };
  };
  expect(201, 'POST', '/api/v1/namespaces/n/configmaps', map('a', 'Bee'));
  const unknown = expect(403, 'POST', '/api/v1/namespaces/n/configmaps', map('b', 'Wasp'));
  assert.match(messageOf(unknown), /no RESTMapping found/);
});

test('nobody gets a certificate of a group that needs no role, however its name is written', () => {
  const model = admittingModel();
  let count = 0;
  const send = (status: number, signer: string, wanted: Wanted): string => {
    const request = Buffer.from(newRequest({ commonName: 'u', ...wanted })).toString('base64');
    const spec = { request, signerName: `kubernetes.io/${signer}`, usages: ['client auth'] };
    const body = { metadata: { name: `r${++count}` }, spec };
    const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
    return messageOf(model.expect(status, 'POST', path, body));
  };
  // BMPString: two bytes a character, the higher one first
  const write = (text: string): Uint8Array => tlv(0x1e, Buffer.from(text, 'utf16le').swap16());
  for (const group of [
    'system:masters',
    'system:megaplane:controllers',
    'system:megaplane:nodes',
  ]) {
    const refused = new RegExp(
      `is forbidden: use of kubernetes.io/kube-apiserver-client signer with ${group} group is not`,
    );
    const organizations = ['dev', group];
    assert.match(send(403, 'kube-apiserver-client', { organizations }), refused);
    assert.match(send(403, 'kube-apiserver-client', { organizations, write }), refused);
    send(201, 'kubelet-serving', { organizations });
  }
  send(201, 'kube-apiserver-client', { organizations: ['dev', 'system:nodes'], write });
});

test('an update that leaves the tolerations of every pod out gets them again', () => {
  const model = admittingModel();
  model.expect(201, 'POST', PODS, podOf('p', {}, { tolerations: [{ key: 'own' }] }));
  interface Shown {
    spec: { tolerations: { key: string; tolerationSeconds?: number }[] };
  }
  const read = (text: string): Shown => JSON.parse(text) as Shown;
  const pod = read(model.expect(200, 'GET', `${PODS}/p`).text);
  pod.spec.tolerations = pod.spec.tolerations.filter(({ key }) => key === 'own');
  const after = read(model.expect(200, 'PUT', `${PODS}/p`, pod).text);
  assert.deepEqual(
    after.spec.tolerations.map(({ key, tolerationSeconds = 0 }) => [key, tolerationSeconds]),
    [
      ['own', 0],
      ['node.kubernetes.io/not-ready', 300],
      ['node.kubernetes.io/unreachable', 300],
    ],
  );
  const refused = model.ask('PATCH', `${PODS}/p`, { spec: { tolerations: [] } });
  assert.equal(refused.status, 422);
  assert.match(messageOf(refused), /existing toleration can not be modified/);
});

test('services keep the addresses that they have, and get no more where that is denied', () => {
  const { ask, expect } = admittingModel({ enabledPlugins: ['DenyServiceExternalIPs'] });
  const path = '/api/v1/namespaces/n/services';
  const service = (externalIPs: string[]): object => ({
    metadata: { name: 's' },
    spec: { clusterIP: 'None', ports: [{ port: 80 }], externalIPs },
  });
  const refused = ask('POST', path, service(['192.0.2.1']));
  assert.equal(refused.status, 403);
  const why = 'services "s" is forbidden: Use of external IPs is denied by admission control';
  assert.equal(messageOf(refused), why);
  expect(201, 'POST', path, service([]));
  assert.equal(ask('PATCH', `${path}/s`, { spec: { externalIPs: ['192.0.2.1'] } }).status, 403);
});

test('a namespace that is marked and waits for nothing goes with any write', () => {
  const { ask, expect } = admittingModel({});
  expect(201, 'POST', '/api/v1/namespaces', { metadata: { name: 'gone' } });
  const final = { metadata: { name: 'gone' }, spec: { finalizers: [] } };
  expect(200, 'PUT', '/api/v1/namespaces/gone/finalize', final);
  expect(200, 'DELETE', '/api/v1/namespaces/gone');
  expect(200, 'GET', '/api/v1/namespaces/gone');
  expect(200, 'PATCH', '/api/v1/namespaces/gone', {});
  assert.equal(ask('GET', '/api/v1/namespaces/gone').status, 404);
});

test('pods tolerate the taints of devices that they ask for, where that is enabled', () => {
  const { ask } = admittingModel({ enabledPlugins: ['ExtendedResourceToleration'] });
  const amounts = { 'z.example/gpu': '1', 'a.example/nic': '2', cpu: '1' };
  const container = { name: 'c', image: 'i', resources: { limits: amounts } };
  const answer = ask('POST', PODS, { metadata: { name: 'p' }, spec: { containers: [container] } });
  const pod = JSON.parse(answer.text) as { spec: { tolerations: { key: string }[] } };
  const own = (key: string): object => ({ key, operator: 'Exists', effect: 'NoSchedule' });
  assert.deepEqual(
    pod.spec.tolerations.filter(({ key }) => key.includes('example')),
    [own('a.example/nic'), own('z.example/gpu')],
  );
});

test('devices are administered, and given for it, where the namespace says so', () => {
  const model = admittingModel();
  const claims = '/apis/resource.k8s.io/v1/namespaces/n/resourceclaims';
  const exactly = { deviceClassName: 'c', allocationMode: 'All' };
  const spec = { devices: { requests: [{ name: 'r', exactly }] } };
  model.expect(201, 'POST', claims, { metadata: { name: 'k' }, spec });
  const result = { request: 'r', driver: 'd.x', pool: 'p', device: 'v', adminAccess: true };
  const status = { allocation: { devices: { results: [result] } } };
  const refused = model.expect(422, 'PATCH', `${claims}/k/status`, { status });
  assert.equal(
    messageOf(refused),
    'ResourceClaim.resource.k8s.io "k" is invalid: ' +
      'status.allocation.devices.results[0].adminAccess: Forbidden: admin access to devices ' +
      'requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace',
  );
  label(model, { 'resource.kubernetes.io/admin-access': 'true' });
  model.expect(200, 'PATCH', `${claims}/k/status`, { status });
});

test('a new object with a revision is refused by storage alone, after everybody else', () => {
  const model = admittingModel();
  const maps = '/api/v1/namespaces/n/configmaps';
  const body = (name: string): object => ({ metadata: { name, resourceVersion: '5' } });
  assert.equal(
    messageOf(model.expect(500, 'POST', maps, body('a'))),
    'resourceVersion should not be set on objects to be created',
  );
  assert.match(messageOf(model.expect(422, 'POST', maps, body('A'))), /metadata.name: Invalid/);
  model.expect(201, 'POST', `${maps}?dryRun=All`, body('a'));
});

test('names that no client can ask for are refused in its words', () => {
  const model = admittingModel();
  const account = model.expect(403, 'POST', PODS, podOf('p', {}, { serviceAccountName: 'a/b' }));
  assert.match(
    messageOf(account),
    /n\/a\/b: invalid resource name "a\/b": \[may not contain '\/'\]/,
  );
  const runtime = model.expect(500, 'POST', PODS, podOf('p', {}, { runtimeClassName: '' }));
  assert.equal(messageOf(runtime), 'resource name may not be empty');
});

test('conditions of certificate requests change by their own subresources', () => {
  const model = admittingModel();
  const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  const request = Buffer.from(newRequest({ commonName: 'u' })).toString('base64');
  const spec = { request, signerName: 'a.b/c', usages: ['client auth'] };
  model.expect(201, 'POST', path, { metadata: { name: 'r' }, spec });
  const put = (part: string, type: string, more: object = {}): string => {
    const conditions = [{ type, status: 'True', ...more }];
    const answer = model.ask('PATCH', `${path}/r/${part}`, { status: { conditions } });
    if (answer.status !== 200) return messageOf(answer).replace(/^.* is invalid: /, '');
    const after = JSON.parse(answer.text) as { status: { conditions: { reason?: string }[] } };
    return after.status.conditions.map(({ reason = '-' }) => reason).join(' ');
  };
  const no = 'status.conditions: Forbidden: updates may not';
  assert.equal(put('status', 'Approved'), `${no} add a condition of type "Approved"`);
  assert.equal(put('approval', 'Approved', { reason: 'x' }), 'x');
  assert.equal(put('status', 'Approved', { reason: 'y', status: 'False' }), 'x');
  assert.equal(put('status', 'Failed'), `${no} remove a condition of type "Approved"`);
});

test('requests for certificates and what is answered are PEM as Go reads it', () => {
  const model = admittingModel();
  const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  const pem = newRequest({ commonName: 'u' });
  const ask = (text: string): string => {
    const request = Buffer.from(text).toString('base64');
    const spec = { request, signerName: 'a.b/c', usages: ['client auth'] };
    const answer = model.ask('POST', path, { metadata: { name: 'r' }, spec });
    return answer.status === 201 ? 'done' : messageOf(answer).replace(/^.*": /, '');
  };
  const base64 = pem.split('\n').slice(1, -2).join('');
  assert.equal(
    ask(pem.replace(`${pem.split('\n')[2]}\n`, '')),
    'asn1: syntax error: data truncated',
  );
  // whose key signed it is asked by those that sign
  const signed = Buffer.from(base64, 'base64');
  signed[signed.length - 1] = (signed.at(-1) ?? 0) ^ 1;
  const changed = `${signed.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
  assert.equal(ask(`-----BEGIN CERTIFICATE REQUEST-----\nA: b\n\n${changed}`), 'done');
  const certify = (text: string): string => {
    const certificate = Buffer.from(text).toString('base64');
    const answer = model.ask('PATCH', `${path}/r/status`, { status: { certificate } });
    return messageOf(answer).replace(/^.*": /, '');
  };
  const block = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  assert.equal(certify(block), 'x509: malformed certificate');
  const none = 'must contain at least one CERTIFICATE PEM block';
  assert.equal(certify(block.replace('AAAA', 'AAA')), none);
});

test('who may not sign may write a status that says what was said before', () => {
  const model = admittingModel({
    tokenReaders: () => [(token) => identityOf(token, [])],
    authorizers: [(_, { verb }) => ({ allowed: verb !== 'sign', reason: '' })],
  });
  const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  const request = Buffer.from(newRequest({ commonName: 'u' })).toString('base64');
  const spec = { request, signerName: 'a.b/c', usages: ['client auth'] };
  model.expect(201, 'POST', path, { metadata: { name: 'r' }, spec });
  const put = (conditions: object[]): number => {
    const by = { authorization: 'Bearer u' };
    return model.ask('PATCH', `${path}/r/status`, { status: { conditions } }, by).status;
  };
  assert.equal(put([]), 200);
  assert.equal(put([{ type: 'Failed', status: 'True' }]), 403);
});

test('a pod that is refused before it has a name is told as unknown', () => {
  const model = admittingModel();
  const spec = { serviceAccountName: 'nobody', containers: [{ name: 'c', image: 'i' }] };
  const refused = model.expect(403, 'POST', PODS, { spec });
  assert.match(messageOf(refused), /^pods "Unknown" is forbidden: error looking up service acc/);
  const named = model.expect(403, 'POST', PODS, { metadata: { generateName: 'g-' }, spec });
  assert.match(messageOf(named), /^pods "g-" is forbidden/);
});
