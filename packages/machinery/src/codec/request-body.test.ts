// shell
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '../json/json-value.ts';
import { decodeJsonBody, decodeProtobufBody, refit, type Body } from './request-body.ts';
import { findType } from '../scheme/schema.ts';

const GOLDEN = join(homedir(), 'go/pkg/mod/k8s.io/api@v0.36.1/testdata/HEAD');
const NO_GOLDEN = existsSync(GOLDEN)
  ? false
  : 'needs the vectors of k8s.io/api: go mod download k8s.io/api@v0.36.1';
const POD = { apiVersion: 'v1', kind: 'Pod' };

function decode(text: string, expected = POD): Body {
  const bytes = Buffer.from(`xx${text}`);
  return decodeJsonBody(bytes, 2, bytes.length, expected, true);
}

function object(text: string, expected = POD): JsonObject {
  const body = decode(text, expected);
  assert(body.ok, body.ok ? '' : body.message);
  return body.object;
}

function message(text: string, expected = POD): string {
  const body = decode(text, expected);
  return body.ok ? 'accepted' : body.message;
}

function findings(text: string, expected = POD): readonly string[] {
  const body = decode(text, expected);
  return body.ok ? body.strictErrors : [body.message];
}

test('schemas within schemas are fitted to their type, and nothing unknown in them is told', () => {
  const definition = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' };
  const sent = (schema: string): string =>
    `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
    `"spec":{"versions":[` +
    `{"name":"v1","schema":{"openAPIV3Schema":{"type":"array","items":${schema}}}}]}}`;
  const listed = sent('{"type":"string","x-foo":true,"uniqueItems":false}');
  assert.deepEqual(findings(listed, definition), []);
  assert.match(JSON.stringify(object(listed, definition)), /"items":\{"type":"string"\}/);
  const at = 'JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items';
  const refused = message(sent('{"minimum":"x"}'), definition);
  const field = `Go struct field ${at}.minimum of type float64`;
  assert.ok(refused.endsWith(`: json: cannot unmarshal string into ${field}`), refused);
  const either = message(sent('{"additionalProperties":"x"}'), definition);
  assert.ok(either.endsWith(': boolean or JSON schema expected'), either);
});

test('every golden object passes unchanged', { skip: NO_GOLDEN }, () => {
  let compared = 0;
  for (const file of readdirSync(GOLDEN).filter((name) => name.endsWith('.json'))) {
    const text = readFileSync(join(GOLDEN, file), 'utf8');
    const golden = JSON.parse(text) as JsonObject & { apiVersion?: string; kind: string };
    if (golden.apiVersion === undefined) continue;
    const expected = { apiVersion: golden.apiVersion, kind: golden.kind };
    const body = decode(text, expected);
    if (!body.ok) {
      assert.match(body.message, /no kind "/);
      continue;
    }
    assert.equal(JSON.stringify(body.object), JSON.stringify(golden), file);
    assert.deepEqual(body.strictErrors, [], file);
    compared++;
  }
  assert.ok(compared > 100);
});

test('objects take the form in which upstream answers them', () => {
  const sent = {
    spec: {
      hostNetwork: false,
      tolerations: [],
      containers: [
        { image: 'i', name: 'c', resources: { limits: { memory: '0.5Gi', cpu: 2 } }, env: null },
      ],
    },
    metadata: { labels: { a: null }, creationTimestamp: null, name: 'p' },
  };
  assert.equal(
    JSON.stringify(object(JSON.stringify(sent))),
    JSON.stringify({
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { name: 'p', labels: { a: '' } },
      spec: {
        containers: [
          { name: 'c', image: 'i', resources: { limits: { cpu: '2', memory: '512Mi' } } },
        ],
      },
      status: {},
    }),
  );
});

test('times come in any zone and go out in UTC', () => {
  const event = object(
    '{"lastTimestamp":"2026-01-02T03:04:05.9+02:00","eventTime":"2026-01-02T03:04:05.123456Z"}',
    { apiVersion: 'v1', kind: 'Event' },
  );
  assert.equal(event['lastTimestamp'], '2026-01-02T01:04:05Z');
  assert.equal(event['eventTime'], '2026-01-02T03:04:05.123456Z');
  assert.equal(event['firstTimestamp'], null);
});

test('unknown and doubled fields are listed in the order of the text', () => {
  const text =
    '{"kind":"Pod","metadata":{"name":"a","name":"b","x":{"y":1,"y":2}},' +
    '"spec":{"containers":[{"name":"c","bar":2}],"foo":1},"baz":3,"Spec":{}}';
  assert.deepEqual(findings(text), [
    'duplicate field "metadata.name"',
    'unknown field "metadata.x"',
    'unknown field "spec.containers[0].bar"',
    'unknown field "spec.foo"',
    'unknown field "baz"',
    'unknown field "Spec"',
  ]);
  assert.deepEqual(findings('{"metadata":{"labels":{"a":"1","a":"2"}}}'), [
    'duplicate field "metadata.labels.a"',
  ]);
});

test('values of a wrong type are refused as by Go', () => {
  const refused = (text: string, cause: string): void => {
    assert.equal(message(text), `Pod in version "v1" cannot be handled as a Pod: ${cause}`);
  };
  const field = 'Go struct field';
  refused(
    '{"spec":{"containers":"x"}}',
    `json: cannot unmarshal string into ${field} PodSpec.spec.containers of type []v1.Container`,
  );
  // what comes after an item belongs to whoever has the list
  refused(
    '{"spec":{"containers":[{"name":"c"},"x"]}}',
    `json: cannot unmarshal string into ${field} PodSpec.spec.containers of type v1.Container`,
  );
  refused(
    '{"spec":{"overhead":"x"}}',
    `json: cannot unmarshal string into ${field} PodSpec.spec.overhead of type v1.ResourceList`,
  );
  refused(
    '{"spec":{"restartPolicy":5}}',
    `json: cannot unmarshal number into ${field} PodSpec.spec.restartPolicy of type ` +
      'v1.RestartPolicy',
  );
  refused(
    '{"spec":{"priority":2147483648}}',
    'json: cannot unmarshal number 2147483648 into ' +
      `${field} PodSpec.spec.priority of type int32`,
  );
  refused(
    '{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  );
  refused(
    '{"metadata":{"creationTimestamp":"yesterday"}}',
    'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
  );
});

test('text that is no JSON is refused as by Go', () => {
  const refused = (text: string, cause: string): void => {
    const head = 'the object provided is unrecognized (must be of type Pod)';
    const parse = "couldn't get version/kind; json parse error";
    assert.equal(message(text), `${head}: ${parse}: ${cause}`);
  };
  refused('', 'unexpected end of JSON input (<empty>)');
  refused('{"a', 'unexpected end of JSON input ({"a)');
  refused(
    '{"a":1,}',
    `invalid character '}' looking for beginning of object key string ({"a":1,})`,
  );
  refused('{"a":tru}', `invalid character '}' in literal true (expecting 'e') ({"a":tru})`);
  refused(
    "{'a':1}",
    `invalid character '\\'' looking for beginning of object key string ({'a':1})`,
  );
  refused('{"a":01}', `invalid character '1' after object key:value pair ({"a":01})`);
  refused('{"a":1}x', `invalid character 'x' after top-level value ({"a":1}x)`);
  refused('{"a":"\\q"}', `invalid character 'q' in string escape code ({"a":"\\q"})`);
});

test('objects of another kind or version are refused', () => {
  assert.match(message('{"kind":"ConfigMap"}'), /converting \(v1.ConfigMap\) to \(core.Pod\)/);
  assert.match(message('{"kind":"Nope"}'), /^Nope in version "v1" cannot .* no kind "Nope" is/);
  assert.equal(
    message('{"apiVersion":"events.k8s.io/v1","kind":"Event"}', {
      apiVersion: 'v1',
      kind: 'Event',
    }),
    'the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)',
  );
  assert.match(message('{"apiVersion":"a/b/c"}'), /: unexpected GroupVersion string: a\/b\/c \(/);
});

test('nesting beyond the limit is refused, not a crash', () => {
  const deep = '[1,'.repeat(20_000);
  assert.match(message(`{"a":${deep}`), /exceeded max depth|unexpected end/);
  const closed = '['.repeat(20_000) + ']'.repeat(20_000);
  assert.match(message(`{"a":${closed}}`), /exceeded max depth/);
});

test('protobuf that is none is refused with a summary', () => {
  const bytes = Buffer.from('hello');
  const body = decodeProtobufBody(bytes, 0, bytes.length, POD);
  assert.match(body.ok ? '' : body.message, /must be of type Pod\): provided .* \(68656c6c6f\)$/);
});

test('a patched object is fitted like one that was sent', () => {
  const type = findType('core.v1.Pod');
  assert(type !== undefined);
  const body = refit(type, { kind: 'Pod', apiVersion: 'v1', spec: { foo: 1 } }, true);
  assert.deepEqual(body.ok && body.strictErrors, ['unknown field "spec.foo"']);
});

test('claims of a StatefulSet say what they are, and nothing else within an object does', () => {
  const type = { kind: 'PersistentVolumeClaim', apiVersion: 'v1' };
  const claim = { ...type, metadata: { name: 'c' }, spec: {} };
  const set = (claims: object[], template: object): string =>
    JSON.stringify({ spec: { volumeClaimTemplates: claims, template } });
  const expected = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
  assert.deepEqual(findings(set([claim], {}), expected), []);
  assert.deepEqual(findings(set([{ ...claim, king: 'x' }, claim], { kind: 'Pod' }), expected), [
    'unknown field "spec.volumeClaimTemplates[0].king"',
    'unknown field "spec.template.kind"',
  ]);
  assert.deepEqual(
    findings('{"spec":{"volumeClaimTemplates":[{"kind":"a","kind":"b"}]}}', expected),
    ['duplicate field "spec.volumeClaimTemplates[0].kind"'],
  );
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction' };
  const options = JSON.stringify({ deleteOptions: { kind: 'DeleteOptions', foo: 1 } });
  assert.deepEqual(findings(options, eviction), ['unknown field "deleteOptions.foo"']);
});

test('of several wrong fields the one that was written first is told, as Go reads them', () => {
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment' };
  const fault = (text: string): string => message(text, deployment).replace(/^.*Deployment: /, '');
  const paused = /number into Go struct field DeploymentSpec\.spec\.paused of type bool$/;
  assert.match(fault('{"spec":{"paused":1,"replicas":"a"},"metadata":{"name":5}}'), paused);
  const replicas = /string into Go struct field DeploymentSpec\.spec\.replicas of type int32$/;
  assert.match(fault('{"spec":{"replicas":"a","paused":1}}'), replicas);
  // what ends the reading counts, whatever was wrong before
  const times = '"metadata":{"deletionTimestamp":"b","creationTimestamp":"a"}';
  assert.match(fault(`{"spec":{"paused":1},${times}}`), /^parsing time "b"/);
});
