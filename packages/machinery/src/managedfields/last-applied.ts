/**
 * Objects that `kubectl apply` manages on the client's side carry what was applied in an
 * annotation. When kubectl turns to server-side apply, what that annotation says is its own
 * already.
 */

import { objectAt, stringAt } from '../json/json.ts';
import { parseJson } from '../json/json-text.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { compareFields } from './compare.ts';
import type { FieldSet } from './field-set.ts';
import { fieldsOf } from './field-walk.ts';
import type { Versions } from './ownership.ts';
import { compareText, goJson } from './path-element.ts';
import { typedFaults } from './typed-faults.ts';

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
/** The manager for which the annotation is read and kept up to date. */
export const LAST_APPLIED_MANAGER = 'kubectl';
/** All annotations of an object together; upstream's limit. */
const ANNOTATIONS_BYTES_MAX = 262_144;

/** Fields of the annotation whose values are still the live ones; null where there is none. */
export function lastAppliedFields(versions: Versions, live: JsonObject): FieldSet | null {
  const text = stringAt(live, 'metadata', 'annotations', LAST_APPLIED);
  const config = text === '' ? undefined : parsed(text);
  if (!isObject(config) || stringAt(config, 'apiVersion') !== versions.apiVersion) return null;
  const { schema } = versions;
  if (typedFaults(schema, live, false).length > 0) return null;
  if (typedFaults(schema, config, false).length > 0) return null;
  const changes = compareFields(schema, config, live);
  return fieldsOf(schema, config)
    .difference(changes.modified)
    .difference(changes.added)
    .difference(changes.removed);
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The object with its annotation brought up to date, where it has one. */
export function withLastApplied(object: JsonObject, config: JsonObject): JsonObject {
  if (stringAt(object, 'metadata', 'annotations', LAST_APPLIED) === '') return object;
  const annotations: JsonObject = { ...objectAt(object, 'metadata', 'annotations') };
  annotations[LAST_APPLIED] = `${goJson(withoutAnnotation(config))}\n`;
  let size = 0;
  for (const [name, value] of Object.entries(annotations)) {
    size += Buffer.byteLength(name) + (typeof value === 'string' ? Buffer.byteLength(value) : 0);
  }
  if (size > ANNOTATIONS_BYTES_MAX) delete annotations[LAST_APPLIED];
  return {
    ...object,
    metadata: { ...objectAt(object, 'metadata'), annotations: sorted(annotations) },
  };
}

function withoutAnnotation(config: JsonObject): JsonObject {
  const annotations = objectAt(config, 'metadata', 'annotations');
  if (annotations === undefined) return config;
  const { [LAST_APPLIED]: _, ...rest } = annotations;
  return { ...config, metadata: { ...objectAt(config, 'metadata'), annotations: rest } };
}

function sorted(object: JsonObject): JsonObject {
  const entries = Object.entries(object).sort(([a], [b]) => compareText(a, b));
  return Object.fromEntries(entries);
}
