/**
 * Who may see the page.
 *
 * A token opens it. The printed link carries the token once; the answer sets a cookie, made from
 * the token, that opens the page's files and nothing else: browsers send cookies to every port of a
 * host, so a cookie is no proof for data. Data want the token itself as a bearer, which the page
 * keeps for its own origin. So a foreign site has nothing that its requests could ride on.
 *
 * Host and Origin are looked at besides: a name that somebody points at this machine
 * (DNS rebinding) is refused before anything is answered.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** What a request says of where it comes from. */
export interface Caller {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site`, which browsers set and pages cannot. */
  readonly fetchSite: string | undefined;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** Of the query, in the link that is printed. */
  readonly token: string | null;
}

export interface Rules {
  readonly token: string;
  /** `host:port` as clients may write them. */
  readonly hosts: ReadonlySet<string>;
  readonly port: number;
  /** The page is served over TLS: its cookie goes over nothing else. */
  readonly isSecure: boolean;
}

export type Verdict =
  | { readonly kind: 'files'; readonly setsCookie: boolean }
  | { readonly kind: 'data' }
  | { readonly kind: 'refused'; readonly code: 401 | 403 | 421; readonly text: string };

const NO_TOKEN = 'open the link that megaplane printed: it carries the token of this page\n';

/** What the caller may have: `isData` says which of the two it asks for. */
export function judge(caller: Caller, rules: Rules, isData: boolean): Verdict {
  const host = caller.host?.toLowerCase() ?? '';
  if (!rules.hosts.has(host)) {
    return refused(421, 'this host name is not served here; see --allowed-host\n');
  }
  const isForeign = caller.origin !== undefined && !isOwnOrigin(caller.origin, rules);
  if (isForeign) return refused(403, 'requests of other origins are refused\n');
  const isKnownBearer = isSame(bearerOf(caller.authorization), rules.token);
  if (isData) {
    const site = caller.fetchSite ?? 'none';
    if (site !== 'none' && site !== 'same-origin') {
      return refused(403, 'requests of other sites are refused\n');
    }
    return isKnownBearer ? { kind: 'data' } : refused(401, NO_TOKEN);
  }
  if (caller.token !== null && isSame(caller.token, rules.token)) {
    return { kind: 'files', setsCookie: true };
  }
  const cookie = cookieOf(caller.cookie, cookieName(rules));
  const isKnown = isKnownBearer || isSame(cookie, cookieValue(rules));
  return isKnown ? { kind: 'files', setsCookie: false } : refused(401, NO_TOKEN);
}

/** For who opens the link: no script sees it, no other site's requests carry it. */
export function cookieHeader(rules: Rules): string {
  const secure = rules.isSecure ? '; Secure' : '';
  return `${cookieName(rules)}=${cookieValue(rules)}; Path=/; HttpOnly; SameSite=Strict${secure}`;
}

/** The names under which a port of this machine is asked for. */
export function hostsOf(address: string, port: number, more: readonly string[]): Set<string> {
  const isAny = address === '0.0.0.0' || address === '::';
  const own = isAny ? [] : [address.includes(':') ? `[${address}]` : address];
  const isLocal = isAny || address === '127.0.0.1' || address === '::1' || address === 'localhost';
  const local = isLocal ? ['127.0.0.1', 'localhost', '[::1]'] : [];
  const hosts = new Set<string>();
  for (const name of [...own, ...local, ...more]) {
    const lower = name.toLowerCase();
    hosts.add(lower);
    hosts.add(`${lower}:${port}`);
  }
  return hosts;
}

function refused(code: 401 | 403 | 421, text: string): Verdict {
  return { kind: 'refused', code, text };
}

function isOwnOrigin(origin: string, rules: Rules): boolean {
  const [, scheme, host] = /^(https?):\/\/([^/]+)$/.exec(origin.toLowerCase()) ?? [];
  // what came over plain HTTP may have been changed on the way
  if (rules.isSecure && scheme !== 'https') return false;
  // a page on another port of this host is a foreign one
  return host !== undefined && (host.endsWith(`:${rules.port}`) || !/:\d+$/.test(host))
    ? rules.hosts.has(host)
    : false;
}

function bearerOf(authorization: string | undefined): string {
  return /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
}

function cookieName({ port }: Rules): string {
  return `megaplane-page-${port}`;
}

function cookieValue({ token, port }: Rules): string {
  return createHmac('sha256', token).update(`files of port ${port}`).digest('base64url');
}

function cookieOf(header: string | undefined, name: string): string {
  for (const part of (header ?? '').split(';')) {
    const [key = '', value = ''] = part.trim().split('=', 2);
    if (key === name) return value;
  }
  return '';
}

/** In a time that says nothing of where the two differ. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return given !== '' && timingSafeEqual(digest(given), digest(wanted));
}
