/** The part of a URL that belongs to the program behind a proxy subresource. */
import type { Call } from './call.ts';
import { pathBehind, queryStart, type RequestInfo } from './request-info.ts';

const PROXIED: ReadonlySet<string> = new Set(['pods', 'services', 'nodes']);

/** What a path may hold as it is; Go escapes everything else. */
const ESCAPED = /[^\w.~$&+,/:;=@-]/gu;

/** Path and query behind `.../proxy`: the path as it was understood here, the query as sent. */
export function proxiedPath({ info, exchange }: Call): string {
  const { path } = exchange;
  const behind = pathBehind(info).replaceAll(ESCAPED, escaped);
  return (behind === '' ? '/' : behind) + path.slice(queryStart(path));
}

/** True where a request is for a program behind `proxy`. */
export function isProxied({ subresource, resource, group, version, verb }: RequestInfo): boolean {
  const isOwn = subresource === 'proxy' && group === '' && version === 'v1';
  return isOwn && verb !== 'watch' && PROXIED.has(resource);
}

/** As bytes of UTF-8. */
function escaped(text: string): string {
  const bytes = [...Buffer.from(text)];
  return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

/** `https:name:port`, `name:port` or `name`, taken apart as upstream's SplitSchemeNamePort. */
export interface SchemeNamePort {
  readonly scheme: 'http' | 'https' | '';
  readonly name: string;
  readonly port: string;
}

/** Null where the text is none. */
export function splitSchemeNamePort(text: string): SchemeNamePort | null {
  const parts = text.split(':');
  const [first = '', second = '', third = ''] = parts;
  if (parts.length === 1) return first === '' ? null : { scheme: '', name: first, port: '' };
  if (parts.length === 2) return first === '' ? null : { scheme: '', name: first, port: second };
  if (parts.length > 3 || second === '') return null;
  if (first !== '' && first !== 'http' && first !== 'https') return null;
  return { scheme: first, name: second, port: third };
}
