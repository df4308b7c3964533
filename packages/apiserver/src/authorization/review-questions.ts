/** What a webhook that authorizes is asked: the `spec` of a SubjectAccessReview. */
import { celEnvironment } from '@megaplane/machinery/cel/program';
import { BOOL, listOf, mapOf, STRING, type CelType } from '@megaplane/machinery/cel/typing';
import { objectOf } from '@megaplane/machinery/cel/admission-environment';
import { fieldTerms } from '@megaplane/machinery/fieldselectors';
import {
  parseLabelSelector,
  type Operator,
  type Requirement,
} from '@megaplane/machinery/selectors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Attributes } from './authorization.ts';
import type { Identity } from '../request/identity.ts';
import type { Environment } from '@megaplane/machinery/environment';

/** The question; fields that are empty are left out, as Go writes it. */
export function reviewSpec(identity: Identity, what: Attributes): JsonObject {
  const spec: JsonObject = what.isResource
    ? {
        resourceAttributes: {
          ...filled({
            namespace: what.namespace,
            verb: what.verb,
            group: what.group,
            version: what.version,
            resource: what.resource,
            subresource: what.subresource,
            name: what.name,
          }),
          ...selectorsOf(what),
        },
      }
    : { nonResourceAttributes: filled({ path: what.path, verb: what.verb }) };
  if (identity.user !== '') spec['user'] = identity.user;
  if (identity.groups.length > 0) spec['groups'] = [...identity.groups];
  const extra = Object.entries(identity.extra).map(([key, list]) => [key, [...list]]);
  if (extra.length > 0) spec['extra'] = Object.fromEntries(extra) as JsonObject;
  if (identity.uid !== '') spec['uid'] = identity.uid;
  return spec;
}

/** The question as match conditions see it: texts that are empty are there. */
export function reviewFacts(identity: Identity, what: Attributes): JsonObject {
  const { namespace, verb, group, version, resource, subresource, name, path } = what;
  const about: JsonObject = what.isResource
    ? {
        resourceAttributes: {
          ...{ namespace, verb, group, version, resource, subresource, name },
          ...selectorsOf(what),
        },
      }
    : { nonResourceAttributes: { path, verb } };
  const { user, uid, groups, extra } = identity;
  const lists = Object.entries(extra).map(([key, list]) => [key, [...list]]);
  return {
    ...about,
    user,
    uid,
    groups: [...groups],
    extra: Object.fromEntries(lists) as JsonObject,
  };
}

/** What lists are narrowed to; a selector that cannot be read narrows nothing. */
function selectorsOf({ fieldSelector = '', labelSelector = '' }: Attributes): JsonObject {
  const selectors: JsonObject = {};
  const fields = fieldTerms(fieldSelector).map(({ field, isEqual, value }): JsonObject => ({
    key: field,
    operator: isEqual ? 'In' : 'NotIn',
    values: [value],
  }));
  if (fields.length > 0) selectors['fieldSelector'] = { requirements: fields };
  const parsed = parseLabelSelector(labelSelector);
  const labels = 'error' in parsed ? [] : parsed.value.requirements.flatMap(requirementOf);
  if (labels.length > 0) selectors['labelSelector'] = { requirements: labels };
  return selectors;
}

const OPERATORS: Partial<Readonly<Record<Operator, string>>> = {
  in: 'In',
  '=': 'In',
  '==': 'In',
  notin: 'NotIn',
  '!=': 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Numbers are compared by no operator of a review: those are left out. */
function requirementOf({ key, operator, values }: Requirement): JsonObject[] {
  const named = OPERATORS[operator];
  if (named === undefined) return [];
  return [{ key, operator: named, ...(values.length === 0 ? {} : { values: [...values] }) }];
}

function filled(fields: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

const REQUIREMENTS: CelType = listOf(
  objectOf('kubernetes.SelectorRequirement', {
    key: STRING,
    operator: STRING,
    values: listOf(STRING),
  }),
);
const SELECTOR: CelType = objectOf('kubernetes.SelectorAttributes', {
  rawSelector: STRING,
  requirements: REQUIREMENTS,
});

/** `request` of a match condition: the question itself. */
export const REVIEW_TYPE: CelType = objectOf('kubernetes.SubjectAccessReviewSpec', {
  resourceAttributes: objectOf('kubernetes.ResourceAttributes', {
    namespace: STRING,
    verb: STRING,
    group: STRING,
    version: STRING,
    resource: STRING,
    subresource: STRING,
    name: STRING,
    fieldSelector: SELECTOR,
    labelSelector: SELECTOR,
  }),
  nonResourceAttributes: objectOf('kubernetes.NonResourceAttributes', {
    path: STRING,
    verb: STRING,
  }),
  user: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
  uid: STRING,
});

/** What match conditions of authorizers are compiled for; their result is a bool. */
export const REVIEW_ENVIRONMENT: Environment = celEnvironment({
  variables: { request: REVIEW_TYPE },
});
export const CONDITION_TYPE: CelType = BOOL;
