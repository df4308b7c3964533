/**
 * Versions of one kind that share their stored objects: events of two groups, autoscalers of two
 * versions, kinds of devices, and kinds whose versions differ in their apiVersion only.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Resource } from '@megaplane/machinery/kinds';
import { OLD_DEVICES, oldDevices, stableDevices } from './device-conversion.ts';
import { scalerToV1, storedScaler } from './scaler-conversion.ts';

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
    putMember(renamed, isEvent ? rename(field, from) : field, value);
  }
  renamed['apiVersion'] = apiVersion;
  if (isEvent && from === 0) dropEmpty(renamed, ['reportingController', 'reportingInstance']);
  if (resource.kind === 'HorizontalPodAutoscaler') {
    return from === 0 ? scalerToV1(renamed) : storedScaler(renamed);
  }
  if (resource.apiVersion === OLD_DEVICES) {
    return from === 0 ? oldDevices(resource.kind, renamed) : stableDevices(resource.kind, renamed);
  }
  return renamed;
}

/** Fields that the older version always writes and the newer one leaves out when empty. */
function dropEmpty(object: JsonObject, fields: readonly string[]): void {
  for (const field of fields) if (ownMember(object, field) === '') delete object[field];
}

function rename(field: string, from: 0 | 1): string {
  for (const pair of EVENT_FIELDS) {
    if (pair[from] === field) return pair[1 - from] ?? field;
  }
  return field;
}
