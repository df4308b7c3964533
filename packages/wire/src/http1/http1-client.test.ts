import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeTransport } from '../../test/fake-transport.ts';
import { BodyBudget } from '../transport/body-budget.ts';
import { prepareFields, type ClientStream, type ResponseSink } from '../http/client.ts';
import { Http1Client } from './http1-client.ts';
import { Http1Server } from './http1-server.ts';
import { CLIENT_LIMITS, SERVER_LIMITS } from '../limits.ts';

const FIELDS = prepareFields(['accept', 'a/b']);

/** Writes down what it hears. */
class Recorder implements ResponseSink {
  readonly lines: string[] = [];
  bodies: Record<number, string> = {};

  onHead(stream: ClientStream, status: number, fields: readonly string[]): void {
    this.lines.push(`${stream.tag} head ${status} ${fields.join(' ')}`.trim());
  }
  onData(stream: ClientStream, bytes: Buffer, start: number, end: number): void {
    const text = bytes.toString('latin1', start, end);
    this.bodies[stream.tag] = (this.bodies[stream.tag] ?? '') + text;
  }
  onEnd(stream: ClientStream, failure: { kind: string } | null, trailers: readonly string[]): void {
    assert.equal(stream.closed, true);
    this.lines.push(`${stream.tag} ${failure?.kind ?? 'end'} ${trailers.join(' ')}`.trim());
  }
}

function dial(): { peer: FakeTransport; client: Http1Client } {
  const peer = new FakeTransport();
  const client = new Http1Client(peer, { authority: 'host:1', limits: CLIENT_LIMITS });
  peer.protocol = client;
  return { peer, client };
}

test('requests go out one at a time, in order', () => {
  const { peer, client } = dial();
  const sink = new Recorder();
  client.request('GET', '/1?a=b', FIELDS, null, sink, 1);
  client.request('PUT', '/2', FIELDS, 'body', sink, 2);
  let isOpen = false;
  client.onOpen = () => (isOpen = true);
  assert.equal(client.inFlight, 2);
  peer.settle();
  assert.equal(isOpen, true);
  assert.equal(peer.text, 'GET /1?a=b HTTP/1.1\r\nhost: host:1\r\naccept: a/b\r\n\r\n');
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhi');
  assert.match(peer.text, /PUT \/2 .*content-length: 4\r\n\r\nbody$/s);
  peer.receive('HTTP/1.1 204 No Content\r\n\r\n');
  assert.deepEqual(sink.lines, [
    '1 head 200 content-length 2 x-a b',
    '1 end',
    '2 head 204',
    '2 end',
  ]);
  assert.deepEqual(sink.bodies, { 1: 'hi' });
  assert.equal(client.capacity, 1);
});

const ANSWERS =
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' +
  '3\r\nabc\r\n2\r\nde\r\n0\r\nx-t: 1\r\n\r\n' +
  'HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nxyz' +
  'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n' +
  'HTTP/1.1 200\r\n\r\nto the end';

test('answers mean the same however their bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(ANSWERS.length), { maxLength: 30 }), (cuts) => {
      const { peer, client } = dial();
      const sink = new Recorder();
      const methods = ['GET', 'GET', 'HEAD', 'GET'];
      for (const [tag, method] of methods.entries()) {
        client.request(method, '/', FIELDS, null, sink, tag);
      }
      peer.settle();
      const ends = [0, ...cuts.toSorted((a, b) => a - b), ANSWERS.length];
      // A server answers only what it was asked: the stages of the answers are cut apart.
      const second = ANSWERS.indexOf('HTTP/1.1 404');
      const third = ANSWERS.indexOf('HTTP/1.1 200 OK', second);
      const stages = [0, second, third, ANSWERS.indexOf('HTTP/1.1 200\r')];
      const points = [...ends, ...stages].sort((a, b) => a - b);
      for (const [i, from] of points.entries()) peer.receive(ANSWERS.slice(from, points[i + 1]));
      client.ended();
      assert.deepEqual(sink.bodies, { 0: 'abcde', 1: 'xyz', 3: 'to the end' });
      const ended = sink.lines.filter((line) => line.includes('end'));
      assert.deepEqual(ended, ['0 end x-t 1', '1 end', '2 end', '3 end']);
    }),
    { numRuns: 200 },
  );
});

test('a lost connection tells what was sent from what was not', () => {
  const { peer, client } = dial();
  const sink = new Recorder();
  let reason = '';
  client.onClosed = (text) => (reason = text);
  for (let tag = 0; tag < 3; tag++) client.request('GET', '/', FIELDS, null, sink, tag);
  peer.settle();
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc');
  client.ended();
  assert.deepEqual(sink.lines.slice(1), ['0 disconnected', '1 refused', '2 refused']);
  assert.equal(reason, 'the server closed the connection');
  client.request('GET', '/', FIELDS, null, sink, 3);
  assert.equal(sink.lines.at(-1), '3 refused');
});

test('connection: close ends the connection after the answer and refuses the rest', () => {
  const { peer, client } = dial();
  const sink = new Recorder();
  let isDraining = false;
  client.onDraining = () => (isDraining = true);
  client.request('GET', '/', FIELDS, null, sink, 0);
  client.request('GET', '/', FIELDS, null, sink, 1);
  peer.settle();
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  assert.deepEqual(sink.lines.slice(1), ['0 end', '1 refused']);
  assert.equal(isDraining, true);
  assert.equal(peer.isEnded, true);
});

test('servers that do not speak HTTP, or speak out of turn, are cut off', () => {
  for (const [isAsked, bytes, reason] of [
    [true, 'SSH-2.0-OpenSSH\r\n', /no HTTP\/1.1: the first line/],
    [true, 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', /more than one/],
    [true, 'HTTP/1.1 101 Switching Protocols\r\n\r\n', /without being asked/],
    [false, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', /belong to no answer/],
  ] as const) {
    const { peer, client } = dial();
    let why = '';
    client.onClosed = (text) => (why = text);
    if (isAsked) client.request('GET', '/', FIELDS, null, new Recorder());
    peer.settle();
    peer.receive(bytes);
    assert.match(why, reason);
    assert.equal(peer.isDestroyed, true);
  }
});

test('giving up the request under way cuts the connection, a waiting one does not', () => {
  const { peer, client } = dial();
  const sink = new Recorder();
  const first = client.request('GET', '/', FIELDS, null, sink, 0);
  client.request('GET', '/', FIELDS, null, sink, 1).cancel();
  peer.settle();
  assert.equal(peer.isDestroyed, false);
  first.cancel();
  first.cancel();
  assert.deepEqual(sink.lines, ['1 cancelled', '0 cancelled']);
  assert.equal(peer.isDestroyed, true);
});

test('both ends understand each other, bodies streamed both ways and held up', () => {
  const { peer: down, client } = dial();
  const up = new FakeTransport();
  let received = '';
  up.protocol = new Http1Server(up, {
    handler: (exchange) => {
      exchange.onBody = (bytes, start, end): void => {
        received += bytes.toString('latin1', start, end);
      };
      exchange.onBodyEnd = (): void => {
        exchange.open(200, 'a/b');
        exchange.write(Buffer.from(`got ${received}`));
        exchange.end(['x-done', '1']);
      };
    },
    streamsBody: () => true,
    bodies: new BodyBudget(Infinity),
    limits: SERVER_LIMITS,
    onError: assert.ifError,
  });
  const carry = (): void => {
    for (const bytes of down.writes.splice(0)) up.receive(bytes);
    for (const bytes of up.writes.splice(0)) down.receive(bytes);
  };
  const sink = new Recorder();
  const stream = client.open('POST', '/', FIELDS, sink, 7);
  stream.write(Buffer.from('one '));
  down.settle();
  carry();
  assert.equal(received, 'one ');
  stream.write(Buffer.from('two'));
  stream.end();
  down.settle();
  stream.pause();
  down.settle();
  assert.equal(down.isPaused, true);
  stream.resume();
  down.settle();
  carry();
  assert.deepEqual(sink.bodies, { 7: 'got one two' });
  assert.equal(sink.lines.at(-1), '7 end x-done 1');
});
