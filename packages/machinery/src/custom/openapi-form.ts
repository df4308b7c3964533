/**
 * A custom resource's schema as OpenAPI publishes it: with the standard metadata, the lists' schema
 * and `x-kubernetes-group-version-kind`; version 2 with what it cannot say left out.
 */
import type { JsonObject } from '../json-value.ts';

/** What the published form has to know of a definition beside its schema. */
export interface PublishedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
}

/** Names as components: `com.example.v1.Widget`, `com.example.v1.WidgetList`. */
export interface PublishedSchemas {
  readonly name: string;
  readonly listName: string;
  /** By name: the schema of the kind, and of its list. Refs name `io.k8s...` components. */
  readonly schemas: Readonly<Record<string, JsonObject>>;
}

/** Components of `/openapi/v3/apis/{group}/{version}`. */
export function openapiV3Schemas(_kind: PublishedKind, _schema: JsonObject): PublishedSchemas {
  return { name: '', listName: '', schemas: {} };
}

/** Definitions of `/openapi/v2`. */
export function openapiV2Schemas(_kind: PublishedKind, _schema: JsonObject): PublishedSchemas {
  return { name: '', listName: '', schemas: {} };
}
