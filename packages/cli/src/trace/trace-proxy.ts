// shell: sockets, files and the clock of a proxy
/** `megaplane bench trace`: stands between an API server and an etcd, and tells what passes. */
import { guarded } from '@megaplane/base/deferred';
import { clientAuthority, clientTls } from '@megaplane/base/tls-parts';
import { createWriteStream, readFileSync, writeFileSync, type WriteStream } from 'node:fs';
import { connect as connectPlain, createServer, type AddressInfo, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import type { Service } from '../service/service.ts';
import { ConnectionTrace } from './connection-trace.ts';
import { TraceSummary } from './trace-summary.ts';

/** Lines that wait for the disk; more are left out, and counted. */
const LOG_BYTES_MAX: number = 16 * 1024 * 1024;
const CONNECTIONS_MAX = 1024;

export interface TraceProxyOptions {
  readonly listen: URL;
  readonly target: URL;
  /** Files, as etcd names them; the authority makes clients show a certificate. */
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly trustedCaFile?: string;
  readonly targetCacert?: string;
  readonly targetCert?: string;
  readonly targetKey?: string;
  /** Where the lines go; absent: no lines. */
  readonly log?: string;
  /** Where the summary goes as JSON, beside the table on stdout. */
  readonly summary?: string;
}

/** Listens; rejects with a text for people. */
export async function startTraceProxy(options: TraceProxyOptions): Promise<Service> {
  const summary = new TraceSummary();
  const log = new TraceLog(options.log);
  const sockets = new Set<Socket>();
  const onClient = (client: Socket): void => {
    sockets.add(client);
    client.once(
      'close',
      guarded(() => sockets.delete(client)),
    );
    relay(client, dial(options), summary, log);
  };
  const server =
    options.listen.protocol === 'https:' ? secure(options, onClient) : createServer(onClient);
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        reject(
          new Error(
            `--listen: cannot listen on ${options.listen.host}: ${error.code ?? error.message}`,
          ),
        );
      }),
    );
    server.listen(
      Number(options.listen.port),
      options.listen.hostname.replaceAll(/[[\]]/g, ''),
      resolve,
    );
  });
  const { port } = server.address() as AddressInfo;
  return {
    listens:
      `${options.listen.protocol}//${options.listen.hostname}:${port} ` +
      `before ${options.target.origin}`,
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await log.end();
      if (options.summary !== undefined) {
        writeFileSync(options.summary, `${JSON.stringify(summary.rows(), undefined, 1)}\n`);
      }
      process.stdout.write(summary.table());
    },
  };
}

function secure(
  { certFile, keyFile, trustedCaFile }: TraceProxyOptions,
  onClient: (socket: Socket) => void,
): ReturnType<typeof createTlsServer> {
  if (certFile === undefined || keyFile === undefined) {
    throw new Error('--listen: https needs --cert-file and --key-file');
  }
  const authority = trustedCaFile === undefined ? {} : clientAuthority(read(trustedCaFile), true);
  const server = createTlsServer(
    { cert: read(certFile), key: read(keyFile), ALPNProtocols: ['h2'], ...authority },
    onClient,
  );
  server.on(
    'tlsClientError',
    guarded((_error, socket: Socket) => void socket.destroy()),
  );
  return server;
}

function dial({ target, targetCacert, targetCert, targetKey }: TraceProxyOptions): Socket {
  const host = target.hostname.replaceAll(/[[\]]/g, '');
  const port = Number(target.port || 2379);
  if (target.protocol === 'http:') return connectPlain({ host, port });
  const parts = clientTls({
    ...(targetCacert === undefined ? {} : { ca: read(targetCacert) }),
    ...(targetCert === undefined || targetKey === undefined
      ? {}
      : { cert: read(targetCert), key: read(targetKey) }),
  });
  return connectTls({ host, port, ALPNProtocols: ['h2'], ...parts });
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}

/** Bytes pass first, and are looked at afterwards; a side that is slow slows the other one down. */
function relay(client: Socket, server: Socket, summary: TraceSummary, log: TraceLog): void {
  const trace = new ConnectionTrace({
    summary,
    nowMs: () => performance.now(),
    onCall: (call) => log.write(call),
  });
  client.setNoDelay(true);
  server.setNoDelay(true);
  const end = guarded(() => {
    client.destroy();
    server.destroy();
  });
  client.on('error', end).once('close', end);
  server.on('error', end).once('close', end);
  for (const [from, to, tap] of [
    [client, server, trace.client],
    [server, client, trace.server],
  ] as const) {
    from.on(
      'data',
      guarded((chunk: Buffer) => {
        if (!to.write(chunk)) from.pause();
        if (!tap.isBlind) tap.push(chunk);
      }),
    );
    to.on(
      'drain',
      guarded(() => from.resume()),
    );
    from.on(
      'end',
      guarded(() => to.end()),
    );
  }
}

class TraceLog {
  readonly #stream: WriteStream | null;
  #leftOut = 0;

  constructor(file: string | undefined) {
    this.#stream = file === undefined ? null : createWriteStream(file, { flags: 'a', mode: 0o600 });
    this.#stream?.on(
      'error',
      guarded((error) => process.stderr.write(`megaplane: --log: ${error.message}\n`)),
    );
  }

  write(call: object): void {
    const stream = this.#stream;
    if (stream === null) return;
    if (stream.writableLength > LOG_BYTES_MAX) {
      this.#leftOut++;
      return;
    }
    const leftOut = this.#leftOut === 0 ? {} : { leftOutBefore: this.#leftOut };
    this.#leftOut = 0;
    stream.write(`${JSON.stringify({ time: new Date().toISOString(), ...call, ...leftOut })}\n`);
  }

  end(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#stream === null) resolve();
      else this.#stream.end(() => resolve());
    });
  }
}
