/** What the field manager has to know of a request: its kind, its versions, who writes and when. */
import { builtinSchema } from '@megaplane/machinery/apply/builtin-schema';
import { FieldSet } from '@megaplane/machinery/apply/field-set';
import { DEDUCED_SCHEMA } from '@megaplane/machinery/apply/field-schema';
import type { FieldScope } from '@megaplane/machinery/apply/field-manager';
import type { Operation } from '@megaplane/machinery/apply/managed-fields';
import type { Typed, Versions } from '@megaplane/machinery/apply/ownership';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { findKind } from '@megaplane/machinery/kinds';
import { emptyObject } from '@megaplane/machinery/normal-form';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import type { Call } from '../call.ts';
import { fromStored, toStored } from '../conversion.ts';
import type { Served } from '../served.ts';
import type { CustomVersion } from '../custom/custom-kind.ts';
import { resetFields } from './reset-fields.ts';

const NO_FIELDS = new FieldSet();

interface Known {
  readonly versions: Versions;
  readonly empty: JsonObject;
}

const known = new WeakMap<Served, Map<string, Known>>();

/** Who writes and when: a request, or the server itself. */
export type Writer = Pick<Call, 'fieldManager' | 'nowMs'>;

/** The scope of a write to `served` by way of `subresource` ('': the object itself). */
export function fieldScope(
  served: Served,
  call: Writer,
  subresource: string,
  operation: Operation,
): FieldScope {
  const { versions, empty } = knownOf(served, subresource);
  const { apiVersion } = versions;
  const manager = { name: call.fieldManager, operation, apiVersion, subresource };
  const formedSince = served.custom?.formedSince ?? -1;
  return { versions, empty, manager, nowSeconds: Math.floor(call.nowMs / 1000), formedSince };
}

function knownOf(served: Served, subresource: string): Known {
  // schemas of custom resources are kept elsewhere, while there is room
  if (served.custom !== null) return buildCustom(served, served.custom, subresource);
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
      convert: (value, version) => converted(served, value, version),
      convertBack: (value, version) => broughtBack(served, value, version),
      ignored,
      ignoredElsewhere: ignored,
    },
    empty: { kind, apiVersion, ...fields },
  };
}

function buildCustom(served: Served, custom: CustomVersion, subresource: string): Known {
  const { apiVersion, kind } = served.resource;
  const other = (version: string): Served | undefined => {
    return custom.kind.served(version.slice(version.indexOf('/') + 1));
  };
  return {
    versions: {
      apiVersion,
      schema: custom.schemas.schemaOf(custom).applySchema(),
      convert: (value, version) => {
        const found = version.startsWith(`${served.resource.group}/`) ? other(version) : undefined;
        const own = found?.custom ?? null;
        if (own === null || !isObject(value)) return null;
        const schema = own.schemas.schemaOf(own).applySchema();
        return { schema, value: { ...value, apiVersion: version } };
      },
      convertBack: (value) => (isObject(value) ? { ...value, apiVersion } : value),
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
  return {
    versions: {
      apiVersion,
      schema: builtinSchema(apiVersion, kind) ?? DEDUCED_SCHEMA,
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

/** Kinds with several versions share what is stored: it is the way from one to the other. */
function converted(served: Served, value: JsonValue, apiVersion: string): Typed | null {
  const { kind, storage } = served.resource;
  const other = findKind(apiVersion, kind);
  const schema = builtinSchema(apiVersion, kind);
  if (other === undefined || schema === undefined || !isObject(value)) return null;
  if (other.storage.name !== storage.name) return null;
  return { schema, value: fromStored(toStored(value, served.resource), other) };
}

function broughtBack(served: Served, value: JsonValue, apiVersion: string): JsonValue {
  const other = findKind(apiVersion, served.resource.kind);
  if (other === undefined || !isObject(value)) return value;
  return fromStored(toStored(value, other), served.resource);
}
