/**
 * ConversionReview: what a conversion webhook is asked, and what its answer means. Texts are
 * upstream's, which asks about one object at a time: so they are those of one object.
 */
import { wordOf } from '../schema/custom-objects.ts';
import { aggregate, fieldErrorText, type FieldError } from '@megaplane/machinery/fielderrors';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { checkAnnotations } from '@megaplane/machinery/validation-metadata';
import { checkLabels } from '@megaplane/machinery/validation-rules';
import {
  decodeReview,
  membersFault,
  plain,
  STATUS,
  unfit,
  type Check,
} from '../../webhook/review-decoding.ts';
import type { ConversionFault } from './conversion-metrics.ts';
import { decodedText } from '@megaplane/machinery/json-text';

const GROUP = 'apiextensions.k8s.io';
const KIND = 'ConversionReview';

/** Where objects are to be brought, and how the webhook is spoken to. */
export interface ReviewScope {
  readonly uid: string;
  /** `example.com/v2` */
  readonly desired: string;
  /** `v1` or `v1beta1`. */
  readonly reviewVersion: string;
}

/** The body of the request. */
export function conversionBody(
  { uid, desired, reviewVersion }: ReviewScope,
  objects: readonly JsonObject[],
): Buffer {
  const request = { uid, desiredAPIVersion: desired, objects };
  const apiVersion = `${GROUP}/${reviewVersion}`;
  return Buffer.from(JSON.stringify({ kind: KIND, apiVersion, request }));
}

export type Converted =
  | { readonly ok: true; readonly objects: readonly JsonObject[] }
  | { readonly ok: false; readonly why: string; readonly fault: ConversionFault };

/**
 * Reads the answer: `originals` in their desired version, in their order, with metadata of their
 * own but for labels and annotations. `who` is `conversion webhook for <kind>`.
 */
export function readConversion(
  body: Buffer,
  scope: ReviewScope,
  originals: readonly JsonObject[],
  who: string,
): Converted {
  const found = convertedIn(body, scope);
  if (typeof found === 'string') return fail('malformed_response', `${who} failed: ${found}`);
  if (found.length !== originals.length) {
    const counts = `${found.length} objects, expected ${originals.length}`;
    return fail('partial_response', `${who} returned ${counts}`);
  }
  const objects: JsonObject[] = [];
  for (const [index, original] of originals.entries()) {
    const one = decoded(found[index] ?? null);
    if (typeof one === 'string') return invalid(one);
    const foreign = foreignType(one, original, scope.desired);
    if (foreign !== '') return invalid(`${who} returned invalid object at index 0: ${foreign}`);
    const fault = otherIdentity(one, original);
    if (fault !== '') return invalid(`${who} returned invalid object: ${fault}`);
    const restored = withMetadataOf(original, one);
    if (typeof restored === 'string') {
      return invalid(`${who} returned invalid metadata: ${restored}`);
    }
    objects.push(restored);
  }
  return { ok: true, objects };
}

function fail(fault: ConversionFault, why: string): Converted {
  return { ok: false, fault, why };
}

function invalid(why: string): Converted {
  return fail('invalid_converted_object', why);
}

/** The converted objects of a review, or what is wrong with it. */
function convertedIn(
  body: Buffer,
  { uid, reviewVersion: version }: ReviewScope,
): readonly JsonValue[] | string {
  const review = decodeReview(decodedText(body), { group: GROUP, kind: KIND, version });
  if (!review.ok) return review.why;
  const response = review.review['response'] ?? null;
  const fault = response === null ? '' : responseFault(response, version);
  if (fault !== '') return fault;
  const wanted = `${GROUP}/v1, Kind=${KIND}`;
  if (version === 'v1' && review.told !== wanted) {
    return `expected webhook response of ${wanted}, got ${review.told}`;
  }
  if (!isObject(response)) return 'no response provided';
  const found = stringAt(response, 'uid');
  // the older version does not look
  if (version === 'v1' && found !== uid) {
    return `expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(found)}`;
  }
  const status = stringAt(response, 'result', 'status');
  if (status !== 'Success') {
    const message = stringAt(response, 'result', 'message');
    return message === '' ? `response.result.status was '${status}', not 'Success'` : message;
  }
  const { convertedObjects } = response;
  return Array.isArray(convertedObjects) ? convertedObjects : [];
}

const OBJECTS: Check = (value, path) =>
  Array.isArray(value) ? '' : unfit(value, `${path} of type []runtime.RawExtension`);

const RESPONSE: Readonly<Record<string, Check>> = {
  uid: plain('types.UID'),
  result: (value, path) => membersFault(value, STATUS, 'Status', path, 'v1.Status'),
  convertedObjects: OBJECTS,
};

function responseFault(response: JsonValue, version: string): string {
  if (!isObject(response)) {
    return unfit(response, `ConversionReview.response of type ${version}.ConversionResponse`);
  }
  return membersFault(response, RESPONSE, 'ConversionResponse', '.response', '');
}

/** One object of the answer as upstream's decoder of objects without a type takes it. */
function decoded(one: JsonValue): JsonObject | string {
  if (one === null) return 'unexpected end of JSON input';
  if (!isObject(one)) {
    return `json: cannot unmarshal ${wordOf(one)} into Go value of type map[string]interface {}`;
  }
  const isTyped = stringAt(one, 'apiVersion').split('/').length <= 2;
  if (isTyped && stringAt(one, 'kind') !== '') return one;
  return `Object 'Kind' is missing in '${JSON.stringify(one)}'`;
}

function foreignType(one: JsonObject, original: JsonObject, desired: string): string {
  const version = stringAt(one, 'apiVersion');
  if (version !== desired) {
    return `invalid groupVersion (expected ${desired}, received ${version})`;
  }
  const kind = stringAt(original, 'kind');
  const received = stringAt(one, 'kind');
  return received === kind ? '' : `invalid kind (expected ${kind}, received ${received})`;
}

function otherIdentity(one: JsonObject, original: JsonObject): string {
  for (const field of ['name', 'namespace'] as const) {
    const own = stringAt(original, 'metadata', field);
    const theirs = stringAt(one, 'metadata', field);
    if (own !== theirs) return `must have the same ${field}: ${own} != ${theirs}`;
  }
  const own = stringAt(original, 'metadata', 'uid');
  const theirs = stringAt(one, 'metadata', 'uid');
  return own === theirs ? '' : `must have the same UID: ${own} != ${theirs}`;
}

/** Of metadata, labels and annotations are the webhook's to change, and nothing else. */
function withMetadataOf(original: JsonObject, converted: JsonObject): JsonObject | string {
  const { metadata: given } = converted;
  if (given === undefined) return 'missing metadata in converted object';
  if (!isObject(given)) return `invalid metadata of type ${typeName(given)} in converted object`;
  const metadata: JsonObject = { ...objectAt(original, 'metadata') };
  for (const field of ['labels', 'annotations'] as const) {
    const values = given[field] ?? {};
    if (!isObject(values)) {
      return `invalid metadata.${field} of type ${typeName(values)} in converted object`;
    }
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === 'string') continue;
      const what = `metadata.${field}[${key}] must be a string`;
      return `${what}, but is ${typeName(value)} in converted object`;
    }
    const fault = changedFault(field, values, objectAt(metadata, field) ?? {});
    if (fault !== '') return fault;
    if (Object.keys(values).length > 0) metadata[field] = values;
    else delete metadata[field];
  }
  const { kind, apiVersion, metadata: _, ...rest } = converted;
  return { kind: kind ?? '', apiVersion: apiVersion ?? '', metadata, ...rest };
}

/** What is wrong with labels or annotations that are not those of before. */
function changedFault(
  field: 'labels' | 'annotations',
  values: JsonObject,
  before: JsonObject,
): string {
  if (equals(values, before)) return '';
  const found: FieldError[] = [];
  if (field === 'labels') checkLabels(found, 'metadata.labels', values);
  else checkAnnotations(found, 'metadata.annotation', values);
  return found.length === 0 ? '' : aggregate(found.map(fieldErrorText));
}

/** A type as Go names it. */
function typeName(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  return Number.isInteger(value) ? 'int64' : 'float64';
}
