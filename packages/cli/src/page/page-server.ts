// shell: a small HTTP server
/** The page's HTTP server: files, data and one stream, to those who have the token. */
import { parseNested } from '@megaplane/base/nested-json';
import { guarded, unawaited } from '@megaplane/base/deferred';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { cookieHeader, hostsOf, judge } from './access.ts';
import type { Caller, Rules } from './access.ts';
import type { PageFile } from './files.ts';
import type { PageData } from './page-data.ts';

/** A document to be applied, with room for its quoting. */
export const BODY_BYTES_MAX: number = 4 * 1024 * 1024;
export const CONNECTIONS_MAX = 256;
/** Answers that are put together at once; who comes then is told to come again. */
export const ANSWERS_MAX = 32;
const HEAD_MS_MAX = 10_000;
const REQUEST_MS_MAX = 30_000;
const HEAD_BYTES_MAX = 16 * 1024;

/** Nothing is loaded from elsewhere, nothing sent there, and nobody frames the page. */
const FIXED_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
  'cache-control': 'no-store',
} as const;

export interface PageIdentity {
  /** With the certificates between it and its authority. */
  readonly certificate: string;
  readonly key: string;
}

export interface PageServerOptions {
  /** Host to listen on, and port; 0: a free one. */
  readonly host: string;
  readonly port: number;
  /** PEM of what it shows to browsers; undefined: it speaks plain HTTP. */
  readonly identity: PageIdentity | undefined;
  /** Names besides the machine's own that the page is asked for by. */
  readonly allowedHosts: readonly string[];
  readonly token: string;
  readonly files: Promise<ReadonlyMap<string, PageFile>>;
  readonly data: PageData;
}

export interface PageServer {
  /** The link that opens the page. */
  readonly link: string;
  close(): Promise<void>;
}

/** Listens; rejects with a text for people. */
export async function openPageServer(options: PageServerOptions): Promise<PageServer> {
  const state: { rules: Rules; answers: number } = {
    rules: { token: options.token, hosts: new Set(), port: 0, isSecure: false },
    answers: 0,
  };
  const { identity } = options;
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    unawaited(answer(options, state, request, response));
  };
  const limits = { maxHeaderSize: HEAD_BYTES_MAX };
  const server =
    identity === undefined
      ? createServer(limits, listener)
      : createSecureServer({ ...limits, ...tlsOf(identity) }, listener);
  server.maxConnections = CONNECTIONS_MAX;
  server.headersTimeout = HEAD_MS_MAX;
  server.requestTimeout = REQUEST_MS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        const why = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
        const where = `${options.host}:${options.port}`;
        reject(new Error(`--listen-address: cannot listen on ${where}: ${why}; choose another`));
      }),
    );
    server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  const hosts = hostsOf(address, port, options.allowedHosts);
  const isSecure = identity !== undefined;
  state.rules = { token: options.token, hosts, port, isSecure };
  const isAny = address === '0.0.0.0' || address === '::';
  const shown = isAny ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;
  return {
    link: `${isSecure ? 'https' : 'http'}://${shown}:${port}/?token=${options.token}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function tlsOf({ certificate, key }: PageIdentity): SecureContextOptions {
  const options: SecureContextOptions = { cert: certificate, key, minVersion: 'TLSv1.2' };
  try {
    createSecureContext(options);
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`--tls-cert-file, --tls-private-key-file: no pair of PEM files: ${why}`, {
      cause: error,
    });
  }
  return options;
}

interface State {
  readonly rules: Rules;
  answers: number;
}

async function answer(
  options: PageServerOptions,
  state: State,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  for (const [name, value] of Object.entries(FIXED_HEADERS)) response.setHeader(name, value);
  try {
    const url = URL.parse(request.url ?? '/', 'http://page');
    if (url === null) return say(response, 400, 'no such address\n');
    const isData = url.pathname.startsWith('/api/');
    const verdict = judge(callerOf(request, url), state.rules, isData);
    if (verdict.kind === 'refused') return say(response, verdict.code, verdict.text);
    if (verdict.kind === 'files') {
      if (verdict.setsCookie) response.setHeader('set-cookie', cookieHeader(state.rules));
      return await answerFile(options, url.pathname, request, response);
    }
    if (url.pathname === '/api/stream' && request.method === 'GET') {
      if (!(await options.data.openStream(response))) say(response, 503, 'too many pages\n');
      return;
    }
    if (state.answers >= ANSWERS_MAX) return say(response, 503, 'too many requests at once\n');
    state.answers++;
    try {
      await answerData(options, url, request, response);
    } finally {
      state.answers--;
    }
  } catch (error) {
    // one request's failure: its answer says so, and nothing else ends
    if (response.headersSent) response.destroy();
    else say(response, 500, `${(error as Error).message}\n`);
  }
}

function callerOf({ headers }: IncomingMessage, url: URL): Caller {
  const one = (value: string | string[] | undefined): string | undefined =>
    Array.isArray(value) ? value[0] : value;
  return {
    host: headers.host,
    origin: headers.origin,
    fetchSite: one(headers['sec-fetch-site']),
    authorization: headers.authorization,
    cookie: headers.cookie,
    token: url.searchParams.get('token'),
  };
}

async function answerFile(
  { files }: PageServerOptions,
  path: string,
  { method = '' }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD') return say(response, 405, 'files are only read\n');
  const file = (await files).get(path === '/' ? 'index.html' : path.slice(1));
  if (file === undefined) return say(response, 404, 'there is nothing here\n');
  response.setHeader('content-length', file.bytes.length);
  response.writeHead(200, { 'content-type': file.contentType });
  response.end(method === 'HEAD' ? undefined : file.bytes);
}

async function answerData(
  { data }: PageServerOptions,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '' } = request;
  const body = await bodyOf(request);
  if (typeof body === 'string') return say(response, body === 'too large' ? 413 : 400, `${body}\n`);
  const { pathname: path, searchParams: query } = url;
  const made = await data.answer({ method, path, query, body: body.json });
  if (response.destroyed) return;
  const isBytes = 'bytes' in made;
  const bytes = isBytes ? made.bytes : Buffer.from(JSON.stringify(made.json));
  response.writeHead(made.code, {
    'content-type': isBytes ? 'application/octet-stream' : 'application/json',
    'content-length': bytes.length,
  });
  response.end(bytes);
}

/** The body as JSON; null without one, a text for people where it is none. */
async function bodyOf(request: IncomingMessage): Promise<{ readonly json: JsonValue } | string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const piece = chunk as Buffer;
    bytes += piece.length;
    if (bytes > BODY_BYTES_MAX) return 'too large';
    chunks.push(piece);
  }
  if (bytes === 0) return { json: null };
  try {
    return { json: parseNested(Buffer.concat(chunks).toString('utf8')) as JsonValue };
  } catch {
    return 'the body is no JSON';
  }
}

function say(response: ServerResponse, code: number, text: string): void {
  // what was not read of the body would be taken for the next request
  if (code === 413) response.setHeader('connection', 'close');
  response.writeHead(code, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}
