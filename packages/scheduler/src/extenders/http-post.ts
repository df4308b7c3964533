// shell: HTTP to extenders
/** One POST and its answer as Go's HTTP client has them: redirects are followed, errors worded. */
import { guarded } from '@megaplane/base/deferred';
import { request as httpRequest } from 'node:http';
import type { Agent as HttpAgent, IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface Connection {
  readonly agent: HttpAgent | HttpsAgent;
  readonly timeoutMs: number;
}

export interface Reply {
  readonly status: number;
  readonly bytes: Buffer;
  /** Why the bytes are not all; empty if they are. */
  readonly cut: string;
  /** Why there is no answer; empty if there is one. */
  readonly error: string;
}

const OK = 200;
/** Go's client gives up then. */
const REDIRECTS_MAX = 10;
/** Where a body is not sent along. */
const REDIRECTS_TO_GET: ReadonlySet<number> = new Set([301, 302, 303]);
const REDIRECTS: ReadonlySet<number> = new Set([...REDIRECTS_TO_GET, 307, 308]);
/** A longer answer is none: it would name hundreds of thousands of nodes in full. */
const ANSWER_BYTES_MAX: number = 512 * 1024 * 1024;

const DEADLINE = 'context deadline exceeded';
const LATE_HEADERS = `${DEADLINE} (Client.Timeout exceeded while awaiting headers)`;
const LATE_BODY = `${DEADLINE} (Client.Timeout or context cancellation while reading body)`;
const EMPTY = Buffer.alloc(0);

/** Resolves in any case, after the timeout at the latest. */
export async function post(start: URL, body: string, connection: Connection): Promise<Reply> {
  const signal = AbortSignal.timeout(connection.timeoutMs);
  let [url, method] = [start, 'POST'];
  for (let redirects = 0; ; redirects++) {
    const { reply, location } = await exchange({ url, method, body, signal }, connection);
    if (reply.error !== '' || location === '' || !REDIRECTS.has(reply.status)) return reply;
    if (redirects === REDIRECTS_MAX) return failed(url, `stopped after ${REDIRECTS_MAX} redirects`);
    if (REDIRECTS_TO_GET.has(reply.status)) method = 'GET';
    if (!URL.canParse(location, url)) return failed(url, `failed to parse Location header`);
    url = new URL(location, url);
  }
}

interface Exchange {
  readonly url: URL;
  readonly method: string;
  readonly body: string;
  readonly signal: AbortSignal;
}

interface Exchanged {
  readonly reply: Reply;
  readonly location: string;
}

/** Go names the method of the first request, and the address of the last. */
function failed(url: URL, why: string): Reply {
  const error = `Post ${JSON.stringify(String(url))}: ${why}`;
  return { status: 0, bytes: EMPTY, cut: '', error };
}

function exchange(call: Exchange, { agent }: Connection): Promise<Exchanged> {
  const { url, method, body, signal } = call;
  const { promise, resolve } = Promise.withResolvers<Exchanged>();
  const length = Buffer.byteLength(body);
  const headers = { 'content-type': 'application/json', 'content-length': length };
  const isSecure = url.protocol === 'https:';
  // A redirect may lead to the other protocol, for which nothing is configured.
  const isOwn = agent instanceof HttpsAgent === isSecure;
  const options: RequestOptions = {
    method,
    ...(isOwn ? { agent } : {}),
    ...(method === 'GET' ? {} : { headers }),
    signal,
  };
  let isAnswered = false;
  let localPort = 0;
  const request = (isSecure ? httpsRequest : httpRequest)(url, options, (response) => {
    isAnswered = true;
    const location = response.headers.location ?? '';
    const status = response.statusCode ?? 0;
    if (status === OK) {
      return readBody(response, signal, (bytes, cut) =>
        resolve({ reply: { status, bytes, cut, error: '' }, location }),
      );
    }
    response.resume();
    resolve({ reply: { status, bytes: EMPTY, cut: '', error: '' }, location });
  });
  request.on(
    'socket',
    guarded((socket) => {
      const note = (): void => void (localPort = socket.localPort ?? 0);
      if (socket.connecting) socket.once('connect', guarded(note));
      else note();
    }),
  );
  request.on(
    'error',
    guarded((error: NodeJS.ErrnoException) => {
      // Once there is an answer, its body tells.
      if (isAnswered) return;
      const why = signal.aborted ? LATE_HEADERS : transportText(url, error, localPort);
      resolve({ reply: failed(url, why), location: '' });
    }),
  );
  request.end(method === 'GET' ? undefined : body);
  return promise;
}

function readBody(
  response: IncomingMessage,
  signal: AbortSignal,
  done: (bytes: Buffer, cut: string) => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const end = (cut: string): void => done(Buffer.concat(chunks), cut);
  response.on(
    'data',
    guarded((chunk: Buffer) => {
      length += chunk.length;
      if (length <= ANSWER_BYTES_MAX) return void chunks.push(chunk);
      chunks.length = 0;
      response.destroy(new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`));
    }),
  );
  response.on(
    'error',
    guarded((error: NodeJS.ErrnoException) => {
      if (length > ANSWER_BYTES_MAX) end(error.message);
      else end(signal.aborted ? LATE_BODY : 'unexpected EOF');
    }),
  );
  response.on(
    'end',
    guarded(() => end('')),
  );
}

/** What Go's HTTP client says of a request that got no answer. */
function transportText(url: URL, error: NodeJS.ErrnoException, localPort: number): string {
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const where = `${url.hostname}:${port}`;
  if (error.code === 'ECONNREFUSED') return `dial tcp ${where}: connect: connection refused`;
  if (error.code !== 'ECONNRESET') return error.message;
  // Without a system call it is the end of the stream, not a reset.
  if (error.syscall !== 'read') return 'EOF';
  return `read tcp ${url.hostname}:${localPort}->${where}: read: connection reset by peer`;
}
