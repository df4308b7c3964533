/** Policies, webhooks and quotas see custom resources as they see built-in ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WebhookCaller } from '../../webhook/webhook-call.ts';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import {
  define,
  definitionOf,
  startRig,
  versionOf,
  type Rig,
} from '../../testing/definitions.sim.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const RULES = [
  {
    operations: ['CREATE', 'UPDATE'],
    apiGroups: ['example.com'],
    apiVersions: ['v1'],
    resources: ['widgets'],
  },
];

function widget(name: string, size: number): object {
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name }, spec: { size } };
}

function made({ status, text }: ExchangeModel): void {
  assert.equal(status, 201, text);
}

function create(rig: Rig, path: string, body: object): void {
  made(rig.ask('POST', path, body));
  rig.settle();
}

test('the status of a policy tells what the schemas of custom kinds refute', async () => {
  const rig = startRig();
  const text = { type: 'string', nullable: true };
  const spec = { type: 'object', properties: { size: { type: 'integer' }, text } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  define(rig, definitionOf('widgets', [{ ...versionOf('v1'), schema }]));
  create(rig, `${ADMISSION}/validatingadmissionpolicies`, {
    metadata: { name: 'p' },
    spec: {
      paramKind: { apiVersion: 'example.com/v1', kind: 'Widget' },
      matchConstraints: { resourceRules: RULES },
      validations: [
        { expression: 'object.spec.size > "a"' },
        { expression: 'object.metadata.labels["a"] == "b" && object.spec.size == 1' },
        { expression: 'object.spec.text == null', messageExpression: "'' + params.spec.none" },
      ],
    },
  });
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  rig.settle();
  const { text: stored } = rig.ask('GET', `${ADMISSION}/validatingadmissionpolicies/p`);
  const { status } = JSON.parse(stored) as {
    status: { typeChecking: { expressionWarnings: { fieldRef: string; warning: string }[] } };
  };
  const found = status.typeChecking.expressionWarnings.map(
    ({ fieldRef, warning }) => `${fieldRef}: ${warning.split('\n')[0]}`,
  );
  const overload = 'found no matching overload for';
  assert.deepEqual(found, [
    'spec.validations[0].expression: example.com/v1, Kind=Widget: ERROR: <input>:1:18: ' +
      `${overload} '_>_' applied to '(int, string)'`,
    'spec.validations[2].expression: example.com/v1, Kind=Widget: ERROR: <input>:1:18: ' +
      `${overload} '_==_' applied to '(string, null)'`,
    'spec.validations[2].messageExpression: example.com/v1, Kind=Widget: ERROR: ' +
      "<input>:1:17: undefined field 'none'",
  ]);
});

test('policies refuse and change custom resources', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const matchConstraints = { resourceRules: RULES };
  create(rig, `${ADMISSION}/validatingadmissionpolicies`, {
    metadata: { name: 'small' },
    spec: {
      matchConstraints,
      validations: [{ expression: 'object.spec.size <= 3', message: 'too large' }],
    },
  });
  create(rig, `${ADMISSION}/validatingadmissionpolicybindings`, {
    metadata: { name: 'small' },
    spec: { policyName: 'small', validationActions: ['Deny'] },
  });
  create(rig, `${ADMISSION}/mutatingadmissionpolicies`, {
    metadata: { name: 'mark' },
    spec: {
      matchConstraints,
      reinvocationPolicy: 'Never',
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: {
            expression: `[JSONPatch{op: "add", path: "/spec/marked", value: true}]`,
          },
        },
      ],
    },
  });
  create(rig, `${ADMISSION}/mutatingadmissionpolicybindings`, {
    metadata: { name: 'mark' },
    spec: { policyName: 'mark' },
  });
  const small = rig.ask('POST', WIDGETS, widget('a', 3));
  made(small);
  const { spec } = JSON.parse(small.text) as { spec: object };
  assert.deepEqual(spec, { size: 3, marked: true });
  const large = rig.ask('POST', WIDGETS, widget('b', 4));
  assert.equal(large.status, 422, large.text);
  assert.match(
    large.text,
    /ValidatingAdmissionPolicy 'small' with binding 'small' denied.*too large/,
  );
});

test('webhooks are asked about custom resources, and refuse them', async () => {
  const asked: unknown[] = [];
  const webhooks: WebhookCaller = {
    call: (_target, body, _timeoutMs, then) => {
      const { request } = JSON.parse(body.toString()) as {
        request: { uid: string; kind: object; resource: object; object: { spec: object } };
      };
      asked.push([request.kind, request.resource, request.object.spec]);
      const response = { uid: request.uid, allowed: false, status: { message: 'not today' } };
      const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
      const answer = Buffer.from(JSON.stringify(review));
      setImmediate(() =>
        then({ ok: true, status: 200, contentType: 'application/json', body: answer }),
      );
    },
  };
  const rig = startRig({ webhooks });
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  create(rig, `${ADMISSION}/validatingwebhookconfigurations`, {
    metadata: { name: 'hook' },
    webhooks: [
      {
        name: 'hook.example.com',
        clientConfig: { url: 'https://hook/check' },
        rules: RULES,
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  const refused = rig.ask('POST', WIDGETS, widget('a', 1));
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.match(
    refused.text,
    /admission webhook \\"hook.example.com\\" denied the request: not today/,
  );
  const kind = { group: 'example.com', version: 'v1', kind: 'Widget' };
  const resource = { group: 'example.com', version: 'v1', resource: 'widgets' };
  assert.deepEqual(asked, [[kind, resource, { size: 1 }]]);
});

test('a quota counts custom resources by their name', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const hard = { 'count/widgets.example.com': '1' };
  const quotas = '/api/v1/namespaces/default/resourcequotas';
  create(rig, quotas, { metadata: { name: 'few' }, spec: { hard } });
  const status = { hard, used: { 'count/widgets.example.com': '0' } };
  const merge = { 'content-type': 'application/merge-patch+json' };
  const told = rig.ask('PATCH', `${quotas}/few/status`, { status }, merge);
  assert.equal(told.status, 200, told.text);
  made(rig.ask('POST', WIDGETS, widget('a', 1)));
  rig.settle();
  const refused = rig.ask('POST', WIDGETS, widget('b', 1));
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.text, /exceeded quota: few, requested: count\/widgets.example.com=1/);
});

/** What a widget of the cluster becomes whose webhook answers with the operations. */
async function patchedBy(rules: readonly object[], operations: readonly object[]) {
  let calls = 0;
  const webhooks: WebhookCaller = {
    call: (_target, body, _timeoutMs, then) => {
      calls++;
      const { request } = JSON.parse(body.toString()) as { request: { uid: string } };
      const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
      const response = { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch };
      const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
      const answer = Buffer.from(JSON.stringify(review));
      setImmediate(() =>
        then({ ok: true, status: 200, contentType: 'application/json', body: answer }),
      );
    },
  };
  const rig = startRig({ webhooks });
  const spec = { type: 'object', properties: { size: { type: 'integer' } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const version = versionOf('v1', { schema });
  define(rig, definitionOf('widgets', [version], { scope: 'Cluster' }));
  const hook = (name: string): object => ({
    name: `${name}.example.com`,
    clientConfig: { url: 'https://hook/change' },
    rules,
    sideEffects: 'None',
    reinvocationPolicy: 'IfNeeded',
    admissionReviewVersions: ['v1'],
  });
  create(rig, `${ADMISSION}/mutatingwebhookconfigurations`, {
    metadata: { name: 'hooks' },
    webhooks: [hook('one.hook'), hook('two.hook')],
  });
  const answer = rig.ask('POST', '/apis/example.com/v1/widgets', widget('a', 1));
  for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve));
  return { answer, calls };
}

test('what webhooks add is judged as it is, and stored as its schema has it', async () => {
  const labels = { op: 'add', path: '/metadata/labels', value: { b: 'c', a: 'b' } };
  const same = await patchedBy(RULES, [labels]);
  assert.equal(same.calls, 2, 'who changes nothing brings no second round');
  const extra = { op: 'add', path: '/spec/extra', value: 1 };
  const elsewhere = { op: 'add', path: '/metadata/namespace', value: 'n' };
  const kept = await patchedBy(RULES, [extra, elsewhere]);
  made(kept.answer);
  assert.doesNotMatch(kept.answer.text, /extra|"namespace"/);
  const nothing = await patchedBy(RULES, [{ op: 'add', path: '/spec/size', value: null }]);
  assert.match(nothing.answer.text, /spec.size in body must be of type integer: \\"null\\"/);
  const list = await patchedBy(RULES, [{ op: 'replace', path: '', value: [] }]);
  assert.match(list.answer.text, /cannot unmarshal array into Go value of type struct/);
});

test('what policies patch is judged as it is, and not at all where a test fails', () => {
  const rig = startRig();
  const spec = { type: 'object', properties: { size: { type: 'integer' } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  define(rig, definitionOf('widgets', [versionOf('v1', { schema })]));
  const test = `JSONPatch{op: "test", path: "/spec/size", value: 1}`;
  const list = `JSONPatch{op: "add", path: "/spec/none/-", value: 1}`;
  const void_ = `JSONPatch{op: "add", path: "/spec/size", value: dyn(null)}`;
  const expression = `object.spec.size == 2 ? [${test}, ${list}] : [${void_}]`;
  create(rig, `${ADMISSION}/mutatingadmissionpolicies`, {
    metadata: { name: 'p' },
    spec: {
      matchConstraints: { resourceRules: RULES },
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
    },
  });
  const binding = { metadata: { name: 'p' }, spec: { policyName: 'p' } };
  create(rig, `${ADMISSION}/mutatingadmissionpolicybindings`, binding);
  made(rig.ask('POST', WIDGETS, widget('a', 2)));
  const refused = rig.ask('POST', WIDGETS, widget('b', 1));
  assert.match(refused.text, /spec.size in body must be of type integer: \\"null\\"/);
});
