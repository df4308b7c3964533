/** Parts of a CustomResourceDefinition that are read in several places. */
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';

/** What a resource is called. */
export interface CustomNames {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

/** `spec.names` or `status.acceptedNames`. */
export function namesAt(names: JsonObject | undefined): CustomNames {
  return {
    plural: stringAt(names, 'plural'),
    singular: stringAt(names, 'singular'),
    kind: stringAt(names, 'kind'),
    listKind: stringAt(names, 'listKind'),
    shortNames: texts(listAt(names, 'shortNames')),
    categories: texts(listAt(names, 'categories')),
  };
}

function texts(values: readonly JsonValue[]): readonly string[] {
  return values.length === 0 ? NOTHING : values.filter((one) => typeof one === 'string');
}

const NOTHING: readonly string[] = [];

/** The condition of a type, or undefined. */
export function conditionOf(definition: JsonObject, type: string): JsonObject | undefined {
  return listAt(definition, 'status', 'conditions')
    .filter(isObject)
    .find((one) => one['type'] === type);
}
