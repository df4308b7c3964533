/**
 * Programs with client-go on this API server: `client-go/main.go` runs informers in JSON and
 * protobuf, with and without WatchList, on selectors and shards, and elects a leader;
 * `client-go/overload.go` asks for more than can be done.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { runApiserver } from '@megaplane/apiserver/run';
import { GO_BUILD_MS, GoPeer } from '@megaplane/base/go-peer.sim';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const RUN_MS = 90_000;
/** A build from nothing, and both runs. */
const TEST_MS: number = GO_BUILD_MS + 2 * RUN_MS;
const run = promisify(execFile);
const peer = new GoPeer(join(import.meta.dirname, 'client-go'));
const options = { skip: peer.skip, timeout: TEST_MS };

interface Run {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the program against a fresh server; its output ends with `ok` where all held. */
async function play(t: TestContext, { args, env = {} }: Run): Promise<string> {
  const problem = await peer.build();
  if (problem !== '') {
    t.skip(`the program with client-go cannot be built: ${problem}`);
    return 'ok';
  }
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-client-go-data-'));
  const service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    log: (level, message) => console.error(level, message),
  });
  try {
    const answer = await run(peer.binary, [join(dir, 'kubeconfig'), ...args], {
      env: { ...process.env, ...env },
      timeout: RUN_MS,
    }).catch((error: unknown) => {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      return { stdout: `${stdout}${stderr}` };
    });
    return answer.stdout.trim();
  } finally {
    await service.stop();
    rmSync(dir, { recursive: true });
  }
}

test('client-go keeps informers and elects leaders here', options, async (t) => {
  for (const [gate, expectation] of [
    ['true', 'expectWatchList'],
    ['false', 'expectList'],
  ] as const) {
    const env = { KUBE_FEATURE_WatchListClient: gate };
    assert.equal(await play(t, { args: [expectation], env }), 'ok', expectation);
  }
});

test(
  'programs that ask for too much are refused, and no watch misses a write',
  options,
  async (t) => {
    const [duration, crowd] = IS_LONG ? ['30s', '20'] : ['2s', '2'];
    const report = await play(t, { args: ['overload', duration, crowd] });
    assert.match(report, /(^|\n)ok$/);
    t.diagnostic(report);
  },
);
