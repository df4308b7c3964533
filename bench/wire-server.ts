/**
 * The servers that `wire.ts` compares: `ours` and `node:http2`, answering a unary gRPC call of
 * about 100 bytes with 20. `node wire-server.ts ours|node plain|tls KEY CERT`.
 */
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen } from '@megaplane/wire/listener';

const [side, security, key = '', cert = ''] = process.argv.slice(2);
const tls = security === 'tls' ? { key: readFileSync(key), cert: readFileSync(cert) } : undefined;
const ANSWER_BYTES = 20;

if (side === 'ours') {
  const grpc = new GrpcRoutes();
  grpc.unary('/bench.Echo/Put', (bytes, start, end, out, at) => {
    const stop = Math.min(end, start + ANSWER_BYTES);
    for (let i = start; i < stop; i++) out[at++] = bytes[i] ?? 0;
    return at;
  });
  const handler = (): void => undefined;
  const listener = await listen({ grpc, handler, ...(tls === undefined ? {} : { tls }) });
  process.stdout.write(`listening ${listener.address.port}\n`);
} else {
  const head = { ':status': 200, 'content-type': 'application/grpc' };
  const answer = Buffer.alloc(5 + ANSWER_BYTES);
  answer[4] = ANSWER_BYTES;
  const server = tls === undefined ? http2.createServer() : http2.createSecureServer(tls);
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      stream.respond(head, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      Buffer.concat(chunks).copy(answer, 5, 5, 5 + ANSWER_BYTES);
      stream.end(answer);
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number };
    process.stdout.write(`listening ${port}\n`);
  });
}
process.on('SIGTERM', () => process.exit(0));
