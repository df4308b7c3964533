import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { trials } from '@megaplane/base/trials.sim';
import { ACK, FakeTransport, frame, number, setting } from '../../test/scripted-peer.ts';
import { prepareFields } from '../http/client.ts';
import type { ClientStream, ResponseSink } from '../http/client.ts';
import { ERRORS, FRAMES, PREFACE } from './frames.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { fieldBlock } from '../hpack/hpack-encoder.ts';
import { Http2Client } from './http2-client.ts';
import { CLIENT_LIMITS } from '../limits.ts';

const PLAIN = prepareFields(['accept', '*/*', 'x-long', 'y'.repeat(100)]);
const OK = fieldBlock([':status', '200']);
const SETTINGS = frame(FRAMES.settings, 0, 0);

/** A server by hand against a client; its transcript is one line per callback. */
class Script extends FakeTransport implements ResponseSink {
  readonly client: Http2Client = new Http2Client(this, {
    authority: 'test:1',
    limits: CLIENT_LIMITS,
  });
  readonly lines: string[] = [];

  constructor() {
    super();
    this.protocol = this.client;
    this.settle();
    const first = this.received[0] ?? Buffer.alloc(0);
    assert(first.subarray(0, PREFACE.length).equals(PREFACE));
    this.received[0] = first.subarray(PREFACE.length);
  }

  ask(path: string, tag = 0, body: string | null = null): ClientStream {
    const stream = this.client.request(
      body === null ? 'GET' : 'POST',
      path,
      PLAIN,
      body,
      this,
      tag,
    );
    this.settle();
    return stream;
  }

  onHead(stream: ClientStream, status: number): void {
    this.lines.push(`${stream.tag} head ${status}`);
  }

  onData(stream: ClientStream, _bytes: Buffer, start: number, end: number): void {
    this.lines.push(`${stream.tag} data ${end - start}`);
  }

  onEnd(stream: ClientStream, failure: { kind: string } | null): void {
    this.lines.push(`${stream.tag} end ${failure?.kind ?? 'complete'}`);
  }

  heads(): string[][] {
    const decoder = new HpackDecoder(4096, 1e6);
    return this.frames()
      .filter((one) => one.type === FRAMES.headers)
      .map((one) => {
        assert(decoder.decode(one.payload, 0, one.payload.length));
        return decoder.fields;
      });
  }
}

test('fields are sent once and then named, whatever the server does to the table', () => {
  const script = new Script();
  script.send(SETTINGS);
  for (let i = 0; i < 5; i++) script.ask(`/${i}`, i);
  const sizes = script.frames().filter((one) => one.type === FRAMES.headers);
  assert((sizes[0]?.payload.length ?? 0) > 100);
  assert((sizes[4]?.payload.length ?? 0) < 16);
  script.send(frame(FRAMES.settings, 0, 0, setting(1, 0)));
  script.ask('/none', 6);
  script.send(frame(FRAMES.settings, 0, 0, setting(1, 4096)));
  script.ask('/again', 7, 'body');
  for (const fields of script.heads()) {
    assert.equal(fields[fields.indexOf('x-long') + 1], 'y'.repeat(100));
    assert.equal(fields[fields.indexOf(':authority') + 1], 'test:1');
  }
  assert.equal(script.heads().at(-1)?.at(-1), '4');
});

test('GOAWAY refuses what the server did not see and lets the rest end', () => {
  const script = new Script();
  script.send(SETTINGS);
  for (const tag of [1, 2, 3]) script.ask('/', tag);
  let draining = 0;
  script.client.onDraining = () => draining++;
  script.send(frame(FRAMES.goaway, 0, 0, Buffer.concat([number(3), number(0)])));
  script.send(frame(FRAMES.headers, 4, 1, OK));
  script.send(frame(FRAMES.data, 1, 1, Buffer.alloc(7)));
  script.send(frame(FRAMES.headers, 5, 3, OK));
  script.ask('/late', 4);
  assert.equal(draining, 1);
  const end = ['1 head 200', '1 data 7', '1 end complete', '2 head 200', '2 end complete'];
  assert.deepEqual(script.lines, ['3 end refused', ...end, '4 end refused']);
  assert(script.ended);
});

test('requests wait for the streams that the server allows', () => {
  const script = new Script();
  script.send(frame(FRAMES.settings, 0, 0, setting(3, 2)));
  for (let tag = 1; tag <= 5; tag++) script.ask('/', tag);
  assert.equal(script.heads().length, 2);
  assert.equal(script.client.capacity, 0);
  for (const id of [1, 3, 5]) script.send(frame(FRAMES.headers, 5, id, OK));
  assert.equal(script.heads().length, 5);
  script.send(frame(FRAMES.rstStream, 0, 7, number(ERRORS.refusedStream)));
  script.send(frame(FRAMES.rstStream, 0, 9, number(ERRORS.internal)));
  assert.deepEqual(script.lines.slice(-2), ['4 end refused', '5 end reset']);
  assert.equal(script.client.inFlight, 0);
});

test('a server that breaks the rules ends the connection, each request once', () => {
  const wrong = [
    frame(FRAMES.headers, 5, 2, OK),
    frame(FRAMES.headers, 5, 9, OK),
    frame(FRAMES.pushPromise, 4, 1, Buffer.concat([number(2), OK])),
    frame(FRAMES.data, 0, 0, Buffer.alloc(1)),
    frame(FRAMES.headers, 4, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff])),
    frame(FRAMES.windowUpdate, 0, 0, number(0)),
  ];
  for (const bytes of wrong) {
    const script = new Script();
    script.send(SETTINGS);
    script.ask('/', 1);
    script.send(bytes);
    assert(script.ended);
    assert.deepEqual(script.lines, ['1 end disconnected']);
  }
});

test('a paused answer is not given more window', () => {
  const script = new Script();
  script.send(Buffer.concat([SETTINGS, ACK]));
  const stream = script.ask('/', 1);
  stream.pause();
  script.send(frame(FRAMES.headers, 4, 1, OK));
  const piece = frame(FRAMES.data, 0, 1, Buffer.alloc(16_384));
  for (let i = 0; i < 200; i++) script.send(piece);
  const updates = (): number[] =>
    script.frames().flatMap((one) => (one.type === FRAMES.windowUpdate ? [one.id] : []));
  assert(!updates().includes(1));
  stream.resume();
  script.settle();
  assert(updates().includes(1));
});

test('random frames of a server never throw, and every request ends once', () => {
  const payload = fc.oneof(
    fc.uint8Array({ maxLength: 30, size: 'max' }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(OK, fieldBlock(['grpc-status', '0']), number(7), Buffer.alloc(8)),
  );
  const random = fc.record({
    type: fc.nat({ max: 10 }),
    flags: fc.nat({ max: 255 }),
    id: fc.nat({ max: 9 }),
    payload,
  });
  const runs = process.env['MEGAPLANE_LONG'] === '1' ? 50_000 : 1500;
  fc.assert(
    fc.property(
      fc.array(random, { maxLength: 30, size: 'max' }),
      fc.integer({ min: 1, max: 90 }),
      (all, size) => {
        const script = new Script();
        script.send(SETTINGS);
        let tag = 0;
        for (const one of all) {
          script.ask('/', ++tag, tag % 3 === 0 ? 'body' : null);
          script.send(frame(one.type, one.flags, one.id, one.payload), size);
        }
        script.client.tick(script.timeMs + 1000);
        script.client.closed();
        const ends = script.lines.filter((line) => line.includes(' end '));
        assert.equal(ends.length, tag);
        assert.equal(new Set(ends.map((line) => line.split(' ')[0])).size, tag);
      },
    ),
    trials(runs),
  );
});
