/**
 * Objects as upstream's own types print them in errors: those have no names for JSON, so that every
 * field is there under its name in Go, in the order of declaration.
 */
import { ownMember } from '@megaplane/base/members';
import { printed, type Printed } from '../meta/fielderrors.ts';
import { isObject, type JsonValue } from '../json/json-value.ts';
import { escapedJson } from '../json/quoting.ts';
import type { Field, Shape, Type } from '../scheme/schema.ts';

/** A value of `type` as an error shows it. */
export function internalValue(type: Type, value: JsonValue | undefined): Printed {
  return printed(objectText(type, value));
}

function objectText(type: Type, value: JsonValue | undefined): string {
  const members = isObject(value) ? value : {};
  const fields = type.fields.map((field) => {
    return `"${goName(field.name)}":${fieldText(field, ownMember(members, field.name))}`;
  });
  return `{${fields.join(',')}}`;
}

function fieldText(field: Field, value: JsonValue | undefined): string {
  const isAbsent = value === undefined || value === null;
  return isAbsent && field.isPointer ? 'null' : valueText(field.shape, value);
}

function valueText(shape: Shape, value: JsonValue | undefined): string {
  switch (shape.kind) {
    case 'object':
      return objectText(shape.type, value);
    case 'list':
      if (!Array.isArray(value)) return 'null';
      return `[${value.map((item) => valueText(shape.items, item)).join(',')}]`;
    case 'map':
      return isObject(value) ? escapedJson(value) : 'null';
    case 'scalar': {
      if (value !== undefined && value !== null) return escapedJson(value);
      if (shape.scalar === 'bool') return 'false';
      return shape.scalar === 'string' ? '""' : '0';
    }
  }
}

/** Words that Go writes in capitals begin with them. */
function goName(name: string): string {
  const rest = name.replace(/^(api|url|uid)(?=[A-Z]|$)/, (word) => word.toUpperCase());
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}
