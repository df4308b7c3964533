/** Which form of discovery an Accept header gets, and the order of the list of groups. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtobuf } from '@megaplane/machinery/protobuf';
import { DEFINITIONS, startRig } from '../testing/definitions.sim.ts';
import {
  aggregatedEncoding,
  AGGREGATED_PARAMETERS,
  keptForm,
  makeForm,
} from './discovery-forms.ts';
import { parseAccept } from '../request/negotiation.ts';
import { parseYaml } from '../request/yaml/yaml-body.ts';

const YAML = `application/yaml${AGGREGATED_PARAMETERS}`;
const PROTOBUF = `application/vnd.kubernetes.protobuf${AGGREGATED_PARAMETERS}`;

test('types of an Accept header are tried in the order of upstream’s parser', () => {
  const order = (accept: string): string =>
    parseAccept(accept)
      .map(({ type }) => type)
      .join(' ');
  assert.equal(order('a/b;q=0.1, c/d, e/f'), 'c/d e/f a/b');
  assert.equal(order('*/*, a/*, a/b'), 'a/b a/* */*', 'wildcards behind');
  assert.equal(order('a/b;q=0.5, */*'), '*/* a/b', 'unless they weigh more');
  assert.equal(order('a/b;q=x, c/d;q=0.1'), 'c/d a/b', 'what is no number weighs nothing');
  const [clause] = parseAccept('a/b;as=;v=1=2;G="g";flag');
  assert.deepEqual([...(clause?.parameters ?? [])], [['g', 'g']]);
});

test('the aggregated document is what is named anywhere', () => {
  assert.equal(aggregatedEncoding('application/json'), null);
  assert.equal(aggregatedEncoding(`application/json,${YAML}`), 'yaml');
  assert.equal(aggregatedEncoding(`text/plain;v=v2,${PROTOBUF},${YAML}`), 'protobuf');
  assert.equal(aggregatedEncoding(`*/*${AGGREGATED_PARAMETERS}`), 'json');
  assert.equal(aggregatedEncoding(YAML.replace('v=v2', 'v=v2beta1')), null);
});

test('all encodings of the aggregated document say the same, with one tag', () => {
  const { ask } = startRig();
  const plain = ask('GET', '/apis', undefined, {
    accept: `application/json${AGGREGATED_PARAMETERS}`,
  });
  const object = JSON.parse(plain.text) as unknown;
  for (const accept of [YAML, PROTOBUF]) {
    const { status, headers, contentType } = ask('GET', '/apis', undefined, { accept });
    assert.deepEqual([status, contentType], [200, accept]);
    const tag = ({ headers: fields }: { headers: readonly string[] }): string | undefined =>
      fields[fields.indexOf('etag') + 1];
    assert.equal(tag({ headers }), tag(plain));
  }
  const { items } = object as { items: unknown[] };
  const groups = items.map((item) => JSON.stringify(item));
  const document = { contentType: '', bytes: Buffer.from(plain.text), etag: '""', groups };
  const formOf = (encoding: 'yaml' | 'protobuf'): Buffer => {
    let turns = 0;
    for (const steps = makeForm(document, encoding); steps.next().done !== true;) turns++;
    assert.equal(turns, groups.length, 'a group in each step');
    return keptForm(document, encoding)?.bytes ?? Buffer.of();
  };
  assert.deepEqual(parseYaml(formOf('yaml').toString()), { value: object });
  const bytes = formOf('protobuf');
  const decoded = decodeProtobuf(bytes, 0, bytes.length);
  assert.deepEqual(decoded.ok && decoded.object, object);
});

test('groups of one priority are listed by the names of their APIServices', () => {
  const { ask, settle } = startRig();
  const versionsOf = { 'a.test': ['v1alpha1'], 'b.test': ['v2', 'v1'], 'c.test': ['foo'] };
  for (const [group, versions] of Object.entries(versionsOf)) {
    const schema = { openAPIV3Schema: { type: 'object' } };
    const spec = {
      group,
      names: { plural: 'ws', kind: 'W' },
      scope: 'Cluster',
      versions: versions.map((name, at) => ({ name, served: true, storage: at === 0, schema })),
    };
    assert.equal(ask('POST', DEFINITIONS, { metadata: { name: `ws.${group}` }, spec }).status, 201);
  }
  settle();
  const { groups } = JSON.parse(ask('GET', '/apis').text) as { groups: { name: string }[] };
  const names = groups.map(({ name }) => name).filter((name) => name.endsWith('.test'));
  assert.deepEqual(names, ['c.test', 'b.test', 'a.test']);
});
