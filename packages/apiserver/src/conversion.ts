/**
 * Versions of one kind that share their stored objects: events of two groups, autoscalers of two
 * versions, and kinds whose versions differ in their apiVersion only.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { Resource } from '@megaplane/machinery/kinds';

/** Stored name -> name in events.k8s.io/v1. */
const EVENT_FIELDS: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
];

/** A stored object in the version of `resource`. */
export function fromStored(object: JsonObject, resource: Resource): JsonObject {
  return convert(object, resource, resource.apiVersion, 0);
}

/** An object of the version of `resource` as it is stored. */
export function toStored(object: JsonObject, resource: Resource): JsonObject {
  return convert(object, resource, resource.storage.apiVersion, 1);
}

function convert(
  object: JsonObject,
  resource: Resource,
  apiVersion: string,
  from: 0 | 1,
): JsonObject {
  if (object['apiVersion'] === apiVersion) return object;
  const isEvent = resource.kind === 'Event' && resource.group === 'events.k8s.io';
  const renamed: JsonObject = {};
  for (const [field, value] of Object.entries(object)) {
    renamed[isEvent ? rename(field, from) : field] = value;
  }
  renamed['apiVersion'] = apiVersion;
  if (isEvent && from === 0) dropEmpty(renamed, ['reportingController', 'reportingInstance']);
  if (resource.kind === 'HorizontalPodAutoscaler') return convertScaler(renamed, from);
  return renamed;
}

/** Fields that the older version always writes and the newer one leaves out when empty. */
function dropEmpty(object: JsonObject, fields: readonly string[]): void {
  for (const field of fields) if (object[field] === '') delete object[field];
}

function rename(field: string, from: 0 | 1): string {
  for (const pair of EVENT_FIELDS) {
    if (pair[from] === field) return pair[1 - from] ?? field;
  }
  return field;
}

/** v1 has one CPU percentage where v2 (stored) has a list of metrics. */
function convertScaler(object: JsonObject, from: 0 | 1): JsonObject {
  const spec = object['spec'];
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) return object;
  if (from === 1) {
    const { targetCPUUtilizationPercentage: percentage, ...rest } = spec;
    const metrics: JsonValue[] = percentage === undefined ? [] : [cpuMetric(percentage)];
    return { ...object, spec: metrics.length === 0 ? rest : { ...rest, metrics } };
  }
  const { metrics, ...rest } = spec;
  const percentage = cpuPercentage(metrics);
  return {
    ...object,
    spec: percentage === undefined ? rest : { ...rest, targetCPUUtilizationPercentage: percentage },
  };
}

function cpuMetric(percentage: JsonValue): JsonObject {
  const target: JsonObject = { type: 'Utilization', averageUtilization: percentage };
  return { type: 'Resource', resource: { name: 'cpu', target } };
}

function cpuPercentage(metrics: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(metrics)) return undefined;
  for (const metric of metrics) {
    const resource = (metric as JsonObject)['resource'] as JsonObject | undefined;
    if (resource?.['name'] !== 'cpu') continue;
    return (resource['target'] as JsonObject | undefined)?.['averageUtilization'];
  }
  return undefined;
}
