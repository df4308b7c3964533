/**
 * Whatever comes to a port, in whatever order, the server answers others afterwards, and counts
 * nothing as going on: no seat, no place in a queue, no request, no connection.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { FUZZ_SECONDS, trials } from '@megaplane/base/trials.sim';
import { runApiserver, type ApiserverService } from '../src/server/run.ts';

const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-hostile-'));
const unixSocket = join(dir, 'api.sock');
const errors: string[] = [];
let service: ApiserverService | null = null;
let etcdPort = 0;

/** A port that is free just now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

before(async () => {
  etcdPort = await freePort();
  service = await runApiserver({
    dataDir: join(dir, 'data'),
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket,
    listenClientUrls: `http://127.0.0.1:${etcdPort}`,
    // few seats: most of what comes at once has to wait, or is refused
    maxRequestsInflight: 8,
    maxMutatingRequestsInflight: 4,
    log: (level, message) => {
      if (level === 'error') errors.push(message);
    },
  });
});

after(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const NAMES = ['constructor', '__proto__', 'toString', 'default', 'a', '', '%2e%2e', '\u00ff'];
const word = fc.oneof(
  fc.constantFrom(...NAMES),
  fc.string({ maxLength: 12, unit: 'binary-ascii' }),
);
const segment = fc.oneof(
  word,
  fc.constantFrom('api', 'apis', 'v1', 'namespaces', 'pods', 'nodes', 'proxy', 'log', 'exec'),
  fc.constantFrom('configmaps', 'status', 'p:99999', 'openapi', 'v3', 'metrics.k8s.io', 'watch'),
);
const parameter = fc.oneof(
  fc.constantFrom('watch=1', 'timeout=1s', 'limit=1', 'dryRun=All', 'pretty=true', 'continue=x'),
  fc.tuple(word, word).map(([name, value]) => `${name}=${value}`),
);
const path = fc
  .tuple(
    fc.constantFrom('/', '/api/v1/', '/apis/', '/api/v1/namespaces/default/'),
    fc.array(segment, { maxLength: 6 }),
    fc.array(parameter, { maxLength: 3 }),
  )
  .map(([root, segments, query]) => `${root}${segments.join('/')}?${query.join('&')}`);
const method = fc.oneof(
  fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'),
  fc.constantFrom('CONNECT', 'constructor', '__proto__', 'get', 'PURGE'),
);
const name = fc.oneof(
  fc.constantFrom('constructor', '__proto__', 'accept', 'content-type', 'expect', 'upgrade'),
  fc.constantFrom('impersonate-user', 'impersonate-extra-__proto__', 'x-remote-extra-constructor'),
  fc.constantFrom('authorization', 'connection', 'transfer-encoding', 'content-length', 'te'),
);
const value = fc.oneof(
  word,
  fc.constantFrom('application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'),
  fc.constantFrom(
    'application/merge-patch+json',
    'SPDY/3.1',
    'websocket',
    'Upgrade',
    '100-continue',
  ),
  fc.constantFrom('\u0001', 'a\u007f', 'chunked', '5'),
);
const field = fc.tuple(name, value);
const body = fc.oneof(
  fc.constantFrom('', '{}', '{"kind":"ConfigMap","metadata":{"name":"a"}}', 'a: [', 'k8s\0'),
  fc.constantFrom('{"data":{"__proto__":"x"}}', '{"metadata":{"name":"constructor"}}', '[[[['),
  fc.json(),
  fc.string({ maxLength: 40, unit: 'binary-ascii' }),
);
const request = fc.record({ method, path, fields: fc.array(field, { maxLength: 4 }), body });
type Request = typeof request extends fc.Arbitrary<infer Made> ? Made : never;

/** What one client does on a connection of its own. */
const step = fc.oneof(
  fc.record({ kind: fc.constant('noise' as const), bytes: fc.uint8Array({ maxLength: 200 }) }),
  fc.record({
    kind: fc.constant('http1' as const),
    requests: fc.array(request, { minLength: 1, maxLength: 4 }),
    /** All of it is written so many times. */
    times: fc.constantFrom(1, 1, 1, 40),
    /** Bytes of the end that are never written. */
    missing: fc.constantFrom(0, 0, 0, 3, 20),
  }),
  fc.record({
    kind: fc.constant('http2' as const),
    requests: fc.array(request, { minLength: 1, maxLength: 6 }),
    times: fc.constantFrom(1, 1, 20),
  }),
  fc.record({
    kind: fc.constant('frames' as const),
    frames: fc.array(
      fc.tuple(
        fc.integer({ min: 0, max: 12 }),
        fc.nat(255),
        fc.constantFrom(0, 1, 3, 5, 2 ** 31 - 1),
        fc.uint8Array({ maxLength: 30 }),
      ),
      { maxLength: 6 },
    ),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer Made> ? Made : never;

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

function framed([type, flags, stream, bytes]: readonly [
  number,
  number,
  number,
  Uint8Array,
]): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(bytes.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

function http1Text({ method: verb, path: target, fields, body: text }: Request): string {
  const lines = fields.map(([one, said]) => `${one}: ${said}\r\n`).join('');
  const length = Buffer.byteLength(text, 'latin1');
  const head = `${verb} ${target} HTTP/1.1\r\nhost: a\r\ncontent-length: ${length}\r\n`;
  return `${head}${lines}\r\n${text}`;
}

function open(port: number): Socket {
  return port === 0 ? connect(unixSocket) : connect(port, '127.0.0.1');
}

/** Writes, reads what comes for a moment, and leaves. */
async function writeAll(port: number, bytes: Buffer): Promise<void> {
  const socket = open(port);
  socket.on('error', () => undefined);
  socket.on('data', () => undefined);
  socket.write(bytes);
  await pause(10);
  socket.destroy();
}

async function askHttp2(port: number, requests: readonly Request[], times: number): Promise<void> {
  const session: ClientHttp2Session = connectHttp2('http://a', {
    createConnection: () => open(port),
  });
  session.on('error', () => undefined);
  for (let time = 0; time < times; time++) {
    for (const { method: verb, path: target, fields, body: text } of requests) {
      try {
        const stream = session.request({
          ':method': verb,
          ':path': target,
          ...Object.fromEntries(fields),
        });
        stream.on('error', () => undefined);
        stream.resume();
        stream.end(text, 'latin1');
      } catch {
        // Node's client refuses to send some of it; the frames of other steps do not ask it
      }
    }
  }
  await pause(10);
  session.destroy();
}

function take(port: number, one: Step): Promise<void> {
  if (one.kind === 'noise') return writeAll(port, Buffer.from(one.bytes));
  if (one.kind === 'http2') return askHttp2(port, one.requests, one.times);
  if (one.kind === 'frames') {
    return writeAll(port, Buffer.concat([Buffer.from(PREFACE), ...one.frames.map(framed)]));
  }
  const text = one.requests.map(http1Text).join('').repeat(one.times);
  return writeAll(port, Buffer.from(text.slice(0, text.length - one.missing), 'latin1'));
}

async function read(port: number, target: string): Promise<string> {
  const socket = open(port);
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (piece: string) => (text += piece));
  socket.write(`GET ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  await once(socket, 'end');
  socket.destroy();
  return text;
}

/** What still goes on, by the server's own counts; the scrape itself is left out. */
async function held(): Promise<string[]> {
  const text = await read(0, '/metrics');
  const counts = /^apiserver_(flowcontrol_current_(inqueue|executing)_(requests|seats))\{/;
  return text
    .split('\n')
    .filter((line) => counts.test(line) && !line.includes('"exempt"') && !line.endsWith(' 0'));
}

/** What waits for a seat may do so for 15 s, whoever has left meanwhile. */
async function comesToRest(): Promise<void> {
  for (let looks = 0; looks < 1500; looks++) {
    if ((await held()).length === 0) return;
    await pause(20);
  }
  assert.deepEqual(await held(), []);
}

/** A field of HPACK as it stands, kept by nobody (RFC 7541 6.2.2). */
function literal(name: string, said: string): Buffer {
  const text = (one: string): Buffer =>
    Buffer.concat([Buffer.from([one.length]), Buffer.from(one, 'latin1')]);
  return Buffer.concat([Buffer.from([0]), text(name), text(said)]);
}

const [HEADERS, RST_STREAM, SETTINGS] = [1, 3, 4];
const PROTOCOL_ERROR = 1;

test('values with control characters over HTTP/2 reset their stream, and no other', async () => {
  const controls = Array.from({ length: 33 }, (_, code) => (code === 32 ? 127 : code));
  const values = controls.map((code) => `a${String.fromCharCode(code)}b`);
  const frames = values.flatMap((said, index) => {
    const pseudo: [string, string][] = [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/livez'],
      [':authority', 'a'],
    ];
    const block = [...pseudo, ['x-said', said] as const].map(([name, text]) => literal(name, text));
    return [framed([HEADERS, 5, 2 * index + 1, Buffer.concat(block)])];
  });
  const socket = open(0);
  const pieces: Buffer[] = [];
  socket.on('data', (piece: Buffer) => pieces.push(piece));
  socket.write(Buffer.concat([Buffer.from(PREFACE), framed([SETTINGS, 0, 0, Buffer.alloc(0)])]));
  socket.write(Buffer.concat(frames));
  // HEADERS of an answer, or a reset, by the stream's number
  const ended = new Map<number, string>();
  while (ended.size < values.length) {
    await once(socket, 'data');
    const all = Buffer.concat(pieces);
    for (let at = 0; at + 9 <= all.length; at += 9 + all.readUIntBE(at, 3)) {
      const stream = all.readUInt32BE(at + 5);
      if (all[at + 3] === HEADERS) ended.set(stream, 'answered');
      if (all[at + 3] !== RST_STREAM || at + 13 > all.length) continue;
      ended.set(stream, `reset by ${all.readUInt32BE(at + 9)}`);
    }
  }
  socket.destroy();
  for (const [index, code] of controls.entries()) {
    const wanted = code === 9 ? 'answered' : `reset by ${PROTOCOL_ERROR}`;
    assert.equal(ended.get(2 * index + 1), wanted, `character ${code}`);
  }
  assert.match(await read(0, '/livez'), /^HTTP\/1\.1 200 /);
  await comesToRest();
  assert.deepEqual(errors, []);
});

const runs = isLong ? 2000 : 40;
const timeout = FUZZ_SECONDS > 0 || isLong ? 3_600_000 : 110_000;

test(
  'nothing that comes to a port ends the server, or goes on in its counts',
  { timeout },
  async () => {
    const ports = fc.constantFrom('api', 'etcd');
    const steps = fc.array(fc.tuple(ports, step), { minLength: 1, maxLength: 8 });
    const property = fc.asyncProperty(steps, async (all) => {
      await Promise.all(all.map(([where, one]) => take(where === 'api' ? 0 : etcdPort, one)));
      assert.match(await read(0, '/livez'), /^HTTP\/1\.1 200 /);
      assert.match(await read(etcdPort, '/health'), /^HTTP\/1\.1 200 /);
      await comesToRest();
      assert.deepEqual(errors, []);
    });
    await fc.assert(property, { seed: 20_261_129, ...trials(runs), endOnFailure: true });
  },
);
