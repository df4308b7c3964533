/** What the field manager has to know of a request: its kind, its versions, who writes and when. */
import { builtinSchema } from '@megaplane/machinery/apply/builtin-schema';
import { FieldSet } from '@megaplane/machinery/apply/field-set';
import { DEDUCED_SCHEMA, type FieldSchema } from '@megaplane/machinery/apply/field-schema';
import type { FieldScope } from '@megaplane/machinery/apply/field-manager';
import type { Operation } from '@megaplane/machinery/apply/managed-fields';
import type { Typed, Versions } from '@megaplane/machinery/apply/ownership';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { findKind } from '@megaplane/machinery/kinds';
import { emptyObject } from '@megaplane/machinery/normal-form';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { Call } from '../request/call.ts';
import { conversionsOf } from './version-conversions.ts';
import { fromStored, toStored } from '../storage/conversion.ts';
import type { Served } from '../storage/served.ts';
import type { CustomVersion } from '../storage/served.ts';
import { resetFields } from './reset-fields.ts';

const NO_FIELDS = new FieldSet();

interface Known {
  readonly versions: Versions;
  readonly empty: JsonObject;
}

const known = new WeakMap<Served, Map<string, Known>>();

/** Who writes and when: a request, or the server itself, which asks no webhooks for it. */
export type Writer = Pick<Call, 'fieldManager' | 'nowMs'>;

/** The scope of a write to `served` by way of `subresource` ('': the object itself). */
export function fieldScope(
  served: Served,
  call: Writer,
  subresource: string,
  operation: Operation,
): FieldScope {
  const { versions, empty } = knownOf(served, call, subresource);
  const { apiVersion } = versions;
  const manager = { name: call.fieldManager, operation, apiVersion, subresource };
  const { custom } = served;
  // what a webhook makes may never fit
  const isMade = custom?.kind.facts.isConverting === true;
  const formedSince = isMade ? Infinity : (custom?.formedSince ?? -1);
  return { versions, empty, manager, nowSeconds: Math.floor(call.nowMs / 1000), formedSince };
}

function knownOf(served: Served, writer: Writer, subresource: string): Known {
  // schemas of custom resources are kept elsewhere, while there is room
  if (served.custom !== null) return buildCustom(served, served.custom, writer, subresource);
  let ways = known.get(served);
  if (ways === undefined) known.set(served, (ways = new Map()));
  let found = ways.get(subresource);
  if (found === undefined) ways.set(subresource, (found = build(served, subresource)));
  return found;
}

function build(served: Served, subresource: string): Known {
  const { apiVersion, kind } = served.resource;
  const type = findTypeOfKind(apiVersion, kind);
  const fields = type === undefined ? {} : emptyObject(type);
  const ignored = resetFields(served, subresource);
  return {
    versions: {
      apiVersion,
      schema: builtinSchema(apiVersion, kind) ?? DEDUCED_SCHEMA,
      schemaOf: (version) => schemaOf(served, version),
      convert: (value, version) => converted(served, value, version),
      convertBack: (value, version) => broughtBack(served, value, version),
      ignored,
      ignoredElsewhere: ignored,
    },
    empty: { kind, apiVersion, ...fields },
  };
}

function buildCustom(
  served: Served,
  custom: CustomVersion,
  writer: Writer,
  subresource: string,
): Known {
  const { apiVersion, group, kind } = served.resource;
  const { versions, isConverting } = custom.kind.facts;
  const asked = writer instanceof Call ? conversionsOf(writer).begin() : undefined;
  const conversions = isConverting ? asked : undefined;
  const other = (version: string): Served | undefined =>
    version.startsWith(`${group}/`)
      ? custom.kind.served(version.slice(group.length + 1))
      : undefined;
  const schemaOf = (version: string): FieldSchema | null => {
    const own = version === apiVersion ? custom : (other(version)?.custom ?? null);
    const isThere = versions.some(({ name }) => `${group}/${name}` === version);
    // one that is there and not served has no schema, and its owners are forgotten
    if (!isThere) asked?.refuse(version);
    return own === null ? null : own.schemas.schemaOf(own).applySchema();
  };
  return {
    versions: {
      apiVersion,
      schema: custom.schemas.schemaOf(custom).applySchema(),
      schemaOf,
      convert: (value, version) => {
        const target = other(version);
        const schema = schemaOf(version);
        if (target === undefined || schema === null || !isObject(value)) return null;
        if (conversions === undefined) return { schema, value: { ...value, apiVersion: version } };
        return { schema, value: conversions.convert(value, target) };
      },
      convertBack: (value) => {
        if (!isObject(value)) return value;
        return conversions?.convert(value, served) ?? { ...value, apiVersion };
      },
      ignored: resetFields(served, subresource),
      ignoredElsewhere: NO_FIELDS,
    },
    empty: { kind, apiVersion },
  };
}

/** The scope of a write to the scale of a workload. */
export function scaleScope(call: Writer, operation: Operation): FieldScope {
  return partScope(call, 'autoscaling/v1', 'Scale', 'scale', operation);
}

/** The scope of a write to a part that is of a kind of its own. */
export function partScope(
  call: Writer,
  apiVersion: string,
  kind: string,
  subresource: string,
  operation: Operation,
): FieldScope {
  const type = findTypeOfKind(apiVersion, kind);
  const schema = builtinSchema(apiVersion, kind) ?? DEDUCED_SCHEMA;
  return {
    versions: {
      apiVersion,
      schema,
      schemaOf: (version) => (version === apiVersion ? schema : null),
      convert: () => null,
      convertBack: (value) => value,
      ignored: NO_FIELDS,
      ignoredElsewhere: NO_FIELDS,
    },
    empty: { kind, apiVersion, ...(type === undefined ? {} : emptyObject(type)) },
    manager: { name: call.fieldManager, operation, apiVersion, subresource },
    nowSeconds: Math.floor(call.nowMs / 1000),
    formedSince: -1,
  };
}

function schemaOf({ resource }: Served, apiVersion: string): FieldSchema | null {
  const { kind, storage } = resource;
  const other = findKind(apiVersion, kind);
  if (other?.storage.name !== storage.name) return null;
  const schema = builtinSchema(apiVersion, kind);
  return schema ?? (apiVersion === resource.apiVersion ? DEDUCED_SCHEMA : null);
}

/** Kinds with several versions share what is stored: it is the way from one to the other. */
function converted(served: Served, value: JsonValue, apiVersion: string): Typed | null {
  const { kind } = served.resource;
  const other = findKind(apiVersion, kind);
  const schema = schemaOf(served, apiVersion);
  if (other === undefined || schema === null || !isObject(value)) return null;
  return { schema, value: fromStored(toStored(value, served.resource), other) };
}

function broughtBack(served: Served, value: JsonValue, apiVersion: string): JsonValue {
  const other = findKind(apiVersion, served.resource.kind);
  if (other === undefined || !isObject(value)) return value;
  return fromStored(toStored(value, other), served.resource);
}
