/**
 * HTTP/1.1 without sockets: requests parsed and answered per second of processor time.
 *
 *     node packages/wire/src/http1/http1.bench.ts
 */
import { BodyBudget } from '../transport/body-budget.ts';
import { Http1Server } from './http1-server.ts';
import { SERVER_LIMITS } from '../limits.ts';
import type { Transport } from '../transport/transport.ts';

const HEAD =
  'Host: 127.0.0.1:6443\r\nUser-Agent: kubectl/v1.34.0 (linux/amd64) kubernetes/abc\r\n' +
  'Accept: application/json\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer abcdefghijklmnop\r\n';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1';
const BODY = JSON.stringify({ kind: 'Lease', spec: { filler: 'x'.repeat(430) } });
const ANSWER = Buffer.alloc(500, 'x');

let isFlushWanted = false;
let writtenBytes = 0;
const transport: Transport = {
  id: 1,
  secure: false,
  unix: false,
  remoteAddress: '',
  peerCertificate: () => null,
  write: (_bytes, start, end) => {
    writtenBytes += end - start;
    return true;
  },
  pending: () => 0,
  writing: () => false,
  pause: () => {},
  resume: () => {},
  requestTurn: () => {},
  requestFlush: () => {
    isFlushWanted = true;
  },
  end: () => {},
  destroy: () => {},
  nowMs: () => 0,
  preciseMs: () => 0,
};

function run(name: string, request: string): void {
  let requests = 0;
  const server = new Http1Server(transport, {
    handler: (exchange) => {
      requests++;
      exchange.respond(200, 'application/json', ANSWER);
    },
    streamsBody: () => false,
    bodies: new BodyBudget(Infinity),
    limits: SERVER_LIMITS,
    onError: (error) => {
      throw error;
    },
  });
  const chunk = Buffer.from(request.repeat(Math.floor(65_536 / request.length)));
  const turn = (): void => {
    server.receive(chunk, 0, chunk.length);
    while (isFlushWanted) {
      isFlushWanted = false;
      server.flush();
    }
  };
  for (let i = 0; i < 500; i++) turn();
  requests = 0;
  const start = process.cpuUsage();
  for (let i = 0; i < 2000; i++) turn();
  const { user, system } = process.cpuUsage(start);
  console.log(`${name}: ${Math.round((1000 * requests) / (user + system))} K requests per CPU s`);
}

run('GET with 5 fields', `GET ${LEASES} HTTP/1.1\r\n${HEAD}\r\n`);
run(
  'PUT of a lease',
  `PUT ${LEASES} HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\n` +
    `Content-Length: ${BODY.length}\r\n\r\n${BODY}`,
);
console.log(`${writtenBytes} bytes written`);
