/** Schemas as their JSON has them, for the rules that look at definitions. */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject } from '../../json/json-value.ts';
import { listAt } from '../../json/json.ts';

/** The members of a map of schemas (`properties`); none where there is no such map. */
export function schemaMap(
  schema: JsonObject,
  member: string,
): readonly (readonly [name: string, schema: JsonObject])[] {
  const map = ownMember(schema, member);
  if (!isObject(map)) return [];
  const found: (readonly [string, JsonObject])[] = [];
  for (const name of Object.keys(map)) {
    const one = map[name];
    if (isObject(one)) found.push([name, one]);
  }
  return found;
}

const UNSUPPORTED = [
  ...['id', '$schema', '$ref', 'patternProperties', 'dependencies'],
  ...['additionalItems', 'definitions'],
] as const;

/**
 * Why a schema has no structure at all; '' where it has one. Rules that name the place of it tell
 * it in better words, and this is told only where none does.
 */
export function unstructuredReason(schema: JsonObject): string {
  for (const member of UNSUPPORTED) {
    const value = schema[member];
    if (value === undefined || value === null || value === '') continue;
    return `OpenAPIV3Schema '${member.replace('$schema', 'schema')}' is not supported`;
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
  }
  if (listAt(schema, 'items').length > 0) {
    return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  }
  for (const part of partsOf(schema)) {
    const reason = unstructuredReason(part);
    if (reason !== '') return reason;
  }
  return '';
}

/** Schemas that a schema is made of, junctors included. */
export function partsOf(schema: JsonObject): JsonObject[] {
  const singles = [schema['not'], schema['items'], schema['additionalProperties']];
  const lists = ['allOf', 'anyOf', 'oneOf'].flatMap((junctor) => listAt(schema, junctor));
  const properties = schemaMap(schema, 'properties').map(([, property]) => property);
  return [...[...singles, ...lists].filter(isObject), ...properties];
}

/** Levels of a schema that a definition may have. */
export const SCHEMA_DEPTH_MAX: number = 1_000;

/** Levels of a schema, itself counted; may stop counting beyond the most that is allowed. */
export function depthOf(schema: JsonObject): number {
  let level: JsonObject[] = [schema];
  let depth = 0;
  while (level.length > 0 && depth <= SCHEMA_DEPTH_MAX) {
    depth++;
    level = level.flatMap(partsOf);
  }
  return depth;
}

/** Whether there is a default anywhere in a schema. */
export function hasDefaults(schema: JsonObject): boolean {
  return (schema['default'] ?? null) !== null || partsOf(schema).some(hasDefaults);
}
