import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { holdUp } from '@megaplane/base/stopped.sim';
import { encode, Peer, show } from '../testing/peer.sim.ts';

const CHILD = join(import.meta.dirname, '../testing/store-child.sim.ts');
const LEASES = Array.from({ length: 50 }, (_, index) => index + 1);

test('renewals that came while the process stood still are taken before leases end', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-pause-'));
  const child = spawn(process.execPath, [CHILD, dir, '0', 'buffered'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const peer = new Peer(Number(/ready (\d+)/.exec(line.toString())?.[1]));
    // at once: one after the other, the first might end before the last is there
    const grants = LEASES.map(async (id) => {
      const granted = await peer.call('Lease/LeaseGrant', [
        [1, 2],
        [2, id],
      ]);
      assert.notEqual(typeof granted, 'string');
    });
    await Promise.all(grants);
    holdUp(child.pid ?? 0);
    const answers: string[] = [];
    const isDone = new Promise<void>((resolve) => {
      for (const id of LEASES) {
        const call = peer.client.open('/etcdserverpb.Lease/LeaseKeepAlive', {
          onMessage: (_call, bytes, start, end) => {
            answers.push(show(bytes.subarray(start, end)));
            if (answers.length === LEASES.length) resolve();
          },
          onStatus: () => {},
        });
        call.send(encode([[1, id]]));
      }
    });
    // Twice as long as the leases last.
    await new Promise((resolve) => setTimeout(resolve, 4000));
    child.kill('SIGCONT');
    await isDone;
    for (const answer of answers) assert.match(answer, /3:2$/, 'a lease is renewed');
    const listed = await peer.show('Lease/LeaseLeases', []);
    assert.equal(listed.split(' | ').length - 1, LEASES.length);
  } finally {
    child.kill('SIGCONT');
    child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
});
