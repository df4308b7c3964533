/** The plain HTTP paths beside gRPC: health, version, metrics, and the JSON gateway. */
import { constants, gzip } from 'node:zlib';
import { guarded } from '@megaplane/base/deferred';
import type { Exchange, Handler } from '@megaplane/wire/exchange';
import type { Gateway } from '../gateway/gateway.ts';
import type { Health } from './health.ts';
import type { Origins } from './origins.ts';
import type { Scrapes } from './scrapes.ts';
import { ETCD_VERSION } from '../maintenance/maintenance.ts';
import type { FieldList } from '@megaplane/wire/fields';

const TEXT_TYPE = 'text/plain; charset=utf-8';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const VARS_TYPE = 'application/json; charset=utf-8';
const NO_SNIFF = ['x-content-type-options', 'nosniff'];

export interface HttpParts {
  readonly health: Health;
  readonly metrics: Scrapes;
  /** Null on a port for probes and scrapers alone, and where it was turned off. */
  readonly gateway: Gateway | null;
  /** What `/debug/vars` says; null, as there is no `/version`, on a port for probes alone. */
  readonly vars: (() => string) | null;
  /** Hosts that may be asked for without TLS; `*` is every host. */
  readonly hosts: readonly string[];
  /** Null on a port for probes and scrapers alone, which pages of other origins do not read. */
  readonly origins: Origins | null;
}

function version(exchange: Exchange, fields: FieldList): void {
  const cluster = `${ETCD_VERSION.split('.').slice(0, 2).join('.')}.0`;
  const body = { etcdserver: ETCD_VERSION, etcdcluster: cluster, storage: cluster };
  exchange.respond(200, 'application/json', JSON.stringify(body), fields);
}

/** Compressed where that is asked for, as by Prometheus: a sixteenth, on another thread. */
function scrape(exchange: Exchange, metrics: Scrapes, fields: FieldList): void {
  const asked = exchange.header('accept-encoding') ?? '';
  const isCompressed = /(^|,)\s*gzip\s*(;(?!\s*q=0(\.0*)?\s*(,|$))|,|$)/.test(asked);
  metrics.ask((text) => {
    if (text === null) {
      exchange.respond(500, TEXT_TYPE, 'the text of metrics failed; the log says why\n', fields);
      return;
    }
    if (!isCompressed) {
      exchange.respond(200, METRICS_TYPE, text, fields);
      return;
    }
    const answer = guarded((error: Error | null, body: Buffer) => {
      if (error === null) {
        exchange.respond(200, METRICS_TYPE, body, ['content-encoding', 'gzip', ...fields]);
      } else exchange.respond(200, METRICS_TYPE, text, fields);
    });
    gzip(text, { level: constants.Z_BEST_SPEED }, answer);
  });
}

function notFound(exchange: Exchange, fields: FieldList): void {
  exchange.respond(404, TEXT_TYPE, '404 page not found\n', [...NO_SNIFF, ...fields]);
}

function notAllowed(exchange: Exchange, fields: FieldList): void {
  const headers = ['allow', 'GET', ...NO_SNIFF, ...fields];
  exchange.respond(405, TEXT_TYPE, 'Method Not Allowed\n', headers);
}

/**
 * A page whose name leads to this port (DNS rebinding) asks for a host that is not ours. Over TLS
 * the certificate keeps it out, as in etcd.
 */
function isForeign(exchange: Exchange, hosts: readonly string[]): boolean {
  if (exchange.connection.secure || hosts.includes('*')) return false;
  const host = (exchange.header('host') ?? '').replace(/:\d+$/, '');
  return !hosts.includes(host);
}

/**
 * The path that Go's mux would look up: escapes read, dots and double slashes gone. Null when an
 * escape is none; one that is no UTF-8 stays as it is, and finds nothing.
 */
function decodedPath(path: string): string | null {
  if (!path.includes('%')) return path;
  if (/%(?![0-9a-f]{2})/i.test(path)) return null;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Where the same path stands without detours (Go's `path.Clean`, and `/v3` for its folder). */
function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  const clean = `/${parts.join('/')}${path.endsWith('/') && parts.length > 0 ? '/' : ''}`;
  return clean === '/v3' || clean === '/v3beta' ? `${clean}/` : clean;
}

function redirect(exchange: Exchange, path: string, query: string, fields: FieldList): void {
  const location = encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23') + query;
  const hasBody = exchange.method === 'GET' || exchange.method === 'HEAD';
  const href = location.replaceAll('&', '&amp;').replaceAll("'", '&#39;');
  const body = hasBody ? `<a href="${href}">Moved Permanently</a>.\n\n` : '';
  const type = hasBody ? 'text/html; charset=utf-8' : null;
  exchange.respond(301, type, body, ['location', location, ...fields]);
}

/** What a port answers that speaks gRPC alone. */
export const grpcOnly: Handler = (exchange) => {
  exchange.respond(404, TEXT_TYPE, 'HTTP is served on --listen-client-http-urls\n', NO_SNIFF);
};

/** `/health`, `/livez`, `/readyz`, `/metrics`, and on a client port `/version`, `/debug/vars`
 *  and `/v3/*`. */
export function httpHandler(parts: HttpParts): Handler {
  const { health, metrics, gateway, vars, hosts, origins } = parts;
  return (exchange) => {
    if (isForeign(exchange, hosts)) {
      const body = 'the host asked for is not in --host-whitelist; add it there, or use TLS\n';
      exchange.respond(421, TEXT_TYPE, body, NO_SNIFF);
      return;
    }
    const allowed = origins === null ? [] : origins.fieldsFor(exchange);
    const fields = allowed ?? [];
    if (origins !== null && exchange.method === 'OPTIONS') {
      exchange.respond(200, null, null, fields);
      return;
    }
    const { path: target } = exchange;
    const mark = target.indexOf('?');
    const path = decodedPath(mark < 0 ? target : target.slice(0, mark));
    if (path === null) {
      exchange.respond(400, TEXT_TYPE, '400 Bad Request', NO_SNIFF);
      return;
    }
    const clean = cleanPath(path);
    if (clean !== path) {
      redirect(exchange, clean, mark < 0 ? '' : target.slice(mark), fields);
      return;
    }
    if (gateway?.answer(exchange, path, allowed) === true) return;
    const isProbe = /^\/(health|metrics|(livez|readyz)(\/|$))/.test(path);
    const isVersion = vars !== null && path === '/version';
    const isVars = vars !== null && path === '/debug/vars';
    if (!isProbe && !isVersion && !isVars) notFound(exchange, fields);
    // Prometheus' handler takes any method.
    else if (path === '/metrics') scrape(exchange, metrics, fields);
    else if (exchange.method !== 'GET') notAllowed(exchange, fields);
    else if (isVersion) version(exchange, fields);
    else if (isVars) exchange.respond(200, VARS_TYPE, vars(), fields);
    else {
      const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1));
      if (!health.answer(exchange, path, query, fields)) notFound(exchange, fields);
    }
  };
}
