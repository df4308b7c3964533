/**
 * Nobody grants what they do not have themselves: who writes a role needs each of its rules, or the
 * verb `escalate` on it; who writes a binding needs each rule of its role, or the verb `bind` on
 * that role. An aggregation rule may gather anything, so it takes everything. Masters are free, and
 * so is a change of owners and finalizers alone, which lets the garbage collector do its work
 * (kube-apiserver's policy-based storage of RBAC).
 */
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { quoted } from '@megaplane/machinery/quoting';
import {
  badRequest,
  forbidden,
  notFound,
  unclassified,
  type Status,
} from '@megaplane/machinery/status';
import { readStoredObject } from '../admission/stored-object.ts';
import { defineBehaviour, type RuleContext } from '../behaviour.ts';
import { matchesPath } from '../component-grants.ts';
import { parseRule, type PolicyRule } from '../rbac.ts';

const GROUP = 'rbac.authorization.k8s.io';
const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], groups: ['*'], resources: ['*'], names: [], paths: [] },
  { verbs: ['*'], groups: [], resources: [], names: [], paths: ['*'] },
];
/** Fields of the metadata that the garbage collector and the server change. */
const COLLECTED = [
  'ownerReferences',
  'finalizers',
  'managedFields',
  'resourceVersion',
  'generation',
] as const;

/** Registers the guards. */
export function defineEscalationGuards(): void {
  for (const plural of ['roles', 'clusterroles']) {
    defineBehaviour(`${plural}.${GROUP}`, { preflight: guardRole });
  }
  for (const plural of ['rolebindings', 'clusterrolebindings']) {
    defineBehaviour(`${plural}.${GROUP}`, { preflight: guardBinding });
  }
}

function guardRole(
  role: JsonObject,
  previous: JsonObject | null,
  context: RuleContext,
): Status | null {
  const { served, call } = context;
  if (isFree(role, previous, context, 'escalate', served.plural.name, call.info.name)) return null;
  const missing = missingRights(listAt(role, 'rules').map(parseRule), context);
  if (missing !== '') return refusal(role, context, missing);
  const gathers = [role, previous ?? {}].some(
    (one) => listAt(one, 'aggregationRule', 'clusterRoleSelectors').length > 0,
  );
  if (!gathers || missingRights(EVERYTHING, context) === '') return null;
  return refusal(role, context, 'must have cluster-admin privileges to use the aggregationRule');
}

function guardBinding(
  binding: JsonObject,
  previous: JsonObject | null,
  context: RuleContext,
): Status | null {
  const kind = stringAt(binding, 'roleRef', 'kind');
  const name = stringAt(binding, 'roleRef', 'name');
  const plural = kind === 'ClusterRole' ? 'clusterroles' : 'roles';
  const isKnown = kind === 'ClusterRole' || kind === 'Role';
  if (isFree(binding, previous, context, isKnown ? 'bind' : '', plural, name)) return null;
  if (!isKnown) return unclassified(`unsupported role reference kind: ${quoted(kind)}`);
  const { world, call, served } = context;
  const isLocal = kind === 'Role';
  if (isLocal && call.info.namespace === '') return badRequest('Namespace parameter required.');
  const role = readStoredObject(world, GROUP, plural, isLocal ? call.info.namespace : '', name);
  // upstream names what the request is of, not what it looked for
  if (role === null) return notFound(served.plural, name);
  const missing = missingRights(listAt(role, 'rules').map(parseRule), context);
  return missing === '' ? null : refusal(binding, context, missing);
}

/** Nothing is to be looked at: of masters, of what the collector writes, of who has the verb. */
function isFree(
  object: JsonObject,
  previous: JsonObject | null,
  { world, call }: RuleContext,
  verb: string,
  resource: string,
  name: string,
): boolean {
  if (call.identity.isMaster || world.services === null) return true;
  if (previous !== null && equals(uncollected(object), uncollected(previous))) return true;
  if (verb === '') return false;
  const { namespace } = call.info;
  return world.services.authorize(call.identity, {
    ...{ verb, isResource: true, path: '', group: GROUP, version: '*' },
    ...{ resource, subresource: '', namespace, name },
  }).allowed;
}

function uncollected(object: JsonObject): JsonObject {
  const metadata = { ...objectAt(object, 'metadata') };
  for (const field of COLLECTED) delete metadata[field];
  return { ...object, metadata };
}

function refusal(object: JsonObject, { served }: RuleContext, why: string): Status {
  const name = stringAt(object, 'metadata', 'name');
  return forbidden(served.plural, name, why);
}

/** What somebody would grant and does not have, in upstream's words; '' where there is nothing. */
function missingRights(rules: readonly PolicyRule[], { world, call }: RuleContext): string {
  const { user, groups } = call.identity;
  const own = world.services?.rulesOf(call.identity, call.info.namespace) ?? [];
  const missing = rules.flatMap(atoms).filter((atom) => !own.some((rule) => covers(rule, atom)));
  if (missing.length === 0) return '';
  const lines = [...new Set(compacted(missing).map(ruleText))].toSorted();
  const who = `user ${quoted(user)} (groups=${listText(groups)})`;
  const what = 'is attempting to grant RBAC permissions not currently held';
  return `${who} ${what}:\n${lines.join('\n')}`;
}

/** A rule as rules of one verb, one resource and one name at most, or of one path. */
function atoms({ verbs, groups, resources, names, paths }: PolicyRule): PolicyRule[] {
  const found: PolicyRule[] = [];
  for (const group of groups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const one = { verbs: [verb], groups: [group], resources: [resource], paths: [] };
        if (names.length === 0) found.push({ ...one, names: [] });
        else for (const name of names) found.push({ ...one, names: [name] });
      }
    }
  }
  for (const path of paths) {
    for (const verb of verbs) {
      found.push({ verbs: [verb], groups: [], resources: [], names: [], paths: [path] });
    }
  }
  return found;
}

function covers(rule: PolicyRule, atom: PolicyRule): boolean {
  const has = (own: readonly string[], wanted: readonly string[]): boolean =>
    own.includes('*') || wanted.every((one) => own.includes(one));
  return (
    has(rule.verbs, atom.verbs) &&
    has(rule.groups, atom.groups) &&
    atom.resources.every((resource) => coversResource(rule.resources, resource)) &&
    (rule.names.length === 0 ||
      (atom.names.length > 0 && atom.names.every((name) => rule.names.includes(name)))) &&
    atom.paths.every((path) => rule.paths.some((own) => own === path || matchesPath(own, path)))
  );
}

function coversResource(own: readonly string[], resource: string): boolean {
  if (own.includes('*') || own.includes(resource)) return true;
  const slash = resource.indexOf('/');
  return slash >= 0 && own.includes(`*${resource.slice(slash)}`);
}

/** Verbs of the same resource and name in one rule. */
function compacted(rules: readonly PolicyRule[]): PolicyRule[] {
  const found = new Map<string, PolicyRule>();
  for (const rule of rules) {
    const key = JSON.stringify([rule.groups, rule.resources, rule.names, rule.paths]);
    const before = rule.paths.length > 0 ? undefined : found.get(key);
    const verbs = [...(before?.verbs ?? []), ...rule.verbs];
    found.set(rule.paths.length > 0 ? `${key} ${rule.verbs.join(',')}` : key, { ...rule, verbs });
  }
  return [...found.values()];
}

function ruleText({ verbs, groups, resources, names, paths }: PolicyRule): string {
  const parts = [
    ['APIGroups', groups],
    ['Resources', resources],
    ['NonResourceURLs', paths],
    ['ResourceNames', names],
    ['Verbs', verbs],
  ] as const;
  const shown = parts.filter(([, values]) => values.length > 0);
  return `{${shown.map(([part, values]) => `${part}:${listText(values)}`).join(', ')}}`;
}

/** A list as Go's `%q` has it. */
function listText(values: readonly string[]): string {
  return `[${values.map(quoted).join(' ')}]`;
}
