/** API servers that hold the state of a group, on journals of each kind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENGINES, type Engine, simulatedEngine } from '@megaplane/etcd/engines.sim';
import { MemberProcess } from '@megaplane/etcd/member-processes.sim';
import { runMember } from '@megaplane/etcd/run-member';
import type { SimulatedClient } from '@megaplane/store/simulated-journal.sim';
import { freePort } from '@megaplane/base/free-port.sim';
import { followGroup, until, type TestServer } from '../../testing/servers.sim.ts';

const LEASE_MS = 1000;
const MAPS = '/api/v1/namespaces/default/configmaps';
const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';

interface Shown {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data?: Record<string, string>;
}

interface Group {
  /** The one that leads goes away: killed, where it is a process. */
  loseLeader(): Promise<void>;
  end(): Promise<void>;
}

function config(name: string, data: Record<string, string> = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}

async function memberHere(engine: Engine, memberName: string): ReturnType<typeof runMember> {
  const port = await freePort();
  return await runMember({
    storage: { dataDir: 'journal', durability: 'fsync', prefixes: [] },
    listen: [{ host: '127.0.0.1', port }],
    advertiseClientUrls: [`http://127.0.0.1:${port}`],
    onFailure: (why) => assert.fail(why),
    journal: await engine.open(),
    memberName,
    leaseMs: LEASE_MS,
    readsByJournal: false,
    tls: () => null,
    log: () => {},
  });
}

async function groupHere(engine: Engine): Promise<Group> {
  const members = [await memberHere(engine, 'a'), await memberHere(engine, 'b')];
  return {
    loseLeader: async () => {
      const leader = members.findIndex(({ member }) => member.isLeader);
      await Promise.all(members.splice(leader, 1).map((member) => member.close()));
    },
    end: async () => {
      await Promise.all(members.map((member) => member.close()));
    },
  };
}

async function groupOfProcesses(engine: Engine): Promise<Group> {
  const members = [
    await MemberProcess.start('a', engine.url, LEASE_MS),
    await MemberProcess.start('b', engine.url, LEASE_MS),
  ];
  return {
    loseLeader: async () => {
      for (const member of members) {
        const answer = await fetch(`http://127.0.0.1:${member.port}/metrics`);
        if (!/^etcd_server_is_leader 1$/m.test(await answer.text())) continue;
        await member.end('SIGKILL');
        return;
      }
      assert.fail('nobody leads');
    },
    end: async () => {
      for (const member of members) await member.end('SIGKILL');
    },
  };
}

async function putUntilDone(server: TestServer, name: string): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const answer = await server.ask('POST', MAPS, config(name));
    // one that was under way when the leader failed may have been written
    if (answer.status === 201 || answer.status === 409) return;
    assert(answer.status >= 500, answer.text);
  }
  assert.fail(`${name} was not written`);
}

const real = ENGINES.filter(({ name, missing }) => name !== 'simulated' && missing === false);
const [quick] = real.toReversed();
const chosen = ENGINES.filter((kind) => IS_LONG || kind.name === 'simulated' || kind === quick);

for (const kind of chosen) {
  void test(
    `three API servers hold one state on a ${kind.name} journal, also when its leader is lost`,
    { skip: kind.missing },
    async () => {
      const engine = await kind.start();
      const group = await (engine.url === '' ? groupHere(engine) : groupOfProcesses(engine));
      const servers: TestServer[] = [];
      try {
        for (let i = 0; i < 3; i++) servers.push(await followGroup(await engine.open(), LEASE_MS));
        const [left, middle, right] = servers;
        assert(left !== undefined && middle !== undefined && right !== undefined);
        await left.bootstrap();
        await readAtAll(left, [middle, right]);
        await raceForOne(servers);
        const seen = await right.ask('GET', `${MAPS}?watch=1&resourceVersion=1`);
        assert.equal(seen.status, 200, seen.text);
        await group.loseLeader();
        const { publishedRevision } = middle.storage;
        // what needs no leader is answered meanwhile
        const read = await middle.ask('GET', `${MAPS}/a?resourceVersion=0`);
        assert.equal(read.status, 200, read.text);
        assert(middle.storage.publishedRevision >= publishedRevision);
        await putUntilDone(left, 'after');
        await until('the watch goes on', () => seen.text.includes('"name":"after"'));
        assert.equal((await right.ask('GET', `${MAPS}/after`)).status, 200);
        const lists = await Promise.all(servers.map((server) => server.ask('GET', MAPS)));
        const items = lists.map(({ text }) => (JSON.parse(text) as { items: Shown[] }).items);
        assert.deepEqual(items[1], items[0]);
        assert.deepEqual(items[2], items[0]);
      } finally {
        for (const server of servers) await server.stop();
        await group.end();
        await engine.stop();
      }
    },
  );
}

/** What was written at one is there for whoever asks another one afterwards. */
async function readAtAll(writer: TestServer, others: readonly TestServer[]): Promise<void> {
  const created = await writer.ask('POST', MAPS, config('a', { k: '1' }));
  assert.equal(created.status, 201, created.text);
  assert(created.text.includes('"managedFields"'));
  for (const other of others) {
    assert.equal((await other.ask('GET', `${MAPS}/a`)).text, created.text);
    assert.equal((await other.ask('POST', MAPS, config('a'))).status, 409);
  }
  const [other] = others;
  assert(other !== undefined);
  const object = JSON.parse(created.text) as Shown;
  const changed = await other.ask('PUT', `${MAPS}/a`, { ...object, data: { k: '2' } });
  assert.equal(changed.status, 200, changed.text);
  const late = await writer.ask('PUT', `${MAPS}/a`, { ...object, data: { k: '3' } });
  assert.equal(late.status, 409, late.text);
  const event = { metadata: { name: 'e' }, involvedObject: {}, reason: 'Seen', type: 'Normal' };
  const path = '/api/v1/namespaces/default/events';
  const told = await other.ask('POST', path, { apiVersion: 'v1', kind: 'Event', ...event });
  assert.equal(told.status, 201, told.text);
  assert.equal((await writer.ask('GET', `${path}/e`)).status, 200);
}

/** All change one object at once: no change is lost, and none is made twice. */
async function raceForOne(servers: readonly TestServer[]): Promise<void> {
  const patch = { 'content-type': 'application/merge-patch+json' };
  const asked = servers.flatMap((server, at) =>
    [1, 2, 3, 4, 5].map((i) =>
      server.ask('PATCH', `${MAPS}/a`, { data: { [`p${at}-${i}`]: 'v' } }, patch),
    ),
  );
  const done = await Promise.all(asked);
  const wins = done.filter((answer) => answer.status === 200).length;
  for (const server of servers) {
    const shown = JSON.parse((await server.ask('GET', `${MAPS}/a`)).text) as Shown;
    assert.equal(Object.keys(shown.data ?? {}).length, wins + 1);
  }
  assert(wins > 3, `${wins} of 15 patches went through`);
}

void test('a server behind what was trimmed begins anew, and its watches end', async () => {
  const engine = await simulatedEngine();
  const group = await groupHere(engine);
  const here = (await engine.open()) as SimulatedClient;
  const logged: string[] = [];
  const writer = await followGroup(await engine.open(), LEASE_MS);
  const late = await followGroup(here, LEASE_MS, logged);
  try {
    await writer.bootstrap();
    const { publishedRevision } = writer.storage;
    await until('it is there', () => late.storage.publishedRevision >= publishedRevision);
    const watch = await late.ask('GET', `${MAPS}?watch=1&resourceVersion=${publishedRevision}`);
    here.isCut = true;
    for (let i = 0; i < 10; i++) {
      assert.equal((await writer.ask('POST', MAPS, config(`m${i}`))).status, 201);
    }
    await until('it says so', () => late.storage.fault !== null);
    const trimmer = await engine.open();
    const end = await trimmer.end();
    await trimmer.trim(end.kind === 'end' ? end.last : 0);
    here.isCut = false;
    await until('it begins anew', () => late.storage.publishedRevision > publishedRevision + 9);
    await until('its watch ends', () => watch.isEnded);
    assert.match(logged.join('\n'), /were trimmed before they were read/);
    const list = await late.ask('GET', MAPS);
    assert.equal((JSON.parse(list.text) as { items: Shown[] }).items.length, 10);
    const again = await late.ask(
      'GET',
      `${MAPS}?watch=1&resourceVersion=${late.storage.publishedRevision}`,
    );
    assert.equal((await late.ask('POST', MAPS, config('new'))).status, 201);
    await until('a new watch sees it', () => again.text.includes('"name":"new"'));
    assert.equal(late.storage.fault, null);
  } finally {
    await late.stop();
    await writer.stop();
    await group.end();
    await engine.stop();
  }
});
