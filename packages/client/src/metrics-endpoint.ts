// shell: a small HTTP server
/** `/metrics` and `/healthz` for scrapers, on plain HTTP, loopback unless told otherwise. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MetricsEndpoint {
  /** Of `/metrics`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on `host:port` (port 0: a free one). Rejects with a text for people. */
export async function serveMetrics(address: string, text: () => string): Promise<MetricsEndpoint> {
  const match = /^(.*):(\d+)$/.exec(address);
  if (match === null) throw new Error(`--metrics-address: ${address} is not host:port`);
  const host = (match[1] ?? '').replace(/^\[|\]$/g, '') || '127.0.0.1';
  const server = createServer((request, response) => {
    const isMetrics = request.url === '/metrics';
    const isHealth = request.url === '/healthz';
    response.writeHead(isMetrics || isHealth ? 200 : 404, {
      'content-type': isMetrics ? 'text/plain; version=0.0.4; charset=utf-8' : 'text/plain',
    });
    response.end(
      isMetrics ? text() : isHealth ? 'ok' : 'not found: there is /metrics and /healthz\n',
    );
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
    url: `http://${shown}:${bound.port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
