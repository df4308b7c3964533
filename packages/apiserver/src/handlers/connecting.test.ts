/** Connections and reviews before admission: what webhooks are told of them, and that they wait. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AccessModel, WebhookModel } from '../testing/access.sim.ts';
import type { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { identityOf } from '../request/identity.ts';

const POD = '/api/v1/namespaces/default/pods/p';
const REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

interface Connected {
  readonly model: AccessModel;
  readonly hook: WebhookModel;
  /** Paths that requests were sent on to. */
  readonly passed: string[];
}

function connected(...rules: readonly object[]): Connected {
  const hook = new WebhookModel();
  const passed: string[] = [];
  const model = new AccessModel({
    webhooks: hook,
    disabledPlugins: ['ServiceAccount'],
    tokenReaders: () => [() => identityOf('joe', ['system:masters'])],
    relay: {
      kubelets: { addressTypes: ['InternalIP'], port: 10250 },
      pass: (_, target) => void passed.push(target.path),
      fetch: (_, __, done) => done({ why: 'nobody is there' }),
    },
  });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  model.ask('POST', '/api/v1/nodes', {
    metadata: { name: 'n' },
    status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
  });
  const containers = [{ name: 'c', image: 'i' }];
  const spec = { nodeName: 'n', containers };
  model.ask('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'p' }, spec });
  model.ask('POST', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
    metadata: { name: 'w' },
    webhooks: [
      {
        name: 'w.hooks.example',
        clientConfig: { url: 'https://hook.example/' },
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        rules: rules.map((rule) => ({ apiGroups: ['*'], apiVersions: ['*'], ...rule })),
      },
    ],
  });
  return { model, hook, passed };
}

/** What the webhook was asked; it answers with `allowed`. */
function reviewed({ model, hook }: Connected, allowed: boolean): JsonObject {
  const request = objectAt(hook.calls[0]?.body, 'request') ?? {};
  const response = { uid: stringAt(request, 'uid'), allowed };
  hook.answer({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', response });
  model.settle();
  return request;
}

function told(exchange: ExchangeModel): string {
  return `${exchange.status} ${stringAt(JSON.parse(exchange.text) as JsonObject, 'message')}`;
}

const CONNECT = { operations: ['CONNECT'], resources: ['pods/*', 'nodes/*'] };

test('a command runs when webhooks let it, and they are told which', () => {
  const server = connected(CONNECT);
  server.model.ask('POST', `${POD}/exec?command=sh&command=-c&stdin=true&stderr=0`);
  assert.deepEqual(server.passed, [], 'it waits');
  const { operation, object, options, requestSubResource, name } = reviewed(server, true);
  assert.deepEqual(
    { operation, object, options, requestSubResource, name },
    {
      operation: 'CONNECT',
      object: { kind: 'PodExecOptions', apiVersion: 'v1', stdin: true, command: ['sh', '-c'] },
      options: null,
      requestSubResource: 'exec',
      name: 'p',
    },
  );
  assert.deepEqual(server.passed, ['/exec/default/p/c?input=1&command=sh&command=-c']);
});

test('what webhooks refuse goes nowhere, whichever way it is asked', () => {
  const server = connected(CONNECT);
  for (const [method, path, options] of [
    ['GET', `${POD}/attach?container=c`, { kind: 'PodAttachOptions', container: 'c' }],
    [
      'POST',
      `${POD}/portforward?ports=80&ports=81`,
      { kind: 'PodPortForwardOptions', ports: [80, 81] },
    ],
    [
      'POST',
      `${POD}/portforward?ports=80,81&ports=82`,
      { kind: 'PodPortForwardOptions', ports: [80, 81, 82] },
    ],
    ['DELETE', `${POD}/proxy/a/b?x=y`, { kind: 'PodProxyOptions', path: '/a/b' }],
    ['GET', '/api/v1/nodes/n/proxy/', { kind: 'NodeProxyOptions', path: '/' }],
    ['GET', '/api/v1/nodes/n/proxy', { kind: 'NodeProxyOptions' }],
  ] as const) {
    const exchange = server.model.ask(method, path);
    const { kind, ...fields } = options;
    assert.deepEqual(reviewed(server, false)['object'], { kind, apiVersion: 'v1', ...fields });
    const text = '400 admission webhook "w.hooks.example" denied the request without explanation';
    assert.equal(told(exchange), text);
  }
  assert.deepEqual(server.passed, []);
  assert.match(told(server.model.ask('GET', `${POD}/exec?dryRun=All`)), /^400 dryRun is not supp/);
  const ports = server.model.ask('GET', `${POD}/portforward?ports=x`);
  assert.match(told(ports), /^400 cannot convert to \[\]int32: strconv.ParseUint: parsing "x"/);
  const large = server.model.ask('GET', `${POD}/portforward?ports=80,70000`);
  assert.match(told(large), /\[\]int32: strconv.ParseUint: parsing "70000": value out of range/);
  assert.equal(server.hook.calls.length, 0);
});

test('logs are read without asking', () => {
  const server = connected(CONNECT);
  server.model.ask('GET', `${POD}/log`);
  assert.deepEqual(server.passed, ['/containerLogs/default/p/c']);
});

test('access reviews are admitted as creations, with owners of their fields', () => {
  const server = connected({ operations: ['CREATE'], resources: ['subjectaccessreviews'] });
  const spec = { user: 'jane', resourceAttributes: { verb: 'get', resource: 'pods' } };
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
  const exchange = server.model.ask('POST', REVIEWS, body);
  assert.equal(exchange.status, 0, 'it waits');
  const { object, operation } = reviewed(server, true);
  assert.equal(operation, 'CREATE');
  assert.equal(exchange.status, 201);
  const { metadata } = JSON.parse(exchange.text) as JsonObject;
  assert.deepEqual(metadata, (object as JsonObject)['metadata']);
  assert.match(JSON.stringify(metadata), /"f:spec":\{"f:resourceAttributes":/);
  const refused = server.model.ask('POST', REVIEWS, body);
  reviewed(server, false);
  assert.match(told(refused), /^400 admission webhook "w.hooks.example" denied/);
});

test('reviews that are wrong in themselves are refused before webhooks are asked', () => {
  const resources = ['subjectaccessreviews', 'selfsubjectrulesreviews', 'tokenreviews'];
  const { model, hook } = connected({ operations: ['CREATE'], resources });
  const rules = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
  const tokens = '/apis/authentication.k8s.io/v1/tokenreviews';
  for (const [path, words] of [
    [REVIEWS, /^422 .*at least one of user or group must be specified/],
    [rules, /^400 no namespace on request$/],
    [tokens, /^400 token is required for TokenReview in authentication$/],
  ] as const) {
    assert.match(told(model.ask('POST', path, { spec: {} })), words);
  }
  assert.equal(hook.calls.length, 0);
});

test('evictions of the older version are taken', () => {
  const server = connected({ operations: ['CREATE'], resources: ['pods/eviction'] });
  const body = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name: 'p' } };
  const exchange = server.model.ask('POST', `${POD}/eviction?dryRun=All`, body);
  const { object } = reviewed(server, true);
  const metadata = { name: 'p', namespace: 'default' };
  assert.deepEqual(object, { kind: 'Eviction', apiVersion: 'policy/v1', metadata });
  assert.equal(exchange.status, 201);
});
