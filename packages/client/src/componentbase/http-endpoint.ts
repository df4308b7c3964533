// shell: a small HTTP server
/**
 * `/metrics` and health on plain HTTP, loopback unless told otherwise. Anybody on the machine may
 * ask there, so that what tells flags, configuration and objects is served by the secure port alone
 * (`secure-endpoint.ts`), to who shows a credential.
 */
import { guarded } from '@megaplane/base/deferred';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

/** Of a component's port; who holds more is a program that leaks them. */
export const COMPONENT_CONNECTIONS_MAX = 1024;
/** For the head of a request, and for all of it. */
export const PATIENCE = { headersTimeout: 10_000, requestTimeout: 60_000 } as const;

export interface Page {
  readonly contentType: string;
  readonly text: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** What follows the text, as it comes. */
  readonly pieces?: AsyncIterable<string>;
}

/** What pages are told of a request. */
export interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
}

export interface HttpEndpoint {
  readonly url: string;
  close(): Promise<void>;
}

const NOT_FOUND: Page = {
  status: 404,
  contentType: 'text/plain',
  text: 'not found: there are /metrics, /metrics/slis, /configz, /statusz, /flagz and /healthz\n',
};
const OPEN_PATHS = /^\/(?:metrics|metrics\/slis|(?:healthz|livez|readyz)(?:\/.*)?)$/;
const WITHOUT_CREDENTIAL: Page = {
  status: 403,
  contentType: 'text/plain',
  text:
    'forbidden: without a credential there are /metrics, /metrics/slis and health; ' +
    'ask --secure-port\n',
};

/** As HTTP/1.1 and HTTP/2 have them. */
interface Asked {
  readonly url?: string | undefined;
  readonly headers: { readonly accept?: string | undefined };
}
interface Answered extends NodeJS.WritableStream {
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown;
  destroy(): unknown;
}

export function answerPage(
  { url = '', headers: { accept = '' } }: Asked,
  response: Answered,
  pageAt: (request: PageRequest) => Page | null,
): void {
  const [path = '', query = ''] = url.split('?', 2);
  const page = pageAt({ path, query: new URLSearchParams(query), accept }) ?? NOT_FOUND;
  const { contentType, text, headers, pieces, status = 200 } = page;
  response.writeHead(status, { 'content-type': contentType, ...headers });
  if (pieces === undefined) {
    response.end(text);
    return;
  }
  const stream = Readable.from(pieces);
  // Whoever goes before the end wants no more.
  response.once(
    'close',
    guarded(() => stream.destroy()),
  );
  stream.once(
    'error',
    guarded(() => response.destroy()),
  );
  response.write(text);
  stream.pipe(response);
}

/** Listens on `host:port` (port 0: a free one). Rejects with a text for people. */
export async function serveHttp(
  address: string,
  pageAt: (request: PageRequest) => Page | null,
): Promise<HttpEndpoint> {
  const match = /^(.*):(\d+)$/.exec(address);
  if (match === null) throw new Error(`--metrics-address: ${address} is not host:port`);
  const host = (match[1] ?? '').replace(/^\[|\]$/g, '') || '127.0.0.1';
  const server = createServer(PATIENCE, (request, response) =>
    answerPage(request, response, (asked) =>
      OPEN_PATHS.test(asked.path) ? pageAt(asked) : WITHOUT_CREDENTIAL,
    ),
  );
  server.maxConnections = COMPONENT_CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once(
      'error',
      guarded((error: NodeJS.ErrnoException) => {
        const reason = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
        reject(new Error(`--metrics-address: cannot listen on ${address}: ${reason}`));
      }),
    );
    server.listen(Number(match[2]), host, resolve);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${shown}:${bound.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
