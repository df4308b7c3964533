import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { FAILURE, type PrefixPolicy, type StorageOptions } from '../contract.ts';
import { FILE_HEADER_BYTES, FORMAT_VERSION, encodeFileHeader } from '../wal/frame.ts';
import { type OpenStore, openStore } from './open.ts';
import { newPage } from '../mvcc/ranges.ts';
import type { Store } from '../mvcc/store.ts';

const made: string[] = [];

function newDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-store-'));
  made.push(dir);
  return dir;
}

afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function options(dataDir: string, prefixes: readonly PrefixPolicy[] = []): StorageOptions {
  return { dataDir, durability: 'fsync', prefixes };
}

function put(store: Store, key: string, value: string, lease = 0): number {
  const bytes = Buffer.from(key + value, 'latin1');
  return store.putIf(bytes, 0, key.length, -1, bytes, key.length, bytes.length, lease);
}

function remove(store: Store, key: string): number {
  const bytes = Buffer.from(key, 'latin1');
  return store.deleteIf(bytes, 0, key.length, -1);
}

/** All live keys as `key=value@mod/create/version`, joined. */
function dump(store: Store, revision = 0): string {
  const page = newPage();
  const all = Buffer.from([0, 0]);
  assert.equal(store.range(all, 0, 1, 1, 2, revision, 0, page), 0);
  assert.equal(page.length, page.count);
  const rows: string[] = [];
  for (const ref of page.refs.subarray(0, page.length)) {
    const bytes = store.record(ref);
    const key = bytes.latin1Slice(store.keyAt(ref), store.keyTo(ref));
    const value = bytes.latin1Slice(store.valueAt(ref), store.valueTo(ref)).slice(0, 20);
    const numbers = [store.modRevision(ref), store.createRevision(ref), store.version(ref)];
    rows.push(`${key}=${value}@${numbers.join('/')}`);
  }
  return rows.join(' ');
}

async function published(store: Store): Promise<void> {
  for (let i = 0; store.isPending; i++) {
    assert(i < 5000, 'the log did not answer');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function withStore<T>(opened: OpenStore, use: (store: Store) => T | Promise<T>): Promise<T> {
  try {
    return await use(opened.store);
  } finally {
    await opened.close();
  }
}

test('a store finds its keys, versions, history, leases and identity again', async () => {
  const dir = newDir();
  const first = openStore(options(dir));
  const before = await withStore(first, async (store) => {
    for (let i = 0; i < 300; i++) put(store, `/pods/${i % 100}`, `v${i}`);
    remove(store, '/pods/7');
    const lease = store.leases.grant(0x12345678, 0x9abcdef0, 1000, performance.now());
    put(store, '/leased', 'x', lease);
    put(store, '/large', 'y'.repeat(9_000_000));
    assert(store.isPending);
    await published(store);
    assert.equal(store.publishedRevision, store.appliedRevision);
    store.compact(150);
    return [dump(store), dump(store, 200), dump(store, 150), store.appliedRevision];
  });
  const second = openStore(options(dir));
  assert.deepEqual(second.clusterId, first.clusterId);
  assert.deepEqual(second.memberId, first.memberId);
  assert.equal(second.term, first.term + 1);
  await withStore(second, (store) => {
    assert.deepEqual(before, [
      dump(store),
      dump(store, 200),
      dump(store, 150),
      store.appliedRevision,
    ]);
    assert.equal(store.compactRevision, 150);
    const lease = store.leases.find(0x12345678, 0x9abcdef0);
    const keys: string[] = [];
    store.leases.eachKey(lease, (ref) => {
      keys.push(store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref)));
    });
    assert.deepEqual(keys, ['/leased']);
    assert(store.leases.remainingMs(lease, performance.now()) > 990_000);
  });
});

test('watchers and publication wait for the log', async () => {
  const opened = openStore(options(newDir()));
  await withStore(opened, async (store) => {
    const events: number[] = [];
    const key = Buffer.from('k\0', 'latin1');
    store.watch(key, 0, 1, 1, 1, 0, {
      onEvents: (id) => {
        for (let ref = store.watchNext(id); ref > 0; ref = store.watchNext(id)) {
          events.push(store.modRevision(ref));
          assert(store.publishedRevision >= store.modRevision(ref));
        }
      },
    });
    const revision = put(store, 'k', 'v');
    assert.equal(store.publishedRevision, revision - 1);
    assert.deepEqual(events, []);
    await published(store);
    assert.deepEqual(events, [revision]);
  });
});

test('a snapshot replaces the log before it, and a restart finds the same', async () => {
  const dir = newDir();
  const prefixes = [{ prefix: '/leases/', historyBytesMax: 4000 }];
  const first = openStore(options(dir, prefixes));
  const before = await withStore(first, async (store) => {
    for (let i = 0; i < 3000; i++) {
      put(store, `/leases/${i % 50}`, `v${i}`.padEnd(100, '.'));
      if (i % 3 === 0) put(store, `/pods/${(i * 7919) % 1000}`, `v${i}`);
      if (i % 30 === 0) remove(store, `/pods/${(i * 7919) % 1000}`);
    }
    put(store, '/large', 'y'.repeat(9_000_000));
    await published(store);
    store.compact(500);
    first.snapshot();
    for (let i = 0; i < 100; i++) put(store, `/pods/${i}`, `after ${i}`);
    while (!readdirSync(dir).some((name) => name.endsWith('.mps'))) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    for (let i = 0; i < 100; i++) put(store, `/pods/${i * 2}`, `later ${i}`);
    return [dump(store), store.appliedRevision] as const;
  });
  assert(!existsSync(join(dir, 'log-00000000.mpl')));
  const second = openStore(options(dir, prefixes));
  await withStore(second, (store) => {
    assert.deepEqual([dump(store), store.appliedRevision], before);
    const pods = Buffer.from('/pods//pods0', 'latin1');
    const leases = Buffer.from('/leases//leases0', 'latin1');
    assert(store.count(pods, 0, 6, 6, 12, 600) > 0);
    assert.equal(store.count(leases, 0, 8, 8, 16, 600), -1);
    const page = newPage();
    store.range(pods, 0, 6, 6, 12, 2000, 0, page);
    assert.equal(page.length, page.count);
  });
});

test('keys of a prefix without a log are gone, and no revision comes twice', async () => {
  const dir = newDir();
  const prefixes = [{ prefix: '/none/', durability: 'none' as const }];
  const last = await withStore(openStore(options(dir, prefixes)), async (store) => {
    put(store, '/kept', 'a');
    await published(store);
    const revision = put(store, '/none/x', 'b');
    assert.equal(store.publishedRevision, revision);
    return revision;
  });
  await withStore(openStore(options(dir, prefixes)), (store) => {
    assert.match(dump(store), /^\/kept=a@\d+\/\d+\/1$/);
    assert(put(store, '/none/x', 'c') > last);
  });
});

test('a second process is told who holds the directory', async () => {
  const dir = newDir();
  await withStore(openStore(options(dir)), () => {
    assert.throws(() => openStore(options(dir)), {
      message:
        `the data directory ${dir} is in use by process ${process.pid}; ` +
        'stop that process, or give this one another directory',
    });
  });
  writeFileSync(join(dir, 'lock'), `${process.pid} 1 stale-boot\n`);
  await withStore(openStore(options(dir)), (store) => void put(store, 'k', 'v'));
  assert(!existsSync(join(dir, 'lock')));
});

/** Writes ten frames and returns the path of their segment. */
async function tenFrames(dir: string): Promise<string> {
  await withStore(openStore(options(dir)), async (store) => {
    for (let i = 0; i < 10; i++) {
      put(store, `key${i}`, `value${i}`);
      await published(store);
    }
  });
  return join(dir, 'log-00000000.mpl');
}

test('a torn tail is cut off, kept in a copy, and what is before it is there', async () => {
  const whole = newDir();
  const path = await tenFrames(whole);
  // The last frame, of 96 bytes, only says that the process ended in order.
  const size = readFileSync(path).length - 96;
  for (const lost of [1, 15, 16, 60, 100, 170, 300]) {
    const dir = newDir();
    const copy = join(dir, 'log-00000000.mpl');
    copyFileSync(path, copy);
    truncateSync(copy, size - lost);
    const opened = openStore(options(dir));
    await withStore(opened, async (store) => {
      const isCut = opened.replayed.cutBytes > 0;
      assert(isCut || (size - lost - FILE_HEADER_BYTES) % 16 === 0);
      if (isCut) assert.equal(statSync(`${copy}.torn`).mode & 0o777, 0o600);
      const keys = dump(store).split(' ').length;
      assert(keys >= 7 && keys < 10, `${keys} keys with ${lost} bytes lost`);
      assert.equal(store.appliedRevision, keys + 1);
      assert.equal(put(store, 'new', 'x'), keys + 2);
      await published(store);
    });
    await withStore(openStore(options(dir)), (store) => assert.match(dump(store), /new=x/));
  }
});

test('a flipped byte in the middle is refused with file, offset and advice', async () => {
  const dir = newDir();
  const path = await tenFrames(dir);
  const bytes = readFileSync(path);
  for (let at = FILE_HEADER_BYTES; at < bytes.length - 400; at += 37) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 0x10;
    writeFileSync(path, damaged);
    const place = new RegExp(`${path} is damaged at byte \\d+: .*"truncate -s \\d+ ${path}"`);
    assert.throws(() => openStore(options(dir)), { message: place });
    assert.deepEqual(readFileSync(path), damaged);
  }
});

test('a log of a newer version and a directory of etcd are refused', () => {
  const dir = newDir();
  const id = Buffer.alloc(8);
  const header = { version: FORMAT_VERSION + 1, kind: 1, segment: 0, firstRevision: 2, chain: 0 };
  writeFileSync(
    join(dir, 'log-00000000.mpl'),
    encodeFileHeader({ ...header, clusterId: id, memberId: id }),
  );
  assert.throws(() => openStore(options(dir)), /written by a newer version \(format 3/);
  const foreign = newDir();
  writeFileSync(join(foreign, 'member'), '');
  assert.throws(() => openStore(options(foreign)), /megaplane store import/);
  assert.throws(() => openStore(options('/proc/nowhere')), /cannot be used/);
});

const CHILD = `
import { openStore } from ${JSON.stringify(new URL('./open.ts', import.meta.url).href)};
const { store } = openStore({ dataDir: process.argv[1], durability: 'fsync', prefixes: [] });
let next = store.appliedRevision;
store.onPublish((revision) => {
  process.stdout.write(revision + '\\n');
  setTimeout(write, 1);
});
function write() {
  for (let i = 0; i < 20; i++) {
    const text = 'key' + (next % 97) + 'value' + next++;
    const at = text.indexOf('value');
    const bytes = Buffer.from(text);
    store.putIf(bytes, 0, at, -1, bytes, at, bytes.length, 0);
  }
}
store.onDirty();
setInterval(() => {}, 1000);
`;

test('kill -9 loses nothing that was published, and revisions go on after it', async () => {
  const dir = newDir();
  const rounds = process.env['MEGAPLANE_LONG'] === undefined ? 4 : 1000;
  let floor = 1;
  for (let round = 0; round < rounds; round++) {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', CHILD, dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let seen = '';
    child.stdout.setEncoding('latin1').on('data', (text: string) => (seen += text));
    while (seen.length < 400) {
      assert(child.exitCode === null, `the child ended with ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await new Promise((resolve) => setTimeout(resolve, round * 3));
    child.kill('SIGKILL');
    await once(child, 'close');
    const last = Number(seen.trimEnd().split('\n').at(-1));
    assert(last > floor);
    await withStore(openStore(options(dir)), (store) => {
      assert(store.appliedRevision >= last, `${store.appliedRevision} after ${last}`);
      // The value names the revision before its own: nothing was given out twice.
      for (const row of dump(store).split(' ')) {
        const [, value, mod] = /value(\d+)@(\d+)/.exec(row) ?? [];
        assert.equal(Number(mod), Number(value) + 1);
      }
      floor = store.appliedRevision;
    });
  }
});

const FULL = `
import { openStore } from ${JSON.stringify(new URL('./open.ts', import.meta.url).href)};
const { store } = openStore({ dataDir: process.argv[1], durability: 'fsync', prefixes: [] });
let told = 0;
store.onPublish((revision) => (told = revision));
store.onLogFailure((message) => {
  const key = Buffer.from('late');
  const refused = store.putIf(key, 0, 4, -1, key, 0, 4, 0);
  process.stdout.write(JSON.stringify({ message, told, refused }));
  process.exit(3);
});
const value = Buffer.alloc(10000, 'x');
setInterval(() => {
  for (let i = 0; i < 20; i++) {
    const key = Buffer.from('key' + store.appliedRevision);
    store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
  }
}, 1);
`;

const CAN_LIMIT = existsSync('/bin/bash') ? false : 'needs bash, to limit the size of files';

test(
  'a disk that takes no more stops the store with a clear line',
  { skip: CAN_LIMIT },
  async () => {
    const dir = newDir();
    const limited = 'trap "" XFSZ; ulimit -f 4000; exec "$0" "$@"';
    const node = [process.execPath, '--input-type=module-typescript', '-e', FULL, dir];
    const child = spawn('/bin/bash', ['-c', limited, ...node], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    await once(child, 'close');
    assert.equal(child.exitCode, 3);
    const last = JSON.parse(output) as { message: string; told: number; refused: number };
    assert.match(last.message, /the log in .* cannot be written: .*EFBIG/);
    assert.equal(last.refused, FAILURE.logFailed);
    await withStore(openStore(options(dir)), (store) => {
      assert(last.told > 20 && store.appliedRevision >= last.told);
    });
  },
);

test('documents of any size are found again, from the log and from a snapshot', async () => {
  const dir = newDir();
  const sizes = [1, 23, 24, 25, 5_000_000];
  const content = (size: number): Buffer => Buffer.alloc(size, `document ${size} `);
  await withStore(openStore(options(dir)), async (store) => {
    for (const size of sizes) store.setDocument(size, Buffer.alloc(100, 'old'));
    put(store, 'a', 'b');
    for (const size of sizes) store.setDocument(size, content(size));
    store.setDocument(7, content(7));
    store.setDocument(7, Buffer.alloc(0));
    await published(store);
  });
  for (let round = 0; round < 2; round++) {
    const opened = openStore(options(dir));
    await withStore(opened, async (store) => {
      assert.deepEqual(
        [...store.documents.keys()].sort((a, b) => a - b),
        sizes,
      );
      for (const size of sizes) assert(store.documents.get(size)?.equals(content(size)));
      assert.equal(dump(store), 'a=b@2/2/1');
      opened.snapshot();
      for (let i = 0; !readdirSync(dir).some((name) => name.startsWith('snapshot-')); i++) {
        assert(i < 3000, 'no snapshot was made');
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    });
  }
});

test('after a power cut in buffered mode no revision comes twice, all list again', async () => {
  const dir = newDir();
  const buffered: StorageOptions = { dataDir: dir, durability: 'buffered', prefixes: [] };
  const crashed = newDir();
  const first = openStore(buffered, 'boot 1');
  let shown = 0;
  await withStore(first, async (store) => {
    for (let i = 0; i < 20; i++) put(store, `k${i}`, 'kept');
    await published(store);
    for (let i = 0; i < 20; i++) put(store, `k${i}`, 'lost');
    await published(store);
    shown = store.publishedRevision;
    for (const name of readdirSync(dir)) copyFileSync(join(dir, name), join(crashed, name));
  });
  rmSync(join(crashed, 'lock'), { force: true });
  const name = readdirSync(crashed).find((file) => file.startsWith('log-')) ?? '';
  const log = readFileSync(join(crashed, name));
  truncateSync(join(crashed, name), log.indexOf('lost') - 60);
  const reopen = { ...buffered, dataDir: crashed };
  let next = 0;
  const check = async (store: Store): Promise<void> => {
    assert.match(dump(store), /k0=kept@/);
    assert(store.appliedRevision > shown, `${store.appliedRevision} was shown before ${shown}`);
    const all = Buffer.from([0, 0]);
    const cursor = store.watch(all, 0, 1, 1, 2, shown + 1, { onEvents: () => {} });
    assert.equal(store.watchNext(cursor), FAILURE.compacted);
    store.unwatch(cursor);
    next = put(store, 'k0', 'new');
    await published(store);
  };
  await withStore(openStore(reopen, 'boot 2'), check);
  const afterwards = next;
  // An orderly end, and one more start: nothing is skipped, the cut is remembered.
  await withStore(openStore(reopen, 'boot 3'), async (store) => {
    assert.equal(store.appliedRevision, afterwards);
    assert.equal(store.compactRevisionOf(Buffer.from([0, 0]), 0, 1, 1, 2), afterwards - 1);
    await published(store);
  });
});

test('a killed process in buffered mode loses nothing and skips no revision', async () => {
  const dir = newDir();
  const copy = newDir();
  const buffered: StorageOptions = { dataDir: dir, durability: 'buffered', prefixes: [] };
  let last = 0;
  await withStore(openStore(buffered, 'boot 1'), async (store) => {
    put(store, 'a', '1');
    last = put(store, 'a', '2');
    await published(store);
    for (const name of readdirSync(dir)) copyFileSync(join(dir, name), join(copy, name));
  });
  rmSync(join(copy, 'lock'), { force: true });
  await withStore(openStore({ ...buffered, dataDir: copy }, 'boot 1'), (store) => {
    assert.equal(store.appliedRevision, last);
    assert.equal(dump(store), `a=2@${last}/2/2`);
    assert.equal(store.compactRevisionOf(Buffer.from('a'), 0, 1, 1, 1), 0);
  });
});

test('changes of one revision keep their order through a snapshot', async () => {
  const dir = newDir();
  let revision = 0;
  await withStore(openStore(options(dir)), async (store) => {
    const bytes = Buffer.from('ba');
    store.begin();
    store.put(bytes, 0, 1, bytes, 0, 1, 0);
    store.put(bytes, 1, 2, bytes, 1, 2, 0);
    revision = store.commit();
    await published(store);
  });
  for (let round = 0; round < 2; round++) {
    const opened = openStore(options(dir));
    await withStore(opened, async (store) => {
      const all = Buffer.from([0, 0]);
      const cursor = store.watch(all, 0, 1, 1, 2, revision, { onEvents: () => {} });
      const keys = [store.watchNext(cursor), store.watchNext(cursor)].map((ref) =>
        store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref)),
      );
      assert.deepEqual(keys, ['b', 'a']);
      opened.snapshot();
      for (let i = 0; !readdirSync(dir).some((name) => name.startsWith('snapshot-')); i++) {
        assert(i < 3000, 'no snapshot was made');
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    });
  }
});

test('keys of a prefix without a log do not come back from a snapshot', async () => {
  const dir = newDir();
  const unlogged = options(dir, [{ prefix: '/n/', durability: 'none' }]);
  const opened = openStore(unlogged);
  await withStore(opened, async (store) => {
    put(store, '/n/x', 'old');
    put(store, '/y', 'kept');
    await published(store);
    opened.snapshot();
    for (let i = 0; !readdirSync(dir).some((name) => name.startsWith('snapshot-')); i++) {
      assert(i < 3000, 'no snapshot was made');
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  await withStore(openStore(unlogged), (store) => assert.match(dump(store), /^\/y=kept@\S+$/));
});

test('after an orderly end every byte of a buffered log is known to be flushed', async () => {
  const dir = newDir();
  const buffered: StorageOptions = { dataDir: dir, durability: 'buffered', prefixes: [] };
  await withStore(openStore(buffered), async (store) => {
    for (let i = 0; i < 5; i++) {
      put(store, `k${i}`, 'value');
      await published(store);
    }
  });
  const path = join(dir, 'log-00000000.mpl');
  const bytes = readFileSync(path);
  const at = bytes.lastIndexOf('value');
  bytes[at] = 0x56;
  writeFileSync(path, bytes);
  assert.throws(() => openStore(buffered), /log-00000000\.mpl is damaged at byte \d+/);
});

test('no part of a data directory of etcd is taken for one of ours', () => {
  const home = newDir();
  for (const part of ['snap', 'wal']) mkdirSync(join(home, 'member', part), { recursive: true });
  writeFileSync(join(home, 'member', 'snap', 'db'), '');
  writeFileSync(join(home, 'member', 'wal', '0000000000000000-0000000000000000.wal'), '');
  for (const dir of [home, ...['', 'snap', 'wal'].map((part) => join(home, 'member', part))]) {
    const before = readdirSync(dir);
    assert.throws(() => openStore(options(dir)), {
      message: new RegExp(
        `^${dir} is .*a data directory of etcd; .* import ${home} --data-dir NEW`,
      ),
    });
    assert.deepEqual(readdirSync(dir), before);
  }
});
