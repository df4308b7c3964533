/** Port-forward over WebSocket, as clients in Python and JavaScript speak it. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { servePortForward } from './port-forward.ts';
import type { ForwardItem } from './pod-rules.ts';

const PAGE = { location: '/', code: 200, headers: [], body: 'hello' };
const ROUTES: ForwardItem = { ports: [80], command: [], target: null, httpRoutes: [PAGE] };
const CAT: ForwardItem = { ports: [81], command: ['cat'], target: null, httpRoutes: [] };

/** A frame as clients send it, with a mask that changes nothing. */
function frame(opcode: number, data: Buffer): Buffer {
  const { length } = data;
  const size =
    length < 126 ? [0x80 | length] : [0x80 | 126, Math.floor(length / 256), length % 256];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...size, 0, 0, 0, 0]), data]);
}

/** Payloads of what a server sent; it sends no more than 64 KiB at once here. */
function payloads(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const head = short < 126 ? 2 : 4;
    const length = short < 126 ? short : bytes.readUInt16BE(at + 2);
    found.push(bytes.subarray(at + head, at + head + length));
    at += head + length;
  }
  return found;
}

interface Session {
  readonly head: string;
  /** All that was sent. */
  readonly text: () => string;
  readonly sent: () => Buffer[];
  readonly send: (channel: number, text: string) => void;
  readonly until: (channel: number, holds: (text: string) => boolean) => Promise<string>;
  readonly socket: Duplex;
}

function open(query: string, protocol: string): Session {
  const chunks: Buffer[] = [];
  const socket = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  const headers = { upgrade: 'websocket', 'sec-websocket-protocol': protocol };
  const request = { headers } as unknown as IncomingMessage;
  const find = (port: number): ForwardItem | Error =>
    port === 80 ? ROUTES : port === 81 ? CAT : new Error(`no forward for ${port}`);
  const search = new URLSearchParams(query);
  servePortForward(request, socket, Buffer.alloc(0), 'p/default', search, find);
  const isText = protocol.includes('base64');
  const all = (): Buffer => Buffer.concat(chunks);
  const body = (): Buffer => all().subarray(all().indexOf('\r\n\r\n') + 4);
  const sent = (): Buffer[] =>
    payloads(body()).map((payload) => {
      if (!isText) return payload;
      const data = Buffer.from(payload.toString('latin1', 1), 'base64');
      return Buffer.concat([Buffer.from([(payload[0] ?? 0) - 0x30]), data]);
    });
  const textOf = (channel: number): string =>
    Buffer.concat(
      sent()
        .filter((one) => one[0] === channel)
        .map((one) => one.subarray(1)),
    )
      .subarray(2)
      .toString();
  return {
    head: all().toString('latin1', 0, all().indexOf('\r\n\r\n')),
    text: () => all().toString('latin1'),
    sent,
    socket,
    send: (channel, text) => {
      const data = Buffer.from(text);
      const payload = isText
        ? Buffer.from(String.fromCharCode(0x30 + channel) + data.toString('base64'))
        : Buffer.concat([Buffer.from([channel]), data]);
      // in two pieces, neither of which is whole
      const bytes = frame(isText ? 1 : 2, payload);
      socket.emit('data', bytes.subarray(0, 9));
      socket.emit('data', bytes.subarray(9));
    },
    until: async (channel, holds) => {
      while (!holds(textOf(channel))) await turn();
      return textOf(channel);
    },
  };
}

for (const protocol of ['v4.channel.k8s.io', 'v4.base64.channel.k8s.io']) {
  test(`each port has a channel for data and one for failures, over ${protocol}`, async () => {
    const { head, sent, send, until, socket } = open('port=80,81&port=99', protocol);
    assert.match(head, /^HTTP\/1.1 101 /);
    assert.match(head, new RegExp(`sec-websocket-protocol: ${protocol}`, 'i'));
    assert.deepEqual(
      sent()
        .slice(0, 4)
        .map((one) => [...one]),
      [
        [0, 80, 0],
        [1, 80, 0],
        [2, 81, 0],
        [3, 81, 0],
      ],
    );
    const why = await until(5, (text) => text !== '');
    assert.equal(why, 'error forwarding port 99 to pod p/default, uid : no forward for 99');
    send(2, 'to and fro');
    assert.equal(await until(2, (text) => text.length === 10), 'to and fro');
    send(0, 'GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n');
    assert.match(await until(0, (text) => text.includes('hello')), /^HTTP\/1.1 200 OK/);
    // nobody has these channels
    send(7, 'x');
    send(200 - 0x30, 'x');
    socket.destroy();
  });
}

test('the connection ends when every forwarded one has', async () => {
  const { sent, socket } = open('port=99', 'v4.channel.k8s.io');
  while (!socket.writableEnded) await turn();
  assert.deepEqual([...(sent().at(-1) ?? [])], [0x03, 0xe8], 'closed in the normal way');
});

test('a query without ports, or with what is none, is refused', () => {
  for (const [query, why] of [
    ['', /query parameter "port" is required/],
    ['port=', /query parameter "port" cannot be empty/],
    ['port=80,x', /unable to parse "80,x" as a port/],
    ['port=70000', /unable to parse "70000" as a port/],
    ['port=0', /port "0" must be > 0/],
    [`port=${'80,'.repeat(64)}80`, /at most 64 ports/],
  ] as const) {
    const { head, text } = open(query, 'v4.channel.k8s.io');
    assert.match(head, /^HTTP\/1.1 400 /, query);
    assert.match(text(), why);
  }
  assert.match(open('port=80', 'v5.channel.k8s.io').head, /^HTTP\/1.1 403 /);
});
