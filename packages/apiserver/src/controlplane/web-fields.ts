/**
 * Header fields for web pages that every answer carries where flags ask for them: which origins may
 * read answers (`--cors-allowed-origins`), and that the server is spoken to over TLS alone
 * (`--strict-transport-security-directives`). As kube-apiserver's filters WithCORS and WithHSTS.
 */
import { compilePattern, matchesRe2 } from '@megaplane/machinery/cel/regex-library';
import type { BodyOwner, Exchange } from '@megaplane/wire/exchange';
import type { FieldList } from '@megaplane/wire/fields';

/** Flags as given on the command line; the names are kube-apiserver's. */
export interface WebFlags {
  /** Regular expressions of RE2 over origins. */
  readonly corsAllowedOrigins?: readonly string[];
  readonly strictTransportSecurityDirectives?: readonly string[];
}

export interface Doors {
  readonly handler: (exchange: Exchange) => void;
  readonly bodyOwner: BodyOwner;
}

const ALLOWED_METHODS = 'POST, GET, OPTIONS, PUT, DELETE, PATCH';
const ALLOWED_FIELDS =
  'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, ' +
  'X-Requested-With, If-Modified-Since';
const NO_CONTENT = 204;
/** Longer origins are no page's: a host name has at most 253 characters. */
const ORIGIN_CHARS_MAX = 1024;
const DIRECTIVE = /^(?:max-age=\d+|includeSubDomains|preload)$/;

/** Throws an Error that names the flag where one makes no sense. */
export function checkWebFlags({
  corsAllowedOrigins = [],
  strictTransportSecurityDirectives = [],
}: WebFlags): void {
  for (const text of corsAllowedOrigins) {
    const flag = '--cors-allowed-origins has an invalid regular expression';
    const pattern = compilePattern(text);
    if (!pattern.ok) throw new Error(`${flag}: ${pattern.message}`);
    // else `good.example` would let `good.example.evil.example` in
    if (/\^|\/\//.test(text) && /[$:]/.test(text.replaceAll('://', ''))) continue;
    throw new Error(`${flag}: ${text} does not pin to start/end of host in the origin header`);
  }
  for (const text of strictTransportSecurityDirectives) {
    if (DIRECTIVE.test(text)) continue;
    throw new Error(
      `--strict-transport-security-directives: ${text}: max-age=SECONDS, includeSubDomains or ` +
        'preload is needed',
    );
  }
}

/** The same doors; answers that leave by them carry what the flags ask for. */
export function withWebFields(flags: WebFlags, doors: Doors): Doors {
  const { corsAllowedOrigins = [], strictTransportSecurityDirectives = [] } = flags;
  if (corsAllowedOrigins.length === 0 && strictTransportSecurityDirectives.length === 0) {
    return doors;
  }
  const strict = strictTransportSecurityDirectives.join('; ');
  const known: FieldList = strict === '' ? [] : ['strict-transport-security', strict];
  const fieldsFor = (exchange: Exchange): FieldList => [
    ...(exchange.connection.secure ? known : []),
    ...originFields(corsAllowedOrigins, exchange.header('origin') ?? ''),
  ];
  return {
    handler(exchange) {
      const added = addFields(exchange, fieldsFor(exchange));
      const isPreflight =
        exchange.method === 'OPTIONS' && added.includes('access-control-allow-origin');
      if (isPreflight) exchange.respond(NO_CONTENT, null, null);
      else doors.handler(exchange);
    },
    bodyOwner(exchange) {
      addFields(exchange, fieldsFor(exchange));
      return doors.bodyOwner(exchange);
    },
  };
}

function originFields(patterns: readonly string[], origin: string): FieldList {
  if (origin === '' || origin.length > ORIGIN_CHARS_MAX) return [];
  if (!patterns.some((pattern) => matchesRe2(origin, pattern))) return [];
  return [
    ...['access-control-allow-origin', origin],
    ...['access-control-allow-methods', ALLOWED_METHODS],
    ...['access-control-allow-headers', ALLOWED_FIELDS],
    ...['access-control-expose-headers', 'Date'],
    ...['access-control-allow-credentials', 'true'],
  ];
}

/** Has each head of the exchange carry them, whoever answers. */
function addFields(exchange: Exchange, added: FieldList): FieldList {
  if (added.length === 0) return added;
  const plain = Object.getPrototypeOf(exchange) as Exchange;
  const all = (headers: FieldList | undefined): FieldList => [...(headers ?? []), ...added];
  exchange.respond = (status, type, bytes, headers, lasting) =>
    plain.respond.call(exchange, status, type, bytes, all(headers), lasting);
  exchange.respondCopy = (status, type, bytes, length, headers, lasting) =>
    plain.respondCopy.call(exchange, status, type, bytes, length, all(headers), lasting);
  exchange.open = (status, type, headers) => plain.open.call(exchange, status, type, all(headers));
  return added;
}
