import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HpackDecoder } from './hpack-decoder.ts';
import { readRequestHead, type RequestHead } from '../http2/http2-head.ts';
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { AlikeBlocks } from './alike-blocks.ts';
import { KnownBlocks } from './known-blocks.ts';

/** PUT and https, which are indexed; a user-agent that the first block indexes. */
const FIRST = Buffer.concat([
  literal(0x40 + 2, 'PUT'),
  Buffer.from([0x87]),
  literal(4, '/first'),
  literal(0x40 + 58, 'kubelet'),
]);
const INDEXED = { before: Buffer.from([0xbf, 0x87]), behind: Buffer.from([0xbe]) };

/** A literal field whose name is in the static table, of fewer than 127 octets. */
function literal(head: number, value: string, isPacked = false): Buffer {
  const text = Buffer.from(value, 'latin1');
  if (!isPacked) return Buffer.concat([Buffer.from([head, text.length]), text]);
  const packed = Buffer.alloc(huffmanLength(text, 0, text.length));
  huffmanEncode(text, 0, text.length, packed, 0);
  return Buffer.concat([Buffer.from([head, 0x80 | packed.length]), packed]);
}

function like(path: string, isPacked = false): Buffer {
  return Buffer.concat([INDEXED.before, literal(4, path, isPacked), INDEXED.behind]);
}

class Reader {
  readonly decoder: HpackDecoder = new HpackDecoder(4096, 400);
  readonly blocks: AlikeBlocks<RequestHead> = new AlikeBlocks();
  found = 0;

  constructor() {
    this.decoder.varying = ':path';
  }

  /** What a server makes of a block: its head, malformed or too large, or a coding error. */
  read(bytes: Buffer, isShort: boolean): RequestHead | string {
    const { decoder } = this;
    const path = isShort ? this.blocks.find(decoder, bytes, 0, bytes.length) : null;
    if (isShort) {
      const isKnown = this.blocks.has(decoder, bytes, 0, bytes.length);
      assert.equal(isKnown, path !== null);
    }
    if (path?.startsWith('/') === true && this.blocks.meaning !== null) {
      this.found++;
      return { ...this.blocks.meaning, path };
    }
    if (!decoder.decode(bytes, 0, bytes.length)) return 'coding error';
    if (decoder.malformed) return 'malformed';
    if (decoder.overflow) return 'too large';
    const head = readRequestHead(decoder.fields);
    if (head === null) return 'no request';
    this.blocks.keep(decoder, bytes, 0, bytes.length, head.path, head);
    return head;
  }
}

test('blocks that differ in their path alone are read by it, and mean what they say', () => {
  const reader = new Reader();
  reader.read(FIRST, true);
  reader.read(like('/a'), true);
  assert.equal(reader.found, 0);
  for (const [path, isPacked] of [
    ['/api/v1/nodes/node-1', false],
    ['/api/v1/nodes/node-2', true],
  ] as const) {
    const head = reader.read(like(path, isPacked), true) as RequestHead;
    assert.deepEqual([head.method, head.path], ['PUT', path]);
    assert.deepEqual(head.fields, ['user-agent', 'kubelet']);
  }
  assert.equal(reader.found, 2);
});

test('blocks of two makes in turns are both known', () => {
  const reader = new Reader();
  reader.read(FIRST, true);
  // content-length is the 28th name: 15 and 13 more
  const size = Buffer.concat([Buffer.from([0x0f]), literal(13, '100')]);
  const long = (path: string): Buffer => Buffer.concat([like(path), size]);
  for (const path of ['/a', '/b', '/c']) {
    assert.equal((reader.read(like(path), true) as RequestHead).bodyBytes, -1);
    const head = reader.read(long(path), true) as RequestHead;
    assert.deepEqual([head.path, head.bodyBytes], [path, 100]);
  }
  assert.equal(reader.found, 4);
});

test('what changes the table, or may not stand there, is read the long way', () => {
  const reader = new Reader();
  reader.read(FIRST, true);
  reader.read(like('/a'), true);
  assert.equal(reader.read(like('/a\n'), true), 'malformed');
  assert.equal(reader.read(like(' /a'), true), 'malformed');
  assert.equal(reader.read(like('a'), true), 'no request');
  const found = reader.found;
  // a field more in the table: the same octets name other fields now
  reader.read(Buffer.concat([Buffer.from([0xbf, 0x87, 0x84]), literal(0x40 + 58, 'other')]), true);
  const head = reader.read(like('/b'), true);
  assert.equal(reader.found, found);
  assert.equal(head, 'no request');
});

test('a head that is too large with the path is not let through', () => {
  const reader = new Reader();
  reader.decoder.decode(FIRST, 0, FIRST.length);
  const wide = (path: string): Buffer =>
    Buffer.concat([INDEXED.before, literal(4, path), ...Array<Buffer>(4).fill(INDEXED.behind)]);
  reader.read(wide('/a'), true);
  assert.equal(typeof reader.read(wide('/b'), true), 'object');
  assert.equal(reader.found, 1);
  assert.equal(reader.read(wide(`/${'b'.repeat(120)}`), true), 'too large');
});

test('generated blocks, and such with an octet changed, mean the same either way', () => {
  const block = fc
    .tuple(
      fc.oneof(
        fc.constant(FIRST),
        fc.tuple(fc.string({ maxLength: 12 }), fc.boolean()).map(([text, isPacked]) => {
          return like(`/${text}`, isPacked);
        }),
      ),
      fc.option(fc.tuple(fc.nat(40), fc.nat(255))),
    )
    .map(([bytes, change]) => {
      if (change === null || change[0] >= bytes.length) return bytes;
      const changed = Buffer.from(bytes);
      changed[change[0]] = change[1];
      return changed;
    });
  fc.assert(
    fc.property(fc.array(block, { maxLength: 30 }), (blocks) => {
      const short = new Reader();
      const long = new Reader();
      for (const bytes of [FIRST, ...blocks]) {
        const expected = long.read(bytes, false);
        assert.deepEqual(short.read(bytes, true), expected);
        if (expected === 'coding error') return;
      }
    }),
    { numRuns: 500 },
  );
});

test('after a smaller table was acknowledged no block is known without the update it needs', () => {
  const reader = new Reader();
  const known = new KnownBlocks<RequestHead>();
  reader.read(FIRST, true);
  const bytes = like('/a');
  const head = reader.read(bytes, true) as RequestHead;
  known.keep(reader.decoder, bytes, 0, bytes.length, head);
  assert.equal(known.find(reader.decoder, bytes, 0, bytes.length), head);
  reader.decoder.acknowledgeTableSize(100);
  assert.equal(known.find(reader.decoder, bytes, 0, bytes.length), null);
  assert.equal(reader.read(bytes, true), 'coding error');
});
