import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { BboltImage, type Bucket, listSource } from './image.ts';
import { BboltFile } from './reader.ts';
import type { EntrySource } from './tree.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-bbolt-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const path = join(dir, 'db');

function written(buckets: readonly Bucket[]): BboltFile {
  const image = new BboltImage(buckets);
  while (!image.plan());
  const fd = openSync(path, 'w');
  let bytes = 0;
  for (let piece = image.next(); piece !== null; piece = image.next()) {
    bytes += writeSync(fd, piece);
  }
  closeSync(fd);
  assert.equal(bytes, image.size);
  return new BboltFile(path);
}

test('entries of all sizes come back from the pages that they were dealt to', () => {
  const size = fc.oneof(fc.nat(60), fc.nat(5000), fc.constantFrom(0, 4064, 4065, 20_000));
  const entries = fc.uniqueArray(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), size), {
    maxLength: 300,
    size: 'max',
    selector: ([key]) => Buffer.from(key).toString('hex'),
  });
  fc.assert(
    fc.property(entries, entries, (first, second) => {
      const pairs = [first, second].map((one) =>
        one
          .map(([key, bytes]): [Buffer, Buffer] => [Buffer.from(key), Buffer.alloc(bytes, key[0])])
          .sort((a, b) => a[0].compare(b[0])),
      );
      const file = written([
        { name: 'a', entries: listSource(pairs[0] ?? []) },
        { name: 'b', entries: listSource([]) },
        { name: 'c', entries: listSource(pairs[1] ?? []) },
      ]);
      try {
        assert.deepEqual(file.names, ['a', 'b', 'c']);
        const read = (bucket: string): [Buffer, Buffer][] =>
          [...file.entries(bucket)].map(([key, value]) => [Buffer.from(key), Buffer.from(value)]);
        assert.deepEqual(read('a'), pairs[0]);
        assert.deepEqual(read('b'), []);
        assert.deepEqual(read('c'), pairs[1]);
      } finally {
        file.close();
      }
    }),
    { numRuns: 40 },
  );
});

test('a bucket of thousands of leaves has branches over branches', () => {
  const count = 14_700;
  const value = Buffer.alloc(2100, 'v');
  const file = written([
    {
      name: 'key',
      entries: {
        count,
        keySize: () => 17,
        valueSize: () => value.length,
        writeKey: (index, out, at) => {
          out.fill(0, at, at + 17);
          return out.writeUInt32BE(index, at) + 13;
        },
        writeValue: (_index, out, at) => at + value.copy(out, at),
      },
    },
  ]);
  let next = 0;
  for (const [key] of file.entries('key')) assert.equal(key.readUInt32BE(0), next++);
  assert.equal(next, count);
  file.close();
});

test('no step of the plan looks at more than some thousand entries', () => {
  let looks = 0;
  const entries: EntrySource = {
    count: 600_000,
    keySize: () => {
      looks++;
      return 17;
    },
    valueSize: () => 1500,
    writeKey: (_, __, at) => at,
    writeValue: (_, __, at) => at,
  };
  const image = new BboltImage([{ name: 'key', entries }]);
  let most = 0;
  for (let isDone = false; !isDone;) {
    looks = 0;
    isDone = image.plan();
    most = Math.max(most, looks);
  }
  assert.ok(most <= 2100, `${most} looks in one step`);
});
