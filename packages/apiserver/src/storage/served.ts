/** A resource as this server serves it: where its objects lie and how they are named. */
import { headOf } from '@megaplane/machinery/canonical';
import { findResource, isStored, resources, type Resource } from '@megaplane/machinery/kinds';
import type { Qualified } from '@megaplane/machinery/status';
import type { CompiledSchema } from '@megaplane/machinery/custom/compiled-schema';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Printer } from '@megaplane/machinery/printing';
import type {
  DefinitionFacts,
  VersionFacts,
} from '../apiextensions/definition/definition-facts.ts';

/** One resource in one version. Everything here is computed once. */
export interface Served {
  readonly resource: Resource;
  /** False for reviews and bindings, which are answered and not kept. */
  readonly stored: boolean;
  /** The stored objects are of another version than the one that is served. */
  readonly isConverted: boolean;
  /** Constant start of every stored object; `resourceVersion` goes right after it. */
  readonly head: Buffer;
  /** Start of every key, with a slash at its end. */
  readonly prefix: string;
  /** Plural and group, for error texts. */
  readonly plural: Qualified;
  /** Kind and group, for error texts that name the kind. */
  readonly kind: Qualified;
  /** New objects start at generation 1, and changes of their spec count up. */
  readonly counted: boolean;
  readonly hasStatus: boolean;
  /** For kinds that a CustomResourceDefinition made: which, and how they are read. */
  readonly custom: CustomVersion | null;
}

/** A kind that a CustomResourceDefinition made, as far as those that serve it know it. */
export interface CustomKindOf {
  readonly facts: DefinitionFacts;
  /** Revision of the definition. */
  readonly revision: number;
  readonly prefix: string;
  /** Whose schema a version has, served or not; undefined where there is none of that name. */
  schemaOwner(version: string): SchemaOwner | undefined;
  /** One version; undefined where there is none of that name, or it is not served. */
  served(version: string): Served | undefined;
  /** Every version that is served. */
  all(): Served[];
}

/** Where the schemas of custom kinds are compiled and kept. */
export interface SchemasOf {
  schemaOf(owner: SchemaOwner): CompiledSchema;
  printerOf(custom: CustomVersion): Printer;
  /** The stored definition of that name. */
  definition(name: string): JsonObject | undefined;
  /** The schema as the definition has it. */
  schemaText(owner: SchemaOwner): JsonObject;
  /** Steps that compile the schema, null where it is at hand. */
  preparing(owner: SchemaOwner, judges: boolean): Iterator<void> | null;
}

/** What a `Served` knows beyond a built-in: its definition, how objects are read and written. */
export interface CustomVersion {
  readonly kind: CustomKindOf;
  readonly facts: VersionFacts;
  /** Start of an object as this version shows it; `resourceVersion` goes right after it. */
  readonly shownHead: Buffer;
  /**
   * Objects that were written after this revision are in the form that the schema of this version
   * gives them, and are copied; others are pruned and defaulted as they are read.
   */
  readonly formedSince: number;
  /** Revision since which the schema is what it is. */
  readonly schemaSince: number;
  /** Its objects are kept in other versions, and its webhook brings them into this one. */
  readonly isViewed: boolean;
  readonly schemas: SchemasOf;
}

/** What a schema is found by: one version of a kind. */
export type SchemaOwner = Pick<CustomVersion, 'kind' | 'facts' | 'schemaSince'>;

/** Kinds without a status subresource whose generation counts all the same. */
const COUNTED: ReadonlySet<string> = new Set([
  '/podtemplates',
  'discovery.k8s.io/endpointslices',
  'networking.k8s.io/networkpolicies',
  'networking.k8s.io/ingressclasses',
  'admissionregistration.k8s.io/mutatingwebhookconfigurations',
  'admissionregistration.k8s.io/validatingwebhookconfigurations',
  'admissionregistration.k8s.io/validatingadmissionpolicies',
  'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  'admissionregistration.k8s.io/mutatingadmissionpolicies',
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings',
  'storage.k8s.io/csidrivers',
  'discovery.k8s.io/endpointslices',
  'resource.k8s.io/resourceslices',
  'resource.k8s.io/deviceclasses',
]);

/** Kinds with a status subresource whose generation upstream leaves alone. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  '/nodes',
  '/namespaces',
  '/services',
  '/persistentvolumes',
  '/persistentvolumeclaims',
  '/resourcequotas',
  'storage.k8s.io/volumeattachments',
  'certificates.k8s.io/certificatesigningrequests',
  'resource.k8s.io/resourceclaims',
  'scheduling.k8s.io/podgroups',
  'autoscaling/horizontalpodautoscalers',
  'networking.k8s.io/servicecidrs',
  'apiregistration.k8s.io/apiservices',
]);

const known = new Map<Resource, Served>();

/** What this server knows of a resource of the tables. */
export function servedOf(resource: Resource): Served {
  let served = known.get(resource);
  if (served === undefined) known.set(resource, (served = build(resource)));
  return served;
}

function build(resource: Resource): Served {
  const { group, storage } = resource;
  const path = `${group}/${resource.resource}`;
  const hasStatus = resource.subresources.has('status');
  return {
    resource,
    stored: isStored(resource),
    isConverted: storage.apiVersion !== resource.apiVersion,
    head: headOf(storage.apiVersion, storage.kind),
    prefix: storage.prefix,
    plural: { group, name: resource.resource },
    // upstream keeps events of both groups as one kind of the core group
    kind: { group: resource.kind === 'Event' ? '' : group, name: resource.kind },
    counted: (hasStatus && !UNCOUNTED.has(path)) || COUNTED.has(path),
    hasStatus,
    custom: null,
  };
}

/** A built-in by what a URL names; undefined where it is unknown or not served. */
export function findServed(group: string, version: string, plural: string): Served | undefined {
  const resource = findResource(group, version, plural);
  return resource?.served === true ? servedOf(resource) : undefined;
}

/** Every built-in that is served, in discovery order. */
export function allServed(): Served[] {
  return resources()
    .filter((resource) => resource.served)
    .map(servedOf);
}

/** True where a group, or a group and version, has any built-in that is served. */
export function isGroupServed(group: string, version?: string): boolean {
  return resources().some(
    (one) =>
      one.served && one.group === group && (version === undefined || one.version === version),
  );
}

/** The key of one object, in UTF-8 as all keys are. */
export function keyOf(served: Served, namespace: string, name: string): Buffer {
  return Buffer.from(keyText(served, namespace, name));
}

export function keyText(served: Served, namespace: string, name: string): string {
  return served.resource.namespaced ? `${served.prefix}${namespace}/${name}` : served.prefix + name;
}

/** Keys in `[start, end)`. */
export interface KeyRange {
  readonly start: Buffer;
  readonly end: Buffer;
}

const wholes = new WeakMap<Served, KeyRange>();

/** All objects of a resource, or those of one namespace, or (with a name) exactly one. */
export function rangeOf(served: Served, namespace: string, name = ''): KeyRange {
  if (namespace !== '' || (name !== '' && !served.resource.namespaced)) {
    return makeRange(served, namespace, name);
  }
  let whole = wholes.get(served);
  if (whole === undefined) wholes.set(served, (whole = makeRange(served, '', '')));
  return whole;
}

function makeRange(served: Served, namespace: string, name: string): KeyRange {
  const isOne = name !== '' && (namespace !== '' || !served.resource.namespaced);
  if (isOne) {
    const key = keyText(served, namespace, name);
    return { start: Buffer.from(key), end: Buffer.from(`${key}\0`) };
  }
  const inner = served.resource.namespaced && namespace !== '' ? `${namespace}/` : '';
  const prefix = served.prefix + inner;
  // '0' is the byte after '/'
  const end = `${prefix.slice(0, -1)}0`;
  return { start: Buffer.from(prefix), end: Buffer.from(end) };
}

/** The smallest key after `key`. */
export function keyAfter(key: Uint8Array): Buffer {
  const next = Buffer.allocUnsafe(key.length + 1);
  next.set(key);
  next[key.length] = 0;
  return next;
}

/** Where definitions are stored. */
export const DEFINITIONS_PREFIX = '/registry/apiextensions.k8s.io/customresourcedefinitions/';
