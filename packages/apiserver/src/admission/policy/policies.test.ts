import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  admittingModel,
  messageOf,
  podOf,
  type AdmittingModel,
} from '../../testing/admitting.sim.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/n/configmaps';

const PODS_AND_MAPS = {
  resourceRules: [
    {
      operations: ['CREATE', 'UPDATE'],
      apiGroups: [''],
      apiVersions: ['v1'],
      resources: ['configmaps', 'pods'],
    },
  ],
};

function policy(
  { expect }: AdmittingModel,
  name: string,
  spec: object,
  binding: object = {},
): void {
  const matchConstraints = PODS_AND_MAPS;
  expect(201, 'POST', `${GROUP}/validatingadmissionpolicies`, {
    metadata: { name },
    spec: { matchConstraints, ...spec },
  });
  expect(201, 'POST', `${GROUP}/validatingadmissionpolicybindings`, {
    metadata: { name: `${name}-b` },
    spec: { policyName: name, validationActions: ['Deny'], ...binding },
  });
}

const map = (name: string, data: object = {}): object => ({ metadata: { name }, data });

test('a write that violates a policy is refused with the words of the policy', () => {
  const model = admittingModel();
  policy(model, 'p', {
    validations: [
      { expression: 'object.metadata.name != "bad"', message: ' no bad names ' },
      {
        expression: 'variables.size <= 1',
        messageExpression: "'too many: ' + string(variables.size)",
        reason: 'Forbidden',
      },
      { expression: 'oldObject == null || object.data == oldObject.data' },
    ],
    variables: [{ name: 'size', expression: 'object.?data.orValue({}).size()' }],
    matchConditions: [{ name: 'c', expression: 'request.name != "free"' }],
  });
  const bad = model.expect(422, 'POST', MAPS, map('bad'));
  const message =
    "configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p-b' " +
    'denied request: no bad names';
  const body = JSON.parse(bad.text) as { reason: string; details: object };
  assert.equal(messageOf(bad), message);
  assert.equal(body.reason, 'Invalid');
  assert.deepEqual(body.details, {
    name: 'bad',
    kind: 'configmaps',
    causes: [{ message: message.slice(message.indexOf('Validating')) }],
  });
  const large = model.expect(403, 'POST', MAPS, map('m', { a: '1', b: '2' }));
  assert.match(messageOf(large), /denied request: too many: 2$/);
  model.expect(201, 'POST', MAPS, map('free', { a: '1', b: '2' }));
  model.expect(201, 'POST', MAPS, map('m', { a: '1' }));
  const changed = model.expect(422, 'PATCH', `${MAPS}/m`, { data: { a: '2' } });
  assert.match(messageOf(changed), /denied request: failed expression: oldObject == null \|\| /);
  model.expect(200, 'PATCH', `${MAPS}/m`, { metadata: { labels: { x: 'y' } } });
});

test('expressions that fail refuse or are passed over, and actions may warn alone', () => {
  const model = admittingModel();
  policy(model, 'fails', { validations: [{ expression: 'object.data.missing == "x"' }] });
  const failed = model.expect(422, 'POST', MAPS, map('m', { a: '1' }));
  const text =
    'denied request: expression \'object.data.missing == "x"\' resulted in error: ' +
    'no such key: missing';
  assert.ok(messageOf(failed).endsWith(text), messageOf(failed));
  const path = `${GROUP}/validatingadmissionpolicies/fails`;
  model.expect(200, 'PATCH', path, { spec: { failurePolicy: 'Ignore' } });
  model.expect(201, 'POST', MAPS, map('m', { a: '1' }));
  policy(
    model,
    'warns',
    { validations: [{ expression: 'false', message: 'mind' }] },
    { validationActions: ['Warn', 'Audit'] },
  );
  const warned = model.expect(201, 'POST', MAPS, map('w', { a: '1' }));
  const where = "ValidatingAdmissionPolicy 'warns' with binding 'warns-b'";
  const warning = `299 - "Validation failed for ${where}: mind"`;
  assert.ok(warned.headers.includes(warning), String(warned.headers));
});

test('parameters are found by name and by selector, and their absence means what is said', () => {
  const model = admittingModel();
  const spec = {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    validations: [{ expression: 'object.metadata.name.startsWith(params.data.prefix)' }],
    matchConditions: [{ name: 'c', expression: 'object.metadata.name != "params"' }],
  };
  const selector = { matchLabels: { role: 'params' } };
  policy(model, 'p', spec, { paramRef: { selector, parameterNotFoundAction: 'Allow' } });
  model.expect(201, 'POST', MAPS, map('free'));
  const params = {
    metadata: { name: 'params', labels: { role: 'params' } },
    data: { prefix: 'a' },
  };
  model.expect(201, 'POST', MAPS, params);
  model.expect(422, 'POST', MAPS, map('b'));
  model.expect(201, 'POST', MAPS, map('ab'));
  policy(model, 'q', spec, { paramRef: { name: 'gone', parameterNotFoundAction: 'Deny' } });
  const refused = model.expect(422, 'POST', MAPS, map('ac'));
  assert.match(messageOf(refused), /no params found for policy binding with `Deny` param/);
});

test('expressions may ask who may do what, and see the namespace', () => {
  const model = admittingModel();
  const check = "authorizer.group('').resource('pods').namespace(request.namespace).check('get')";
  policy(model, 'p', {
    validations: [
      { expression: `${check}.allowed()` },
      { expression: "authorizer.requestResource.check('create').allowed()" },
      { expression: "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'n'" },
      { expression: "request.userInfo.groups.exists(g, g == 'system:masters')" },
    ],
  });
  model.expect(201, 'POST', MAPS, map('m'));
});

test('the status tells what the types of a kind refute', async () => {
  const model = admittingModel();
  // what is wrong with a variable is nowhere told
  const variables = [{ name: 'q', expression: 'object.zz' }];
  policy(model, 'p', {
    variables,
    validations: [{ expression: 'object.spec.replicas > 1' }, { expression: 'variables.q == 1' }],
  });
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  const stored = JSON.parse(model.ask('GET', `${GROUP}/validatingadmissionpolicies/p`).text) as {
    status: { observedGeneration: number; typeChecking: { expressionWarnings: unknown[] } };
  };
  assert.equal(stored.status.observedGeneration, 1);
  assert.deepEqual(stored.status.typeChecking.expressionWarnings, [
    {
      fieldRef: 'spec.validations[0].expression',
      warning:
        "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'\n" +
        ' | object.spec.replicas > 1\n | ......^\n\n' +
        "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n" +
        ' | object.spec.replicas > 1\n | ...........^\n',
    },
  ]);
});

test('mutating policies merge what they make, or patch, and later ones see it', () => {
  const model = admittingModel();
  const mutate = (name: string, mutation: object): void => {
    model.expect(201, 'POST', `${GROUP}/mutatingadmissionpolicies`, {
      metadata: { name },
      spec: {
        matchConstraints: PODS_AND_MAPS,
        reinvocationPolicy: 'Never',
        mutations: [mutation],
      },
    });
    const spec = { policyName: name };
    model.expect(201, 'POST', `${GROUP}/mutatingadmissionpolicybindings`, {
      metadata: { name },
      spec,
    });
  };
  mutate('a', {
    patchType: 'ApplyConfiguration',
    applyConfiguration: {
      expression:
        'Object{metadata: Object.metadata{labels: {"team": "x"}}, spec: Object.spec{' +
        'containers: [Object.spec.containers{name: "side", image: "i"}]}}',
    },
  });
  mutate('b', {
    patchType: 'JSONPatch',
    jsonPatch: {
      expression:
        '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), ' +
        'value: string(object.spec.containers.size())}]',
    },
  });
  const made = model.expect(201, 'POST', '/api/v1/namespaces/n/pods', podOf('p'));
  const pod = JSON.parse(made.text) as {
    metadata: { labels: object };
    spec: { containers: { name: string; imagePullPolicy: string }[] };
  };
  assert.deepEqual(pod.metadata.labels, { team: 'x', 'a/b': '2' });
  assert.deepEqual(
    pod.spec.containers.map(({ name, imagePullPolicy }) => `${name} ${imagePullPolicy}`),
    ['c Always', 'side Always'],
  );
});

test('a mutation that fails forbids in its own words, a failed test changes nothing', () => {
  const model = admittingModel();
  const rule = {
    ...{ apiGroups: [''], apiVersions: ['v1'] },
    ...{ operations: ['CREATE'], resources: ['configmaps'] },
  };
  const add = (name: string, mutation: object): void => {
    const spec = {
      matchConstraints: { resourceRules: [rule] },
      ...{ reinvocationPolicy: 'Never', failurePolicy: 'Fail', mutations: [mutation] },
    };
    model.expect(201, 'POST', `${GROUP}/mutatingadmissionpolicies`, { metadata: { name }, spec });
    const path = `${GROUP}/mutatingadmissionpolicybindings`;
    model.expect(201, 'POST', path, { metadata: { name }, spec: { policyName: name } });
  };
  const tested = "[JSONPatch{op: 'test', path: '/metadata/name', value: 'other'}]";
  add('tested', { patchType: 'JSONPatch', jsonPatch: { expression: tested } });
  model.expect(201, 'POST', MAPS, { metadata: { name: 'a' } });
  const labels = "Object{metadata: Object.metadata{labels: {'a': object.data.zz}}}";
  const applyConfiguration = { expression: labels };
  add('failing', { patchType: 'ApplyConfiguration', applyConfiguration });
  const refused = model.expect(403, 'POST', MAPS, { metadata: { name: 'b' } });
  const text = `policy 'failing' with binding 'failing' denied request: expression '${labels}' `;
  assert.equal(messageOf(refused), `${text}resulted in error: no such key: data`);
});

test('a mutation cannot make another kind of an object', () => {
  const model = admittingModel();
  const add = (name: string, mutation: object): void => {
    const rule = {
      ...{ apiGroups: [''], apiVersions: ['v1'], resourceNames: [name] },
      ...{ operations: ['CREATE'], resources: ['configmaps'] },
    };
    const spec = {
      matchConstraints: { resourceRules: [rule] },
      ...{ reinvocationPolicy: 'Never', failurePolicy: 'Fail', mutations: [mutation] },
    };
    model.expect(201, 'POST', `${GROUP}/mutatingadmissionpolicies`, { metadata: { name }, spec });
    const path = `${GROUP}/mutatingadmissionpolicybindings`;
    model.expect(201, 'POST', path, { metadata: { name }, spec: { policyName: name } });
  };
  const patch = "[JSONPatch{op: 'add', path: '/kind', value: 'Secret'}]";
  add('patched', { patchType: 'JSONPatch', jsonPatch: { expression: patch } });
  const number = "[JSONPatch{op: 'add', path: '/data', value: {'n': 5}}]";
  add('number', { patchType: 'JSONPatch', jsonPatch: { expression: number } });
  const applyConfiguration = { expression: "Object{kind: 'Secret'}" };
  add('applied', { patchType: 'ApplyConfiguration', applyConfiguration });
  model.expect(500, 'POST', MAPS, { metadata: { name: 'patched' }, data: { k: 'v' } });
  const refused = model.expect(500, 'POST', MAPS, { metadata: { name: 'number' } });
  assert.match(messageOf(refused), /^Internal error occurred: json: cannot unmarshal number/);
  const made = model.expect(201, 'POST', MAPS, { metadata: { name: 'applied' } });
  assert.equal((JSON.parse(made.text) as { kind: string }).kind, 'ConfigMap');
});

test('what policies and levels find is noted for the audit log', () => {
  const noted: Record<string, string>[] = [];
  const model = admittingModel({
    plugins: [
      {
        name: 'Witness',
        validate: ({ call }) => {
          const all = Object.entries(call.annotations ?? {});
          noted.push(Object.fromEntries(all.filter(([key]) => !key.startsWith('authorization'))));
          return null;
        },
      },
    ],
  });
  policy(
    model,
    'p',
    {
      validations: [{ expression: 'true' }, { expression: 'false', message: 'mind' }],
      auditAnnotations: [{ key: 'name', valueExpression: "'is ' + object.metadata.name" }],
    },
    { validationActions: ['Audit'] },
  );
  const labels = { 'pod-security.kubernetes.io/audit': 'baseline' };
  model.expect(200, 'PATCH', '/api/v1/namespaces/n', { metadata: { labels } });
  model.expect(201, 'POST', '/api/v1/namespaces/n/pods', podOf('a', {}, { hostPID: true }));
  const failure = {
    message: 'mind',
    policy: 'p',
    binding: 'p-b',
    expressionIndex: 1,
    validationActions: ['Audit'],
  };
  assert.deepEqual(noted.at(-1), {
    'pod-security.kubernetes.io/enforce-policy': 'privileged:latest',
    'pod-security.kubernetes.io/audit-violations':
      'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)',
    'p/name': 'is a',
    'validation.policy.admission.k8s.io/validation_failure': JSON.stringify([failure]),
  });
});

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const THINGS = '/apis/x.example.com/v1/namespaces/n/things';

function withThings() {
  const model = admittingModel();
  const integer = { type: 'integer' };
  const properties = { n: integer, l: { type: 'array', items: integer } };
  const spec = { type: 'object', properties };
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }];
  for (const [plural, kind] of [
    ['things', 'Thing'],
    ['limits', 'Limit'],
  ] as const) {
    const names = { plural, kind };
    const definition = { group: 'x.example.com', names, scope: 'Namespaced', versions };
    model.expect(201, 'POST', DEFINITIONS, {
      metadata: { name: `${plural}.x.example.com` },
      spec: definition,
    });
  }
  return model;
}

function custom(kind: string, name: string, spec: object): object {
  return { apiVersion: 'x.example.com/v1', kind, metadata: { name }, spec };
}

const OF_THINGS = {
  resourceRules: [
    {
      apiGroups: ['x.example.com'],
      apiVersions: ['*'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['things'],
    },
  ],
};

test('custom resources are parameters of policies', () => {
  const model = withThings();
  const spec = {
    matchConstraints: OF_THINGS,
    paramKind: { apiVersion: 'x.example.com/v1', kind: 'Limit' },
    validations: [{ expression: 'object.spec.n <= params.spec.n' }],
  };
  policy(model, 'p', spec, { paramRef: { name: 'most', parameterNotFoundAction: 'Deny' } });
  const early = model.expect(422, 'POST', THINGS, custom('Thing', 'a', { n: 1 }));
  assert.match(messageOf(early), /no params found for policy binding/);
  const limits = THINGS.replace('things', 'limits');
  model.expect(201, 'POST', limits, custom('Limit', 'most', { n: 3 }));
  model.expect(201, 'POST', THINGS, custom('Thing', 'a', { n: 3 }));
  model.expect(422, 'POST', THINGS, custom('Thing', 'b', { n: 4 }));
});

test('a variable or an annotation that fails is told in upstream’s words', () => {
  const model = withThings();
  policy(model, 'p', {
    matchConstraints: OF_THINGS,
    variables: [{ name: 'v', expression: 'object.spec.n + 1' }],
    validations: [{ expression: 'variables.v > 1' }],
  });
  const refused = model.expect(422, 'POST', THINGS, custom('Thing', 'a', {}));
  const why = `composited variable "v" fails to evaluate: no such key: n`;
  assert.ok(messageOf(refused).endsWith(why), messageOf(refused));
  const more = {
    matchConstraints: OF_THINGS,
    validations: [{ expression: 'true' }],
    auditAnnotations: [{ key: 'k', valueExpression: 'string(object.spec.l[0])' }],
  };
  policy(model, 'q', more, { validationActions: ['Audit'] });
  const unsaid = model.expect(422, 'POST', THINGS, custom('Thing', 'a', { n: 1 }));
  assert.match(
    messageOf(unsaid),
    /'string\(object\.spec\.l\[0\]\)' resulted in error: no such key: l$/,
  );
});

test('what is applied to custom resources fits their schemas, and changes no atomic list', () => {
  const model = withThings();
  const outcomes = [
    ['Object{spec: Object.spec{n: 7}}', null],
    ['Object{spec: Object.spec{none: 7}}', /to typed object: \.spec\.none: field not declared/],
    [
      "Object{spec: Object.spec{n: 'x'}}",
      /\.spec\.n: expected numeric \(int or float\), got string$/,
    ],
    [
      'Object{spec: Object.spec{l: [1]}}',
      /may not mutate atomic arrays, maps or structs: \.spec\.l$/,
    ],
    [
      null,
      /JSON Patch: replace operation does not apply: doc is missing path: \/spec\/z\/y: missing/,
    ],
  ] as const;
  for (const [index, [expression, why]] of outcomes.entries()) {
    const name = `m${index}`;
    const matchConstraints = {
      ...OF_THINGS,
      objectSelector: { matchLabels: { policy: name } },
    };
    const patch = "[JSONPatch{op: 'replace', path: '/spec/z/y', value: 1}]";
    const mutation =
      expression === null
        ? { patchType: 'JSONPatch', jsonPatch: { expression: patch } }
        : { patchType: 'ApplyConfiguration', applyConfiguration: { expression } };
    const spec = { matchConstraints, reinvocationPolicy: 'Never', mutations: [mutation] };
    model.expect(201, 'POST', `${GROUP}/mutatingadmissionpolicies`, { metadata: { name }, spec });
    model.expect(201, 'POST', `${GROUP}/mutatingadmissionpolicybindings`, {
      metadata: { name },
      spec: { policyName: name },
    });
    const thing = {
      ...custom('Thing', name, { n: 1 }),
      metadata: { name, labels: { policy: name } },
    };
    const made = model.expect(why === null ? 201 : 403, 'POST', THINGS, thing);
    if (why === null) assert.match(made.text, /"n":7/);
    else assert.match(messageOf(made), why);
  }
});
