import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { findKind, type Resource } from '@megaplane/machinery/kinds';
import { applyRuntimeConfig } from '../server/runtime-config.ts';
import { admittingModel, messageOf } from '../testing/admitting.sim.ts';
import { fromStored, toStored } from './conversion.ts';

const OLD = '/apis/resource.k8s.io/v1beta1';
const STABLE = '/apis/resource.k8s.io/v1';

function objectIn(answer: { readonly text: string }): JsonObject {
  return parseJson(answer.text) as JsonObject;
}

/** Asks a server that has the older version, too. */
function withOld(look: (model: ReturnType<typeof admittingModel>) => void): void {
  try {
    applyRuntimeConfig('resource.k8s.io/v1beta1=true');
    look(admittingModel());
  } finally {
    applyRuntimeConfig('');
  }
}

function oldKind(kind: string): Resource {
  const resource = findKind('resource.k8s.io/v1beta1', kind);
  assert(resource !== undefined);
  return resource;
}

function requestsOf(object: JsonObject, ...path: string[]): JsonValue | undefined {
  return valueAt(object, 'spec', ...path, 'devices', 'requests');
}

/** Requests of the two versions that say the same, in upstream's order of fields. */
const REQUESTS: readonly (readonly [old: JsonObject, stable: JsonObject])[] = [
  [
    {
      name: 'a',
      deviceClassName: 'gpu',
      selectors: [{ cel: { expression: 'true' } }],
      allocationMode: 'ExactCount',
      count: 2,
      adminAccess: false,
      tolerations: [{ key: 'k', operator: 'Exists' }],
      capacity: { requests: { memory: '1Gi' } },
    },
    {
      name: 'a',
      exactly: {
        deviceClassName: 'gpu',
        selectors: [{ cel: { expression: 'true' } }],
        allocationMode: 'ExactCount',
        count: 2,
        adminAccess: false,
        tolerations: [{ key: 'k', operator: 'Exists' }],
        capacity: { requests: { memory: '1Gi' } },
      },
    },
  ],
  [
    {
      name: 'b',
      deviceClassName: '',
      firstAvailable: [
        { name: 's', deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 },
      ],
    },
    {
      name: 'b',
      firstAvailable: [
        { name: 's', deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 },
      ],
    },
  ],
  // a class of none says nothing, so nothing is asked for exactly
  [{ name: 'c', deviceClassName: '' }, { name: 'c' }],
  // anything else said makes it a request of a class, which is then missing
  [
    { name: 'd', deviceClassName: '', count: 1 },
    { name: 'd', exactly: { deviceClassName: '', count: 1 } },
  ],
];

test('requests stand in themselves in v1beta1, and in `exactly` in v1', () => {
  const old = REQUESTS.map(([one]) => one);
  const stable = REQUESTS.map(([, one]) => one);
  const oldClaim = (requests: JsonValue): JsonObject => ({
    apiVersion: 'resource.k8s.io/v1beta1',
    kind: 'ResourceClaim',
    spec: { devices: { requests, constraints: [{ matchAttribute: 'a/b' }] } },
  });
  const claim = oldKind('ResourceClaim');
  const stored = toStored(oldClaim(old), claim);
  assert.equal(stored['apiVersion'], 'resource.k8s.io/v1');
  assert.equal(JSON.stringify(requestsOf(stored)), JSON.stringify(stable));
  assert.equal(JSON.stringify(fromStored(stored, claim)), JSON.stringify(oldClaim(old)));
  const template = oldKind('ResourceClaimTemplate');
  const inTemplate: JsonObject = {
    apiVersion: 'resource.k8s.io/v1beta1',
    kind: 'ResourceClaimTemplate',
    spec: { metadata: { labels: { a: 'b' } }, spec: { devices: { requests: old } } },
  };
  const storedTemplate = toStored(inTemplate, template);
  assert.deepEqual(requestsOf(storedTemplate, 'spec'), stable);
  assert.deepEqual(fromStored(storedTemplate, template), inTemplate);
});

test('objects without a spec, or with one of no use, are left as they are', () => {
  const apiVersion = 'resource.k8s.io/v1beta1';
  for (const kind of ['ResourceClaim', 'ResourceClaimTemplate', 'ResourceSlice', 'DeviceClass']) {
    for (const spec of [undefined, {}, { devices: null }, { devices: [] }, { spec: 1 }]) {
      const object: JsonObject =
        spec === undefined ? { apiVersion, kind } : { apiVersion, kind, spec };
      const back = fromStored(toStored(object, oldKind(kind)), oldKind(kind));
      assert.deepEqual(back, object);
    }
  }
});

test('claims of one version are read in the other, with defaults of each', () => {
  withOld((model) => {
    const path = `${OLD}/namespaces/n/resourceclaims`;
    const requests = [
      { name: 'a', deviceClassName: 'gpu' },
      { name: 'b', firstAvailable: [{ name: 's', deviceClassName: 'gpu' }] },
    ];
    const filled = { deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 };
    const body = { metadata: { name: 'c' }, spec: { devices: { requests } } };
    const made = objectIn(model.expect(201, 'POST', path, body));
    const shown = [
      { name: 'a', ...filled },
      { name: 'b', deviceClassName: '', firstAvailable: [{ name: 's', ...filled }] },
    ];
    assert.equal(made['apiVersion'], 'resource.k8s.io/v1beta1');
    assert.deepEqual(requestsOf(made), shown);
    const stable = objectIn(model.expect(200, 'GET', `${STABLE}/namespaces/n/resourceclaims/c`));
    assert.deepEqual(requestsOf(stable), [
      { name: 'a', exactly: filled },
      { name: 'b', firstAvailable: [{ name: 's', ...filled }] },
    ]);
    const list = objectIn(model.expect(200, 'GET', path));
    assert.equal(list['apiVersion'], 'resource.k8s.io/v1beta1');
    assert.deepEqual(requestsOf(listAt(list, 'items')[0] as JsonObject), shown);
    const exactly = { deviceClassName: 'fpga', allocationMode: 'All' };
    const other = {
      metadata: { name: 'd' },
      spec: { devices: { requests: [{ name: 'a', exactly }] } },
    };
    model.expect(201, 'POST', `${STABLE}/namespaces/n/resourceclaims`, other);
    const old = objectIn(model.expect(200, 'GET', `${path}/d`));
    assert.deepEqual(requestsOf(old), [{ name: 'a', ...exactly }]);
  });
});

test('what v1beta1 asks for is judged as v1 is, by its paths', () => {
  withOld((model) => {
    const path = `${OLD}/namespaces/n/resourceclaims`;
    const refused = (request: JsonObject): string => {
      const spec = { devices: { requests: [request] } };
      return messageOf(model.expect(422, 'POST', path, { metadata: { name: 'c' }, spec }));
    };
    assert.match(refused({ name: 'a' }), /exactly one of `exactly` or `firstAvailable`/);
    assert.match(
      refused({ name: 'a', count: 1 }),
      /requests\[0\]\.exactly\.deviceClassName: Required/,
    );
    const firstAvailable = [{ name: 's', deviceClassName: 'gpu' }];
    assert.match(
      refused({ name: 'a', deviceClassName: 'gpu', firstAvailable }),
      /but multiple fields are set/,
    );
    const admin = refused({ name: 'a', deviceClassName: 'gpu', adminAccess: true });
    assert.match(admin, /admin access to devices requires the/);
  });
});

test('a claim that was made in v1 is not changed by a write in v1beta1 that says the same', () => {
  withOld((model) => {
    const exactly = { deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 };
    const spec = { devices: { requests: [{ name: 'a', exactly }] } };
    const stable = `${STABLE}/namespaces/n/resourceclaims`;
    model.expect(201, 'POST', stable, { metadata: { name: 'c' }, spec });
    const old = `${OLD}/namespaces/n/resourceclaims/c`;
    const read = objectIn(model.expect(200, 'GET', old));
    const written = objectIn(model.expect(200, 'PUT', old, read));
    assert.deepEqual(written['metadata'], read['metadata']);
    // the spec may not change, and a change is told of in either version
    const changed = structuredClone(read);
    (listAt(changed, 'spec', 'devices', 'requests')[0] as JsonObject)['count'] = 2;
    assert.match(
      messageOf(model.expect(422, 'PUT', old, changed)),
      /spec: Invalid value.*immutable/,
    );
  });
});

test('quotas count what v1beta1 asks for', () => {
  withOld((model) => {
    const hard = { 'gpu.deviceclass.resource.k8s.io/devices': '2' };
    const quotas = '/api/v1/namespaces/n/resourcequotas';
    model.expect(201, 'POST', quotas, { metadata: { name: 'q' }, spec: { hard } });
    const used = { 'gpu.deviceclass.resource.k8s.io/devices': '0' };
    const quota = { metadata: { name: 'q' }, spec: { hard }, status: { hard, used } };
    model.expect(200, 'PUT', `${quotas}/q/status`, quota);
    const claims = `${OLD}/namespaces/n/resourceclaims`;
    const claim = (name: string, count: number): object => {
      const requests = [{ name: 'a', deviceClassName: 'gpu', count }];
      return { metadata: { name }, spec: { devices: { requests } } };
    };
    assert.match(messageOf(model.expect(403, 'POST', claims, claim('c', 3))), /exceeded quota: q/);
    model.expect(201, 'POST', claims, claim('c', 2));
  });
});

test('devices offer in `basic` in v1beta1, and gates and times hold there, too', () => {
  withOld((model) => {
    const attributes = { a: { int: 1 }, many: { ints: [1, 2] } };
    const spec = {
      driver: 'd.example.org',
      pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
      nodeName: 'n',
      allNodes: false,
      devices: [
        {
          name: 'one',
          basic: {
            attributes,
            capacity: { memory: { value: '1Gi' } },
            taints: [{ key: 'k', effect: 'NoSchedule' }],
          },
        },
        { name: 'two' },
      ],
    };
    const body = { metadata: { name: 's' }, spec };
    // an attribute with lists only is none where the gate is off
    const faulty = messageOf(model.expect(422, 'POST', `${OLD}/resourceslices`, body));
    assert.match(faulty, /spec\.devices\[0\]\.attributes\[many\]/);
    Reflect.deleteProperty(attributes, 'many');
    const made = objectIn(model.expect(201, 'POST', `${OLD}/resourceslices`, body));
    assert.deepEqual(listAt(made, 'spec', 'devices')[1], { name: 'two', basic: {} });
    assert.equal(objectAt(made, 'spec')?.['allNodes'], undefined);
    const stable = objectIn(model.expect(200, 'GET', `${STABLE}/resourceslices/s`));
    const [one, two] = listAt(stable, 'spec', 'devices') as JsonObject[];
    assert.deepEqual(two, { name: 'two' });
    assert.deepEqual(Object.keys(one ?? {}), ['name', 'attributes', 'capacity', 'taints']);
    assert.match(stringAt(listAt(one, 'taints')[0], 'timeAdded'), /^\d{4}-/);
    assert.equal(objectAt(stable, 'spec')?.['nodeName'], 'n');
    assert.equal(objectAt(stable, 'spec')?.['allNodes'], undefined);
    const selected = `${OLD}/resourceslices?fieldSelector=spec.driver%3Dd.example.org`;
    assert.equal(listAt(objectIn(model.expect(200, 'GET', selected)), 'items').length, 1);
  });
});

test('owners of fields of one version are those of the other', () => {
  withOld((model) => {
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const path = `${OLD}/namespaces/n/resourceclaimtemplates/t`;
    const devices = { requests: [{ name: 'a', deviceClassName: 'gpu' }] };
    const body: JsonObject = {
      apiVersion: 'resource.k8s.io/v1beta1',
      kind: 'ResourceClaimTemplate',
      metadata: { name: 't', namespace: 'n' },
      spec: { spec: { devices } },
    };
    assert.equal(model.ask('PATCH', `${path}?fieldManager=me`, body, apply).status, 201);
    const stable = `${STABLE}/namespaces/n/resourceclaimtemplates/t`;
    const exactly = { deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 };
    const same: JsonObject = {
      ...body,
      apiVersion: 'resource.k8s.io/v1',
      spec: { spec: { devices: { requests: [{ name: 'a', exactly }] } } },
    };
    const applied = objectIn(model.ask('PATCH', `${stable}?fieldManager=me`, same, apply));
    const versions = listAt(applied, 'metadata', 'managedFields').map((one) =>
      valueAt(one as JsonObject, 'apiVersion'),
    );
    assert.deepEqual(versions, ['resource.k8s.io/v1']);
  });
});

test('rules of device taints are judged and stamped, and pools asked for a hundred', () => {
  try {
    applyRuntimeConfig('resource.k8s.io/v1alpha3=true');
    const model = admittingModel();
    const rules = '/apis/resource.k8s.io/v1alpha3/devicetaintrules';
    const rule = (effect: string, more: object = {}): object => ({
      metadata: { name: 'r' },
      spec: { deviceSelector: { driver: 'd.example.org' }, taint: { key: 'k', effect, ...more } },
    });
    const timeOf = (one: JsonObject): string => stringAt(one, 'spec', 'taint', 'timeAdded');
    const refused = messageOf(model.expect(422, 'POST', rules, rule('Sometimes')));
    assert.match(refused, /spec\.taint\.effect: Unsupported value: "Sometimes"/);
    const timeAdded = '2020-01-01T00:00:00Z';
    model.expect(201, 'POST', rules, rule('NoSchedule', { timeAdded }));
    const put = (one: object): JsonObject => objectIn(model.expect(200, 'PUT', `${rules}/r`, one));
    assert.equal(timeOf(put(rule('NoSchedule', { timeAdded }))), timeAdded);
    assert.equal(timeOf(put(rule('NoExecute', { timeAdded }))), '2026-01-02T03:04:05Z');
    const pools = '/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests';
    const body = { metadata: { name: 'p' }, spec: { driver: 'd.example.org' } };
    assert.equal(valueAt(objectIn(model.expect(201, 'POST', pools, body)), 'spec', 'limit'), 100);
  } finally {
    applyRuntimeConfig('');
  }
});
