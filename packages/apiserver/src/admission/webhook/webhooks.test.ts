import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  admittingModel,
  messageOf,
  podOf,
  type AdmittingModel,
} from '../../testing/admitting.sim.ts';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from '../../webhook/webhook-call.ts';

interface ReviewRequest {
  readonly uid: string;
  readonly operation: string;
  readonly name: string;
  readonly namespace: string;
  readonly kind: { readonly kind: string };
  readonly requestKind: { readonly group: string };
  readonly resource: { readonly group: string };
  readonly options: { readonly kind: string };
  readonly object: {
    metadata: {
      labels?: Record<string, string>;
      uid?: string;
      resourceVersion?: string;
    };
    spec: { containers: unknown[] };
  };
  readonly oldObject: unknown;
  readonly dryRun: boolean;
  readonly userInfo: { readonly username: string };
}
type Reply = (request: ReviewRequest, target: WebhookTarget) => object | WebhookResponse;

/** Answers by the host of the URL; calls back in a later turn. */
class CallerModel implements WebhookCaller {
  readonly calls: string[] = [];
  readonly replies: Record<string, Reply> = {};
  call(target: WebhookTarget, body: Buffer, _: number, then: (r: WebhookResponse) => void): void {
    this.calls.push(target.host);
    const review = JSON.parse(body.toString()) as { request: ReviewRequest };
    const reply = this.replies[target.host]?.(review.request, target) ?? { allowed: true };
    setImmediate(() => then('ok' in reply ? (reply as WebhookResponse) : answered(review, reply)));
  }
}

function answered(review: { request: ReviewRequest }, reply: object): WebhookResponse {
  const response = { uid: review.request.uid, ...reply };
  const body = Buffer.from(
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }),
  );
  return { ok: true, status: 200, contentType: 'application/json', body };
}

const RULE = {
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['pods', 'configmaps'],
};

function webhook(name: string, more: object = {}): object {
  return {
    name: `${name}.hooks.example`,
    clientConfig: { url: `https://${name}/check` },
    rules: [RULE],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...more,
  };
}

const GROUP = '/apis/admissionregistration.k8s.io/v1';

function configure({ expect }: AdmittingModel, kind: string, name: string, hooks: object[]): void {
  const path = `${GROUP}/${kind}webhookconfigurations`;
  expect(201, 'POST', path, { metadata: { name }, webhooks: hooks });
}

async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

function patch(...operations: object[]): object {
  const text = Buffer.from(JSON.stringify(operations)).toString('base64');
  return { allowed: true, patchType: 'JSONPatch', patch: text };
}

const PODS = '/api/v1/namespaces/n/pods';
const MAPS = '/api/v1/namespaces/n/configmaps';
const NAMESPACE = '/metadata/namespace';

test('mutating webhooks change what is stored, in order, and again when asked to', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  configure(model, 'mutating', 'a', [webhook('first', { reinvocationPolicy: 'IfNeeded' })]);
  configure(model, 'mutating', 'b', [webhook('second')]);
  webhooks.replies['first'] = ({ object }) => {
    const count = String(object.spec.containers.length);
    return patch({
      op: 'add',
      path: '/metadata/labels',
      value: { ...object.metadata.labels, count },
    });
  };
  webhooks.replies['second'] = ({ object }) => {
    assert.equal(object.metadata.labels?.['count'], '1');
    const container = { name: 'sidecar', image: 'side' };
    return patch({ op: 'add', path: '/spec/containers/-', value: container });
  };
  const answer = model.ask('POST', PODS, podOf('p'));
  assert.equal(answer.text, '', 'nothing is answered before the webhooks are');
  await settled();
  assert.equal(answer.status, 201, answer.text);
  const pod = JSON.parse(answer.text) as {
    metadata: { labels: object };
    spec: { containers: { imagePullPolicy: string; volumeMounts: unknown[] }[] };
  };
  assert.deepEqual(pod.metadata.labels, { count: '2' });
  assert.deepEqual(webhooks.calls, ['first', 'second', 'first']);
  // the other plugins saw the new container too
  assert.equal(pod.spec.containers[1]?.imagePullPolicy, 'Always');
  assert.equal(pod.spec.containers[1]?.volumeMounts.length, 1);
  assert.equal(model.ask('GET', `${PODS}/p`).text, answer.text);
});

test('a refusal says who refused and why; deletions and changes are asked for too', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const asked: string[] = [];
  configure(model, 'validating', 'a', [webhook('no'), webhook('yes')]);
  webhooks.replies['no'] = ({ operation, name, namespace, userInfo, oldObject }) => {
    asked.push(`${operation} ${namespace}/${name} ${userInfo.username} ${oldObject === null}`);
    if (operation === 'DELETE') return { allowed: false };
    if (operation === 'UPDATE') return { allowed: false, status: { message: 'no', code: 409 } };
    return { allowed: true, warnings: ['mind the gap'] };
  };
  const created = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(created.status, 201, created.text);
  assert.ok(created.headers.includes('299 - "mind the gap"'));
  const changed = model.ask('PATCH', `${MAPS}/m`, { data: { a: 'b' } });
  const deleted = model.ask('DELETE', `${MAPS}/m`);
  await settled();
  assert.equal(changed.status, 409);
  assert.equal(messageOf(changed), 'admission webhook "no.hooks.example" denied the request: no');
  assert.equal(deleted.status, 400);
  assert.equal(
    messageOf(deleted),
    'admission webhook "no.hooks.example" denied the request without explanation',
  );
  assert.deepEqual(asked, [
    'CREATE n/m kubernetes-admin true',
    'UPDATE n/m kubernetes-admin false',
    'DELETE n/m kubernetes-admin false',
  ]);
});

test('webhooks that fail refuse or are passed over, as their policy says', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const raw =
    (body: string, status = 200): Reply =>
    () => ({ ok: true, status, contentType: '', body: Buffer.from(body) });
  const cases: [Reply, string][] = [
    [
      () => ({ ok: false, why: 'context deadline exceeded' }),
      'failed to call webhook: Post "https://bad/check?timeout=10s": context deadline exceeded',
    ],
    [
      raw('garbage'),
      "failed to call webhook: couldn't get version/kind; json parse error: json: cannot " +
        'unmarshal string into Go value of type struct {',
    ],
    [raw('{}', 404), 'failed to call webhook: the server could not find the requested resource'],
    [raw('{}'), 'received invalid webhook response: webhook response was absent'],
    [
      () => ({ uid: 'x', allowed: true }),
      'received invalid webhook response: expected response.uid="',
    ],
    [
      () => ({ allowed: true, patch: 'W10=' }),
      'received invalid webhook response: webhook returned response.patch but not ' +
        'response.patchType',
    ],
  ];
  configure(model, 'mutating', 'a', [webhook('bad')]);
  for (const [reply, text] of cases) {
    webhooks.replies['bad'] = reply;
    const answer = model.ask('POST', MAPS, { metadata: { name: 'm' } });
    await settled();
    assert.equal(answer.status, 500);
    const message = messageOf(answer);
    const head = 'Internal error occurred: failed calling webhook "bad.hooks.example": ';
    assert.ok(message.startsWith(head + text), message);
  }
  const path = `${GROUP}/mutatingwebhookconfigurations/a`;
  model.expect(200, 'PATCH', path, { webhooks: [webhook('bad', { failurePolicy: 'Ignore' })] });
  const answer = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(answer.status, 201, answer.text);
  const metrics = model.ask('GET', '/metrics').text;
  assert.match(metrics, /webhook_fail_open_count\{name="bad.hooks.example",type="admit"\} 1/);
});

test('selectors, conditions and exemptions decide who is asked at all', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const condition = (expression: string): object => ({
    matchConditions: [{ name: 'c', expression }],
  });
  configure(model, 'validating', 'a', [
    webhook('labelled', { objectSelector: { matchLabels: { a: 'b' } } }),
    webhook('elsewhere', { namespaceSelector: { matchLabels: { x: 'y' } } }),
    webhook('named', condition('object.metadata.name.startsWith("q")')),
    webhook('mine', condition('request.userInfo.username == "somebody"')),
    webhook('failing', { ...condition('object.data.x == "1"'), failurePolicy: 'Ignore' }),
    webhook('all', { rules: [{ ...RULE, apiGroups: ['*'], resources: ['*/*'] }] }),
  ]);
  const ask = async (name: string, labels: object): Promise<string[]> => {
    webhooks.calls.length = 0;
    const answer = model.ask('POST', MAPS, { metadata: { name, labels } });
    await settled();
    assert.equal(answer.status, 201, answer.text);
    return [...webhooks.calls];
  };
  assert.deepEqual(await ask('m', {}), ['all']);
  assert.deepEqual(await ask('q', { a: 'b' }), ['labelled', 'named', 'all']);
  webhooks.calls.length = 0;
  configure(model, 'mutating', 'b', [webhook('other')]);
  assert.deepEqual(webhooks.calls, []);
  const dry = model.ask('POST', `${MAPS}?dryRun=All`, { metadata: { name: 'd' } });
  await settled();
  assert.equal(dry.status, 201, dry.text);
});

test('a webhook for another version of an object sees it in that version', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const rules = [
    { operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['events'] },
  ];
  configure(model, 'validating', 'a', [
    webhook('old', { rules }),
    webhook('exact', { rules, matchPolicy: 'Exact' }),
  ]);
  let seen = '';
  webhooks.replies['old'] = ({ object, resource, requestKind }) => {
    const isOld = JSON.stringify(object).includes('involvedObject');
    seen = `${resource.group}|${requestKind.group}|${isOld}`;
    return { allowed: true };
  };
  const event = {
    metadata: { name: 'e', namespace: 'n' },
    eventTime: '2026-01-02T03:04:05.000000Z',
    reportingController: 'x.example/y',
    reportingInstance: 'z',
    action: 'a',
    reason: 'r',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'n', name: 'p' },
  };
  const answer = model.ask('POST', '/apis/events.k8s.io/v1/namespaces/n/events', event);
  await settled();
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(webhooks.calls, ['old']);
  assert.equal(seen, '|events.k8s.io|true');
});

test('bindings and scales are admitted as what they are', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const rule = (apiGroups: string[], resources: string[]): object => ({
    rules: [{ operations: ['*'], apiGroups, apiVersions: ['*'], resources }],
  });
  model.expect(201, 'POST', PODS, podOf('p'));
  model.expect(201, 'POST', '/api/v1/nodes', {
    metadata: { name: 'm', labels: { 'topology.kubernetes.io/zone': 'z' } },
  });
  const template = {
    metadata: { labels: { a: 'b' } },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  };
  const spec = { selector: { matchLabels: { a: 'b' } }, template };
  const apps = '/apis/apps/v1/namespaces/n/deployments';
  model.expect(201, 'POST', apps, { metadata: { name: 'd' }, spec });
  configure(model, 'validating', 'a', [
    webhook('bind', rule([''], ['pods/binding'])),
    webhook('scale', rule(['apps'], ['*/scale'])),
  ]);
  const kinds: string[] = [];
  for (const name of ['bind', 'scale']) {
    webhooks.replies[name] = ({ kind, operation, name: own }) => {
      kinds.push(`${operation} ${kind.kind} ${own}`);
      return { allowed: kind.kind === 'Binding' };
    };
  }
  const binding = { metadata: { name: 'p' }, target: { kind: 'Node', name: 'm' } };
  const bound = model.ask('POST', `${PODS}/p/binding`, binding);
  const scaled = model.ask('PATCH', `${apps}/d/scale`, { spec: { replicas: 3 } });
  await settled();
  assert.equal(bound.status, 201, bound.text);
  assert.equal(scaled.status, 400, scaled.text);
  assert.deepEqual(kinds, ['CREATE Binding p', 'UPDATE Scale d']);
  const pod = JSON.parse(model.ask('GET', `${PODS}/p`).text) as {
    metadata: { labels: object };
    spec: { nodeName: string };
  };
  assert.equal(pod.spec.nodeName, 'm');
  assert.deepEqual(pod.metadata.labels, { 'topology.kubernetes.io/zone': 'z' });
});

test('writes that are like others before them are shown to webhooks all the same', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  for (let i = 0; i < 6; i++) model.expect(201, 'POST', PODS, podOf(`before-${i}`));
  configure(model, 'validating', 'a', [webhook('all')]);
  const answers = Array.from({ length: 6 }, (_, i) => model.ask('POST', PODS, podOf(`after-${i}`)));
  await settled();
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201, 201, 201, 201, 201],
  );
  assert.equal(webhooks.calls.length, 6);
});

test('a webhook sees revisions of updates, and changes nothing of the server', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  configure(model, 'mutating', 'a', [webhook('a')]);
  const seen: object[] = [];
  webhooks.replies['a'] = ({ operation, object, options }) => {
    const shown = operation === 'DELETE' ? null : object.metadata;
    seen.push([operation, typeof shown?.uid, typeof shown?.resourceVersion, options.kind]);
    if (operation === 'CREATE') return patch({ op: 'add', path: '/metadata/uid', value: 'mine' });
    if (operation === 'UPDATE') return patch({ op: 'add', path: NAMESPACE, value: 'x' });
    return patch({ op: 'add', path: '/data', value: {} });
  };
  const created = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(created.status, 201, created.text);
  assert.ok(!created.text.includes('mine'));
  const changed = model.ask('PATCH', `${MAPS}/m`, { data: { a: 'b' } });
  const deleted = model.ask('DELETE', `${MAPS}/m?gracePeriodSeconds=3`);
  await settled();
  assert.equal(changed.status, 400);
  assert.match(messageOf(changed), /does not match the namespace sent on the request$/);
  assert.equal(deleted.status, 500);
  assert.match(messageOf(deleted), /attempted to modify the object, which is not supported/);
  assert.deepEqual(seen, [
    ['CREATE', 'undefined', 'undefined', 'CreateOptions'],
    ['UPDATE', 'string', 'string', 'UpdateOptions'],
    ['DELETE', 'undefined', 'undefined', 'DeleteOptions'],
  ]);
});

test('a patch into another kind, or one that cannot be read, is refused', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  configure(model, 'mutating', 'a', [webhook('a', { failurePolicy: 'Ignore' })]);
  webhooks.replies['a'] = () => patch({ op: 'replace', path: '/kind', value: 'Secret' });
  const other = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(other.status, 500);
  assert.equal(messageOf(other), 'converting (v1.Secret) to (core.ConfigMap): unknown conversion');
  webhooks.replies['a'] = () => ({ allowed: true, patchType: 'JSONPatch', patch: 'e30=' });
  const ignored = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(ignored.status, 201, ignored.text);
});

test('a webhook that fails, and may, is asked again after later changes', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const again = { reinvocationPolicy: 'IfNeeded', failurePolicy: 'Ignore' };
  configure(model, 'mutating', 'a', [webhook('first', again), webhook('second')]);
  webhooks.replies['first'] = () => ({ ...patch({ op: 'add', path: '/a' }), patchType: 'X' });
  webhooks.replies['second'] = () => patch({ op: 'add', path: '/data', value: { k: 'v' } });
  const answer = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(webhooks.calls, ['first', 'second', 'first']);
});

test('what is created under an object is shown with who owns it', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  model.expect(201, 'POST', PODS, podOf('p'));
  const rules = [{ ...RULE, resources: ['pods/binding'] }];
  configure(model, 'validating', 'a', [webhook('first', { rules })]);
  let owners: unknown;
  webhooks.replies['first'] = ({ object }) => {
    owners = (object.metadata as { managedFields?: unknown[] }).managedFields;
    return { allowed: true };
  };
  const target = { kind: 'Node', name: 'n1' };
  const answer = model.ask('POST', `${PODS}/p/binding`, { metadata: { name: 'p' }, target });
  await settled();
  assert.equal(answer.status, 201, answer.text);
  const [own] = owners as { subresource: string; fieldsV1: object }[];
  assert.equal(own?.subresource, 'binding');
  assert.deepEqual(own?.fieldsV1, { 'f:target': {} });
});

test('a pod that goes at once is asked about as it was and as it is marked', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  model.expect(201, 'POST', PODS, podOf('p'));
  configure(model, 'validating', 'a', [webhook('first')]);
  const marks: boolean[] = [];
  webhooks.replies['first'] = ({ oldObject }) => {
    const { metadata } = oldObject as { metadata: { deletionTimestamp?: string } };
    marks.push(metadata.deletionTimestamp !== undefined);
    return { allowed: true };
  };
  const answer = model.ask('DELETE', `${PODS}/p?gracePeriodSeconds=0`);
  await settled();
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(marks, [false, true]);
});

test('of a collection nothing goes behind the first that a webhook denies', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  for (const name of ['a', 'b', 'c']) model.expect(201, 'POST', MAPS, { metadata: { name } });
  configure(model, 'validating', 'a', [webhook('first')]);
  const asked: string[] = [];
  webhooks.replies['first'] = ({ oldObject }) => {
    const { name } = (oldObject as { metadata: { name: string } }).metadata;
    asked.push(name);
    return { allowed: name !== 'b' };
  };
  const answer = model.ask('DELETE', MAPS);
  await settled();
  assert.equal(answer.status, 400, answer.text);
  assert.deepEqual(asked, ['a', 'b']);
  const list = JSON.parse(model.ask('GET', MAPS).text) as { items: { metadata: object }[] };
  assert.equal(list.items.length, 2);
});

test('match conditions know nothing of the namespace', async () => {
  const webhooks = new CallerModel();
  const model = admittingModel({ webhooks });
  const matchConditions = [{ name: 'c', expression: 'namespaceObject == null' }];
  configure(model, 'validating', 'a', [webhook('first', { matchConditions })]);
  const answer = model.ask('POST', MAPS, { metadata: { name: 'm' } });
  await settled();
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(webhooks.calls, ['first']);
});
