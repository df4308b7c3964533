// shell: the sockets of the kubelets' port
/**
 * The port of all simulated kubelets: TLS with authentication, and on the same number plain HTTP
 * for health, metrics and pages of metrics, which kwok serves there, too. The first byte tells
 * which of the two a client speaks.
 */
import { constants } from 'node:crypto';
import { afterMs, guarded, unawaited } from '@megaplane/base/deferred';
import { createServer as createPlain, type IncomingMessage, type Server } from 'node:http';
import type { ServerResponse } from 'node:http';
import { createServer as createTls } from 'node:https';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { clientAuthority, isPeerTrusted, trustPartialChains } from '@megaplane/base/tls-parts';
import { isIssuedBy, proxiedCaller, type FrontProxy } from './front-proxy.ts';
import { KubeletRoutes, NO_PATH, portRequest } from './kubelet-routes.ts';
import type { PortRequest, RouteOptions } from './kubelet-routes.ts';
import { attributesOf, type Access, type Credentials, type PortAccess } from './port-access.ts';
import { refuseUpgrade } from './remote-streams.ts';

/** The first byte of a TLS record that opens a connection. */
const TLS_HANDSHAKE = 0x16;
/** A client that says nothing for so long is not one. */
const FIRST_BYTE_MS = 10_000;
const HANDSHAKE_MS = 10_000;
/** For the head of a request, and for all of it: nothing that is asked here has a long body. */
const HEAD_MS = 10_000;
const REQUEST_MS = 60_000;
export const KUBELET_CONNECTIONS_MAX = 4096;

export interface PortTls {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Authorities of client certificates; null: only tokens are taken. */
  readonly clientCa: string | null;
  /** API servers that ask in the name of their users; null: none. */
  readonly frontProxy: FrontProxy | null;
}

export interface PortOptions extends RouteOptions {
  /** `host:port`; port 0: a free one. */
  readonly address: string;
  readonly tls: PortTls;
  readonly access: PortAccess;
  /** How long slow clients are waited for, and how often looked at; tests are impatient. */
  readonly slow?: {
    readonly headersTimeout?: number;
    readonly requestTimeout?: number;
    readonly connectionsCheckingInterval?: number;
  };
}

export interface KubeletPort {
  /** `host:port` as clients say it. */
  readonly address: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Host and port of `--server-address`; throws an Error that names it. */
export function listenAddress(text: string): { readonly host: string; readonly port: number } {
  const match = /^(.*):(\d+)$/.exec(text);
  if (match === null) throw new Error(`--server-address: ${text} is not host:port`);
  const port = Number(match[2]);
  if (port > 65_535) throw new Error(`--server-address: ${text}: ports end at 65535`);
  return { host: (match[1] ?? '').replace(/^\[(.*)\]$/, '$1'), port };
}

/** Listens; rejects with a text for people. */
export async function openKubeletPort(options: PortOptions): Promise<KubeletPort> {
  const { host, port } = listenAddress(options.address);
  const routes = new KubeletRoutes(options);
  const slow = { headersTimeout: HEAD_MS, requestTimeout: REQUEST_MS, ...options.slow };
  const plain = createPlain(slow, (request, response) => {
    unawaited(answerPlain(routes, request, response));
  });
  const { certificate, key, clientCa, frontProxy } = options.tls;
  const authorities = [clientCa, frontProxy?.authority].filter((one) => typeof one === 'string');
  const secure = createTls(
    {
      cert: certificate,
      key,
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      handshakeTimeout: HANDSHAKE_MS,
      ...slow,
      ...(authorities.length === 0 ? {} : clientAuthority(authorities)),
    },
    (request, response) => unawaited(answerSecure(options, routes, request, response)),
  );
  secure.on(
    'upgrade',
    guarded((request: IncomingMessage, socket: Duplex, head: Buffer) => {
      unawaited(upgradeSecure(options, routes, request, socket, head));
    }),
  );
  trustPartialChains(secure);
  // neither listens itself: without this event Node looks after no slow client
  for (const server of [plain, secure]) server.emit('listening');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on(
      'close',
      guarded(() => sockets.delete(socket)),
    );
    sniff(socket, plain, secure);
  });
  server.maxConnections = KUBELET_CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        const reason = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
        reject(new Error(`--server-address: cannot listen on ${options.address}: ${reason}`));
      }),
    );
    server.listen(port, host || '0.0.0.0', resolve);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    address: `${shown}:${bound.port}`,
    port: bound.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
        plain.close();
        secure.close();
      }),
  };
}

function sniff(socket: Socket, plain: Server, secure: Server): void {
  socket.on(
    'error',
    guarded(() => socket.destroy()),
  );
  const timer = afterMs(FIRST_BYTE_MS, () => socket.destroy());
  socket.once(
    'close',
    guarded(() => clearTimeout(timer)),
  );
  socket.once(
    'readable',
    guarded(() => {
      clearTimeout(timer);
      const first = socket.read() as Buffer | null;
      if (first === null) return void socket.destroy();
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).emit('connection', socket);
    }),
  );
}

async function answerPlain(
  routes: KubeletRoutes,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await answered(request, response, async (asked) => {
    const from = { host: request.headers.host ?? '', scheme: 'http' } as const;
    if (routes.answerPublic(asked, response, from)) return;
    if (await routes.answerPage(asked, response)) return;
    response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' });
    response.end('not found: without TLS there is /healthz, /metrics and /discovery/prometheus\n');
  });
}

async function answerSecure(
  options: PortOptions,
  routes: KubeletRoutes,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await answered(request, response, async (asked) => {
    const from = { host: request.headers.host ?? '', scheme: 'https' } as const;
    if (asked.path === '/healthz') {
      routes.answerPublic(asked, response, from);
      return;
    }
    const access = await decide(options, request, asked);
    if (access.kind === 'refused') {
      response.writeHead(access.code, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(access.text);
    } else if (!routes.answerPublic(asked, response, from)) {
      if (await routes.answerPage(asked, response)) return;
      await routes.answer(asked, response);
    }
  });
}

/** What fails behind a request is an answer of 500, never the end of the process. */
async function answered(
  request: IncomingMessage,
  response: ServerResponse,
  run: (asked: PortRequest) => Promise<void>,
): Promise<void> {
  const asked = portRequest(request);
  if (asked === null) {
    response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' }).end(NO_PATH);
    return;
  }
  try {
    await run(asked);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else response.writeHead(500, { 'content-type': 'text/plain' }).end((error as Error).message);
  }
}

async function upgradeSecure(
  options: PortOptions,
  routes: KubeletRoutes,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  socket.on(
    'error',
    guarded(() => socket.destroy()),
  );
  const asked = portRequest(request);
  if (asked === null) return refuseUpgrade(socket, 400, NO_PATH);
  try {
    const access = await decide(options, request, asked);
    if (access.kind === 'refused') refuseUpgrade(socket, access.code, access.text);
    else await routes.upgrade(asked, request, socket, head);
  } catch (error) {
    options.onTrouble(`${request.url}: ${(error as Error).message}`);
    socket.destroy();
  }
}

function decide(
  { access, tls }: PortOptions,
  request: IncomingMessage,
  { path, node }: PortRequest,
): Promise<Access> {
  return access.decide(
    credentialsOf(request, tls),
    attributesOf(request.method ?? 'GET', path, node),
  );
}

function credentialsOf(request: IncomingMessage, tls: PortTls): Credentials {
  const socket = request.socket as TLSSocket;
  const authorization = request.headers.authorization ?? '';
  if (!isPeerTrusted(socket, Date.now())) return { certificate: null, authorization };
  const { subject, raw } = socket.getPeerCertificate();
  const list = (value: string | readonly string[] | undefined): readonly string[] =>
    value === undefined ? [] : typeof value === 'string' ? [value] : value;
  const commonName = list(subject?.CN).at(-1);
  if (commonName === undefined) return { certificate: null, authorization };
  const { frontProxy, clientCa } = tls;
  if (frontProxy !== null) {
    const proxied = proxiedCaller(frontProxy, raw, commonName, request);
    if (proxied !== null) return { certificate: null, authorization, proxied };
    // the authority of proxies says nothing of users
    const isUser = clientCa !== null && isIssuedBy(raw, clientCa);
    if (!isUser) return { certificate: null, authorization };
  }
  return { certificate: { commonName, groups: list(subject.O) }, authorization };
}
