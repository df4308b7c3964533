/**
 * Sessions with kubectl that were recorded with kubectl 1.32 on kube-apiserver,
 * kube-controller-manager and kube-scheduler v1.36.1, one a chapter, in `kubectl/*.txt`. The same
 * minor prints the same here; other minors, who have other words for some of it, end each command
 * with the same code. Two chapters are played each time, the others and other minors in long runs.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, kubectls, NO_KUBECTL, startCluster, type Cluster } from './cluster.ts';
import { play, readTranscript, type Step } from './kubectl-transcript.ts';

const FOLDER = join(import.meta.dirname, 'kubectl');
const RECORDED_MINOR = '32';
const AWAITED_MS = 60_000;
const AGAIN_MS = 300;
const isLong = process.env['MEGAPLANE_LONG'] === '1';
const all = readdirSync(FOLDER).map((file) => file.replace(/\.txt$/, ''));
const chapters = isLong ? all : ['access', 'apply'];
const programs = isLong ? kubectls() : kubectls().slice(0, 1);
const skip = programs.length === 0 ? NO_KUBECTL : false;
let cluster: Cluster;

before(async () => {
  if (skip === false) cluster = await startCluster(['--nodes', '20']);
});
after(async () => {
  await cluster?.remove();
});

function minorOf(program: string): string {
  const text = execFileSync(program, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
  const { clientVersion } = JSON.parse(text) as { clientVersion: { minor: string } };
  return clientVersion.minor.replace(/\D.*/, '');
}

/** The exit code that a transcript notes. */
function codeOf(printed: string): string {
  return /^\[(.*)\]$/m.exec(printed)?.[1] ?? '0';
}

interface Scene {
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isExact: boolean;
}

async function act({ folder, env, isExact }: Scene, step: Step): Promise<void> {
  const { command, isAwaited, wanted } = step;
  const endMs = Date.now() + (isAwaited ? AWAITED_MS : 0);
  for (;;) {
    const printed = await play(command, folder, env);
    const isRight = isExact ? printed === wanted : codeOf(printed) === codeOf(wanted);
    if (isRight) return;
    if (Date.now() < endMs) {
      await sleep(AGAIN_MS);
      continue;
    }
    if (isExact) assert.equal(printed, wanted, command);
    assert.equal(codeOf(printed), codeOf(wanted), `${command}\n${printed}`);
  }
}

for (const program of programs.length > 0 ? programs : ['kubectl']) {
  const minor = skip === false ? minorOf(program) : '';
  for (const chapter of chapters) {
    test(`kubectl 1.${minor} goes through "${chapter}" as it was recorded`, { skip }, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'megaplane-session-'));
      mkdirSync(join(folder, 'bin'));
      symlinkSync(program, join(folder, 'bin', 'kubectl'));
      const kubeconfig = join(folder, 'kubeconfig');
      const env = {
        PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
        HOME: folder,
        TZ: 'UTC',
        KUBECONFIG: kubeconfig,
      };
      const kubectl = (...args: string[]): string =>
        execFileSync(program, args, { encoding: 'utf8', env });
      try {
        copyFileSync(cluster.kubeconfig, kubeconfig);
        kubectl('create', 'namespace', chapter);
        kubectl('config', 'set-context', '--current', `--namespace=${chapter}`);
        await eventually('the account of the namespace', () => {
          return kubectl('get', 'serviceaccounts', '-o', 'name') === '' ? undefined : true;
        });
        const steps = readTranscript(readFileSync(join(FOLDER, `${chapter}.txt`), 'utf8'));
        const scene = { folder, env, isExact: minor === RECORDED_MINOR };
        for (const step of steps) await act(scene, step);
        kubectl('delete', 'namespace', chapter);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
}
