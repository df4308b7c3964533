/**
 * The text of OpenAPI documents in pieces, one resource at a time: definitions are read and left
 * again one by one, so that a document of ten thousand kinds never needs them all at once.
 */
import { putMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  openapiV2Schemas,
  openapiV3Schemas,
  publishedName,
  type PublishedSchemas,
} from '@megaplane/machinery/custom/openapi-form';
import { groups, type Resource } from '@megaplane/machinery/kinds';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import type { CustomKind } from '../apiextensions/schema/custom-kind.ts';
import type { Kinds } from '../apiextensions/schema/kind-registry.ts';
import { LOOKUP_NAMES, lookupPaths, lookupSchemas } from './openapi-discovery.ts';
import { isConnection } from './openapi-names.ts';
import { SharedParameters } from './openapi-parameters.ts';
import { addDiscoveryPath, addPaths } from './openapi-paths.ts';
import { encodeOpenApiV3 } from './openapi-protobuf-3.ts';
import { encodeOpenApiV2 } from './openapi-protobuf.ts';
import { addCommonSchemas, addSchemas, VERSION_3, type Dialect } from './openapi-schemas.ts';
import { tellSharedKinds } from './openapi-shared-kinds.ts';
import { MINOR_VERSION } from '../release.ts';
import type { Served } from '../storage/served.ts';

const INFO: JsonObject = { title: 'Kubernetes', version: MINOR_VERSION };
/** Documents of custom resources have a builder of their own upstream, which says so. */
const CUSTOM_INFO: JsonObject = { title: 'Kubernetes CRD Swagger', version: 'v0.1.0' };
/** How clients say who they are. */
const SCHEMES: JsonObject = {
  BearerToken: {
    type: 'apiKey',
    description: 'Bearer Token authentication',
    name: 'authorization',
    in: 'header',
  },
};

/** A piece of a document; one that is keyed is the same wherever its key is. */
export type Piece = string | Buffer | { readonly key: string; readonly content: string | Buffer };

/** Pieces of the document before, by their keys. */
export type OldPieces = (key: string) => Buffer | undefined;

const NO_PIECES: OldPieces = () => undefined;

/** What one resource, or a group of built-ins, adds to a document. */
export interface Part {
  /** What it is made from, and what its schemas are called; absent where it is cheap. */
  readonly from?: { readonly source: string; readonly names: readonly string[] };
  /** Reads what the schemas are made of, where that is long by itself; comes before `schemas`. */
  readonly read?: () => void;
  readonly paths: () => JsonObject;
  readonly schemas: () => JsonObject;
}

/** Parts of the built-in resources of a document (`api/v1`, `apis/apps/v1`; `v2`: all of them). */
export function* builtinParts(name: string, dialect: Dialect): Iterable<Part> {
  for (const lookup of LOOKUP_NAMES) {
    if (name === 'v2' || lookup === name) yield lookupPart(lookup, dialect);
  }
  for (const group of groups()) {
    const lookup = `apis/${group.name}`;
    if (group.name !== '' && (name === 'v2' || lookup === name)) yield lookupPart(lookup, dialect);
    for (const { version, resources } of group.versions) {
      const own = group.name === '' ? `api/${version}` : `apis/${group.name}/${version}`;
      if (name === 'v2' || own === name) yield builtinPart(resources, dialect);
    }
  }
}

function lookupPart(name: string, dialect: Dialect): Part {
  return { paths: () => lookupPaths(name, dialect), schemas: () => lookupSchemas(name, dialect) };
}

function builtinPart(resources: readonly Resource[], dialect: Dialect): Part {
  return {
    paths: () => {
      const paths: JsonObject = {};
      const [first] = resources;
      if (first !== undefined) addDiscoveryPath(paths, first, dialect);
      for (const resource of resources) addPaths(paths, resource, dialect);
      return paths;
    },
    schemas: () => builtinSchemas(resources, dialect),
  };
}

function builtinSchemas(resources: readonly Resource[], dialect: Dialect): JsonObject {
  const schemas: JsonObject = {};
  addCommonSchemas(schemas, dialect);
  tellSharedKinds(schemas, resources[0] ?? null, dialect);
  for (const resource of resources) {
    const subs = [...resource.subresources.values()].filter((sub) => !isConnection(sub));
    const kinds = [resource, ...subs];
    for (const { group, version, kind } of kinds) {
      addSchemaOf(schemas, group === '' ? version : `${group}/${version}`, kind, dialect);
    }
    addSchemaOf(schemas, resource.apiVersion, resource.listKind, dialect);
  }
  return schemas;
}

function addSchemaOf(
  schemas: JsonObject,
  apiVersion: string,
  kind: string,
  dialect: Dialect,
): void {
  const type = findTypeOfKind(apiVersion, kind);
  if (type !== undefined) addSchemas(schemas, type, dialect);
}

/** Kinds whose parts custom resources refer to: they bring the standard metadata. */
const METADATA_OWNERS: readonly (readonly [string, string])[] = [
  ['v1', 'Namespace'],
  ['v1', 'NamespaceList'],
];

/** Parts of the custom resources of a group and version, or (with null) of all. */
export function* customParts(
  kinds: Kinds,
  only: { readonly group: string; readonly version: string } | null,
  dialect: Dialect,
): Iterable<Part> {
  for (const group of only === null ? kinds.customGroups() : [only.group]) {
    for (const kind of kinds.kindsOf(group)) {
      for (const version of kind.versions) {
        if (only !== null && version !== only.version) continue;
        const served = kind.served(version);
        if (served !== undefined) yield customPart(served, dialect, sourceOf(kind));
      }
    }
  }
}

/** What a document shows of a kind depends on this and on nothing else. */
export function sourceOf({ facts }: CustomKind): string {
  return ` ${facts.uid}/${facts.generation}/${facts.names.kind}/${facts.state.isTerminating}`;
}

function customPart(served: Served, dialect: Dialect, source: string): Part {
  const { resource, custom } = served;
  let schema: JsonObject | null = null;
  const read = (): JsonObject => custom?.schemas.schemaText(custom) ?? {};
  const { group, version, kind, listKind } = resource;
  const names = [kind, listKind].map((one) => publishedName({ group, version, kind: one }));
  return {
    from: { source: `${version}${source}`, names },
    read: () => {
      schema = read();
    },
    paths: () => {
      const paths: JsonObject = {};
      addPaths(paths, resource, dialect, publishedName(resource));
      return paths;
    },
    schemas: () => {
      const all: JsonObject = { ...publishedOf(served, schema ?? read(), dialect).schemas };
      schema = null;
      for (const { group, version, kind } of resource.subresources.values()) {
        if (kind !== resource.kind) addSchemaOf(all, `${group}/${version}`, kind, dialect);
      }
      return all;
    },
  };
}

function publishedOf(
  { resource, custom }: Served,
  schema: JsonObject,
  dialect: Dialect,
): PublishedSchemas {
  const { group, version, kind, listKind, resource: plural } = resource;
  const publish = dialect === VERSION_3 ? openapiV3Schemas : openapiV2Schemas;
  const selectable = custom?.facts.selectable ?? [];
  return publish({ group, version, kind, listKind, plural, selectable }, schema);
}

/** What paths of custom resources do not answer with. */
const UNMENTIONED = /\.(?:APIResource|APIResourceList|RawExtension|WatchEvent)$/;

/** The standard metadata and what it mentions. */
export function metadataPart(dialect: Dialect): Part {
  const schemas: JsonObject = {};
  addCommonSchemas(schemas, dialect);
  for (const [apiVersion, kind] of METADATA_OWNERS) {
    addSchemaOf(schemas, apiVersion, kind, dialect);
  }
  for (const name of Object.keys(schemas)) {
    if (!name.includes('.apimachinery.pkg.') || UNMENTIONED.test(name)) delete schemas[name];
  }
  tellSharedKinds(schemas, null, dialect);
  return { paths: () => ({}), schemas: () => schemas };
}

/** A document of version 3 as text, of built-in kinds or of custom ones. */
export function* version3Text(parts: () => Iterable<Part>, isCustom = false): Iterable<Piece> {
  const info = JSON.stringify(isCustom ? CUSTOM_INFO : INFO);
  yield `{"openapi":"3.0.0","info":${info},"paths":{`;
  yield* members(parts(), 'paths');
  yield '},"components":{"schemas":{';
  yield* members(parts(), 'schemas');
  yield isCustom ? '}}}' : `},"securitySchemes":${JSON.stringify(SCHEMES)}}}`;
}

/** The same document as a message: fields that come again are merged by its readers. */
export function* version3Protobuf(parts: () => Iterable<Part>, isCustom = false): Iterable<Piece> {
  const info = isCustom ? CUSTOM_INFO : INFO;
  const components: JsonObject = isCustom ? {} : { securitySchemes: SCHEMES };
  yield encodeOpenApiV3({ openapi: '3.0.0', info, paths: {}, components });
  for (const { half, made, content } of newMembers(parts())) {
    if (content !== undefined) yield content;
    else
      yield encodeOpenApiV3(half === 'paths' ? { paths: made } : { components: { schemas: made } });
  }
}

/** The document of version 2 as text. */
export function* version2Text(
  parts: () => Iterable<Part>,
  old: OldPieces = NO_PIECES,
): Iterable<Piece> {
  yield `{"swagger":"2.0","info":${JSON.stringify(INFO)},"paths":{`;
  const shared = new SharedParameters();
  yield* members(parts(), 'paths', shared, old);
  yield '},"definitions":{';
  yield* members(parts(), 'schemas', undefined, old);
  yield `},"parameters":${JSON.stringify(shared.definitions)},`;
  yield `"securityDefinitions":${JSON.stringify(SCHEMES)},"security":[{"BearerToken":[]}]}`;
}

/**
 * The members of one half of all parts; a schema that several bring is written once. Reading,
 * making and writing the schemas of one kind, which may be large, are pieces of their own.
 */
function* members(
  parts: Iterable<Part>,
  half: 'paths' | 'schemas',
  shared?: SharedParameters,
  old: OldPieces = NO_PIECES,
): Iterable<Piece> {
  const written = new Set<string>();
  for (const part of parts) {
    // parts of built-in kinds come first and bring all that parts share
    const key = part.from === undefined ? '' : `${half} ${part.from.source}`;
    const content = key === '' ? undefined : old(key);
    if (content !== undefined) {
      for (const name of part.from?.names ?? []) written.add(name);
      yield { key, content };
      continue;
    }
    if (half === 'schemas') part.read?.();
    yield '';
    const whole = part[half]();
    const made = Object.entries(shared?.referTo(whole) ?? whole);
    yield '';
    let text = '';
    for (const [name, value] of made) {
      if (written.has(name)) continue;
      text += `${written.size === 0 ? '' : ','}${JSON.stringify(name)}:${JSON.stringify(value)}`;
      written.add(name);
    }
    yield key === '' ? text : { key, content: text };
  }
}

/** The document of version 2 as a message. */
export function* version2Protobuf(
  parts: () => Iterable<Part>,
  old: OldPieces = NO_PIECES,
): Iterable<Piece> {
  const securityDefinitions = SCHEMES;
  const security = [{ BearerToken: [] }];
  const head = { swagger: '2.0', info: INFO, securityDefinitions, security };
  yield encodeOpenApiV2({ ...head, paths: {}, definitions: {} });
  const shared = new SharedParameters();
  for (const { key, half, made, content } of newMembers(parts(), old)) {
    const whole = half === 'paths' ? { paths: shared.referTo(made) } : { definitions: made };
    const own = content ?? encodeOpenApiV2(whole);
    yield key === '' ? own : { key, content: own };
  }
  yield encodeOpenApiV2({ parameters: shared.definitions });
}

/** One half of what a part adds to a document, or what it was before. */
interface Added {
  /** '' where it is made anew each time. */
  readonly key: string;
  readonly half: 'paths' | 'schemas';
  readonly made: JsonObject;
  /** In place of what would be made. */
  readonly content?: Buffer;
}

/** What each part adds to a document, each half of it a piece of its own. */
function* newMembers(parts: Iterable<Part>, old: OldPieces = NO_PIECES): Iterable<Added> {
  const written = new Set<string>();
  for (const part of parts) {
    for (const half of ['schemas', 'paths'] as const) {
      const key = part.from === undefined ? '' : `${half} ${part.from.source}`;
      const content = key === '' ? undefined : old(key);
      if (content !== undefined) {
        for (const name of half === 'schemas' ? (part.from?.names ?? []) : []) written.add(name);
        yield { key, half, made: {}, content };
        continue;
      }
      if (half === 'schemas') part.read?.();
      yield NOTHING;
      const made = part[half]();
      yield NOTHING;
      yield { key, half, made: half === 'paths' ? made : withoutWritten(made, written) };
    }
  }
}

/** The schemas that no part before has brought. */
function withoutWritten(made: JsonObject, written: Set<string>): JsonObject {
  const schemas: JsonObject = {};
  for (const [name, schema] of Object.entries(made)) {
    if (!written.has(name)) putMember(schemas, name, schema);
    written.add(name);
  }
  return schemas;
}

/** Lets others have their turn. */
const NOTHING: Added = { key: '', half: 'paths', made: {}, content: Buffer.alloc(0) };
