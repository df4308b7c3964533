/**
 * ConversionReview: what a conversion webhook is asked, and what its answer means. Texts are
 * upstream's, up to `conversion webhook for <kind>`.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

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
    if (originals.length === 1) return fail('failed, no objects returned');
    return fail(`returned ${found.length} objects, expected ${originals.length}`);
  }
  const objects: JsonObject[] = [];
  for (const [index, original] of originals.entries()) {
    const one = found[index] ?? null;
    const where = originals.length === 1 ? '' : ` in object at index ${index}`;
    const place = originals.length === 1 ? 'object' : `converted object at index ${index}`;
    const fault = faultOf(one, original, scope.desired);
    if (fault !== '') return fail(`returned invalid ${place}: ${fault}`);
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
  const wanted = `${GROUP}/${scope.reviewVersion}, Kind=ConversionReview`;
  const got = `${stringAt(review, 'apiVersion')}, Kind=${stringAt(review, 'kind')}`;
  if (got !== wanted) return `expected webhook response of ${wanted}, got ${got}`;
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

function parse(body: Buffer): JsonObject | string {
  try {
    const value = JSON.parse(body.toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return "couldn't get version/kind; json parse error: the answer is no JSON object";
}

function faultOf(one: JsonValue, original: JsonObject, desired: string): string {
  if (!isObject(one)) return 'the webhook returned no object there';
  const version = stringAt(one, 'apiVersion');
  if (version !== desired) {
    return `invalid groupVersion (expected ${desired}, received ${version})`;
  }
  const kind = stringAt(original, 'kind');
  const received = stringAt(one, 'kind');
  if (received !== kind) return `invalid kind (expected ${kind}, received ${received})`;
  if (one['metadata'] === undefined) return '';
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
