/**
 * CustomResourceDefinitions of `apiextensions.k8s.io/v1beta1`: nobody may write them any more, but
 * kube-apiserver keeps all definitions in etcd in this version to the day, since it is shorter:
 * what all versions have alike stands once, above them.
 */
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';

/** How a definition begins that kube-apiserver stored. */
export const BETA_HEAD: Buffer = Buffer.from(
  '{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",',
);

export function isBetaDefinition({ apiVersion, kind }: JsonObject): boolean {
  return apiVersion === 'apiextensions.k8s.io/v1beta1' && kind === 'CustomResourceDefinition';
}

/** The same definition in version v1. Parts of the result are shared with what was given. */
export function fromBeta(definition: JsonObject): JsonObject {
  const converted: JsonObject = { ...definition, apiVersion: 'apiextensions.k8s.io/v1' };
  const spec = objectAt(definition, 'spec');
  if (spec !== undefined) converted['spec'] = specFromBeta(spec);
  return converted;
}

function specFromBeta(beta: JsonObject): JsonObject {
  const { group, version, names, validation, subresources, additionalPrinterColumns } = beta;
  const { scope = 'Namespaced', selectableFields, preserveUnknownFields = true } = beta;
  const listed = listAt(beta, 'versions').filter(isObject);
  const whole = listed.length > 0 ? listed : [{ name: version ?? '', served: true, storage: true }];
  const shared: JsonObject = {};
  if (isObject(validation)) shared['schema'] = validation;
  if (isObject(subresources)) shared['subresources'] = subresources;
  if (Array.isArray(selectableFields)) shared['selectableFields'] = selectableFields;
  if (Array.isArray(additionalPrinterColumns)) {
    shared['additionalPrinterColumns'] = additionalPrinterColumns;
  }
  const versions = whole.map((one) => versionFromBeta({ ...one, ...shared }));
  const conversion = conversionFromBeta(objectAt(beta, 'conversion'));
  const spec: JsonObject = {
    ...(group === undefined ? {} : { group }),
    names: wholeNames(objectAt({ names }, 'names') ?? {}),
    scope,
    versions,
    conversion,
  };
  // null is as good as absent for a pointer, and absent means true
  if (preserveUnknownFields !== false) spec['preserveUnknownFields'] = true;
  return spec;
}

function versionFromBeta(version: JsonObject): JsonObject {
  const columns = version['additionalPrinterColumns'];
  // a version without a schema keeps its place among those that have one
  const formed = { ...version, schema: version['schema'] ?? {} };
  if (!Array.isArray(columns)) return formed;
  return { ...formed, additionalPrinterColumns: columns.map(columnFromBeta) };
}

function columnFromBeta(column: JsonValue): JsonValue {
  if (!isObject(column)) return column;
  const { JSONPath: jsonPath, ...rest } = column;
  return jsonPath === undefined ? column : { ...rest, jsonPath };
}

function conversionFromBeta(beta: JsonObject | undefined): JsonObject {
  const strategy = stringAt(beta, 'strategy') || 'None';
  const clientConfig = objectAt(beta, 'webhookClientConfig');
  const listed = beta?.['conversionReviewVersions'];
  const reviews = Array.isArray(listed) && listed.length > 0 ? listed : undefined;
  const isWebhook = strategy === 'Webhook';
  if (clientConfig === undefined && reviews === undefined && !isWebhook) return { strategy };
  const conversionReviewVersions = reviews ?? (isWebhook ? ['v1beta1'] : null);
  const config = clientConfig === undefined ? {} : { clientConfig };
  return { strategy, webhook: { ...config, conversionReviewVersions } };
}

function wholeNames(names: JsonObject): JsonObject {
  const kind = stringAt(names, 'kind');
  const singular = stringAt(names, 'singular') || kind.toLowerCase();
  return { ...names, singular, listKind: stringAt(names, 'listKind') || `${kind}List` };
}

/** A schema that leaves unknown fields where they are, at all of its levels. */
export function withoutPruning(schema: JsonObject): JsonObject {
  const { type = 'object', properties, items, additionalProperties } = schema;
  const kept: JsonObject = { ...schema };
  if (type === 'object') kept['x-kubernetes-preserve-unknown-fields'] = true;
  if (isObject(properties)) {
    const all = Object.entries(properties);
    kept['properties'] = Object.fromEntries(
      all.map(([name, one]) => [name, isObject(one) ? withoutPruning(one) : one]),
    );
  }
  if (isObject(items)) kept['items'] = withoutPruning(items);
  if (isObject(additionalProperties)) {
    kept['additionalProperties'] = withoutPruning(additionalProperties);
  }
  return kept;
}
