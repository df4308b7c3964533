import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { withHugePages } from './huge-pages.ts';

const ENTRY = join(import.meta.dirname, '../main.ts');
const HUGE_KIB = 2048;

test('programs with much memory are told how to deal with it, beside what the user chose', () => {
  const given = (args: string[], tunables?: string): string | undefined => {
    const env = tunables === undefined ? {} : { GLIBC_TUNABLES: tunables };
    return withHugePages(args, env)['GLIBC_TUNABLES'];
  };
  const both = 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576';
  const store = `${both}:glibc.malloc.trim_threshold=1048576:glibc.malloc.arena_max=2`;
  const apiserver = `${both}:glibc.malloc.trim_threshold=134217728`;
  assert.equal(given(['store', '--ephemeral']), store);
  assert.equal(given(['store'], store), store);
  assert.equal(given(['apiserver'], 'glibc.malloc.check=1'), `glibc.malloc.check=1:${apiserver}`);
  assert.equal(
    given(['store'], 'glibc.malloc.arena_max=8:glibc.malloc.hugetlb=0'),
    'glibc.malloc.arena_max=8:glibc.malloc.hugetlb=0:' +
      'glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=1048576',
  );
  assert.equal(given(['nodes', '--create', '5']), 'glibc.malloc.hugetlb=1');
  assert.equal(given(['up']), undefined);
});

test('the memory of a store that was started by hand is huge, but for objects', async (context) => {
  const setting = '/sys/kernel/mm/transparent_hugepage/enabled';
  const report = process.report.getReport() as unknown as {
    readonly header: { readonly glibcVersionRuntime?: string };
  };
  const glibc = Number(report.header.glibcVersionRuntime?.split('.')[1] ?? 0);
  if (!existsSync(setting) || readFileSync(setting, 'utf8').includes('[never]') || glibc < 35) {
    context.skip('needs Linux with transparent huge pages and glibc 2.35');
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-huge-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const flags = ['--data-dir', dir, '--listen-client-urls', 'http://127.0.0.1:0'];
  const args = [ENTRY, 'store', ...flags];
  const store = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const lines = createInterface({ input: store.stdout });
    await Promise.race([once(lines, 'line'), once(store, 'exit')]);
    const mappings = readFileSync(`/proc/${store.pid}/smaps`, 'utf8').split(/^(?=[0-9a-f]+-)/m);
    const blocks = mappings.filter((one) => {
      const size = Number(/^Size:\s+(\d+) kB/m.exec(one)?.[1]);
      return size >= HUGE_KIB && /^VmFlags:.* hg( |$)/m.test(one);
    });
    assert.notEqual(blocks.length, 0);
    const command = readFileSync(`/proc/${store.pid}/cmdline`, 'latin1').split('\0');
    assert.ok(command.includes('--max-semi-space-size=1'), command.join(' '));
  } finally {
    store.kill();
    if (store.exitCode === null) await once(store, 'exit');
  }
});
