/** Compressed answers, read by clients that stop after the first gzip member or refuse a second. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { crc32, inflateRawSync } from 'node:zlib';
import { runApiserver } from '@megaplane/apiserver/run';

const MAPS = '/api/v1/namespaces/default/configmaps';
const HEAD_BYTES = 10;
const TAIL_BYTES = 8;

const dir: string = mkdtempSync(join(tmpdir(), 'megaplane-gzip-'));
const socket: string = join(dir, 'socket');
let service: { stop(): Promise<void> } | null = null;

before(async () => {
  service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket: socket,
    log: () => {},
  });
  for (let at = 0; at < 12; at++) {
    const data = { text: `${at} `.repeat(80_000) };
    const made = await ask('POST', MAPS, { body: { metadata: { name: `big-${at}` }, data } });
    assert.equal(made.status, 201);
  }
});

after(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true });
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

function ask(
  method: string,
  path: string,
  { body, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const options = { socketPath: socket, method, path, headers: { ...json, ...headers } };
    const sent = request(options, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('error', reject);
      answer.on('end', () => {
        const { statusCode: status = 0 } = answer;
        resolve({ status, headers: answer.headers, bytes: Buffer.concat(pieces) });
      });
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Reads one member and nothing else: what follows it is a fault, as RFC 1952 alone has it not. */
function readStrictly(bytes: Buffer): Buffer {
  assert.deepEqual([...bytes.subarray(0, 4)], [0x1f, 0x8b, 8, 0]);
  const read = inflateRawSync(bytes.subarray(HEAD_BYTES), { info: true }) as unknown as {
    buffer: Buffer;
    engine: { bytesWritten: number };
  };
  const tail = HEAD_BYTES + read.engine.bytesWritten;
  assert.equal(bytes.length, tail + TAIL_BYTES, 'nothing follows the one member');
  assert.equal(bytes.readUInt32LE(tail), crc32(read.buffer));
  assert.equal(bytes.readUInt32LE(tail + 4), read.buffer.length % 2 ** 32);
  return read.buffer;
}

const GZIP = { 'accept-encoding': 'gzip' };
const YAML = { accept: 'application/yaml' };
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const PROTOBUF = { accept: 'application/vnd.kubernetes.protobuf' };
const V2_PROTOBUF = { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' };

/** Paths whose answers upstream compresses, with how they are asked for. */
const PACKED: readonly (readonly [string, Record<string, string>])[] = [
  [MAPS, {}],
  [MAPS, YAML],
  [MAPS, PROTOBUF],
  [`${MAPS}?pretty=true`, {}],
  [`${MAPS}/big-3`, {}],
  [`${MAPS}/big-3`, YAML],
  [`${MAPS}/big-3`, PROTOBUF],
  [`${MAPS}/big-3?includeObject=Object`, TABLE],
  ['/openapi/v2', {}],
  ['/openapi/v2', V2_PROTOBUF],
];

test('what is compressed is one gzip member, of the bytes that others get plain', async () => {
  for (const [path, headers] of PACKED) {
    const plain = await ask('GET', path, { headers });
    const packed = await ask('GET', path, { headers: { ...headers, ...GZIP } });
    const what = `${path} ${headers['accept'] ?? ''}`;
    assert.equal(plain.status, 200, what);
    assert.equal(plain.headers['content-encoding'], undefined, what);
    assert.equal(packed.headers['content-encoding'], 'gzip', what);
    assert.match(String(packed.headers['vary']), /Accept-Encoding/, what);
    assert.ok(readStrictly(packed.bytes).equals(plain.bytes), what);
  }
});

test('a write of a large object, and its refusal, are compressed as upstream does', async () => {
  const body = { metadata: { name: 'big-0' }, data: { text: 'x'.repeat(200_000) } };
  const put = await ask('PUT', `${MAPS}/big-0`, { body, headers: GZIP });
  assert.equal(put.headers['content-encoding'], 'gzip');
  const stored = JSON.parse(readStrictly(put.bytes).toString()) as typeof body;
  assert.equal(stored.data.text, body.data.text);
  const data = Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`${at}/`, '']));
  const broken = { metadata: { name: 'broken' }, data };
  const refused = await ask('POST', MAPS, { body: broken, headers: GZIP });
  assert.equal(refused.status, 422);
  assert.equal(refused.headers['content-encoding'], 'gzip');
  assert.match(readStrictly(refused.bytes).toString(), /^\{"kind":"Status"/);
});

test('what upstream sends plain is plain', async () => {
  const plain: [string, string][] = [
    ['/openapi/v3', 'gzip'],
    ['/openapi/v3/api/v1', 'gzip'],
    ['/metrics', 'gzip'],
    [`${MAPS}?limit=1&fieldSelector=metadata.name=none`, 'gzip'],
    // upstream looks for the bare word
    [MAPS, 'gzip;q=1'],
    [MAPS, 'br, deflate'],
  ];
  for (const [path, coding] of plain) {
    const answer = await ask('GET', path, { headers: { 'accept-encoding': coding } });
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers['content-encoding'], undefined, `${path} ${coding}`);
  }
});

/** What a program prints; null where it is not there. */
function printed(program: string, args: readonly string[], input?: Buffer): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const pieces: Buffer[] = [];
    child.stdout.on('data', (piece: Buffer) => pieces.push(piece));
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve(null);
      else reject(error);
    });
    child.on('close', (code) => {
      if (code === 0) resolve(Buffer.concat(pieces));
      else reject(new Error(`${program} ended with ${code}`));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

test('curl --compressed reads all of lists and documents', async (context) => {
  for (const path of [MAPS, '/openapi/v2', '/openapi/v3/api/v1', `${MAPS}/big-3`]) {
    const url = `http://localhost${path}`;
    const read = await printed('curl', [
      '-s',
      '-A',
      'x',
      '--compressed',
      '--unix-socket',
      socket,
      url,
    ]);
    if (read === null) {
      context.skip('needs curl: apt-get install curl');
      return;
    }
    const { bytes } = await ask('GET', path);
    assert.ok(read.equals(bytes), `${path}: ${read.length} of ${bytes.length} bytes`);
  }
});

/** As Python's HTTP clients read: one object for the answer, which ends with the first member. */
const PYTHON = [
  'import sys, zlib',
  'reader = zlib.decompressobj(16 + zlib.MAX_WBITS)',
  'text = reader.decompress(sys.stdin.buffer.read()) + reader.flush()',
  'assert reader.eof and not reader.unused_data, "more than one member"',
  'sys.stdout.buffer.write(text)',
].join('\n');

test('Python reads all of a compressed list', async (context) => {
  const packed = await ask('GET', MAPS, { headers: GZIP });
  const read = await printed('python3', ['-c', PYTHON], packed.bytes);
  if (read === null) {
    context.skip('needs Python: apt-get install python3');
    return;
  }
  const { bytes } = await ask('GET', MAPS);
  assert.ok(read.equals(bytes), `${read.length} of ${bytes.length} bytes`);
});
