import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { homePath } from '../client/home-path.ts';
import { logOptions, type LogOptions } from './log-lines.ts';
import { LogReader } from './log-reader.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-logs-'));
const NOW_MS = Date.parse('2026-01-02T00:00:10Z');
after(() => rmSync(folder, { recursive: true, force: true }));

const CRI =
  '2026-01-02T00:00:00.5Z stdout F one\n' +
  '2026-01-02T00:00:01.123456789Z stderr P tw\n' +
  '2026-01-02T00:00:01.2Z stderr F o\n' +
  '2026-01-02T00:00:03Z stdout F three\n';
const DOCKER =
  '{"log":"one\\n","stream":"stdout","time":"2026-01-02T00:00:00.5Z"}\n' +
  '{"log":"two\\n","stream":"stderr","time":"2026-01-02T00:00:03Z"}\n';

async function shown(text: string, query: string): Promise<string> {
  const file = join(folder, 'a.log');
  writeFileSync(file, text);
  const options = logOptions(new URLSearchParams(query), NOW_MS);
  assert(typeof options !== 'string');
  const parts: Buffer[] = [];
  const target = { isClosed: false, write: (bytes: Buffer): void => void parts.push(bytes) };
  await (await LogReader.open(file)).print(options, target);
  return Buffer.concat(parts).toString('utf8');
}

test('lines of both formats are shown as a kubelet shows them', async () => {
  assert.equal(await shown(CRI, ''), 'one\ntwo\nthree\n');
  assert.equal(await shown(DOCKER, ''), 'one\ntwo\n');
  assert.equal(await shown(CRI, 'tailLines=1'), 'three\n');
  assert.equal(await shown(CRI, 'tailLines=0'), '');
  assert.equal(await shown(`${CRI}2026-01-02T00:00:04Z stdout F cut`, 'tailLines=1'), 'three\n');
  assert.equal(
    await shown(`${CRI}2026-01-02T00:00:04Z stdout F cut`, 'tailLines=9'),
    'one\ntwo\nthree\ncut',
  );
  assert.equal(await shown(CRI, 'limitBytes=5'), 'one\nt');
  assert.equal(await shown(CRI, 'sinceSeconds=8'), 'three\n');
  assert.equal(await shown(CRI, 'sinceTime=2026-01-02T00:00:01Z'), 'two\nthree\n');
  assert.equal(await shown(CRI, 'stream=Stderr'), 'two\n');
  assert.equal(
    await shown(CRI, 'timestamps=true'),
    '2026-01-02T00:00:00.500000000Z one\n2026-01-02T00:00:01.123456789Z two\n' +
      '2026-01-02T00:00:03.000000000Z three\n',
  );
});

test('what cannot be read or understood is told in the words of a kubelet', async () => {
  await assert.rejects(
    () => LogReader.open(join(folder, 'none.log')),
    /failed to try resolving symlinks in path ".*none.log": lstat .*: no such file or directory/,
  );
  await assert.rejects(
    () => shown('just text\n', ''),
    /get parse function: unsupported log format: "just text\\n"/,
  );
  const reader = await LogReader.open(folder);
  const target = { isClosed: false, write: (): void => assert.fail() };
  const options = logOptions(new URLSearchParams(''), NOW_MS) as LogOptions;
  await assert.rejects(
    () => reader.print(options, target),
    /^Error: failed to read log file ".*": read .*: is a directory$/,
  );
  for (const query of ['tailLines=x', 'sinceTime=yesterday', 'stream=Both', 'limitBytes=-1']) {
    const found = logOptions(new URLSearchParams(query), NOW_MS);
    assert.equal(found, '{"message": "Unable to decode query."}', query);
  }
});

test('a followed log goes on where it is added to, rotated and cut', async () => {
  const file = join(folder, 'followed.log');
  const line = (text: string): string => `2026-01-02T00:00:00Z stdout F ${text}\n`;
  writeFileSync(file, line('first'));
  let text = '';
  const target = {
    isClosed: false,
    write: (bytes: Buffer): void => void (text += bytes.toString('utf8')),
  };
  const until = async (wanted: string): Promise<void> => {
    for (let turn = 0; turn < 1000 && text !== wanted; turn++) await sleep(20);
    assert.equal(text, wanted);
  };
  const options = logOptions(new URLSearchParams('follow=true'), NOW_MS) as LogOptions;
  const done = (await LogReader.open(file)).print(options, target);
  await until('first\n');
  appendFileSync(file, line('second'));
  await until('first\nsecond\n');
  renameSync(file, `${file}.1`);
  writeFileSync(file, line('third'));
  await until('first\nsecond\nthird\n');
  writeFileSync(file, line('4th'));
  await until('first\nsecond\nthird\n4th\n');
  appendFileSync(file, line('half a line').slice(0, -6));
  await sleep(150);
  appendFileSync(file, ` line\n`);
  renameSync(file, `${file}.1`);
  writeFileSync(file, line('after'));
  await until('first\nsecond\nthird\n4th\nhalf a line\nafter\n');
  appendFileSync(file, line('never ended').slice(0, -1));
  await sleep(150);
  renameSync(file, `${file}.1`);
  writeFileSync(file, line('last'));
  await until('first\nsecond\nthird\n4th\nhalf a line\nafter\nlast\n');
  target.isClosed = true;
  await done;
});

test('a path is read as kwok reads it: from the home directory, or from where we are', () => {
  assert.equal(homePath('~/a/../b.log'), join(homedir(), 'b.log'));
  assert.equal(homePath('b.log'), join(process.cwd(), 'b.log'));
  assert.equal(homePath('~a/b.log'), join(process.cwd(), '~a/b.log'));
  assert.equal(homePath(''), '');
});
