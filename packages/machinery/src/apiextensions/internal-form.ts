/**
 * Schemas, rules and versions as upstream's own types print them in errors: all members in the
 * order of their declaration, those that are not set as well.
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { objectAt } from '../json/json.ts';
import { goJson } from '../gotext/go-texts.ts';
import type { VersionForm } from './definition-form.ts';

/** The text of a member. */
type Form = (value: JsonValue | undefined) => string;

const text: Form = (value) => goJson(typeof value === 'string' ? value : '');
const flag: Form = (value) => (value === true ? 'true' : 'false');
const any: Form = (value) => (value === undefined ? 'null' : goJson(value));
const list: Form = (value) => (Array.isArray(value) ? goJson(value) : 'null');

function object(members: readonly (readonly [name: string, text: string])[]): string {
  return `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`;
}

const schemaOrNull: Form = (value) => (isObject(value) ? internalSchema(value) : 'null');

const schemas: Form = (value) => {
  if (!Array.isArray(value)) return 'null';
  return `[${value.map(schemaOrNull).join(',')}]`;
};

const schemaMap: Form = (value) => {
  if (!isObject(value)) return 'null';
  const names = Object.keys(value).sort();
  const texts = names.map((name) => `${goJson(name)}:${schemaOrNull(ownMember(value, name))}`);
  return `{${texts.join(',')}}`;
};

/** `items`: one schema, or a list of them. */
export const internalItems: Form = (value) => {
  if (value === undefined || value === null) return 'null';
  return object([
    ['Schema', schemaOrNull(value)],
    ['JSONSchemas', schemas(value)],
  ]);
};

const dependencies: Form = (value) => {
  if (!isObject(value)) return 'null';
  const names = Object.keys(value).sort();
  const each = names.map((name): readonly [string, string] => {
    const one = ownMember(value, name);
    const form = object([
      ['Schema', schemaOrNull(one)],
      ['Property', list(one)],
    ]);
    return [name, form];
  });
  return object(each);
};

const schemaOrFlag: Form = (value) => {
  if (value === undefined || value === null) return 'null';
  const allows = isObject(value) || value === true;
  return object([
    ['Allows', String(allows)],
    ['Schema', schemaOrNull(value)],
  ]);
};

const docs: Form = (value) => {
  if (!isObject(value)) return 'null';
  return object([
    ['Description', text(value['description'])],
    ['URL', text(value['url'])],
  ]);
};

const rules: Form = (value) => {
  if (!Array.isArray(value)) return 'null';
  return `[${value.filter(isObject).map(internalRule).join(',')}]`;
};

const SCHEMA: readonly (readonly [name: string, member: string, form: Form])[] = [
  ['ID', 'id', text],
  ['Schema', '$schema', text],
  ['Ref', '$ref', any],
  ['Description', 'description', text],
  ['Type', 'type', text],
  ['Nullable', 'nullable', flag],
  ['Format', 'format', text],
  ['Title', 'title', text],
  ['Default', 'default', any],
  ['Maximum', 'maximum', any],
  ['ExclusiveMaximum', 'exclusiveMaximum', flag],
  ['Minimum', 'minimum', any],
  ['ExclusiveMinimum', 'exclusiveMinimum', flag],
  ['MaxLength', 'maxLength', any],
  ['MinLength', 'minLength', any],
  ['Pattern', 'pattern', text],
  ['MaxItems', 'maxItems', any],
  ['MinItems', 'minItems', any],
  ['UniqueItems', 'uniqueItems', flag],
  ['MultipleOf', 'multipleOf', any],
  ['Enum', 'enum', list],
  ['MaxProperties', 'maxProperties', any],
  ['MinProperties', 'minProperties', any],
  ['Required', 'required', list],
  ['Items', 'items', internalItems],
  ['AllOf', 'allOf', schemas],
  ['OneOf', 'oneOf', schemas],
  ['AnyOf', 'anyOf', schemas],
  ['Not', 'not', schemaOrNull],
  ['Properties', 'properties', schemaMap],
  ['AdditionalProperties', 'additionalProperties', schemaOrFlag],
  ['PatternProperties', 'patternProperties', schemaMap],
  ['Dependencies', 'dependencies', dependencies],
  ['AdditionalItems', 'additionalItems', schemaOrFlag],
  ['Definitions', 'definitions', schemaMap],
  ['ExternalDocs', 'externalDocs', docs],
  ['Example', 'example', any],
  ['XPreserveUnknownFields', 'x-kubernetes-preserve-unknown-fields', any],
  ['XEmbeddedResource', 'x-kubernetes-embedded-resource', flag],
  ['XIntOrString', 'x-kubernetes-int-or-string', flag],
  ['XListMapKeys', 'x-kubernetes-list-map-keys', list],
  ['XListType', 'x-kubernetes-list-type', any],
  ['XMapType', 'x-kubernetes-map-type', any],
  ['XValidations', 'x-kubernetes-validations', rules],
];

/** Names and members of a schema, in the order that upstream looks at them. */
export const SCHEMA_MEMBERS: readonly (readonly [name: string, member: string])[] = SCHEMA.map(
  ([name, member]) => [name, member],
);

export function internalSchema(schema: JsonObject): string {
  return object(SCHEMA.map(([name, member, form]) => [name, form(ownMember(schema, member))]));
}

export function internalRule(rule: JsonObject): string {
  return object([
    ['Rule', text(rule['rule'])],
    ['Message', text(rule['message'])],
    ['MessageExpression', text(rule['messageExpression'])],
    ['Reason', any(rule['reason'])],
    ['FieldPath', text(rule['fieldPath'])],
    ['OptionalOldSelf', any(rule['optionalOldSelf'])],
  ]);
}

function column(value: JsonValue): string {
  const one = isObject(value) ? value : {};
  return object([
    ['Name', text(one['name'])],
    ['Type', text(one['type'])],
    ['Format', text(one['format'])],
    ['Description', text(one['description'])],
    ['Priority', any(one['priority'] ?? 0)],
    ['JSONPath', text(one['jsonPath'])],
  ]);
}

function subresources(value: JsonObject | undefined): string {
  if (value === undefined) return 'null';
  const scale = objectAt(value, 'scale');
  const paths =
    scale === undefined
      ? 'null'
      : object([
          ['SpecReplicasPath', text(scale['specReplicasPath'])],
          ['StatusReplicasPath', text(scale['statusReplicasPath'])],
          ['LabelSelectorPath', any(scale['labelSelectorPath'])],
        ]);
  return object([
    ['Status', objectAt(value, 'status') === undefined ? 'null' : '{}'],
    ['Scale', paths],
  ]);
}

function listed(texts: readonly string[]): string {
  return texts.length === 0 ? 'null' : `[${texts.join(',')}]`;
}

/** Versions without what all of them share. */
export function internalVersions(versions: readonly VersionForm[]): string {
  // lists that all versions share stand above them; of others an empty one is there, and shown
  const areColumnsOwn = versions.some(({ columns }) => columns.length > 0);
  const areFieldsOwn = versions.some(({ selectable }) => selectable.length > 0);
  const own = (texts: readonly string[], list: JsonValue | undefined, isOwn: boolean): string =>
    isOwn && texts.length === 0 && Array.isArray(list) ? '[]' : listed(texts);
  const each = versions.map((version) => {
    const { json, validation, columns, selectable } = version;
    const schema = objectAt(validation, 'openAPIV3Schema');
    const wrapped = object([['OpenAPIV3Schema', schemaOrNull(schema)]]);
    const fields = selectable.map((one) =>
      object([['JSONPath', text(isObject(one) ? one['jsonPath'] : '')]]),
    );
    return object([
      ['Name', text(json['name'])],
      ['Served', flag(json['served'])],
      ['Storage', flag(json['storage'])],
      ['Deprecated', flag(json['deprecated'])],
      ['DeprecationWarning', any(json['deprecationWarning'])],
      ['Schema', validation === undefined ? 'null' : wrapped],
      ['Subresources', subresources(version.subresources)],
      [
        'AdditionalPrinterColumns',
        own(columns.map(column), json['additionalPrinterColumns'], areColumnsOwn),
      ],
      ['SelectableFields', own(fields, json['selectableFields'], areFieldsOwn)],
    ]);
  });
  return `[${each.join(',')}]`;
}
