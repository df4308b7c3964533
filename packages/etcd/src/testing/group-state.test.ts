/** A journal that is trimmed: members begin from copies, and from their leader. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENGINES } from './engines.sim.ts';
import { MemberProcess } from './member-processes.sim.ts';
import { Peer, show } from './peer.sim.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const LEASE_MS = 1000;
const EVERY = 60;
const WAIT_MS = 60_000;

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (!(await isSo())) {
    assert(performance.now() < endMs, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Puts at a member, again where nobody leads at the moment. */
async function put(port: number, key: string, value: string, lease = 0): Promise<void> {
  await until(`${key} cannot be put`, async () => {
    const peer = new Peer(port);
    const answer = await peer.call('KV/Put', [
      [1, key],
      [2, value],
      [3, lease],
    ]);
    peer.close();
    return Buffer.isBuffer(answer);
  });
}

async function hash(port: number, revision: number): Promise<string> {
  const peer = new Peer(port);
  const answer = await peer.call('Maintenance/HashKV', [[1, revision]]);
  peer.close();
  return Buffer.isBuffer(answer) ? show(answer).replace(/^revision \d+/, '') : answer;
}

const real = ENGINES.filter(({ name }) => name !== 'simulated');
const [first] = real.filter(({ missing }) => missing === false);
/** One is enough where it must be quick: what differs is in the contract's suite. */
const chosen = IS_LONG || first === undefined ? real : [first];

for (const kind of chosen) {
  void test(
    `a journal on ${kind.name} is trimmed behind copies, and nobody misses what is gone`,
    { skip: kind.missing },
    async () => {
      const engine = await kind.start();
      const dir = mkdtempSync(join(tmpdir(), 'megaplane-states-'));
      const journal = await engine.open();
      const members: MemberProcess[] = [];
      const begin = async (name: string): Promise<MemberProcess> => {
        const more = [join(dir, name), String(EVERY)];
        const member = await MemberProcess.start(name, engine.url, LEASE_MS, ...more);
        members.push(member);
        return member;
      };
      try {
        const [a, b] = [await begin('a'), await begin('b')];
        const peer = new Peer(b.port);
        const granted = await peer.call('Lease/LeaseGrant', [
          [1, 3600],
          [2, 77],
        ]);
        assert(Buffer.isBuffer(granted), String(granted));
        peer.close();
        await put(a.port, 'leased', 'x', 77);
        let written = 0;
        await until('the journal is not trimmed', async () => {
          const puts = Array.from({ length: 20 }, () =>
            put(b.port, `k${written % 50}`, `v${++written}`),
          );
          await Promise.all(puts);
          const end = await journal.end();
          return end.kind === 'end' && end.first > 1;
        });
        const c = await begin('c');
        await put(c.port, 'last', 'one');
        const revision = written + 3;
        await until('members differ', async () => {
          const hashes = await Promise.all(members.map(({ port }) => hash(port, revision)));
          return new Set(hashes).size === 1 && !hashes.join().includes('future');
        });
        const before = await hash(a.port, revision);
        for (const member of members) await member.end('SIGKILL');
        for (const member of members) assert(await member.begin(), 'a member does not start');
        await put(b.port, 'after', 'all');
        for (const { port } of members) {
          await until(
            'the state is another one',
            async () => (await hash(port, revision)) === before,
          );
          const asked = new Peer(port);
          const left = await asked.show('Lease/LeaseTimeToLive', [
            [1, 77],
            [2, 1],
          ]);
          assert.match(left, /leased/);
          asked.close();
        }
      } finally {
        for (const member of members) await member.end('SIGKILL');
        await journal.close();
        await engine.stop();
        rmSync(dir, { recursive: true, force: true });
      }
    },
  );
}
