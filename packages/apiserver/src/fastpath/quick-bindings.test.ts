import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import { serverPair } from '../testing/server-pair.sim.ts';

const SPACE = '/api/v1/namespaces/default';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const ZONE = 'topology.kubernetes.io/zone';

function pair(disabledPlugins: readonly string[] = ['ServiceAccount']) {
  const { both, bindings } = serverPair({ disabledPlugins });
  both('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  const labels = { [ZONE]: 'a', 'topology.kubernetes.io/region': 'r' };
  both('POST', '/api/v1/nodes', { metadata: { name: 'far.node-1', labels } });
  let pods = 0;
  /** Makes a pod, has `body` bind it, and looks at what came of it. */
  const bind = (body: (name: string) => unknown, headers?: Record<string, string>, query = '') => {
    const name = `pod-${pods++}`;
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    both('POST', `${SPACE}/pods`, { metadata: { name }, spec });
    const before = bindings();
    const path = `${SPACE}/pods/${name}/binding${query}`;
    const { status } = both('POST', path, body(name), headers);
    const pod = JSON.parse(both('GET', `${SPACE}/pods/${name}`).text) as JsonObject;
    return { status, pod, isQuick: bindings() > before };
  };
  return { both, bind, bindings };
}

function binding(name: string, metadata: object = {}, target: object = {}): JsonObject {
  return {
    kind: 'Binding',
    apiVersion: 'v1',
    metadata: { name, namespace: 'default', ...metadata },
    target: { kind: 'Node', name: 'far.node-1', ...target },
  };
}

test('bindings as schedulers send them go the short way, and bind as the ordinary way does', () => {
  const { bind } = pair();
  const json = { 'content-type': 'application/json' };
  const inProtobuf = (name: string) => encodeProtobuf(binding(name));
  const quick = [
    bind((name) => binding(name)),
    bind((name) => Buffer.from(`${JSON.stringify(binding(name))}\n`), json),
    bind((name) => binding(name, { creationTimestamp: null }, { apiVersion: 'v1' })),
    bind(inProtobuf, { 'content-type': PROTOBUF, accept: `${PROTOBUF},application/json` }),
    bind((name) => ({ target: { name: 'elsewhere' }, ...binding(name) })),
  ];
  for (const { status, isQuick, pod } of quick) {
    assert.deepEqual([status, isQuick], [201, true]);
    const { metadata, spec } = pod as { metadata: JsonObject; spec: JsonObject };
    assert.equal(spec['nodeName'], 'far.node-1');
    assert.equal((metadata['labels'] as JsonObject)[ZONE], 'a');
  }
});

test('what is unusual about a binding is answered by the ordinary way', () => {
  const { bind } = pair();
  const text = (from: string, to: string) => (name: string) => {
    const whole = JSON.stringify(binding(name));
    assert.ok(whole.includes(from));
    return Buffer.from(whole.replace(from, to));
  };
  const codes = [
    [bind((name) => binding(name, { labels: { x: 'y' } })), 201],
    [bind((name) => binding(name, { annotations: { x: 'y' } })), 201],
    [bind((name) => binding(name, { uid: 'another' })), 409],
    [bind(() => binding('other')), 400],
    [bind((name) => binding(name, { namespace: 'other' })), 400],
    [bind((name) => binding(name, {}, { kind: 'Pod' })), 500],
    [bind((name) => binding(name, {}, { name: '' })), 500],
    [bind((name) => binding(name, {}, { name: 'Upper_1' })), 201],
    [bind((name) => ({ ...binding(name), kind: 'Pod' })), 400],
    [bind((name) => ({ ...binding(name), apiVersion: 'v2' })), 400],
    [bind((name) => ({ ...binding(name), more: 1 })), 201],
    [bind(text('"kind":"Node"', '"kind":"Node","kind":"Node"')), 201],
    [bind(text('"kind":"Binding"', '"kind":"Binding","kind":"Binding"')), 201],
    [bind(text('"kind":"Binding",', '')), 201],
    [bind(text('{"kind"', '{\u0001"kind"')), 400],
    [bind(text('"target"', '"target" ')), 201],
    [bind(text('}}', '}}x')), 400],
    [bind(text('}}', '}')), 400],
    [bind((name) => binding(name), undefined, '?dryRun=All'), 201],
    [bind((name) => binding(name), undefined, '?fieldManager=me'), 201],
    [bind((name) => binding(name), { 'content-type': 'application/yaml' }), 201],
  ] as const;
  for (const [index, [{ status, isQuick }, code]] of codes.entries()) {
    assert.deepEqual([index, status, isQuick], [index, code, false]);
  }
});

test('pods that are bound, gated, ending or not there are refused in the words of upstream', () => {
  const { both, bind, bindings } = pair();
  bind((name) => binding(name));
  const again = (name: string) => both('POST', `${SPACE}/pods/${name}/binding`, binding(name));
  assert.equal(again('pod-0').status, 409);
  assert.equal(again('none').status, 404);
  const spec = { containers: [{ name: 'c', image: 'i' }], schedulingGates: [{ name: 'g' }] };
  both('POST', `${SPACE}/pods`, { metadata: { name: 'gated' }, spec });
  assert.equal(again('gated').status, 409);
  assert.equal(bindings(), 1);
});

test('no pod is bound the short way in a namespace that ends', () => {
  const { both, bindings } = pair();
  const space = '/api/v1/namespaces/team';
  both('POST', '/api/v1/namespaces', { metadata: { name: 'team' } });
  const bindIn = (name: string): number => {
    const body = binding(name, { namespace: 'team' });
    return both('POST', `${space}/pods/${name}/binding`, body).status;
  };
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  for (const name of ['first', 'last']) {
    both('POST', `${space}/pods`, { metadata: { name }, spec });
  }
  assert.equal(bindIn('first'), 201);
  both('DELETE', space);
  assert.equal(bindIn('last'), 403);
  assert.equal(bindings(), 1);
});

test('pods get no labels of their nodes where the plugin for them is off, whichever way', () => {
  const { bind } = pair(['ServiceAccount', 'PodTopologyLabels']);
  const { isQuick, pod } = bind((name) => binding(name));
  assert.equal(isQuick, true);
  assert.equal((pod['metadata'] as JsonObject)['labels'], undefined);
});
