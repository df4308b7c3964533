/** What members do about journals that others have spoilt, and how a group begins anew. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import { ENTRY_BEAT, ENTRY_VERSION, encodeEntry } from '@megaplane/store/journal/entry';
import { openStore } from '@megaplane/store/open';
import { DiscardPolicy, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { openJournal } from '../journal/open-journal.ts';
import { copyOf, readCopy, reseed } from '../member/reseed.ts';
import { type RunningMember, runMember } from '../member/run-member.ts';
import { ENGINES, type Engine, simulatedEngine } from './engines.sim.ts';
import { Peer, show } from './peer.sim.ts';

const LEASE_MS = 1000;
const EVERY = 30;
const WAIT_MS = 60_000;
const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const STORAGE = { dataDir: 'journal', durability: 'fsync', prefixes: [] } as const;

const dir = mkdtempSync(join(tmpdir(), 'megaplane-journal-faults-'));
after(() => rmSync(dir, { recursive: true, force: true }));

interface Here {
  readonly running: RunningMember;
  readonly port: number;
  readonly logged: string[];
  /** Why it ended, '' while it goes on. */
  readonly failure: string;
  close(): Promise<void>;
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (!(await isSo())) {
    assert(performance.now() < endMs, what);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function begin(engine: Engine, memberName: string, stateDir?: string): Promise<Here> {
  const port = await freePort();
  const logged: string[] = [];
  let failure = '';
  const journal = await engine.open();
  const running = await runMember({
    storage: STORAGE,
    listen: [{ host: '127.0.0.1', port }],
    advertiseClientUrls: [`http://127.0.0.1:${port}`],
    onFailure: (why) => (failure = why),
    journal,
    memberName,
    leaseMs: LEASE_MS,
    readsByJournal: false,
    hashEveryMs: 500,
    ...(stateDir === undefined ? {} : { stateDir, stateEvery: EVERY }),
    tls: () => null,
    log: (message) => logged.push(message),
  }).catch(async (error: unknown) => {
    await journal.close();
    throw error;
  });
  return {
    ...{ running, port, logged },
    close: async () => {
      await running.close();
      await journal.close();
    },
    get failure() {
      return failure;
    },
  };
}

async function put(port: number, key: string): Promise<string> {
  const peer = new Peer(port);
  const answer = await peer.call('KV/Put', [
    [1, key],
    [2, `value of ${key}`],
  ]);
  peer.close();
  return Buffer.isBuffer(answer) ? 'done' : answer;
}

async function get(port: number, key: string, isSerializable = false): Promise<string> {
  const peer = new Peer(port);
  const answer = await peer.call('KV/Range', [
    [1, key],
    ...(isSerializable ? [[7, 1] as const] : []),
  ]);
  peer.close();
  return Buffer.isBuffer(answer) ? show(answer) : answer;
}

/** Writes until there is a copy that has `k1` in it. */
async function untilCopied(port: number, copy: string): Promise<void> {
  let written = 0;
  await until('no copy is made', async () => {
    await Promise.all(Array.from({ length: 20 }, () => put(port, `k${++written}`)));
    return existsSync(join(copy, 'state.mpj'));
  });
}

const real = ENGINES.filter(({ name, missing }) => name !== 'simulated' && missing === false);
const chosen = IS_LONG ? real : real.slice(0, 1);

for (const kind of chosen) {
  const name = `a journal on ${kind.name} that is deleted ends its group, reseed begins another`;
  void test(name, async () => {
    const engine = await kind.start();
    const [ofA, ofB] = [join(dir, `${kind.name}-a`), join(dir, `${kind.name}-b`)];
    const members: Here[] = [];
    const start = async (name: string, stateDir?: string): Promise<Here> => {
      const member = await begin(engine, name, stateDir);
      members.push(member);
      return member;
    };
    try {
      const [a, b] = [await start('a', ofA), await start('b', ofB)];
      await untilCopied(b.port, ofA);
      await until('no second copy', () => existsSync(join(ofB, 'state.mpj')));
      await engine.destroy();
      await until('they say so', () => a.failure !== '' && b.failure !== '');
      assert.match(a.failure, /deleted|set it back/);
      await Promise.all(members.splice(0).map((member) => member.close()));

      const journal = await engine.open();
      const copy = readCopy(ofA, STORAGE);
      const log = (): void => {};
      const place = await reseed({ journal, stateDir: ofA, copy, log });
      assert.notDeepEqual(place.group, copy.place.group);
      // cut off and done again it is the same group
      const again = await reseed({ journal, stateDir: ofA, copy: readCopy(ofA, STORAGE), log });
      assert.deepEqual(again, place);
      const c = await start('c', ofA);
      assert.match(await get(c.port, 'k1'), /value of k1/);
      const d = await start('d');
      assert.equal(await put(d.port, 'after'), 'done');
      assert.match(await get(c.port, 'after'), /value of after/);
      assert.match(await get(d.port, 'k1', true), /value of k1/);
      await assert.rejects(
        reseed({ journal, stateDir: ofB, copy: readCopy(ofB, STORAGE), log }),
        /holds the entries \d+ to \d+ of a group/,
      );
      // a copy of the old group fits nowhere
      await assert.rejects(start('e', ofB), /set it back|another group|would follow/);
      await journal.close();
    } finally {
      await Promise.all(members.map((member) => member.close()));
      await engine.stop();
    }
  });
}

void test('a store on files becomes the first member of a group, with what it has', async () => {
  const files = join(dir, 'files');
  const copyDir = join(dir, 'files-copy');
  const opened = openStore({ ...STORAGE, dataDir: files });
  const key = Buffer.from('kept');
  for (const value of ['first', 'second']) {
    opened.store.putIf(key, 0, key.length, -1, Buffer.from(value), 0, value.length, 0);
  }
  const revision = opened.store.appliedRevision;
  await opened.close();
  await copyOf(files, copyDir, STORAGE);
  const copy = readCopy(copyDir, STORAGE);
  assert.equal(copy.revision, revision);
  const engine = await simulatedEngine();
  const journal = await engine.open();
  await reseed({ journal, stateDir: copyDir, copy, log: () => {} });
  const a = await begin(engine, 'a', copyDir);
  const b = await begin(engine, 'b');
  try {
    assert.match(await get(b.port, 'kept'), /kept 3 2\/2\/0=second|second/);
    assert.equal(await put(b.port, 'more'), 'done');
    assert.equal(a.running.store.appliedRevision, revision + 1);
  } finally {
    await Promise.all([a, b].map((member) => member.close()));
    await engine.stop();
  }
});

/** What a stranger writes at the end of the journal, and what each member says of it. */
const STRANGERS: readonly (readonly [string, (group: Buffer) => Buffer, RegExp])[] = [
  ['a message of a stranger', () => Buffer.from('hello'), /not by a megaplane store/],
  ['an entry of another group', () => entryOf(Buffer.alloc(8, 9)), /another group, which uses/],
  [
    'an entry of a later version',
    (group) => {
      const bytes = entryOf(group);
      bytes[4] = ENTRY_VERSION + 1;
      return bytes;
    },
    /format 2, which this version cannot read/,
  ],
];

function entryOf(group: Buffer): Buffer {
  const [writer, payload] = [Buffer.alloc(8, 1), Buffer.alloc(0)];
  const numbers = { epoch: 1, number: 5, lastRevision: 1, clockMs: 0, controlBytes: 0 };
  return encodeEntry({ kind: ENTRY_BEAT, goesOn: false, group, writer, payload, ...numbers });
}

for (const [what, made, said] of STRANGERS) {
  void test(`${what} ends every member, which say so`, async () => {
    const engine = await simulatedEngine();
    const [a, b] = [await begin(engine, 'a'), await begin(engine, 'b')];
    try {
      assert.equal(await put(b.port, 'k'), 'done');
      const stranger = await engine.open();
      const bytes = made(a.running.member.group);
      for (let isWritten = false; !isWritten;) {
        const end = await stranger.end();
        const outcome = await stranger.append(bytes, end.kind === 'end' ? end.last : 0);
        isWritten = outcome.kind === 'appended';
      }
      await until('both end', () => a.failure !== '' && b.failure !== '');
      assert.match(a.failure, said);
      assert.match(b.failure, said);
      assert.match(a.failure, /^entry \d+ of the simulated: /);
    } finally {
      await Promise.all([a, b].map((member) => member.close()));
      await engine.stop();
    }
  });
}

void test('a full disk costs a standby its copy and nothing else', async () => {
  const engine = await simulatedEngine();
  const full = join(dir, 'full');
  const a = await begin(engine, 'a');
  const b = await begin(engine, 'b', full);
  try {
    symlinkSync('/dev/full', join(full, 'state.mpj.part'));
    let written = 0;
    await until('it says so', async () => {
      await put(b.port, `k${++written}`);
      return b.logged.some((line) => /no copy of the state was made: ENOSPC/.test(line));
    });
    assert.equal(await put(b.port, 'still'), 'done');
    await until('the next copy', async () => {
      await put(b.port, `k${++written}`);
      return existsSync(join(full, 'state.mpj'));
    });
    assert(readCopy(full, STORAGE).revision > 1);
  } finally {
    await Promise.all([a, b].map((member) => member.close()));
    await engine.stop();
  }
});

void test('a standby whose memory differs from its leader leaves', async () => {
  const engine = await simulatedEngine();
  const [a, b] = [await begin(engine, 'a'), await begin(engine, 'b')];
  try {
    assert.equal(await put(b.port, 'k'), 'done');
    await until('it is there', async () => /value of k/.test(await get(b.port, 'k', true)));
    const { store } = b.running;
    const ref = store.get(Buffer.from('k'), 0, 1);
    const record = store.record(ref);
    const at = store.valueAt(ref);
    record[at] = (record[at] ?? 0) ^ 1;
    await until('it finds out', () => b.failure !== '');
    assert.match(
      b.failure,
      /differs from its leader a: HashKV at revision \d+ is \d+ here and \d+/,
    );
    assert.equal(a.failure, '');
    assert.equal(await put(a.port, 'goes on'), 'done');
  } finally {
    await Promise.all([a, b].map((member) => member.close()));
    await engine.stop();
  }
});

/** As it may have happened, a client only learns that its connection is gone. */
const FAILED = /^14 .*(?:timed out|closed|no leader)/;

const nats = ENGINES.find(({ name }) => name === 'nats');

void test(
  'an engine that is away for long: reads of any age go on, writes fail as etcd has it',
  { skip: nats?.missing ?? 'needs nats-server' },
  async () => {
    assert(nats !== undefined);
    const engine = await nats.start();
    const [a, b] = [await begin(engine, 'a'), await begin(engine, 'b')];
    try {
      assert.equal(await put(a.port, 'before'), 'done');
      const { epoch } = a.running.member;
      engine.signal?.('SIGSTOP');
      const [here, there] = [put(a.port, 'meanwhile'), put(b.port, 'meanwhile too')];
      assert.match(await get(b.port, 'before', true), /value of before/);
      assert.match(await here, FAILED);
      assert.match(await there, FAILED);
      assert.match(await get(b.port, 'before', true), /value of before/);
      assert.match(await get(a.port, 'before'), FAILED);
      engine.signal?.('SIGCONT');
      await until('writes go on', async () => (await put(b.port, 'after')) === 'done');
      assert.equal(a.running.member.epoch, epoch);
      assert.equal(a.failure + b.failure, '');
    } finally {
      engine.signal?.('SIGCONT');
      await Promise.all([a, b].map((member) => member.close()));
      await engine.stop();
    }
  },
);

/** Streams that lose what is acknowledged, or that others may write to. */
const BAD: readonly (readonly [string, Partial<StreamConfig>, RegExp])[] = [
  ['old', { discard: DiscardPolicy.Old }, /discards old messages.*--discard new/],
  ['aged', { max_age: 60_000_000_000 }, /lets messages age.*--max-age 0/],
  ['counted', { max_msgs: 1000 }, /limit of messages/],
  ['shared', { subjects: ['shared.*'] }, /more than one subject/],
  ['small', { max_msg_size: 1024 }, /no messages of 64 KiB/],
];

void test(
  'streams that would lose what they hold are refused, with what to change',
  { skip: nats?.missing ?? 'needs nats-server' },
  async () => {
    assert(nats !== undefined);
    const engine = await nats.start();
    try {
      const server = /\/\/([^/]+)/.exec(engine.url)?.[1] ?? '';
      await (await engine.open()).close();
      const connection = await connect({ servers: [server] });
      const jsm = await jetstreamManager(connection);
      for (const [name, config, said] of BAD) {
        const good = { name, subjects: [`s.${name}`], discard: DiscardPolicy.New };
        await jsm.streams.add({ ...good, ...config });
        await assert.rejects(
          openJournal(`nats://${server}/${name}`, {}, () => {}),
          said,
        );
      }
      await connection.close();
      const replicated = openJournal(`nats://${server}/group?replicas=3`, {}, () => {});
      await assert.rejects(replicated, /has 1 replicas, not 3/);
    } finally {
      await engine.stop();
    }
  },
);
