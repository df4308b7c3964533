/** Virtual kinds that answer a question and are not stored: who am I, what may I or another do. */
import { putMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { badRequest, invalid, type Status } from '@megaplane/machinery/status';
import type { Listed } from '../../authorization/rules-review.ts';
import { checkNamespace } from '../rest/object-meta.ts';
import { textsOf } from '../../authentication/jwt.ts';
import { whenDecided, type Attributes } from '../../authorization/authorization.ts';
import { identityOf, type Identity } from '../../request/identity.ts';
import { sendMade } from '../../serializer/representation.ts';
import {
  defineJudge,
  defineSubresource,
  type SubresourceContext,
} from '../../handlers/subresource.ts';
import { reviewFaults, type ReviewKind } from './review-validation.ts';
import { timestamp } from '../../timestamp.ts';

const AUTHORIZATION = 'authorization.k8s.io';

/** Registers them. */
export function defineReviews(): void {
  defineSubresource('selfsubjectreviews.authentication.k8s.io', 'create', ({ call, body }) => {
    const metadata = { creationTimestamp: timestamp(call.nowMs) };
    sendMade(call, 201, { ...body, metadata, status: { userInfo: userInfo(call.identity) } });
  });
  defineAccessReview('selfsubjectaccessreviews', 'self', ({ call }) => call.identity);
  defineAccessReview('subjectaccessreviews', 'cluster', ({ body }) => subjectOf(body));
  defineAccessReview('localsubjectaccessreviews', 'local', ({ body }) => subjectOf(body));
  const rules = `selfsubjectrulesreviews.${AUTHORIZATION}`;
  defineJudge(rules, ({ body }) => {
    const isPlaced = stringAt(body, 'spec', 'namespace') !== '';
    return isPlaced ? null : badRequest('no namespace on request');
  });
  defineSubresource(rules, 'create', ({ call, body, services }) => {
    const namespace = stringAt(body, 'spec', 'namespace');
    const listed = services.listRules(call.identity, namespace);
    sendMade(call, 201, { ...body, ...rulesReview(listed) });
  });
}

function defineAccessReview(
  resource: string,
  kind: ReviewKind,
  subject: (context: SubresourceContext) => Identity,
): void {
  const path = `${resource}.${AUTHORIZATION}`;
  defineJudge(path, (context) => faultOf(context, kind));
  defineSubresource(path, 'create', (context) => answer(context, subject(context)));
}

/** Of a review that says too little or too much; upstream names neither kind nor object. */
function faultOf({ call, body }: SubresourceContext, kind: ReviewKind): Status | null {
  const { namespace } = call.info;
  const mismatch = kind === 'local' ? checkNamespace(body, namespace) : null;
  if (mismatch !== null) return mismatch;
  const faults = reviewFaults(body, kind, namespace);
  return faults.length === 0 ? null : invalid({ group: AUTHORIZATION, name: '' }, '', faults);
}

function userInfo({ user, uid, groups, extra }: Identity): JsonObject {
  const info: JsonObject = { username: user };
  if (uid !== '') info['uid'] = uid;
  info['groups'] = [...groups];
  const lists: JsonObject = {};
  for (const [key, values] of Object.entries(extra)) putMember(lists, key, [...values]);
  if (Object.keys(lists).length > 0) info['extra'] = lists;
  return info;
}

function subjectOf(body: JsonObject): Identity {
  const groups = listAt(body, 'spec', 'groups').filter((one) => typeof one === 'string');
  const given = Object.entries(objectAt(body, 'spec', 'extra') ?? {});
  const extra = given.map(([key, list]) => [key, textsOf(list)] as const);
  const uid = stringAt(body, 'spec', 'uid');
  const user = stringAt(body, 'spec', 'user');
  const identity = identityOf(user, groups, uid, Object.fromEntries(extra));
  return { ...identity, groups };
}

function answer(context: SubresourceContext, identity: Identity): void {
  const { call, body, world, services } = context;
  const { namespace } = call.info;
  const own = objectAt(body, 'metadata') ?? {};
  const metadata = namespace === '' ? {} : { metadata: { namespace, ...own } };
  const authorize = services.decide;
  let isLater = false;
  whenDecided(authorize, identity, attributesOf(body), (decision) => {
    const denied = decision.isFinal === true ? { denied: true } : {};
    const reason = decision.reason === '' ? {} : { reason: decision.reason };
    const fault = decision.error === undefined ? {} : { evaluationError: decision.error };
    const status = { allowed: decision.allowed, ...denied, ...reason, ...fault };
    const send = (): void => sendMade(call, 201, { ...body, ...metadata, status });
    // in a later turn nobody holds the answer back for what the decision has seen
    if (isLater) world.whenPublished(world.storage.appliedRevision, send);
    else send();
  });
  isLater = true;
}

function attributesOf(body: JsonObject): Attributes {
  const resource = objectAt(body, 'spec', 'resourceAttributes');
  const path = objectAt(body, 'spec', 'nonResourceAttributes');
  const from = resource ?? path ?? {};
  return {
    verb: stringAt(from, 'verb'),
    isResource: resource !== undefined,
    path: stringAt(from, 'path'),
    group: stringAt(from, 'group'),
    version: stringAt(from, 'version') || (resource === undefined ? '' : '*'),
    resource: stringAt(from, 'resource'),
    subresource: stringAt(from, 'subresource'),
    namespace: stringAt(from, 'namespace'),
    name: stringAt(from, 'name'),
    fieldSelector: selectorText(objectAt(resource, 'fieldSelector'), fieldText),
    labelSelector: selectorText(objectAt(resource, 'labelSelector'), labelText),
  };
}

/** One requirement: its key, its operator, its values. */
type RequirementText = (key: string, operator: string, values: readonly string[]) => string;

/** A selector as a query has it; requirements that no query can say are left out. */
function selectorText(selector: JsonObject | undefined, told: RequirementText): string {
  const raw = stringAt(selector, 'rawSelector');
  if (selector === undefined || raw !== '') return raw;
  const texts = listAt(selector, 'requirements').map((requirement) => {
    const values = textsOf(valueAt(requirement, 'values'));
    return told(stringAt(requirement, 'key'), stringAt(requirement, 'operator'), values);
  });
  return texts.filter((text) => text !== '').join(',');
}

function fieldText(key: string, operator: string, values: readonly string[]): string {
  const [value, ...others] = values;
  if (value === undefined || others.length > 0) return '';
  if (operator === 'In') return `${key}=${value}`;
  return operator === 'NotIn' ? `${key}!=${value}` : '';
}

function labelText(key: string, operator: string, values: readonly string[]): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(',')})`;
    case 'NotIn':
      return `${key} notin (${values.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return '';
  }
}

/** Bodies of these are read, and not answered with. */
function rulesReview({ rules, isIncomplete, fault }: Listed): JsonObject {
  const resourceRules = rules
    .filter((rule) => rule.resources.length > 0)
    .map((rule) => ({
      verbs: [...rule.verbs],
      apiGroups: [...rule.groups],
      resources: [...rule.resources],
      ...(rule.names.length === 0 ? {} : { resourceNames: [...rule.names] }),
    }));
  const nonResourceRules = rules
    .filter((rule) => rule.paths.length > 0)
    .map((rule) => ({ verbs: [...rule.verbs], nonResourceURLs: [...rule.paths] }));
  const status = { resourceRules, nonResourceRules, incomplete: isIncomplete };
  return {
    metadata: {},
    spec: {},
    status: fault === '' ? status : { ...status, evaluationError: fault },
  };
}
