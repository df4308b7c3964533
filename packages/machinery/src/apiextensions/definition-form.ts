/**
 * A definition as upstream's rules see it: what all versions have alike stands above them
 * (`spec.validation`), and so do the paths of what is wrong with it.
 */
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { equals, listAt, objectAt, stringAt } from '../json/json.ts';

/** What a version may share with all others. */
export interface SharedParts {
  /** `{ openAPIV3Schema }` */
  readonly validation: JsonObject | undefined;
  readonly subresources: JsonObject | undefined;
  readonly columns: readonly JsonValue[];
  readonly selectable: readonly JsonValue[];
}

export interface VersionForm extends SharedParts {
  readonly name: string;
  readonly json: JsonObject;
}

export interface DefinitionForm {
  readonly spec: JsonObject;
  readonly shared: SharedParts;
  /** Without what is shared. */
  readonly versions: readonly VersionForm[];
  /** Of all versions that have one. */
  readonly schemas: readonly JsonObject[];
}

const NOTHING: SharedParts = {
  validation: undefined,
  subresources: undefined,
  columns: [],
  selectable: [],
};

function partsOf(version: JsonObject): SharedParts {
  return {
    validation: objectAt(version, 'schema'),
    subresources: objectAt(version, 'subresources'),
    columns: listAt(version, 'additionalPrinterColumns'),
    selectable: listAt(version, 'selectableFields'),
  };
}

/** Makes it in steps: of large definitions the schemas are long to compare. */
export function* formSteps(definition: JsonObject): Generator<void, DefinitionForm> {
  const spec = objectAt(definition, 'spec') ?? {};
  const listed = listAt(spec, 'versions').map((one) => (isObject(one) ? one : {}));
  const parts = listed.map(partsOf);
  const [first = NOTHING] = parts;
  const isAlike = (part: (of: SharedParts) => JsonValue | undefined): boolean =>
    parts.every((one) => equals(part(one), part(first)));
  let validation = true;
  for (const one of parts.slice(1)) {
    validation &&= equals(one.validation, first.validation);
    yield;
  }
  const alike = {
    validation,
    subresources: isAlike((one) => one.subresources),
    columns: isAlike((one) => [...one.columns]),
    selectable: isAlike((one) => [...one.selectable]),
  };
  const pick = (from: SharedParts, areShared: boolean): SharedParts => ({
    validation: alike.validation === areShared ? from.validation : undefined,
    subresources: alike.subresources === areShared ? from.subresources : undefined,
    columns: alike.columns === areShared ? from.columns : [],
    selectable: alike.selectable === areShared ? from.selectable : [],
  });
  const versions = listed.map((json, i) => ({
    ...pick(parts[i] ?? NOTHING, false),
    name: stringAt(json, 'name'),
    json,
  }));
  const schemas = parts.map((one) => schemaOf(one.validation)).filter((one) => one !== undefined);
  return { spec, shared: pick(first, true), versions, schemas };
}

/** The schema of `{ openAPIV3Schema }`. */
export function schemaOf(validation: JsonObject | undefined): JsonObject | undefined {
  return objectAt(validation, 'openAPIV3Schema');
}

/** Whether a definition has a condition that is true. */
export function hasCondition(definition: JsonObject, type: string): boolean {
  return listAt(definition, 'status', 'conditions').some(
    (one) => stringAt(one, 'type') === type && stringAt(one, 'status') === 'True',
  );
}
