/** How custom resources are answered where upstream has a handler of their own for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  define,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
  type Rig,
} from '../../testing/definitions.sim.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const WIDGET = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };
const SCALE_PATHS = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

function rigWith(properties: object): Rig {
  const rig = startRig();
  const schema = { openAPIV3Schema: { type: 'object', properties } };
  const subresources = { scale: SCALE_PATHS };
  define(rig, definitionOf('widgets', [versionOf('v1', { schema, subresources })]));
  return rig;
}

const SIZED = { spec: { type: 'object', properties: { size: { type: 'integer' } } } };

test('refusals by media type name all encodings, and lists end in YAML as in JSON', () => {
  const rig = rigWith(SIZED);
  const only = 'only the following media types are accepted: application/json, application/yaml, ';
  assert.ok(rig.ask('GET', WIDGETS, undefined, { accept: 'text/html' }).text.includes(only));
  const plain = rig.ask('POST', WIDGETS, WIDGET, { 'content-type': 'text/plain' });
  assert.match(plain.text, /application\/yaml, application\/vnd.kubernetes.protobuf"/);
  const yaml = rig.ask('GET', WIDGETS, undefined, { accept: 'application/yaml' });
  assert.match(yaml.text, /\n {2}continue: ""\n/);
  const odd = rig.ask('POST', WIDGETS, { ...WIDGET, apiVersion: 5 });
  assert.match(odd.text, /cannot unmarshal number into Go struct field .apiVersion of type string/);
});

test('what tells of custom resources looks at no method', () => {
  const rig = rigWith(SIZED);
  assert.match(rig.ask('POST', '/apis/example.com/v1', {}).text, /"APIResourceList"/);
  assert.equal(rig.ask('POST', '/apis/apps/v1', {}).status, 405);
});

test('a scale is applied where that changes nothing, and printed with its replicas', () => {
  const rig = rigWith(SIZED);
  const scale = (replicas: number): string => {
    const spec = { replicas };
    const body = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'w' }, spec };
    const path = `${WIDGETS}/w/scale?fieldManager=m&force=true`;
    return rig.ask('PATCH', path, body, APPLY).text;
  };
  const invalid = 'request to convert CR to an invalid group/version: autoscaling/v1';
  rig.ask('POST', WIDGETS, { ...WIDGET, spec: { size: 3 } });
  assert.match(scale(3), /"spec":\{"replicas":3}/);
  assert.match(scale(4), new RegExp(`convert new object .default/w; .*: ${invalid}`));
  rig.ask('PATCH', `${WIDGETS}/w`, { metadata: { managedFields: [{}] } }, MERGE);
  assert.match(
    scale(4),
    new RegExp(`manager for existing fields: .* live object ./; .*: ${invalid}`),
  );
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const table = rig.ask('GET', `${WIDGETS}/w/scale`, undefined, { accept });
  assert.match(table.text, /"cells":\["w",3,0,"/);
});

test('whole numbers beyond 64 bits are printed as the least there is', () => {
  const rig = startRig();
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const additionalPrinterColumns = [{ name: 'N', type: 'integer', jsonPath: '.n' }];
  const version = versionOf('v1', { schema: { openAPIV3Schema: any }, additionalPrinterColumns });
  define(rig, definitionOf('widgets', [version]));
  rig.ask('POST', WIDGETS, { ...WIDGET, n: 1e21 });
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  assert.match(
    rig.ask('GET', WIDGETS, undefined, { accept }).text,
    /"cells":\["w",-922337203685477/,
  );
});

interface Schema {
  readonly properties: Record<string, Schema>;
  readonly anyOf?: object;
  readonly description?: string;
  readonly 'x-kubernetes-group-version-kind': readonly { readonly group: string }[];
}

test('OpenAPI unfolds numbers or texts, and tells of the groups of shared kinds', () => {
  const whole = { 'x-kubernetes-int-or-string': true };
  const inner = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    properties: { a: whole },
  };
  const rig = rigWith({ spec: { type: 'object', properties: { whole, inner } } });
  const schemas = (path: string): Record<string, Schema> => {
    const { text } = rig.ask('GET', `/openapi/v3/apis/${path}`);
    return (JSON.parse(text) as { components: { schemas: Record<string, Schema> } }).components
      .schemas;
  };
  const own = schemas('example.com/v1');
  const { spec } = own['com.example.v1.Widget']?.properties ?? {};
  assert.deepEqual(spec?.properties['whole']?.anyOf, [{ type: 'integer' }, { type: 'string' }]);
  assert.match(
    spec.properties['inner']?.properties['kind']?.description ?? '',
    /^kind is a string/,
  );
  const groups = (of: Record<string, Schema>): string[] =>
    of[`${META}.DeleteOptions`]?.['x-kubernetes-group-version-kind'].map(({ group }) => group) ??
    [];
  assert.deepEqual(groups(schemas('apps/v1')), ['', 'apps']);
  assert.equal(groups(own).length, 53);
});
