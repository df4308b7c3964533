import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { listen } from './listener.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-listener-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const handler = (): void => undefined;

test('a file that is no socket is never taken away for one', async () => {
  const file = join(folder, 'notes');
  writeFileSync(file, 'buy milk');
  await assert.rejects(listen({ unixPath: file, handler }), /notes: it exists and is no socket/);
  assert.equal(readFileSync(file, 'utf8'), 'buy milk');
  const directory = join(folder, 'directory');
  mkdirSync(directory);
  await assert.rejects(listen({ unixPath: directory, handler }), /directory: it exists and is no/);
  const long = join(folder, 'x'.repeat(108));
  await assert.rejects(listen({ unixPath: long, handler }), /the path has more bytes than/);
});

test('a socket of a process that was killed is replaced, a living one is not', async () => {
  const path = join(folder, 'socket');
  const kill = "() => process.kill(process.pid, 'SIGKILL')";
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, ${kill})`;
  spawnSync(process.execPath, ['-e', script]);
  assert(existsSync(path));
  const listener = await listen({ unixPath: path, handler });
  await assert.rejects(listen({ unixPath: path, handler }), /another process listens there/);
  await listener.close();
});
