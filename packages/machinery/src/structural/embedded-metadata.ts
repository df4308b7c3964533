/**
 * Objects within objects (`x-kubernetes-embedded-resource`): they have an apiVersion and a kind,
 * and their metadata is that of every object, so what does not belong there goes.
 */
import { putMembers } from '@megaplane/base/members';
import { managerErrors } from '../meta/field-manager.ts';
import { invalidValue, printed, required, tooLong, type FieldError } from '../meta/fielderrors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { listAt, stringAt } from '../json/json.ts';
import { dns1035LabelErrors } from '../meta/names.ts';
import { refit } from '../codec/request-body.ts';
import { findType, type Type } from '../scheme/schema.ts';
import { checkMetadata, SEGMENT_NAME } from '../validation/field/validation-metadata.ts';
import { child, childKey, item } from './schema/field-path.ts';
import { goJson } from '../gotext/go-texts.ts';
import { memberNode, type SchemaNode } from './schema/schema-node.ts';

interface Coercion {
  /** Malformed metadata goes instead of being refused. */
  readonly dropsMalformed: boolean;
  readonly unknown: string[] | null;
}

function metaType(): Type {
  const type = findType('meta.v1.ObjectMeta');
  if (type === undefined) throw new Error('no type meta.v1.ObjectMeta');
  return type;
}

/** Upstream's text for a value as field errors print it. */
function shown(value: JsonValue | undefined): ReturnType<typeof printed> | string {
  return typeof value === 'string' ? value : printed(goJson(value));
}

/**
 * Brings the metadata of embedded objects into its form. The first that cannot be read ends it,
 * unless what is malformed may go. `isResource`: the value itself is such an object.
 */
export function coerceEmbedded(
  node: SchemaNode,
  value: JsonValue,
  isResource: boolean,
  coercion: Coercion,
  path = '',
): FieldError | null {
  if (!node.hasEmbedded && !isResource) return null;
  if (Array.isArray(value)) {
    if (node.items === null) return null;
    for (let i = 0; i < value.length; i++) {
      const fault = coerceEmbedded(
        node.items,
        value[i] ?? null,
        node.items.isEmbedded,
        coercion,
        item(path, i),
      );
      if (fault !== null) return fault;
    }
    return null;
  }
  if (!isObject(value)) return null;
  if (isResource) {
    const fault = coerceResource(value, coercion, path);
    if (fault !== null) return fault;
  }
  for (const name in value) {
    const member = memberNode(node, name);
    if (member === null || !member.hasEmbedded) continue;
    const isDeclared = node.properties?.has(name) === true;
    const at = isDeclared ? child(path, name) : childKey(path, name);
    const fault = coerceEmbedded(member, value[name] ?? null, member.isEmbedded, coercion, at);
    if (fault !== null) return fault;
  }
  return null;
}

function coerceResource(
  object: JsonObject,
  { dropsMalformed, unknown }: Coercion,
  path: string,
): FieldError | null {
  for (const name of ['apiVersion', 'kind']) {
    const text = object[name];
    if (text === undefined || typeof text === 'string') continue;
    if (!dropsMalformed) return invalidValue(child(path, name), shown(text), 'must be a string');
    delete object[name];
  }
  const metadata = object['metadata'];
  if (metadata === undefined) return null;
  const read = readMetadata(metadata, unknown !== null);
  if (!read.ok) {
    if (!dropsMalformed) {
      return invalidValue(child(path, 'metadata'), shown(metadata), read.message);
    }
    if (isObject(metadata)) object['metadata'] = salvaged(metadata);
    return null;
  }
  unknown?.push(...read.unknown.map((name) => `${child(path, 'metadata')}.${name}`));
  object['metadata'] = read.object;
  return null;
}

type Read =
  | { readonly ok: true; readonly object: JsonObject; readonly unknown: readonly string[] }
  | { readonly ok: false; readonly message: string };

function readMetadata(metadata: JsonValue, isTracked: boolean): Read {
  if (metadata === null) return { ok: true, object: {}, unknown: [] };
  if (!isObject(metadata)) {
    const found = Array.isArray(metadata) ? 'array' : goKind(metadata);
    const message = `json: cannot unmarshal ${found} into Go value of type v1.ObjectMeta`;
    return { ok: false, message };
  }
  const body = refit(metaType(), metadata, isTracked);
  if (!body.ok) return body;
  const unknown = body.strictErrors.flatMap((text) => /"(.*)"/.exec(text)?.[1] ?? []);
  const { kind: _, apiVersion: __, ...object } = body.object;
  if (object['creationTimestamp'] === null) delete object['creationTimestamp'];
  return { ok: true, object, unknown };
}

function goKind(value: JsonValue): string {
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** The members that can be read, one by one. */
function salvaged(metadata: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(metadata)) {
    const read = readMetadata({ [name]: value ?? null }, false);
    if (read.ok) putMembers(kept, read.object);
  }
  return kept;
}

/** What is wrong with embedded objects; `isResource` as above. */
export function checkEmbedded(
  node: SchemaNode,
  value: JsonValue,
  isResource: boolean,
  path: string,
  found: FieldError[],
): void {
  if (!node.hasEmbedded && !isResource) return;
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === null) return;
    for (const [i, one] of value.entries()) {
      checkEmbedded(items, one, items.isEmbedded, item(path, i), found);
    }
    return;
  }
  if (!isObject(value)) return;
  if (isResource) checkResource(value, path, found);
  for (const name in value) {
    const member = memberNode(node, name);
    if (member === null || !member.hasEmbedded) continue;
    const isDeclared = node.properties?.has(name) === true;
    const at = isDeclared ? child(path, name) : childKey(path, name);
    checkEmbedded(member, value[name] ?? null, member.isEmbedded, at, found);
  }
}

function checkResource(object: JsonObject, path: string, found: FieldError[]): void {
  for (const name of ['apiVersion', 'kind']) {
    if (object[name] === undefined) found.push(required(child(path, name)));
  }
  for (const [name, value] of Object.entries(object)) {
    if (name === 'apiVersion' || name === 'kind') checkTypeMember(name, value, path, found);
    if (name === 'metadata' && value !== undefined) checkMeta(value, path, found);
  }
}

function checkTypeMember(
  name: string,
  value: JsonValue | undefined,
  path: string,
  found: FieldError[],
): void {
  const at = child(path, name);
  if (typeof value !== 'string') {
    found.push(invalidValue(at, shown(value), 'must be a string'));
  } else if (value === '') {
    found.push(invalidValue(at, value, 'must not be empty'));
  } else if (name === 'apiVersion') {
    if (value.split('/').length <= 2) return;
    found.push(invalidValue(at, value, `unexpected GroupVersion string: ${value}`));
  } else {
    const errors = dns1035LabelErrors(value.toLowerCase());
    if (errors.length === 0) return;
    const detail = `may have mixed case, but should otherwise match: ${errors.join(',')}`;
    found.push(invalidValue(at, value, detail));
  }
}

function checkMeta(value: JsonValue, path: string, found: FieldError[]): void {
  const at = child(path, 'metadata');
  const read = readMetadata(value, false);
  if (!read.ok) {
    found.push(invalidValue(at, shown(value), read.message));
    return;
  }
  const isNamespaced = stringAt(read.object, 'namespace') !== '';
  const named =
    stringAt(read.object, 'name') === '' ? { ...read.object, name: 'fakename' } : read.object;
  const errors: FieldError[] = [];
  checkMetadata(errors, named, isNamespaced, SEGMENT_NAME, false);
  checkManagedFields(listAt(read.object, 'managedFields'), errors);
  for (const error of errors) {
    found.push({ ...error, field: error.field.replace(/^metadata/, at) });
  }
}

const SUBRESOURCE_BYTES_MAX = 256;

/** Who owns fields of an embedded object says so by itself, and nobody puts it right. */
function checkManagedFields(entries: readonly JsonValue[], found: FieldError[]): void {
  for (const [index, entry] of entries.entries()) {
    const at = item('metadata.managedFields', index);
    const text = (name: string): string => stringAt(entry, name);
    if (!['Apply', 'Update'].includes(text('operation'))) {
      const detail = 'must be `Apply` or `Update`';
      found.push(invalidValue(child(at, 'operation'), text('operation'), detail));
    }
    if (!['', 'FieldsV1'].includes(text('fieldsType'))) {
      found.push(invalidValue(child(at, 'fieldsType'), text('fieldsType'), 'must be `FieldsV1`'));
    }
    found.push(...managerErrors(text('manager'), child(at, 'manager')));
    if (Buffer.byteLength(text('subresource')) > SUBRESOURCE_BYTES_MAX) {
      found.push(tooLong(child(at, 'subresource'), SUBRESOURCE_BYTES_MAX));
    }
  }
}
