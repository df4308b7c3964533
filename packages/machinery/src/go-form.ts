/**
 * A value as upstream prints its internal structs in error texts: every field under its Go name,
 * `null` and zero written out.
 */

import { printed, type Printed } from './fielderrors.ts';
import { isObject, type JsonObject, type JsonValue } from './json-value.ts';
import { findType, type Shape } from './schema.ts';
import { zeroOf } from './zero-values.ts';

const INITIALS = /^(os|tty|uid|url|ip|nfs|csi|rbd|fc|iscsi|grpc|cel)$/;
const FIRST_WORDS = /^(dns|http|tcp|api|fs|pid|ip|gce|aws)(?=[A-Z])/;

/** Fields that Go calls something else. */
const RENAMED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'resource.v1.DeviceAttribute': {
    int: 'IntValue',
    bool: 'BoolValue',
    string: 'StringValue',
    version: 'VersionValue',
    ints: 'IntValues',
    bools: 'BoolValues',
    strings: 'StringValues',
    versions: 'VersionValues',
  },
};

/** `apiGroup` -> `APIGroup`, `maxSurge` -> `MaxSurge`. */
function goName(name: string): string {
  if (name === 'cidrs') return 'CIDRs';
  if (INITIALS.test(name)) return name.toUpperCase();
  const named = name.replace(FIRST_WORDS, (word) => word.toUpperCase());
  return named.charAt(0).toUpperCase() + named.slice(1);
}

/** The struct of a type by its name (`apps.v1.DeploymentStrategy`), ready for an error text. */
export function goForm(typeName: string, value: JsonValue | undefined): Printed {
  return printed(JSON.stringify(goValueOf(typeName, value)));
}

/** The same as a value. */
export function goValueOf(typeName: string, value: JsonValue | undefined): JsonValue {
  const type = findType(typeName);
  if (type === undefined) throw new Error(`no type ${typeName}`);
  return formOf({ kind: 'object', type }, value, false);
}

function formOf(shape: Shape, value: JsonValue | undefined, isPointer: boolean): JsonValue {
  if (value === undefined || value === null) {
    if (isPointer || shape.kind === 'list' || shape.kind === 'map') return null;
    if (shape.kind === 'scalar') return zeroOf(shape.scalar);
  }
  if (shape.kind === 'list') {
    return Array.isArray(value) ? value.map((item) => formOf(shape.items, item, false)) : [];
  }
  if (shape.kind !== 'object') return value ?? null;
  // Structs of meta.v1 are printed under their JSON names.
  if (shape.type.name.startsWith('meta.v1.')) return value ?? {};
  const form: JsonObject = {};
  const source = isObject(value) ? value : {};
  for (const field of shape.type.fields) {
    // metadata is embedded there, and printed among the other fields
    if (field.name === 'metadata') {
      Object.assign(form, formOf(field.shape, source['metadata'], false));
      continue;
    }
    const name = RENAMED[shape.type.name]?.[field.name] ?? goName(field.name);
    form[name] = formOf(field.shape, source[field.name], field.isPointer);
  }
  return form;
}
