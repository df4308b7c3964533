/** Random watches beside a real etcd, while keys, leases and history change under them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { openStore } from '@megaplane/store/open';
import type { GrpcClientCall } from '@megaplane/wire/grpc';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { type Fields, Peer, encode, has, startEtcd } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';
import { type Shown, showWatch } from './watch-peer.sim.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const STEPS = process.env['MEGAPLANE_LONG'] === undefined ? 80 : 3000;
const STREAMS = 2;
const LEASE = 41;

const key = fc.constantFrom('', '\0', 'a', 'a/', 'a/b', 'b', 'b\xff', 'zz');
const end = fc.constantFrom('', '', '\0', 'a0', 'b', 'c', 'a');
const flag = fc.constantFrom(0, 0, 1);
const stream = fc.nat(STREAMS - 1);
const id = fc.constantFrom(0n, 0n, 0n, 1n, 2n, 5n, -1n, -7n, 2n ** 40n, 2n ** 63n - 1n);

/** What is done next, by the revision before it: a message to a stream, a call, or a new stream. */
type Step = (revision: number) =>
  | {
      readonly kind: 'send';
      readonly stream: number;
      readonly fields: Fields;
      readonly from: number;
    }
  | { readonly kind: 'call'; readonly path: string; readonly fields: Fields }
  | { readonly kind: 'reopen'; readonly stream: number };

const create = fc
  .record({
    ...{ stream, key, end, id },
    back: fc.constantFrom(null, null, null, -30, -1, 0, 1, 2, 5, 9, 1e6),
    filters: fc.constantFrom<readonly number[]>([], [], [], [0], [1], [0, 1], [1, 1], [7]),
    ...{ previous: flag, fragment: flag, notify: flag },
  })
  .map((one): Step => (revision) => {
    const from = one.back === null ? 0 : Math.max(-1, revision - one.back);
    const fields: Fields = [
      ...[[1, one.key] as const, [2, one.end] as const, [3, from] as const],
      ...one.filters.map((filter) => [5, filter] as const),
      ...[[4, one.notify] as const, [6, one.previous] as const],
      ...[[7, one.id] as const, [8, one.fragment] as const],
    ];
    return { kind: 'send', stream: one.stream, fields: [[1, fields]], from };
  });
const cancel = fc.record({ stream, id }).map((one): Step => () => ({
  ...({ kind: 'send', stream: one.stream, from: 0 } as const),
  fields: [[2, [[1, one.id]]]],
}));
const progress = stream.map((one): Step => () => ({
  ...({ kind: 'send', stream: one, from: 0 } as const),
  fields: [[3, []]],
}));
const empty = stream.map((one): Step => () => ({
  ...({ kind: 'send', stream: one, from: 0 } as const),
  fields: [],
}));
const put = fc
  .record({ key: fc.constantFrom('a', 'a/', 'a/b', 'b', 'b\xff', 'zz'), lease: flag })
  .map((one): Fields => [
    ...[[1, one.key] as const, [2, 'v'.repeat(one.key.length * 7)] as const],
    ...(one.lease === 1 ? [[3, LEASE] as const] : []),
  ]);
const remove = fc.record({ key, end }).map((one): Fields => [
  [1, one.key],
  [2, one.end],
]);
const call = (path: string, fields: Fields): Step => {
  return () => ({ kind: 'call', path, fields });
};
const txn = fc
  .array(
    fc.oneof(
      put.map((one) => [2, one] as const),
      remove.map((one) => [3, one] as const),
    ),
    {
      maxLength: 4,
    },
  )
  .map((ops) =>
    call(
      'KV/Txn',
      ops.map((op) => [2, [op]] as const),
    ),
  );
const lease = fc.constantFrom(
  call('Lease/LeaseGrant', [
    [1, 5000],
    [2, LEASE],
  ]),
  call('Lease/LeaseRevoke', [[1, LEASE]]),
);
const compact = fc.constantFrom(0, 1, 3).map((back): Step => (revision) => ({
  ...({ kind: 'call', path: 'KV/Compact' } as const),
  fields: [[1, revision - back]],
}));
const steps = fc.oneof(
  { weight: 8, arbitrary: create },
  { weight: 3, arbitrary: cancel },
  { weight: 2, arbitrary: progress },
  { weight: 1, arbitrary: empty },
  { weight: 8, arbitrary: put.map((one) => call('KV/Put', one)) },
  { weight: 3, arbitrary: remove.map((one) => call('KV/DeleteRange', one)) },
  { weight: 3, arbitrary: txn },
  { weight: 1, arbitrary: lease },
  { weight: 1, arbitrary: compact },
  {
    weight: 1,
    arbitrary: stream.map((one): Step => () => ({ kind: 'reopen', stream: one })),
  },
);

/** One server's side: what each stream and each id of it was told. */
class Side {
  readonly peer: Peer;
  #calls: (GrpcClientCall | null)[] = Array.from({ length: STREAMS }, () => null);
  readonly #told: Map<string, string[]>[] = [];

  constructor(port: number) {
    this.peer = new Peer(port);
  }

  open(index: number): void {
    const told = new Map<string, string[]>();
    this.#calls[index]?.cancel();
    this.#told[index] = told;
    this.#calls[index] = this.peer.client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, to) => note(told, showWatch(bytes, start, to)),
      onStatus: (_call, status) => note(told, `ended ${status.code} ${status.message}`),
    });
  }

  send(index: number, fields: Fields): void {
    this.#calls[index]?.send(encode(fields));
  }

  /** Was a watch of the stream compacted? Until it is cancelled etcd tells no progress. */
  isBehind(index: number): boolean {
    return [...(this.#told[index]?.values() ?? [])]
      .flat()
      .some((one) => /"behind":[1-9]/.test(one));
  }

  /** How many creations of the stream were answered. */
  created(index: number): number {
    const told = [...(this.#told[index]?.values() ?? [])].flat();
    return told.filter((one) => one.includes('"created":true')).length;
  }

  /** All that was told so far. */
  show(): string {
    return this.#told
      .map((told, index) =>
        [...told.keys()]
          .sort()
          .map((one) => `stream ${index} watch ${one}: ${told.get(one)?.join('; ')}`)
          .join('\n'),
      )
      .join('\n');
  }
}

/** Events are kept one by one: how many come in one response is the server's choice. */
function note(told: Map<string, string[]>, shown: Shown | string): void {
  const name = typeof shown === 'string' ? 'all' : shown.id;
  const list = told.get(name) ?? [];
  told.set(name, list);
  if (typeof shown === 'string') list.push(shown);
  else if (shown.events.length > 0) list.push(...shown.events);
  else {
    const { revision, created, canceled, compact: behind, reason } = shown;
    list.push(JSON.stringify({ revision, created, canceled, behind, reason }));
  }
}

/** A busy server may answer late; while neither did, both were told the same. */
async function untilCreated(sides: readonly Side[], index: number, count: number): Promise<void> {
  for (let i = 0; i < 1000 && sides.some((side) => side.created(index) < count); i++) {
    await sleep(3);
  }
}

/** True once both were told the same, and stay so for a moment. */
async function settle(theirs: Side, ours: Side): Promise<boolean> {
  for (let i = 0; i < 2500; i++) {
    await sleep(6);
    if (theirs.show() === ours.show()) return true;
  }
  return false;
}

async function compare(program: string, is34: boolean): Promise<void> {
  const etcd = await startEtcd(program);
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const theirs = new Side(etcd.port);
  const ours = new Side(server.addresses[0]?.port ?? 0);
  const seed = Number(process.env['SEED'] ?? 20261123);
  /** Streams with a watch that starts later: etcd tells no progress of them. */
  const isLate = new Set<number>();
  try {
    for (const side of [theirs, ours]) {
      for (let index = 0; index < STREAMS; index++) side.open(index);
    }
    const script: string[] = [];
    for (const make of fc.sample(steps, { numRuns: STEPS, seed })) {
      const revision = opened.store.appliedRevision;
      const step = make(revision);
      if (step.kind === 'send') {
        const isQuiet = isLate.has(step.stream) || theirs.isBehind(step.stream);
        // 3.4 tells progress at once, and knows no revisions below 0.
        if (step.fields[0]?.[0] === 3 && (isQuiet || is34)) continue;
        if (step.from < 0 && is34) continue;
        if (step.from > revision) isLate.add(step.stream);
      }
      if (step.kind === 'reopen') isLate.delete(step.stream);
      script.push(
        JSON.stringify(step, (_, value: unknown) =>
          typeof value === 'bigint' ? String(value) : value,
        ),
      );
      const isProgress = step.kind === 'send' && step.fields[0]?.[0] === 3;
      const isCompaction = step.kind === 'call' && step.path === 'KV/Compact';
      // etcd feeds watches from the past every 100 ms, also those that have nothing to be told.
      if (isProgress || isCompaction) await sleep(400);
      const creates = step.kind === 'send' && step.fields[0]?.[0] === 1 ? step.stream : null;
      const count = theirs.created(creates ?? 0) + 1;
      const both = [theirs, ours].map(async (side) => {
        if (step.kind === 'send') side.send(step.stream, step.fields);
        else if (step.kind === 'reopen') side.open(step.stream);
        else return await side.peer.show(step.path, step.fields);
        return '';
      });
      const [expected, found] = await Promise.all(both);
      const what = `SEED=${seed}\n${script.slice(-12).join('\n')}`;
      assert.equal(found, expected, what);
      if (creates !== null) await untilCreated([theirs, ours], creates, count);
      if (!(await settle(theirs, ours))) assert.equal(ours.show(), theirs.show(), what);
    }
  } finally {
    theirs.peer.close();
    ours.peer.close();
    await server.close();
    await opened.close();
    await etcd.stop();
  }
}

test('random watches are told the same as by etcd 3.4', { skip: SKIP }, () =>
  compare('etcd', true),
);

test('random watches are told the same as by etcd 3.6', { skip: NEWER_SKIP }, () =>
  compare(NEWER?.etcd ?? '', false),
);
