// shell: HTTP to extenders
/** Calls extenders over HTTP, and tells what went wrong in the words of Go's client. */
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AgentOptions } from 'node:https';
import { parseGoDuration } from '@megaplane/machinery/cel/time-library';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { ExtenderConfiguration } from '../configuration/configuration.ts';
import type { Answer, ExtenderCall } from './extender.ts';

const DEFAULT_TIMEOUT_MS = 5000;
/** A longer answer is none: it would name hundreds of thousands of nodes in full. */
const ANSWER_BYTES_MAX: number = 512 * 1024 * 1024;
const OK = 200;

interface Connection {
  readonly agent: HttpAgent | HttpsAgent;
  readonly timeoutMs: number;
}

function timeoutMsOf({ httpTimeout }: ExtenderConfiguration): number {
  const nanos = parseGoDuration(httpTimeout ?? '0') ?? 0n;
  return nanos <= 0n ? DEFAULT_TIMEOUT_MS : Number(nanos / 1_000_000n);
}

function fileOrData(file: string | undefined, data: string | undefined): Buffer | undefined {
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64');
  return file === undefined || file === '' ? undefined : readFileSync(file);
}

/** TLS as configured. HTTPS without any authority trusts everybody, as upstream has it. */
function tlsOf({ tlsConfig = {}, enableHTTPS }: ExtenderConfiguration): AgentOptions {
  const ca = fileOrData(tlsConfig.caFile, tlsConfig.caData);
  if (tlsConfig.insecure === true && ca !== undefined) {
    throw new Error('specifying a root certificates file with the insecure flag is not allowed');
  }
  const cert = fileOrData(tlsConfig.certFile, tlsConfig.certData);
  const key = fileOrData(tlsConfig.keyFile, tlsConfig.keyData);
  const isOpen = tlsConfig.insecure === true || (enableHTTPS === true && ca === undefined);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(tlsConfig.serverName === undefined ? {} : { servername: tlsConfig.serverName }),
    rejectUnauthorized: !isOpen,
  };
}

/** What Go's HTTP client says of a request that got no answer. */
function transportText(url: URL, error: NodeJS.ErrnoException): string {
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const where = `${url.hostname}:${port}`;
  const why =
    error.code === 'ECONNREFUSED'
      ? `dial tcp ${where}: connect: connection refused`
      : error.code === 'ECONNRESET'
        ? 'EOF'
        : error.message;
  return `Post ${JSON.stringify(String(url))}: ${why}`;
}

const TIMED_OUT = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

export class ExtenderCaller {
  readonly #connections = new Map<ExtenderConfiguration, Connection>();

  /** Throws if certificates cannot be read. */
  constructor(configurations: readonly ExtenderConfiguration[]) {
    for (const configuration of configurations) {
      const isSecure = (configuration.urlPrefix ?? '').startsWith('https:');
      const options = { keepAlive: true };
      const tls = tlsOf(configuration);
      const agent = isSecure ? new HttpsAgent({ ...options, ...tls }) : new HttpAgent(options);
      this.#connections.set(configuration, { agent, timeoutMs: timeoutMsOf(configuration) });
    }
  }

  /** Resolves in any case, after the extender's timeout at the latest. */
  async call({ extender, verb, body }: ExtenderCall): Promise<Answer> {
    const address = `${extender.url.replace(/\/+$/, '')}/${verb}`;
    if (!URL.canParse(address)) {
      return { ok: false, text: `parse ${JSON.stringify(address)}: invalid URI for request` };
    }
    const connection = this.#connections.get(extender.configuration);
    if (connection === undefined) return { ok: false, text: 'the extender is not configured' };
    const url = new URL(address);
    const { status, text, error } = await post(url, JSON.stringify(body), connection);
    if (error !== '') return { ok: false, text: error };
    if (status !== OK) {
      const what = `failed ${verb} with extender at URL ${address}`;
      return { ok: false, text: `${what}, code ${status}` };
    }
    try {
      return { ok: true, value: JSON.parse(text) as JsonValue };
    } catch {
      return { ok: false, text: `the answer of ${address} is no JSON` };
    }
  }

  close(): void {
    for (const { agent } of this.#connections.values()) agent.destroy();
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly error: string;
}

function post(url: URL, body: string, { agent, timeoutMs }: Connection): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const options: RequestOptions = {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    signal: AbortSignal.timeout(timeoutMs),
  };
  const fail = (error: NodeJS.ErrnoException): void => {
    const isLate = error.name === 'AbortError' || error.name === 'TimeoutError';
    const text = isLate ? `Post ${JSON.stringify(String(url))}: ${TIMED_OUT}` : '';
    resolve({ status: 0, text: '', error: text === '' ? transportText(url, error) : text });
  };
  const read = (response: IncomingMessage): void => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= ANSWER_BYTES_MAX) return void chunks.push(chunk);
      response.destroy(new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`));
    });
    response.on('error', fail);
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      resolve({ status: response.statusCode ?? 0, text, error: '' });
    });
  };
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = send(url, options, read);
  request.on('error', fail);
  request.end(body);
  return promise;
}
