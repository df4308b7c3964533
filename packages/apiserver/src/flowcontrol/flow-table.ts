/**
 * Which flow schema a request belongs to: the first, by precedence and then by name, that has a
 * rule with one of its subjects and one of its paths or resources (`flowcontrol.apiserver.k8s.io`).
 */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Identity } from '../request/identity.ts';
import type { RequestInfo } from '../request/request-info.ts';

const ANY = '*';
const SERVICE_ACCOUNT = 'system:serviceaccount:';

type SubjectMatch = (identity: Identity) => boolean;
type RequestMatch = (info: RequestInfo, verb: string) => boolean;

interface Rule {
  readonly subjects: readonly SubjectMatch[];
  readonly resources: readonly RequestMatch[];
  readonly paths: readonly RequestMatch[];
}

/** One schema in the form that decides quickly. */
export interface FlowSchema {
  readonly name: string;
  readonly uid: string;
  readonly precedence: number;
  /** Name of its priority level. */
  readonly level: string;
  readonly distinguisher: 'ByUser' | 'ByNamespace' | '';
  readonly rules: readonly Rule[];
}

/** Reads a FlowSchema object; its form has been validated. */
export function readFlowSchema(object: JsonObject): FlowSchema {
  const method = stringAt(object, 'spec', 'distinguisherMethod', 'type');
  return {
    name: stringAt(object, 'metadata', 'name'),
    uid: stringAt(object, 'metadata', 'uid'),
    precedence: numberAt(object, 'spec', 'matchingPrecedence'),
    level: stringAt(object, 'spec', 'priorityLevelConfiguration', 'name'),
    distinguisher: method === 'ByUser' || method === 'ByNamespace' ? method : '',
    rules: objects(object, 'spec', 'rules').map((rule) => ({
      subjects: objects(rule, 'subjects').map(readSubject),
      resources: objects(rule, 'resourceRules').map(readResourceRule),
      paths: objects(rule, 'nonResourceRules').map(readPathRule),
    })),
  };
}

function objects(owner: JsonObject, ...path: string[]): JsonObject[] {
  return listAt(owner, ...path).filter(isObject);
}

function texts(owner: JsonObject, field: string): ReadonlySet<JsonValue> {
  return new Set(listAt(owner, field));
}

function readSubject(subject: JsonObject): SubjectMatch {
  const user = objectAt(subject, 'user');
  const group = objectAt(subject, 'group');
  const account = objectAt(subject, 'serviceAccount');
  const kind = stringAt(subject, 'kind');
  if (kind === 'User' && user !== undefined) {
    const name = stringAt(user, 'name');
    return (identity) => name === ANY || identity.user === name;
  }
  if (kind === 'Group' && group !== undefined) {
    const name = stringAt(group, 'name');
    return (identity) => name === ANY || identity.groups.includes(name);
  }
  if (kind === 'ServiceAccount' && account !== undefined) {
    const start = `${SERVICE_ACCOUNT}${stringAt(account, 'namespace')}:`;
    const name = stringAt(account, 'name');
    if (name === ANY) return (identity) => identity.user.startsWith(start);
    return (identity) => identity.user === start + name;
  }
  return () => false;
}

function readResourceRule(rule: JsonObject): RequestMatch {
  const [verbs, groups] = [texts(rule, 'verbs'), texts(rule, 'apiGroups')];
  const [resources, namespaces] = [texts(rule, 'resources'), texts(rule, 'namespaces')];
  const isCluster = rule['clusterScope'] === true;
  const has = (set: ReadonlySet<JsonValue>, value: string): boolean =>
    set.has(ANY) || set.has(value);
  return (info, verb) => {
    if (!has(verbs, verb) || !has(groups, info.group)) return false;
    const { resource, subresource } = info;
    if (!has(resources, subresource === '' ? resource : `${resource}/${subresource}`)) return false;
    return info.namespace === '' ? isCluster : has(namespaces, info.namespace);
  };
}

function readPathRule(rule: JsonObject): RequestMatch {
  const verbs = texts(rule, 'verbs');
  const urls = listAt(rule, 'nonResourceURLs').filter((url) => typeof url === 'string');
  return ({ path }, verb) => {
    if (!verbs.has(ANY) && !verbs.has(verb)) return false;
    // as upstream has it, `/healthz` stands for all below it, too
    return urls.some((url) => {
      if (url === ANY || url === path) return true;
      const stem = url.endsWith(ANY) ? url.slice(0, -1) : url;
      return path.startsWith(stem.endsWith('/') ? stem : `${stem}/`);
    });
  };
}

/** A rule whose subjects a certain identity is among. */
interface Candidate {
  readonly schema: FlowSchema;
  readonly rule: Rule;
}

export class FlowTable {
  readonly schemas: readonly FlowSchema[];
  /** The last resort, where not even the schema for all matches. */
  readonly #fallback: FlowSchema;
  /** Identities live as long as their connections: what they may match is found once. */
  readonly #candidates = new WeakMap<Identity, readonly Candidate[]>();

  constructor(schemas: readonly FlowSchema[], fallback: FlowSchema) {
    this.schemas = schemas.toSorted(
      (a, b) => a.precedence - b.precedence || (a.name < b.name ? -1 : 1),
    );
    this.#fallback = fallback;
  }

  /** The schema of a request; `verb` as authorizers see it. */
  match(identity: Identity, info: RequestInfo, verb: string): FlowSchema {
    for (const { schema, rule } of this.#candidatesOf(identity)) {
      const matches = info.isResource ? rule.resources : rule.paths;
      for (const one of matches) if (one(info, verb)) return schema;
    }
    return this.#fallback;
  }

  #candidatesOf(identity: Identity): readonly Candidate[] {
    let found = this.#candidates.get(identity);
    if (found !== undefined) return found;
    found = this.schemas.flatMap((schema) =>
      schema.rules
        .filter((rule) => rule.subjects.some((matches) => matches(identity)))
        .map((rule) => ({ schema, rule })),
    );
    this.#candidates.set(identity, found);
    return found;
  }
}

/** What tells the flows of one schema apart. */
export function distinguish(schema: FlowSchema, identity: Identity, namespace: string): string {
  if (schema.distinguisher === 'ByUser') return identity.user;
  return schema.distinguisher === 'ByNamespace' ? namespace : '';
}
