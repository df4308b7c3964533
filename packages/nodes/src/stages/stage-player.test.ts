import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventRecorder } from '@megaplane/client/event-recorder';
import { FakeClient } from '../../test/fake-client.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { stageFunctions } from '../gotemplate/stage-functions.ts';
import { readStageFile } from './stage-file.ts';
import { StagePlayer } from './stage-player.ts';

const HEAD = 'apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\n';
const LABELLED = { metadata: { labels: { of: '' } } };
const THINGS = {
  ...{ apiVersion: 'example.com/v1', kind: 'Thing', resource: 'things', namespaced: true },
};
const REF = 'resourceRef: { apiGroup: example.com/v1, kind: Thing }';

interface Scene {
  readonly client: FakeClient;
  readonly player: StagePlayer;
  readonly events: string[];
  readonly errors: string[];
  readonly see: (id: number, object: object, version: number, isNew?: boolean) => void;
  readonly run: (durationMs: number) => void;
}

function scene(...specs: readonly string[]): Scene {
  const client = new FakeClient(3);
  const events: string[] = [];
  const errors: string[] = [];
  const world = {
    nowMs: () => client.timers.nowMs(),
    random: () => 0,
    version: 'v1',
    nodePort: 0,
    nodeName: '',
    nodeIp: '',
    nodeAddresses: () => [],
    podAddresses: () => [],
    anyAddress: () => '',
  };
  const text = specs
    .map((spec, index) => `${HEAD}metadata: { name: s${index} }\nspec:\n  ${REF}\n${spec}`)
    .join('\n---\n');
  const { stages } = readStageFile('f', text, {
    functions: stageFunctions(world),
    clock: { nowMs: world.nowMs, random: () => 0 },
  });
  const recorder = {
    event: (subject: { name: string }, type: string, reason: string, message: string) =>
      events.push(`${subject.name} ${type} ${reason} ${message}`),
  } as unknown as EventRecorder;
  const player = new StagePlayer({
    client,
    resource: THINGS,
    stages,
    recorder,
    metrics: new SimulatorMetrics(),
    isOurs: () => true,
    pathOf: (id) => `/apis/example.com/v1/namespaces/d/things/t${id}`,
    resourceOf: () => THINGS,
    onError: (message) => errors.push(message),
  });
  const see = (id: number, object: object, version: number, isNew = true): void => {
    const metadata = { resourceVersion: `${version}`, name: `t${id}`, namespace: 'd', uid: 'u' };
    const bytes = Buffer.from(JSON.stringify({ metadata, ...object }));
    player.handler.onUpsert(id, isNew, bytes, 0, bytes.length);
  };
  const run = (durationMs: number): void => {
    for (let passed = 0; passed < durationMs; passed += 10) {
      client.pass(10);
      player.tick();
    }
  };
  return { client, player, events, errors, see, run };
}

test('steps play in order, each after the answer of the one before', () => {
  const one = scene(`  selector: {}
  steps:
    - event: { type: Normal, reason: Begun, message: 'hello {{ .metadata.name }}' }
    - finalizers: { add: [{ value: x/y }] }
    - patch: { root: spec, template: 'a: 1' }
    - patch:
        subresource: status
        root: status
        type: json
        template: '[{ op: add, path: /p, value: x }]'
    - delete: true
    - patch: { root: spec, template: 'a: 2' }
    - event: { type: Warning, reason: Gone, message: '' }`);
  one.see(1, {}, 5);
  assert.deepEqual(one.events, ['t1 Normal Begun hello {{ .metadata.name }}']);
  const path = '/apis/example.com/v1/namespaces/d/things/t1';
  const added = one.client.answer(200, {});
  assert.deepEqual(JSON.parse(added.body), [
    { op: 'add', path: '/metadata/finalizers', value: ['x/y'] },
  ]);
  const patched = one.client.answer(200, {});
  assert.deepEqual([patched.path, JSON.parse(patched.body)], [path, { spec: { a: 1 } }]);
  const status = one.client.answer(200, {});
  assert.equal(status.path, `${path}/status`);
  assert.deepEqual(JSON.parse(status.body), [{ op: 'add', path: '/status/p', value: 'x' }]);
  const deleted = one.client.answer(200, {});
  assert.equal(deleted.method, 'DELETE');
  assert.equal(one.events[1], 't1 Warning Gone ', 'of what is gone only events are told');
  assert.deepEqual([one.player.pending, one.errors], [0, []]);
});

test('a newer state takes the place of a stage that waits for a server in trouble', () => {
  const one = scene(
    `  selector: { matchLabels: { a: b } }
  steps:
    - finalizers: { add: [{ value: x/y }] }
    - patch: { root: spec, template: 'a: 1' }`,
    `  selector: { matchLabels: { a: c } }
  next: { patches: [{ root: spec, template: 'a: 2' }] }`,
  );
  const labelled = (a: string): object => ({ metadata: { ...meta, labels: { a } } });
  const meta = { name: 't1', namespace: 'd', uid: 'u' };
  const see = (a: string, version: number): void => {
    const own = { metadata: { ...meta, labels: { a }, resourceVersion: `${version}` } };
    one.see(1, own, version, version === 5);
  };
  see('b', 5);
  one.client.answer(200, { metadata: { ...meta, resourceVersion: '6' } });
  for (let tries = 0; tries < 12; tries++) {
    one.client.answer(429);
    one.run(1000 * 2 ** tries * 1.2 + 20);
  }
  one.client.answer(429);
  // what the stage itself has done is no reason to begin anew
  see('b', 6);
  one.run(60_000);
  assert.equal(one.client.sent.length, 0);
  see('c', 7);
  assert.deepEqual(JSON.parse(one.client.answer(200, labelled('c')).body), { spec: { a: 2 } });
  one.run(40 * 60_000);
  assert.deepEqual([one.client.sent.length, one.player.pending], [0, 0]);
});

test('a newer state takes the place of one that waits', () => {
  const waits = '  selector: { matchLabels: { a: b } }\n  delay: { durationMilliseconds: 1000 }\n';
  const one = scene(`${waits}  next: { patches: [{ root: spec, template: 'x: {{ .spec.n }}' }] }`);
  one.see(1, { spec: { n: 1 } }, 5);
  assert.equal(one.player.pending, 0, 'no stage is for it');
  const labelled = { name: 't1', namespace: 'd', labels: { a: 'b' } };
  one.see(1, { metadata: { ...labelled, resourceVersion: '6' }, spec: { n: 2 } }, 6, false);
  one.run(500);
  one.see(1, { metadata: { ...labelled, resourceVersion: '7' }, spec: { n: 3 } }, 7, false);
  one.run(600);
  assert.equal(one.client.sent.length, 0, 'the delay begins anew');
  one.run(500);
  assert.deepEqual(JSON.parse(one.client.answer(200).body), { spec: { x: 3 } });
});

test('a server in trouble is asked again, from the step that it refused', () => {
  const one = scene(`  selector: {}
  steps:
    - patch: { root: spec, template: 'a: 1' }
    - patch: { root: spec, template: 'b: 2' }`);
  one.see(1, {}, 5);
  one.client.answer(200, {});
  one.client.answer(503, {});
  one.run(500);
  assert.equal(one.client.sent.length, 0);
  one.run(1000);
  one.client.answer(429, {});
  one.run(2600);
  assert.deepEqual(JSON.parse(one.client.answer(200).body), { spec: { b: 2 } });
  assert.equal(one.player.pending, 0);
});

test('what fails for good is told once, and the object left alone', () => {
  const one = scene("  selector: {}\n  next: { statusTemplate: 'a: {{ index .spec.list 3 }}' }");
  one.see(1, { spec: { list: [] } }, 5);
  one.see(2, { spec: { list: [] } }, 6);
  assert.equal(one.client.sent.length, 0);
  assert.equal(one.errors.length, 1);
  assert.match(one.errors[0] ?? '', /^stage s0: .*things\/t1: .*index out of range: 3/);
});

test('a stage that is immediate is followed by the next one on the answer', () => {
  const first = `  selector: { matchExpressions: [{ key: .spec.a, operator: DoesNotExist }] }
  immediateNextStage: true
  next: { patches: [{ root: spec, template: 'a: 1' }] }`;
  const second = `  selector: { matchExpressions: [{ key: .spec.a, operator: Exists }] }
  next: { patches: [{ root: spec, template: 'b: 1' }] }`;
  const one = scene(first, second);
  one.see(1, {}, 5);
  const metadata = { resourceVersion: '6', name: 't1', namespace: 'd' };
  one.client.answer(200, { metadata, spec: { a: 1 } });
  assert.deepEqual(JSON.parse(one.client.answer(200).body), { spec: { b: 1 } });
});

test('a patch that changes nothing is not sent', () => {
  const one = scene("  selector: {}\n  next: { patches: [{ root: spec, template: 'a: 1' }] }");
  one.see(1, { spec: { a: 1 } }, 5);
  assert.equal(one.client.sent.length, 0);
});

test('what is applied is made, and patched where it is there already', () => {
  const apply = '{ name: c, labels: { of: {{ .metadata.name | Quote }} } }';
  const one = scene(`  selector: {}
  immediateNextStage: true
  steps:
    - apply:
        template: '{ apiVersion: example.com/v1, kind: Thing, metadata: ${apply} }'
        type: merge
        impersonation: { username: eve }`);
  one.see(1, {}, 5);
  const path = '/apis/example.com/v1/namespaces/d/things';
  const exists = { reason: 'AlreadyExists' };
  const made = one.client.answer(409, exists);
  assert.deepEqual([made.method, made.path, made.user], ['POST', path, 'eve']);
  const patched = one.client.answer(200, { metadata: { resourceVersion: '9' } });
  assert.deepEqual([patched.method, patched.path, patched.user], ['PATCH', `${path}/c`, 'eve']);
  assert.equal((JSON.parse(patched.body) as typeof LABELLED).metadata.labels.of, 't1');
  assert.equal(one.client.sent.length, 0, 'the answer is another object: no next stage for it');
  assert.deepEqual([one.player.pending, one.errors], [0, []]);
});

test('a delay that cannot be had is none, and is told', () => {
  const delay = '{ durationFrom: { cel: { expression: "self.spec.nope" } } }';
  const one = scene(`  selector: {}
  delay: ${delay}
  next: { patches: [{ root: spec, template: 'a: 1' }] }`);
  one.see(1, {}, 5);
  assert.deepEqual(JSON.parse(one.client.answer(200).body), { spec: { a: 1 } });
  assert.match(one.errors.join(), /^stage s0: .*no such key/);
});

test('a state between the requests of one stage is not looked at', () => {
  const one = scene(`  selector: { matchExpressions: [{ key: .spec.b, operator: DoesNotExist }] }
  steps:
    - event: { type: Normal, reason: Once, message: x }
    - patch: { root: spec, template: 'a: 1' }
    - patch: { root: spec, template: 'b: 1' }`);
  one.see(1, {}, 5);
  const made = (version: number, spec: object): object => ({
    ...{ metadata: { name: 't1', namespace: 'd', resourceVersion: `${version}` }, spec },
  });
  one.client.answer(200, made(6, { a: 1 }));
  one.see(1, made(6, { a: 1 }), 6, false);
  one.client.answer(200, made(7, { a: 1, b: 1 }));
  one.see(1, made(7, { a: 1, b: 1 }), 7, false);
  assert.deepEqual([one.events.length, one.client.sent.length], [1, 0]);
});
