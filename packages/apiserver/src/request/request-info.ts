/**
 * What a request asks for, read from its method and path alone (upstream's RequestInfo). It is read
 * once: impersonation, fairness, authorization, the router, admission, audit, metrics and storage
 * take it from here, and nobody looks into the path again. What was authorized is what is done.
 */
import { isUtf8 } from 'node:buffer';

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
  /** A prefix form without a resource: upstream fails on it before it knows who asks. */
  readonly isBroken?: boolean;
  /**
   * A namespace stands before the resource, perhaps one without a name
   * (`/api/v1/namespaces//pods`). False for a namespace itself, whose name is its namespace too.
   */
  readonly isInside: boolean;
}

const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);
const VERBS: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

/** Where the query of a request target begins, or its length. */
export function queryStart(target: string): number {
  const at = target.indexOf('?');
  return at < 0 ? target.length : at;
}

/**
 * Reads method and path. The path is decoded once, before it is split: an escaped slash is a slash.
 * Empty segments count. Returns null where an escape is malformed, where a control character stands
 * in it as such, or where its bytes are no UTF-8; this is a 400 of the router.
 */
export function parseRequest(method: string, target: string): RequestInfo | null {
  const path = decoded(target.slice(0, queryStart(target)));
  if (path === null) return null;
  const known = recentPlace(method, path) ?? knownPlace(method, path);
  if (known !== null) return known;
  const info = parsePath(method, path);
  keepPlace(method, info);
  return info;
}

/**
 * Most requests are for objects of few collections: what a path says but for the name at its end
 * (or before a subresource) is kept by what stands before it, which ends in a slash.
 */
const places = new Map<string, Map<string, RequestInfo>>();
const PLACES_MAX = 512;

/**
 * What was asked last: most often the next request is for the same but for the name, and comparing
 * texts costs less than looking up a new one.
 */
interface Recent {
  readonly method: string;
  /** What stands before the name, and behind it (`/status`, or nothing). */
  readonly before: string;
  readonly behind: string;
  readonly subresource: string;
  /** `before` is a whole path, without a name. */
  readonly isWhole: boolean;
  readonly place: RequestInfo;
}

const recent: Recent[] = [];
const RECENT_MAX = 8;
let nextRecent = 0;

function noteRecent(one: Recent): void {
  recent[nextRecent++ % RECENT_MAX] = one;
}

function recentPlace(method: string, path: string): RequestInfo | null {
  for (const one of recent) {
    if (one.method !== method || !path.startsWith(one.before)) continue;
    if (one.isWhole) {
      if (path.length === one.before.length) return one.place;
      continue;
    }
    if (!path.endsWith(one.behind)) continue;
    const nameAt = one.before.length;
    const nameEnd = path.length - one.behind.length;
    if (nameAt >= nameEnd) continue;
    const slash = path.indexOf('/', nameAt);
    if (slash < 0 ? nameEnd < path.length : slash !== nameEnd) continue;
    return placed(one.place, path, path.slice(nameAt, nameEnd), one.subresource);
  }
  return null;
}

function knownPlace(method: string, path: string): RequestInfo | null {
  const ofMethod = places.get(method);
  const last = path.lastIndexOf('/');
  if (ofMethod === undefined || last + 1 === path.length) return null;
  const place = ofMethod.get(path.slice(0, last + 1));
  if (place !== undefined) {
    noteRecent({ method, before: path.slice(0, last + 1), ...NOTHING_BEHIND, place });
    return placed(place, path, path.slice(last + 1), '');
  }
  const before = last < 1 ? -1 : path.lastIndexOf('/', last - 1);
  if (before + 1 === last) return null;
  const outer = ofMethod.get(path.slice(0, before + 1));
  if (outer === undefined) return null;
  const subresource = path.slice(last + 1);
  noteRecent({
    method,
    before: path.slice(0, before + 1),
    behind: path.slice(last),
    subresource,
    isWhole: false,
    place: outer,
  });
  return placed(outer, path, path.slice(before + 1, last), subresource);
}

const NOTHING_BEHIND = { behind: '', subresource: '', isWhole: false } as const;

function placed(place: RequestInfo, path: string, name: string, subresource: string): RequestInfo {
  return {
    isResource: true,
    path,
    verb: place.verb,
    group: place.group,
    version: place.version,
    namespace: place.namespace,
    resource: place.resource,
    name,
    subresource,
    extra: false,
    isInside: place.isInside,
  };
}

/**
 * Keeps the place of a plain object, or of its subresource. A namespace's name is two things, and
 * behind `proxy` in front no subresource is read.
 */
function keepPlace(method: string, info: RequestInfo): void {
  const { path, name, subresource, resource } = info;
  if (!info.isResource || info.extra || !VERBS.has(method) || info.verb === 'proxy') return;
  if (name === '') {
    noteRecent({ method, before: path, ...NOTHING_BEHIND, isWhole: true, place: info });
    return;
  }
  const tail = subresource === '' ? name : `${name}/${subresource}`;
  if (resource === 'namespaces' || !path.endsWith(`/${tail}`)) return;
  let ofMethod = places.get(method);
  if (ofMethod === undefined) places.set(method, (ofMethod = new Map()));
  if (ofMethod.size >= PLACES_MAX) ofMethod.clear();
  ofMethod.set(path.slice(0, path.length - tail.length), info);
}

/** A path as the grammar of resources takes it apart. */
interface Parts {
  readonly group: string;
  readonly version: string;
  /** `watch` or `proxy` of the deprecated forms with the verb in front; else ''. */
  readonly prefix: string;
  readonly namespace: string;
  readonly isInside: boolean;
  /** Resource, name, subresource, and what stands behind them. */
  readonly rest: readonly string[];
}

/** Null where the path is no resource's. */
function partsOf(path: string): Parts | null {
  const segments = segmentsOf(path);
  const isCore = segments[0] === 'api';
  const isGroup = segments[0] === 'apis';
  if ((!isCore && !isGroup) || segments.length < (isCore ? 3 : 4)) return null;
  const group = isCore ? '' : (segments[1] ?? '');
  const version = segments[isCore ? 1 : 2] ?? '';
  let rest = segments.slice(isCore ? 2 : 3);
  let prefix = '';
  if (rest[0] === 'watch' || rest[0] === 'proxy') {
    prefix = rest[0];
    rest = rest.slice(1);
  }
  if (rest[0] !== 'namespaces' || rest.length < 2) {
    return { group, version, prefix, namespace: '', isInside: false, rest };
  }
  const namespace = rest[1] ?? '';
  const isInside = rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2] ?? '');
  if (isInside) rest = rest.slice(2);
  return { group, version, prefix, namespace, isInside, rest };
}

/** The same for a decoded path, whatever came before. */
export function parsePath(method: string, path: string): RequestInfo {
  const parts = partsOf(path);
  if (parts === null) return nonResource(method, path);
  const { group, version, prefix, namespace, isInside, rest } = parts;
  if (rest.length === 0) return { ...nonResource(method, path), isBroken: true };
  // deprecated prefix forms: still an attribute of authorization; proxies in front are gone
  let verb = prefix === '' ? (VERBS.get(method) ?? '') : prefix;
  const name = rest[1] ?? '';
  if (name === '' && verb === 'get') verb = 'list';
  if (name === '' && verb === 'delete') verb = 'deletecollection';
  return {
    isResource: true,
    path,
    verb,
    group,
    version,
    namespace,
    resource: rest[0] ?? '',
    name,
    subresource: prefix === 'proxy' ? '' : (rest[2] ?? ''),
    extra: rest.length > 3,
    isInside,
  };
}

/** The decoded path behind a subresource, with its slash; '' where the path ends there. */
export function pathBehind({ path }: RequestInfo): string {
  const behind = partsOf(path)?.rest.slice(3).join('/') ?? '';
  const isSlashed = path.endsWith('/') && !behind.endsWith('/');
  return (behind === '' ? '' : `/${behind}`) + (isSlashed ? '/' : '');
}

/**
 * True for paths of resources that upstream's routers know nothing of, whatever they mean to its
 * authorizers: a doubled slash in front, and a group without a name.
 */
export function isUnrouted({ path, group }: RequestInfo): boolean {
  return path.startsWith('//') || (group === '' && path.startsWith('/apis'));
}

function nonResource(method: string, path: string): RequestInfo {
  return {
    isResource: false,
    path,
    verb: method.toLowerCase(),
    group: '',
    version: '',
    namespace: '',
    resource: '',
    name: '',
    subresource: '',
    extra: false,
    isInside: false,
  };
}

/** The parts between slashes, but for those at either end. */
function segmentsOf(path: string): string[] {
  let from = 0;
  let to = path.length;
  while (from < to && path[from] === '/') from++;
  while (to > from && path[to - 1] === '/') to--;
  return from === to ? [] : path.slice(from, to).split('/');
}

/** Those of ASCII; Go's URLs may hold others. */
const CONTROL = /(?=\p{Cc})\p{ASCII}/u;
const BEYOND_ASCII = /\P{ASCII}/u;

/** The wire hands bytes over one by one; Go takes them, and what is escaped, for UTF-8. */
function decoded(target: string): string | null {
  let path = target;
  if (BEYOND_ASCII.test(target)) {
    const bytes = Buffer.from(target, 'latin1');
    if (!isUtf8(bytes)) return null;
    path = bytes.toString();
  }
  if (CONTROL.test(target)) return null;
  if (!path.includes('%')) return path;
  if (/%(?![0-9a-fA-F]{2})/.test(path)) return null;
  try {
    return decodeURIComponent(path);
  } catch (error) {
    // an escape that is no UTF-8: the only way decodeURIComponent fails after the check above
    if (error instanceof URIError) return null;
    throw error;
  }
}
