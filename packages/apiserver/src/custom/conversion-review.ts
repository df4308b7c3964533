/**
 * ConversionReview: what a conversion webhook is asked, and what its answer means. Texts are
 * upstream's, up to `conversion webhook for <kind>`.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

import { KIND_STRUCT } from './custom-objects.ts';

const GROUP = 'apiextensions.k8s.io';

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
  return Buffer.from(JSON.stringify({ kind: 'ConversionReview', apiVersion, request }));
}

export type Converted =
  | { readonly ok: true; readonly objects: readonly JsonObject[] }
  | { readonly ok: false; readonly why: string };

/**
 * Reads the answer: `originals` in their desired version, in their order, with metadata of their
 * own but for labels and annotations. `why` continues `conversion webhook for <kind> `.
 */
export function readConversion(
  body: Buffer,
  scope: ReviewScope,
  originals: readonly JsonObject[],
): Converted {
  const found = convertedIn(body, scope);
  if (typeof found === 'string') return fail(`failed: ${found}`);
  if (found.length !== originals.length) {
    return fail(`returned ${found.length} objects, expected ${originals.length}`);
  }
  const objects: JsonObject[] = [];
  for (const [index, original] of originals.entries()) {
    const one = found[index] ?? null;
    const isAlone = originals.length === 1;
    const where = isAlone ? '' : ` in object at index ${index}`;
    const place = `converted object at index ${index}`;
    const foreign = foreignType(one, original, scope.desired);
    const indexed = isAlone ? `object at index ${index}` : place;
    if (foreign !== '') return fail(`returned invalid ${indexed}: ${foreign}`);
    const fault = otherIdentity(one, original);
    if (fault !== '') return fail(`returned invalid ${isAlone ? 'object' : place}: ${fault}`);
    const restored = withMetadataOf(original, isObject(one) ? one : {});
    if (typeof restored === 'string') return fail(`returned invalid metadata${where}: ${restored}`);
    objects.push(restored);
  }
  return { ok: true, objects };
}

function fail(why: string): Converted {
  return { ok: false, why };
}

/** The converted objects of a review, or what is wrong with it. */
function convertedIn(body: Buffer, scope: ReviewScope): readonly JsonValue[] | string {
  const review = parse(body);
  if (typeof review === 'string') return review;
  const foreign = foreignReview(review, scope.reviewVersion, body);
  if (foreign !== '') return foreign;
  const response = objectAt(review, 'response');
  if (response === undefined) return 'no response provided';
  const uid = stringAt(response, 'uid');
  if (uid !== scope.uid) {
    return `expected response.uid=${JSON.stringify(scope.uid)}, got ${JSON.stringify(uid)}`;
  }
  const status = stringAt(response, 'result', 'status');
  if (status !== 'Success') {
    const message = stringAt(response, 'result', 'message');
    return message === '' ? `response.result.status was '${status}', not 'Success'` : message;
  }
  return listAt(response, 'convertedObjects');
}

const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

/** What is wrong with the kind of an answer; upstream decodes it into the kind that it sent. */
function foreignReview(review: JsonObject, wanted: string, body: Buffer): string {
  const kind = stringAt(review, 'kind');
  const apiVersion = stringAt(review, 'apiVersion');
  if (kind === '') return `Object 'Kind' is missing in '${body.toString('utf8')}'`;
  const version = REVIEW_VERSIONS.find((one) => apiVersion === `${GROUP}/${one}`);
  if (kind !== 'ConversionReview' || version === undefined) {
    const scheme = 'in scheme "pkg/runtime/scheme.go:111"';
    return `no kind "${kind}" is registered for version "${apiVersion}" ${scheme}`;
  }
  if (version === wanted) return '';
  return `converting (${version}.${kind}) to (${wanted}.${kind}): unknown conversion`;
}

function parse(body: Buffer): JsonObject | string {
  let found = 'string';
  try {
    const value = JSON.parse(body.toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
    found = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  } catch (error) {
    // what is no JSON is a string to upstream, which reads YAML, too
    if (!(error instanceof SyntaxError)) throw error;
  }
  const why = `json: cannot unmarshal ${found} into Go value of type ${KIND_STRUCT}`;
  return `couldn't get version/kind; json parse error: ${why}`;
}

function foreignType(one: JsonValue, original: JsonObject, desired: string): string {
  if (!isObject(one)) return 'the webhook returned no object there';
  const version = stringAt(one, 'apiVersion');
  if (version !== desired) {
    return `invalid groupVersion (expected ${desired}, received ${version})`;
  }
  const kind = stringAt(original, 'kind');
  const received = stringAt(one, 'kind');
  return received === kind ? '' : `invalid kind (expected ${kind}, received ${received})`;
}

function otherIdentity(one: JsonValue, original: JsonObject): string {
  for (const field of ['name', 'namespace'] as const) {
    const own = stringAt(original, 'metadata', field);
    const theirs = stringAt(one ?? undefined, 'metadata', field);
    if (own !== theirs) return `must have the same ${field}: ${own} != ${theirs}`;
  }
  const own = stringAt(original, 'metadata', 'uid');
  const theirs = stringAt(one ?? undefined, 'metadata', 'uid');
  return own === theirs ? '' : `must have the same UID: ${own} != ${theirs}`;
}

/** Of metadata, labels and annotations are the webhook's to change, and nothing else. */
function withMetadataOf(original: JsonObject, converted: JsonObject): JsonObject | string {
  const { metadata: given } = converted;
  if (given === undefined) return 'missing metadata in converted object';
  if (!isObject(given)) return `invalid metadata of type ${typeName(given)} in converted object`;
  const metadata: JsonObject = { ...objectAt(original, 'metadata') };
  for (const field of ['labels', 'annotations'] as const) {
    const values = given[field];
    delete metadata[field];
    if (values === undefined || values === null) continue;
    if (!isObject(values)) {
      return `invalid metadata.${field} of type ${typeName(values)} in converted object`;
    }
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === 'string') continue;
      const what = `metadata.${field}[${key}] must be a string`;
      return `${what}, but is ${typeName(value)} in converted object`;
    }
    metadata[field] = values;
  }
  const { kind, apiVersion, metadata: _, ...rest } = converted;
  return { kind: kind ?? '', apiVersion: apiVersion ?? '', metadata, ...rest };
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
