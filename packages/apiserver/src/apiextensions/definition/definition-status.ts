/**
 * What the status of a CustomResourceDefinition says: whose names are whose within a group, whether
 * the kind is served, and whether a protected group was approved of. Upstream has a controller for
 * each; here they are one function of the definition and the names that others have.
 */
import { isDeepStrictEqual } from 'node:util';
import { bundleFault } from '@megaplane/machinery/custom/definition-webhook';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { conditionOf, namesAt, type CustomNames } from './definition-names.ts';
import { timestamp } from '../../timestamp.ts';

/** Answers which definition of the group has a name. */
export type NameOwner = (what: 'resource' | 'kind', name: string) => string | undefined;

interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

const APPROVED_ANNOTATION = 'api-approved.kubernetes.io';
const POLICY_URL = 'https://github.com/kubernetes/enhancements/pull/1111';

/**
 * The status that a definition should have, or null where it has it. Names are judged where they
 * are not those that were accepted: who takes conditions away from a definition that has its names
 * does not get them back.
 */
export function nextStatus(
  definition: JsonObject,
  ownerOf: NameOwner,
  nowMs: number,
): JsonObject | null {
  const before = objectAt(definition, 'status') ?? {};
  let next = definition;
  const wanted = namesAt(objectAt(definition, 'spec', 'names'));
  const had = namesAt(objectAt(before, 'acceptedNames'));
  if (!isDeepStrictEqual(wanted, had)) {
    const { names, condition } = acceptNames(wanted, had, ownerOf);
    next = { ...definition, status: { ...before, acceptedNames: names } };
    next = withCondition(next, condition, nowMs);
    if (condition.status === 'False' && !isTrue(next, 'Established')) {
      next = withCondition(next, NOT_ACCEPTED, nowMs);
    }
  }
  if (isTrue(next, 'NamesAccepted') && !isTrue(next, 'Established')) {
    next = withCondition(next, hasBrokenBundle(next) ? BROKEN_BUNDLE : ESTABLISHED, nowMs);
  }
  const approval = approvalOf(definition);
  if (approval !== null) next = withCondition(next, approval, nowMs);
  const status = objectAt(next, 'status') ?? {};
  return equals(status, before) ? null : status;
}

function isTrue(definition: JsonObject, type: string): boolean {
  return conditionOf(definition, type)?.['status'] === 'True';
}

const NOT_ACCEPTED: Condition = {
  type: 'Established',
  status: 'False',
  reason: 'NotAccepted',
  message: 'not all names are accepted',
};

const ESTABLISHED: Condition = {
  type: 'Established',
  status: 'True',
  reason: 'InitialNamesAccepted',
  message: 'the initial names have been accepted',
};

const BROKEN_BUNDLE: Condition = {
  type: 'Established',
  status: 'False',
  reason: 'InvalidCABundle',
  message: 'The conversion webhook CABundle is invalid',
};

/** Until a definition is established its bundle may be none. */
function hasBrokenBundle(definition: JsonObject): boolean {
  const client = objectAt(definition, 'spec', 'conversion', 'webhook', 'clientConfig');
  const bundle = stringAt(client, 'caBundle');
  return bundle !== '' && bundleFault(bundle) !== '';
}

/** Names are taken over one by one: those that somebody has stay as they were. */
function acceptNames(
  wanted: CustomNames,
  had: CustomNames,
  ownerOf: NameOwner,
): { readonly names: JsonObject; readonly condition: Condition } {
  const type = 'NamesAccepted';
  let condition: Condition = {
    type,
    status: 'True',
    reason: 'NoConflicts',
    message: 'no conflicts found',
  };
  const accept = (
    what: 'resource' | 'kind',
    reason: string,
    names: readonly string[],
    own: readonly string[],
  ): boolean => {
    const taken = names.filter((name) => {
      if (own.includes(name)) return false;
      return name !== '' && ownerOf(what, name) !== undefined;
    });
    if (taken.length === 0) return true;
    const texts = taken.map((name) => `${JSON.stringify(name)} is already in use`);
    const message = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
    condition = { type, status: 'False', reason, message };
    return false;
  };
  const one = (what: 'resource' | 'kind', reason: string, name: string, own: string): string =>
    accept(what, reason, [name], [own]) ? name : own;
  const plural = one('resource', 'PluralConflict', wanted.plural, had.plural);
  const singular = one('resource', 'SingularConflict', wanted.singular, had.singular);
  const { shortNames } = wanted;
  const areShort = accept('resource', 'ShortNamesConflict', shortNames, had.shortNames);
  const kind = one('kind', 'KindConflict', wanted.kind, had.kind);
  const listKind = one('kind', 'ListKindConflict', wanted.listKind, had.listKind);
  const short = areShort ? shortNames : had.shortNames;
  const names: JsonObject = {
    plural,
    ...(singular === '' ? {} : { singular }),
    ...(short.length === 0 ? {} : { shortNames: [...short] }),
    kind,
    ...(listKind === '' ? {} : { listKind }),
    ...(wanted.categories.length === 0 ? {} : { categories: [...wanted.categories] }),
  };
  return { names, condition };
}

/** Groups of the community need its approval, or to say that they have none. */
function approvalOf(definition: JsonObject): Condition | null {
  if (!isProtected(stringAt(definition, 'spec', 'group'))) return null;
  const type = 'KubernetesAPIApprovalPolicyConformant';
  const said = stringAt(definition, 'metadata', 'annotations', APPROVED_ANNOTATION);
  const must = `protected groups must have approval annotation "${APPROVED_ANNOTATION}"`;
  const no = (reason: string, message: string): Condition => {
    return { type, status: 'False', reason, message };
  };
  if (said === '') return no('MissingAnnotation', `${must}, see ${POLICY_URL}`);
  if (said.startsWith('unapproved')) {
    return no('UnapprovedAnnotation', `not approved: ${JSON.stringify(said)}`);
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(said)) {
    const either = 'with either a URL or a reason starting with "unapproved"';
    return no('InvalidAnnotation', `${must} ${either}, see ${POLICY_URL}`);
  }
  return { type, status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${said}` };
}

/** True for groups that the Kubernetes community keeps for itself. */
export function isProtected(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** The definition with a condition set; its time moves only with its status. */
export function withCondition(
  definition: JsonObject,
  { type, status, reason, message }: Condition,
  nowMs: number,
): JsonObject {
  const own = listAt(definition, 'status', 'conditions').filter(isObject);
  const at = own.findIndex((one) => one['type'] === type);
  const previous = own[at];
  const lastTransitionTime =
    previous?.['status'] === status ? (previous['lastTransitionTime'] ?? null) : timestamp(nowMs);
  const observed: JsonObject =
    previous?.['observedGeneration'] === undefined
      ? {}
      : { observedGeneration: previous['observedGeneration'] };
  const condition: JsonObject = { type, status, lastTransitionTime, reason, message, ...observed };
  const conditions: JsonValue[] = [...own];
  if (at < 0) conditions.push(condition);
  else conditions[at] = condition;
  return { ...definition, status: { ...objectAt(definition, 'status'), conditions } };
}
