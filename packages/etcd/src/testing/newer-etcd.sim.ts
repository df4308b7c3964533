// shell
/**
 * For tests: etcd 3.6 and etcdutl, built once from their Go modules into a temporary directory.
 * Building takes minutes, so tests only look whether it was done; this file, run as a program,
 * does it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VERSION = 'v3.6.16';
const DIR = join(tmpdir(), `megaplane-etcd-${VERSION}`);
const MODULES = ['server', 'etcdutl'].map((name) => `go.etcd.io/etcd/${name}/v3`);

/** Paths of the programs, null while they are not built. */
export const NEWER: { readonly etcd: string; readonly etcdutl: string } | null =
  existsSync(join(DIR, 'server')) && existsSync(join(DIR, 'etcdutl'))
    ? { etcd: join(DIR, 'server'), etcdutl: join(DIR, 'etcdutl') }
    : null;

/** What a test that needs them is skipped with. */
export const NEWER_SKIP: string | false =
  NEWER === null
    ? 'needs etcd 3.6: "node packages/etcd/src/testing/newer-etcd.sim.ts" builds it (Go, 2 minutes)'
    : false;

function build(): void {
  mkdirSync(DIR, { recursive: true });
  const go = (...args: string[]): void => {
    const { status } = spawnSync('go', args, { cwd: DIR, stdio: 'inherit' });
    if (status !== 0) throw new Error(`go ${args.join(' ')} failed; is Go 1.24 or newer here?`);
  };
  if (!existsSync(join(DIR, 'go.mod'))) go('mod', 'init', 'peer');
  go('get', ...MODULES.map((path) => `${path}@${VERSION}`));
  go('build', '-o', '.', ...MODULES);
}

if (process.argv[1] === import.meta.filename) build();
