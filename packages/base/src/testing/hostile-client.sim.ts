// shell: clients over sockets
/**
 * For tests: clients that mean no good. A port is anything that answers HTTP; whatever comes to it,
 * in whatever order, it answers others afterwards, keeps no connection of those who left, and
 * counts nothing as going on.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { tellErrors } from '../time/deferred.ts';
import { FUZZ_SECONDS, trials } from './trials.sim.ts';

/** A place where clients come. */
export interface HostilePort {
  readonly name: string;
  /** A connection: bytes go in, as they are or through TLS; `protocol` is for ALPN. */
  readonly open: (protocol: 'h2' | 'http/1.1') => Duplex;
  /** Of 127.0.0.1; 0 where connections cannot be looked up. */
  readonly port: number;
  /** Rejects where the port does not answer others. */
  readonly answers: () => Promise<void>;
  /** What goes on by the server's own counts, a line each. */
  readonly held?: () => Promise<readonly string[]> | readonly string[];
  /** Beginnings of paths, and words within them, that the port knows. */
  readonly roots?: readonly string[];
  readonly words?: readonly string[];
  /** Fields that open doors: some requests have them. */
  readonly credential?: Readonly<Record<string, string>>;
  /** What its gRPC methods take, as it should be; it is damaged here. */
  readonly calls?: readonly HostileCall[];
}

export interface HostileCall {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly message: fc.Arbitrary<Uint8Array>;
}

export function plainDoor(port: number): () => Socket {
  return () => connect(port, '127.0.0.1');
}

/** Through TLS without a look at the server's certificate. */
export function tlsDoor(port: number, options: ConnectionOptions = {}): HostilePort['open'] {
  return (protocol) =>
    connectTls({
      ...{ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: [protocol] },
      ...options,
    });
}

const NAMES = ['constructor', '__proto__', 'toString', 'default', 'a', '', '%2e%2e', '%', '\u00ff'];
const ROOTS = ['/', '//', '/api/v1/', '/apis/', '/api/v1/namespaces/default/', 'http://[', '*'];
const SEGMENTS = [
  ...['api', 'apis', 'v1', 'namespaces', 'pods', 'nodes', 'proxy', 'log', 'exec', 'configmaps'],
  ...['status', 'p:99999', 'openapi', 'v3', 'metrics.k8s.io', 'watch', 'metrics', 'healthz'],
];
const PARAMETERS = [
  ...['watch=1', 'timeout=1s', 'limit=1', 'dryRun=All', 'pretty=true', 'continue=x', '%=%', 'a'],
];
const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'],
  ...['constructor', '__proto__', 'get', 'PURGE'],
];
const FIELDS = [
  ...['constructor', '__proto__', 'accept', 'content-type', 'expect', 'upgrade', 'host', 'cookie'],
  ...['impersonate-user', 'impersonate-extra-__proto__', 'x-remote-extra-constructor', 'origin'],
  ...[
    'authorization',
    'connection',
    'transfer-encoding',
    'content-length',
    'te',
    'accept-encoding',
  ],
  ...['sec-websocket-protocol', 'sec-websocket-key', 'sec-websocket-version', 'x-forwarded-uri'],
  ...['x-stream-protocol-version', 'grpc-timeout', 'grpc-encoding'],
];
const VALUES = [
  ...['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf', 'chunked'],
  ...['application/merge-patch+json', 'SPDY/3.1', 'websocket', 'Upgrade', '100-continue', '5'],
  ...['\u0001', 'a\u007f', 'v5.channel.k8s.io', 'v4.base64.channel.k8s.io', '13', 'gzip'],
  ...['portforward.k8s.io', '/api/v1/nodes/%/proxy', 'Bearer x', '99999999H', 'http://['],
];
const BODIES = [
  ...['', '{}', '{"kind":"ConfigMap","metadata":{"name":"a"}}', 'a: [', 'k8s\0', '[[[['],
  ...['{"data":{"__proto__":"x"}}', '{"metadata":{"name":"constructor"}}'],
];

interface Request {
  readonly method: string;
  readonly path: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: string;
}

function requestsOf({
  roots = [],
  words = [],
  credential = {},
}: HostilePort): fc.Arbitrary<Request> {
  const word = fc.oneof(
    fc.constantFrom(...NAMES),
    fc.string({ maxLength: 12, unit: 'binary-ascii' }),
  );
  const segment = fc.oneof(word, fc.constantFrom(...SEGMENTS, ...words));
  const parameter = fc.oneof(
    fc.constantFrom(...PARAMETERS),
    fc.tuple(word, word).map(([name, value]) => `${name}=${value}`),
  );
  const path = fc
    .tuple(
      fc.constantFrom(...roots, ...roots, ...ROOTS),
      fc.array(segment, { maxLength: 6 }),
      fc.array(parameter, { maxLength: 3 }),
    )
    .map(([root, segments, query]) => `${root}${segments.join('/')}?${query.join('&')}`);
  const known = Object.entries(credential);
  const field = fc.tuple(fc.constantFrom(...FIELDS), fc.oneof(word, fc.constantFrom(...VALUES)));
  return fc.record({
    method: fc.constantFrom(...METHODS),
    path,
    fields: fc
      .tuple(fc.array(field, { maxLength: 4 }), fc.boolean())
      .map(([fields, isKnown]) => (isKnown ? [...fields, ...known] : fields)),
    body: fc.oneof(
      fc.constantFrom(...BODIES),
      fc.json(),
      fc.string({ maxLength: 40, unit: 'binary-ascii' }),
    ),
  });
}

const frame = fc.tuple(
  fc.integer({ min: 0, max: 12 }),
  fc.nat(255),
  fc.constantFrom(0, 1, 3, 5, 2 ** 31 - 1),
  fc.uint8Array({ maxLength: 30 }),
);
type Frame = typeof frame extends fc.Arbitrary<infer Made> ? Made : never;

/** Whole, cut, with bits flipped, twice, or nothing of the kind. */
function damaged(message: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Buffer> {
  const flips = fc.array(fc.tuple(fc.nat(4095), fc.nat(255)), { maxLength: 2 });
  const made = fc
    .tuple(message, flips, fc.constantFrom(0, 0, 0, 1, 2, 7), fc.constantFrom(1, 1, 1, 2))
    .map(([bytes, changes, missing, times]) => {
      const copy = Buffer.from(bytes);
      for (const [at, value] of changes) if (copy.length > 0) copy[at % copy.length] = value;
      const kept = copy.subarray(0, Math.max(0, copy.length - missing));
      return Buffer.concat(Array<Buffer>(times).fill(kept));
    });
  return fc.oneof(
    made,
    made,
    made,
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  );
}

interface Call {
  readonly path: string;
  readonly messages: readonly Buffer[];
  readonly end: 'half-closed' | 'open' | 'reset';
}

/** What one client does on a connection of its own. */
type Step =
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'http1';
      readonly requests: readonly Request[];
      /** All of it is written so many times. */
      readonly times: number;
      /** Bytes of the end that are never written. */
      readonly missing: number;
    }
  | { readonly kind: 'http2'; readonly requests: readonly Request[]; readonly times: number }
  | { readonly kind: 'frames'; readonly frames: readonly Frame[] }
  | { readonly kind: 'calls'; readonly calls: readonly Call[] };

function stepsOf(port: HostilePort): fc.Arbitrary<Step> {
  const request = requestsOf(port);
  const steps: fc.Arbitrary<Step>[] = [
    fc.record({ kind: fc.constant('noise' as const), bytes: fc.uint8Array({ maxLength: 200 }) }),
    fc.record({
      kind: fc.constant('http1' as const),
      requests: fc.array(request, { minLength: 1, maxLength: 4 }),
      times: fc.constantFrom(1, 1, 1, 40),
      missing: fc.constantFrom(0, 0, 0, 3, 20),
    }),
    fc.record({
      kind: fc.constant('http2' as const),
      requests: fc.array(request, { minLength: 1, maxLength: 6 }),
      times: fc.constantFrom(1, 1, 20),
    }),
    fc.record({
      kind: fc.constant('frames' as const),
      frames: fc.array(frame, { maxLength: 6 }),
    }),
  ];
  const { calls = [] } = port;
  if (calls.length > 0) {
    const call = fc.constantFrom(...calls).chain(({ path, message }) =>
      fc.record({
        path: fc.constant(path),
        messages: fc.oneof(
          fc.tuple(damaged(message)),
          fc.tuple(message.map((bytes) => Buffer.from(bytes))),
          fc.array(damaged(message), { maxLength: 3 }),
        ),
        end: fc.constantFrom(
          'half-closed' as const,
          'half-closed' as const,
          'open' as const,
          'reset' as const,
        ),
      }),
    );
    const many = fc.record({
      kind: fc.constant('calls' as const),
      calls: fc.array(call, { minLength: 1, maxLength: 12 }),
    });
    steps.push(many, many, many, many);
  }
  return fc.oneof(...steps);
}

/** So long clients stay; a handshake takes its time. */
const LINGER_MS = 15;
/** So long who has half-closed calls waits for their ends. */
const ANSWERS_MS = 200;
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** A frame of HTTP/2 (RFC 9113 4.1): type, flags, stream, payload. */
export function framed([type, flags, stream, bytes]: readonly [
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

/** Answers that say that the server is wrong; there are none, whatever it was asked. */
type Wrong = (what: string) => void;

/** Writes, reads what comes for a moment, and leaves. */
async function writeAll({ open }: HostilePort, bytes: Buffer, wrong: Wrong): Promise<void> {
  const socket = open('http/1.1');
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
  socket.write(bytes);
  await pause(LINGER_MS);
  socket.destroy();
  if (/^HTTP\/1\.1 500 /m.test(text)) wrong(`${bytes.toString('latin1')}\n${text}`);
}

function session({ open }: HostilePort): ClientHttp2Session {
  const made = connectHttp2('http://a', { createConnection: () => open('h2') });
  made.on('error', () => undefined);
  return made;
}

async function askHttp2(
  port: HostilePort,
  requests: readonly Request[],
  times: number,
  wrong: Wrong,
): Promise<void> {
  const made = session(port);
  for (let time = 0; time < times; time++) {
    for (const { method, path, fields, body } of requests) {
      try {
        const stream = made.request({
          ':method': method,
          ':path': path,
          ...Object.fromEntries(fields),
        });
        stream.on('error', () => undefined);
        stream.on('response', ({ ':status': status }) => {
          if (status === 500) wrong(JSON.stringify([method, path, fields, body]));
        });
        stream.resume();
        stream.end(body, 'latin1');
      } catch {
        // Node's client refuses to send some of it; the frames of other steps do not ask it
      }
    }
  }
  await pause(LINGER_MS);
  made.destroy();
}

/** A message as gRPC has it: not compressed, its length, its bytes. */
function grpcMessage(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Codes that calls ended with, by the path of their method. */
type Ended = Map<string, Set<string>>;

async function makeCalls(port: HostilePort, calls: readonly Call[], ended: Ended): Promise<void> {
  const made = session(port);
  const answers: Promise<unknown>[] = [];
  for (const { path, messages, end } of calls) {
    const stream = made.request({
      ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
      ...port.credential,
    });
    stream.on('error', () => undefined);
    const note = (fields: IncomingHttpHeaders): void => {
      const code = fields['grpc-status'];
      if (code === undefined) return;
      const codes = ended.get(path) ?? new Set();
      ended.set(path, codes.add(String(code)));
    };
    // an answer without a message has it in its head
    stream.on('response', note);
    stream.on('trailers', note);
    stream.resume();
    for (const bytes of messages) stream.write(grpcMessage(bytes));
    if (end === 'half-closed') {
      answers.push(new Promise((resolve) => stream.once('close', resolve)));
      stream.end();
    }
    if (end === 'reset') stream.close(8);
  }
  await pause(LINGER_MS);
  // some of them, as watches, are answered without end
  await Promise.race([Promise.all(answers), pause(ANSWERS_MS)]);
  made.destroy();
}

function take(port: HostilePort, step: Step, wrong: Wrong, ended: Ended): Promise<void> {
  if (step.kind === 'noise') return writeAll(port, Buffer.from(step.bytes), wrong);
  if (step.kind === 'http2') return askHttp2(port, step.requests, step.times, wrong);
  if (step.kind === 'calls') return makeCalls(port, step.calls, ended);
  if (step.kind === 'frames') {
    const frames = [Buffer.from(PREFACE), ...step.frames.map(framed)];
    return writeAll(port, Buffer.concat(frames), wrong);
  }
  const text = step.requests.map(http1Text).join('').repeat(step.times);
  const bytes = Buffer.from(text.slice(0, text.length - step.missing), 'latin1');
  return writeAll(port, bytes, wrong);
}

/** The whole answer to a GET over HTTP/1.1. */
export async function ask(
  open: HostilePort['open'],
  target: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<string> {
  const socket = open('http/1.1');
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (piece: string) => (text += piece));
  const lines = Object.entries({ host: 'a', connection: 'close', ...fields });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`GET ${target} HTTP/1.1\r\n${head}\r\n`);
  await once(socket, 'end');
  socket.destroy();
  return text;
}

/** States of TCP in which a server still has the connection: established, or left by its client. */
const HELD = new Set(['01', '08']);

/** Connections that the server at a port of IPv4 has; 0 where the system does not tell. */
export function connectionsAt(port: number): number {
  let text = '';
  try {
    text = readFileSync('/proc/self/net/tcp', 'latin1');
  } catch {
    return 0;
  }
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return text.split('\n').filter((line) => {
    const [, from = '', , state = ''] = line.trim().split(/\s+/);
    return from.endsWith(local) && HELD.has(state);
  }).length;
}

async function heldBy({ name, port, held }: HostilePort): Promise<string[]> {
  const counts = (await held?.()) ?? [];
  const connections = port === 0 ? 0 : connectionsAt(port);
  const lines = connections === 0 ? counts : [...counts, `${connections} connections`];
  return lines.map((line) => `${name}: ${line}`);
}

const LOOKS_MAX = 1500;
const LOOK_MS = 20;

/** Waits until nothing goes on at a port. */
export async function comesToRest(port: HostilePort): Promise<void> {
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    if ((await heldBy(port)).length === 0) return;
    await pause(LOOK_MS);
  }
  assert.deepEqual(await heldBy(port), []);
}

/** How long servers wait for a handshake, at least; they count their own turns, too. */
const HANDSHAKE_MS = 10_000;
/** Times that a port is asked where handshakes run into that deadline. */
const ASKED_MAX = 3;

/**
 * The one thing that is allowed: servers and clients share a thread here, and a handshake takes
 * four to five turns of it. Where these turns together take as long as the deadline, the server
 * closes. A connection that is reset any earlier is a fault.
 */
async function answersOthers(port: HostilePort): Promise<void> {
  for (let asked = 1; asked < ASKED_MAX; asked++) {
    const since = performance.now();
    try {
      return await port.answers();
    } catch (error) {
      const isReset = (error as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (!isReset || performance.now() - since < HANDSHAKE_MS) throw error;
    }
  }
  await port.answers();
}

/**
 * Lets hostile clients come to ports, several at once, and looks after them: all ports answer, hold
 * nothing, have said nothing of an internal error, and none was told of (`tellErrors`, and `errors`
 * where a server tells them). Resolves with the codes that calls ended with, by path.
 */
export async function besiege(
  ports: readonly HostilePort[],
  { runs, errors = [] }: { readonly runs: number; readonly errors?: readonly string[] },
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const ended: Ended = new Map();
  const told: unknown[] = [];
  const wrong: string[] = [];
  tellErrors((error) => told.push(error));
  // a port by its place: a counterexample shows what came to it, and not the port
  const visits = fc.oneof(
    ...ports.map((port, at) => stepsOf(port).map((step) => ({ at, step }) as const)),
  );
  const property = fc.asyncProperty(
    fc.array(visits, { minLength: 1, maxLength: 8 }),
    async (all) => {
      const visited = all.flatMap(({ at }) => ports[at] ?? []);
      const tell =
        (name: string): Wrong =>
        (what) =>
          wrong.push(`${name}: ${what}`);
      await Promise.all(
        all.map(async ({ step }, index) => {
          const port = visited[index];
          if (port !== undefined) await take(port, step, tell(port.name), ended);
        }),
      );
      for (const port of new Set(visited)) {
        await answersOthers(port);
        await comesToRest(port);
      }
      assert.deepEqual(told, []);
      assert.deepEqual(errors, []);
      assert.deepEqual(wrong, [], 'answers of 500');
    },
  );
  const seed = FUZZ_SECONDS > 0 ? {} : { seed: 20_261_129 };
  try {
    await fc.assert(property, { ...seed, ...trials(runs), endOnFailure: true });
  } finally {
    tellErrors((error) => console.error(error));
  }
  return ended;
}
