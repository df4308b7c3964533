import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyDefaults } from './defaulting.ts';
import { imageTag } from './defaults-core.ts';
import { objectAt, valueAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { resources } from '../scheme/kinds.ts';
import { decodeJsonBody } from '../codec/request-body.ts';

function defaulted(apiVersion: string, kind: string, fields: JsonObject): JsonObject {
  const bytes = Buffer.from(JSON.stringify({ apiVersion, kind, ...fields }));
  const body = decodeJsonBody(bytes, 0, bytes.length, { apiVersion, kind }, false);
  assert(body.ok, body.ok ? '' : body.message);
  applyDefaults(body.object);
  return body.object;
}

test('a pod gets what every pod has', () => {
  const pod = defaulted('v1', 'Pod', { spec: { containers: [{ name: 'c', image: 'img' }] } });
  assert.deepEqual(pod['spec'], {
    containers: [
      {
        name: 'c',
        image: 'img',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'Always',
      },
    ],
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
    enableServiceLinks: true,
  });
});

test('containers ask for their limits; on the host network, host ports are theirs', () => {
  const pod = defaulted('v1', 'Pod', {
    spec: {
      hostNetwork: true,
      containers: [
        {
          name: 'c',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '1', memory: '1.5Gi' }, requests: { cpu: '100u' } },
          livenessProbe: { httpGet: { port: 80 } },
        },
      ],
    },
  });
  const [first] = valueAt(pod, 'spec', 'containers') as JsonObject[];
  assert.deepEqual(first?.['resources'], {
    limits: { cpu: '1', memory: '1536Mi' },
    requests: { cpu: '1m', memory: '1536Mi' },
  });
  assert.deepEqual(first?.['ports'], [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }]);
  assert.deepEqual(first?.['livenessProbe'], {
    httpGet: { path: '/', port: 80, scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
});

test('pods inside workloads get the defaults of templates, not those of pods', () => {
  const template = { spec: { containers: [{ name: 'c', image: 'i:1' }] } };
  const job = defaulted('batch/v1', 'CronJob', { spec: { jobTemplate: { spec: { template } } } });
  const spec = objectAt(job, 'spec', 'jobTemplate', 'spec');
  assert.equal(spec?.['backoffLimit'], undefined);
  assert.equal(valueAt(spec, 'template', 'spec', 'dnsPolicy'), 'ClusterFirst');
  assert.equal(valueAt(spec, 'template', 'spec', 'enableServiceLinks'), undefined);
});

test('zero is a value where absence is another', () => {
  const fields = { spec: { replicas: 0, template: {}, selector: {} } };
  assert.equal(valueAt(defaulted('apps/v1', 'Deployment', fields), 'spec', 'replicas'), 0);
  assert.equal(valueAt(defaulted('apps/v1', 'ReplicaSet', { spec: {} }), 'spec', 'replicas'), 1);
});

test('text of a secret is stored as bytes', () => {
  const secret = defaulted('v1', 'Secret', { data: { a: 'eA==' }, stringData: { b: 'y' } });
  assert.deepEqual(secret['data'], { a: 'eA==', b: 'eQ==' });
  assert.equal(secret['stringData'], undefined);
  assert.equal(secret['type'], 'Opaque');
});

test('images that can change under their name are pulled always', () => {
  const tags: [image: string, tag: string][] = [
    ['nginx', 'latest'],
    ['nginx:latest', 'latest'],
    ['nginx:1.2', '1.2'],
    ['localhost:5000/a/b', 'latest'],
    ['localhost:5000/a/b:v1', 'v1'],
    [`nginx@sha256:${'a'.repeat(64)}`, ''],
    [`nginx:v1@sha256:${'a'.repeat(64)}`, 'v1'],
    ['NGINX', ''],
    ['Registry/nginx', 'latest'],
    ['', ''],
    ['../up', ''],
    ['-a.b/c', ''],
    ['[::1]:80/c', 'latest'],
  ];
  for (const [image, tag] of tags) assert.equal(imageTag(image), tag, image);
});

test('filling in defaults twice is filling them in once, for every kind', () => {
  for (const resource of resources()) {
    const once = defaulted(resource.apiVersion, resource.kind, { metadata: { name: 'x' } });
    const text = JSON.stringify(once);
    applyDefaults(once);
    assert.equal(JSON.stringify(once), text, resource.kind);
  }
});

test('amounts below a thousandth are rounded up, but for those of groups that keep them', () => {
  const amounts = { cpu: '0.0001' };
  const quota = defaulted('v1', 'ResourceQuota', { spec: { hard: amounts } });
  assert.equal(valueAt(quota, 'spec', 'hard', 'cpu'), '1m');
  const overhead = { podFixed: amounts };
  const runtime = defaulted('node.k8s.io/v1', 'RuntimeClass', { handler: 'h', overhead });
  assert.equal(valueAt(runtime, 'overhead', 'podFixed', 'cpu'), '100u');
});

test('what a daemon set says of rollouts is complete, whatever its strategy', () => {
  for (const rollingUpdate of [{}, { maxSurge: 0 }, { maxUnavailable: 0 }]) {
    const updateStrategy = { type: 'OnDelete', rollingUpdate };
    const set = defaulted('apps/v1', 'DaemonSet', { spec: { updateStrategy } });
    const rolling = objectAt(set, 'spec', 'updateStrategy', 'rollingUpdate');
    assert.deepEqual(rolling, { maxUnavailable: 0, maxSurge: 0 });
  }
  const none = defaulted('apps/v1', 'DaemonSet', {
    spec: { updateStrategy: { type: 'OnDelete' } },
  });
  assert.deepEqual(valueAt(none, 'spec', 'updateStrategy'), { type: 'OnDelete' });
});
