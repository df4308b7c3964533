/**
 * RBAC: what the stored roles and bindings allow.
 *
 * All bindings are indexed by subject with their rules resolved. The index is rebuilt when any of
 * the four kinds has changed since it was built, at the next question; between changes a question
 * costs a few look-ups.
 */
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { DENIED, type Attributes, type Authorizer, type Decision } from './authorization.ts';
import { matchesPath } from './component-grants.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { followChanges } from '../storage/follow.ts';
import { parseServiceAccount, type Identity } from '../request/identity.ts';
import { findServed, rangeOf } from '../storage/served.ts';
import type { World } from '../lister/world.ts';

const GROUP = 'rbac.authorization.k8s.io';
const PLURALS = ['clusterroles', 'roles', 'clusterrolebindings', 'rolebindings'] as const;

/** One rule of a role. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly groups: readonly string[];
  readonly resources: readonly string[];
  readonly names: readonly string[];
  readonly paths: readonly string[];
}

/** Rules that a binding gives: in one namespace, or everywhere ('' ). */
interface Granted {
  readonly namespace: string;
  readonly rules: readonly PolicyRule[];
  /** Which binding, of which role, to whom. */
  readonly reason: string;
  /** The role that is missing, for the words of a refusal. */
  readonly missing: string;
  readonly role: string;
  /** Bindings in the order in which upstream goes through them. */
  readonly turn: number;
}

export class Rbac {
  readonly #world: World;
  #bySubject: Map<string, Granted[]> | null = null;
  /** Told when what is granted may have changed. */
  onChange: () => void = () => {};

  constructor(world: World) {
    this.#world = world;
    for (const plural of PLURALS) {
      const served = findServed(GROUP, 'v1', plural);
      if (served === undefined) continue;
      followChanges(world.storage, rangeOf(served, ''), () => {
        this.#bySubject = null;
        this.onChange();
      });
    }
  }

  readonly authorize: Authorizer = (identity, attributes): Decision => {
    const lacking: Granted[] = [];
    for (const granted of this.#grantsOf(identity)) {
      const isHere = granted.namespace === '' || granted.namespace === attributes.namespace;
      if (!isHere) continue;
      if (granted.missing !== '') lacking.push(granted);
      if (granted.rules.some((rule) => ruleAllows(rule, attributes, granted.namespace))) {
        return { allowed: true, reason: granted.reason };
      }
    }
    if (lacking.length === 0) return DENIED;
    const missing = new Set(inTurn(lacking).map((granted) => granted.missing));
    const texts = [...missing].map((role) => `${role} not found`);
    const joined = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
    return { allowed: false, reason: `RBAC: ${joined}` };
  };

  /** Every rule that an identity has in a namespace, cluster-wide ones included. */
  rulesOf(identity: Identity, namespace: string): PolicyRule[] {
    return this.#grantsOf(identity)
      .filter((granted) => granted.namespace === '' || granted.namespace === namespace)
      .flatMap((granted) => granted.rules);
  }

  /** Roles that bindings of an identity name and that are not there. */
  missingOf(identity: Identity, namespace: string): string[] {
    return this.#lackingOf(identity, namespace).map(({ missing }) => missing);
  }

  /** Their names alone. */
  missingNames(identity: Identity, namespace: string): string[] {
    return this.#lackingOf(identity, namespace).map(({ role }) => role);
  }

  #lackingOf(identity: Identity, namespace: string): Granted[] {
    const lacking = this.#grantsOf(identity)
      .filter(({ missing }) => missing !== '')
      .filter((granted) => granted.namespace === '' || granted.namespace === namespace);
    return inTurn(lacking);
  }

  #grantsOf(identity: Identity): Granted[] {
    const index = (this.#bySubject ??= this.#build());
    const account = parseServiceAccount(identity.user);
    const found = [...(index.get(`User ${identity.user}`) ?? [])];
    for (const group of identity.groups) found.push(...(index.get(`Group ${group}`) ?? []));
    if (account !== null) {
      const key = `ServiceAccount ${account.namespace}/${account.name}`;
      found.push(...(index.get(key) ?? []));
    }
    return found;
  }

  #build(): Map<string, Granted[]> {
    const rules = new Map<string, PolicyRule[]>();
    for (const plural of ['clusterroles', 'roles']) {
      for (const role of this.#read(plural)) {
        const namespace = stringAt(role, 'metadata', 'namespace');
        const name = stringAt(role, 'metadata', 'name');
        rules.set(`${namespace}/${name}`, listAt(role, 'rules').map(parseRule));
      }
    }
    const index = new Map<string, Granted[]>();
    let turn = 0;
    for (const plural of ['clusterrolebindings', 'rolebindings']) {
      for (const binding of this.#read(plural)) addBinding(index, rules, binding, turn++);
    }
    return index;
  }

  #read(plural: string): JsonObject[] {
    const served = findServed(GROUP, 'v1', plural);
    if (served === undefined) return [];
    const { start, end } = rangeOf(served, '');
    const found: JsonObject[] = [];
    this.#world.storage.page(start, end, 0, (row) => {
      found.push(decodeRow(served, row, row.modRevision));
      return true;
    });
    return found;
  }
}

/** In the order of the bindings, those of the whole cluster first. */
function inTurn(granted: readonly Granted[]): Granted[] {
  return granted.toSorted((left, right) => left.turn - right.turn);
}

function addBinding(
  index: Map<string, Granted[]>,
  rules: ReadonlyMap<string, PolicyRule[]>,
  binding: JsonObject,
  turn: number,
): void {
  const namespace = stringAt(binding, 'metadata', 'namespace');
  const isCluster = stringAt(binding, 'roleRef', 'kind') === 'ClusterRole';
  const name = stringAt(binding, 'roleRef', 'name');
  const found = rules.get(isCluster ? `/${name}` : `${namespace}/${name}`);
  const plural = isCluster ? 'clusterrole' : 'role';
  const missing = found === undefined ? `${plural}.${GROUP} ${JSON.stringify(name)}` : '';
  const own = stringAt(binding, 'metadata', 'name');
  const head =
    namespace === ''
      ? `ClusterRoleBinding ${JSON.stringify(own)}`
      : `RoleBinding ${JSON.stringify(`${own}/${namespace}`)}`;
  const what = `${head} of ${isCluster ? 'ClusterRole' : 'Role'} ${JSON.stringify(name)}`;
  for (const subject of listAt(binding, 'subjects')) {
    const kind = stringAt(subject, 'kind');
    const named = stringAt(subject, 'name');
    const key =
      kind === 'ServiceAccount'
        ? `ServiceAccount ${stringAt(subject, 'namespace') || namespace}/${named}`
        : `${kind} ${named}`;
    const reason = `RBAC: allowed by ${what} to ${subjectText(subject, namespace)}`;
    const granted = { namespace, rules: found ?? [], missing, role: name, reason, turn };
    const list = index.get(key);
    if (list === undefined) index.set(key, [granted]);
    else list.push(granted);
  }
}

function subjectText(subject: JsonValue, bindingNamespace: string): string {
  const kind = stringAt(subject, 'kind');
  const name = stringAt(subject, 'name');
  if (kind !== 'ServiceAccount') return `${kind} ${JSON.stringify(name)}`;
  const namespace = stringAt(subject, 'namespace') || bindingNamespace;
  return `${kind} ${JSON.stringify(`${name}/${namespace}`)}`;
}

/** A rule as roles write it. */
export function parseRule(rule: JsonValue): PolicyRule {
  const texts = (field: string): string[] =>
    listAt(rule, field).filter((one) => typeof one === 'string');
  return {
    verbs: texts('verbs'),
    groups: texts('apiGroups'),
    resources: texts('resources'),
    names: texts('resourceNames'),
    paths: texts('nonResourceURLs'),
  };
}

function ruleAllows(rule: PolicyRule, what: Attributes, namespace: string): boolean {
  if (!rule.verbs.includes('*') && !rule.verbs.includes(what.verb)) return false;
  if (!what.isResource) {
    return namespace === '' && rule.paths.some((path) => matchesPath(path, what.path));
  }
  if (!rule.groups.includes('*') && !rule.groups.includes(what.group)) return false;
  if (rule.names.length > 0 && !rule.names.includes(what.name)) return false;
  return rule.resources.some((resource) => coversResource(resource, what));
}

function coversResource(resource: string, what: Attributes): boolean {
  if (resource === '*') return true;
  const full = what.subresource === '' ? what.resource : `${what.resource}/${what.subresource}`;
  if (resource === full) return true;
  return what.subresource !== '' && resource === `*/${what.subresource}`;
}
