// Units of systemd, the chart and completions, as they are packed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { commandTable } from '../packages/cli/src/completion/table.ts';
import { makeProgram } from '../packages/cli/src/program.ts';
import { packChart, packCompletions, packUnits } from './pack/plain-files.ts';
import { tar } from './pack/tar.ts';

const ROOT = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'megaplane-plain-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const commands = commandTable(makeProgram('0.0.0', () => {}));

function lists(archive: string): string[] {
  const { status, stdout, stderr } = spawnSync('tar', ['-tzf', archive], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.trim().split('\n');
}

test('an archive is read by tar, and is the same each time', () => {
  const entries = [
    { path: 'a', kind: 'directory', mode: 0o755, owner: 7 },
    { path: 'a/b', kind: 'file', mode: 0o600, owner: 0, content: Buffer.alloc(513, 'x') },
    { path: 'a/c', kind: 'link', mode: 0o777, owner: 0, target: 'b' },
  ] as const;
  const file = join(folder, 'x.tar');
  writeFileSync(file, tar(entries));
  const { stdout } = spawnSync('tar', ['-tvf', file, '--numeric-owner'], { encoding: 'utf8' });
  assert.match(stdout, /drwxr-xr-x 7\/7 .* a\/\n-rw------- 0\/0 +513 .* a\/b\nlrwx.* a\/c -> b\n/);
  assert.deepEqual(tar(entries), readFileSync(file));
  assert.throws(() => tar([{ ...entries[0], path: 'x'.repeat(101) }]), /more than 100/);
});

test('units name commands and flags that there are', async () => {
  const files = globSync('deploy/systemd/*.service', { cwd: ROOT });
  assert(files.length >= 5);
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const [program, ...words] = (/^ExecStart=(.*)$/m.exec(text)?.[1] ?? '').split(' ');
    assert.equal(program, '/usr/bin/megaplane');
    const path = words.slice(
      0,
      words.findIndex((word) => word.startsWith('--')),
    );
    const row = commands.find((one) => one.path.join(' ') === path.join(' '));
    assert(row !== undefined, `${file}: ${path.join(' ')}`);
    for (const word of words.filter((one) => one.startsWith('--'))) {
      assert(
        row.flags.some(({ long }) => long === word),
        `${file}: ${word}`,
      );
    }
  }
  const members = lists(await packUnits(folder));
  assert(members.includes('usr/lib/systemd/system/megaplane-apiserver.service'));
  assert(members.includes('usr/lib/sysusers.d/megaplane.conf'));
});

test('systemd takes the units', (t) => {
  if (spawnSync('systemd-analyze', ['--version']).status !== 0) {
    t.skip('no systemd-analyze: apt-get install systemd');
    return;
  }
  const program = join(folder, 'megaplane');
  writeFileSync(program, '#!/bin/sh\n');
  chmodSync(program, 0o755);
  const units = globSync('deploy/systemd/*.service', { cwd: ROOT }).map((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const unit = join(folder, file.split('/').at(-1) ?? '');
    writeFileSync(
      unit,
      text.replace('/usr/bin/megaplane', program).replace(/^(User|Group)=.*\n/gm, ''),
    );
    return unit;
  });
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...units], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert(!/Unknown (key|section|lvalue)/i.test(stderr), stderr);
});

test('the chart has the version of the program, and all its files', async () => {
  const archive = await packChart(folder);
  const members = lists(archive);
  for (const name of ['Chart.yaml', 'values.yaml', 'values.schema.json', 'templates/store.yaml']) {
    assert(members.includes(`megaplane/${name}`), name);
  }
  const words = ['-xzOf', archive, 'megaplane/Chart.yaml'];
  const { stdout } = spawnSync('tar', words, { encoding: 'utf8' });
  assert.match(
    stdout,
    new RegExp(`^version: ${/megaplane-([^/]*)\.tgz$/.exec(archive)?.[1]}$`, 'm'),
  );
});

test('completions are written for each shell', async () => {
  const dir = await packCompletions(folder);
  assert.deepEqual(globSync('*', { cwd: dir }).sort(), [
    'megaplane.bash',
    'megaplane.fish',
    'megaplane.zsh',
  ]);
});
