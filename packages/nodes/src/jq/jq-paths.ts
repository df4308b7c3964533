/** What jq does with paths: reads, sets and deletes what they lead to. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { NO_PATH, spend, type Node, type Path } from './jq-nodes.ts';
import { compareJq, cutOut, indexed, jqType, shown } from './jq-values.ts';

/** A list may grow to so many items when one of them is set. */
const LENGTH_MAX = 1_000_000;

/** Tells `take` the paths that a node gives. */
export function eachPath(
  node: Node,
  [input, scope]: readonly [JsonValue, Parameters<Node>[2]],
  take: (path: Path) => void,
): void {
  node(input, [], scope, (value, path) => {
    if (path === null || path === NO_PATH) {
      throw new JqError(`invalid path against: ${shown(value)}`);
    }
    spend();
    take(path);
  });
}

export function pathOf(value: JsonValue): Path {
  if (Array.isArray(value)) return value;
  throw new JqError(`path must be an array, but got: ${shown(value)}`);
}

/** A step of a path: a slice is an object with start and end. */
function stepped(value: JsonValue, key: JsonValue): JsonValue {
  if (!isObject(key)) return indexed(value, key);
  return cutOut(value, key['start'] ?? null, key['end'] ?? null);
}

export function atPath(value: JsonValue, path: Path): JsonValue {
  let found = value;
  for (const key of path) found = found === null ? null : stepped(found, key);
  return found;
}

export function withPath(value: JsonValue, path: Path, to: JsonValue, at = 0): JsonValue {
  if (at >= path.length) return to;
  const key = path[at] ?? null;
  if (isObject(key)) return withSlice(value, key, withPath(stepped(value, key), path, to, at + 1));
  const below = withPath(value === null ? null : stepped(value, key), path, to, at + 1);
  if (typeof key === 'string' && (value === null || isObject(value))) {
    return { ...value, [key]: below };
  }
  if (typeof key === 'number' && (value === null || Array.isArray(value))) {
    const items = [...(value ?? [])];
    const place = Math.trunc(key) < 0 ? items.length + Math.trunc(key) : Math.trunc(key);
    if (place < 0) throw new JqError(`array index should not be negative: ${key}`);
    if (place > LENGTH_MAX) throw new JqError(`array index too large: ${key}`);
    while (items.length < place) items.push(null);
    items[place] = below;
    return items;
  }
  throw new JqError(`cannot index ${jqType(value)} with: ${shown(key)}`);
}

function ends(key: JsonObject, length: number): readonly [from: number, to: number] {
  const place = (end: JsonValue | undefined, fallback: number): number => {
    if (typeof end !== 'number') return fallback;
    return Math.min(length, Math.max(0, end < 0 ? length + end : end));
  };
  const from = Math.floor(place(key['start'], 0));
  return [from, Math.max(from, Math.ceil(place(key['end'], length)))];
}

function withSlice(value: JsonValue, key: JsonObject, to: JsonValue): JsonValue {
  if (value !== null && !Array.isArray(value)) {
    throw new JqError(`expected an array but got: ${shown(value)}`);
  }
  if (!Array.isArray(to)) throw new JqError(`expected an array but got: ${shown(to)}`);
  const items = value ?? [];
  const [from, end] = ends(key, items.length);
  return [...items.slice(0, from), ...to, ...items.slice(end)];
}

/** Without what the paths lead to; the last ones first, so that those before them stay true. */
export function withoutPaths(value: JsonValue, paths: readonly Path[]): JsonValue {
  const sorted = paths.toSorted((left, right) => compareJq([...right], [...left]));
  return sorted.reduce<JsonValue>((rest, path) => withoutPath(rest, path), value);
}

function withoutPath(value: JsonValue, path: Path): JsonValue {
  const [key, ...below] = path;
  if (key === undefined) return null;
  if (value === null) return null;
  if (below.length > 0) {
    const inner = stepped(value, key);
    return inner === null ? value : withPath(value, [key], withoutPath(inner, below));
  }
  if (isObject(value) && typeof key === 'string') {
    return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  }
  if (Array.isArray(value) && typeof key === 'number') {
    const place = key < 0 ? value.length + key : key;
    return value.filter((_, at) => at !== Math.trunc(place));
  }
  if (Array.isArray(value) && isObject(key)) {
    const [from, to] = ends(key, value.length);
    return [...value.slice(0, from), ...value.slice(to)];
  }
  throw new JqError(`cannot delete ${shown(key)} of ${jqType(value)}`);
}
