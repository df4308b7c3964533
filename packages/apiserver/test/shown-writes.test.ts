/** What those see of a write who only look: it is as it will be, in a version that it has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  define,
  definitionOf,
  startRig,
  versionOf,
  type Rig,
} from '../src/testing/definitions.sim.ts';
import type { WebhookCaller } from '../src/webhook/webhook-call.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';

interface Shown {
  readonly apiVersion?: string;
  readonly metadata: Record<string, unknown>;
  readonly spec: Record<string, unknown>;
  readonly status?: Record<string, unknown>;
}
interface Asked {
  readonly subResource?: string;
  readonly namespace?: string;
  readonly object: Shown | null;
}

/** A server whose one webhook notes what it is asked and allows it. */
function watched(
  resources: readonly string[],
  more: object = {},
  configurations = 'validatingwebhookconfigurations',
): { rig: Rig; asked: Asked[] } {
  const asked: Asked[] = [];
  const webhooks: WebhookCaller = {
    call: (_target, body, _timeoutMs, then) => {
      const { request, ...rest } = JSON.parse(body.toString()) as {
        request: Asked & { uid: string };
      };
      asked.push(request);
      const response = { uid: request.uid, allowed: true };
      const text = Buffer.from(JSON.stringify({ ...rest, response }));
      then({ ok: true, status: 200, contentType: 'application/json', body: text });
    },
  };
  const rig = startRig({ webhooks });
  const rule = { operations: ['*'], apiGroups: ['*'], apiVersions: ['v1'], resources };
  const webhook = {
    name: 'v.hooks.example',
    clientConfig: { url: 'https://hook.example/' },
    ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], rules: [rule] },
    ...more,
  };
  made(rig, `${GROUP}/${configurations}`, {
    metadata: { name: 'v' },
    webhooks: [webhook],
  });
  return { rig, asked };
}

function made(rig: Rig, path: string, body: object): void {
  const { status, text } = rig.ask('POST', path, body);
  assert.equal(status, 201, text);
  rig.settle();
}

test('a scale is shown as the object will have it, of its own version', () => {
  const { rig, asked } = watched(['*/scale']);
  const scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
  const versions = ['v1', 'v2'].map((name) => ({
    ...(versionOf(name) as { name: string }),
    storage: name === 'v1',
    subresources: { scale },
  }));
  define(rig, definitionOf('widgets', versions));
  const place = '/apis/example.com/v2/namespaces/default/widgets';
  const kind = { apiVersion: 'example.com/v2', kind: 'Widget' };
  made(rig, place, { ...kind, metadata: { name: 'w' }, spec: { size: 1 } });
  const body = { metadata: { name: 'w' }, spec: { replicas: 3 } };
  const { status, text } = rig.ask('PUT', `${place}/w/scale`, body);
  assert.equal(status, 200, text);
  const [{ object }] = asked as [Asked];
  assert.deepEqual([object?.apiVersion, object?.spec], ['autoscaling/v1', { replicas: 3 }]);
  assert.equal(object?.metadata['namespace'], 'default');
  assert.equal(typeof object?.metadata['uid'], 'string');
});

test('a request of a token is shown with how long it will live, and whose it is', () => {
  const { rig, asked } = watched(['serviceaccounts/token']);
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  made(rig, accounts, { metadata: { name: 'a' } });
  rig.ask('POST', `${accounts}/a/token`, { spec: { audiences: ['x'] } });
  const [{ object }] = asked as [Asked];
  assert.deepEqual(object?.spec['expirationSeconds'], 3600);
  assert.equal(object?.metadata['name'], 'a');
});

test('parts of a namespace are selected by the labels that it has', () => {
  const namespaceSelector = { matchLabels: { team: 'x' } };
  const { rig, asked } = watched(['namespaces/finalize'], { namespaceSelector });
  made(rig, '/api/v1/namespaces', { metadata: { name: 'n', labels: { team: 'x' } } });
  const body = { metadata: { name: 'n' }, spec: { finalizers: ['kubernetes'] } };
  rig.ask('PUT', '/api/v1/namespaces/n/finalize', body);
  assert.deepEqual(
    asked.map(({ subResource }) => subResource),
    ['finalize'],
  );
});

test('an update is shown to those who may change it as it was sent', () => {
  const { rig, asked } = watched(['configmaps', 'namespaces'], {}, 'mutatingwebhookconfigurations');
  const place = '/api/v1/namespaces/default/configmaps';
  made(rig, place, { metadata: { name: 'a' } });
  const path = `${place}/a`;
  const first = JSON.parse(rig.ask('GET', path).text) as Shown;
  const { status, text } = rig.ask('PUT', path, { metadata: { name: 'a' }, data: { k: 'v' } });
  assert.equal(status, 200, text);
  const { uid, creationTimestamp } = (JSON.parse(text) as Shown).metadata;
  assert.deepEqual(
    [uid, creationTimestamp],
    [first.metadata['uid'], first.metadata['creationTimestamp']],
  );
  const type = { 'content-type': 'application/merge-patch+json' };
  assert.equal(rig.ask('PATCH', path, { data: { k: 'w' } }, type).status, 200);
  const shown = asked.map(({ object }) => object?.metadata['uid'] !== undefined);
  assert.deepEqual(shown, [false, false, true], 'a patch has what it patches');
  made(rig, '/api/v1/namespaces', { metadata: { name: 'n' } });
  assert.equal(asked.at(-1)?.namespace, 'n', 'a new namespace is in itself');
});
