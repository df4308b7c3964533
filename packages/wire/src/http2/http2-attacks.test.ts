import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { trials } from '@megaplane/base/trials.sim';
import { haveSameLayout } from '@megaplane/base/layout.sim';
import { BodyBudget } from '../transport/body-budget.ts';
import type { Exchange, Handler } from '../http/exchange.ts';
import {
  ACK,
  block,
  FakeTransport,
  frame,
  get,
  HELLO,
  number,
  setting,
} from '../../test/scripted-peer.ts';
import { ERRORS, FRAMES } from './frames.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { Http2Server } from '../server/http2-server.ts';
import { SERVER_LIMITS } from '../limits.ts';
import type { WireLimits } from '../limits.ts';

/** A client by hand against a server. */
class Peer extends FakeTransport {
  readonly server: Http2Server;

  constructor(handler: Handler, limits: Partial<WireLimits> = {}) {
    super();
    this.server = new Http2Server(this, {
      handler,
      streamsBody: () => false,
      limits: { ...SERVER_LIMITS, ...limits },
      onError: (error) => assert.fail(String(error)),
      grpc: null,
      bodies: new BodyBudget(Infinity),
    });
    this.protocol = this.server;
  }
}

const hello: Handler = (exchange) => exchange.respond(200, null, 'hello');

test('rapid resets empty the purse and end the connection', () => {
  let handled = 0;
  const peer = new Peer((exchange) => {
    handled++;
    exchange.open(200, null);
  });
  peer.send(HELLO);
  for (let id = 1; id < 100_000 && !peer.ended; id += 2) {
    peer.send(Buffer.concat([get(id), frame(FRAMES.rstStream, 0, id, number(ERRORS.cancel))]));
  }
  assert.equal(peer.goaway(), ERRORS.enhanceYourCalm);
  assert(handled <= 4001, `${handled} requests were handled`);
  assert.equal(peer.server.streams.count, 0);
});

for (const [name, flood] of [
  ['PING', frame(FRAMES.ping, 0, 0, Buffer.alloc(8))],
  ['SETTINGS', frame(FRAMES.settings, 0, 0)],
  ['PRIORITY', frame(FRAMES.priority, 0, 1, Buffer.from([0, 0, 0, 3, 1]))],
  ['empty DATA', frame(FRAMES.data, 0, 1)],
  ['unknown frame', frame(99, 0, 0)],
  ['tiny WINDOW_UPDATE', frame(FRAMES.windowUpdate, 0, 1, number(1))],
] as const) {
  test(`a flood of ${name} frames ends the connection`, () => {
    const peer = new Peer(() => assert.fail('no request is complete'));
    peer.send(Buffer.concat([HELLO, frame(FRAMES.headers, 4, 1, block('/', 'POST'))]));
    for (let i = 0; i < 10_000 && !peer.ended; i++) peer.send(flood);
    assert.equal(peer.goaway(), ERRORS.enhanceYourCalm);
    const patient = new Peer(() => assert.fail('no request is complete'));
    patient.send(Buffer.concat([HELLO, ACK, frame(FRAMES.headers, 4, 1, block('/', 'POST'))]));
    for (let i = 0; i < 10_000; i++) {
      patient.send(flood);
      if (i % 1000 === 0) patient.server.tick((patient.timeMs += 500));
    }
    assert.equal(patient.goaway(), -1);
  });
}

test('a path with blanks or control characters is no path, also in a block that is known', () => {
  const paths: string[] = [];
  const peer = new Peer((exchange) => {
    paths.push(exchange.path);
    exchange.respond(200, null, null);
  });
  peer.send(HELLO);
  const sent = ['/a b', '/a', '/b', '/a b', '/c\td', '/d\x01', '/\x7f', '/\xe9', '/ '];
  for (const [index, path] of sent.entries()) peer.send(get(2 * index + 1, path));
  assert.deepEqual(paths, ['/a', '/b', '/\xe9']);
  assert.deepEqual(peer.resets(), ['1:1', '7:1', '9:1', '11:1', '13:1', '17:1']);
});

test('CONTINUATION without end is cut by count and by size', () => {
  for (const size of [0, 16_000]) {
    const peer = new Peer(hello);
    peer.send(Buffer.concat([HELLO, frame(FRAMES.headers, 1, 1, Buffer.alloc(0))]));
    const more = frame(FRAMES.continuation, 0, 1, Buffer.alloc(size, 0x82));
    for (let i = 0; i < 100 && !peer.ended; i++) peer.send(more);
    assert.equal(peer.goaway(), ERRORS.enhanceYourCalm);
  }
});

test('more streams than allowed are refused and the others go on', () => {
  const open: Exchange[] = [];
  const peer = new Peer((exchange) => open.push(exchange), { streamsMax: 3 });
  peer.send(HELLO);
  for (const id of [1, 3, 5, 7, 9]) peer.send(get(id));
  assert.deepEqual(peer.resets(), ['7:7', '9:7']);
  for (const exchange of open) exchange.respond(200, null, 'x');
  peer.settle();
  peer.send(get(11));
  assert.equal(open.length, 4);
});

test('a peer without windows cannot make answers pile up, and gets all when it has some', () => {
  const text = Buffer.alloc(100_000, 'q');
  const limits = { queuesBytesMax: 450_000 };
  const peer = new Peer((exchange) => exchange.respond(200, null, text), limits);
  const noWindow = frame(FRAMES.settings, 0, 0, setting(4, 0));
  peer.send(Buffer.concat([HELLO, noWindow, frame(FRAMES.windowUpdate, 0, 0, number(1 << 30))]));
  for (let id = 1; id <= 15; id += 2) peer.send(get(id));
  assert.deepEqual(peer.resets(), ['11:7', '13:7', '15:7']);
  assert.equal(peer.server.queuedBytes, 500_000);
  peer.send(frame(FRAMES.rstStream, 0, 1, number(ERRORS.cancel)));
  assert.equal(peer.server.queuedBytes, 400_000);
  peer.send(get(17));
  for (const id of [3, 5, 7, 9, 17]) {
    // In two steps: a stream in the middle of its queue counts what is left.
    peer.send(frame(FRAMES.windowUpdate, 0, id, number(30_000)));
    peer.send(frame(FRAMES.windowUpdate, 0, id, number(70_000)));
  }
  assert.equal(peer.server.queuedBytes, 0);
  const sent = peer.frames().filter(({ type }) => type === FRAMES.data);
  assert.equal(
    sent.reduce((sum, { payload }) => sum + payload.length, 0),
    500_000,
  );
});

test('nor can one that opens its streams before the first of them is answered', () => {
  const open: Exchange[] = [];
  const peer = new Peer((exchange) => open.push(exchange), { queuesBytesMax: 100_000 });
  peer.send(Buffer.concat([HELLO, frame(FRAMES.settings, 0, 0, setting(4, 0))]));
  for (let id = 1; id <= 15; id += 2) peer.send(get(id));
  for (const exchange of open) exchange.respond(200, null, Buffer.alloc(90_000, 'q'));
  peer.settle();
  assert.deepEqual(peer.resets(), ['11:11', '13:11', '15:11']);
  assert.equal(peer.server.queuedBytes, 450_000);
});

test('an answer of any size waits for windows, and is sent to its end', () => {
  const text = Buffer.alloc(70 * 1024 * 1024, 'l');
  const peer = new Peer((exchange) => {
    exchange.open(200, null);
    exchange.write(text.subarray(0, 5));
    exchange.write(text);
    exchange.end();
  });
  peer.send(Buffer.concat([HELLO, frame(FRAMES.settings, 0, 0, setting(4, 0)), get(1), get(3)]));
  assert.deepEqual(peer.resets(), []);
  const window = number(80 * 1024 * 1024);
  peer.send(Buffer.concat([0, 3].map((id) => frame(FRAMES.windowUpdate, 0, id, window))));
  const sent = peer.frames().filter(({ type, id }) => type === FRAMES.data && id === 3);
  const bytes = sent.reduce((sum, { payload }) => sum + payload.length, 0);
  assert.equal(bytes, text.length + 5);
  assert.equal((sent.at(-1)?.flags ?? 0) & 1, 1);
});

test('a stream that was reset while it was answered leaves nothing to the next one', () => {
  const large = Buffer.alloc(40 * 1024 * 1024, 'r');
  const peer = new Peer((exchange) => {
    if (exchange.path === '/small') return exchange.respond(200, null, 'small');
    exchange.open(200, null);
    for (let i = 0; i < 3; i++) exchange.write(large);
    if (!exchange.closed) exchange.end();
  });
  peer.send(Buffer.concat([HELLO, frame(FRAMES.settings, 0, 0, setting(4, 0)), get(1)]));
  assert.deepEqual(peer.resets(), ['1:11']);
  assert.equal(peer.server.queuedBytes, 0);
  peer.send(get(3, '/small'));
  peer.send(frame(FRAMES.windowUpdate, 0, 3, number(100)));
  assert.equal(peer.frames().findLast(({ type }) => type === FRAMES.data)?.payload.length, 5);
});

test('a reader that gives windows back in small steps reads a large answer to its end', () => {
  const size = 40 * 1024 * 1024;
  const text = Buffer.alloc(size, 'w');
  const peer = new Peer((exchange) => exchange.respond(200, null, text));
  peer.send(HELLO);
  peer.send(get(1));
  const step = number(4096);
  const steps = [frame(FRAMES.windowUpdate, 0, 0, step), frame(FRAMES.windowUpdate, 0, 1, step)];
  for (let left = size; left > 0; left -= 4096) peer.send(Buffer.concat(steps));
  peer.settle();
  assert.equal(peer.goaway(), -1);
  const bodies = peer.frames().filter(({ type }) => type === FRAMES.data);
  assert.equal(
    bodies.reduce((sum, { payload }) => sum + payload.length, 0),
    size,
  );
});

test('a peer that never reads costs bounded memory and is not read', () => {
  const peer = new Peer((exchange) => exchange.respond(200, null, 'y'.repeat(1000)));
  peer.send(Buffer.concat([HELLO, frame(FRAMES.windowUpdate, 0, 0, number(1 << 30))]));
  peer.reads = false;
  let id = 1;
  while (!peer.paused && id < 200_000) {
    peer.send(get(id));
    id += 2;
  }
  assert(peer.paused);
  assert(peer.stuckBytes < SERVER_LIMITS.outputBytesMax + 200_000, `${peer.stuckBytes} octets`);
  peer.reads = true;
  peer.stuckBytes = 0;
  peer.server.drained();
  peer.settle();
  assert(!peer.paused);
  peer.timeMs += 1;
  peer.reads = false;
  peer.stuckBytes = 1;
  peer.server.tick((peer.timeMs += 1000));
  peer.server.receive(ACK, 0, ACK.length);
  peer.server.tick((peer.timeMs += SERVER_LIMITS.stallMsMax + 1000));
  assert(peer.ended);
});

test('a PING is answered ahead of what a hold or a window keeps back', () => {
  const peer = new Peer((exchange) => {
    exchange.connection.hold();
    exchange.respond(200, null, 'z'.repeat(100_000));
  });
  peer.send(HELLO);
  peer.send(get(1));
  const before = peer.frames().length;
  peer.send(frame(FRAMES.ping, 0, 0, Buffer.from('12345678')));
  const [pong] = peer.frames().slice(before);
  assert.equal(pong?.type, FRAMES.ping);
  assert.equal(String(pong?.payload), '12345678');
  assert.equal(peer.frames().length, before + 1);
  peer.server.release();
  peer.settle();
  const sent = peer.frames().filter((one) => one.type === FRAMES.data);
  assert.equal(
    sent.reduce((sum, one) => sum + one.payload.length, 0),
    65_535,
  );
});

test('the first frame is SETTINGS, also where the first request asks for a hold', () => {
  const peer = new Peer((exchange) => {
    exchange.connection.hold();
    exchange.respond(200, null, 'held');
  });
  peer.send(Buffer.concat([HELLO, get(1)]));
  peer.send(frame(FRAMES.ping, 0, 0, Buffer.from('12345678')));
  const types = peer.frames().map(({ type }) => type);
  assert.equal(types[0], FRAMES.settings);
  assert(types.includes(FRAMES.ping));
  assert(!types.includes(FRAMES.headers));
});

test('a connection that was not read for a hold is read again after it', () => {
  let held = 0;
  const peer = new Peer((exchange) => {
    exchange.connection.hold();
    held++;
    exchange.respond(200, null, 'w'.repeat(10_000));
  });
  peer.send(Buffer.concat([HELLO, frame(FRAMES.windowUpdate, 0, 0, number(1 << 30))]));
  const gets = Array.from({ length: 200 }, (_, i) => get(i * 2 + 1));
  peer.send(Buffer.concat(gets));
  assert(peer.paused);
  assert(held < 40, `${held} exchanges are held`);
  while (held > 0) {
    held--;
    peer.server.release();
    if (peer.server.holds === 0) peer.settle();
  }
  assert(!peer.paused);
  const heads = peer.frames().filter((one) => one.type === FRAMES.headers);
  assert.equal(heads.length, 200);
});

test('what is held never leaves when the connection fails', () => {
  const peer = new Peer((exchange) => {
    exchange.connection.hold();
    exchange.respond(200, null, 'not durable yet');
  });
  peer.send(HELLO);
  peer.send(get(1));
  peer.send(frame(FRAMES.data, 0, 0, Buffer.alloc(1)));
  assert.equal(peer.goaway(), ERRORS.protocol);
  assert(!Buffer.concat(peer.received).includes('not durable'));
});

test('nothing of a long answer leaves before the handler has decided about a hold', () => {
  const peer = new Peer((exchange) => {
    exchange.respond(200, null, 'y'.repeat(500_000));
    exchange.connection.hold();
  });
  const window = frame(FRAMES.settings, 0, 0, setting(4, 1 << 24));
  peer.send(Buffer.concat([HELLO, window, frame(FRAMES.windowUpdate, 0, 0, number(1 << 24))]));
  peer.send(get(1));
  peer.settle();
  const isAnswer = (one: { readonly type: number }): boolean =>
    one.type === FRAMES.headers || one.type === FRAMES.data;
  assert.deepEqual(peer.frames().filter(isAnswer), []);
  peer.server.release();
  peer.settle();
  const sent = peer.frames().filter((one) => one.type === FRAMES.data);
  assert.equal(
    sent.reduce((sum, one) => sum + one.payload.length, 0),
    500_000,
  );
});

test('a frame in two pieces, a silent peer and a slow one keep what the engine compiled', () => {
  const [peer, other] = [new Peer(hello), new Peer(hello)];
  for (const one of [peer, other]) one.timeMs = 1000.5;
  for (const one of [peer, other]) one.send(Buffer.concat([HELLO, ACK]));
  const request = get(1);
  peer.send(request.subarray(0, 20));
  peer.timeMs += 0.25;
  peer.send(request.subarray(20));
  assert.ok(haveSameLayout(peer.server, other.server), 'after a frame that was cut');
  peer.stuckBytes = 1;
  peer.server.tick(peer.timeMs);
  assert.ok(haveSameLayout(peer.server, other.server), 'after bytes were stuck');
  peer.server.sendPing();
  assert.ok(haveSameLayout(peer.server, other.server), 'after a PING');
});

test('slow heads and silent peers are cut in time', () => {
  const slow = new Peer(hello);
  slow.send(Buffer.concat([HELLO, ACK, get(1).subarray(0, 12)]));
  slow.server.tick((slow.timeMs += 5000));
  assert(!slow.ended);
  slow.server.tick((slow.timeMs += 6000));
  assert(slow.ended);
  const nothing = new Peer(hello);
  nothing.server.tick((nothing.timeMs += 11_000));
  assert(nothing.ended);
  const silent = new Peer(hello);
  silent.send(Buffer.concat([HELLO, ACK]));
  silent.server.tick((silent.timeMs += SERVER_LIMITS.keepaliveMs + 1));
  silent.server.flush();
  assert.equal(silent.frames().at(-1)?.type, FRAMES.ping);
  silent.server.tick((silent.timeMs += SERVER_LIMITS.keepaliveTimeoutMs + 1));
  assert(silent.ended);
  const body = new Peer(hello);
  body.send(Buffer.concat([HELLO, ACK, frame(FRAMES.headers, 4, 1, block('/', 'POST'))]));
  body.server.tick((body.timeMs += SERVER_LIMITS.bodyIdleMsMax + 1));
  body.server.flush();
  assert.deepEqual(body.resets(), ['1:8']);
});

/** What a well-behaved or confused client may do, as the generator draws it. */
type Step =
  | { readonly kind: 'get' | 'post'; readonly size: number; readonly pad: number }
  | { readonly kind: 'window'; readonly which: number; readonly bytes: number }
  | { readonly kind: 'initial'; readonly bytes: number }
  | { readonly kind: 'frameSize'; readonly bytes: number }
  | { readonly kind: 'reset'; readonly which: number }
  | { readonly kind: 'ping' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('get' as const, 'post' as const),
    size: fc.nat({ max: 60_000 }),
    pad: fc.nat({ max: 255 }),
  }),
  fc.record({
    kind: fc.constant('window' as const),
    which: fc.nat({ max: 10 }),
    bytes: fc.integer({ min: 1, max: 40_000 }),
  }),
  fc.record({ kind: fc.constant('initial' as const), bytes: fc.nat({ max: 70_000 }) }),
  fc.record({
    kind: fc.constant('frameSize' as const),
    bytes: fc.integer({ min: 16_384, max: 100_000 }),
  }),
  fc.record({ kind: fc.constant('reset' as const), which: fc.nat({ max: 10 }) }),
  fc.record({ kind: fc.constant('ping' as const) }),
);

/** Plays the client's side by the book and checks all that the server sends against it. */
class Model {
  readonly #peer: Peer;
  readonly #decoder = new HpackDecoder(4096, 1e6);
  readonly #wanted = new Map<
    number,
    { size: number; got: number; window: number; done: boolean }
  >();
  readonly #cancelled = new Set<number>();
  readonly #sizes = new Map<string, number>();
  #window = 65_535;
  #initial = 65_535;
  #frameBytes = 16_384;
  #nextId = 1;
  #seen = 0;
  #pongs = 0;
  #pings = 0;

  constructor() {
    this.#peer = new Peer((exchange) => {
      const size = this.#sizes.get(exchange.path) ?? 0;
      const expected = exchange.method === 'POST' ? size : 0;
      assert.equal(exchange.body.length, expected);
      for (const octet of exchange.body) if (octet !== 5) assert.fail('the body is damaged');
      if (size % 3 === 0) return exchange.respond(200, null, Buffer.alloc(size, 7));
      let left = size;
      exchange.open(200, null);
      const produce = (): void => {
        if (exchange.closed || left < 0) return;
        for (let room = exchange.writable(); left > 0 && room > 0; room = exchange.writable()) {
          const count = Math.min(left, room, 7000);
          exchange.write(Buffer.alloc(count, 7));
          left -= count;
        }
        if (left > 0) return;
        left = -1;
        exchange.end();
      };
      exchange.onWritable = produce;
      return produce();
    });
    this.#peer.send(HELLO);
    this.#check();
  }

  play(one: Step, pieces: number): void {
    const bytes = this.#bytes(one);
    if (bytes !== null) this.#peer.send(bytes, pieces);
    this.#check();
  }

  #bytes(one: Step): Buffer | null {
    const open = [...this.#wanted.keys()].filter((id) => this.#wanted.get(id)?.done === false);
    switch (one.kind) {
      case 'get':
      case 'post':
        return this.#request(one.kind === 'post', one.size, one.pad);
      case 'ping':
        this.#pings++;
        return frame(FRAMES.ping, 0, 0, Buffer.alloc(8));
      case 'initial':
        for (const stream of this.#wanted.values()) stream.window += one.bytes - this.#initial;
        this.#initial = one.bytes;
        return frame(FRAMES.settings, 0, 0, setting(4, one.bytes));
      case 'frameSize':
        this.#frameBytes = one.bytes;
        return frame(FRAMES.settings, 0, 0, setting(5, one.bytes));
      case 'window': {
        const id = one.which === 0 ? 0 : open[one.which % Math.max(1, open.length)];
        if (id === undefined) return null;
        if (id === 0) this.#window += one.bytes;
        else this.#add(id, one.bytes);
        return frame(FRAMES.windowUpdate, 0, id, number(one.bytes));
      }
      case 'reset': {
        const id = open[one.which % Math.max(1, open.length)];
        if (id === undefined) return null;
        this.#wanted.delete(id);
        this.#cancelled.add(id);
        return frame(FRAMES.rstStream, 0, id, number(8));
      }
    }
  }

  #add(id: number, bytes: number): void {
    const stream = this.#wanted.get(id);
    if (stream !== undefined) stream.window += bytes;
  }

  #request(post: boolean, size: number, pad: number): Buffer {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#sizes.set(`/${id}`, size);
    this.#wanted.set(id, { size, got: 0, window: this.#initial, done: false });
    const fields = block(`/${id}`, post ? 'POST' : 'GET');
    const cut = pad % fields.length;
    const padded = Buffer.concat([Buffer.from([pad]), fields.subarray(0, cut), Buffer.alloc(pad)]);
    const parts = [
      frame(FRAMES.headers, 0x8 | (post ? 0 : 1), id, padded),
      frame(FRAMES.continuation, 4, id, fields.subarray(cut)),
    ];
    for (let left = size, first = true; post && (left > 0 || first); first = false) {
      const count = Math.min(left, 16_000);
      left -= count;
      const body = Buffer.concat([Buffer.from([pad]), Buffer.alloc(count, 5), Buffer.alloc(pad)]);
      parts.push(frame(FRAMES.data, 0x8 | (left === 0 ? 1 : 0), id, body));
    }
    return Buffer.concat(parts);
  }

  /** New frames of the server: each must keep to windows, sizes and the order of a stream. */
  #check(): void {
    const frames = this.#peer.frames();
    for (const one of frames.slice(this.#seen)) {
      assert(one.payload.length <= this.#frameBytes, 'a frame is larger than allowed');
      if (one.type === FRAMES.headers) this.#onHead(one.id, one.payload, one.flags);
      else if (one.type === FRAMES.data) this.#onData(one.id, one.payload, one.flags);
      else if (one.type === FRAMES.ping) this.#pongs++;
      else assert([FRAMES.settings, FRAMES.windowUpdate].includes(one.type as 4), `${one.type}`);
    }
    this.#seen = frames.length;
    assert.equal(this.#pongs, this.#pings);
    if (this.#window <= 0) return;
    for (const [id, stream] of this.#wanted) {
      // Nothing may wait that could be sent.
      if (!stream.done) assert(stream.window <= 0, `stream ${id} waits with a window`);
    }
  }

  #onHead(id: number, payload: Buffer, flags: number): void {
    assert(this.#decoder.decode(payload, 0, payload.length));
    assert.equal(this.#decoder.fields[1], '200');
    const stream = this.#wanted.get(id);
    assert(stream !== undefined || this.#cancelled.has(id));
    if (stream === undefined || (flags & 1) === 0) return;
    assert.equal(stream.size, 0);
    stream.done = true;
  }

  #onData(id: number, payload: Buffer, flags: number): void {
    this.#window -= payload.length;
    assert(this.#window >= 0, 'beyond the window of the connection');
    const stream = this.#wanted.get(id);
    if (stream === undefined) {
      assert(this.#cancelled.has(id));
      return;
    }
    stream.window -= payload.length;
    stream.got += payload.length;
    assert(payload.length === 0 || stream.window >= 0, 'beyond the window of the stream');
    assert(!stream.done);
    if ((flags & 1) === 0) return;
    assert.equal(stream.got, stream.size);
    stream.done = true;
  }
}

test('generated clients get every octet, within their windows, whatever they do', () => {
  const runs = process.env['MEGAPLANE_LONG'] === '1' ? 20_000 : 250;
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 40, size: 'max' }),
      fc.constantFrom(1_000_000, 1_000_000, 9973, 100),
      (steps, pieces) => {
        const model = new Model();
        for (const one of steps) model.play(one, pieces);
      },
    ),
    trials(runs),
  );
});

test('random frames never throw, and are answered by whole frames', () => {
  const runs = process.env['MEGAPLANE_LONG'] === '1' ? 50_000 : 1500;
  const random = fc.array(
    fc.record({
      type: fc.nat({ max: 11 }),
      flags: fc.nat({ max: 255 }),
      id: fc.nat({ max: 9 }),
      payload: fc.oneof(
        fc.uint8Array({ maxLength: 40, size: 'max' }),
        fc.constantFrom(block('/'), block('/', 'POST'), setting(4, 0), number(9), Buffer.alloc(8)),
      ),
    }),
    { maxLength: 30, size: 'max' },
  );
  fc.assert(
    fc.property(random, fc.integer({ min: 1, max: 200 }), (frames, pieces) => {
      const peer = new Peer(hello);
      peer.send(Buffer.concat([HELLO, ACK]));
      for (const one of frames) {
        peer.send(frame(one.type, one.flags, one.id, Buffer.from(one.payload)), pieces);
      }
      peer.frames();
      peer.server.tick(peer.timeMs + 1000);
      peer.server.closed();
      assert.equal(peer.server.streams.count, 0);
    }),
    trials(runs),
  );
});
