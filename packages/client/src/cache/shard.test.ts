import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shardOf } from '@megaplane/machinery/sharding/selector';
import { FakeServer } from '../../test/fake-server.ts';
import { createInformer, type Informer } from './informer.ts';
import { Page } from './page.ts';

const NAMES = Array.from({ length: 40 }, (_, index) => `pod-${index}`);
const COUNT = 3;

function follow(server: FakeServer, index: number, troubles: string[] = []): Informer {
  const informer = createInformer({
    client: server,
    path: '/api/v1/pods',
    shardSelector: shardOf(index, COUNT),
    handler: {
      onUpsert: () => undefined,
      onDelete: () => undefined,
      onTrouble: (message) => void troubles.push(message),
    },
  });
  informer.start();
  return informer;
}

function namesOf(informer: Informer): string[] {
  const names: string[] = [];
  for (let id = 0; id < informer.idLimit; id++) {
    if (informer.has(id)) names.push(informer.keyOf(id));
  }
  return names.sort();
}

function settle(server: FakeServer): void {
  while (server.pumpAll(1000));
}

for (const hasShards of [true, false]) {
  for (const hasWatchList of [true, false]) {
    const list = hasWatchList ? 'WatchList' : 'no WatchList';
    const title = `shards ${hasShards ? 'served' : 'ignored'}, ${list}`;
    test(`informers of all shards together hold each object once (${title})`, () => {
      const server = Object.assign(new FakeServer(), { hasShards, hasWatchList });
      for (const name of NAMES) server.put('a', name, '1');
      const troubles: string[] = [];
      const informers = Array.from({ length: COUNT }, (_, index) =>
        follow(server, index, troubles),
      );
      settle(server);
      server.put('a', 'late', '1');
      server.put('a', 'pod-7', '2');
      server.delete('a', 'pod-8');
      settle(server);
      assert.ok(informers.every((informer) => informer.isSynced));
      const held = informers.flatMap((informer) => namesOf(informer)).sort();
      const wanted = [...NAMES.filter((name) => name !== 'pod-8'), 'late'];
      assert.deepEqual(held, wanted.map((name) => `a/${name}`).sort());
      const sharding = hasShards ? 'server' : 'client';
      for (const informer of informers) assert.equal(informer.sharding, sharding);
      assert.equal(troubles.length, hasShards ? 0 : COUNT);
      if (!hasShards)
        assert.match(troubles[0] ?? '', /ignores shardSelector: all of \/api\/v1\/pods/);
    });
  }
}

test('a server that stops knowing shards in the middle changes no row', () => {
  const server = new FakeServer();
  for (const name of NAMES) server.put('a', name, '1');
  const informer = follow(server, 0);
  settle(server);
  const before = namesOf(informer);
  assert.equal(informer.sharding, 'server');
  server.hasShards = false;
  server.cut('cut');
  server.timers.advance(5000);
  for (const name of NAMES) server.put('a', name, '2');
  settle(server);
  assert.deepEqual(namesOf(informer), before);
  assert.equal(informer.sharding, 'client');
  informer.stop();
});

test('a selector that is none is refused when the informer is made', () => {
  const make = (shardSelector: string): Informer =>
    createInformer({
      client: new FakeServer(),
      path: '/api/v1/pods',
      shardSelector,
      handler: { onUpsert: () => undefined, onDelete: () => undefined },
    });
  assert.throws(() => make('shardRange('), /^Error: shardSelector "shardRange\(": CEL parse error/);
  assert.throws(() => make(' '), /empty shard selector/);
});

test('a page tells the shard that it is of', () => {
  const page = new Page();
  const read = (text: string): string => {
    const bytes = Buffer.from(text);
    assert.ok(page.read(bytes, bytes.length), text);
    return page.shardSelector;
  };
  assert.equal(read('{"metadata":{"shardInfo":{"selector":"s \\"x\\""}},"items":[]}'), 's "x"');
  assert.equal(read('{"metadata":{"shardInfo":{}},"items":[]}'), '');
  assert.equal(read('{"metadata":{"shardInfo":null},"items":[]}'), '');
  assert.equal(read('{"metadata":{},"items":[]}'), '');
});
