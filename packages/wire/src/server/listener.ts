// shell
/**
 * Listens on a port or a Unix socket and serves HTTP/2, HTTP/1.1 and gRPC on it.
 *
 * Where both plain connections and TLS are served the first octet tells which one it is: a
 * handshake opens with a record of its own type, that no request begins with.
 *
 * Over TLS, ALPN decides between `h2` and `http/1.1`. Without TLS, or with a client that knows no
 * ALPN, the first octets do: HTTP/2 opens with a request line that no HTTP/1.1 client sends.
 */
import { afterMs, everyMs, guarded, pauseMs } from '@megaplane/base/deferred';
import { UNIX_PATH_BYTES_MAX } from '@megaplane/base/limits';
import { clientAuthority, trustPartialChains, PARTIAL_CHAINS } from '@megaplane/base/tls-parts';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { constants, type X509Certificate } from 'node:crypto';
import { connect as connectSocket, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { createSecureContext, createServer as createTlsServer, TLSSocket } from 'node:tls';
import type { SecureContext, Server as TlsServer } from 'node:tls';
import type { Http2ServerOptions } from './http2-server.ts';
import { ServedProtocols, type ServingOptions } from './served-protocols.ts';
import type { ReadRounds } from '../transport/read-rounds.ts';
import { readRounds } from '../transport/socket-read.ts';
import { monotonicMs, SocketTransport } from '../transport/socket-transport.ts';
import type { Protocol } from '../transport/transport.ts';

/** Keys and certificates, PEM or DER as `node:tls` takes them. */
export interface ListenTls {
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
  /** CAs of client certificates. With it clients are asked for one; they may have none, or one
   *  that is not trusted: see `Connection.peerCertificate`. */
  readonly clientCa?: string | Buffer | readonly (string | Buffer)[];
  /** With it a client without a certificate of these CAs ends at the handshake. */
  readonly requiresClientCert?: boolean;
  /** Default TLSv1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** OpenSSL's names, joined by `:`; default Node's. */
  readonly ciphers?: string;
  /** OpenSSL's names of curves, joined by `:`; default Node's. */
  readonly curves?: string;
  /** Shown to clients that ask for these hosts, in place of `cert`. */
  readonly named?: readonly NamedCertificate[];
  /**
   * 48 bytes that seal session tickets: a client that was here, or at another server with the same
   * ones, goes on with its session, for a part of the work of a handshake. Default: random ones,
   * which are gone with this listener.
   */
  readonly ticketKeys?: Buffer;
  /** How long a session may be gone on with. */
  readonly sessionSeconds?: number;
  /** Asked about the client's certificate after a trusted handshake; false cuts the connection. */
  readonly accepts?: (certificate: X509Certificate) => boolean;
}

/** Hosts are in lower case; `*.example.com` is any in place of the star. */
export interface NamedCertificate {
  readonly hosts: readonly string[];
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
}

export interface ListenOptions extends ServingOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** 0 takes a free one. Give `port` or `unixPath`. */
  readonly port?: number;
  readonly unixPath?: string;
  readonly tls?: ListenTls;
  /** With `tls`: serves plain connections on the same port, too. */
  readonly alsoPlain?: boolean;
  /** Asked at each new connection: another object than before replaces `tls`, so that changed
   *  files count from the next handshake on. */
  readonly currentTls?: () => ListenTls;
  /** Other listeners of this process share the port: the kernel spreads connections over them. */
  readonly reusePort?: boolean;
  /** Takes each connection, once its handshake is done, in place of HTTP. `isHttp2`: TLS has
   *  agreed on it. */
  readonly take?: (transport: SocketTransport, isHttp2: boolean) => Protocol;
}

export interface Listener {
  /** Of the port; 0 and '' for a Unix socket. */
  readonly address: { readonly host: string; readonly port: number; readonly unixPath: string };
  /** Connections open now. */
  readonly connections: number;
  /** New connections use these from now on; the others keep what they have. */
  reloadTls(tls: ListenTls): void;
  /** Accepts no more, lets exchanges in flight finish for `graceMs`, then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

/** Sessions of servers with the same ticket keys are one another's, whatever started them. */
const SESSIONS = 'megaplane';
const TICK_MS = 1000;
const DRAIN_LOOK_MS = 20;
/** First octet of a TLS handshake. */
const HANDSHAKE = 22;

/** Resolves when it listens. Rejects with a message for people when it cannot. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const made = new SocketListener(options);
  await made.start();
  return made;
}

/** What Go's servers say to `curl http://` on a port of TLS. */
const PLAIN_ANSWER =
  'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n';

/** A client that breaks off its handshake is its own affair; one that speaks HTTP is told. */
function tellPlain(error: NodeJS.ErrnoException, socket: TLSSocket): void {
  // The socket below, which speaks plainly: Node gives it no public name.
  const below = (socket as TLSSocket & { readonly _parent?: Socket })._parent;
  if (error.code !== 'ERR_SSL_HTTP_REQUEST' || below?.writable !== true) {
    socket.destroy();
    return;
  }
  below.write(PLAIN_ANSWER, () => socket.destroy());
}

class SocketListener implements Listener {
  readonly #options: ListenOptions;
  readonly #protocols: ServedProtocols;
  readonly #serverOptions: Http2ServerOptions;
  readonly #server: Server;
  /** The same one, unless it serves plain connections, too. */
  readonly #tlsServer: TlsServer | null;
  readonly rounds: ReadRounds | null;
  readonly #transports = new Set<SocketTransport>();
  /** Every socket, also while its TLS handshake is under way. */
  readonly #sockets = new Set<Socket>();
  /** Connections by address, where those are limited; bounded by the connections. */
  readonly #perSource = new Map<string, number>();
  #ticker: NodeJS.Timeout | null = null;
  #tls: ListenTls | null = null;
  /** By host, of `named`. */
  #contexts: ReadonlyMap<string, SecureContext> = new Map();
  #closing = false;

  constructor(options: ListenOptions) {
    this.#options = options;
    this.#protocols = new ServedProtocols(options);
    this.#serverOptions = this.#protocols.options;
    const { limits } = this.#serverOptions;
    this.rounds = limits.readMsMax < Infinity ? readRounds(limits.readMsMax) : null;
    this.#tlsServer = options.tls === undefined ? null : this.#makeTlsServer(options.tls);
    const both = this.#tlsServer !== null && options.alsoPlain === true ? this.#tlsServer : null;
    const server =
      this.#tlsServer === null || both !== null
        ? createServer({ allowHalfOpen: true }, (socket) =>
            both === null ? this.#accept(socket) : this.#sort(socket, both),
          )
        : this.#tlsServer;
    this.#tls = options.tls ?? null;
    if (this.#tlsServer !== null) trustPartialChains(this.#tlsServer);
    server.maxConnections = limits.connectionsMax;
    // before the listeners that begin a handshake: who has too many gets none
    server.prependListener(
      'connection',
      guarded((socket: Socket) => this.#admit(socket, limits.connectionsPerSourceMax)),
    );
    this.#server = server;
  }

  /** Counts the connections of each address where there is a limit to them. */
  #admit(socket: Socket, perSourceMax: number): void {
    const source = perSourceMax === Infinity ? '' : (socket.remoteAddress ?? '');
    const count = this.#perSource.get(source) ?? 0;
    if (source !== '' && count >= perSourceMax) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    if (source !== '') this.#perSource.set(source, count + 1);
    socket.once(
      'close',
      guarded(() => {
        this.#sockets.delete(socket);
        if (source === '') return;
        const left = (this.#perSource.get(source) ?? 1) - 1;
        if (left > 0) this.#perSource.set(source, left);
        else this.#perSource.delete(source);
      }),
    );
  }

  #makeTlsServer(tls: ListenTls): TlsServer {
    const { isSilent, currentTls } = this.#options;
    this.#contexts = namedContexts(tls);
    const server = createTlsServer(
      {
        ...tlsFields(tls),
        // Where no name is asked for, or none that is known, the context of the server counts.
        SNICallback: (host, done) => done(null, contextFor(this.#contexts, host)),
        // A peer that leaves during the handshake is gone; see `#accept` for later.
        allowHalfOpen: false,
        ALPNProtocols: this.#options.speaksHttp2 === false ? ['http/1.1'] : ['h2', 'http/1.1'],
        handshakeTimeout: this.#serverOptions.limits.handshakeMsMax,
      },
      (socket) => this.#accept(socket),
    );
    // Before the listener of node:tls, which takes the context of that moment.
    if (currentTls !== undefined)
      server.prependListener(
        'connection',
        guarded(() => this.#renew()),
      );
    server.on(
      'tlsClientError',
      guarded((error, socket) => {
        if (isSilent === true) socket.destroy();
        else tellPlain(error, socket);
      }),
    );
    return server;
  }

  /** Waits for the first octet, as long as a handshake may take, and gives it back. */
  #sort(socket: Socket, tlsServer: TlsServer): void {
    const { handshakeMsMax } = this.#serverOptions.limits;
    const overdue = afterMs(handshakeMsMax, () => socket.destroy());
    overdue.unref();
    socket.on(
      'error',
      guarded(() => socket.destroy()),
    );
    socket.once(
      'close',
      guarded(() => clearTimeout(overdue)),
    );
    socket.once(
      'end',
      guarded(() => socket.destroy()),
    );
    socket.once(
      'data',
      guarded((bytes: Buffer) => {
        clearTimeout(overdue);
        socket.removeAllListeners('end');
        socket.pause();
        socket.unshift(bytes);
        if (bytes[0] === HANDSHAKE) {
          socket.allowHalfOpen = false;
          tlsServer.emit('connection', socket);
        } else {
          this.#accept(socket);
          socket.resume();
        }
      }),
    );
  }

  get address(): { host: string; port: number; unixPath: string } {
    const found = this.#server.address();
    if (found === null || typeof found === 'string') {
      return { host: '', port: 0, unixPath: this.#options.unixPath ?? '' };
    }
    return { host: found.address, port: found.port, unixPath: '' };
  }

  get connections(): number {
    return this.#transports.size;
  }

  async start(): Promise<void> {
    const path = this.#options.unixPath;
    if (path !== undefined) await makeWay(path);
    await this.#bind();
    if (path !== undefined) chmodSync(path, 0o600);
    this.#ticker = everyMs(TICK_MS, () => this.#tick());
    this.#ticker.unref();
  }

  #bind(): Promise<void> {
    const { host = '127.0.0.1', port = 0, unixPath, reusePort = false } = this.#options;
    const where = unixPath ?? `${host}:${port}`;
    return new Promise((resolve, reject) => {
      this.#server.once(
        'error',
        guarded((error: NodeJS.ErrnoException) => {
          reject(
            new Error(`cannot listen on ${where}: ${explainListening(error)}`, { cause: error }),
          );
        }),
      );
      const listening = (): void => {
        this.#server.removeAllListeners('error');
        this.#server.on('error', guarded(this.#serverOptions.onError));
        resolve();
      };
      if (unixPath !== undefined) this.#server.listen({ path: unixPath, backlog: 4096 }, listening);
      else this.#server.listen({ host, port, backlog: 4096, reusePort }, listening);
    });
  }

  #renew(): void {
    const tls = this.#options.currentTls?.() ?? null;
    if (tls !== null && tls !== this.#tls) this.reloadTls(tls);
  }

  /** May the client of a finished handshake come in? */
  #isAccepted(socket: Socket): boolean {
    const accepts = this.#tls?.accepts;
    if (accepts === undefined || !(socket instanceof TLSSocket)) return true;
    const certificate = socket.getPeerX509Certificate();
    return certificate === undefined || accepts(certificate);
  }

  reloadTls(tls: ListenTls): void {
    this.#tls = tls;
    this.#contexts = namedContexts(tls);
    if (this.#tlsServer === null) return;
    this.#tlsServer.setSecureContext(tlsFields(tls));
    trustPartialChains(this.#tlsServer);
  }

  #accept(socket: Socket): void {
    if (this.#closing || !this.#isAccepted(socket)) {
      socket.destroy();
      return;
    }
    socket.allowHalfOpen = true;
    const transport = new SocketTransport(socket, this.#options.unixPath !== undefined, this);
    this.#transports.add(transport);
    const isHttp2 = socket instanceof TLSSocket && socket.alpnProtocol === 'h2';
    const { take } = this.#options;
    if (take !== undefined) transport.protocol = take(transport, isHttp2);
    else if (isHttp2) {
      transport.protocol = this.#protocols.http2(transport);
      transport.protocol.flush();
    }
  }

  /** For transports: by the first octets. */
  choose(transport: SocketTransport, bytes: Buffer): Protocol | null {
    return this.#protocols.choose(transport, bytes);
  }

  /** For transports. */
  forget(transport: SocketTransport): void {
    this.#transports.delete(transport);
  }

  #tick(): void {
    const nowMs = monotonicMs();
    const handshakeMsMax = this.#serverOptions.limits.handshakeMsMax;
    for (const transport of this.#transports) transport.tick(nowMs, handshakeMsMax);
  }

  async close(graceMs = 0): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const untilMs = monotonicMs() + graceMs;
    for (const transport of this.#transports) {
      if (transport.protocol === null) transport.destroy();
      else transport.protocol.drain();
    }
    while (this.#transports.size > 0 && monotonicMs() < untilMs) {
      await pauseMs(DRAIN_LOOK_MS);
    }
    for (const transport of this.#transports) transport.destroy();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    if (this.#ticker !== null) clearInterval(this.#ticker);
  }
}

function namedContexts(tls: ListenTls): ReadonlyMap<string, SecureContext> {
  const found = new Map<string, SecureContext>();
  for (const { hosts, key, cert } of tls.named ?? []) {
    const context = createSecureContext({
      ...tlsFields(tls),
      ...{ key, cert, ...PARTIAL_CHAINS },
    });
    // As Go has it, of several for one host the first counts.
    for (const host of hosts) if (!found.has(host)) found.set(host, context);
  }
  return found;
}

/** An exact name goes before one with a star for its first label. */
function contextFor(
  contexts: ReadonlyMap<string, SecureContext>,
  asked: string,
): SecureContext | undefined {
  const host = asked.toLowerCase();
  return contexts.get(host) ?? contexts.get(`*${host.slice(host.indexOf('.'))}`);
}

function tlsFields(tls: ListenTls): object {
  const fields = {
    key: tls.key,
    cert: tls.cert,
    minVersion: tls.minVersion ?? 'TLSv1.2',
    // A client of TLS 1.2 could ask for one handshake after another, the server's is the work.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(tls.maxVersion === undefined ? {} : { maxVersion: tls.maxVersion }),
    ...(tls.ciphers === undefined ? {} : { ciphers: tls.ciphers }),
    ...(tls.curves === undefined ? {} : { ecdhCurve: tls.curves }),
    ...(tls.ticketKeys === undefined
      ? {}
      : { ticketKeys: tls.ticketKeys, sessionIdContext: SESSIONS }),
    ...(tls.sessionSeconds === undefined ? {} : { sessionTimeout: tls.sessionSeconds }),
  };
  if (tls.clientCa === undefined) return fields;
  return { ...fields, ...clientAuthority(tls.clientCa, tls.requiresClientCert === true) };
}

/** Why a port cannot be listened on, for people. */
export function explainListening(error: NodeJS.ErrnoException): string {
  switch (error.code ?? '') {
    case 'EADDRINUSE':
      return 'another process listens there; stop it or choose another address';
    case 'EACCES':
      return 'permission denied; ports below 1024 and foreign directories need rights';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have that address';
    default:
      return error.message;
  }
}

/**
 * Removes a socket file that nobody listens on, left over from a process that was killed. Any other
 * file is somebody's and stays.
 */
async function makeWay(path: string): Promise<void> {
  if (Buffer.byteLength(path) > UNIX_PATH_BYTES_MAX) {
    const most = `the ${UNIX_PATH_BYTES_MAX} that systems take`;
    throw new Error(`cannot listen on ${path}: the path has more bytes than ${most}`);
  }
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) {
    throw new Error(`cannot listen on ${path}: it exists and is no socket; choose another path`);
  }
  if (await isRefused(path)) unlinkSync(path);
}

/** Whether nobody listens there. */
function isRefused(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connectSocket(path);
    probe.on(
      'connect',
      guarded(() => {
        probe.destroy();
        resolve(false);
      }),
    );
    probe.on(
      'error',
      guarded((error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED')),
    );
  });
}
