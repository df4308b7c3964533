/**
 * Programs with client-go on this API server: `client-go/main.go` runs informers in JSON and
 * protobuf, with and without WatchList, on selectors and shards, and elects a leader.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runApiserver } from '@megaplane/apiserver/run';
import { GO_BUILD_MS, GoPeer } from '@megaplane/base/go-peer.sim';

const RUN_MS = 90_000;
/** A build from nothing, and both runs. */
const TEST_MS: number = GO_BUILD_MS + 2 * RUN_MS;
const run = promisify(execFile);
const peer = new GoPeer(join(import.meta.dirname, 'client-go'));
const options = { skip: peer.skip, timeout: TEST_MS };

test('client-go keeps informers and elects leaders here', options, async (t) => {
  const problem = await peer.build();
  if (problem !== '') {
    t.skip(`the program with client-go cannot be built: ${problem}`);
    return;
  }
  for (const [gate, expectation] of [
    ['true', 'expectWatchList'],
    ['false', 'expectList'],
  ] as const) {
    const dir = mkdtempSync(join(tmpdir(), 'megaplane-client-go-data-'));
    const service = await runApiserver({
      dataDir: dir,
      bindAddress: '127.0.0.1',
      securePort: 0,
      log: (level, message) => console.error(level, message),
    });
    try {
      const env = { ...process.env, KUBE_FEATURE_WatchListClient: gate };
      const args = [join(dir, 'kubeconfig'), expectation];
      const answer = await run(peer.binary, args, { env, timeout: RUN_MS }).catch(
        (error: unknown) => {
          const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
          return { stdout: `${stdout}${stderr}` };
        },
      );
      assert.equal(answer.stdout.trim(), 'ok', expectation);
    } finally {
      await service.stop();
      rmSync(dir, { recursive: true });
    }
  }
});
