import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { identityOf, type Identity } from '../request/identity.ts';
import { openAuthorizers, type AuthorizationFlags } from './access-flags.ts';
import { AccessModel, WebhookModel } from '../testing/access.sim.ts';
import { readAuthorizationConfiguration } from './authorization-configuration.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const PEOPLE = new Map<string, Identity>([
  ['jane', identityOf('jane', ['dev'], '7', { team: ['a', 'b'] })],
  ['joe', identityOf('joe', [])],
]);
const KUBECONFIG = `
clusters: [{name: c, cluster: {server: 'https://hook.example:8443/authz'}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;

const REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

/** A server with a webhook among its authorizers; `modes` may name several. */
function withWebhook(
  t: { after(work: () => void): void },
  flags: (file: string) => AuthorizationFlags,
): { readonly model: AccessModel; readonly hook: WebhookModel; readonly told: string[] } {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-access-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'kubeconfig');
  writeFileSync(file, KUBECONFIG);
  const hook = new WebhookModel();
  const told: string[] = [];
  const edge = {
    caller: hook,
    nowMs: (): number => model.nowMs,
    log: (message: string) => void told.push(message),
    later: (_ms: number, work: () => void) => work(),
  };
  const { links } = openAuthorizers(flags(file), edge);
  const readToken = (token: string): Identity | null => PEOPLE.get(token) ?? null;
  const model = new AccessModel({ authorizers: links, tokenReaders: () => [readToken] });
  return { model, hook, told };
}

const modes =
  (authorizationMode: string) =>
  (file: string): AuthorizationFlags => ({
    authorizationMode,
    authorizationWebhookConfigFile: file,
    authorizationWebhookVersion: 'v1',
  });

const review = (status: JsonObject): JsonObject => ({
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SubjectAccessReview',
  status,
});

test('a webhook is asked what nobody before it allows, and its answer is remembered', (t) => {
  const { model, hook } = withWebhook(t, modes('Node,RBAC,Webhook'));
  const asked = model.ask('GET', `${MAPS}/a`, undefined, 'jane');
  assert.equal(asked.status, 0, 'it waits');
  assert.equal(hook.calls[0]?.target.authority, 'hook.example:8443');
  assert.equal(hook.calls[0].target.path, '/authz?timeout=30s');
  assert.equal(hook.calls[0].target.credential?.token, 'secret');
  const body = hook.answer(review({ allowed: true }));
  assert.deepEqual(body['spec'], {
    resourceAttributes: {
      namespace: 'default',
      verb: 'get',
      version: 'v1',
      resource: 'configmaps',
      name: 'a',
    },
    user: 'jane',
    groups: ['dev', 'system:authenticated'],
    extra: { team: ['a', 'b'] },
    uid: '7',
  });
  assert.equal(asked.status, 404, 'it may look, and there is none');
  assert.equal(model.ask('GET', `${MAPS}/a`, undefined, 'jane').status, 404);
  assert.equal(hook.calls.length, 0, 'the answer was remembered');
  model.nowMs += 5 * 60_000;
  model.ask('GET', `${MAPS}/a`, undefined, 'jane');
  assert.equal(hook.calls.length, 1, 'but not for ever');
});

test('what a webhook does not allow is refused with its reason, for half a minute', (t) => {
  const { model, hook } = withWebhook(t, modes('RBAC,Webhook'));
  const asked = model.ask('DELETE', `${MAPS}/a`, undefined, 'joe');
  hook.answer(review({ allowed: false, reason: 'not on Sundays' }));
  assert.equal(asked.status, 403);
  assert.match(asked.text, /User \\"joe\\" cannot delete .*: not on Sundays/);
  assert.equal(model.ask('DELETE', `${MAPS}/a`, undefined, 'joe').status, 403);
  model.nowMs += 31_000;
  assert.equal(model.ask('DELETE', `${MAPS}/a`, undefined, 'joe').status, 0);
});

test('a webhook that denies outweighs those after it; one without opinion does not', (t) => {
  const { model, hook } = withWebhook(t, modes('Webhook,AlwaysAllow'));
  const denied = model.ask('GET', `${MAPS}/a`, undefined, 'joe');
  hook.answer(review({ allowed: false, denied: true, reason: 'never' }));
  assert.equal(denied.status, 403);
  const open = model.ask('GET', `${MAPS}/b`, undefined, 'joe');
  hook.answer(review({ allowed: false }));
  assert.equal(open.status, 404);
  const name = 'apiserver_authorization_decisions_total';
  const { text } = model.ask('GET', '/metrics');
  assert.deepEqual(
    text.split('\n').filter((line) => line.startsWith(name)),
    [
      `${name}{decision="denied",name="default",type="Webhook"} 1`,
      `${name}{decision="allowed",name="alwaysallow",type="AlwaysAllow"} 1`,
    ],
  );
});

test('a webhook that fails fails what nobody allows, and is left alone for a second', (t) => {
  const { model, hook, told } = withWebhook(t, modes('Webhook'));
  const first = model.ask('GET', `${MAPS}/a`, undefined, 'joe');
  const same = model.ask('GET', `${MAPS}/a`, undefined, 'joe');
  assert.equal(hook.calls.length, 1, 'the same question is asked once');
  hook.fail('context deadline exceeded');
  assert.deepEqual([first.status, same.status], [500, 500]);
  assert.equal(
    first.text,
    `Internal Server Error: "${MAPS}/a": ` +
      'Post "https://hook.example:8443/authz?timeout=30s": context deadline exceeded\n',
  );
  assert.match(told.join(), /authorization webhook default: Post .*: context deadline exceeded/);
  assert.equal(model.ask('GET', `${MAPS}/a`, undefined, 'joe').status, 500);
  model.nowMs += 1001;
  const again = model.ask('GET', `${MAPS}/a`, undefined, 'joe');
  hook.answer(review({ allowed: 'yes' }));
  assert.equal(again.status, 500);
  assert.match(
    again.text,
    /cannot unmarshal string into Go struct field SubjectAccessReviewStatus.status.allowed of type/,
  );
});

test('a webhook is asked again where its failure may pass, and when it says so', (t) => {
  const { model, hook } = withWebhook(t, modes('Webhook'));
  const flaky = model.ask('GET', `${MAPS}/a`, undefined, 'joe');
  for (let times = 0; times < 4; times++) hook.answer({}, 500);
  hook.answer(review({ allowed: true }));
  assert.equal(flaky.status, 404, 'the fifth answer counts');
  const busy = model.ask('GET', `${MAPS}/b`, undefined, 'joe');
  const body = Buffer.from('');
  hook.calls.shift()?.answer({ ok: true, status: 503, contentType: '', body, retryAfterS: 1 });
  hook.answer(review({ allowed: true }));
  assert.equal(busy.status, 404);
  const gone = model.ask('GET', `${MAPS}/c`, undefined, 'joe');
  hook.answer({}, 503);
  assert.equal(gone.status, 500, 'who does not say when is not asked again');
  assert.match(gone.text, /the server is currently unable to handle the request/);
  const both = model.ask('GET', `${MAPS}/d`, undefined, 'joe');
  hook.answer(review({ allowed: true, denied: true }));
  assert.match(both.text, /webhook subject access review returned both allow and deny response/);
});

test('a review says whom it is about and what a list is narrowed to', (t) => {
  const { model, hook } = withWebhook(t, modes('RBAC,Webhook'));
  const resourceAttributes = {
    verb: 'list',
    resource: 'pods',
    fieldSelector: { rawSelector: 'spec.nodeName=a,metadata.name!=b' },
    labelSelector: { requirements: [{ key: 'a', operator: 'In', values: ['c', 'b'] }] },
  };
  const spec = { user: 'eve', uid: 'u', groups: ['g'], extra: { Key: ['v'] }, resourceAttributes };
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
  const asked = model.ask('POST', REVIEWS, body, 'joe');
  hook.answer(review({ allowed: true }));
  const question = hook.answer(review({ allowed: false }), 404)['spec'];
  assert.deepEqual(question, {
    resourceAttributes: {
      verb: 'list',
      version: '*',
      resource: 'pods',
      fieldSelector: {
        requirements: [
          { key: 'metadata.name', operator: 'NotIn', values: ['b'] },
          { key: 'spec.nodeName', operator: 'In', values: ['a'] },
        ],
      },
      labelSelector: { requirements: [{ key: 'a', operator: 'In', values: ['b', 'c'] }] },
    },
    user: 'eve',
    groups: ['g'],
    extra: { Key: ['v'] },
    uid: 'u',
  });
  const { status } = JSON.parse(asked.text) as { status: JsonObject };
  const evaluationError = 'the server could not find the requested resource';
  assert.deepEqual(status, { allowed: false, evaluationError });
});

test('a configuration that changes counts at once, one that is wrong does not', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-access-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'config');
  const of = (type: string): string =>
    JSON.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AuthorizationConfiguration',
      authorizers: [{ type, name: 'only' }],
    });
  writeFileSync(file, of('AlwaysDeny'));
  const edge = { caller: new WebhookModel(), nowMs: () => 0, log: () => {}, later: () => {} };
  const { links, metrics, stop } = openAuthorizers({ authorizationConfig: file }, edge, 5);
  t.after(stop);
  const print = (): string => {
    const lines: string[] = [];
    metrics.print(lines);
    return lines.join('\n');
  };
  const until = async (holds: () => boolean): Promise<void> => {
    for (let tries = 0; tries < 1000 && !holds(); tries++) await setTimeout(5);
  };
  writeFileSync(file, `${of('AlwaysAllow')} `);
  const only = [{ name: 'only', link: 'AlwaysAllow' }];
  await until(() => isDeepStrictEqual(links(), only));
  assert.deepEqual(links(), only);
  writeFileSync(file, of('Sometimes'));
  await until(() => print().includes('status="failure"'));
  assert.deepEqual(links(), only);
  assert.match(print(), /automatic_reloads_total\{status="success"\} 1/);
  assert.match(print(), /automatic_reloads_total\{status="failure"\} 1/);
  assert.match(print(), /last_config_info\{hash="sha256:[0-9a-f]{64}"\} 1/);
});

test('reviews and impersonation wait for the webhook, too', (t) => {
  const { model, hook } = withWebhook(t, modes('Webhook'));
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb: 'list', resource: 'secrets' } },
  };
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const asked = model.ask('POST', path, body, 'joe');
  hook.answer(review({ allowed: true }));
  hook.answer(review({ allowed: false, denied: true, reason: 'no' }));
  assert.equal(asked.status, 201);
  const { status } = JSON.parse(asked.text) as { status: JsonObject };
  assert.deepEqual(status, { allowed: false, denied: true, reason: 'no' });
  const acting = model.ask('GET', `${MAPS}/a`, undefined, 'joe', { 'impersonate-user': 'jane' });
  const question = hook.answer(review({ allowed: true }))['spec'] as JsonObject;
  assert.deepEqual(question['resourceAttributes'], {
    namespace: 'default',
    verb: 'impersonate-on:user-info:get',
    version: 'v1',
    resource: 'configmaps',
    name: 'a',
  });
  const second = hook.answer(review({ allowed: true }))['spec'] as JsonObject;
  assert.deepEqual(second['resourceAttributes'], {
    verb: 'impersonate:user-info',
    group: 'authentication.k8s.io',
    version: 'v1',
    resource: 'users',
    name: 'jane',
  });
  assert.equal((hook.answer(review({ allowed: true }))['spec'] as JsonObject)['user'], 'jane');
  assert.equal(acting.status, 404);
});

test('match conditions decide whether a webhook is asked at all', (t) => {
  const { model, hook } = withWebhook(t, (file) => {
    const config = `${file}.config`;
    writeFileSync(config, configuration(file, ["request.resourceAttributes.namespace == 'x'"]));
    return { authorizationConfig: config };
  });
  assert.equal(model.ask('GET', `${MAPS}/a`, undefined, 'joe').status, 403);
  assert.equal(hook.calls.length, 0, 'the condition does not hold');
  const other = model.ask('GET', '/api/v1/namespaces/x/configmaps/a', undefined, 'joe');
  hook.answer(review({ allowed: true }));
  assert.equal(other.status, 404);
  const failed = model.ask('GET', '/metrics', undefined, 'joe');
  assert.equal(failed.status, 500);
  assert.match(
    failed.text,
    /cel evaluation error: expression '.*' resulted in error: no such key: resourceAttributes\n$/,
  );
});

function configuration(file: string, expressions: readonly string[]): string {
  return JSON.stringify({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    authorizers: [
      { type: 'Node', name: 'node' },
      {
        type: 'Webhook',
        name: 'hook',
        webhook: {
          timeout: '3s',
          authorizedTTL: '30s',
          unauthorizedTTL: '10s',
          subjectAccessReviewVersion: 'v1',
          matchConditionSubjectAccessReviewVersion: 'v1',
          failurePolicy: 'Deny',
          connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: file },
          matchConditions: expressions.map((expression) => ({ expression })),
        },
      },
    ],
  });
}

test('findings in a configuration have their paths and upstream’s words', () => {
  const findings = (text: string): string => {
    try {
      readAuthorizationConfiguration(parse(text) as JsonValue);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    return '';
  };
  const head = 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n';
  assert.equal(
    findings(head),
    'authorizers: Required value: at least one authorization mode must be defined',
  );
  assert.match(findings('kind: X\napiVersion: v1'), /not of apiserver.config.k8s.io\/v1/);
  assert.equal(
    findings(`${head}authorizers: [{type: Foo, name: a}, {type: RBAC}, {type: RBAC, name: b}]`),
    '[authorizers[0].type: Unsupported value: "Foo": supported values: "AlwaysAllow", ' +
      '"AlwaysDeny", "Node", "RBAC", "Webhook", authorizers[1].name: Required value, ' +
      'authorizers[2].type: Duplicate value: "RBAC"]',
  );
  const hook = findings(`${head}authorizers: [{type: Webhook, name: h, webhook: {timeout: 31s,
    authorizedTTL: 1s, unauthorizedTTL: 1s, subjectAccessReviewVersion: v2, failurePolicy: X,
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: rel},
    matchConditions: [{expression: ''}, {expression: '1 +'}, {expression: '1'}]}}]`);
  for (const part of [
    'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s',
    'authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2"',
    'authorizers[0].failurePolicy: Unsupported value: "X"',
    'matchConditionSubjectAccessReviewVersion: Required value: required if match conditions',
    'connectionInfo.kubeConfigFile: Invalid value: "rel": must be an absolute path',
    'matchConditions[0].expression: Required value',
    'matchConditions[1].expression: Invalid value: "1 +": compilation failed: ',
    'matchConditions[2].expression: Invalid value: "1": must evaluate to bool',
  ]) {
    assert.ok(hook.includes(part), `${part} in ${hook}`);
  }
});

test('flags that make no sense together are refused with what to do', () => {
  const open = (flags: AuthorizationFlags) => () =>
    openAuthorizers(flags, {
      caller: new WebhookModel(),
      nowMs: () => 0,
      log: () => {},
      later: () => {},
    });
  assert.throws(open({ authorizationMode: 'ABAC' }), /"ABAC" is not a valid mode; it is one of/);
  assert.throws(open({ authorizationMode: 'RBAC,RBAC' }), /RBAC is named twice/);
  assert.throws(open({ authorizationMode: 'Webhook' }), /authorization-webhook-config-file/);
  assert.throws(
    open({ authorizationMode: 'RBAC', authorizationConfig: 'x' }),
    /can not be specified when --authorization-mode/,
  );
  assert.throws(open({ authorizationConfig: '/no/such' }), /--authorization-config \/no\/such: /);
});
