/**
 * What of a request's head goes on to whom it is passed on, and what of the answer's head comes
 * back: the rules of Go's reverse proxy and of upstream's transport around it.
 */
import type { Call } from '../request/call.ts';
import type { Target } from '../webhook/target.ts';
import type { FieldList } from '@megaplane/wire/fields';

/** Fields that are for this server, or for one connection alone. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Said anew on the way there. */
const RENEWED = new Set(['audit-id', 'x-forwarded-for', 'x-forwarded-uri']);
/** Who may read an answer in a browser is for this server to say. */
const CORS_FIELDS: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
]);

/** The head for the target; host and length are the client's business. */
export function passedFields({ exchange, auditId }: Call, target: Target): string[] {
  const fields: string[] = [...(target.fields ?? [])];
  const { isWrapped, peer } = target;
  const named = namedIn(exchange.header('connection') ?? '');
  const from: string[] = [];
  const all = exchange.fields();
  for (let at = 0; at + 1 < all.length; at += 2) {
    const name = (all[at] ?? '').toLowerCase();
    const value = all[at + 1] ?? '';
    if (name === 'x-forwarded-for') from.push(value);
    if (OWN_FIELDS.has(name) || RENEWED.has(name) || named.has(name)) continue;
    if (name.startsWith('impersonate-') || name.startsWith(':')) continue;
    // who asks is for this server to say
    if (name.startsWith('x-remote-')) continue;
    if (peer === 'extension' && /^x-forwarded-(host|proto)$/.test(name)) continue;
    fields.push(name, value);
  }
  fields.push('audit-id', auditId);
  fields.push('x-forwarded-for', [...from, exchange.connection.remoteAddress].join(', '));
  if (isWrapped !== true) return fields;
  fields.push('x-forwarded-uri', pathIn(exchange.path));
  if (peer === 'extension') {
    fields.push('x-forwarded-host', addressOf(target), 'x-forwarded-proto', 'https');
  }
  return fields;
}

/** The name that the target is called by: pods and services see whom the client has called. */
export function hostFor({ exchange }: Call, target: Target): string {
  return target.peer === 'workload' ? exchange.authority : addressOf(target);
}

function addressOf({ host, port }: Target): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export interface AnswerHead {
  readonly type: string | null;
  readonly fields: string[];
}

/** The head for the client, of what the target said. */
export function returnedFields(call: Call, target: Target, said: FieldList): AnswerHead {
  const fields: string[] = ['audit-id', call.auditId];
  const named = new Set<string>();
  for (let at = 0; at + 1 < said.length; at += 2) {
    if (said[at]?.toLowerCase() !== 'connection') continue;
    for (const name of namedIn(said[at + 1] ?? '')) named.add(name);
  }
  let type: string | null = null;
  let isCacheTold = false;
  for (let at = 0; at + 1 < said.length; at += 2) {
    const name = (said[at] ?? '').toLowerCase();
    const value = said[at + 1] ?? '';
    if (OWN_FIELDS.has(name) || named.has(name)) continue;
    if (target.isWrapped === true && CORS_FIELDS.has(name)) continue;
    isCacheTold ||= name === 'cache-control';
    if (name === 'content-type') type = value;
    else if (name === 'location' && target.isWrapped === true) {
      fields.push(name, rewritten(value, call, target));
    } else fields.push(name, value);
  }
  if (!isCacheTold) fields.push('cache-control', 'no-cache, private');
  return { type, fields };
}

/** Names of fields that `Connection` says are for one connection. */
function namedIn(connection: string): ReadonlySet<string> {
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

function pathIn(target: string): string {
  const at = target.indexOf('?');
  return at < 0 ? target : target.slice(0, at);
}

/** A link to the target's own host leads through the proxy; upstream's `rewriteURL`. */
function rewritten(location: string, call: Call, target: Target): string {
  const parts = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/is.exec(location);
  const [, scheme = '', host = '', path = '', rest = ''] = parts ?? [];
  const { authority } = call.exchange;
  const isOther = host !== '' && host !== addressOf(target) && host !== authority;
  if (isOther || !path.startsWith('/')) return location;
  const start = host === authority && scheme !== '' ? `${scheme}://${host}` : '';
  const before = pathIn(call.exchange.path);
  const own = pathIn(target.path);
  const prefix = before.endsWith(own) ? before.slice(0, before.length - own.length) : before;
  return start + (path.startsWith(prefix) ? path : prefix + path) + rest;
}
