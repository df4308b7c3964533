/**
 * Requests per second of processor time that the dispatcher itself costs: a connection that answers
 * at the end of each turn stands in for the wire.
 *
 *     node packages/client/src/rest/dispatcher.bench.ts
 */
import type { ClientConnection, ClientStream, ResponseSink } from '@megaplane/wire/client';
import { CONTENT } from './client.ts';
import { Dispatcher } from './dispatcher.ts';

const REQUESTS = 2_000_000;
const ANSWER = Buffer.alloc(500, 'x');
const BODY = Buffer.alloc(500, 'y');
const FIELDS = ['content-type', 'application/json'];

interface Stub {
  tag: number;
  closed: boolean;
}
let waiting: { stream: Stub; sink: ResponseSink }[] = [];
const connection = {
  state: 'open',
  capacity: 1000,
  onOpen: null as (() => void) | null,
  request: (_m: string, _p: string, _f: object, _b: object, sink: ResponseSink, tag: number) => {
    const stream = { tag, closed: false };
    waiting.push({ stream, sink });
    return stream;
  },
};

const client = new Dispatcher({
  dial: () => connection as unknown as ClientConnection,
  token: () => '',
  userAgent: 'bench',
  pathPrefix: '',
  serverName: 'bench',
  timers: { nowMs: () => performance.now(), wallMs: () => Date.now(), after: () => () => {} },
  random: Math.random,
  limits: {
    connections: 1,
    inFlightMax: 500,
    queueMax: 500,
    requestTimeoutMs: 60_000,
    retriesMax: 3,
    answerBytesMax: 1 << 20,
  },
});

let answered = 0;
const done = (): void => {
  answered++;
};
const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-123456';
let sent = 0;
const start = process.cpuUsage();
client.send('PUT', path, CONTENT.json, BODY, done, sent++);
connection.onOpen?.();
while (answered < REQUESTS) {
  while (sent < REQUESTS && client.send('PUT', path, CONTENT.json, BODY, done, sent)) sent++;
  const turn = waiting;
  waiting = [];
  for (const { stream, sink } of turn) {
    const answer = stream as unknown as ClientStream;
    sink.onHead(answer, 200, FIELDS);
    sink.onData(answer, ANSWER, 0, ANSWER.length, true);
    stream.closed = true;
    sink.onEnd(answer, null, []);
  }
}
const { user, system } = process.cpuUsage(start);
console.log(`${Math.round((1000 * REQUESTS) / (user + system))} K requests per CPU s`);
