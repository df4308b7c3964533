/**
 * Discovery: which groups, versions and resources there are.
 *
 * What is built in never changes and is kept as bytes by all servers together. Custom kinds come
 * and go: the text of each of their groups is kept until one of its kinds changes, and the document
 * of all is put together from these texts when somebody asks. A burst of changes therefore costs
 * one building per reader at most, and where that takes long, fewer.
 */
import { createHash } from 'node:crypto';
import { groups, type Group, type Resource } from '@megaplane/machinery/kinds';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { RemoteService } from '../aggregator/remote-service.ts';
import type { RemoteServices } from '../aggregator/remote-services.ts';
import { compareVersions } from '../apiextensions/definition/definition-facts.ts';
import { customGroupText } from '../apiextensions/schema/discovery-text.ts';
import type { Kinds } from '../apiextensions/schema/kind-registry.ts';
import { AGGREGATED_PARAMETERS, type Document } from './discovery-forms.ts';
import { isGroupServed } from '../storage/served.ts';
import type { RemoteSpec } from '../aggregator/remote-publications.ts';

const AGGREGATED_TYPE: string = `application/json${AGGREGATED_PARAMETERS}`;
const AGGREGATED_OPEN =
  '{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[';
/** A document is as old as this many times what it takes to build it, at most. */
const PATIENCE = 4;
/** And no older than this: clients that made a kind look for it a moment later. */
const STANDS_MS_MAX = 500;

/**
 * Kinds that upstream keeps in v1beta1, and this server in v1: clients tell by the hash of the
 * stored version whether objects have to be migrated.
 */
const STORED_BETA: ReadonlySet<string> = new Set([
  'apiextensions.k8s.io/v1/CustomResourceDefinition',
  'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy',
  'admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding',
]);

/** Priorities of custom groups and of their versions, among those of other servers. */
const CUSTOM_PRIORITY = 1000;
const CUSTOM_VERSION_PRIORITY = 100;

type Remotes = Pick<RemoteServices, 'all' | 'of' | 'onChange'>;

/** Built-in groups as text, the core one and all others: the same in every server. */
const builtin = new Map<boolean, readonly string[]>();

function builtinTexts(isCore: boolean): readonly string[] {
  let texts = builtin.get(isCore);
  if (texts === undefined) {
    const found = groups().filter((group) => (group.name === '') === isCore);
    texts = found.map((group) => JSON.stringify(aggregatedGroup(group)));
    builtin.set(isCore, texts);
  }
  return texts;
}

function documentOf(contentType: string, text: string, hashed: string = text): Document {
  const hash = createHash('sha512').update(hashed).digest('hex').toUpperCase();
  return { contentType, bytes: Buffer.from(text), etag: `"${hash}"` };
}

/** What is kept of a group with custom kinds, for as long as its generation lasts. */
interface KeptGroup {
  readonly generation: number;
  /** Of the aggregated list; '' where nothing is served. */
  readonly text: string;
  readonly hash: string;
  readonly documents: Map<string, Document | null>;
}

/** The documents of one server. */
export class Discovery {
  readonly #kinds: Kinds;
  readonly #address: string;
  readonly #nowMs: () => number;
  readonly #remotes: Remotes;
  readonly #groups = new Map<string, KeptGroup>();
  /** Documents of built-in groups, and of the lists of all. */
  readonly #kept = new Map<string, Document | null>();
  #aggregated: Document | null = null;
  #isStale = true;
  /** What was built stands until then, even where there is news. */
  #standsUntilMs = 0;
  /** How often the document of all groups was put together. */
  built = 0;

  constructor(kinds: Kinds, address: string, nowMs: () => number, remotes: Remotes) {
    this.#kinds = kinds;
    this.#remotes = remotes;
    this.#address = address;
    this.#nowMs = nowMs;
    kinds.onChange((group) => this.#forget(group));
    remotes.onChange((group) => this.#forget(group));
  }

  #forget(group: string): void {
    this.#isStale = true;
    this.#groups.delete(group);
    this.#kept.clear();
  }
  /**
   * Groups that are not built in, in the order of discovery: by the alphabet, but for those of
   * other servers that want to come before or after all custom ones.
   */
  #moreGroups(): string[] {
    const custom = this.#kinds.customGroups();
    const known = new Set(custom);
    const before: RemoteSpec[] = [];
    const among: string[] = [];
    const after: RemoteSpec[] = [];
    for (const { spec } of this.#remotes.all()) {
      if (known.has(spec.group) || isGroupServed(spec.group)) continue;
      known.add(spec.group);
      if (spec.groupPriority === CUSTOM_PRIORITY) among.push(spec.group);
      else (spec.groupPriority > CUSTOM_PRIORITY ? before : after).push(spec);
    }
    const names = (specs: RemoteSpec[]): string[] =>
      specs
        .sort(
          (one, other) =>
            other.groupPriority - one.groupPriority || (one.group < other.group ? -1 : 1),
        )
        .map(({ group }) => group);
    const middle = among.length === 0 ? custom : [...custom, ...among].sort();
    return [...names(before), ...middle, ...names(after)];
  }

  /** A group of this server with what others serve of it, names and versions only. */
  #wholeGroup(name: string): Group | undefined {
    const own = this.#kinds.group(name);
    const remotes = this.#remotes.of(name);
    if (remotes.length === 0) return own;
    const more = remotes.map(({ spec }) => ({ version: spec.version, resources: [] }));
    return { name, versions: this.#inOrder(remotes, [...(own?.versions ?? []), ...more]) };
  }

  #inOrder<Version extends { readonly version: string }>(
    remotes: readonly RemoteService[],
    versions: readonly Version[],
  ): Version[] {
    const priorities = new Map(remotes.map(({ spec }) => [spec.version, spec.versionPriority]));
    const priority = ({ version }: Version): number =>
      priorities.get(version) ?? CUSTOM_VERSION_PRIORITY;
    return versions.toSorted(
      (one, other) =>
        priority(other) - priority(one) || compareVersions(one.version, other.version),
    );
  }

  /** The aggregated list of the core group (`/api`) or of all others (`/apis`). */
  aggregated(isCore: boolean): Document {
    if (isCore) {
      const build = (): Document => aggregatedDocument(builtinTexts(true));
      return this.#keep('core', build) ?? build();
    }
    this.#kinds.catchUp();
    const startMs = this.#nowMs();
    const kept = this.#aggregated;
    if (kept !== null && (!this.#isStale || startMs < this.#standsUntilMs)) return kept;
    const built = this.#build();
    const endMs = this.#nowMs();
    this.#standsUntilMs = endMs + Math.min(STANDS_MS_MAX, PATIENCE * (endMs - startMs));
    this.#isStale = false;
    this.#aggregated = built;
    this.built++;
    return built;
  }

  #build(): Document {
    const texts: string[] = [];
    const hashes: string[] = [];
    const custom = this.#moreGroups();
    const mixed = new Set([...custom, ...this.#mixedGroups()]);
    for (const [index, group] of groups()
      .filter(({ name }) => name !== '')
      .entries()) {
      const own = mixed.delete(group.name) ? this.#group(group.name).text : '';
      const text = own === '' ? (builtinTexts(false)[index] ?? '') : own;
      texts.push(text);
      hashes.push(text);
    }
    for (const name of custom) {
      if (!mixed.has(name)) continue;
      const { text, hash } = this.#group(name);
      if (text === '') continue;
      texts.push(text);
      hashes.push(hash);
    }
    return aggregatedDocument(texts, hashes);
  }

  #group(name: string): KeptGroup {
    const generation = this.#kinds.generationOf(name);
    const kept = this.#groups.get(name);
    if (kept?.generation === generation) return kept;
    const text = this.#textOf(name);
    const hash = createHash('sha512').update(text).digest('base64');
    const made: KeptGroup = { generation, text, hash, documents: new Map() };
    this.#groups.set(name, made);
    return made;
  }

  #textOf(name: string): string {
    const remotes = this.#remotes.of(name);
    if (remotes.length === 0 && !isGroupServed(name)) return customGroupText(this.#kinds, name);
    const group = this.#kinds.group(name);
    if (remotes.length === 0) {
      return group === undefined ? '' : JSON.stringify(aggregatedGroup(group));
    }
    const own = group === undefined ? [] : aggregatedVersions(group);
    const versions = this.#inOrder(remotes, [...own, ...remotes.map(remoteVersion)]);
    return JSON.stringify({ metadata: { name }, versions });
  }

  /** Built-in groups of which others serve a version. */
  #mixedGroups(): string[] {
    const names: string[] = [];
    for (const { spec } of this.#remotes.all()) {
      if (isGroupServed(spec.group)) names.push(spec.group);
    }
    return names;
  }

  #keep(name: string, build: () => Document | null): Document | null {
    let document = this.#kept.get(name);
    if (document === undefined) this.#kept.set(name, (document = build()));
    return document;
  }

  /** `/api`: the versions of the core group. */
  coreVersions(): Document {
    return plain({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: this.#address }],
    });
  }

  /** `/apis`: all groups but the core one. */
  groupList(): Document {
    this.#kinds.catchUp();
    const build = (): Document =>
      plain({
        kind: 'APIGroupList',
        apiVersion: 'v1',
        groups: this.#allGroups().map(legacyGroup),
      });
    return this.#keep('groups', build) ?? build();
  }

  #allGroups(): Group[] {
    const own = groups().filter((group) => group.name !== '');
    const names = new Set(own.map(({ name }) => name));
    const custom = this.#kinds.customGroups();
    const more = this.#moreGroups()
      .filter((name) => !names.has(name))
      // only names and versions are looked at
      .map((name) => ({
        name,
        versions: this.#kinds.versionsOf(name).map((version) => ({ version, resources: [] })),
      }))
      .map((group) => (this.#remotes.of(group.name).length > 0 ? this.#whole(group) : group))
      .filter(({ versions }) => versions.length > 0)
      .map((group) => ({ group, ...this.#firstService(group) }))
      .sort((one, other) => other.priority - one.priority || (one.name < other.name ? -1 : 1))
      .map(({ group }) => group);
    const mixed = new Set([...custom.filter((name) => names.has(name)), ...this.#mixedGroups()]);
    const all = own.map((group) => (mixed.has(group.name) ? this.#whole(group) : group));
    return [...all, ...more];
  }

  /** The APIService that decides where the list has a group: they are listed by these names. */
  #firstService({ name: group, versions }: Group): { priority: number; name: string } {
    const remotes = this.#remotes.of(group).map(({ spec }) => spec.groupPriority);
    const priority = Math.max(...(remotes.length > 0 ? remotes : [CUSTOM_PRIORITY]));
    const names = versions.map(({ version }) => `${version}.${group}`);
    return { priority, name: names.sort()[0] ?? '' };
  }

  #whole(group: Group): Group {
    return this.#wholeGroup(group.name) ?? group;
  }

  /** `/apis/{group}`; null where there is no such group. */
  groupDocument(name: string): Document | null {
    return this.#ofGroup(name, '', (group) => {
      return name === '' ? null : { kind: 'APIGroup', apiVersion: 'v1', ...legacyGroup(group) };
    });
  }

  /** `/api/v1` and `/apis/{group}/{version}`; null where there is no such version. */
  resourceList(groupName: string, version: string): Document | null {
    return this.#ofGroup(groupName, version, (group) => {
      const found = group.versions.find((one) => one.version === version);
      const isHidden = isGroupServed(groupName) && !isGroupServed(groupName, version);
      if (found === undefined || isHidden) return null;
      const groupVersion = groupName === '' ? version : `${groupName}/${version}`;
      return {
        kind: 'APIResourceList',
        ...(groupName === '' ? {} : { apiVersion: 'v1' }),
        groupVersion,
        resources: found.resources.flatMap(legacyResource),
      };
    });
  }

  #ofGroup(
    name: string,
    version: string,
    build: (group: Group) => JsonObject | null,
  ): Document | null {
    this.#kinds.catchUp();
    const isCustom = this.#kinds.generationOf(name) > 0;
    const documents = isCustom ? this.#group(name).documents : this.#kept;
    const key = isCustom ? version : `group ${name} ${version}`;
    const kept = documents.get(key);
    if (kept !== undefined) return kept;
    const group = this.#wholeGroup(name);
    const object = group === undefined ? null : build(group);
    if (object === null) return null;
    const document = plain(object);
    documents.set(key, document);
    return document;
  }

  /** Every path that `GET /` lists; `health` are those of checks. */
  rootPaths(health: readonly string[]): string[] {
    const paths = new Set<string>(['/.well-known/openid-configuration', '/api', '/apis', '/apis/']);
    const core = groups().filter((group) => group.name === '');
    for (const group of [...core, ...this.#allGroups()]) {
      const base = group.name === '' ? '/api' : `/apis/${group.name}`;
      paths.add(base);
      for (const { version } of group.versions) paths.add(`${base}/${version}`);
    }
    for (const path of [...health, ...PLAIN_PATHS]) paths.add(path);
    paths.add('/openapi/v2').add('/openapi/v3').add('/openapi/v3/');
    return [...paths].sort();
  }
}

/** What is served that is neither of resources nor of their documents. */
const PLAIN_PATHS = [
  '/flagz',
  '/metrics',
  '/metrics/slis',
  '/openid/v1/jwks',
  '/statusz',
  '/version',
] as const;

function aggregatedDocument(groups: readonly string[], hashes?: readonly string[]): Document {
  const text = `${AGGREGATED_OPEN}${groups.join()}]}\n`;
  return { ...documentOf(AGGREGATED_TYPE, text, hashes?.join()), groups };
}

function plain(object: JsonObject): Document {
  return documentOf('application/json', `${JSON.stringify(object)}\n`);
}

function aggregatedGroup(group: Group): JsonObject {
  return {
    metadata: group.name === '' ? {} : { name: group.name },
    versions: aggregatedVersions(group),
  };
}

type AggregatedVersion = JsonObject & { readonly version: string };

function aggregatedVersions(group: Group): AggregatedVersion[] {
  return group.versions.map(({ version, resources }) => ({
    version,
    resources: resources.map(aggregatedResource),
    freshness: 'Current',
  }));
}

/** What another server has; where that is not known, that it is stale is all that is told. */
function remoteVersion({ spec, resources, availability }: RemoteService): AggregatedVersion {
  const { version } = spec;
  if (!availability.isAvailable || resources === null) return { version, freshness: 'Stale' };
  const found = resources.length > 0 ? { resources: [...resources] } : {};
  return { version, ...found, freshness: 'Current' };
}

function aggregatedResource(resource: Resource): JsonObject {
  const isCustom = resource.id < 0;
  const { group, version, kind } = resource;
  const subresources: JsonValue[] = [];
  for (const one of resource.subresources.values()) {
    const isOwn = !isCustom && one.group === group && one.version === version;
    subresources.push({
      subresource: one.name,
      responseKind: {
        group: isOwn ? '' : one.group,
        version: isOwn ? '' : one.version,
        kind: one.kind,
      },
      verbs: [...one.verbs],
    });
  }
  return {
    resource: resource.resource,
    responseKind: isCustom ? { group, version, kind } : { group: '', version: '', kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singular,
    verbs: [...resource.verbs],
    ...(resource.shortNames.length > 0 ? { shortNames: [...resource.shortNames] } : {}),
    ...(resource.categories.length > 0 ? { categories: [...resource.categories] } : {}),
    ...(subresources.length > 0 ? { subresources } : {}),
  };
}

function legacyGroup(group: Group): JsonObject {
  const versions = group.versions.map(({ version }) => ({
    groupVersion: `${group.name}/${version}`,
    version,
  }));
  return { name: group.name, versions, preferredVersion: versions[0] ?? null };
}

function legacyResource(resource: Resource): JsonObject[] {
  const { namespaced } = resource;
  const kept = `${resource.storage.apiVersion}/${resource.kind}`.replace(/^v1\//, '/v1/');
  const storedAs = STORED_BETA.has(kept) ? kept.replace('/v1/', '/v1beta1/') : kept;
  const hash = createHash('sha256').update(storedAs).digest().subarray(0, 8).toString('base64');
  const entries: JsonObject[] = [
    {
      name: resource.resource,
      singularName: resource.singular,
      namespaced,
      kind: resource.kind,
      verbs: [...resource.verbs],
      ...(resource.shortNames.length > 0 ? { shortNames: [...resource.shortNames] } : {}),
      ...(resource.categories.length > 0 ? { categories: [...resource.categories] } : {}),
      ...(resource.verbs.includes('delete') ? { storageVersionHash: hash } : {}),
    },
  ];
  for (const one of resource.subresources.values()) {
    const isOwn = one.group === resource.group && one.version === resource.version;
    entries.push({
      name: `${resource.resource}/${one.name}`,
      singularName: '',
      namespaced,
      ...(isOwn ? {} : { group: one.group, version: one.version }),
      kind: one.kind,
      verbs: [...one.verbs],
    });
  }
  return entries;
}
