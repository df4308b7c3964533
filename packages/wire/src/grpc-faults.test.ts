/** Bodies that are no message, or more than one, are answered as by etcd's grpc-go. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { after, before, test } from 'node:test';
import { GrpcRoutes } from './grpc-routes.ts';
import { type Listener, listen } from './listener.ts';

let listener: Listener;
let session: ClientHttp2Session;

before(async () => {
  const grpc = new GrpcRoutes({
    messageBytesMax: 1000,
    messageTooLargeText: (bytes, bytesMax) =>
      `grpc: received message larger than max (${bytes} vs. ${bytesMax})`,
  });
  grpc.unary('/t.S/Echo', (bytes, start, end, out, at) => at + bytes.copy(out, at, start, end));
  grpc.call('/t.S/Chat', (call) => ({
    onMessage: (bytes, start, end) => call.send(bytes, start, end),
    onHalfClose: () => call.finish(0),
    onCancel: () => {},
  }));
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

/** What was sent back, and `code message` at the end. */
async function ask(path: string, body: Buffer): Promise<string> {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc' };
  const stream = session.request({ ...headers, te: 'trailers' });
  let told = '';
  const note = (fields: IncomingHttpHeaders): void => {
    const { 'grpc-status': status, 'grpc-message': message = '' } = fields;
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

for (const [body, unary, stream] of [
  [framed('abc'), 'abc 0 ', 'abc 0 '],
  [Buffer.concat([framed('abc'), framed('de')]), 'abc 0 ', 'abc\0\0\0\0\x02de 0 '],
  [Buffer.concat([framed('abc'), Buffer.from('de')]), 'abc 0 ', 'abc 13 unexpected EOF'],
  [Buffer.alloc(0), '2 EOF', '0 '],
  [framed('abc').subarray(0, 3), '2 unexpected EOF', '13 unexpected EOF'],
  [framed('abc').subarray(0, 6), '2 unexpected EOF', '13 unexpected EOF'],
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
    assert.equal(await ask('/t.S/Chat', body), stream);
  });
}
