/**
 * Replays what a real kube-apiserver answered against this server, where the recordings are: in
 * `../shared` beside the repository.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { PASSING } from '../src/server/replay-passing.sim.ts';
import { runApiserver } from '../src/server/run.ts';

const SHARED = resolve(import.meta.dirname, '../../../../shared');
const REPLAY = join(SHARED, 'tools/replay/replay.mjs');
const CASES = join(SHARED, 'data/transcripts/apiserver');
const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
/** They wait for seconds; the long run has them. */
const SLOW = ['watch/bookmarks', 'discovery/aggregated-etag', 'admission/quota-unknown'];

interface CaseResult {
  readonly case: string;
  readonly passed: boolean;
  readonly failures: readonly unknown[];
}

const all = Object.entries(PASSING)
  .flatMap(([area, names]) => names.map((name) => `${area}/${name}`))
  .filter((name) => IS_LONG || !SLOW.includes(name));

async function replay(
  kubeconfig: string,
  output: string,
  wanted: readonly string[],
): Promise<CaseResult[]> {
  const only = `^(${wanted.join('|')})$`;
  const args = [
    REPLAY,
    '--kubeconfig',
    kubeconfig,
    '--only',
    only,
    '--jobs',
    '8',
    '--json',
    output,
  ];
  await new Promise<void>((done) => {
    // its exit code says whether all passed; the results say which did not
    execFile(process.execPath, [...args, '--quiet', CASES], () => done());
  });
  return (JSON.parse(readFileSync(output, 'utf8')) as { results: CaseResult[] }).results;
}

const skip = existsSync(REPLAY) ? false : 'needs ../shared with the recordings';
/** With threads of their own for connections, every fifth is asked, and all in the long run. */
const THREADS_STEP = IS_LONG ? 1 : 5;

for (const threads of [0, 2]) {
  const wanted = threads === 0 ? all : all.filter((_, index) => index % THREADS_STEP === 0);
  const how = threads === 0 ? '' : `, by ${threads} threads`;
  test(`recorded answers of kube-apiserver are this server’s answers${how}`, { skip }, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'megaplane-replay-'));
    const service = await runApiserver({
      dataDir: dir,
      bindAddress: '127.0.0.1',
      securePort: 0,
      threads,
      log: (level, message) => console.error(level, message),
    });
    try {
      const results = await replay(join(dir, 'kubeconfig'), join(dir, 'results.json'), wanted);
      const failed = results.filter(({ passed }) => !passed);
      assert.deepEqual(
        failed.map((one) => `${one.case}: ${JSON.stringify(one.failures[0])}`),
        [],
      );
      assert.equal(results.length, wanted.length);
    } finally {
      await service.stop();
      rmSync(dir, { recursive: true });
    }
  });
}
