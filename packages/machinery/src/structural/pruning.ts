/**
 * What happens to a decoded object before anything else: members that the schema does not know go,
 * and nulls go where neither `nullable` nor a default speaks for them. In place; one walk.
 */
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { memberNode, type SchemaNode } from './schema/schema-node.ts';

/** Where in an object the walk is; makes texts only when something is dropped. */
interface Place {
  readonly parent: Place | null;
  readonly step: string | number;
}

interface Walk {
  /** Null: nobody asks which. */
  readonly dropped: string[] | null;
}

const META = new Set(['apiVersion', 'kind', 'metadata']);

function pathOf(place: Place | null, last: string): string {
  let path = last;
  let isAfterIndex = false;
  for (let at = place; at !== null; at = at.parent) {
    const isIndex = typeof at.step === 'number';
    const step = isIndex ? `[${at.step}]` : at.step;
    path = isAfterIndex ? step + path : `${step}.${path}`;
    isAfterIndex = isIndex;
  }
  return path;
}

/** How `apiVersion`, `kind` and `metadata` of an object are taken: as the rest, or for granted. */
type Meta = 'root' | 'embedded' | 'plain';

/**
 * Prunes an object by the schema of its version. `apiVersion`, `kind` and `metadata` of the root
 * stay as they are. Gives the sorted paths of what was unknown when asked to.
 */
export function pruneObject(root: SchemaNode, object: JsonObject, isTracked: boolean): string[] {
  const walk: Walk = { dropped: isTracked ? [] : null };
  pruneMembers(root, object, 'root', root.preservesUnknown, null, walk);
  return (walk.dropped ?? []).sort();
}

/** Prunes a value of a node, and gives the paths of what was unknown in it. */
export function unknownIn(node: SchemaNode, value: JsonValue, isResource: boolean): string[] {
  const dropped: string[] = [];
  if (isResource && isObject(value)) {
    pruneMembers(node, value, 'embedded', node.preservesUnknown, null, { dropped });
  } else prune(node, value, false, null, { dropped });
  return dropped;
}

/** `isKept`: this value is of a list that keeps what is unknown. */
function prune(
  node: SchemaNode | null,
  value: JsonValue,
  isKept: boolean,
  place: Place | null,
  walk: Walk,
): void {
  if (typeof value !== 'object' || value === null) return;
  const keeps = isKept || node?.preservesUnknown === true;
  if (!Array.isArray(value)) {
    if (node === null && keeps) return;
    const meta = node?.isEmbedded === true ? 'embedded' : 'plain';
    pruneMembers(node, value, meta, keeps, place, walk);
    return;
  }
  const items = node?.items ?? null;
  if (items === null && keeps) return;
  for (let i = 0; i < value.length; i++) {
    const item = value[i];
    if (typeof item !== 'object' || item === null) continue;
    prune(items, item, keeps, walk.dropped === null ? null : { parent: place, step: i }, walk);
  }
}

function pruneMembers(
  node: SchemaNode | null,
  object: JsonObject,
  meta: Meta,
  keeps: boolean,
  place: Place | null,
  walk: Walk,
): void {
  for (const name in object) {
    const value = object[name];
    if (value === undefined) continue;
    const isMeta = meta !== 'plain' && META.has(name);
    if (isMeta && meta === 'root') continue;
    const member = node === null ? null : memberNode(node, name);
    if (member !== null && value === null) {
      if (!member.isNullable && member.defaultValue === undefined) delete object[name];
    } else if (isMeta) {
      continue;
    } else if (member !== null || (node !== null && node.additionalKind !== 'absent')) {
      if (typeof value !== 'object') continue;
      prune(
        member,
        value,
        false,
        walk.dropped === null ? null : { parent: place, step: name },
        walk,
      );
    } else if (!keeps) {
      walk.dropped?.push(pathOf(place, name));
      delete object[name];
    }
  }
}
