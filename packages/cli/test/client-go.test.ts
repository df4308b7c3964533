/**
 * Programs with client-go on this API server: `client-go/main.go` runs informers in JSON and
 * protobuf, with and without WatchList, on selectors and shards, and elects a leader.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runApiserver } from '@megaplane/apiserver/run';

const SOURCE = join(import.meta.dirname, 'client-go');
const BUILD_MS = 150_000;
const RUN_MS = 90_000;
/** A build from nothing, and both runs. */
const TEST_MS: number = BUILD_MS + 2 * RUN_MS;
const run = promisify(execFile);

/** Built once for each state of its sources, beside other temporary files. */
function binaryPath(): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(SOURCE).sort()) hash.update(readFileSync(join(SOURCE, name)));
  return join(tmpdir(), `megaplane-client-go-${hash.digest('hex').slice(0, 16)}`);
}

/** Why the test cannot run here; false where it can. */
function reasonToSkip(): string | false {
  if (existsSync(binaryPath())) return false;
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' });
  } catch {
    return 'needs Go (https://go.dev/dl, or the package golang-go) to build programs with client-go';
  }
  return false;
}

/** The path of the program, or why it cannot be built: most likely its modules are out of reach. */
async function build(): Promise<{ binary: string; problem: string }> {
  const binary = binaryPath();
  if (existsSync(binary)) return { binary, problem: '' };
  const fresh = `${binary}.${process.pid}`;
  try {
    await run('go', ['build', '-o', fresh, '.'], { cwd: SOURCE, timeout: BUILD_MS });
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    return { binary, problem: stderr.trim().split('\n').at(-1) ?? 'go build failed' };
  }
  renameSync(fresh, binary);
  return { binary, problem: '' };
}

const options = { skip: reasonToSkip(), timeout: TEST_MS };

test('client-go keeps informers and elects leaders here', options, async (t) => {
  const { binary, problem } = await build();
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
      const answer = await run(binary, args, { env, timeout: RUN_MS }).catch((error: unknown) => {
        const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
        return { stdout: `${stdout}${stderr}` };
      });
      assert.equal(answer.stdout.trim(), 'ok', expectation);
    } finally {
      await service.stop();
      rmSync(dir, { recursive: true });
    }
  }
});
