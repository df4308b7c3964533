/**
 * What a request asks for, read from its method and path alone (upstream's RequestInfo): the
 * authorizer, the router and the metrics all speak in these terms.
 */

/** Attributes of one request. Strings are empty where the path has no such part. */
export interface RequestInfo {
  readonly isResource: boolean;
  /** Decoded path without query. */
  readonly path: string;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `proxy`. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  readonly subresource: string;
  /** More segments than the grammar of resources has: no resource of ours is there. */
  readonly extra: boolean;
}

const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);
const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Where the query of a request target begins, or its length. */
export function queryStart(target: string): number {
  const at = target.indexOf('?');
  return at < 0 ? target.length : at;
}

/**
 * Reads method and path. Segments are decoded once, after splitting, so that a name may hold an
 * escaped slash. Returns null where an escape is malformed, which is a 400 of the router.
 */
export function parseRequest(method: string, target: string): RequestInfo | null {
  const rawPath = target.slice(0, queryStart(target));
  const segments = splitPath(rawPath);
  if (segments === null) return null;
  const isCore = segments[0] === 'api';
  const isGroup = segments[0] === 'apis';
  if ((!isCore && !isGroup) || segments.length < (isCore ? 3 : 4)) {
    return nonResource(method, segments, rawPath);
  }
  const group = isCore ? '' : (segments[1] ?? '');
  const version = segments[isCore ? 1 : 2] ?? '';
  let rest = segments.slice(isCore ? 2 : 3);
  let verb = VERBS[method] ?? method.toLowerCase();
  if (rest[0] === 'watch' || rest[0] === 'proxy') {
    // deprecated prefix forms: still an attribute of authorization, served as not found
    verb = rest[0];
    rest = rest.slice(1);
    if (rest.length === 0) return nonResource(method, segments, rawPath);
  }
  let namespace = '';
  if (rest[0] === 'namespaces' && rest.length > 1) {
    namespace = rest[1] ?? '';
    if (rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2] ?? '')) rest = rest.slice(2);
  }
  const name = rest[1] ?? '';
  if (name === '' && verb === 'get') verb = 'list';
  if (name === '' && verb === 'delete') verb = 'deletecollection';
  return {
    isResource: true,
    path: isNormal(rawPath, segments) ? rawPath : `/${segments.join('/')}`,
    verb,
    group,
    version,
    namespace,
    resource: rest[0] ?? '',
    name,
    subresource: rest[2] ?? '',
    extra: rest.length > 3,
  };
}

function nonResource(method: string, segments: readonly string[], raw: string): RequestInfo {
  const slash = raw.length > 1 && raw.endsWith('/') ? '/' : '';
  return {
    isResource: false,
    path: `/${segments.join('/')}${segments.length > 0 ? slash : ''}`,
    verb: method.toLowerCase(),
    group: '',
    version: '',
    namespace: '',
    resource: '',
    name: '',
    subresource: '',
    extra: false,
  };
}

/** The path is what its segments make: nothing in it was doubled, escaped or left empty. */
function isNormal(path: string, segments: readonly string[]): boolean {
  let length = 0;
  for (const segment of segments) length += 1 + segment.length;
  return length === path.length && !path.includes('%');
}

function splitPath(path: string): string[] | null {
  const segments: string[] = [];
  for (let from = 0; from < path.length;) {
    const slash = path.indexOf('/', from);
    const to = slash < 0 ? path.length : slash;
    if (to > from) segments.push(path.slice(from, to));
    from = to + 1;
  }
  if (!path.includes('%')) return segments;
  const decoded: string[] = [];
  for (const segment of segments) {
    const plain = decodeSegment(segment);
    if (plain === null) return null;
    decoded.push(plain);
  }
  return decoded;
}

function decodeSegment(segment: string): string | null {
  if (/%(?![0-9a-fA-F]{2})/.test(segment)) return null;
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    // an escape that is no UTF-8: the only way decodeURIComponent fails after the check above
    if (error instanceof URIError) return null;
    throw error;
  }
}
