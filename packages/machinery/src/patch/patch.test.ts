import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { isObject } from '../json/json-value.ts';
import { equals } from '../json/json.ts';
import { applyPatch, parsePatch, type PatchKind } from './patch.ts';
import { applyJsonPatch, JSON_PATCH_OPERATIONS_MAX } from './patch-json.ts';
import { applyMergePatch, createMergePatch } from './patch-merge.ts';
import { applyStrategicPatch } from './patch-strategic.ts';
import { findTypeOfKind, type Shape, type Type } from '../scheme/schema.ts';
import type { Result, Status } from '../meta/status.ts';
import { unstructuredFault } from './unstructured.ts';

function patched(
  kind: PatchKind,
  patch: JsonValue,
  original: JsonObject,
  apiVersion = 'v1',
  of = 'ConfigMap',
): Result<JsonObject> {
  const parsed = parsePatch(kind, JSON.stringify(patch));
  if (!parsed.ok) return parsed;
  const before = JSON.stringify(original);
  const result = applyPatch(parsed.value, original, findTypeOfKind(apiVersion, of));
  assert.equal(JSON.stringify(original), before, 'the original was changed');
  return result;
}

function value(result: Result<JsonObject>): JsonObject {
  assert(result.ok, result.ok ? '' : (result.status.message ?? ''));
  return result.value;
}

function refusal(result: Result<JsonObject>): Status {
  assert(!result.ok, 'the patch applied');
  return result.status;
}

const SERVER_WORDS = 'the server rejected our request due to an error in our request';

test('json patch adds, copies, moves, removes and replaces', () => {
  const result = patched(
    'json',
    [
      { op: 'add', path: '/metadata/labels', value: { 'example.com/l': 'v' } },
      { op: 'copy', from: '/data/a', path: '/data/b' },
      { op: 'move', from: '/data/x.y', path: '/data/z' },
      { op: 'remove', path: '/data/a' },
      { op: 'replace', path: '/metadata/labels/example.com~1l', value: 'w' },
    ],
    { metadata: {}, data: { a: '1', 'x.y': '2' } },
  );
  assert.deepEqual(value(result), {
    metadata: { labels: { 'example.com/l': 'w' } },
    data: { b: '1', z: '2' },
  });
});

test('json patch counts places in lists from either end', () => {
  const original: JsonObject = { l: [1, 2, 3] };
  const cases: readonly (readonly [string, JsonValue, JsonValue])[] = [
    ['add', '/l/-', [1, 2, 3, 9]],
    ['add', '/l/0', [9, 1, 2, 3]],
    ['add', '/l/3', [1, 2, 3, 9]],
    ['add', '/l/-1', [1, 2, 3, 9]],
    ['replace', '/l/-1', [1, 2, 9]],
    ['remove', '/l/-3', [2, 3]],
  ];
  for (const [op, path, expected] of cases) {
    const result = value(patched('json', [{ op, path, value: 9 }], original));
    assert.deepEqual(result, { l: expected }, `${op} ${JSON.stringify(path)}`);
  }
  for (const path of ['/l/4', '/l/x', '/l/1.5', '/m/0', '', '/l/0/x']) {
    const status = refusal(patched('json', [{ op: 'add', path, value: 9 }], original));
    assert.equal(status.message, SERVER_WORDS, path);
  }
});

test('a json patch that does not apply is refused whole, without saying where', () => {
  const original: JsonObject = { data: { a: '1' } };
  const refused: readonly JsonObject[] = [
    { op: 'remove', path: '/data/none' },
    { op: 'nope', path: '/data/a' },
    { op: 'test', path: '/data/a', value: '2' },
    { op: 'move', from: '/data/none', path: '/data/b' },
    { op: 'add' },
  ];
  for (const operation of refused) {
    assert.deepEqual(refusal(patched('json', [operation], original)), {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: SERVER_WORDS,
      reason: 'Invalid',
      details: {},
      code: 422,
    });
  }
  value(patched('json', [{ op: 'test', path: '/data/none', value: null }], original));
  value(patched('json', [{ op: 'test', path: '', value: { data: { a: '1' } } }], original));
  const copied = patched('json', [{ op: 'copy', from: '/data/none', path: '/data/b' }], original);
  assert.deepEqual(value(copied), { data: { a: '1', b: null } });
  const replaced = patched('json', [{ op: 'replace', path: '/data/c', value: '3' }], original);
  assert.deepEqual(value(replaced), { data: { a: '1', c: '3' } });
  const whole = patched('json', [{ op: 'replace', path: '', value: { kind: 'X' } }], original);
  assert.deepEqual(value(whole), { kind: 'X' });
});

test('json patches have limits on operations and on copied bytes', () => {
  const add = { op: 'add', path: '/data', value: {} };
  const many = Array.from({ length: JSON_PATCH_OPERATIONS_MAX + 1 }, () => add);
  const status = refusal(patched('json', many, {}));
  assert.equal(status.code, 413);
  assert.equal(
    status.message,
    'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
  );
  const copy = { op: 'copy', from: '/a', path: '/b' };
  const original: JsonObject = { a: 'x'.repeat(1024 * 1024) };
  value(patched('json', [copy, copy], original));
  assert.equal(refusal(patched('json', [copy, copy, copy], original)).code, 422);
});

test('a json patch cannot reach prototypes', () => {
  const result = value(patched('json', [{ op: 'add', path: '/__proto__', value: { x: 1 } }], {}));
  assert.equal(JSON.stringify(result), '{"__proto__":{"x":1}}');
  assert.equal(({} as JsonObject)['x'], undefined);
});

test('bodies that are no patch are bad requests', () => {
  assert.equal(refusal(patched('json', { op: 'remove' }, {})).code, 400);
  assert.equal(
    refusal(patched('merge', [1], {})).message,
    'error decoding patch: json: cannot unmarshal array into Go value of type ' +
      'map[string]interface {}',
  );
  for (const kind of ['json', 'merge', 'strategic'] as const) {
    const parsed = parsePatch(kind, '{');
    assert(!parsed.ok && parsed.status.code === 400);
  }
});

const json = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<JsonValue>('a', 'b', 1, true),
    fc.array(fc.constantFrom<JsonValue>('a', 1), { maxLength: 2 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('value'), { maxKeys: 3 }),
}));

test('a merge patch made from two objects turns one into the other', () => {
  fc.assert(
    fc.property(json.object, json.object, (from, to) => {
      const patch = createMergePatch(from, to);
      assert(equals(applyMergePatch(from, patch), to), JSON.stringify(patch));
      assert.equal(Object.keys(patch).length === 0, equals(from, to));
    }),
  );
});

test('a merge patch drops nulls that meet nothing', () => {
  const result = value(patched('merge', { a: { b: null, c: [{ d: null }] } }, {}));
  assert.deepEqual(result, { a: { c: [{}] } });
});

const POD: JsonObject = {
  metadata: { labels: { a: '1' }, finalizers: ['x/a', 'x/b'] },
  spec: {
    containers: [
      { name: 'a', image: 'a:1', env: [{ name: 'X', value: '1' }], args: ['1', '2'] },
      { name: 'b', image: 'b:1' },
    ],
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'k' }],
  },
};

function strategic(patch: JsonObject, original: JsonObject = POD): JsonObject {
  return value(patched('strategic', patch, original, 'v1', 'Pod'));
}

test('keyed lists merge item by item, what is new first; other lists are replaced', () => {
  const result = strategic({
    spec: {
      containers: [{ name: 'a', args: ['3'], env: [{ name: 'Y', value: '2' }] }, { name: 'c' }],
      tolerations: [{ key: 'l' }],
      nodeSelector: { zone: 'z' },
    },
  });
  assert.deepEqual(result['spec'], {
    containers: [
      {
        name: 'a',
        image: 'a:1',
        env: [
          { name: 'Y', value: '2' },
          { name: 'X', value: '1' },
        ],
        args: ['3'],
      },
      { name: 'c' },
      { name: 'b', image: 'b:1' },
    ],
    nodeSelector: { disk: 'ssd', zone: 'z' },
    tolerations: [{ key: 'l' }],
  });
});

test('items are deleted, lists and maps replaced by directives', () => {
  const gone = strategic({ spec: { containers: [{ name: 'a', $patch: 'delete' }] } });
  assert.deepEqual(gone['spec'], {
    ...(POD['spec'] as JsonObject),
    containers: [{ name: 'b', image: 'b:1' }],
  });
  const replaced = strategic({ spec: { $patch: 'replace', nodeName: 'n' }, metadata: null });
  assert.deepEqual(replaced, { spec: { nodeName: 'n' } });
  const list = strategic({ spec: { containers: [{ $patch: 'replace' }, { name: 'z' }] } });
  assert.deepEqual((list['spec'] as JsonObject)['containers'], [{ name: 'z' }]);
  assert.deepEqual(strategic({ spec: { $patch: 'delete' } })['spec'], {});
});

test('$setElementOrder orders what it names and keeps the rest where it was', () => {
  const result = strategic({
    spec: {
      $setElementOrder: undefined,
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }],
      containers: [{ name: 'c', image: 'c:1' }],
    },
  });
  const containers = (result['spec'] as JsonObject)['containers'] as JsonObject[];
  assert.deepEqual(
    containers.map((one) => one['name']),
    ['c', 'a', 'b'],
  );
  const order = { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] };
  const turned = (strategic({ spec: order })['spec'] as JsonObject)['containers'] as JsonObject[];
  assert.deepEqual(
    turned.map((one) => one['name']),
    ['b', 'a'],
  );
});

test('scalars of a united list are added and deleted one by one', () => {
  const result = strategic({
    metadata: {
      '$deleteFromPrimitiveList/finalizers': ['x/a'],
      '$setElementOrder/finalizers': ['x/c', 'x/b'],
      finalizers: ['x/c'],
    },
  });
  assert.deepEqual((result['metadata'] as JsonObject)['finalizers'], ['x/c', 'x/b']);
});

test('strict decoding looks at the operations of a json patch, and no other does', () => {
  const known = parsePatch('json', '[{"op":"remove","path":"/x","extra":1}]');
  assert(known.ok && known.value.kind === 'json');
  assert.deepEqual(known.value.strictErrors, ['json patch unknown field "[0].extra"']);
  const cases: readonly (readonly [string, string, string])[] = [
    ['{}', 'object into Go value of type []handlers.jsonPatchOp', 'jsonpatch.Patch'],
    ['[1]', 'number into Go value of type handlers.jsonPatchOp', 'jsonpatch.Operation'],
  ];
  for (const [text, strict, plain] of cases) {
    const unmarshal = 'json: cannot unmarshal';
    const refused = refusal(parsePatch('json', text) as Result<JsonObject>);
    assert.equal(refused.message, `error decoding patch: ${unmarshal} ${strict}`);
    const ignored = refusal(parsePatch('json', text, false) as Result<JsonObject>);
    assert(ignored.message?.startsWith(unmarshal) && ignored.message.endsWith(plain));
  }
  const typed = refusal(parsePatch('json', '[{"op":1}]') as unknown as Result<JsonObject>);
  assert(typed.message?.endsWith('number into Go struct field jsonPatchOp.op of type string'));
  assert(parsePatch('json', 'null').ok);
});

test('$setElementOrder is checked against the list; what it does not know comes first', () => {
  const pod: JsonObject = { spec: { containers: [{ name: 'a' }, { name: 'b' }] } };
  const of = (spec: JsonObject): Result<JsonObject> =>
    patched('strategic', { spec }, pod, 'v1', 'Pod');
  const order = '$setElementOrder/containers';
  const fresh = of({ containers: [{ $patch: 'delete', name: 'b' }, { name: 'z' }], [order]: [] });
  const named = (result: Result<JsonObject>): JsonValue[] =>
    ((value(result)['spec'] as JsonObject)['containers'] as JsonObject[]).map(
      (item) => item['name'] ?? null,
    );
  assert.deepEqual(named(fresh), ['a', 'z']);
  const keyless = refusal(of({ containers: [{ name: 'a' }], [order]: [{ x: 1 }] }));
  assert.equal(keyless.message, 'map: map[x:1] does not contain declared merge key: name');
  const trailing = refusal(
    of({ containers: [{ name: 'a' }, { $patch: 'replace' }], [order]: [{ name: 'a' }] }),
  );
  assert(trailing.message?.startsWith('The order in patch list:'));
  const replaced = refusal(of({ containers: [{ $patch: 'replace' }, { image: 'x' }] }));
  assert.equal(replaced.message, 'map: map[image:x] does not contain declared merge key: name');
});

const TIMELESS = 'json: cannot unmarshal';

test('wrong types in a strategic patch are told in the words of the conversion', () => {
  const type = findTypeOfKind('v1', 'ConfigMap');
  assert(type !== undefined);
  const cases: readonly (readonly [JsonObject, string | undefined])[] = [
    [{ data: { a: 1 } }, 'cannot convert int64 to string'],
    [{ data: { a: true } }, 'unrecognized type: string'],
    [{ data: [] }, 'cannot restore map from slice'],
    [{ metadata: { finalizers: 'x' } }, 'cannot restore slice from string'],
    [{ metadata: 1 }, 'cannot restore struct from: int64'],
    [{ immutable: 'x' }, 'unrecognized type: bool'],
    [{ metadata: { creationTimestamp: true } }, `${TIMELESS} bool into Go value of type string`],
    [{ metadata: { creationTimestamp: 5 } }, `${TIMELESS} number into Go value of type string`],
    [{ metadata: { creationTimestamp: 'x' } }, undefined],
    [{ data: { a: '1' } }, undefined],
  ];
  for (const [object, expected] of cases) assert.equal(unstructuredFault(type, object), expected);
});

test('$retainKeys keeps only what it names, and the patch must agree', () => {
  const deployment: JsonObject = {
    spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } },
  };
  const of = (patch: JsonObject): Result<JsonObject> =>
    patched('strategic', patch, deployment, 'apps/v1', 'Deployment');
  const kept = of({ spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } });
  assert.deepEqual(value(kept), { spec: { strategy: { type: 'Recreate' } } });
  const other = refusal(of({ spec: { strategy: { $retainKeys: ['x'], type: 'Recreate' } } }));
  assert.equal(other.message, 'invalid patch format of retainKeys');
  assert.equal(other.code, 400);
  const wrong = refusal(of({ spec: { strategy: { $retainKeys: 'type' } } }));
  assert.equal(wrong.message, 'invalid patch format of retainKeys');
  assert.equal(wrong.code, 400);
});

test('strategic patches that make no sense are refused in the words of upstream', () => {
  const cases: readonly (readonly [JsonObject, number, string])[] = [
    [
      { spec: { containers: [{ image: 'x', args: [] }] } },
      500,
      'map: map[args:[] image:x] does not contain declared merge key: name',
    ],
    [{ spec: { $patch: 'x' } }, 500, 'unknown patch type: x in map: map[$patch:x]'],
    [
      { spec: { containers: [{ $patch: 'merge' }] } },
      500,
      'merging lists cannot yet be specified in the patch',
    ],
    [{ spec: { $setElementOrder: [] } }, 400, 'invalid patch format of setElementOrder list'],
    [{ metadata: { $deleteFromPrimitiveList: [] } }, 400, 'invalid patch format of primitive list'],
    [
      { metadata: { finalizers: [['x']] } },
      500,
      'list element types are not identical: [[x/a x/b] [[x]]]',
    ],
    [{ spec: { '$setElementOrder/containers': ['a'] } }, 500, 'value for key 0 is not a map'],
  ];
  for (const [patch, code, message] of cases) {
    const status = refusal(patched('strategic', patch, POD, 'v1', 'Pod'));
    assert.equal(status.code, code, JSON.stringify(patch));
    assert.equal(status.message, message);
  }
});

test('directives for what is not there leave no trace', () => {
  const result = value(
    patched(
      'strategic',
      {
        spec: { containers: [{ name: 'a', $patch: 'delete' }], nodeSelector: { $patch: 'delete' } },
      },
      { spec: {} },
      'v1',
      'Pod',
    ),
  );
  assert.deepEqual(result, { spec: { containers: [] } });
});

/** The strategic patch that turns `from` into `to`, as kubectl makes it. */
function diff(from: JsonObject, to: JsonObject, type: Type): JsonObject {
  const patch: JsonObject = {};
  for (const key of Object.keys(from)) if (to[key] === undefined) patch[key] = null;
  for (const [key, next] of Object.entries(to)) {
    const current = from[key];
    if (next === undefined || equals(current, next)) continue;
    const field = type.field(key);
    if (isObject(current) && isObject(next) && field !== undefined) {
      patch[key] = diffMap(current, next, field.shape);
    } else if (Array.isArray(current) && Array.isArray(next) && field?.mergeKey) {
      diffItems(patch, key, current, next, field.shape, field.mergeKey);
    } else if (Array.isArray(current) && Array.isArray(next) && field?.patchStrategies.length) {
      const gone = current.filter((item) => !next.includes(item));
      if (gone.length > 0) patch[`$deleteFromPrimitiveList/${key}`] = gone;
      const fresh = next.filter((item) => !current.includes(item));
      if (fresh.length > 0) patch[key] = fresh;
      patch[`$setElementOrder/${key}`] = next;
    } else {
      patch[key] = next;
    }
  }
  return patch;
}

function diffMap(current: JsonObject, next: JsonObject, shape: Shape): JsonObject {
  return shape.kind === 'object'
    ? diff(current, next, shape.type)
    : createMergePatch(current, next);
}

function diffItems(
  patch: JsonObject,
  key: string,
  current: readonly JsonValue[],
  next: readonly JsonValue[],
  shape: Shape,
  mergeKey: string,
): void {
  const items = (list: readonly JsonValue[]): JsonObject[] => list.filter((item) => isObject(item));
  const changes: JsonObject[] = [];
  for (const item of items(next)) {
    const old = items(current).find((one) => one[mergeKey] === item[mergeKey]);
    if (old === undefined) changes.push(item);
    else if (!equals(old, item) && shape.kind === 'list') {
      changes.push({ ...diffMap(old, item, shape.items), [mergeKey]: item[mergeKey] });
    }
  }
  for (const old of items(current)) {
    if (!items(next).some((one) => one[mergeKey] === old[mergeKey])) {
      changes.push({ $patch: 'delete', [mergeKey]: old[mergeKey] });
    }
  }
  if (changes.length > 0) patch[key] = changes;
  patch[`$setElementOrder/${key}`] = items(next).map((item) => ({ [mergeKey]: item[mergeKey] }));
}

const name = fc.constantFrom('a', 'b', 'c', 'd');
const named = (more: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonValue[]> =>
  fc
    .uniqueArray(name, { maxLength: 4 })
    .chain((names) =>
      fc.tuple(...names.map((one) => more.map((rest): JsonValue => ({ name: one, ...rest })))),
    );
const env = fc.record({ value: name }, { requiredKeys: [] });
const container = fc.record(
  { image: name, env: named(env), args: fc.array(name, { maxLength: 2 }) },
  { requiredKeys: [] },
);
const pod: fc.Arbitrary<JsonObject> = fc.record({
  metadata: fc.record(
    {
      labels: fc.dictionary(name, name, { maxKeys: 3 }),
      finalizers: fc.uniqueArray(name, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: [] },
  ),
  spec: fc.record(
    {
      containers: named(container),
      nodeSelector: fc.dictionary(name, name, { maxKeys: 2 }),
      tolerations: fc.array(fc.record({ key: name }), { maxLength: 2 }),
      nodeName: name,
    },
    { requiredKeys: ['containers'] },
  ),
});

test('a strategic patch made from two objects turns one into the other, lists in order', () => {
  const type = findTypeOfKind('v1', 'Pod');
  assert(type !== undefined);
  fc.assert(
    fc.property(pod, pod, (from, to) => {
      const patch = diff(from, to, type);
      const result = applyStrategicPatch(from, patch, type);
      const text = JSON.stringify(patch);
      assert('value' in result, `${text}: ${JSON.stringify(result)}`);
      assert(equals(result.value, to), `${text} gave ${JSON.stringify(result.value)}`);
    }),
    { numRuns: 1000 },
  );
});

test('no patch makes the merge throw', () => {
  const type = findTypeOfKind('v1', 'Pod');
  assert(type !== undefined);
  const key = fc.constantFrom(
    'metadata',
    'spec',
    'containers',
    'finalizers',
    'labels',
    'name',
    '$patch',
    '$retainKeys',
    '$setElementOrder/containers',
    '$deleteFromPrimitiveList/finalizers',
    '$setElementOrder',
  );
  const any = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<JsonValue>('a', 'delete', 'replace', 1, null, true),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  }));
  fc.assert(
    fc.property(any.object, (patch) => {
      const result = applyStrategicPatch(POD, patch, type);
      assert('value' in result || result.failure.text !== '');
    }),
    { numRuns: 3000 },
  );
});

test('an operation that does not apply is told as upstream tells it to webhooks', () => {
  const document = { a: 'x', list: ['y'] };
  const cases: readonly (readonly [JsonObject, string])[] = [
    [
      { op: 'remove', path: '/b' },
      "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
    ],
    [
      { op: 'move', from: '/b', path: '/c' },
      "error in move for path: 'b': Unable to remove nonexistent key: b: missing value",
    ],
    [{ op: 'test', path: '/a', value: 'z' }, 'testing value /a failed: test failed'],
    [{ op: 'foo', path: '/a' }, 'Unexpected kind: foo'],
    [{ op: 'add', value: 1 }, 'add operation failed to decode path: missing value'],
    [
      { op: 'add', path: '/b/c', value: 1 },
      'add operation does not apply: doc is missing path: "/b/c": missing value',
    ],
    [
      { op: 'add', path: '/list/7', value: 1 },
      "error in add for path: '/list/7': Unable to access invalid index: 7: " +
        'invalid index referenced',
    ],
  ];
  for (const [operation, why] of cases) assert.equal(applyJsonPatch(document, [operation]), why);
});
