/** Virtual kinds that answer a question and are not stored: who am I, what may I or another do. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { DENIED, whenDecided, type Attributes } from './authorization.ts';
import { identityOf, type Identity } from './identity.ts';
import { defineSubresource, type SubresourceContext } from './subresource.ts';
import type { PolicyRule } from './rbac.ts';

const AUTHORIZATION = 'authorization.k8s.io';

/** Registers them. */
export function defineReviews(): void {
  defineSubresource('selfsubjectreviews.authentication.k8s.io', 'create', ({ call, body }) => {
    call.sendObject(201, { ...body, status: { userInfo: userInfo(call.identity) } });
  });
  defineSubresource(`selfsubjectaccessreviews.${AUTHORIZATION}`, 'create', (context) =>
    answer(context, context.call.identity),
  );
  for (const name of ['subjectaccessreviews', 'localsubjectaccessreviews']) {
    defineSubresource(`${name}.${AUTHORIZATION}`, 'create', (context) =>
      answer(context, subjectOf(context.body)),
    );
  }
  defineSubresource(`selfsubjectrulesreviews.${AUTHORIZATION}`, 'create', (context) => {
    const { call, body, world } = context;
    const namespace = stringAt(body, 'spec', 'namespace');
    const rules = world.services?.rulesOf(call.identity, namespace) ?? [];
    call.sendObject(201, { ...body, status: rulesStatus(rules, call.identity) });
  });
}

function userInfo({ user, uid, groups, extra }: Identity): JsonObject {
  const info: JsonObject = { username: user };
  if (uid !== '') info['uid'] = uid;
  info['groups'] = [...groups];
  const lists: JsonObject = {};
  for (const [key, values] of Object.entries(extra)) lists[key] = [...values];
  if (Object.keys(lists).length > 0) info['extra'] = lists;
  return info;
}

function subjectOf(body: JsonObject): Identity {
  const groups = listAt(body, 'spec', 'groups').filter((one) => typeof one === 'string');
  const identity = identityOf(stringAt(body, 'spec', 'user'), groups);
  return { ...identity, groups };
}

function answer({ call, body, world }: SubresourceContext, identity: Identity): void {
  const authorize = world.services?.decide ?? ((): typeof DENIED => DENIED);
  let isLater = false;
  whenDecided(authorize, identity, attributesOf(body), (decision) => {
    const denied = decision.isFinal === true ? { denied: true } : {};
    const reason = decision.reason === '' ? {} : { reason: decision.reason };
    const status = { allowed: decision.allowed, ...denied, ...reason };
    const send = (): void => call.sendObject(201, { ...body, status });
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
    version: stringAt(from, 'version'),
    resource: stringAt(from, 'resource'),
    subresource: stringAt(from, 'subresource'),
    namespace: stringAt(from, 'namespace'),
    name: stringAt(from, 'name'),
  };
}

function rulesStatus(rules: readonly PolicyRule[], identity: Identity): JsonObject {
  const everything: PolicyRule = {
    verbs: ['*'],
    groups: ['*'],
    resources: ['*'],
    names: [],
    paths: [],
  };
  const all = identity.isMaster ? [everything, ...rules] : rules;
  return {
    resourceRules: all
      .filter((rule) => rule.resources.length > 0)
      .map((rule) => ({
        verbs: [...rule.verbs],
        apiGroups: [...rule.groups],
        resources: [...rule.resources],
        ...(rule.names.length === 0 ? {} : { resourceNames: [...rule.names] }),
      })),
    nonResourceRules: all
      .filter((rule) => rule.paths.length > 0)
      .map((rule) => ({ verbs: [...rule.verbs], nonResourceURLs: [...rule.paths] })),
    incomplete: false,
  };
}
