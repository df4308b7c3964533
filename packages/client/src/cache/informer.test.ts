import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shardOf } from '@megaplane/machinery/sharding/selector';
import fc from 'fast-check';
import { FakeServer } from '../../test/fake-server.ts';
import { createInformer, type Informer } from './informer.ts';
import type { InformerHandler, InformerOptions } from './informer-options.ts';

interface Seen {
  readonly informer: Informer;
  /** What a user keeps: id -> key and text; every call is checked against it. */
  readonly rows: Map<number, { readonly key: string; readonly text: string }>;
  readonly calls: string[];
  readonly troubles: string[];
}

function textOf(bytes: Uint8Array, start: number, end: number): string {
  const object = JSON.parse(Buffer.from(bytes.subarray(start, end)).toString());
  return object.spec.text;
}

function follow(
  server: FakeServer,
  more: Partial<InformerHandler> = {},
  options: Partial<InformerOptions> = {},
): Seen {
  const rows: Seen['rows'] = new Map();
  const calls: string[] = [];
  const troubles: string[] = [];
  const informer = createInformer({
    client: server,
    path: '/api/v1/pods',
    ...options,
    handler: {
      onUpsert(id, isNew, bytes, start, end) {
        assert.equal(isNew, !rows.has(id), 'isNew tells whether the row was there');
        const key = informer.keyOf(id);
        if (!isNew) assert.equal(rows.get(id)?.key, key);
        rows.set(id, { key, text: textOf(bytes, start, end) });
        calls.push(`${isNew ? 'new' : 'set'} ${key}`);
      },
      onDelete(id, bytes, start, end) {
        assert.equal(rows.get(id)?.key, informer.keyOf(id), 'a row is deleted once');
        if (end > start) textOf(bytes, start, end);
        calls.push(`del ${informer.keyOf(id)}`);
        rows.delete(id);
      },
      onSynced: () => calls.push('synced'),
      onTrouble: (message) => troubles.push(message),
      ...more,
    },
  });
  return { informer, rows, calls, troubles };
}

function stateOf(seen: Seen): Record<string, string> {
  const state: Record<string, string> = {};
  for (const { key, text } of seen.rows.values()) state[key] = text;
  return state;
}

function truthOf(server: FakeServer): Record<string, string> {
  const state: Record<string, string> = {};
  for (const [key, { text }] of server.objects) state[key] = text;
  return state;
}

/** Lets everything through until nothing moves. */
function settle(server: FakeServer): void {
  for (let turn = 0; turn < 50; turn++) {
    while (server.pumpAll(1 << 20));
    server.timers.advance(10_000);
    if (!server.pumpAll(1 << 20) && turn > 20) return;
  }
}

test('a watch that begins with all objects fills the rows and goes on', () => {
  const server = new FakeServer();
  server.put('a', 'one', '1');
  server.put('b', 'two', '"quoted" \n line \\');
  const seen = follow(server);
  seen.informer.start();
  assert.equal(seen.informer.isSynced, false);
  server.pumpAll(1 << 20);
  assert.deepEqual(seen.calls, ['new a/one', 'new b/two', 'synced']);
  assert.equal(seen.informer.isSynced, true);
  assert.equal(seen.informer.revision, 102);
  server.put('a', 'one', '11');
  server.delete('b', 'two');
  server.put('b', 'two', 'again');
  server.pumpAll(1 << 20);
  assert.deepEqual(seen.calls.slice(3), ['set a/one', 'del b/two', 'new b/two']);
  assert.equal(seen.informer.revision, 105);
  assert.equal(seen.informer.size, 2);
  const id = seen.informer.find('a', 'one');
  assert.equal(seen.informer.resourceVersionOf(id), 103);
  assert.equal(seen.informer.find('a', 'none'), -1);
  assert.match(
    server.requests[0] ?? '',
    /sendInitialEvents=true&resourceVersionMatch=NotOlderThan/,
  );
  assert.match(server.requests[0] ?? '', /allowWatchBookmarks=true&timeoutSeconds=[345]\d\d&/);
});

test('who acts on an event at once finds it counted in the revision', () => {
  const server = new FakeServer();
  server.put('a', 'one', '1');
  const revisions: number[] = [];
  const seen = follow(server, {
    onUpsert: () => revisions.push(seen.informer.revision),
    onDelete: () => revisions.push(seen.informer.revision),
  });
  seen.informer.start();
  server.pumpAll(1 << 20);
  server.put('a', 'one', '2');
  server.delete('a', 'one');
  server.pumpAll(1 << 20);
  assert.deepEqual(revisions, [0, 102, 103], 'none while the collection is being read');
});

test('selectors are asked for, escaped', () => {
  const server = new FakeServer();
  const informer = createInformer({
    client: server,
    path: '/api/v1/pods',
    labelSelector: 'a in (b,c)',
    fieldSelector: 'spec.nodeName!=',
    shardSelector: shardOf(0, 2),
    handler: { onUpsert: () => {}, onDelete: () => {} },
  });
  informer.start();
  const query = new URL(server.requests[0] ?? '', 'http://a').searchParams;
  assert.equal(query.get('labelSelector'), 'a in (b,c)');
  assert.equal(query.get('fieldSelector'), 'spec.nodeName!=');
  assert.match(query.get('shardSelector') ?? '', /^shardRange/);
});

test('a lost watch is taken up where it was, without another list', () => {
  const server = new FakeServer();
  server.put('a', 'one', '1');
  const seen = follow(server);
  seen.informer.start();
  server.pumpAll(1 << 20);
  server.put('a', 'two', '2');
  server.cut('connection reset');
  server.put('a', 'three', '3');
  settle(server);
  assert.deepEqual(stateOf(seen), truthOf(server));
  assert.equal(seen.informer.metrics.lists, 1);
  assert.equal(seen.informer.metrics.repeated, 0);
  assert.match(server.requests.at(-1) ?? '', /resourceVersion=101$/);
  assert.deepEqual(seen.troubles, ['watch of /api/v1/pods: connection reset']);
});

test('a watch that ends in its time is renewed at once, from the last bookmark', () => {
  const server = new FakeServer();
  const seen = follow(server);
  seen.informer.start();
  server.pumpAll(1 << 20);
  server.version = 500;
  server.bookmarkAll();
  server.pumpAll(1 << 20);
  server.timers.advance(300_000);
  const before = server.requests.length;
  server.cut(null);
  assert.equal(server.requests.length, before + 1);
  assert.match(server.requests.at(-1) ?? '', /resourceVersion=500$/);
  assert.deepEqual(seen.troubles, []);
});

test('a watch that ends at once is a failure and is not asked for in a loop', () => {
  const server = new FakeServer();
  const seen = follow(server);
  seen.informer.start();
  server.pumpAll(1 << 20);
  server.cut('gone');
  for (let i = 0; i < 600; i++) {
    server.timers.advance(100);
    server.cut(null);
  }
  assert.ok(server.requests.length < 12, `${server.requests.length} requests in a minute`);
  assert.match(seen.troubles.at(-1) ?? '', /ended at once/);
});

test('a server that fails to stream a list is asked for it in pages', () => {
  const server = new FakeServer();
  server.put('a', 'one', '1');
  const seen = follow(server);
  seen.informer.start();
  // nothing of the state has left the server when it finds that it cannot go on
  for (const stream of server.streams) stream.pending = Buffer.alloc(0);
  server.failWatches(500, 'RequestWatchProgress is disabled');
  server.pumpAll(1 << 20);
  settle(server);
  assert.equal(seen.informer.isSynced, true);
  assert.deepEqual(stateOf(seen), truthOf(server));
  assert.deepEqual(seen.troubles, ['watch of /api/v1/pods: RequestWatchProgress is disabled']);
  const [first = '', second = '', third = ''] = server.requests;
  assert.match(first, /sendInitialEvents=true/);
  assert.match(second, /limit=/);
  assert.match(third, /watch=true.*resourceVersion=101$/);
});

test('after 410 the collection is read anew: only what changed is told', () => {
  for (const hasWatchList of [true, false]) {
    const server = new FakeServer();
    server.hasWatchList = hasWatchList;
    for (const name of ['same', 'changed', 'gone']) server.put('a', name, '1');
    const seen = follow(server);
    seen.informer.start();
    settle(server);
    seen.calls.length = 0;
    server.expireWatches();
    server.pumpAll(1 << 20);
    server.cut('down');
    server.put('a', 'changed', '2');
    server.put('a', 'fresh', '1');
    server.delete('a', 'gone');
    server.compact();
    settle(server);
    assert.deepEqual(seen.calls.toSorted(), [
      'del a/gone',
      'new a/fresh',
      'set a/changed',
      'synced',
    ]);
    assert.equal(seen.informer.metrics.expired, 1);
    assert.deepEqual(stateOf(seen), truthOf(server));
  }
});

test('a server that was put back to an earlier state is read anew when it tells something', () => {
  for (const isBookmark of [true, false]) {
    const server = new FakeServer();
    for (const name of ['same', 'changed', 'later']) server.put('a', name, '1');
    const backup = new Map(server.objects);
    const { version } = server;
    const seen = follow(server);
    seen.informer.start();
    settle(server);
    for (const name of ['changed', 'new', 'newer']) server.put('a', name, '2');
    server.delete('a', 'later');
    settle(server);
    server.cut('down');
    server.objects.clear();
    for (const [key, object] of backup) server.objects.set(key, object);
    server.version = version;
    server.compact();
    settle(server);
    assert.notDeepEqual(stateOf(seen), truthOf(server), 'the watch waits for what is to come');
    if (isBookmark) server.bookmarkAll();
    else server.put('a', 'changed', '3');
    settle(server);
    assert.deepEqual(stateOf(seen), truthOf(server));
    server.put('a', 'same', '3');
    settle(server);
    assert.deepEqual(stateOf(seen), truthOf(server));
  }
});

test('a server without such watches is listed page by page, then watched', () => {
  const server = new FakeServer();
  server.hasWatchList = false;
  for (let i = 0; i < 1234; i++) server.put('a', `pod-${i}`, `${i}`);
  const seen = follow(server);
  seen.informer.start();
  settle(server);
  assert.deepEqual(stateOf(seen), truthOf(server));
  const lists = server.requests.filter((path) => !path.includes('watch=true'));
  assert.equal(lists.length, 3);
  server.put('a', 'late', 'x');
  settle(server);
  assert.deepEqual(stateOf(seen), truthOf(server));
});

test('pages whose revision is forgotten between them are read anew, in larger ones', () => {
  const server = new FakeServer();
  server.hasWatchList = false;
  for (let i = 0; i < 1200; i++) server.put('a', `pod-${i}`, `${i}`);
  const seen = follow(server);
  seen.informer.start();
  for (let i = 0; i < 4; i++) {
    server.pumpAll(1 << 20);
    server.put('a', 'pod-7', `changed ${i}`);
    server.compact();
  }
  settle(server);
  assert.ok(seen.troubles.some((message) => message.includes('continue is too old')));
  assert.deepEqual(stateOf(seen), truthOf(server));
});

test('Retry-After of a refused watch is honoured', () => {
  const server = new FakeServer();
  server.refusal = [429, 20];
  const seen = follow(server);
  seen.informer.start();
  server.pumpAll(1 << 20);
  server.timers.advance(19_000);
  assert.equal(server.requests.length, 1);
  server.refusal = null;
  server.timers.advance(2000);
  settle(server);
  assert.equal(seen.informer.isSynced, true);
});

test('silence in the beginning and watches that never end are given up', () => {
  const server = new FakeServer();
  server.put('a', 'one', '1');
  const seen = follow(server);
  seen.informer.start();
  server.pumpAll(10);
  server.timers.advance(61_000);
  assert.match(seen.troubles[0] ?? '', /nothing came for 60 s/);
  settle(server);
  assert.equal(seen.informer.isSynced, true);
  const before = server.requests.length;
  server.timers.advance(700_000);
  assert.ok(server.requests.length > before);
  assert.match(seen.troubles.at(-1) ?? '', /did not end the watch in time/);
});

test('bytes that are no events end the watch with a message and do no harm', () => {
  const server = new FakeServer();
  server.put('a', 'one', '1');
  const seen = follow(server);
  seen.informer.start();
  for (const garbage of [
    'hello\n',
    '{"type":"ADDED"}\n',
    '{"type":"ADDED","object":{}}\n',
    '[]\n',
  ]) {
    settle(server);
    for (const stream of server.streams) stream.add(garbage);
    server.pumpAll(1 << 20);
    assert.match(seen.troubles.at(-1) ?? '', /no watch event/);
  }
  settle(server);
  assert.deepEqual(stateOf(seen), truthOf(server));
});

test('events in an unusual form are understood', () => {
  const server = new FakeServer();
  const seen = follow(server);
  seen.informer.start();
  server.pumpAll(1 << 20);
  const object = '{"spec":{"text":"t"},"metadata":{"resourceVersion":"200","name":"n"}}';
  for (const stream of server.streams) {
    stream.add(` { "object" : ${object} , "type" : "ADDED" } \r\n\n`);
  }
  server.pumpAll(1 << 20);
  assert.deepEqual(stateOf(seen), { n: 't' });
});

test('stop in a handler is the last thing that is heard', () => {
  const server = new FakeServer();
  for (const name of ['one', 'two', 'three']) server.put('a', name, '1');
  const names: string[] = [];
  const seen = follow(server, {
    onUpsert: (id) => {
      names.push(seen.informer.keyOf(id));
      if (names.length === 2) seen.informer.stop();
    },
  });
  seen.informer.start();
  settle(server);
  assert.deepEqual(names, ['a/one', 'a/two']);
  assert.equal(server.timers.size, 0);
});

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const command = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('put'), fc.constantFrom(...NAMES), fc.string()) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('delete'), fc.constantFrom(...NAMES)) },
  { weight: 12, arbitrary: fc.tuple(fc.constant('pump'), fc.integer({ min: 1, max: 400 })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('advance'), fc.integer({ min: 1, max: 40_000 })) },
  fc.constantFrom(['cut'], ['end'], ['compact'], ['expire'], ['bookmark'], ['down'], ['up']),
  fc.constantFrom(['refuse', 429], ['refuse', 500], ['refuse', 403], ['accept'], ['noWatchList']),
);

function apply(server: FakeServer, [name, ...args]: readonly unknown[]): void {
  switch (name) {
    case 'put':
      return server.put('ns', String(args[0]), String(args[1]));
    case 'delete':
      return server.delete('ns', String(args[0]));
    case 'pump':
      return void server.pumpAll(Number(args[0]));
    case 'advance':
      return server.timers.advance(Number(args[0]));
    case 'cut':
      return server.cut('cut');
    case 'end':
      return server.cut(null);
    case 'compact':
      return server.compact();
    case 'expire':
      return server.expireWatches();
    case 'bookmark':
      return server.bookmarkAll();
    case 'down':
      server.isDown = true;
      return server.cut('server stopped');
    case 'up':
      server.isDown = false;
      return undefined;
    case 'refuse':
      server.refusal = [Number(args[0]), 1];
      return undefined;
    case 'accept':
      server.refusal = null;
      return undefined;
    default:
      server.hasWatchList = false;
      return undefined;
  }
}

test('after any schedule of changes, cuts and restarts the rows equal the collection', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80 }), fc.boolean(), (commands, hasWatchList) => {
      const server = new FakeServer();
      server.hasWatchList = hasWatchList;
      server.put('ns', 'a', 'first');
      const seen = follow(server);
      seen.informer.start();
      for (const each of commands) apply(server, each);
      server.isDown = false;
      server.refusal = null;
      server.cut('last cut');
      settle(server);
      assert.deepEqual(stateOf(seen), truthOf(server));
      assert.equal(seen.informer.size, server.objects.size);
      assert.ok(seen.informer.isSynced);
      assert.ok(server.requests.length < 300);
    }),
    { numRuns: process.env['MEGAPLANE_LONG'] === '1' ? 20_000 : 250 },
  );
});

test('a large collection that is to be polled is read each period, a small one is watched', () => {
  const server = new FakeServer();
  for (let i = 0; i < 5; i++) server.put('a', `pod-${i}`, '1');
  const seen = follow(
    server,
    {},
    {
      polling: { itemsMin: 5, periodMs: 10_000, itemsPerSecondMax: 1000, pageItems: 2000 },
    },
  );
  seen.informer.start();
  server.pumpAll(1 << 20);
  const { metrics } = seen.informer;
  server.put('a', 'pod-0', '2');
  server.pumpAll(1 << 20);
  assert.equal(stateOf(seen)['a/pod-0'], '2', 'watched as long as it is small');
  server.put('a', 'pod-5', '1');
  server.pumpAll(1 << 20);
  server.put('a', 'pod-1', '2');
  server.delete('a', 'pod-2');
  server.pumpAll(1 << 20);
  assert.equal(stateOf(seen)['a/pod-1'], '1', 'the watch was given up');
  const lists = metrics.lists;
  server.timers.advance(10_000);
  settleFor(server, 9000);
  assert.deepEqual(stateOf(seen), truthOf(server));
  assert.equal(metrics.lists, lists + 1);
  assert.match(server.requests.at(-1) ?? '', /[?&]limit=2000(&|$)/);
  for (const name of ['pod-0', 'pod-1', 'pod-3']) server.delete('a', name);
  settleFor(server, 20_000);
  assert.deepEqual(stateOf(seen), truthOf(server));
  const { watches } = metrics;
  server.put('a', 'pod-9', '1');
  server.pumpAll(1 << 20);
  assert.deepEqual(stateOf(seen), truthOf(server), 'watched again when it is small');
  assert.equal(metrics.watches, watches);
  assert.deepEqual(seen.troubles, []);
});

function settleFor(server: FakeServer, durationMs: number): void {
  for (let passed = 0; passed < durationMs; passed += 100) {
    while (server.pumpAll(1 << 20));
    server.timers.advance(100);
  }
}

test('of a polled collection only what rests is read, and nothing that happens is lost', () => {
  const command = fc.tuple(fc.constantFrom('put', 'put', 'put', 'delete', 'read'), fc.nat(11));
  const polling = { itemsMin: 5, periodMs: 1000, itemsPerSecondMax: 1e6, pageItems: 3 };
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), fc.boolean(), (commands, knowsRest) => {
      const server = new FakeServer();
      server.knowsRest = knowsRest;
      for (let i = 0; i < 12; i++) server.put('a', `pod-${10 + i}`, '0');
      const moved = new Set<string>();
      const still = new Map<string, string>();
      const seen: Seen = follow(
        server,
        {
          onStill: (id, bytes, start, end) =>
            void still.set(seen.informer.keyOf(id), textOf(bytes, start, end)),
          onMoved: (id) => void moved.add(seen.informer.keyOf(id)),
        },
        { polling },
      );
      seen.informer.start();
      server.pumpAll(1 << 20);
      const revisions: number[] = [];
      const read = (): void => {
        moved.clear();
        still.clear();
        seen.calls.length = 0;
        for (let turn = 0; turn < 100 && !seen.calls.includes('synced'); turn++) {
          server.timers.advance(100);
          server.pumpAll(1 << 20);
        }
        revisions.push(seen.informer.revision);
        const isRest = (server.requests.at(-1) ?? '').includes('unchangedSince') && knowsRest;
        if (!isRest) return assert.deepEqual([moved.size, still.size], [0, 0]);
        const since = revisions.at(-3) ?? 0;
        const texts = stateOf(seen);
        for (const [key, { version, created, text }] of server.objects) {
          assert.equal(still.get(key), version <= since ? text : undefined);
          assert.equal(moved.has(key), version > since && created <= since);
          if (created > since) assert.equal(texts[key], text);
        }
      };
      read();
      for (const [what, index] of commands) {
        const name = `pod-${10 + index}`;
        if (what === 'put') server.put('a', name, `${server.version}`);
        else if (what === 'delete' && server.objects.size > 6) server.delete('a', name);
        else if (what === 'read') read();
      }
      // one reading finds that there are fewer objects, the next one looks at all
      for (let round = 0; round < 2; round++) read();
      const keys = [...seen.rows.values()].map(({ key }) => key);
      assert.deepEqual(new Set(keys), new Set(server.objects.keys()));
      assert.deepEqual(seen.troubles, []);
    }),
    { numRuns: process.env['MEGAPLANE_LONG'] === '1' ? 20_000 : 200 },
  );
});
