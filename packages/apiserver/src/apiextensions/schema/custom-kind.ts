/** A kind that a CustomResourceDefinition made, as the registry and the request path know it. */
import { headOf } from '@megaplane/machinery/canonical';
import type { Resource, ResourceStorage, Subresource } from '@megaplane/machinery/kinds';
import type { CustomKindOf, SchemaOwner, Served } from '../../storage/served.ts';
import type { CustomSchemas } from './custom-schemas.ts';
import type { DefinitionFacts, VersionFacts } from '../definition/definition-facts.ts';

/** Versions that are looked through: ten thousand definitions need no map each. */
const SEARCHED_MAX = 8;

const VERBS: readonly string[] = [
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'create',
  'update',
  'watch',
];
/** While the definition ends, nothing new comes into being. */
const ENDING_VERBS: readonly string[] = ['delete', 'deletecollection', 'get', 'list', 'watch'];
const PART_VERBS: readonly string[] = ['get', 'patch', 'update'];
const NO_SUBRESOURCES: ReadonlyMap<string, Subresource> = new Map();

/** Immutable: a change of the definition makes another one. */
export class CustomKind implements CustomKindOf {
  readonly facts: DefinitionFacts;
  /** Revision of the definition. */
  readonly revision: number;
  /**
   * Since when objects are read as they are: whoever watches from before has them in another form,
   * and has to list them anew. 0 where they have revisions of another storage.
   */
  readonly readSince: number;
  readonly prefix: string;
  readonly #schemas: CustomSchemas;
  readonly #formedSince: ReadonlyMap<string, number> | null;
  #served: Map<string, Served> | null = null;
  #byName: ReadonlyMap<string, VersionFacts> | null = null;

  /**
   * `readSince`: see there. `formedSince` has, by version, since when the schema is as it is;
   * absent: since this revision.
   */
  constructor(
    facts: DefinitionFacts,
    revision: number,
    schemas: CustomSchemas,
    readSince: number,
    formedSince: ReadonlyMap<string, number> | null = null,
  ) {
    this.facts = facts;
    this.revision = revision;
    this.readSince = readSince;
    this.prefix = `/registry/${facts.group}/${facts.plural}/`;
    this.#schemas = schemas;
    this.#formedSince = formedSince;
  }

  /** Requests reach it: its names are its own, or once were. */
  get isActive(): boolean {
    const { isEstablished, areNamesAccepted } = this.facts.state;
    return isEstablished || areNamesAccepted;
  }

  /** Names of the versions that are served. */
  get versions(): readonly string[] {
    return this.facts.versions.filter((one) => one.isServed).map(({ name }) => name);
  }

  /** True where there is a version of that name, and it is served. */
  serves(version: string): boolean {
    return this.#factsOf(version)?.isServed === true;
  }

  /** Of thousands of versions, each is asked for by name. */
  #factsOf(version: string): VersionFacts | undefined {
    const { versions } = this.facts;
    if (versions.length <= SEARCHED_MAX) return versions.find(({ name }) => name === version);
    this.#byName ??= new Map(versions.map((one) => [one.name, one]));
    return this.#byName.get(version);
  }

  /** Since when objects have the form that the schema of a version gives. */
  formedSince(version: string): number {
    return this.#formedSince?.get(version) ?? this.revision;
  }

  /** Whose schema a version has, served or not; undefined where there is none of that name. */
  schemaOwner(version: string): SchemaOwner | undefined {
    const facts = this.#factsOf(version);
    return facts && { kind: this, facts, schemaSince: this.formedSince(version) };
  }

  /** One version; undefined where there is none of that name, or it is not served. */
  served(version: string): Served | undefined {
    const known = this.#served?.get(version);
    if (known !== undefined) return known;
    const facts = this.#factsOf(version);
    if (facts?.isServed !== true) return undefined;
    const built = this.#build(facts);
    (this.#served ??= new Map()).set(version, built);
    return built;
  }

  /** Every version that is served. */
  all(): Served[] {
    return this.versions.map((version) => this.served(version)).filter((one) => one !== undefined);
  }

  #build(facts: VersionFacts): Served {
    const { group, plural, names, isNamespaced, isConverting, isMixed } = this.facts;
    const isViewed = isConverting && (isMixed || !facts.isStorage);
    const storageVersion = isViewed ? facts.name : this.facts.storageVersion;
    const apiVersion = `${group}/${facts.name}`;
    const schemaSince = this.formedSince(facts.name);
    const storage: ResourceStorage = {
      id: -1,
      name: `${plural}.${group}`,
      prefix: this.prefix,
      apiVersion: `${group}/${storageVersion}`,
      kind: names.kind,
      namespaced: isNamespaced,
      resources: [],
    };
    const resource: Resource = {
      id: -1,
      group,
      version: facts.name,
      apiVersion,
      ...{ resource: plural, singular: names.singular },
      ...{ kind: names.kind, listKind: names.listKind },
      namespaced: isNamespaced,
      ...{ shortNames: names.shortNames, categories: names.categories },
      verbs: verbsOf(this.facts),
      subresources: subresourcesOf(facts, group, names.kind),
      served: true,
      createdByPut: false,
      conditionalUpdate: true,
      storage,
    };
    return {
      resource,
      stored: true,
      isConverted: facts.name !== storageVersion,
      head: headOf(storage.apiVersion, names.kind),
      prefix: this.prefix,
      plural: { group, name: plural },
      kind: { group, name: names.kind },
      counted: true,
      hasStatus: facts.hasStatus,
      custom: {
        kind: this,
        facts,
        shownHead: headOf(apiVersion, names.kind),
        formedSince: isViewed ? 0 : this.facts.areAlike ? schemaSince : Infinity,
        schemaSince,
        isViewed,
        schemas: this.#schemas,
      },
    };
  }
}

/** What may be done with the objects of a definition, in the order that discovery has. */
export function verbsOf({ state }: DefinitionFacts): readonly string[] {
  return state.isTerminating ? ENDING_VERBS : VERBS;
}

/** `status` and `scale`, in that order. */
export function subresourcesOf(
  { name, hasStatus, scale }: VersionFacts,
  group: string,
  kind: string,
): ReadonlyMap<string, Subresource> {
  if (!hasStatus && scale === null) return NO_SUBRESOURCES;
  const found = new Map<string, Subresource>();
  if (hasStatus) {
    found.set('status', { name: 'status', verbs: PART_VERBS, group, version: name, kind });
  }
  if (scale !== null) {
    const scaled = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
    found.set('scale', { name: 'scale', verbs: PART_VERBS, ...scaled });
  }
  return found;
}
