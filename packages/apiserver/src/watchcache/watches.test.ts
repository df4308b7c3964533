import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import { shardOf } from '@megaplane/machinery/sharding/selector';
import fc from 'fast-check';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { eventsOf, MERGE, Rig, storyOf } from '../testing/rig.sim.ts';

const MAPS = '/api/v1/configmaps';
const mapsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const shardQuery = (index: number, count: number, field?: 'uid' | 'namespace'): string =>
  `shardSelector=${encodeURIComponent(shardOf(index, count, field))}`;

function makeMap(rig: Rig, namespace: string, name: string, labels = {}): void {
  const answer = rig.ask('POST', mapsOf(namespace), { metadata: { name, labels } });
  assert.equal(answer.status, 201, answer.text);
}

function makePod(rig: Rig, namespace: string, name: string, nodeName: string): void {
  const spec = { nodeName, containers: [{ name: 'c', image: 'i' }] };
  const answer = rig.ask('POST', `/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name },
    spec: nodeName === '' ? { ...spec, nodeName: undefined } : spec,
  });
  assert.equal(answer.status, 201, answer.text);
}

test('shards together are shown each event once, each about its share', () => {
  const rig = new Rig();
  const counts = [3, 16, 40];
  const watches = counts.map((count) =>
    Array.from({ length: count }, (_, index) =>
      rig.ask('GET', `${MAPS}?watch=1&resourceVersion=1&${shardQuery(index, count)}`),
    ),
  );
  for (let index = 0; index < 200; index++) makeMap(rig, 'a', `m-${index}`);
  for (let index = 0; index < 200; index++) {
    rig.ask('PATCH', `${mapsOf('a')}/m-${index}`, { data: { k: 'v' } }, MERGE);
  }
  for (let index = 0; index < 200; index++) rig.ask('DELETE', `${mapsOf('a')}/m-${index}`);
  for (const group of watches) {
    const stories = group.flatMap((watch) => storyOf(watch));
    assert.equal(stories.length, 600);
    assert.equal(new Set(stories).size, 600);
    for (const watch of group) {
      const share = eventsOf(watch).length / (600 / group.length);
      if (group.length === 3) assert.ok(share > 0.8 && share < 1.2, `${share} of its share`);
    }
  }
});

test('shards of namespaces hold their objects, also in lists and initial states', () => {
  const rig = new Rig(['default', 'dev', 'prod', 'beta']);
  for (const namespace of ['default', 'dev', 'prod', 'beta']) makeMap(rig, namespace, 'm');
  const seen = Array.from({ length: 4 }, (_, index) => {
    const query = shardQuery(index, 4, 'namespace');
    const list = JSON.parse(rig.ask('GET', `${MAPS}?${query}`).text) as {
      items: { metadata: { namespace: string } }[];
    };
    const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
    const watch = rig.ask('GET', `${MAPS}?watch=1&${initial}&${query}`);
    const listed = list.items.map(({ metadata }) => `ADDED ${metadata.namespace}/m`);
    assert.deepEqual(storyOf(watch), listed);
    return listed;
  });
  assert.deepEqual(seen, [
    [],
    ['ADDED beta/m'],
    ['ADDED prod/m'],
    ['ADDED default/m', 'ADDED dev/m'],
  ]);
});

test('what a shard keeps from a watch is counted, each state of an event once', () => {
  const rig = new Rig();
  const metrics = (): string => {
    const lines = rig.ask('GET', '/metrics', undefined, {}).text.split('\n');
    return lines.filter((line) => /^apiserver_watch_(shards|filtered)/.test(line)).join('\n');
  };
  const labels = 'group="",resource="configmaps"';
  const watch = rig.ask('GET', `${mapsOf('a')}?watch=1&${shardQuery(0, 16)}`);
  const all = rig.ask('GET', `${mapsOf('a')}?watch=1&${shardQuery(0, 1)}`);
  makeMap(rig, 'a', 'm');
  makeMap(rig, 'b', 'not-in-the-namespace');
  rig.ask('PATCH', `${mapsOf('a')}/m`, { data: { k: 'v' } }, MERGE);
  assert.deepEqual(storyOf(watch), []);
  assert.deepEqual(storyOf(all), ['ADDED a/m', 'MODIFIED a/m']);
  assert.equal(
    metrics(),
    `apiserver_watch_shards_total{${labels}} 2\n` +
      `apiserver_watch_filtered_events_total{${labels}} 3`,
  );
  watch.cancel();
  all.cancel();
  makeMap(rig, 'a', 'n');
  assert.match(metrics(), /shards_total\{.*\} 0\n.*\} 3$/);
});

test('a watch of a node’s pods in one namespace is not shown those of others', () => {
  const rig = new Rig();
  const own = rig.ask('GET', '/api/v1/namespaces/a/pods?watch=1&fieldSelector=spec.nodeName%3Dn1');
  const all = rig.ask('GET', '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1');
  const none = rig.ask('GET', '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D');
  makePod(rig, 'a', 'p', 'n1');
  makePod(rig, 'b', 'p', 'n1');
  makePod(rig, 'a', 'q', 'n2');
  makePod(rig, 'b', 'q', '');
  const target = { kind: 'Node', name: 'n1' };
  rig.ask('POST', '/api/v1/namespaces/b/pods/q/binding', { metadata: { name: 'q' }, target });
  assert.deepEqual(storyOf(own), ['ADDED a/p']);
  assert.deepEqual(storyOf(all), ['ADDED a/p', 'ADDED b/p', 'ADDED b/q']);
  assert.deepEqual(storyOf(none), ['ADDED b/q', 'DELETED b/q']);
});

test('changes of one revision are told one by one, also where a reader stops between them', () => {
  const rig = new Rig();
  const quick = rig.ask('GET', `${MAPS}?watch=1&resourceVersion=1`);
  const slow = rig.ask('GET', `${mapsOf('a')}?watch=1&resourceVersion=1`);
  makeMap(rig, 'a', 'first');
  slow.room = 0;
  const data = { k: 'x'.repeat(120_000) };
  const object = (name: string): [string, object] => [
    `/registry/configmaps/a/${name}`,
    { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, namespace: 'a' }, data },
  ];
  rig.writeTogether(new Map([object('p'), object('q')]));
  rig.writeTogether(new Map([object('r'), object('s')]));
  rig.writeTogether(
    new Map<string, object | null>([['/registry/configmaps/a/p', null], object('t')]),
  );
  for (let read = 0; read < 20; read++) slow.read(100_000);
  const story = ['first', 'p', 'q', 'r', 's'].map((name) => `ADDED a/${name}`);
  assert.deepEqual(storyOf(quick), [...story, 'DELETED a/p', 'ADDED a/t']);
  assert.deepEqual(storyOf(slow), storyOf(quick));
});

for (const isFirst of [true, false]) {
  const title = `a ${isFirst ? 'first' : 'second'} watch that begins in the turn of a write`;
  test(`${title} is told of it`, () => beginInTurnOfWrite(isFirst));
}

function beginInTurnOfWrite(isFirst: boolean): void {
  const rig = new Rig();
  const now = isFirst ? null : rig.ask('GET', `${MAPS}?watch=1&resourceVersion=1`);
  const revision = rig.store.publishedRevision;
  rig.api.handle(new ExchangeModel('POST', mapsOf('a'), { metadata: { name: 'm' } }));
  const watch = new ExchangeModel('GET', `${MAPS}?watch=1&resourceVersion=${revision}`);
  rig.api.handle(watch);
  rig.api.tick(rig.nowMs);
  rig.settle();
  if (now !== null) assert.deepEqual(storyOf(now), ['ADDED a/m']);
  assert.deepEqual(storyOf(watch), ['ADDED a/m']);
}

test('bookmarks come every minute and shortly before the end, also where nothing matches', () => {
  const rig = new Rig();
  const path = `${MAPS}?watch=1&resourceVersion=1&allowWatchBookmarks=1&timeoutSeconds=150`;
  const watch = rig.ask('GET', `${path}&labelSelector=x%3Dnothing`);
  rig.pass(59);
  assert.deepEqual(storyOf(watch), []);
  makeMap(rig, 'a', 'm');
  const revision = rig.store.publishedRevision;
  rig.pass(2);
  assert.deepEqual(storyOf(watch), [`BOOKMARK @${revision}`]);
  rig.pass(87);
  assert.equal(storyOf(watch).length, 3, 'after 120 s, and two seconds before the end');
  assert.equal(watch.isEnded, false);
  rig.pass(3);
  assert.equal(watch.isEnded, true);
  assert.equal(storyOf(watch).length, 3);
});

/** Six changes of 60 KB each, shown to 600 watches of clients that do not read. */
function stuckWatches(rig: Rig, protocol: 'h2' | 'http/1.1'): ExchangeModel[] {
  const watches = Array.from({ length: 600 }, () => {
    const connection = new ConnectionModel(true, null, protocol);
    const path = `${MAPS}?watch=1&resourceVersion=1`;
    const watch = new ExchangeModel('GET', path, undefined, {}, connection);
    rig.api.handle(watch);
    watch.room = 0;
    return watch;
  });
  rig.settle();
  for (let index = 0; index < 6; index++) {
    const data = { k: 'x'.repeat(60_000) };
    rig.ask('POST', mapsOf('a'), { metadata: { name: `m-${index}` }, data });
  }
  return watches;
}

test('watches of clients that do not read hold a bounded number of bytes together', () => {
  const rig = new Rig();
  const watches = stuckWatches(rig, 'http/1.1');
  const held = watches.reduce((sum, { bytes }) => sum + bytes.length, 0);
  assert.ok(held < 80 * 1024 * 1024, `${held} bytes are held`);
  for (const watch of watches) watch.read(Infinity);
  for (const watch of watches) assert.equal(eventsOf(watch).length, 6);
});

test('what many watches are shown is held once, and all of them go on being shown it', () => {
  const rig = new Rig();
  const watches = stuckWatches(rig, 'h2');
  const pieces = new Set(watches.flatMap((watch) => watch.pieces.slice(1)));
  assert.equal(pieces.size, 5, 'the first frame of a watch is its own');
  for (const watch of watches) assert.equal(eventsOf(watch).length, 6, 'nobody fell behind');
});

test('watches that are behind are shown what others were, in frames made once', () => {
  const rig = new Rig();
  for (let index = 0; index < 3; index++) makeMap(rig, 'a', `old-${index}`);
  const reader = rig.ask('GET', `${MAPS}?watch=1&resourceVersion=1`);
  const watches = stuckWatches(rig, 'http/1.1');
  const fallen = watches.filter(({ bytes }) => bytes.length < 6 * 60_000);
  assert(fallen.length > 100);
  const whole = reader.bytes;
  assert.equal(eventsOf(reader).length, 9);
  for (const watch of fallen) watch.read(Infinity);
  for (const watch of fallen) assert(watch.bytes.equals(whole));
});

interface Watching {
  readonly query: string;
  readonly path: string;
  readonly exchange: ExchangeModel;
}

/** What a client knows after the events. */
function stateOf(watch: ExchangeModel): Map<string, string> {
  const state = new Map<string, string>();
  for (const { type, object } of eventsOf(watch)) {
    const { name = '', namespace = '', resourceVersion } = object.metadata;
    const key = `${namespace}/${name}`;
    if (type === 'ADDED') assert.equal(state.has(key), false, `${key} is added twice`);
    if (type === 'MODIFIED') assert.equal(state.has(key), true, `${key} is changed before added`);
    if (type === 'DELETED') assert.equal(state.delete(key), true, `${key} is deleted unseen`);
    else state.set(key, resourceVersion);
  }
  return state;
}

const NAMESPACE = fc.constantFrom('a', 'b');
const NAME = fc.constantFrom('p', 'q', 'r');
const LABEL = fc.constantFrom('1', '2', '3');
const STEP = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), namespace: NAMESPACE, name: NAME, label: LABEL }),
  fc.record({ kind: fc.constant('delete' as const), namespace: NAMESPACE, name: NAME }),
  fc.record({ kind: fc.constant('stop' as const), which: fc.nat(7) }),
  fc.record({ kind: fc.constant('read' as const), which: fc.nat(7), bytes: fc.nat(2000) }),
);
const SELECTION = fc.record({
  namespace: fc.constantFrom('', 'a', 'b'),
  query: fc.constantFrom(
    '',
    'labelSelector=x%3D1',
    'labelSelector=x%20in%20(1,2)',
    'labelSelector=x!%3D3,x',
    'fieldSelector=metadata.name%3Dp',
    'fieldSelector=metadata.name!%3Dp',
    'fieldSelector=metadata.namespace%3Da',
    shardQuery(0, 2),
    shardQuery(1, 2),
    shardQuery(5, 32),
    `${shardQuery(1, 3)}&labelSelector=x%3D2`,
    shardQuery(1, 2, 'namespace'),
  ),
});

function play(
  rig: Rig,
  watches: readonly Watching[],
  step: typeof STEP extends fc.Arbitrary<infer T> ? T : never,
): void {
  switch (step.kind) {
    case 'put': {
      const { namespace, name, label } = step;
      const labels = { x: label === '3' ? null : label };
      const path = `${mapsOf(namespace)}/${name}`;
      const found = rig.ask('PATCH', path, { metadata: { labels }, data: { k: label } }, MERGE);
      if (found.status === 404) makeMap(rig, namespace, name, { x: label });
      return;
    }
    case 'delete':
      rig.ask('DELETE', `${mapsOf(step.namespace)}/${step.name}`);
      return;
    case 'stop': {
      const watch = watches[step.which % watches.length];
      if (watch !== undefined) watch.exchange.room = 0;
      return;
    }
    case 'read':
      watches[step.which % watches.length]?.exchange.read(step.bytes);
      rig.settle();
  }
}

test('whatever a watch selects and however it is read, its events add up to the list', () => {
  fc.assert(
    fc.property(
      fc.array(SELECTION, { minLength: 1, maxLength: 8 }),
      fc.array(STEP, { maxLength: 40 }),
      (selections, steps) => {
        const rig = new Rig();
        makeMap(rig, 'a', 'p', { x: '1' });
        const watches = selections.map(({ namespace, query }): Watching => {
          const path = namespace === '' ? MAPS : mapsOf(namespace);
          return { query, path, exchange: rig.ask('GET', `${path}?watch=1&${query}`) };
        });
        for (const step of steps) play(rig, watches, step);
        for (const { path, query, exchange } of watches) {
          exchange.read(Infinity);
          rig.settle();
          const list = JSON.parse(rig.ask('GET', `${path}?${query}`).text) as {
            items: { metadata: { namespace: string; name: string; resourceVersion: string } }[];
          };
          const listed = list.items.map(
            ({ metadata: { namespace, name, resourceVersion } }) =>
              [`${namespace}/${name}`, resourceVersion] as const,
          );
          assert.deepEqual(stateOf(exchange), new Map(listed), `${path}?${query}`);
        }
      },
    ),
    { numRuns: process.env['MEGAPLANE_LONG'] === '1' ? 5000 : 30 },
  );
});

test('values that another program wrote in protobuf are selected like any other', () => {
  const rig = new Rig();
  const shard = shardQuery(0, 1);
  const watches = [
    '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1',
    '/api/v1/pods?watch=1&labelSelector=x%3D1',
    '/api/v1/pods?watch=1&fieldSelector=status.phase%3DRunning',
    `/api/v1/pods?watch=1&${shard}`,
  ].map((path) => rig.ask('GET', path));
  const value = encodeProtobuf({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'p', namespace: 'a', uid: 'u', labels: { x: '1' } },
    spec: { nodeName: 'n1', containers: [] },
    status: { phase: 'Running' },
  });
  assert.ok(value !== undefined);
  const key = Buffer.from('/registry/pods/a/p');
  rig.store.putIf(key, 0, key.length, 0, value, 0, value.length, 0);
  rig.settle();
  for (const watch of watches) assert.deepEqual(storyOf(watch), ['ADDED a/p']);
});
