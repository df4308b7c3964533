/**
 * CustomResourceDefinitions as objects of the API (`apiextensions.k8s.io/v1`): what the server
 * fills in, and what it refuses. Rules, paths and texts are upstream's.
 */
import type { FieldError } from '../fielderrors.ts';
import type { JsonObject } from '../json-value.ts';
import type { RuleTable } from '../validation.ts';
import { definitionVersions } from './definition-version.ts';

/**
 * Fills in what a definition leaves out, in place: names from the kind, conversion None, the port
 * of a webhook, `status.storedVersions` of a new definition. (A step of `applyDefaults`.)
 */
export function defaultDefinition(_definition: JsonObject): void {}

/**
 * Everything that is wrong with a definition; `old` is null on creation. Takes the object after
 * defaults. Metadata in general is checked as for every kind; that the name is made of plural and
 * group is checked here.
 */
export function validateDefinition(definition: JsonObject, _old: JsonObject | null): FieldError[] {
  definitionVersions(definition);
  return [];
}

/** `validateCreate` and `validateUpdate` of `../validation.ts` reach definitions by this. */
export const DEFINITION_RULES: RuleTable = {
  'customresourcedefinitions.apiextensions.k8s.io': {
    create: (found, object) => found.push(...validateDefinition(object, null)),
    update: (found, next, previous) => found.push(...validateDefinition(next, previous)),
  },
};
