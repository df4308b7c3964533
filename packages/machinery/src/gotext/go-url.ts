/** URLs as Go's `url.Parse` takes them apart: relative ones too, and nearly any text is one. */
import { quoted } from '../json/quoting.ts';

interface GoUrl {
  readonly scheme: string;
  /** Undefined: none at all; empty: an `@` with nothing before it. */
  readonly user: string | undefined;
  readonly host: string;
  /** As it was written; empty where what follows the scheme is no path. */
  readonly path: string;
  readonly query: string;
  readonly fragment: string;
}

const HOST_REFUSED = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/;

/**
 * The parts of a URL, or what Go says is wrong with it. `isRequest` is for `url.ParseRequestURI`:
 * absolute URIs and absolute paths, which have no fragments.
 */
export function parseGoUrl(text: string, isRequest = false): GoUrl | string {
  const hash = isRequest ? -1 : text.indexOf('#');
  const fragment = hash < 0 ? '' : text.slice(hash + 1);
  const rest = hash < 0 ? text : text.slice(0, hash);
  const wrong = (why: string, whole = rest): string => `parse ${quoted(whole)}: ${why}`;
  // oxlint-disable-next-line no-control-regex -- Go refuses exactly these
  if (/[\x00-\x1f\x7f]/.test(rest)) return wrong('net/url: invalid control character in URL');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(rest)?.[1] ?? '';
  if (rest.startsWith(':')) return wrong('missing protocol scheme');
  const behind = scheme === '' ? rest : rest.slice(scheme.length + 1);
  const mark = behind.indexOf('?');
  const query = mark < 0 ? '' : behind.slice(mark + 1);
  const whole = mark < 0 ? behind : behind.slice(0, mark);
  const parts = { scheme: scheme.toLowerCase(), query, fragment };
  if (!whole.startsWith('/')) {
    if (scheme !== '') return { ...parts, user: undefined, host: '', path: '' };
    if (isRequest && whole !== '*') return wrong('invalid URI for request');
    if ((whole.split('/')[0] ?? '').includes(':')) {
      return wrong('first path segment in URL cannot contain colon');
    }
  }
  const isBare = isRequest || whole.startsWith('///');
  const hasHost = whole.startsWith('//') && (scheme !== '' || !isBare);
  const end = hasHost ? whole.indexOf('/', 2) : -1;
  const authority = hasHost ? whole.slice(2, end < 0 ? whole.length : end) : '';
  const at = authority.lastIndexOf('@');
  const host = authority.slice(at + 1);
  const path = hasHost ? (end < 0 ? '' : whole.slice(end)) : whole;
  const fault =
    hostFault(host) || userFault(authority.slice(0, Math.max(0, at))) || escapeFault(path);
  if (fault !== '') return wrong(fault);
  if (escapeFault(fragment) !== '') return wrong(escapeFault(fragment), text);
  return { ...parts, host, path, user: at < 0 ? undefined : authority.slice(0, at) };
}

function hostFault(host: string): string {
  const colon = /:[^\]]*$/.exec(host.replace(/^\[[^\]]*\]/, ''))?.[0] ?? '';
  if (host.startsWith('[') && !host.includes(']')) return "missing ']' in host";
  if (!/^(:\d*)?$/.test(colon)) return `invalid port ${quoted(colon)} after host`;
  const bad = HOST_REFUSED.exec(host);
  // ASCII is not escaped in hosts
  const escape = /%(?!25|[89a-fA-F][0-9A-Fa-f]).{0,2}/su.exec(host);
  if (escape !== null && escape.index < (bad?.index ?? Infinity)) {
    return `invalid URL escape ${quoted(escape[0])}`;
  }
  return bad === null ? '' : `invalid character ${quoted(bad[0])} in host name`;
}

function userFault(user: string): string {
  const isFine = /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user);
  return isFine ? escapeFault(user) : 'net/url: invalid userinfo';
}

function escapeFault(text: string): string {
  const found = /%(?![0-9A-Fa-f]{2}).{0,2}/su.exec(text)?.[0];
  return found === undefined ? '' : `invalid URL escape ${quoted(found)}`;
}

/** Whether Go's `url.ParseRequestURI` takes a text. */
export function isRequestUri(text: string): boolean {
  return text !== '' && typeof parseGoUrl(text, true) !== 'string';
}
