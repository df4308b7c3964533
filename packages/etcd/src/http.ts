/** The plain HTTP paths beside gRPC: health, version, metrics, and the JSON gateway. */
import type { Exchange, Handler } from '@megaplane/wire/exchange';
import type { Gateway } from './gateway/gateway.ts';
import type { Health } from './http/health.ts';
import { ETCD_VERSION } from './maintenance.ts';

const TEXT_TYPE = 'text/plain; charset=utf-8';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const NO_SNIFF = ['x-content-type-options', 'nosniff'];

export interface HttpParts {
  readonly health: Health;
  readonly metrics: () => string;
  /** Null on a port for probes and scrapers alone: no version, no data. */
  readonly gateway: Gateway | null;
}

function version(exchange: Exchange): void {
  const cluster = `${ETCD_VERSION.split('.').slice(0, 2).join('.')}.0`;
  const body = { etcdserver: ETCD_VERSION, etcdcluster: cluster, storage: cluster };
  exchange.respond(200, 'application/json', JSON.stringify(body));
}

function notFound(exchange: Exchange): void {
  exchange.respond(404, TEXT_TYPE, '404 page not found\n', NO_SNIFF);
}

function notAllowed(exchange: Exchange): void {
  exchange.respond(405, TEXT_TYPE, 'Method Not Allowed\n', ['allow', 'GET', ...NO_SNIFF]);
}

/** `/health`, `/livez`, `/readyz`, `/metrics`, and on a client port `/version` and `/v3/*`. */
export function httpHandler({ health, metrics, gateway }: HttpParts): Handler {
  return (exchange) => {
    const { path: target } = exchange;
    const mark = target.indexOf('?');
    const path = mark < 0 ? target : target.slice(0, mark);
    if (gateway?.answer(exchange, path) === true) return;
    const isProbe = /^\/(health|metrics|(livez|readyz)(\/|$))/.test(path);
    const isVersion = gateway !== null && path === '/version';
    if (!isProbe && !isVersion) notFound(exchange);
    else if (exchange.method !== 'GET') notAllowed(exchange);
    else if (isVersion) version(exchange);
    else if (path === '/metrics') exchange.respond(200, METRICS_TYPE, metrics());
    else {
      const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1));
      if (!health.answer(exchange, path, query)) notFound(exchange);
    }
  };
}
