// shell
/**
 * Opens client connections over TCP, Unix sockets and TLS.
 *
 * `connect` returns at once: requests may be made before the connection is open, and fail as
 * `refused` if it cannot be made.
 */
import { everyMs } from '@megaplane/base/deferred';
import { clientTls } from '@megaplane/base/tls-parts';
import { connect as connectSocket } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import type { ClientConnection } from '../http/client.ts';
import { Http1Client } from '../http1/http1-client.ts';
import { Http2Client } from '../http2/http2-client.ts';
import { CLIENT_LIMITS } from '../limits.ts';
import type { WireLimits } from '../limits.ts';
import { monotonicMs, SocketTransport } from '../transport/socket-transport.ts';
import type { ClientOptions } from '../transport/transport.ts';

export interface ConnectTls {
  /** CAs that the server's certificate must come from; without it the system's. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  readonly key?: string | Buffer;
  readonly cert?: string | Buffer;
  /** Name to check the certificate against; default the host. */
  readonly servername?: string;
  /** True: any certificate is taken (kubeconfig's insecure-skip-tls-verify). */
  readonly insecure?: boolean;
}

export interface ConnectOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Give `port` or `unixPath`. */
  readonly port?: number;
  readonly unixPath?: string;
  readonly tls?: ConnectTls;
  /** Default `h2`: by prior knowledge without TLS, by ALPN with it. */
  readonly protocol?: 'h2' | 'h1';
  /** `:authority` or `host`; default `host:port`, `localhost` on a Unix socket. */
  readonly authority?: string;
  readonly limits?: Partial<WireLimits>;
}

const TICK_MS = 1000;
const open = new Set<SocketTransport>();
let ticker: NodeJS.Timeout | null = null;

const host = {
  rounds: null,
  choose: () => null,
  forget(transport: SocketTransport): void {
    open.delete(transport);
    if (open.size > 0 || ticker === null) return;
    clearInterval(ticker);
    ticker = null;
  },
};

function tickAll(): void {
  const nowMs = monotonicMs();
  for (const transport of open) transport.tick(nowMs, Infinity);
}

/** Opens a connection; see `ClientConnection` for what it tells when. */
export function connect(options: ConnectOptions): ClientConnection {
  const protocol = options.protocol ?? 'h2';
  const where = options.unixPath ?? `${options.host ?? '127.0.0.1'}:${options.port ?? 0}`;
  const socket = openSocket(options, protocol);
  const transport = new SocketTransport(socket, options.unixPath !== undefined, host);
  let reached = false;
  let refusal = '';
  socket.once(options.tls === undefined ? 'connect' : 'secureConnect', () => {
    if (socket instanceof TLSSocket && protocol === 'h2' && socket.alpnProtocol !== 'h2') {
      refusal = `${where} does not offer HTTP/2`;
      socket.destroy();
    } else {
      reached = true;
      // HTTP/1.1 has no greeting by which a client could see that it is connected.
      transport.requestFlush();
    }
  });
  const whyClosed = (): { text: string; reached: boolean } => {
    if (refusal !== '') return { text: refusal, reached };
    if (transport.error === null) return { text: '', reached };
    const what = reached ? 'the connection broke' : 'cannot connect';
    return { text: `${where}: ${what}: ${transport.error}`, reached };
  };
  const clientOptions: ClientOptions = {
    authority: options.authority ?? (options.unixPath === undefined ? where : 'localhost'),
    limits: { ...CLIENT_LIMITS, ...options.limits },
    whyClosed,
  };
  const client =
    protocol === 'h2'
      ? new Http2Client(transport, clientOptions)
      : new Http1Client(transport, clientOptions);
  transport.protocol = client;
  open.add(transport);
  ticker ??= everyMs(TICK_MS, tickAll).unref();
  return client;
}

function openSocket(options: ConnectOptions, protocol: 'h2' | 'h1'): Socket {
  const { unixPath, tls } = options;
  const hostname = options.host ?? '127.0.0.1';
  const target = unixPath === undefined ? { host: hostname, port: options.port ?? 0 } : null;
  if (tls === undefined) {
    return target === null ? connectSocket({ path: unixPath ?? '' }) : connectSocket(target);
  }
  const servername = tls.servername ?? hostname;
  const { ca, key, cert, insecure: isInsecure } = tls;
  const fields: Record<string, unknown> = {
    ...(target ?? { path: unixPath }),
    ALPNProtocols: [protocol === 'h2' ? 'h2' : 'http/1.1'],
    ...clientTls({ ca, key, cert, isInsecure, serverName: servername }),
  };
  // A server name is never an address (RFC 6066 3); the certificate is checked all the same.
  if (!/^[\d.]+$|:/.test(servername)) fields['servername'] = servername;
  return connectTls(fields);
}
