// shell: processes, ports and a temporary directory
/** The first run of packed programs keeps the code that was compiled, for those that follow. */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A machine that is as slow as this has other troubles than a start. */
const START_MS_MAX = 60_000;
/** Told to `bin/packed.cjs`. */
const WRITE_CODE = 'MEGAPLANE_WRITE_CODE';

/**
 * Starts `etcd` and, on it, `kube-apiserver` of the directory `place`, and stops both. Resolves
 * also where they do not start: then each start compiles anew.
 */
export async function warmUp(place: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-warm-'));
  const children: ChildProcess[] = [];
  const run = async (name: string, flags: readonly string[]): Promise<string> => {
    const env = { ...process.env, [WRITE_CODE]: '1' };
    const stdio = ['ignore', 'pipe', 'ignore'] as const;
    const child = spawn(join(place, name), flags, { env, stdio: [...stdio] });
    children.push(child);
    return readyLine(child);
  };
  const timer = afterMs(START_MS_MAX, () => {
    for (const child of children) child.kill('SIGKILL');
  });
  try {
    const any = 'http://127.0.0.1:0';
    const etcdFlags = [`--listen-client-urls=${any}`, `--advertise-client-urls=${any}`];
    const ready = await run('etcd', [...etcdFlags, `--data-dir=${join(dir, 'etcd')}`]);
    const url = /http:\/\/\S*:\d+/.exec(ready)?.[0] ?? '';
    const places = [`--cert-dir=${join(dir, 'kube')}`, `--etcd-servers=${url}`];
    if (url !== '') await run('kube-apiserver', ['--secure-port=0', ...places]);
    for (const child of children.toReversed()) await ended(child);
  } finally {
    clearTimeout(timer);
    for (const child of children) child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The line with which it says that it serves; empty where it ends before. */
function readyLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    child.stdout?.on(
      'data',
      guarded((chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes('ready in') && text.endsWith('\n')) resolve(text);
      }),
    );
    child.on(
      'error',
      guarded(() => resolve('')),
    );
    child.on(
      'close',
      guarded(() => resolve('')),
    );
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}
