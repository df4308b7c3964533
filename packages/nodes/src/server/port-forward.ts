// shell: sockets and processes behind forwarded ports
/**
 * Port-forward over SPDY: for each connection at the client's end two streams with one request id,
 * one for data and one on which only a failure is told; or over WebSocket, see
 * `port-forward-sockets.ts`.
 */
import { guarded } from '@megaplane/base/deferred';
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { cleanEnvironment } from './clean-environment.ts';
import { dial } from './forward-target.ts';
import { reasonOf } from './log-reader.ts';
import type { ForwardItem, HttpRoute } from './pod-rules.ts';
import { keepGroup, killGroup } from './process-groups.ts';
import { forwardOverSocket } from './port-forward-sockets.ts';
import { acceptSpdy, negotiated, refuseUpgrade } from './remote-streams.ts';
import { SpdySession, type SpdyStream } from './spdy-session.ts';

const PROTOCOL = 'portforward.k8s.io';
/** So much of what a failing command said is told. */
const COMPLAINT_LENGTH_MAX = 1000;

/** The item for a port of the pod, or an Error that says why there is none. */
export type ForwardLookup = (port: number) => ForwardItem | Error;

/** Accepts the request and serves its streams until the client leaves. */
export function servePortForward(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  pod: string,
  query: URLSearchParams,
  find: ForwardLookup,
): void {
  const upgrade = (request.headers.upgrade ?? '').toLowerCase();
  const offered = String(request.headers['x-stream-protocol-version'] ?? '');
  if (upgrade === 'websocket') {
    forwardOverSocket(request, socket, head, query, (port, near, fail) => {
      join(near, (why) => fail(failure(port, pod, why)), find(port));
    });
    return;
  }
  if (upgrade !== 'spdy/3.1') {
    const text = `unable to upgrade: port-forward needs SPDY/3.1, not ${upgrade}`;
    return refuseUpgrade(socket, 400, text);
  }
  if (negotiated(offered, [PROTOCOL]) === undefined) {
    const text = `unable to negotiate protocol: client supports [${offered}], server accepts`;
    return refuseUpgrade(socket, 403, `unable to upgrade: ${text} [${PROTOCOL}]`);
  }
  acceptSpdy(socket, PROTOCOL);
  const waiting = new Map<string, { error?: SpdyStream; data?: SpdyStream }>();
  const session = new SpdySession(socket, head, (stream) => {
    const type = stream.headers.get('streamtype');
    const port = Number(stream.headers.get('port'));
    const isPort = Number.isInteger(port) && port > 0 && port <= 65_535;
    if ((type !== 'error' && type !== 'data') || !isPort) return stream.reset();
    const id = stream.headers.get('requestid') ?? String(stream.id - (type === 'data' ? 2 : 0));
    const pair = { ...waiting.get(id), [type]: stream };
    const { error, data } = pair;
    if (error === undefined || data === undefined) {
      waiting.set(id, pair);
      stream.onReset = () => waiting.delete(id);
      return;
    }
    waiting.delete(id);
    forward(session, data, error, port, pod, find(port));
  });
}

function forward(
  session: SpdySession,
  data: SpdyStream,
  error: SpdyStream,
  port: number,
  pod: string,
  item: ForwardItem | Error,
): void {
  const near = new StreamEnd(session, data);
  near.on(
    'error',
    guarded(() => near.destroy()),
  );
  near.on(
    'close',
    guarded(() => {
      error.end();
      data.end();
      session.forget(data.id);
      session.forget(error.id);
    }),
  );
  const fail = (why: string): void => {
    error.write(Buffer.from(failure(port, pod, why)));
    error.end();
    data.end();
  };
  join(near, fail, item);
}

function failure(port: number, pod: string, why: string): string {
  return `error forwarding port ${port} to pod ${pod}, uid : ${why}`;
}

/** Joins the client's end with what the item says. */
function join(near: Duplex, fail: (why: string) => void, item: ForwardItem | Error): void {
  if (item instanceof Error) {
    fail(item.message);
    near.destroy();
    return;
  }
  const { command, target, httpRoutes } = item;
  if (command.length > 0) runCommand(command, near, fail);
  else if (target !== null) dial(target, near, fail);
  else serveRoutes(httpRoutes, near);
}

function runCommand(command: readonly string[], near: Duplex, fail: (why: string) => void): void {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    env: cleanEnvironment(),
  });
  keepGroup(child);
  child.on(
    'error',
    guarded((error) => {
      fail(`cmd start: ${command.join(' ')}: fork/exec ${program}: ${reasonOf(error)}`);
      near.destroy();
    }),
  );
  // a command that reads no more is not a failure
  child.stdin.on(
    'error',
    guarded(() => undefined),
  );
  let complaint = '';
  child.stderr.on(
    'data',
    guarded((bytes: Buffer) => {
      complaint = `${complaint}${bytes.toString('utf8')}`.slice(0, COMPLAINT_LENGTH_MAX);
    }),
  );
  child.on(
    'close',
    guarded((code) => {
      near.end(() => {
        if (code === null || code === 0) return;
        fail(`cmd wait: ${command.join(' ')}: exit status ${code}\n${complaint}`);
      });
    }),
  );
  near.on(
    'close',
    guarded(() => killGroup(child)),
  );
  near.pipe(child.stdin);
  child.stdout.pipe(near, { end: false });
}

/** Answers that the file gives, for paths that it names. */
function serveRoutes(routes: readonly HttpRoute[], near: Duplex): void {
  const server: Server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0];
    const route = routes.find(({ location }) => location === path);
    if (route === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' });
      response.end('404 page not found\n');
      return;
    }
    for (const { name, value } of route.headers) response.setHeader(name, value);
    response.writeHead(route.code);
    response.end(route.body);
  });
  server.emit('connection', near);
}

/** The data stream of one forwarded connection, as a Duplex of Node's. */
class StreamEnd extends Duplex {
  readonly #session: SpdySession;
  readonly #stream: SpdyStream;

  constructor(session: SpdySession, stream: SpdyStream) {
    super({ allowHalfOpen: true });
    this.#session = session;
    this.#stream = stream;
    stream.onData = (bytes) => {
      if (!this.push(bytes)) session.pause();
    };
    stream.onEnd = () => this.push(null);
    stream.onReset = () => this.destroy();
    this.on(
      'drained',
      guarded(() => session.resume()),
    );
  }

  override _read(): void {
    this.emit('drained');
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error) => void): void {
    if (this.#stream.write(bytes)) done();
    else this.#session.whenDrained(done);
  }

  override _final(done: () => void): void {
    this.#stream.end();
    done();
  }
}
