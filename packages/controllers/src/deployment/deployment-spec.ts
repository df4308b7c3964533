/** What a Deployment asks for, with the defaults and roundings of its fields. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { replicasOf } from '../replicaset/replicaset.ts';
import { safeDigits, sorted } from '../framework/stable-text.ts';

export const HASH_LABEL = 'pod-template-hash';
const DEADLINE_NONE: number = 2 ** 31 - 1;
const SHARE_DEFAULT = '25%';

export function isRecreate(deployment: JsonObject): boolean {
  return stringAt(deployment, 'spec', 'strategy', 'type') === 'Recreate';
}

/** A number, or a share of `total` in percent. */
export function scaled(value: JsonValue | undefined, total: number, isUp: boolean): number {
  if (typeof value === 'number') return value;
  const share = Number.parseInt(typeof value === 'string' ? value : SHARE_DEFAULT, 10);
  if (Number.isNaN(share)) return 0;
  const exact = (share * total) / 100;
  return isUp ? Math.ceil(exact) : Math.floor(exact);
}

/** Both limits of a rolling update; never both 0, as then nothing could move. */
function limitsOf(deployment: JsonObject): { surge: number; unavailable: number } {
  const replicas = replicasOf(deployment);
  const rolling = objectAt(deployment, 'spec', 'strategy', 'rollingUpdate');
  const surge = scaled(rolling?.['maxSurge'], replicas, true);
  const unavailable = scaled(rolling?.['maxUnavailable'], replicas, false);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** Pods above the wanted number that an update may make. */
export function maxSurge(deployment: JsonObject): number {
  return isRecreate(deployment) ? 0 : limitsOf(deployment).surge;
}

/** Pods below the wanted number that an update may cost. */
export function maxUnavailable(deployment: JsonObject): number {
  const replicas = replicasOf(deployment);
  if (isRecreate(deployment) || replicas === 0) return 0;
  return Math.min(limitsOf(deployment).unavailable, replicas);
}

/** Seconds within which there must be progress; undefined for never mind. */
export function deadlineSeconds(deployment: JsonObject): number | undefined {
  const seconds = valueAt(deployment, 'spec', 'progressDeadlineSeconds');
  return typeof seconds === 'number' && seconds !== DEADLINE_NONE ? seconds : undefined;
}

export function isPaused(deployment: JsonObject): boolean {
  return valueAt(deployment, 'spec', 'paused') === true;
}

/** The template without its hash, and without fields that are null. */
function comparable(template: JsonObject | undefined): JsonValue {
  const { [HASH_LABEL]: _hash, ...labels } = objectAt(template, 'metadata', 'labels') ?? {};
  const metadata = { ...objectAt(template, 'metadata'), labels };
  return sorted({ ...template, metadata });
}

/** Whether two templates make the same pods. */
export function isSameTemplate(one: JsonObject, other: JsonObject): boolean {
  return equals(
    comparable(objectAt(one, 'spec', 'template')),
    comparable(objectAt(other, 'spec', 'template')),
  );
}

/**
 * The hash that tells the pods of one template from those of another. It need only be the same
 * for the same template; `collisionCount` gives another one where a name is taken.
 */
export function templateHash(deployment: JsonObject): string {
  const template = comparable(objectAt(deployment, 'spec', 'template'));
  const collisions = numberAt(deployment, 'status', 'collisionCount');
  return nameHash(JSON.stringify(template) + (collisions > 0 ? `\n${collisions}` : ''));
}

/** Ten characters at most for a text. */
function nameHash(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return safeDigits(hash >>> 0);
}

/** Oldest first; of one age by name. */
export function byAge(one: JsonObject, other: JsonObject): number {
  return compare(createdAt(one), createdAt(other)) || compare(nameOf(one), nameOf(other));
}

export function nameOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'name');
}

function createdAt(object: JsonObject): string {
  return stringAt(object, 'metadata', 'creationTimestamp');
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Sum of `spec.replicas`. */
export function wantedReplicas(sets: readonly JsonObject[]): number {
  return sets.reduce((sum, set) => sum + replicasOf(set), 0);
}

/** Sum of a number in the status. */
export function countOf(sets: readonly JsonObject[], field: string): number {
  return sets.reduce((sum, set) => sum + numberAt(set, 'status', field), 0);
}

export function conditionsOf(object: JsonObject): readonly JsonValue[] {
  return listAt(object, 'status', 'conditions');
}
