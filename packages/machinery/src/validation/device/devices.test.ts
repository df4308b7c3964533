import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource, type Resource } from '../../scheme/kinds.ts';
import { validateCreate, validateUpdate } from '../validation.ts';

const GROUP = 'resource.k8s.io';

function resourceOf(plural: string): Resource {
  const found = findResource(GROUP, 'v1', plural);
  assert.ok(found !== undefined);
  return found;
}

function objectOf(plural: string, rest: JsonObject): JsonObject {
  const namespace = resourceOf(plural).namespaced ? { namespace: 'n' } : {};
  return { apiVersion: `${GROUP}/v1`, metadata: { name: 'a', ...namespace }, ...rest };
}

function textsOf(plural: string, spec: JsonObject): string[] {
  return validateCreate(resourceOf(plural), objectOf(plural, { spec })).map(fieldErrorText);
}

const EITHER = 'exactly one of `exactly` or `firstAvailable` is required';
const REFERENCE =
  'must be the name of a request in the claim or the name of a request and a subrequest ' +
  "separated by '/'";

test('a request asks for devices in one way, and constraints name requests that exist', () => {
  const exactly = { deviceClassName: 'c', allocationMode: 'ExactCount', count: 1 };
  const requests = [
    { name: 'r', exactly },
    { name: 'none' },
    { name: 'both', exactly, firstAvailable: [{ name: 's', ...exactly }] },
    { name: 'all', exactly: { ...exactly, allocationMode: 'All', count: 2 } },
    { name: 'r', exactly },
  ];
  const constraints = [{ requests: ['r', 'both/s', 'r/s', 'r'], matchAttribute: 'a.b/c' }];
  assert.deepEqual(textsOf('resourceclaims', { devices: { requests, constraints } }), [
    `spec.devices.requests[1]: Required value: ${EITHER}`,
    `spec.devices.requests[2]: Invalid value: null: ${EITHER}, but multiple fields are set`,
    'spec.devices.requests[3].exactly.count: Invalid value: 2: must not be specified when ' +
      "allocationMode is 'All'",
    'spec.devices.requests[4]: Duplicate value: "r"',
    `spec.devices.constraints[0].requests[2]: Invalid value: "r/s": ${REFERENCE}`,
    'spec.devices.constraints[0].requests[3]: Duplicate value: "r"',
  ]);
});

test('selectors of devices compile, give a boolean, and are not too dear', () => {
  const dear = 'device.attributes["a.b"].x.matches("a*b*") && '.repeat(3);
  const expressions = ['', '1', 'device.driver == "a.b"', 'device.attributes["a.b"].x'];
  const nested =
    'device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, true)))';
  const selectors = [
    ...expressions,
    `${dear}true`,
    `${nested} && device.attributes.all(d, ${nested})`,
  ];
  const found = textsOf('deviceclasses', {
    selectors: selectors.map((expression) => ({ cel: { expression } })),
  });
  assert.equal(found.length, 3);
  assert.match(found[0] ?? '', /^spec.selectors\[0\].cel.expression: .*ERROR: <input>:1:0: Syntax/);
  assert.match(found[1] ?? '', /must evaluate to bool or the unknown type, not int$/);
  assert.match(found[2] ?? '', /^spec.selectors\[5\].*Forbidden: too complex, exceeds cost limit$/);
});

test('a slice says in one way which nodes reach its devices, and what it has', () => {
  const pool = { name: 'p/Q', generation: -1, resourceSliceCount: 0 };
  const devices = [
    {
      name: 'd',
      attributes: { 'a.b/c': { string: 'x', bool: true }, v: { version: '1.2' } },
      capacity: { c: { value: '1', requestPolicy: {} } },
      taints: [{ key: 'a', effect: 'Soon' }],
      bindingConditions: ['a'],
    },
  ];
  const found = textsOf('resourceslices', { driver: 'a.b', pool, devices });
  const starts = [
    'spec.pool.name: Invalid value: "Q": a lowercase RFC 1123 subdomain must',
    'spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero',
    'spec.pool.generation: Invalid value: -1: must be greater than or equal to zero',
    'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, ',
    'spec.devices[0].attributes[a.b/c]: Invalid value: {"IntValue":null,"BoolValue":true,' +
      '"StringValue":"x","VersionValue":null,"IntValues":null,"BoolValues":null,' +
      '"StringValues":null,"VersionValues":null}: exactly one value must be specified',
    'spec.devices[0].attributes[v].version: Invalid value: "1.2": must be a string compatible',
    'spec.devices[0].capacity[c].requestPolicy: Forbidden: allowMultipleAllocations must be true',
    'spec.devices[0].taints[0].effect: Unsupported value: "Soon": supported values: "NoExecute", ',
    'spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are',
  ];
  assert.equal(found.length, starts.length, found.join('\n'));
  for (const [index, start] of starts.entries()) {
    assert.ok(found[index]?.startsWith(start), `${found[index] ?? ''}\n${start}`);
  }
});

test('a selector of nodes without a list of terms is shown as null', () => {
  const text = 'spec.nodeSelector.nodeSelectorTerms: Invalid value: null: ';
  const found = textsOf('resourceslices', { driver: 'a.b', nodeSelector: {} });
  assert.ok(found.some((one) => one.startsWith(text)));
});

test('the spec of a claim is immutable, and is printed as Go has it', () => {
  const next = objectOf('resourceclaims', { spec: { devices: { requests: [] } } });
  const previous = objectOf('resourceclaims', {
    spec: { devices: { requests: [{ name: 'r' }] } },
  });
  for (const object of [next, previous]) {
    object['metadata'] = { name: 'a', namespace: 'n', resourceVersion: '1' };
  }
  assert.deepEqual(
    validateUpdate(resourceOf('resourceclaims'), next, previous, '').map(fieldErrorText),
    [
      'spec: Invalid value: {"Devices":{"Requests":[],"Constraints":null,"Config":null}}: ' +
        'field is immutable',
    ],
  );
});

test('reports on devices concern what the claim was given', () => {
  const resource = resourceOf('resourceclaims');
  const device = { driver: 'a.b', pool: 'p', device: 'd' };
  const allocation = { devices: { results: [{ request: 'r', ...device }] } };
  const claim = (status: JsonObject): JsonObject => ({
    ...objectOf('resourceclaims', { spec: { devices: { requests: [{ name: 'r' }] } }, status }),
    metadata: { name: 'a', namespace: 'n', resourceVersion: '1' },
  });
  const devices = [
    { ...device, networkData: { ips: ['10.0.0.1/8', '10.0.0.1', '::1/128'] } },
    { ...device, device: 'e', conditions: [{ type: 'x', status: 'Maybe' }] },
  ];
  const found = validateUpdate(resource, claim({ allocation, devices }), claim({}), 'status');
  assert.deepEqual(found.map(fieldErrorText), [
    'status.devices[0].networkData.ips[1]: Invalid value: "10.0.0.1": must be a valid address ' +
      'in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)',
    'status.devices[1]: Invalid value: {"Driver":"a.b","Pool":"p","Device":"e","ShareID":""}: ' +
      'must be an allocated device in the claim',
    'status.devices[1].conditions[0].status: Unsupported value: "Maybe": supported values: ' +
      '"False", "True", "Unknown"',
    'status.devices[1].conditions[0].lastTransitionTime: Required value',
    'status.devices[1].conditions[0].reason: Required value',
  ]);
});
