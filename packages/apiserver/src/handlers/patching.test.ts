import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, messageOf, podOf, type Ask } from '../testing/admitting.sim.ts';
import type { ExchangeModel } from '../testing/exchange-model.sim.ts';

const MAPS = '/api/v1/namespaces/n/configmaps';
const MAP = `${MAPS}/a`;
const TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

interface Patched {
  readonly status: number;
  readonly message: string;
  readonly warnings: readonly string[];
  readonly object: { readonly metadata: Readonly<Record<string, unknown>> };
}

function warningsOf(answer: ExchangeModel): string[] {
  const found: string[] = [];
  for (let at = 0; at < answer.headers.length; at += 2) {
    if (answer.headers[at] === 'warning') found.push(answer.headers[at + 1] ?? '');
  }
  return found.map((one) => one.replace(/^299 - /, ''));
}

/** A ConfigMap, and a way to patch what a path names. */
function patchable() {
  const model = admittingModel();
  const object = { metadata: { name: 'a', labels: { l: 'm' } }, data: { k: 'v' } };
  model.expect(201, 'POST', MAPS, object);
  const patch = (kind: keyof typeof TYPES, path: string, text: string): Patched => {
    const headers = { 'content-type': TYPES[kind] };
    const answer = model.ask('PATCH', path, Buffer.from(text), headers);
    return {
      status: answer.status,
      message: messageOf(answer),
      warnings: warningsOf(answer),
      object: JSON.parse(answer.text) as Patched['object'],
    };
  };
  return { ...model, patch };
}

test('fields that stand twice in a patch are told of, or refused', () => {
  const { patch } = patchable();
  const body = '{"metadata":{"labels":{"a":"1","a":"2"}}}';
  const duplicate = 'duplicate field \\"metadata.labels.a\\"';
  for (const kind of ['merge', 'strategic'] as const) {
    assert.deepEqual(patch(kind, MAP, body).warnings, [`"${duplicate}"`]);
    assert.deepEqual(patch(kind, `${MAP}?fieldValidation=Ignore`, body).warnings, []);
    const strict = patch(kind, `${MAP}?fieldValidation=Strict`, body);
    assert.equal(strict.status, 422);
    assert.match(strict.message, /strict decoding error: duplicate field "metadata\.labels\.a"$/);
  }
  const operations = '[{"op":"add","path":"/data/k","value":"x","value":"y"}]';
  const warned = patch('json', MAP, operations);
  assert.deepEqual(warned.warnings, ['"json patch duplicate field \\"[0].value\\""']);
});

test('a patch that leaves no kind or version that can be read is refused', () => {
  const { patch } = patchable();
  const odd = patch('merge', MAP, '{"kind":["x"]}');
  assert.equal(odd.status, 422);
  assert.match(odd.message, /json: cannot unmarshal array into Go struct field \.kind of type s/);
  // without a version it is read as upstream's internal form, which has none of these fields
  const bare = patch('json', MAP, '[{"op":"remove","path":"/apiVersion"}]');
  assert.equal(bare.status, 400);
  assert.match(bare.message, /undeterminable: name must be provided$/);
  assert.deepEqual(bare.warnings, ['"unknown field \\"metadata\\""', '"unknown field \\"data\\""']);
});

test('what a patch takes the version of has none of its fields', () => {
  const { patch } = patchable();
  const unknown = ['"unknown field \\"metadata\\""', '"unknown field \\"data\\""'];
  assert.deepEqual(patch('merge', MAP, '{"apiVersion":null}').warnings, unknown);
  const quiet = patch('merge', `${MAP}?fieldValidation=Ignore`, '{"apiVersion":null}');
  assert.deepEqual([quiet.status, quiet.warnings], [400, []]);
});

test('a strategic patch is shown as it was merged, without the keys that it retains', () => {
  const { expect, patch } = patchable();
  const path = '/api/v1/namespaces/n/services';
  expect(201, 'POST', path, { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
  const text = '{"spec":{"$retainKeys":["sessionAffinityConfig"],"sessionAffinityConfig":true}}';
  const refused = patch('strategic', `${path}/s`, text);
  assert.match(refused.message, /"map\[spec:map\[sessionAffinityConfig:true\]\]": cannot restore/);
});

test('what was sent empty is refused as empty, lists of numbers are bytes', () => {
  const { expect, patch } = patchable();
  const path = '/apis/networking.k8s.io/v1/namespaces/n/ingresses';
  const refused = (spec: object): string =>
    messageOf(expect(422, 'POST', path, { metadata: { name: 'i' }, spec }));
  assert.match(refused({ rules: [] }), /spec: Invalid value: \[\]: either/);
  assert.match(refused({}), /spec: Invalid value: null: either/);
  const { object } = patch('merge', MAP, '{"binaryData":{"b":[104,105,null]}}');
  assert.deepEqual((object as unknown as { binaryData: object }).binaryData, { b: 'aGkA' });
});

test('replicas that an apply of the scale shares become an entry of their own', () => {
  const { ask, expect, patch } = patchable();
  const path = '/apis/apps/v1/namespaces/n/deployments';
  const labels = { a: 'b' };
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  expect(201, 'POST', `${path}?fieldManager=maker`, {
    metadata: { name: 'd' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec },
    },
  });
  const scale = 'apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: d}\nspec: {replicas: 2}';
  assert.equal(patch('apply', `${path}/d/scale?fieldManager=m`, scale).status, 200);
  const entries = (JSON.parse(ask('GET', `${path}/d`).text) as Patched['object']).metadata;
  const shown = (entries['managedFields'] as Record<string, unknown>[]).map((entry) => [
    entry['manager'],
    'time' in entry,
    JSON.stringify(entry['fieldsV1']).includes('"f:replicas"'),
  ]);
  assert.deepEqual(shown, [
    ['m', false, true],
    ['maker', false, true],
    ['maker', true, false],
  ]);
});

test('whether there is an object comes before what is wrong with the patch', () => {
  const { patch } = patchable();
  assert.equal(patch('json', `${MAPS}/missing`, '{}').status, 404);
  assert.equal(patch('json', MAP, '{}').status, 400);
  assert.equal(patch('merge', MAP, 'null').message, 'Invalid JSON Patch');
  assert.equal(patch('strategic', MAP, 'null').status, 200);
  const infinite = patch('merge', MAP, '{"data":{"k":1e400}}');
  assert.equal(infinite.status, 400);
  assert.match(infinite.message, /cannot unmarshal number 1e400 into Go value of type float64$/);
});

test('an apply that names the uid of an object that is not there conflicts', () => {
  const { patch } = patchable();
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', uid: 'x' } };
  const answer = patch('apply', `${MAPS}/b?fieldManager=m`, JSON.stringify(config));
  assert.equal(answer.status, 409);
  assert.match(answer.message, /uid mismatch: the provided object specified uid x, and no exist/);
});

test('metadata that only the server may set is kept or refused', () => {
  const { patch } = patchable();
  const kept = patch('merge', MAP, '{"metadata":{"generation":7,"generateName":"g"}}');
  assert.equal(kept.object.metadata['generation'], undefined);
  assert.equal(kept.object.metadata['generateName'], 'g');
  for (const metadata of [
    { deletionTimestamp: '2020-01-01T00:00:00Z' },
    { deletionGracePeriodSeconds: 4 },
  ]) {
    const refused = patch('merge', MAP, JSON.stringify({ metadata }));
    assert.equal(refused.status, 422);
    assert.match(refused.message, /field is immutable$/);
  }
});

test('what admission puts back into a pod does not count for its generation', () => {
  const { expect, patch } = patchable();
  const pods = '/api/v1/namespaces/n/pods';
  expect(201, 'POST', pods, podOf('p'));
  const path = `${pods}/p`;
  const answer = patch(
    'merge',
    path,
    '{"metadata":{"labels":{"x":"y"}},"spec":{"tolerations":[]}}',
  );
  assert.equal(answer.status, 200, answer.message);
  assert.equal(answer.object.metadata['generation'], 1);
});

test('a patch of a scale is decoded strictly, and zero replicas are left out', () => {
  const { expect, patch, ask } = patchable();
  const sets = '/apis/apps/v1/namespaces/n/deployments';
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [CONTAINER] } };
  const spec = { replicas: 2, selector: { matchLabels: { a: 'b' } }, template };
  expect(201, 'POST', sets, { metadata: { name: 'd' }, spec });
  const scale = `${sets}/d/scale`;
  const patched = patch('strategic', scale, '{"spec":{"replicas":0,"paused":true}}');
  assert.deepEqual(patched.warnings, ['"unknown field \\"spec.paused\\""']);
  const { spec: shown } = JSON.parse(ask('GET', scale).text) as { spec: object };
  assert.deepEqual(shown, {});
  assert.equal(patch('merge', scale, '{"spec":{"replicas":"x"}}').status, 422);
});

const CONTAINER = { name: 'c', image: 'i' };

test('answers are indented for programs that people look at', () => {
  const { ask } = patchable();
  const read = (agent: string, query = ''): string => {
    return ask('GET', MAP + query, undefined, { 'user-agent': agent }).text;
  };
  assert.match(read('curl/8.0'), /^\{\n {2}"kind"/);
  assert.match(read('Mozilla/5.0 (X11)'), /^\{\n/);
  assert.match(read('kubectl/v1.36'), /^\{"kind"/);
  assert.match(read('curl/8.0', '?pretty=false'), /^\{"kind"/);
});

test('a document of YAML with a key twice is read, and told of', () => {
  const { ask } = patchable();
  const post: (query: string) => ReturnType<Ask> = (query) => {
    const text =
      'kind: ConfigMap\nmetadata: {name: map}\nzeta: 1\ndata:\n  a: b\n  a: c\nalpha: 2\n';
    const headers = { 'content-type': 'application/yaml' };
    return ask('POST', `${MAPS}?dryRun=All${query}`, Buffer.from(text), headers);
  };
  const warned = post('');
  assert.equal(warned.status, 201, warned.text);
  assert.deepEqual((JSON.parse(warned.text) as { data: object }).data, { a: 'c' });
  assert.deepEqual(warningsOf(warned), [
    '"line 6: key \\"a\\" already set in map"',
    '"unknown field \\"alpha\\""',
    '"unknown field \\"zeta\\""',
  ]);
  const message = messageOf(post('&fieldValidation=Strict'));
  assert.match(message, /yaml: unmarshal errors:\n {2}line 6: key "a" already set in map, unknown/);
});

test("what is wrong with the outcome of a patch is told in the order of upstream's library", () => {
  const { patch } = patchable();
  const unknown = ['aa', 'metadata.ab', 'metadata.zq', 'zz'].map(
    (f) => `"unknown field \\"${f}\\""`,
  );
  const merge = patch('merge', MAP, '{"zz":1,"metadata":{"zq":{"b":1},"ab":1},"aa":3}');
  assert.deepEqual(merge.warnings, unknown);
  const add = (path: string): object => ({ op: 'add', path, value: 1 });
  const operations = ['/zz', '/metadata/zq', '/metadata/ab', '/aa'].map(add);
  assert.deepEqual(patch('json', MAP, JSON.stringify(operations)).warnings, unknown);
  const broken = patch(
    'merge',
    MAP,
    '{"metadata":{"labels":3,"annotations":"<"},"data":{"z":"1"}}',
  );
  assert.match(
    broken.message,
    /^ "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",/,
  );
  assert.match(broken.message, /\\"metadata\\":{\\"annotations\\":\\"\\\\u003c\\",/);
  assert.match(broken.message, /\\"managedFields\\":\[{\\"manager\\":/);
  assert.match(
    broken.message,
    /cannot unmarshal string into .* ObjectMeta\.metadata\.annotations /,
  );
});
