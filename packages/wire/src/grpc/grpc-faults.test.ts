/** Heads that are no call, bodies that are no message: answered as by etcd's grpc-go. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { GrpcRoutes } from './grpc-routes.ts';
import type { GrpcCallFactory } from '../http/grpc.ts';
import { type Listener, listen } from '../server/listener.ts';

let listener: Listener;
let session: ClientHttp2Session;

before(async () => {
  const grpc = new GrpcRoutes({
    messageBytesMax: 1000,
    messageTooLargeText: (bytes, bytesMax) =>
      `grpc: received message larger than max (${bytes} vs. ${bytesMax})`,
  });
  grpc.unary('/t.S/Echo', (bytes, start, end, out, at) => at + bytes.copy(out, at, start, end));
  for (const shape of ['unary', 'server_stream', 'bidi_stream'] as const) {
    const factory: GrpcCallFactory = (call) => ({
      onMessage: (bytes, start, end) => call.send(bytes, start, end),
      onHalfClose: () => call.finish(0),
      onCancel: () => {},
    });
    grpc.call(`/t.S/${shape}`, factory, shape);
  }
  listener = await listen({
    port: 0,
    handler: (exchange) => exchange.respond(404, null, null),
    grpc,
  });
  session = connect(`http://127.0.0.1:${listener.address.port}`);
});

after(async () => {
  session.destroy();
  await listener.close();
});

/** What was sent back, and `code message` at the end; before it a status that is not 200. */
async function ask(path: string, body: Buffer, more: OutgoingHttpHeaders = {}): Promise<string> {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc' };
  const stream = session.request({ ...headers, te: 'trailers', ...more }, { endStream: false });
  let told = '';
  const note = (fields: IncomingHttpHeaders): void => {
    const { ':status': http = 200, 'grpc-status': status, 'grpc-message': message = '' } = fields;
    if (http !== 200) told += `HTTP ${String(http)} `;
    if (typeof status === 'string') told += `${status} ${[message].flat().join('')}`;
  };
  stream.on('response', note).on('trailers', note);
  stream.on('data', (bytes: Buffer) => (told += `${bytes.toString('latin1', 5)} `));
  stream.end(body);
  await once(stream, 'close');
  return told;
}

function framed(text: string, flag = 0, length: number = text.length): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

const LARGE = '8 grpc: received message larger than max';
const COMPRESSED = '13 grpc: compressed flag set with identity or empty encoding';

const NO_MESSAGE =
  '13 cardinality violation: received no request message from non-client-streaming RPC';
const MORE_MESSAGES =
  '13 cardinality violation: received multiple request messages for non-client-streaming RPC';
const IN_MESSAGE = 'unexpected EOF';

/** A body, and what answers it: unary methods of both kinds, a server stream, both streaming. */
for (const [body, unary, stream, both] of [
  [framed('abc'), 'abc 0 ', 'abc 0 ', 'abc 0 '],
  [
    Buffer.concat([framed('abc'), framed('de')]),
    'abc 0 ',
    `abc ${MORE_MESSAGES}`,
    'abc\0\0\0\0\x02de 0 ',
  ],
  [Buffer.concat([framed('abc'), framed('de', 1)]), 'abc 0 ', `abc ${COMPRESSED}`],
  [Buffer.concat([framed('abc'), Buffer.from('de')]), 'abc 0 ', 'abc 0 '],
  [Buffer.alloc(0), '2 EOF', NO_MESSAGE, '0 '],
  [framed('abc').subarray(0, 3), '2 EOF', NO_MESSAGE, '0 '],
  [framed('abc').subarray(0, 5), `2 ${IN_MESSAGE}`, `13 ${IN_MESSAGE}`],
  [framed('abc').subarray(0, 6), `2 ${IN_MESSAGE}`, `13 ${IN_MESSAGE}`],
  [framed('abc', 1), COMPRESSED, COMPRESSED],
  ...([2, 255] as const).map((flag) => {
    const text = `13 grpc: received unexpected payload format ${flag}`;
    return [framed('abc', flag), text, text] as const;
  }),
  [framed('abc', 0, 1001), `${LARGE} (1001 vs. 1000)`, `${LARGE} (1001 vs. 1000)`],
  [framed('', 1, 0xffffffff), `${LARGE} (4294967295 vs. 1000)`, `${LARGE} (4294967295 vs. 1000)`],
] as const) {
  test(`a body of ${body.toString('hex') || 'nothing'} is answered as by grpc-go`, async () => {
    assert.equal(await ask('/t.S/Echo', body), unary);
    assert.equal(await ask('/t.S/unary', body), unary);
    assert.equal(await ask('/t.S/server_stream', body), stream);
    assert.equal(await ask('/t.S/bidi_stream', body), both ?? stream);
  });
}

const PACKED = gzipSync('abc');
const READING = '13 grpc: failed to read decompressed data:';
const BEGINNING = '13 grpc: failed to decompress the message:';

for (const [name, packed, expected] of [
  ['whole', PACKED, 'abc 0 '],
  ['in two members', Buffer.concat([gzipSync('a'), gzipSync('bc')]), 'abc 0 '],
  ['cut at the end', PACKED.subarray(0, -3), `${READING} unexpected EOF`],
  ['cut in its head', PACKED.subarray(0, 5), `${BEGINNING} unexpected EOF`],
  ['empty', Buffer.alloc(0), `${BEGINNING} EOF`],
  ['not gzip', Buffer.alloc(30), `${BEGINNING} gzip: invalid header`],
  ['of a wrong checksum', PACKED.with(-6, PACKED.at(-6)! ^ 1), `${READING} gzip: invalid checksum`],
  [
    'of a thousand times its size',
    gzipSync(Buffer.alloc(1001)),
    '8 grpc: received message after decompression larger than max 1000',
  ],
] as const) {
  test(`a message compressed by gzip, ${name}, is read as by grpc-go`, async () => {
    const body = framed('', 1, packed.length);
    for (const path of ['/t.S/Echo', '/t.S/unary', '/t.S/bidi_stream']) {
      const told = await ask(path, Buffer.concat([body, packed]), { 'grpc-encoding': 'gzip' });
      assert.equal(told, expected);
    }
  });
}

const TIMEOUT = 'HTTP 400 13 malformed grpc-timeout:';
const BINARY = 'HTTP 400 13 malformed binary metadata';
const BASE64 = 'illegal base64 data at input byte';

for (const [more, expected] of [
  [{ 'grpc-timeout': '' }, `${TIMEOUT} transport: timeout string is too short: ""`],
  [{ 'grpc-timeout': 'S' }, `${TIMEOUT} transport: timeout string is too short: "S"`],
  [
    { 'grpc-timeout': '100000000S' },
    `${TIMEOUT} transport: timeout string is too long: "100000000S"`,
  ],
  [{ 'grpc-timeout': '1s' }, `${TIMEOUT} transport: timeout unit is not recognized: "1s"`],
  [{ 'grpc-timeout': '1.5S' }, `${TIMEOUT} strconv.ParseUint: parsing "1.5": invalid syntax`],
  [{ 'grpc-timeout': '0S' }, '4 context deadline exceeded'],
  [{ 'grpc-timeout': '999u' }, '4 context deadline exceeded'],
  [{ 'grpc-timeout': '99999999H' }, 'abc 0 '],
  [
    { ':method': 'PUT' },
    'HTTP 405 13 Received a HEADERS frame with :method "PUT" which should be POST',
  ],
  [{ 'x-bin': 'Y' }, `${BINARY} "Y" in header "x-bin": ${BASE64} 0`],
  [{ 'x-bin': 'YW=' }, `${BINARY} "YW=" in header "x-bin": ${BASE64} 2`],
  [{ 'x-bin': '"!' }, `${BINARY} "\\"!" in header "x-bin": ${BASE64} 0`],
  [{ 'x-bin': 'YWI' }, 'abc 0 '],
  [{ 'x-bin': 'YWI=' }, 'abc 0 '],
  [{ 'grpc-encoding': '' }, 'abc 0 '],
  [{ 'grpc-encoding': 'identity' }, 'abc 0 '],
  [{ 'grpc-encoding': 'gzip' }, 'abc 0 '],
  [
    { 'grpc-encoding': 'snappy' },
    '12 grpc: Decompressor is not installed for grpc-encoding "snappy"',
  ],
  [{ ':path': '/Echo' }, '12 malformed method name: "/Echo"'],
  [{ ':path': '/t.S/Ech' }, '12 unknown method Ech for service t.S'],
  [{ ':path': '/t/S/Echo' }, '12 unknown service t/S'],
  [
    { ':path': '/t.S/Ech', 'grpc-timeout': 'x' },
    `${TIMEOUT} transport: timeout string is too short: "x"`,
  ],
] as const) {
  test(`${JSON.stringify(more)} is answered as by grpc-go`, async () => {
    assert.equal(await ask('/t.S/Echo', framed('abc'), more), expected);
    // The second time the block of the head is known.
    assert.equal(await ask('/t.S/Echo', framed('abc'), more), expected);
  });
}
