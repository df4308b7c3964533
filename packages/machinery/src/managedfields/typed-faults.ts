/** Whether a value fits its schema, in the words of structured-merge-diff. */

import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { ownMember } from '@megaplane/base/members';
import {
  formOf,
  memberSchema,
  type FieldSchema,
  type ListForm,
  type MapForm,
  type ScalarForm,
} from './field-schema.ts';
import { goNumber } from '../gotext/go-texts.ts';
import { printStep, stepOfItem } from './path-element.ts';

/** One finding: where, in printed steps, and what. */
export interface TypedFault {
  readonly path: string;
  readonly text: string;
}

/** One line, or `errors:` and one line each. */
export function faultsText(faults: readonly TypedFault[]): string {
  const lines = faults.map(({ path, text }) => (path === '' ? text : `${path}: ${text}`));
  return lines.length === 1
    ? (lines[0] ?? '')
    : ['errors:', ...lines.map((line) => `  ${line}`)].join('\n');
}

/**
 * What is wrong with `value`. Stored objects may hold the same key twice in a keyed list; what is
 * applied may not.
 */
export function typedFaults(
  schema: FieldSchema,
  value: JsonValue,
  allowsDoubles: boolean,
): TypedFault[] {
  const faults: TypedFault[] = [];
  check(schema, value, '', allowsDoubles, faults);
  return faults;
}

function check(
  schema: FieldSchema,
  value: JsonValue,
  path: string,
  allowsDoubles: boolean,
  faults: TypedFault[],
): void {
  if (value === null) return;
  switch (formOf(schema, value)) {
    case 'scalar': {
      const text = scalarFault(schema.scalar, value);
      if (text !== '') faults.push({ path, text });
      return;
    }
    case 'list':
      if (!Array.isArray(value))
        faults.push({ path, text: `expected list, got ${goValue(value)}` });
      else if (schema.list !== null) checkItems(schema.list, value, path, allowsDoubles, faults);
      return;
    case 'map':
      if (!isObject(value)) faults.push({ path, text: `expected map, got ${goValue(value)}` });
      else if (schema.map !== null) checkMembers(schema.map, value, path, allowsDoubles, faults);
  }
}

function checkItems(
  list: ListForm,
  items: readonly JsonValue[],
  path: string,
  allowsDoubles: boolean,
  faults: TypedFault[],
): void {
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    let step = `i:${index}`;
    if (!list.isAtomic) {
      const found = stepOfItem(list, item);
      if ('fault' in found) {
        faults.push({ path, text: `element ${index}: ${found.fault}` });
        return;
      }
      step = found.step;
      if (seen.has(step) && !allowsDoubles) {
        faults.push({ path, text: `duplicate entries for key ${printStep(step)}` });
      }
      seen.add(step);
    }
    check(list.items, item, path + printStep(step), allowsDoubles, faults);
  }
}

function checkMembers(
  map: MapForm,
  object: JsonObject,
  path: string,
  allowsDoubles: boolean,
  faults: TypedFault[],
): void {
  for (const name of Object.keys(object)) {
    const schema = memberSchema(map, name);
    if (schema === undefined) {
      faults.push({ path: `${path}.${name}`, text: 'field not declared in schema' });
      return;
    }
    check(schema, object[name] ?? null, `${path}.${name}`, allowsDoubles, faults);
  }
}

/** Whether a scalar is of its form; null is of all. */
export function fitsScalar(form: ScalarForm, value: JsonValue): boolean {
  if (value === null) return true;
  switch (form) {
    case 'numeric':
      return isNumber(value);
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'untyped':
      return typeof value !== 'object';
  }
}

/** Whether each value is of a form that its schema allows; keys of lists are not looked at. */
export function fitsForms(schema: FieldSchema, value: JsonValue): boolean {
  if (value === null) return true;
  const { scalar, list, map } = schema;
  if (typeof value !== 'object') return scalar !== null && fitsScalar(scalar, value);
  if (Array.isArray(value)) {
    return list !== null && value.every((item) => fitsForms(list.items, item));
  }
  if (map === null) return false;
  for (const name in value) {
    const member = memberSchema(map, name);
    if (member === undefined || !fitsForms(member, value[name] ?? null)) return false;
  }
  return true;
}

/** Where a value sets a list, map or struct that is one value; printed paths, of them all. */
export function atomicPaths(schema: FieldSchema, value: JsonValue, path: string = ''): string[] {
  const found: string[] = [];
  if (isObject(value) && schema.map !== null) {
    if (schema.map.isAtomic) found.push(path);
    for (const name of Object.keys(value)) {
      const member = schema.map.field(name);
      if (member === undefined) continue;
      found.push(...atomicPaths(member, value[name] ?? null, `${path}.${name}`));
    }
  }
  if (Array.isArray(value) && schema.list !== null) {
    const { isAtomic, items } = schema.list;
    if (isAtomic) found.push(path);
    for (const [index, item] of value.entries()) {
      found.push(...atomicPaths(items, item, `${path}[${index}]`));
    }
  }
  return found;
}

function scalarFault(form: ScalarForm | null, value: JsonValue): string {
  if (fitsScalar(form ?? 'untyped', value)) return '';
  switch (form) {
    case 'numeric':
      return `expected numeric (int or float), got ${goType(value)}`;
    case 'string':
      return `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    case 'boolean':
      return `expected boolean, got ${goValue(value)}`;
    case 'untyped':
    case null:
      return `expected any scalar, got ${goValue(value)}`;
  }
}

function goType(value: JsonValue): string {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (isNumber(value)) return 'float64';
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}';
}

/** As Go's `%v` prints the wrapped value. */
function goValue(value: JsonValue): string {
  return `&{${goPlain(value)}}`;
}

function goPlain(value: JsonValue): string {
  if (value === null) return '<nil>';
  if (isNumber(value)) return goNumber(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map(goPlain).join(' ')}]`;
  const names = Object.keys(value).sort();
  const texts = names.map((name) => `${name}:${goPlain(ownMember(value, name) ?? null)}`);
  return `map[${texts.join(' ')}]`;
}

/** As Go's `%#v` prints it. */
function goSyntax(value: JsonValue): string {
  if (value === null) return 'interface {}(nil)';
  if (typeof value === 'string') return JSON.stringify(value);
  if (isNumber(value)) return goNumber(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${goSyntax(value[name] ?? null)}`);
  return `map[string]interface {}{${members.join(', ')}}`;
}
