import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  define,
  DEFINITIONS,
  definitionOf,
  startRig,
  versionOf,
  type Rig,
} from '../testing/definitions.sim.ts';
import { version2Text, version3Text, type Part, type Piece } from './openapi-pieces.ts';

const WIDGETS_V3 = '/openapi/v3/apis/example.com/v1';

interface Answer {
  readonly content?: Readonly<Record<string, { readonly schema: { readonly $ref?: string } }>>;
}

function contentOf(piece: Piece): string {
  if (typeof piece === 'string') return piece;
  const content = Buffer.isBuffer(piece) ? piece : piece.content;
  return content.toString();
}

function indexOf({ ask }: Rig): Record<string, { serverRelativeURL: string }> {
  const { text } = ask('GET', '/openapi/v3');
  return (JSON.parse(text) as { paths: Record<string, { serverRelativeURL: string }> }).paths;
}

test('a custom resource is published in the documents of its version, and gone with it', () => {
  const rig = startRig();
  assert.equal(rig.ask('GET', WIDGETS_V3).status, 404);
  define(rig, definitionOf('widgets', [versionOf('v1'), versionOf('v2')]));
  const url = indexOf(rig)['apis/example.com/v1']?.serverRelativeURL ?? '';
  const answer = rig.ask('GET', url);
  assert.equal(answer.status, 200, answer.text);
  const { paths, components } = JSON.parse(answer.text) as {
    paths: Record<string, { patch?: { requestBody: { content: object } } }>;
    components: { schemas: Record<string, unknown> };
  };
  const item = paths['/apis/example.com/v1/namespaces/{namespace}/widgets/{name}'];
  assert.ok('application/apply-patch+yaml' in (item?.patch?.requestBody.content ?? {}));
  const names = Object.keys(components.schemas);
  assert.deepEqual(Object.keys(components), ['schemas'], 'as the builder of custom resources');
  assert.match(answer.text, /"info":\{"title":"Kubernetes CRD Swagger","version":"v0.1.0"\}/);
  assert.ok(!names.some((name) => name.endsWith('.WatchEvent')));
  for (const name of ['com.example.v1.Widget', 'com.example.v1.WidgetList']) {
    assert.ok(names.includes(name), name);
  }
  const mentioned = [...answer.text.matchAll(/#\/components\/schemas\/([\w.]+)/g)];
  assert.deepEqual(
    mentioned.map(([, name]) => name).filter((name) => !names.includes(name ?? '')),
    [],
    'nothing is referred to that is not there',
  );
  assert.equal(rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`).status, 200);
  rig.settle();
  assert.equal(rig.ask('GET', WIDGETS_V3).status, 404);
  assert.equal(indexOf(rig)['apis/example.com/v1'], undefined);
});

test('answers tell their schema, where clients of any kind look for it', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const schemaOf = (document: string, path: string): string | undefined => {
    const { paths } = JSON.parse(rig.ask('GET', document).text) as {
      paths: Record<string, { get: { responses: Record<string, Answer> } }>;
    };
    return paths[path]?.get.responses['200']?.content?.['application/json']?.schema.$ref;
  };
  const inner = 'namespaces/{namespace}';
  const core = schemaOf('/openapi/v3/api/v1', `/api/v1/${inner}/configmaps/{name}`);
  assert.equal(core, '#/components/schemas/io.k8s.api.core.v1.ConfigMap');
  const widget = schemaOf(WIDGETS_V3, `/apis/example.com/v1/${inner}/widgets/{name}`);
  assert.equal(widget, '#/components/schemas/com.example.v1.Widget');
});

test('the hash of a document changes with its own definitions and with no others', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const before = indexOf(rig);
  define(rig, {
    ...definitionOf('gadgets', [versionOf('v1')], { group: 'other.com' }),
    metadata: { name: 'gadgets.other.com' },
  });
  assert.deepEqual(indexOf(rig)['apis/example.com/v1'], before['apis/example.com/v1']);
  assert.deepEqual(indexOf(rig)['apis/apps/v1'], before['apis/apps/v1']);
  const changed = rig.ask(
    'PATCH',
    `${DEFINITIONS}/widgets.example.com`,
    { spec: { names: { categories: ['all'] } } },
    { 'content-type': 'application/merge-patch+json' },
  );
  assert.equal(changed.status, 200, changed.text);
  const stale = before['apis/example.com/v1']?.serverRelativeURL ?? '';
  const moved = rig.ask('GET', stale);
  assert.equal(moved.status, 301);
  const tag = rig.ask('GET', WIDGETS_V3).answerHeader('etag') ?? '';
  assert.equal(rig.ask('GET', WIDGETS_V3, undefined, { 'if-none-match': tag }).status, 304);
});

test('version 2 has the custom resources of all groups, in both of its forms', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const answer = rig.ask('GET', '/openapi/v2');
  rig.settle();
  const { definitions } = JSON.parse(answer.text) as { definitions: object };
  assert.ok('com.example.v1.Widget' in definitions);
  assert.ok('io.k8s.api.core.v1.Pod' in definitions);
  for (const version of ['v2@v1.0', 'v2.v1.0']) {
    const accept = `application/com.github.proto-openapi.spec.${version}+protobuf`;
    const message = rig.ask('GET', '/openapi/v2', undefined, { accept });
    rig.settle();
    assert.equal(message.status, 200);
    assert.ok(message.text.includes('com.example.v1.Widget'));
  }
});

test('reading, making and writing the schemas of a kind are pieces of their own', () => {
  const steps: string[] = [];
  const part = {
    read: () => void steps.push('read'),
    paths: () => ({}),
    schemas: () => {
      steps.push('make');
      return { Widget: {} };
    },
  };
  for (const piece of version3Text(() => [part], true)) steps.push(contentOf(piece));
  assert.deepEqual(steps.slice(-6), ['read', '', 'make', '', '"Widget":{}', '}}}']);
});

test('documents come as protobuf, and not again to those who have them', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const accept = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf';
  const plain = rig.ask('GET', WIDGETS_V3);
  const packed = rig.ask('GET', WIDGETS_V3, undefined, { accept });
  assert.equal(packed.contentType, accept.replace('@', '.'));
  assert.ok(packed.text.startsWith('\n\u00053.0.0'), 'field 1');
  const etag = plain.answerHeader('etag') ?? '';
  assert.equal(packed.answerHeader('etag'), etag, 'of both forms');
  const weighed = { accept: `application/json;q=0.5, ${accept}` };
  assert.equal(rig.ask('GET', WIDGETS_V3, undefined, weighed).contentType, packed.contentType);
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const headers = { 'if-none-match': known };
    assert.equal(rig.ask('GET', WIDGETS_V3, undefined, headers).status, 304, known);
  }
  assert.equal(rig.ask('GET', WIDGETS_V3, undefined, { 'if-none-match': '"x"' }).status, 200);
  const other = rig.ask('GET', WIDGETS_V3, undefined, { accept: 'application/yaml' });
  assert.equal(other.status, 406);
  assert.equal(other.answerHeader('vary'), 'Accept');
  const index = rig.ask('GET', '/openapi/v3').answerHeader('etag') ?? '';
  const headers = { 'if-none-match': index };
  assert.equal(rig.ask('GET', '/openapi/v3', undefined, headers).status, 304);
});

test('operations of version 2 refer to parameters that they share, under upstream’s names', () => {
  const { text } = startRig().ask('GET', '/openapi/v2');
  const { parameters, paths } = JSON.parse(text) as {
    parameters: Record<string, { name: string; description?: string }>;
    paths: Record<string, { patch?: { parameters: { name?: string; $ref?: string }[] } }>;
  };
  assert.ok('pretty-tJGM1-ng' in parameters, Object.keys(parameters).join());
  assert.ok('limit-1NfNmdNH' in parameters, 'text that Go escapes or not');
  const item = paths['/api/v1/namespaces/{namespace}/pods/{name}'];
  assert.deepEqual(
    item?.patch?.parameters.map(({ name, $ref }) => name ?? $ref),
    [
      ...['#/parameters/body-78PwaGsr', 'dryRun', '#/parameters/fieldManager-7c6nTn1T'],
      ...['fieldValidation', '#/parameters/force-tOGGb0Yi'],
    ],
  );
});

test('a document that takes over what has not changed is the same as a new one', () => {
  const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
  const built = (looksBefore: boolean): string[] => {
    const rig = startRig();
    const look = (): string[] => {
      const answers = [rig.ask('GET', '/openapi/v2')];
      answers.push(rig.ask('GET', '/openapi/v2', undefined, { accept }));
      rig.settle();
      return answers.map(({ text }) => text);
    };
    for (const plural of ['gadgets', 'widgets', 'zones']) {
      define(rig, definitionOf(plural, [versionOf('v1'), versionOf('v2')]));
    }
    if (looksBefore) look();
    const type = { 'content-type': 'application/json-patch+json' };
    const value = { type: 'string', description: 'It has changed.' };
    const path = '/spec/versions/0/schema/openAPIV3Schema/properties/more';
    const change = [{ op: 'add', path, value }];
    const changed = rig.ask('PATCH', `${DEFINITIONS}/widgets.example.com`, change, type);
    assert.equal(changed.status, 200, changed.text);
    rig.ask('DELETE', `${DEFINITIONS}/zones.example.com`);
    define(rig, definitionOf('apples', [versionOf('v1')]));
    return look();
  };
  const found = built(true);
  assert.ok(found.every((text) => text.includes('It has changed.')));
  assert.ok(found.every((text) => text.includes('com.example.v2.Gadget')));
  assert.deepEqual(found, built(false));
});

test('what lies there already is not made again', () => {
  const part = (source: string): Part => ({
    from: { source, names: [source] },
    paths: () => assert.fail(source),
    schemas: () => assert.fail(source),
  });
  const old = (key: string): Buffer => Buffer.from(`,${key}`);
  const pieces = [...version2Text(() => [part('a'), part('b')], old)];
  assert.match(
    pieces.map(contentOf).join(''),
    /,paths a,paths b},"definitions":\{,schemas a,schemas b}/,
  );
});
