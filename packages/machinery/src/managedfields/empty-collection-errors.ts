/**
 * Where an expression makes nulls: they are values of CEL there, which no field is of, and not the
 * wish to have a field removed. In the words of structured-merge-diff.
 */
import { isObject, type JsonValue } from '../json/json-value.ts';
import { memberSchema, type FieldSchema } from './field-schema.ts';
import { printStep, stepOfItem } from './path-element.ts';
import type { TypedFault } from './typed-faults.ts';

/** All nulls within a value. */
export function voidFaults(schema: FieldSchema, value: JsonValue, path: string = ''): TypedFault[] {
  if (value === null) return [{ path, text: voidText(schema) }];
  const found: TypedFault[] = [];
  const { list, map } = schema;
  if (Array.isArray(value) && list !== null) {
    for (const [index, item] of value.entries()) {
      const keyed = list.isAtomic ? null : stepOfItem(list, item);
      // what has no key is told of by itself
      if (keyed !== null && 'fault' in keyed) continue;
      const step = keyed === null ? `i:${index}` : keyed.step;
      found.push(...voidFaults(list.items, item, path + printStep(step)));
    }
  }
  if (isObject(value) && map !== null) {
    for (const [name, one] of Object.entries(value)) {
      const member = memberSchema(map, name);
      if (member !== undefined) found.push(...voidFaults(member, one ?? null, `${path}.${name}`));
    }
  }
  return found;
}

function voidText({ scalar, list, map }: FieldSchema): string {
  if (list !== null && map === null && scalar === null) return 'expected list, got &{NULL_VALUE}';
  if (list === null && map === null) {
    if (scalar === 'numeric') return 'expected numeric (int or float), got structpb.NullValue';
    if (scalar === 'string') return 'expected string, got &value.valueUnstructured{Value:0}';
    if (scalar === 'boolean') return 'expected boolean, got &{NULL_VALUE}';
  }
  return 'expected map, got &{NULL_VALUE}';
}
