import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EtcdClient } from '@megaplane/etcd/client/client';
import type { KeyValue } from '@megaplane/etcd/client/messages';
import type { RecalledRows } from '../storage.ts';
import { KeyMap } from './key-map.ts';
import { PastReader } from './past-rows.ts';

const VALUE = Buffer.alloc(300 * 1024);
const START = Buffer.from('/registry/x/');
const END = Buffer.from('/registry/x0');

/** An etcd with so many values of 300 KiB. */
function readerOf(size: number): PastReader {
  const keys = Array.from(
    { length: size },
    (_, at) => `/registry/x/${String(at).padStart(5, '0')}`,
  );
  const client: Pick<EtcdClient, 'range'> = {
    range: ({ key, limit = 0 }) => {
      const from = keys.filter((one) => Buffer.from(one).compare(key) >= 0);
      const kvs = from
        .slice(0, limit)
        .map((one) => ({ key: Buffer.from(one), value: VALUE }) as unknown as KeyValue);
      const more = from.length > kvs.length;
      return Promise.resolve({ ok: true, value: { revision: 9, kvs, more, count: from.length } });
    },
  };
  return new PastReader(client, new KeyMap('/registry'), (_, value) => value);
}

const all = { start: START, end: END, revision: 5, test: { matches: () => true } };

test('a page of the past is fetched as far as it goes, and knows what is behind it', async () => {
  const rows = await readerOf(1000).read({ ...all, limit: 10 });
  assert(rows !== null && typeof rows !== 'string');
  assert.equal(rows.total, 1000);
  let seen = 0;
  rows.page(START, END, 0, () => ++seen > 0);
  assert.equal(seen, 11);
});

test('what is recalled is bounded, each and all together, until it is given back', async () => {
  const reader = readerOf(400);
  assert.equal(await reader.read({ ...all, limit: 0 }), null);
  const held: RecalledRows[] = [];
  for (;;) {
    const rows = await reader.read({ ...all, limit: 40 });
    assert(typeof rows !== 'string');
    if (rows === null) break;
    held.push(rows);
    assert.ok(held.length < 100, 'nothing bounds them');
  }
  assert.ok(held.length > 1);
  for (const rows of held) rows.free();
  assert.notEqual(await reader.read({ ...all, limit: 40 }), null);
});
