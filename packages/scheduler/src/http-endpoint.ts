// shell: a small HTTP server
/** `/metrics`, `/configz` and health, on plain HTTP, loopback unless told otherwise. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Page {
  readonly contentType: string;
  readonly text: string;
  readonly status?: number;
}

export interface HttpEndpoint {
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on `host:port` (port 0: a free one). Rejects with a text for people. */
export async function serveHttp(
  address: string,
  pageAt: (path: string, query: URLSearchParams) => Page | null,
): Promise<HttpEndpoint> {
  const match = /^(.*):(\d+)$/.exec(address);
  if (match === null) throw new Error(`--metrics-address: ${address} is not host:port`);
  const host = (match[1] ?? '').replace(/^\[|\]$/g, '') || '127.0.0.1';
  const server = createServer((request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const page = pageAt(path, new URLSearchParams(query)) ?? {
      status: 404,
      contentType: 'text/plain',
      text: 'not found: there are /metrics, /configz, /healthz, /livez and /readyz\n',
    };
    response.writeHead(page.status ?? 200, { 'content-type': page.contentType });
    response.end(page.text);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
      reject(new Error(`--metrics-address: cannot listen on ${address}: ${reason}`));
    });
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
