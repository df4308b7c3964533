/** The part of a URL that belongs to the program behind a proxy subresource. */

const PROXY = /^\/api\/v1\/(?:namespaces\/[^/]+\/)?(?:pods|services|nodes)\/[^/]+\/proxy(\/[^?]*)?/;

/** Path and query behind `.../proxy`, as sent; `/` where there is none. */
export function proxiedPath(target: string): string {
  const at = target.indexOf('?');
  const path = at < 0 ? target : target.slice(0, at);
  const query = at < 0 ? '' : target.slice(at);
  return (PROXY.exec(path)?.[1] ?? '/') + query;
}

/** True where the path of a request goes on behind `proxy`. */
export function isProxied(target: string): boolean {
  return target.includes('/proxy') && PROXY.test(target);
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
