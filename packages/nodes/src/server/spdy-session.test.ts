import assert from 'node:assert/strict';
import { once } from 'node:events';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import { constants, createDeflate, inflateRawSync, type Deflate } from 'node:zlib';
import fc from 'fast-check';
import { SPDY_DICTIONARY } from './spdy-dictionary.ts';
import { BLOCKS_PER_TURN_MAX, SpdyReader } from './spdy-frames.ts';
import { SpdySession, STREAMS_MAX, UNREAD_BYTES_MAX } from './spdy-session.ts';
import type { SpdyStream } from './spdy-session.ts';

/** What a sync flush leaves at the end. */
const FLUSHED = Buffer.from([0, 0, 0xff, 0xff]);

/** The client's end, as Go's library writes it: one zlib context, a flush behind each block. */
class Client {
  readonly #deflate: Deflate = createDeflate({ dictionary: SPDY_DICTIONARY });
  #id = -1;

  async open(headers: Readonly<Record<string, string>>): Promise<Buffer> {
    const number = (value: number): Buffer => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes;
    };
    const words = Object.entries(headers).flatMap((pair) =>
      pair.flatMap((word) => [number(Buffer.byteLength(word)), Buffer.from(word)]),
    );
    this.#deflate.write(Buffer.concat([number(Object.keys(headers).length), ...words]));
    this.#deflate.flush(constants.Z_SYNC_FLUSH);
    let block = Buffer.alloc(0);
    while (!block.subarray(-4).equals(FLUSHED)) {
      const [part] = (await once(this.#deflate, 'data')) as [Buffer];
      block = Buffer.concat([block, part]);
    }
    this.#id += 2;
    const body = Buffer.concat([number(this.#id), number(0), Buffer.from([0, 0]), block]);
    const head = Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 0]);
    head.writeUIntBE(body.length, 5, 3);
    return Buffer.concat([head, body]);
  }
}

function data(id: number, bytes: Buffer, isLast: boolean): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(bytes.length, 4);
  head[4] = isLast ? 1 : 0;
  return Buffer.concat([head, bytes]);
}

/** Hands bytes over in pieces and waits until they have arrived. */
async function send(end: Duplex, bytes: Buffer, piece: number): Promise<void> {
  const pieces = Math.ceil(bytes.length / piece);
  for (let at = 0; at < pieces - 1; at++) end.write(bytes.subarray(at * piece, (at + 1) * piece));
  // a write is done when the other end has read it
  await new Promise((resolve) => end.write(bytes.subarray((pieces - 1) * piece), resolve));
}

test('streams, their headers and their data arrive, however the bytes are cut', async () => {
  const cases = fc.record({
    piece: fc.integer({ min: 1, max: 40 }),
    headers: fc.array(
      fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), fc.stringMatching(/^[ -~]{0,40}$/)),
      { minLength: 1, maxLength: 6 },
    ),
    bytes: fc.uint8Array({ maxLength: 200 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ piece, headers, bytes }) => {
      const [near, far] = duplexPair();
      const seen: unknown[] = [];
      const session = new SpdySession(near, Buffer.alloc(0), (stream) => {
        const parts: Buffer[] = [];
        stream.onData = (part) => parts.push(part);
        stream.onEnd = () => {
          const found = Object.fromEntries(stream.headers);
          seen.push([stream.id, { ...found }, Buffer.concat(parts).toString('hex')]);
        };
      });
      const client = new Client();
      for (const [index, own] of headers.entries()) {
        await send(far, await client.open(own), piece);
        await send(far, data(1 + 2 * index, Buffer.from(bytes), true), piece);
      }
      const text = Buffer.from(bytes).toString('hex');
      assert.deepEqual(
        seen,
        headers.map((own, index) => [1 + 2 * index, { ...own }, text]),
      );
      session.close();
    }),
    { numRuns: 30 },
  );
});

test('each reply of ours can be inflated at once, in the context of all', async () => {
  const [near, far] = duplexPair();
  const session = new SpdySession(near, Buffer.alloc(0), () => {});
  const client = new Client();
  await send(far, Buffer.concat([await client.open({ a: 'b' }), await client.open({})]), 4096);
  const first = far.read() as Buffer;
  const [second] = (await once(far.resume(), 'data')) as [Buffer];
  assert.equal(first.readUInt16BE(2), 2);
  assert.equal(second.readUInt32BE(8), 3);
  const empty = Buffer.alloc(4);
  const options = { finishFlush: constants.Z_SYNC_FLUSH };
  assert.deepEqual(inflateRawSync(first.subarray(14), options), empty);
  assert.deepEqual(inflateRawSync(second.subarray(12), options), empty);
  session.close();
});

test('bytes that are no SPDY end the connection; streams too many are refused', async () => {
  for (const bad of ['80020001000000000000', '8003000100000003ffffff', '80030001000000100000']) {
    const [near, far] = duplexPair();
    const opened: SpdyStream[] = [];
    const session = new SpdySession(near, Buffer.alloc(0), (stream) => opened.push(stream));
    far.write(Buffer.concat([Buffer.from(bad, 'hex'), Buffer.alloc(16)]));
    await once(near, 'close');
    assert(near.destroyed, bad);
    assert.deepEqual(opened, []);
    session.close();
  }
  const [near, far] = duplexPair();
  let count = 0;
  const session = new SpdySession(near, Buffer.alloc(0), () => count++);
  const client = new Client();
  for (let index = 0; index <= STREAMS_MAX; index++) {
    far.write(await client.open({ streamtype: 'data' }));
  }
  far.resume();
  await send(far, data(0, Buffer.alloc(0), false), 8);
  assert.equal(count, STREAMS_MAX);
  assert(!near.destroyed);
  session.close();
});

test('headers that inflate a thousandfold are read in turns, and none is lost', async () => {
  const [near, far] = duplexPair();
  let count = 0;
  let turns = 0;
  const session = new SpdySession(near, Buffer.alloc(0), (stream) => {
    assert.equal(stream.headers.get('x')?.length, 50_000);
    count++;
    stream.reset();
  });
  const client = new Client();
  const frames: Buffer[] = [];
  for (let index = 0; index < 4 * BLOCKS_PER_TURN_MAX; index++) {
    frames.push(await client.open({ x: 'x'.repeat(50_000) }));
  }
  far.resume();
  far.write(Buffer.concat(frames));
  let last = 0;
  while (count < 4 * BLOCKS_PER_TURN_MAX) {
    await new Promise((resolve) => setImmediate(resolve));
    assert(count - last <= 2 * BLOCKS_PER_TURN_MAX, `${count - last} in one turn`);
    last = count;
    turns++;
  }
  assert(turns >= 3);
  session.close();
});

test('who asks and does not listen is cut off, by pings as by streams', async () => {
  const ping = Buffer.from([0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]);
  const [near, far] = duplexPair();
  const session = new SpdySession(near, Buffer.alloc(0), () => undefined);
  const many = Buffer.alloc(ping.length * 4096, ping);
  const closed = once(near, 'close');
  for (let sent = 0; !near.destroyed && sent < 3 * UNREAD_BYTES_MAX; sent += many.length) {
    await Promise.race([closed, new Promise((resolve) => far.write(many, resolve))]);
  }
  assert(near.destroyed, 'four mebibytes of answers wait, and it goes on');
  session.close();
});

test('a stream of a number that was there ends the connection', async () => {
  const [near, far] = duplexPair();
  let resets = 0;
  const session = new SpdySession(near, Buffer.alloc(0), (stream) => {
    stream.onReset = () => resets++;
  });
  const [one, two] = [new Client(), new Client()];
  far.write(await one.open({ a: 'b' }));
  await two.open({ a: 'b' });
  const again = await one.open({ a: 'b' });
  again.writeUInt32BE(1, 8);
  far.write(again);
  await once(near, 'close');
  assert.equal(resets, 1);
  session.close();
});

test('a frame of megabytes that comes in small pieces is handed on as it comes', () => {
  const sizes: number[] = [];
  let ended = 0;
  const reader = new SpdyReader({
    ...{ onStream() {}, onReset() {}, onReply() {}, onGoaway() {}, onBroken() {} },
    onData(_, bytes, isLast) {
      sizes.push(bytes.length);
      if (isLast) ended++;
    },
  });
  const frame = data(1, Buffer.alloc(1 << 20), true);
  for (let at = 0; at < frame.length; at += 100) reader.read(frame.subarray(at, at + 100));
  assert.equal(ended, 1);
  assert(Math.max(...sizes) <= 100);
  assert.equal(
    sizes.reduce((sum, size) => sum + size),
    1 << 20,
  );
});
