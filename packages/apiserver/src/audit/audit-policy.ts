/** `--audit-policy-file`: what of which requests is written down (audit.k8s.io/v1 Policy). */
import { listAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Call } from '../request/call.ts';
import type { Identity } from '../request/identity.ts';
import { effectiveName, effectiveVerb } from '../request/request-terms.ts';

export const LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
export type Level = (typeof LEVELS)[number];
export const STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;
export type Stage = (typeof STAGES)[number];

interface Resources {
  readonly group: string;
  readonly resources: readonly string[];
  readonly names: readonly string[];
}

interface Rule {
  readonly level: Level;
  readonly users: readonly string[];
  readonly groups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly Resources[];
  readonly namespaces: readonly string[];
  readonly paths: readonly string[];
  readonly omitted: ReadonlySet<Stage>;
  readonly omitsManagedFields: boolean;
}

/** What the first rule that matches a request says. */
export interface Verdict {
  readonly level: Level;
  readonly omitted: ReadonlySet<Stage>;
  readonly omitsManagedFields: boolean;
}

const UNSAID: Verdict = { level: 'None', omitted: new Set(), omitsManagedFields: false };

export class AuditPolicy {
  readonly #rules: readonly Rule[];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  /** For one request of `user` (null: nobody knows of whom); where no rule matches, nothing. */
  judge(call: Call, user: Identity | null): Verdict {
    return this.#rules.find((rule) => matches(rule, call, user)) ?? UNSAID;
  }
}

/** Reads a policy. Throws an Error that names the field. */
export function readPolicy(value: JsonValue | undefined): AuditPolicy {
  if (!isObject(value)) throw new Error('the file holds no object');
  const [version, kind] = [stringAt(value, 'apiVersion'), stringAt(value, 'kind')];
  if (version !== 'audit.k8s.io/v1' || kind !== 'Policy') {
    throw new Error(`it is of ${version}, ${kind}, not of audit.k8s.io/v1, Policy`);
  }
  const common = stagesOf(value, 'omitStages');
  const omits = value['omitManagedFields'] === true;
  const rules = listAt(value, 'rules');
  if (rules.length === 0) throw new Error('rules: at least one is needed');
  return new AuditPolicy(
    rules.map((rule, index) => readRule(rule, `rules[${index}]`, common, omits)),
  );
}

function readRule(value: JsonValue, path: string, common: readonly Stage[], omits: boolean): Rule {
  if (!isObject(value)) throw new Error(`${path}: must be an object`);
  const level = LEVELS.find((one) => one === value['level']);
  if (level === undefined) {
    throw new Error(`${path}.level: one of ${LEVELS.join(', ')} is needed`);
  }
  const paths = texts(value, 'nonResourceURLs');
  for (const one of paths) {
    const isShaped = one === '*' || (one.startsWith('/') && !one.slice(0, -1).includes('*'));
    if (!isShaped) throw new Error(`${path}.nonResourceURLs: ${one} is no path such as /healthz*`);
  }
  const resources = listAt(value, 'resources').map((one) => ({
    group: stringAt(one, 'group'),
    resources: texts(one, 'resources'),
    names: texts(one, 'resourceNames'),
  }));
  if (paths.length > 0 && (resources.length > 0 || texts(value, 'namespaces').length > 0)) {
    throw new Error(`${path}: a rule is for resources or for nonResourceURLs, not for both`);
  }
  const own = value['omitManagedFields'];
  return {
    level,
    users: texts(value, 'users'),
    groups: texts(value, 'userGroups'),
    verbs: texts(value, 'verbs'),
    resources,
    namespaces: texts(value, 'namespaces'),
    paths,
    omitted: new Set([...common, ...stagesOf(value, 'omitStages', path)]),
    omitsManagedFields: typeof own === 'boolean' ? own : omits,
  };
}

function texts(value: JsonValue, name: string): readonly string[] {
  return listAt(value, name).filter((one): one is string => typeof one === 'string');
}

function stagesOf(value: JsonObject, name: string, path = ''): readonly Stage[] {
  return texts(value, name).map((text) => {
    const stage = STAGES.find((one) => one === text);
    if (stage !== undefined) return stage;
    throw new Error(`${path === '' ? '' : `${path}.`}${name}: ${text} is no stage`);
  });
}

function matches(rule: Rule, call: Call, identity: Identity | null): boolean {
  const user = identity?.user ?? null;
  const groups = identity?.groups ?? [];
  if (rule.users.length > 0 && (user === null || !rule.users.includes(user))) return false;
  if (rule.groups.length > 0 && !rule.groups.some((one) => groups.includes(one))) return false;
  if (rule.verbs.length > 0 && !rule.verbs.includes(effectiveVerb(call))) return false;
  if (rule.resources.length > 0 || rule.namespaces.length > 0) return matchesResource(rule, call);
  if (rule.paths.length === 0) return true;
  return !call.info.isResource && rule.paths.some((path) => matchesPath(path, call.info.path));
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true;
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1));
}

function matchesResource(rule: Rule, call: Call): boolean {
  const { info } = call;
  if (!info.isResource) return false;
  if (rule.namespaces.length > 0 && !rule.namespaces.includes(info.namespace)) return false;
  if (rule.resources.length === 0) return true;
  const { resource, subresource } = info;
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  return rule.resources.some((one) => {
    if (one.group !== info.group && one.group !== '*') return false;
    if (one.resources.length === 0) return true;
    if (one.names.length > 0 && !one.names.includes(effectiveName(call))) return false;
    return one.resources.some(
      (name) =>
        name === whole ||
        name === '*' ||
        (subresource !== '' && name === `*/${subresource}`) ||
        name === `${resource}/*`,
    );
  });
}
