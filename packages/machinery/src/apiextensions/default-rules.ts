/**
 * Defaults have to be right by their own schema: without unknown fields, valid, and accepted by the
 * rules, whether something was there before or not.
 */
import { ruleBudget, type RuleBudget } from '../cel/validation-rules.ts';
import {
  aggregate,
  fieldErrorText,
  invalidValue,
  printed,
  type Printed,
} from '../meta/fielderrors.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import type { Findings } from '../validation/field/validation-rules.ts';
import { checkEmbedded, coerceEmbedded } from '../structural/embedded-metadata.ts';
import { goJson } from '../gotext/go-texts.ts';
import { valueErrors } from '../structural/openapi-faults.ts';
import { unknownIn } from '../structural/pruning.ts';
import { runRules } from '../structural/rule-tree.ts';
import type { SchemaNode } from '../structural/schema/schema-node.ts';

const META: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);
const STRICT = { dropsMalformed: false, unknown: null } as const;

/** Where the walk is: the resource that a node belongs to, and how its value lies in that. */
interface Place {
  /** Null: the definition's own root, of which metadata can have no defaults. */
  readonly resource: SchemaNode | null;
  readonly isInMeta: boolean;
  /** An object of the resource, with `value` where the node stands. */
  readonly around: (value: JsonValue) => JsonObject;
}

/** Adds what is wrong with the defaults of a structural schema. */
export function checkDefaults(found: Findings, root: SchemaNode, path: string): void {
  check(found, root, path, resourcePlace(root), ruleBudget());
}

function resourcePlace(resource: SchemaNode): Place {
  const around = (value: JsonValue): JsonObject => ({
    apiVersion: 'validation/v1',
    kind: 'Validation',
    ...(value as JsonObject),
  });
  return { resource, isInMeta: false, around };
}

function check(
  found: Findings,
  node: SchemaNode,
  path: string,
  above: Place,
  budget: RuleBudget,
): void {
  const place = node.isEmbedded ? resourcePlace(node) : above;
  const { defaultValue } = node;
  if (defaultValue !== undefined) {
    const isRight = place.isInMeta
      ? checkMeta(found, defaultValue, path, place)
      : checkPlain(found, node, node === place.resource, path);
    const before = found.length;
    if (isRight) found.push(...valueErrors(ofAnyType(node), defaultValue, `${path}.default`, null));
    if (isRight && found.length === before && node.hasRules) {
      checkRules(found, node, node === place.resource, path, budget);
    }
    if (budget.left < 0) return;
  }
  if (node.items !== null) {
    const around = (value: JsonValue): JsonObject => place.around([value]);
    check(found, node.items, `${path}.items`, { ...place, around }, budget);
    if (budget.left < 0) return;
  }
  for (const [name, property] of node.properties ?? []) {
    const isInMeta = place.isInMeta || (node === place.resource && META.has(name));
    const around = (value: JsonValue): JsonObject => place.around({ [name]: value });
    check(found, property, `${path}.properties[${name}]`, { ...place, isInMeta, around }, budget);
    if (budget.left < 0) return;
  }
}

/**
 * The node as upstream validates defaults by it: made of the structural schema, which says of an
 * int-or-string no type, so that `1.5` may be the default of one.
 */
function ofAnyType(node: SchemaNode): SchemaNode {
  const items = node.items === null ? null : ofAnyType(node.items);
  const additional = node.additional === null ? null : ofAnyType(node.additional);
  const before = [...(node.properties ?? [])];
  const after = before.map(([name, one]): [string, SchemaNode] => [name, ofAnyType(one)]);
  const isSame =
    !node.isIntOrString &&
    items === node.items &&
    additional === node.additional &&
    after.every(([, one], i) => one === before[i]?.[1]);
  if (isSame) return node;
  const properties = node.properties === null ? null : new Map(after);
  const typeBits = node.isIntOrString ? 0 : node.typeBits;
  return { ...node, items, additional, properties, typeBits };
}

function checkMeta(found: Findings, value: JsonValue, path: string, place: Place): boolean {
  const { resource } = place;
  if (resource === null) return true;
  const object = place.around(structuredClone(value));
  const refuse = (why: string): false => {
    const text = `must result in valid metadata: ${why}`;
    found.push(invalidValue(`${path}.default`, shown(value), text));
    return false;
  };
  const fault = coerceEmbedded(resource, object, true, STRICT);
  if (fault !== null) return refuse(fieldErrorText(fault));
  const errors: Findings = [];
  checkEmbedded(resource, object, true, '', errors);
  return errors.length === 0 || refuse(aggregate(errors.map(fieldErrorText)));
}

function checkPlain(found: Findings, node: SchemaNode, isResource: boolean, path: string): boolean {
  const value = node.defaultValue ?? null;
  const at = `${path}.default`;
  if (unknownIn(node, structuredClone(value), isResource).length > 0) {
    found.push(invalidValue(at, shown(value), 'must not have unknown fields'));
  }
  const copy = structuredClone(value);
  const fault = coerceEmbedded(node, copy, isResource, STRICT, at);
  if (fault !== null) {
    found.push(fault);
    return false;
  }
  const before = found.length;
  checkEmbedded(node, copy, isResource, at, found);
  return found.length === before;
}

/** As Go prints it. */
function shown(value: JsonValue): JsonValue | Printed {
  return typeof value === 'object' ? printed(goJson(value)) : value;
}

/** Once as if nothing changed, once as if the value were new: the dearer of both counts. */
function checkRules(
  found: Findings,
  node: SchemaNode,
  isRoot: boolean,
  path: string,
  budget: RuleBudget,
): void {
  const value = node.defaultValue ?? null;
  const before = found.length;
  const kept = { left: budget.left };
  const warn = (): void => undefined;
  runRules(node, isRoot, value, value, null, `${path}.default`, { budget: kept, found, warn });
  const fresh = { left: budget.left };
  if (found.length === before) {
    const run = { budget: fresh, found, warn };
    runRules(node, isRoot, value, undefined, null, `${path}.default`, run);
  }
  budget.left = Math.min(kept.left, fresh.left);
}
