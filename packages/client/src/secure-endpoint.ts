// shell: a small HTTPS server
/** `/metrics` and health as upstream's components serve them: over TLS, for who may see them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { DelegatedAccess } from './delegated-access.ts';
import type { Client } from './client.ts';
import type { MetricsEndpoint } from './metrics-endpoint.ts';

export interface SecureAddress {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Paths that anybody may ask for. */
  readonly openPaths: readonly string[];
}

const HEALTH = ['/healthz', '/livez', '/readyz'];
const REASONS = { 401: 'Unauthorized', 403: 'Forbidden', 500: 'InternalError' } as const;

/** Listens; rejects with a text for people. */
export async function serveSecurely(
  address: SecureAddress,
  client: Client,
  text: () => string,
): Promise<MetricsEndpoint> {
  const access = new DelegatedAccess(client, address.openPaths);
  const server = createServer(
    { cert: address.certificate, key: address.key },
    (request, answer) => {
      void respond(access, request, answer, text);
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
      const where = `${address.host}:${address.port}`;
      reject(new Error(`--secure-port: cannot listen on ${where}: ${reason}`));
    });
    server.listen(address.port, address.host, resolve);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `https://${shown}:${bound.port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function respond(
  access: DelegatedAccess,
  request: IncomingMessage,
  answer: ServerResponse,
  text: () => string,
): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'https://localhost');
  const verb = (request.method ?? 'GET').toLowerCase();
  const verdict = await access.decide(pathname, verb, request.headers.authorization ?? '');
  if (verdict.kind === 'refused') {
    const { code, text: message } = verdict;
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message };
    answer.writeHead(code, { 'content-type': 'application/json' });
    answer.end(`${JSON.stringify({ ...status, reason: REASONS[code], details: {}, code })}\n`);
    return;
  }
  const isMetrics = pathname === '/metrics';
  const isFound = isMetrics || HEALTH.includes(pathname);
  answer.writeHead(isFound ? 200 : 404, {
    'content-type': isMetrics ? 'text/plain; version=0.0.4; charset=utf-8' : 'text/plain',
  });
  answer.end(isMetrics ? text() : isFound ? 'ok' : '404 page not found\n');
}
