// shell: sockets, files, randomness and clocks of a client
/** The client over real sockets. */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemRandom } from '@megaplane/base/entropy';
import type { ClientConnection } from '@megaplane/wire/client';
import { connect } from '@megaplane/wire/connect';
import type { Client, ClientLimits } from './client.ts';
import { Dispatcher } from './dispatcher.ts';
import { parseKubeconfig, type Endpoint } from '../clientcmd/kubeconfig.ts';
import { systemTimers } from './system-timers.ts';

export const DEFAULT_LIMITS: ClientLimits = {
  connections: 1,
  inFlightMax: 1000,
  queueMax: 1000,
  requestTimeoutMs: 60_000,
  retriesMax: 10,
  answerBytesMax: 64 * 1024 * 1024,
};

/** Age at which a token is read again from its file. */
const TOKEN_AGE_MS = 60_000;

export interface KubeClientOptions {
  /** Path of a kubeconfig; or give `endpoint`. */
  readonly kubeconfig?: string;
  /** Context of the kubeconfig; default its current one. */
  readonly context?: string;
  readonly endpoint?: Endpoint;
  readonly limits?: Partial<ClientLimits>;
  /** Default `megaplane`. */
  readonly userAgent?: string;
}

export interface KubeClient extends Client {
  readonly endpoint: Endpoint;
  /** URL of the server, for messages. */
  readonly server: string;
}

/**
 * Makes a client. It connects when first used, and again whenever it must. Rejects with a message
 * for people when the kubeconfig cannot be read or understood.
 */
export async function createKubeClient(options: KubeClientOptions): Promise<KubeClient> {
  const endpoint = options.endpoint ?? readKubeconfig(options.kubeconfig ?? '', options.context);
  const random = systemRandom();
  const protocol = protocolOf(endpoint);
  const dispatcher = new Dispatcher({
    dial: () => dial(endpoint, protocol),
    token: tokenSource(endpoint),
    userAgent: options.userAgent ?? 'megaplane',
    pathPrefix: endpoint.pathPrefix,
    serverName: endpoint.server,
    timers: systemTimers,
    random: () => random.next(),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    isSerial: protocol === 'h1',
  });
  return Object.assign(dispatcher, { endpoint, server: endpoint.server });
}

/** Reads one context of a kubeconfig file; throws an Error with a message for people. */
export function readKubeconfig(path: string, context?: string): Endpoint {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot read kubeconfig ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const result = parseKubeconfig({
    text,
    name: path,
    directory: dirname(path),
    readFile: (file) => readFileSync(file, 'utf8'),
    ...(context === undefined ? {} : { context }),
  });
  if (!result.ok) throw new Error(result.message);
  return result.endpoint;
}

/** Servers of plain `http://` URLs (such as `kubectl proxy`) speak no HTTP/2. */
function protocolOf({ address, tls }: Endpoint): 'h2' | 'h1' {
  return tls === null && address.kind === 'tcp' ? 'h1' : 'h2';
}

function dial({ address, tls }: Endpoint, protocol: 'h2' | 'h1'): ClientConnection {
  const where =
    address.kind === 'unix'
      ? { unixPath: address.path }
      : { host: address.host, port: address.port };
  if (tls === null) return connect({ ...where, protocol });
  const { ca, cert, key, isVerified, serverName } = tls;
  return connect({
    ...where,
    protocol,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
      ...(serverName === '' ? {} : { servername: serverName }),
      insecure: !isVerified,
    },
  });
}

/** The token as it is now: of a file, at most so old; one that cannot be read any more stays. */
function tokenSource({ token, tokenFile }: Endpoint): () => string {
  if (tokenFile === '') return () => token;
  let present = token;
  let readMs = -Infinity;
  return () => {
    const nowMs = systemTimers.nowMs();
    if (nowMs - readMs < TOKEN_AGE_MS) return present;
    readMs = nowMs;
    try {
      present = readFileSync(tokenFile, 'utf8').trim();
    } catch (error) {
      // Files of tokens are replaced while programs run; the server judges the one that we have.
      process.emitWarning(`cannot read token file ${tokenFile}: ${(error as Error).message}`);
    }
    return present;
  };
}

/**
 * The endpoint of a kubeconfig that comes from elsewhere, or what is wrong with it: it may name
 * neither files nor sockets of this machine.
 */
export function inlineEndpoint(text: string, name: string): Endpoint | string {
  const refuse = (): never => {
    throw new Error('it names a file');
  };
  const source = { text, name, directory: '/', readFile: refuse };
  let result: ReturnType<typeof parseKubeconfig>;
  try {
    result = parseKubeconfig(source);
  } catch (error) {
    return `${name}: ${(error as Error).message}`;
  }
  if (!result.ok) return result.message;
  const { endpoint } = result;
  if (endpoint.address.kind === 'unix') return `${name}: it names a socket of this machine`;
  if (endpoint.tokenFile !== '') return `${name}: it names a file`;
  return endpoint;
}
