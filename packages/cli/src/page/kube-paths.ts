/**
 * Which paths of the API server the page asks for in the name of who reads it: objects and their
 * collections. Ways into pods and nodes, tokens and reviews are no objects, and stay closed.
 */

const NAME = '[A-Za-z0-9:.@_%-]+';
const COLLECTION = new RegExp(
  `^(?:/api/v1|/apis/${NAME}/${NAME})(?:/namespaces/${NAME})?/([a-z0-9-]+)$`,
);
const OBJECT = new RegExp(
  `^(?:/api/v1|/apis/${NAME}/${NAME})(?:/namespaces/${NAME})?/([a-z0-9-]+)/${NAME}$`,
);
const NAMESPACES = new RegExp(`^/api/v1/namespaces(?:/${NAME})?$`);
const PATH_CHARS_MAX = 2048;

/** Whether a path is one collection, in all namespaces or in one. */
export function isCollection(path: string): boolean {
  return isPlain(path) && COLLECTION.test(path);
}

/** Whether a path is one object, and none of its subresources. */
export function isObjectPath(path: string): boolean {
  if (!isPlain(path)) return false;
  if (NAMESPACES.test(path)) return path.split('/').length === 5;
  return OBJECT.test(path) && !COLLECTION.test(path);
}

/** No dots that lead elsewhere, as they are or escaped; no query. */
function isPlain(path: string): boolean {
  if (path.length > PATH_CHARS_MAX) return false;
  try {
    const words = decodeURIComponent(path).split('/');
    const isSplitAsWritten = words.length === path.split('/').length && words.length <= 9;
    return isSplitAsWritten && words.every((word) => word !== '.' && word !== '..');
  } catch {
    return false;
  }
}

/** What a path names, for a review of access. */
export interface Named {
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
}

/** Takes a path of an object or a collection apart. */
export function namedBy(path: string): Named {
  const words = path.split('/').slice(1).map(decodeURIComponent);
  const isCore = words[0] === 'api';
  const group = isCore ? '' : (words[1] ?? '');
  const version = (isCore ? words[1] : words[2]) ?? '';
  const rest = words.slice(isCore ? 2 : 3);
  const isWithin = rest[0] === 'namespaces' && rest.length > 2;
  const namespace = isWithin ? (rest[1] ?? '') : '';
  const [resource = '', name = ''] = isWithin ? rest.slice(2) : rest;
  return { group, version, namespace, resource, name };
}
