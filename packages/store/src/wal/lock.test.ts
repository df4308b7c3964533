import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { lockDirectory } from './lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-lock-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a key, says so, reads all when asked to. */
const KEEPER = `
const { openStore } = await import('${import.meta.dirname}/../open/open.ts');
const open = openStore({ dataDir: process.argv[1], durability: 'fsync', prefixes: [] });
const { store } = open;
store.onLogFailure((message) => console.log('failed ' + message));
const key = Buffer.from(process.argv[2]);
store.putIf(key, 0, key.length, -1, key, 0, key.length, 0);
store.onPublish((revision) => console.log('published ' + revision));
process.stdin.on('end', async () => {
  await open.close();
  process.exit(0);
}).resume();
`;

/** The right to make namespaces: as root, or as a user of its own namespace. */
const ISOLATE = [['-p'], ['-U', '-r', '-p']]
  .map((flags) => [...flags, '-f', '--mount-proc', '--kill-child'])
  .find((flags) => spawnSync('unshare', [...flags, 'true']).status === 0);
const skip =
  ISOLATE === undefined ? 'needs unshare -p: run where namespaces may be made (util-linux)' : false;

/** A process that is the first one of a namespace of its own, as in a container. */
function contained(dir: string, key: string): ChildProcess {
  const node = [process.execPath, '--input-type=module-typescript', '-e', KEEPER, dir, key];
  return spawn('unshare', [...(ISOLATE ?? []), ...node], { stdio: ['pipe', 'pipe', 'pipe'] });
}

async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

test('a second container is refused, and neither store is harmed', { skip }, async () => {
  const dir = join(folder, 'shared');
  const first = contained(dir, 'one');
  const [said] = (await once(first.stdout ?? process.stdin, 'data')) as [Buffer];
  assert.equal(said.toString(), 'published 2\n');
  const second = contained(dir, 'two');
  const errors = textOf(second.stderr);
  const [code] = (await once(second, 'close')) as [number];
  assert.notEqual(code, 0);
  assert.match(await errors, /is in use by process \d+; stop that process/);
  const locks = readdirSync(dir).filter((name) => name.includes('lock'));
  assert.deepEqual(locks.sort(), ['kernel.lock', 'lock']);
  const rest = textOf(first.stdout);
  const ended = once(first, 'close');
  first.stdin?.end();
  assert.deepEqual(await ended, [0, null]);
  assert.doesNotMatch(await rest, /failed/);
  const third = contained(dir, 'three');
  assert.match(String(await once(third.stdout ?? process.stdin, 'data')), /^published 3\n/);
  third.stdin?.end();
  await once(third, 'close');
  assert(!readdirSync(dir).some((name) => name.includes('lock')));
});

test('a holder that was killed locks nobody out, whatever its container', { skip }, async () => {
  const dir = join(folder, 'killed');
  const first = contained(dir, 'one');
  await once(first.stdout ?? process.stdin, 'data');
  first.kill('SIGKILL');
  await once(first, 'close');
  const second = contained(dir, 'two');
  const [said] = (await once(second.stdout ?? process.stdin, 'data')) as [Buffer];
  assert.equal(said.toString(), 'published 3\n');
  second.stdin?.end();
  await once(second, 'close');
});

test('of many that open and leave a directory at once, one has it at a time', async () => {
  const dir = mkdtempSync(join(folder, 'many-'));
  const script = `
    import { mkdirSync, rmdirSync } from 'node:fs';
    const { lockDirectory } = await import('${import.meta.dirname}/lock.ts');
    let taken = 0;
    for (let i = 0; i < 150; i++) {
      let lock;
      try {
        lock = lockDirectory(process.argv[1]);
      } catch (error) {
        if (!/in use|being opened/.test(error.message)) throw error;
        continue;
      }
      mkdirSync(process.argv[1] + '/mine');
      rmdirSync(process.argv[1] + '/mine');
      taken++;
      lock.release();
    }
    console.log(taken);
  `;
  const node = ['--input-type=module-typescript', '-e', script, dir];
  const all = Array.from({ length: 4 }, () =>
    spawn(process.execPath, node, { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  const taken = await Promise.all(
    all.map(async (child) => {
      const text = textOf(child.stdout);
      const [code] = (await once(child, 'close')) as [number];
      assert.equal(code, 0);
      return Number(await text);
    }),
  );
  assert(
    taken.every((count) => count > 0),
    taken.join(' '),
  );
  lockDirectory(dir).release();
});
