import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { encodeMessage } from '@megaplane/etcd/message';
import { serveEtcd } from '@megaplane/etcd/run-store';
import { openStore } from '@megaplane/store/open';
import { callShape, prefixOf } from './call-shape.ts';
import { FrameTap, MessageTap } from './frame-tap.ts';
import { startTraceProxy } from './trace-proxy.ts';

const KV = '/etcdserverpb.KV/';

test('calls of Kubernetes have names by what they ask for', () => {
  const key = Buffer.from('/registry/pods/default/web');
  const put = encodeMessage([
    [1, key],
    [2, Buffer.from('x')],
  ]);
  const compare = encodeMessage([
    [1, 0n],
    [2, 2n],
    [3, key],
    [6, 7n],
  ]);
  const range = encodeMessage([[1, key]]);
  const txn = encodeMessage([
    [1, compare],
    [2, encodeMessage([[2, put]])],
    [3, encodeMessage([[1, range]])],
  ]);
  assert.deepEqual(callShape(`${KV}Txn`, txn), {
    shape: 'Txn if MOD= then Put else Range',
    prefix: '/registry/pods/',
  });
  const list = encodeMessage([
    [1, Buffer.from('/registry/pods/')],
    [2, Buffer.from('/registry/pods0')],
    [3, 500n],
    [4, 9n],
  ]);
  assert.equal(callShape(`${KV}Range`, list).shape, 'Range prefix limit=500 at a revision');
  assert.equal(callShape(`${KV}Compact`, Buffer.alloc(0)).shape, 'Compact');
});

test('prefixes are kinds, and keys that are no text do no harm', () => {
  assert.equal(prefixOf(Buffer.from('/registry/pods/a/b')), '/registry/pods/');
  assert.equal(
    prefixOf(Buffer.from('/registry/stable.example.com/crontabs/a/b')),
    '/registry/stable.example.com/crontabs/',
  );
  assert.equal(prefixOf(Buffer.from('a')), 'a');
  assert.equal(prefixOf(Buffer.from([0, 255, 10])), '???');
});

test('messages are the same however their stream is cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }),
      fc.array(fc.nat(300), { maxLength: 8 }),
      (messages, cuts) => {
        const whole = Buffer.concat(
          messages.map((message) => {
            const head = Buffer.alloc(5);
            head.writeUInt32BE(message.length, 1);
            return Buffer.concat([head, message]);
          }),
        );
        const found: string[] = [];
        const tap = new MessageTap((kept) => found.push(kept.toString('hex')));
        const edges = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
        for (const [index, edge] of edges.entries()) {
          if (index > 0) tap.push(whole.subarray(edges[index - 1], edge));
        }
        assert.deepEqual(
          found,
          messages.map((message) => Buffer.from(message).toString('hex')),
        );
      },
    ),
  );
});

test('bytes that are no HTTP/2 make a tap blind, and never throw', () => {
  const silent = { onHeaders: () => {}, onData: () => {}, onReset: () => {} };
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (chunks) => {
      const tap = new FrameTap(silent, false);
      for (const chunk of chunks) if (!tap.isBlind) tap.push(Buffer.from(chunk));
    }),
  );
});

test('a client talks to a store through the proxy, and each of its calls is told', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-trace-'));
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const etcd = await serveEtcd(opened, { listen: [{}] });
  const log = join(dir, 'calls.jsonl');
  const summary = join(dir, 'summary.json');
  const proxy = await startTraceProxy({
    listen: new URL('http://127.0.0.1:0'),
    target: new URL(`http://127.0.0.1:${etcd.addresses[0]?.port ?? 0}`),
    log,
    summary,
  });
  const url = /^(\S+) before/.exec(proxy.listens)?.[1] ?? '';
  const client = new EtcdClient({
    endpoints: parseEndpoints('--endpoints', url),
    tls: () => null,
    log: () => {},
  });
  try {
    const key = Buffer.from('/registry/pods/default/a');
    assert((await client.put(key, Buffer.from('one'))).ok);
    const found = await client.range({ key });
    assert(found.ok);
    assert.equal(found.value.kvs[0]?.value.toString(), 'one');
    assert((await client.range({ key: Buffer.from('/registry/none') })).ok);
  } finally {
    client.close();
    await proxy.stop();
    await etcd.close();
    await opened.close();
  }
  const calls = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Call);
  const told = calls.map(({ shape, prefix }) => `${shape} ${prefix}`);
  assert(told.includes('Put /registry/pods/'), told.join());
  assert.equal(told.filter((one) => one.startsWith('Range')).length, 2);
  assert(calls.every(({ ms, status }) => ms >= 0 && status === 0));
  const rows = JSON.parse(readFileSync(summary, 'utf8')) as readonly Call[];
  assert(rows.some(({ shape }) => shape === 'Put'));
  rmSync(dir, { recursive: true });
});

interface Call {
  readonly shape: string;
  readonly prefix: string;
  readonly ms: number;
  readonly status: number;
}
