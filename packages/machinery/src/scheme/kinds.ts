import { RESOURCES } from './tables/resources.ts';

/**
 * What a subresource reads or takes: `pods/binding` takes a `Binding`, `deployments/scale` a
 * `Scale`.
 */
export interface Subresource {
  readonly name: string;
  /** As discovery lists them, sorted. Subresources that connect list `create` and `get`. */
  readonly verbs: readonly string[];
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** One set of objects, whatever versions it is served as. */
export interface ResourceStorage {
  /** Dense from 0: an index for columns. */
  readonly id: number;
  /**
   * `resource` or `resource.group`, as error texts and RBAC name it: `pods`, `deployments.apps`.
   */
  readonly name: string;
  /** With both slashes: `/registry/minions/`; what follows is `[namespace/]name`. */
  readonly prefix: string;
  /** The apiVersion and kind that stored bytes carry. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /**
   * Every resource served from here, in discovery order; more than one for events and autoscalers.
   */
  readonly resources: readonly Resource[];
}

/** A built-in resource in one group and version. */
export interface Resource {
  /** Dense from 0, in discovery order. */
  readonly id: number;
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  /** `version`, or `group/version`. */
  readonly apiVersion: string;
  /** The plural of URLs. */
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** As discovery lists them, sorted. */
  readonly verbs: readonly string[];
  readonly subresources: ReadonlyMap<string, Subresource>;
  /** Served unless told otherwise: GA versions are, alpha and beta ones are not. */
  readonly served: boolean;
  /** A PUT to a missing name creates it. */
  readonly createdByPut: boolean;
  /** A PUT without a resourceVersion is refused. */
  readonly conditionalUpdate: boolean;
  readonly storage: ResourceStorage;
}

/** A group with its versions in the order that discovery prefers. */
export interface Group {
  readonly name: string;
  readonly versions: readonly {
    readonly version: string;
    readonly resources: readonly Resource[];
  }[];
}

const MUTABLE_VERBS: readonly string[] = ['create', 'update', 'get', 'delete'];

interface Entry extends Resource {
  served: boolean;
}

const all: Entry[] = [];
/** By plural and by kind: few groups have the same, and no key is put together for a look. */
const byPlural = new Map<string, Entry[]>();
const byKind = new Map<string, Entry[]>();
const storages = new Map<string, ResourceStorage & { readonly resources: Resource[] }>();

function list(text: string): readonly string[] {
  return text === '' ? [] : text.split(',');
}

function listed(entries: Map<string, Entry[]>, name: string): Entry[] {
  let found = entries.get(name);
  if (found === undefined) entries.set(name, (found = []));
  return found;
}

function parseSubresources(text: string): ReadonlyMap<string, Subresource> {
  const found = new Map<string, Subresource>();
  if (text === '') return found;
  for (const part of text.split(';')) {
    const [name = '', reference = '', verbs = ''] = part.split('=');
    const [group = '', version = '', kind = ''] = reference.split('/');
    found.set(name, { name, verbs: list(verbs), group, version, kind });
  }
  return found;
}

for (const line of RESOURCES.split('\n')) {
  const [
    group = '',
    version = '',
    resource = '',
    kind = '',
    flags = '',
    shortNames = '',
    categories = '',
    verbs = '',
    subresources = '',
    path = '',
    storedVersion = '',
    storedAs = '',
  ] = line.split('|');
  const namespaced = flags.includes('n');
  let storage = storages.get(storedAs);
  if (storage === undefined) {
    const dot = storedAs.indexOf('.');
    const storedGroup = dot < 0 ? '' : storedAs.slice(dot + 1);
    storage = {
      id: storages.size,
      name: storedAs,
      prefix: `/registry/${path}/`,
      apiVersion: apiVersionOf(storedGroup, storedVersion),
      kind,
      namespaced,
      resources: [],
    };
    storages.set(storedAs, storage);
  }
  const entry: Entry = {
    id: all.length,
    group,
    version,
    apiVersion: apiVersionOf(group, version),
    resource,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    namespaced,
    shortNames: list(shortNames),
    categories: list(categories),
    verbs: list(verbs),
    subresources: parseSubresources(subresources),
    served: flags.includes('s'),
    createdByPut: flags.includes('c'),
    conditionalUpdate: flags.includes('u'),
    storage,
  };
  storage.resources.push(entry);
  all.push(entry);
  listed(byPlural, resource).unshift(entry);
  listed(byKind, kind).unshift(entry);
}

/** `v1` for the core group, else `group/version`. */
export function apiVersionOf(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The parts of an apiVersion; `v1` is the core group's. More than one slash gives undefined. */
export function groupVersionOf(
  apiVersion: string,
): { readonly group: string; readonly version: string } | undefined {
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return { group: '', version: apiVersion };
  if (apiVersion.includes('/', slash + 1)) return undefined;
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/**
 * What an object says of its version, filled from what is expected: all of it where nothing is
 * said, the version where only the group is (`apps/`).
 */
export function filledVersion(said: string, expected: string): string {
  const isEmpty = said === '' || said === '/';
  const isGroup = said.endsWith('/') && expected.startsWith(said);
  return isEmpty || isGroup ? expected : said;
}

/** Every built-in resource, served by default or not, in discovery order. */
export function resources(): readonly Resource[] {
  return all;
}

/** Has a resource of a version served, or not, in this process; before anything is. */
export function serveResource(apiVersion: string, resource: string, isServed: boolean): void {
  const entry = byPlural.get(resource)?.find((one) => one.apiVersion === apiVersion);
  if (entry !== undefined) entry.served = isServed;
}

/** By what a URL names: group ('' for `/api`), version, plural. */
export function findResource(
  group: string,
  version: string,
  resource: string,
): Resource | undefined {
  return byPlural.get(resource)?.find((one) => one.group === group && one.version === version);
}

/** By what an object says of itself. */
export function findKind(apiVersion: string, kind: string): Resource | undefined {
  return byKind.get(kind)?.find((one) => one.apiVersion === apiVersion);
}

/**
 * Every set of stored objects; `id` is the index. Review kinds, which are never stored, are among
 * them.
 */
export function allStorages(): readonly ResourceStorage[] {
  return [...storages.values()];
}

/** By `resource` or `resource.group`. */
export function findStorage(name: string): ResourceStorage | undefined {
  return storages.get(name);
}

/** True for resources that live in storage; false for reviews, bindings and component statuses. */
export function isStored(resource: Resource): boolean {
  return MUTABLE_VERBS.every((verb) => resource.verbs.includes(verb));
}

const LAST = 'flowcontrol.apiserver.k8s.io';

/**
 * Groups and versions in discovery order: by group priority, then versions GA first, higher numbers
 * first. `isServed` chooses; a version without resources, and a group without versions, is left
 * out. /
 */
export function groups(isServed: (resource: Resource) => boolean = (r) => r.served): Group[] {
  const found = new Map<string, Map<string, Resource[]>>();
  for (const resource of all) {
    if (!isServed(resource)) continue;
    let versions = found.get(resource.group);
    if (versions === undefined) found.set(resource.group, (versions = new Map()));
    const same = versions.get(resource.version);
    if (same === undefined) versions.set(resource.version, [resource]);
    else same.push(resource);
  }
  // Discovery tells groups by priority, and this one has the lowest.
  const ordered = [...found].sort(
    ([one], [other]) => Number(one === LAST) - Number(other === LAST),
  );
  return ordered.map(([name, versions]) => ({
    name,
    versions: [...versions].map(([version, members]) => ({ version, resources: members })),
  }));
}
