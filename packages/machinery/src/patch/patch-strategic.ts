/**
 * Strategic merge patch: a merge patch that knows the types of the API.
 *
 * Lists whose field has a merge key are merged item by item, lists of scalars with the strategy
 * `merge` are united, all other lists are replaced. Directives in the patch say the rest:
 *
 *   $patch: replace | delete        on a map, or on an item of a keyed list
 *   $retainKeys: [names]            of the map's members only these stay
 *   $deleteFromPrimitiveList/field  scalars to take out of a united list
 *   $setElementOrder/field          order of what the patch speaks of; the rest stays around it
 *
 * Inputs are not changed; maps and lists that the patch does not touch are shared by the result.
 */
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { ownMember, putMember } from '@megaplane/base/members';
import { identity, inMergedOrder, ranksOf } from './patch-order.ts';
import { quoted } from '../json/quoting.ts';
import type { Shape, Type } from '../scheme/schema.ts';
import { isGoInt } from '../json/go-integers.ts';

/**
 * How the server tells the failure: `badFormat` is a 400 with the text, `unprocessable` a 422
 * without it, `other` a bare 500 with it.
 */
export interface StrategicFailure {
  readonly kind: 'badFormat' | 'unprocessable' | 'other';
  readonly text: string;
}

export type StrategicResult =
  | { readonly value: JsonObject }
  | { readonly failure: StrategicFailure };

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const DELETE_PREFIX = '$deleteFromPrimitiveList';
const ORDER_PREFIX = '$setElementOrder';

const BAD_RETAIN_KEYS = 'invalid patch format of retainKeys';
const BAD_PRIMITIVE_LIST = 'invalid patch format of primitive list';
const BAD_ORDER_LIST = 'invalid patch format of setElementOrder list';
const LIST_OF_LISTS = 'lists of lists are not supported';

export function applyStrategicPatch(
  original: JsonObject,
  patch: JsonObject,
  type: Type,
): StrategicResult {
  const merge = new Merge();
  const value = merge.map(original, patch, { kind: 'object', type });
  return merge.failure === undefined ? { value } : { failure: merge.failure };
}

/** What the type says of one list or map field. */
interface FieldRule {
  readonly shape: Shape;
  /** `merge`, `replace` or ''. */
  readonly strategy: string;
  readonly mergeKey: string;
}

const NO_RULE: FieldRule = {
  shape: { kind: 'scalar', scalar: 'json' },
  strategy: '',
  mergeKey: '',
};

/** One application. The first failure is kept; what is computed after it is thrown away. */
class Merge {
  failure: StrategicFailure | undefined;

  #fail(text: string, kind: StrategicFailure['kind'] = 'other'): void {
    this.failure ??= { kind, text };
  }

  map(original: JsonObject, patch: JsonObject, shape: Shape): JsonObject {
    if (this.failure !== undefined) return original;
    const directive = patch[DIRECTIVE];
    if (directive === 'replace') return without(patch, DIRECTIVE);
    if (directive === 'delete') return {};
    if (directive !== undefined) {
      this.#failDirective(directive, patch);
      return original;
    }
    const merged = this.#retained(original, patch);
    const rest = this.#ordered(merged, without(patch, RETAIN_KEYS), shape);
    for (const [key, value] of Object.entries(rest)) {
      if (key.startsWith(DELETE_PREFIX)) this.#deleteScalars(merged, key, value ?? null, shape);
      else this.#member(merged, key, value ?? null, shape);
    }
    return merged;
  }

  /** A copy of the original, cut down to what `$retainKeys` names. */
  #retained(original: JsonObject, patch: JsonObject): JsonObject {
    const keys = patch[RETAIN_KEYS];
    if (keys === undefined) return { ...original };
    if (!Array.isArray(keys)) {
      this.#fail(BAD_RETAIN_KEYS, 'badFormat');
      return original;
    }
    for (const [key, value] of Object.entries(patch)) {
      const isDirective =
        key === RETAIN_KEYS || key.startsWith(DELETE_PREFIX) || key.startsWith(ORDER_PREFIX);
      if (value === null || isDirective || keys.includes(key)) continue;
      this.#fail(BAD_RETAIN_KEYS, 'badFormat');
    }
    return Object.fromEntries(Object.entries(original).filter(([key]) => keys.includes(key)));
  }

  /** Handles each `$setElementOrder` with its list; returns the patch without them. */
  #ordered(merged: JsonObject, patch: JsonObject, shape: Shape): JsonObject {
    const rest = { ...patch };
    for (const [directive, order] of Object.entries(patch)) {
      if (!directive.startsWith(ORDER_PREFIX)) continue;
      delete rest[directive];
      const key = keyAfter(directive, ORDER_PREFIX);
      if (key === undefined) this.#fail(BAD_ORDER_LIST, 'badFormat');
      else if (!Array.isArray(order)) this.#failType('[]interface {}', order);
      else if (this.#orderOne(merged, rest, key, order, shape)) delete rest[key];
    }
    return rest;
  }

  /** True where the list is done with. */
  #orderOne(
    merged: JsonObject,
    patch: JsonObject,
    key: string,
    order: readonly JsonValue[],
    shape: Shape,
  ): boolean {
    const current = ownMember(merged, key);
    const list = ownMember(patch, key);
    if (current !== undefined && !Array.isArray(current)) this.#failType('[]interface {}', current);
    if (list !== undefined && !Array.isArray(list)) this.#failType('[]interface {}', list);
    const rule = this.#ruleOfList(shape, key);
    if (this.failure !== undefined) return false;
    this.#checkOrder(Array.isArray(list) ? list : [], order, rule.mergeKey);
    const live = Array.isArray(current) ? [...current] : [];
    let result: readonly JsonValue[];
    if (Array.isArray(current)) {
      result = Array.isArray(list) ? this.#list(live, list, rule, false) : current;
    } else if (Array.isArray(list)) {
      result = list.map(withoutDirectives).filter((item) => item !== undefined);
    } else {
      return false;
    }
    if (this.failure !== undefined) return false;
    this.#checkElements([Array.isArray(current) ? current : [], Array.isArray(list) ? list : []]);
    putMember(merged, key, this.#inOrder(result, order, live, rule.mergeKey));
    return true;
  }

  #inOrder(
    items: readonly JsonValue[],
    patchOrder: readonly JsonValue[],
    liveOrder: readonly JsonValue[],
    mergeKey: string,
  ): JsonValue[] {
    if (mergeKey !== '') this.#checkOrderFor(items, patchOrder, mergeKey);
    for (const item of mergeKey === '' ? [] : [...items, ...patchOrder, ...liveOrder]) {
      if (!isObject(item) || ownMember(item, mergeKey) === undefined)
        this.#failNoKey(item, mergeKey);
    }
    return inMergedOrder(items, patchOrder, liveOrder, mergeKey);
  }

  /** An order is read from its start for each item, up to where the item is. */
  #checkOrderFor(items: readonly JsonValue[], order: readonly JsonValue[], mergeKey: string): void {
    const place = order.findIndex((one) => !isObject(one));
    const ranks = place < 0 ? null : ranksOf(order, mergeKey);
    for (const item of items) {
      const key = identity(item, mergeKey);
      if (!isObject(item) || key === undefined) {
        this.#failNoKey(item, mergeKey);
        return;
      }
      if (ranks === null || (ranks.get(key) ?? Infinity) < place) continue;
      this.#fail(`value for key ${place} is not a map`);
      return;
    }
  }

  /** The patch may not name items in another order than `$setElementOrder` does. */
  #checkOrder(list: readonly JsonValue[], order: readonly JsonValue[], mergeKey: string): void {
    if (list.length === 0 || order.length === 0) return;
    const named = list.filter((item) => !isObject(item) || item[DIRECTIVE] !== 'delete');
    let next = 0;
    let at = 0;
    while (next < named.length && at < order.length && this.failure === undefined) {
      const item = named[next] ?? null;
      if (isObject(item) && item[DIRECTIVE] !== undefined) {
        next++;
        continue;
      }
      if (this.#isSame(item, order[at] ?? null, mergeKey)) next++;
      at++;
    }
    if (next < named.length && at >= order.length) {
      const lists = [goText([...list]), goText([...order])];
      const text = lists.join(`\n doesn't match ${ORDER_PREFIX} list:\n`);
      this.#fail(`The order in patch list:\n${text}\n`);
    }
  }

  #isSame(left: JsonValue, right: JsonValue, mergeKey: string): boolean {
    if (mergeKey === '') return left === right;
    for (const item of [left, right]) {
      if (!isObject(item) || ownMember(item, mergeKey) === undefined) {
        this.#failNoKey(item, mergeKey);
        return false;
      }
    }
    return identity(left, mergeKey) === identity(right, mergeKey);
  }

  #deleteScalars(merged: JsonObject, directive: string, list: JsonValue, shape: Shape): void {
    const key = keyAfter(directive, DELETE_PREFIX);
    if (key === undefined) return this.#fail(BAD_PRIMITIVE_LIST, 'badFormat');
    const current = ownMember(merged, key);
    if (list === null) {
      delete merged[key];
      return;
    }
    if (!Array.isArray(current) || !Array.isArray(list)) return;
    putMember(merged, key, this.#list([...current], list, this.#ruleOfList(shape, key), true));
  }

  #member(merged: JsonObject, key: string, value: JsonValue, shape: Shape): void {
    const current = Object.hasOwn(merged, key) ? merged[key] : undefined;
    if (value === null) {
      delete merged[key];
    } else if (isObject(current) && isObject(value)) {
      const rule = this.#rule(shape, key);
      putMember(
        merged,
        key,
        rule.strategy === 'replace' ? value : this.map(current, value, rule.shape),
      );
    } else if (Array.isArray(current) && Array.isArray(value)) {
      putMember(merged, key, this.#list([...current], value, this.#ruleOfList(shape, key), false));
    } else {
      const isNew = current === undefined || typeof current === 'object' || isObject(value);
      const kept = withoutDirectives(isNew ? withoutNulls(value) : value);
      if (kept === undefined) delete merged[key];
      else putMember(merged, key, kept);
    }
  }

  #list(
    original: JsonValue[],
    patch: readonly JsonValue[],
    rule: FieldRule,
    isDeletion: boolean,
  ): JsonValue[] {
    if (rule.strategy !== 'merge' && !isDeletion) return [...patch];
    if (original.length === 0 && patch.length === 0) return [];
    const isOfMaps = this.#checkElements([original, patch]);
    if (this.failure !== undefined) return [...original];
    if (!isOfMaps) {
      if (isDeletion) {
        const gone = new Set(patch);
        return original.filter((item) => !gone.has(item));
      }
      return this.#inOrder([...new Set([...original, ...patch])], patch, original, '');
    }
    if (rule.mergeKey === '') {
      this.#fail(`cannot merge lists without merge key for ${nameOf(rule.shape)}`);
      return [...original];
    }
    return this.#items(original, patch, rule);
  }

  /** Changes `live`, the caller's copy of the live list, as far as its places serve as an order. */
  #items(live: JsonValue[], patch: readonly JsonValue[], rule: FieldRule): JsonValue[] {
    const { mergeKey } = rule;
    const { list, isReplaced } = this.#cleared(live, patch, mergeKey);
    const items = patch.filter((item) => isObject(item) && item[DIRECTIVE] === undefined);
    if (this.failure !== undefined) return [...live];
    if (isReplaced) return this.#inOrder(items, [], items, mergeKey);
    live.splice(0, list.length, ...list);
    const merged = [...list];
    const places = ranksOf(merged, mergeKey);
    for (const item of items) {
      if (!isObject(item)) continue;
      if (ownMember(item, mergeKey) === undefined) this.#failNoKey(item, mergeKey);
      const key = identity(item, mergeKey);
      const at = places.get(key) ?? -1;
      const current = merged[at];
      if (isObject(current)) merged[at] = this.map(current, item, rule.shape);
      else {
        // Upstream appends in place: what a deletion freed is taken, and counts for the order.
        if (merged.length < live.length) live[merged.length] = item;
        if (!places.has(key)) places.set(key, merged.length);
        merged.push(item);
      }
    }
    if (this.failure !== undefined) return [...live];
    return this.#inOrder(merged, items, list, mergeKey);
  }

  /** The live list after the deletions that the patch asks for; or its replacement announced. */
  #cleared(
    original: readonly JsonValue[],
    patch: readonly JsonValue[],
    mergeKey: string,
  ): { readonly list: readonly JsonValue[]; readonly isReplaced: boolean } {
    const gone = new Set<JsonValue | undefined>();
    let isReplaced = false;
    for (const item of patch) {
      const directive = isObject(item) ? item[DIRECTIVE] : undefined;
      if (!isObject(item) || directive === undefined) continue;
      if (directive === 'replace') isReplaced = true;
      else if (directive === 'merge')
        this.#fail('merging lists cannot yet be specified in the patch');
      else if (directive !== 'delete') this.#failDirective(directive, item);
      else if (ownMember(item, mergeKey) === undefined) this.#failNoKey(item, mergeKey);
      else gone.add(identity(item, mergeKey));
    }
    if (gone.size === 0) return { list: original, isReplaced };
    return { list: original.filter((one) => !gone.has(identity(one, mergeKey))), isReplaced };
  }

  /** True for lists of maps. Elements must be of the type of the first, which is no list. */
  #checkElements(lists: readonly (readonly JsonValue[])[]): boolean {
    const kinds = new Set(lists.flat(1).map((item) => kindOf(item)));
    if (kinds.size === 0) this.#fail('no elements in any of the given slices');
    if ([...kinds][0] === 'list') this.#fail(LIST_OF_LISTS, 'unprocessable');
    const text = (): string => goText(lists.map((list) => [...list]));
    if (kinds.size > 1) this.#fail(`list element types are not identical: ${text()}`);
    return kinds.has('map');
  }

  #rule(shape: Shape, key: string): FieldRule {
    if (shape.kind !== 'object') {
      const kind = shape.kind === 'list' ? 'slice' : shape.kind === 'map' ? 'map' : shape.scalar;
      this.#fail(`merging an object in json but data type is not struct, instead is: ${kind}`);
      return NO_RULE;
    }
    const field = shape.type.field(key);
    if (field === undefined) {
      const where = `struct ${shape.type.goName} for the json field ${quoted(key)}`;
      this.#fail(`unable to find api field in ${where}`);
      return NO_RULE;
    }
    const strategy = field.patchStrategies.find((one) => one !== 'retainKeys') ?? '';
    return { shape: field.shape, strategy, mergeKey: field.mergeKey };
  }

  #ruleOfList(shape: Shape, key: string): FieldRule {
    const rule = this.#rule(shape, key);
    if (this.failure !== undefined) return rule;
    if (rule.shape.kind === 'list') return { ...rule, shape: rule.shape.items };
    this.#fail('expected slice or array type, but got: struct');
    return rule;
  }

  #failDirective(directive: JsonValue, item: JsonObject): void {
    const found = typeof directive === 'string' ? directive : goMisprint(directive);
    this.#fail(`unknown patch type: ${found} in map: ${goText(item)}`);
  }

  #failType(expected: string, found: JsonValue | undefined): void {
    this.#fail(`expected a ${expected}, but received a ${goType(found ?? null)}`);
  }

  #failNoKey(item: JsonValue, mergeKey: string): void {
    if (!isObject(item)) return this.#failType('map[string]interface {}', item);
    this.#fail(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`);
  }
}

function without(object: JsonObject, key: string): JsonObject {
  const copy = { ...object };
  delete copy[key];
  return copy;
}

/** The field that a directive with a prefix is about; undefined if the slash is missing. */
function keyAfter(directive: string, prefix: string): string | undefined {
  return directive[prefix.length] === '/' ? directive.slice(prefix.length + 1) : undefined;
}

/** Values that are new to the object: nulls inside them mean nothing and are dropped. */
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner !== null && inner !== undefined) putMember(kept, key, withoutNulls(inner));
  }
  return kept;
}

/** Directives for something that is not there have nothing to do; undefined drops the whole. */
function withoutDirectives(value: JsonValue): JsonValue | undefined {
  if (Array.isArray(value)) {
    return value.map(withoutDirectives).filter((item) => item !== undefined);
  }
  if (!isObject(value)) return value;
  if (value[DIRECTIVE] !== undefined) return undefined;
  const kept: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    const result = inner === undefined ? undefined : withoutDirectives(inner);
    if (result !== undefined) putMember(kept, key, result);
  }
  return kept;
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'list';
  if (isNumber(value)) return 'number';
  return isObject(value) ? 'map' : value === null ? 'null' : typeof value;
}

function nameOf(shape: Shape): string {
  return shape.kind === 'object' ? shape.type.goName : shape.kind;
}

function goType(value: JsonValue): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  if (isNumber(value)) return isGoInt(value) ? 'int64' : 'float64';
  return value === null ? '%!s(<nil>)' : typeof value === 'boolean' ? 'bool' : typeof value;
}

/** A value that is no string as Go's `%s` prints it: `%!s(int64=1)`. */
function goMisprint(value: JsonValue): string {
  if (value === null) return '%!s(<nil>)';
  return typeof value === 'object' ? goText(value) : `%!s(${goType(value)}=${goText(value)})`;
}

/** A value as Go's `%v` prints it: `map[a:1 b:[x y]]`. */
export function goText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`;
  if (value === null) return '<nil>';
  if (!isObject(value)) return String(value);
  const members = Object.keys(value).sort();
  const texts = members.map((key) => `${key}:${goText(ownMember(value, key) ?? null)}`);
  return `map[${texts.join(' ')}]`;
}
