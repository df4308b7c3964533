/**
 * Custom resources on their way in: from the bytes of a request to an object in the form that its
 * schema allows, and what is wrong with it. Built-in kinds have typed tables for this.
 */
import { putMember } from '@megaplane/base/members';
import { invalidValue, type FieldError } from '@megaplane/machinery/fielderrors';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { decodedText, parseJson } from '@megaplane/machinery/json-text';
import {
  isNumber,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@megaplane/machinery/json-value';
import { syntaxError } from '@megaplane/machinery/json-syntax';
import { groupVersionOf } from '@megaplane/machinery/kinds';
import { refit, type Body } from '@megaplane/machinery/request-body';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import { countMembers, strictErrors } from '@megaplane/machinery/strict-json';
import { countMembersIn } from '@megaplane/machinery/typed-json';
import { finalizerWarnings } from '@megaplane/machinery/warnings/finalizer-warnings';
import {
  checkMetadata,
  checkMetadataUpdate,
  SEGMENT_NAME,
  SUBDOMAIN_NAME,
} from '@megaplane/machinery/validation-metadata';
import { toStored } from '../../storage/conversion.ts';
import type { Served } from '../../storage/served.ts';
import type { CustomVersion } from '../../storage/served.ts';
import { infiniteNumber } from '@megaplane/machinery/json-reader';
import type { Normal } from './normal.ts';

/** Bytes of a body that error texts show. */
const SUMMARY_BYTES = 30;

/** What upstream reads kind and version into, as Go prints it. */
export const KIND_STRUCT: string =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';

/** What a request expects its body to be. */
interface Expected {
  readonly apiVersion: string;
  readonly kind: string;
}

/** An object of a custom kind from JSON; `isTracked` reports what its schema does not have. */
export function readCustomJson(
  bytes: Buffer,
  custom: CustomVersion,
  expected: Expected,
  isTracked: boolean,
): Result<Normal> {
  const text = decodedText(bytes);
  const value = parse(text);
  const members = value === undefined ? 0 : countMembers(bytes, 0, bytes.length);
  if (value === undefined || members < 0) {
    const cause = `couldn't get version/kind; json parse error: ${syntaxError(text)}`;
    return unrecognized(text, expected, cause);
  }
  if (!isObject(value) && value !== null) {
    const why = `json: cannot unmarshal ${wordOf(value)} into Go value of type ${KIND_STRUCT}`;
    return unrecognized(text, expected, `couldn't get version/kind; json parse error: ${why}`);
  }
  const infinite = infiniteNumber(text);
  if (infinite !== undefined) {
    const why = `json: cannot unmarshal number ${infinite} into Go value of type float64`;
    return unrecognized(text, expected, why);
  }
  const object = isObject(value) ? value : {};
  for (const field of ['kind', 'apiVersion']) {
    const named = object[field];
    if (named === undefined || named === null || typeof named === 'string') continue;
    const place = `Go struct field .${field} of type string`;
    const why = `json: cannot unmarshal ${wordOf(named)} into ${place}`;
    return unrecognized(text, expected, `couldn't get version/kind; json parse error: ${why}`);
  }
  const kind = stringAt(object, 'kind');
  if (kind === '') return unrecognized(text, expected, `Object 'Kind' is missing in '${text}'`);
  const doubles =
    isTracked && countMembersIn(value) !== members
      ? strictErrors(bytes, 0, bytes.length, undefined)
      : [];
  return finish(object, doubles, custom, expected, isTracked);
}

/** What Go calls a JSON value that it cannot use. */
export function wordOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  return typeof value === 'boolean' ? 'bool' : isNumber(value) ? 'number' : typeof value;
}

function finish(
  object: JsonObject,
  doubles: readonly string[],
  custom: CustomVersion,
  expected: Expected,
  isTracked: boolean,
): Result<Normal> {
  const apiVersion = stringAt(object, 'apiVersion');
  const kind = stringAt(object, 'kind');
  if (object['apiVersion'] === null) {
    const why = '.apiVersion accessor error: <nil> is of the type <nil>, expected string';
    const head = `${kind} in version "" cannot be handled as a ${expected.kind}`;
    return failed(badRequest(`${head}: ${why}`));
  }
  if (apiVersion !== expected.apiVersion) {
    // upstream has no schema for what the kind has not, so that nothing of it is known
    const { versions, group } = custom.kind.facts;
    const isKnown = versions.some(({ name }) => `${group}/${name}` === apiVersion);
    const names = isTracked && !isKnown ? Object.keys(object) : [];
    const foreign = names.filter((name) => !ROOT.has(name));
    const complaints = [...doubles, ...foreign.map(unknownField)];
    return success({ object, complaints, mismatch: mismatchOf(apiVersion, expected) });
  }
  const formed = formCustom(custom, object, isTracked);
  if (!formed.ok) {
    const version = groupVersionOf(apiVersion)?.version ?? apiVersion;
    const head = `${kind} in version "${version}" cannot be handled as a ${expected.kind}`;
    return failed(badRequest(`${head}: ${formed.message}`));
  }
  return success({ object: formed.object, complaints: [...doubles, ...formed.strictErrors] });
}

const ROOT: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

function unknownField(path: string): string {
  return `unknown field ${JSON.stringify(path)}`;
}

function mismatchOf(said: string, { apiVersion }: Expected): string {
  const text = `does not match the expected API version (${apiVersion})`;
  return `the API version in the data (${said}) ${text}`;
}

function parse(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function unrecognized(text: string, { kind }: Expected, cause: string): Result<never> {
  const head = `the object provided is unrecognized (must be of type ${kind})`;
  const isObjectLike = text.startsWith('{');
  const shown = (part: string): string =>
    isObjectLike ? part : Buffer.from(part, 'utf8').toString('hex');
  const isLong = text.length > SUMMARY_BYTES;
  const cut = isLong ? `${shown(text.slice(0, SUMMARY_BYTES))} ...` : shown(text);
  return failed(badRequest(`${head}: ${cause} (${cut === '' ? '<empty>' : cut})`));
}

/** A type of which only the metadata is looked at. */
const METADATA_OWNER = findTypeOfKind('v1', 'Namespace');

/**
 * Brings an object into the form that its schema allows, with typed metadata first; what was
 * dropped is told where `isTracked`.
 */
export function formCustom(custom: CustomVersion, object: JsonObject, isTracked: boolean): Body {
  const formed = formApplied(object, isTracked);
  if (!formed.ok) return formed;
  const schema = custom.schemas.schemaOf(custom);
  const { unknown, fault } = schema.decode(formed.object, { isTracked, isStored: false });
  if (fault !== null) return { ok: false, message: `${fault.field}: ${fault.body}` };
  return { ...formed, strictErrors: [...formed.strictErrors, ...unknown.map(unknownField)] };
}

/**
 * An object that an apply made: nothing is dropped of it but unknown metadata. Its fields fit their
 * types, and a null that somebody applies is one, which the schema may refuse.
 */
export function formApplied(object: JsonObject, isTracked: boolean): Body {
  const { kind, apiVersion, metadata, ...rest } = object;
  const strict: string[] = [];
  let own: JsonObject = {};
  if (metadata !== undefined && METADATA_OWNER !== undefined) {
    const fitted = refit(METADATA_OWNER, { metadata }, isTracked);
    if (!fitted.ok) return { ok: false, message: ofMetadata(fitted.message) };
    own = objectAt(fitted.object, 'metadata') ?? {};
    // no owners at all: their tracking ends
    const { managedFields } = objectAt(object, 'metadata') ?? {};
    if (Array.isArray(managedFields) && managedFields.length === 0) own['managedFields'] = [];
    strict.push(...fitted.strictErrors);
  }
  const formed: JsonObject = {
    kind: kind ?? '',
    apiVersion: apiVersion ?? '',
    metadata: own,
    ...rest,
  };
  return { ok: true, object: formed, strictErrors: strict };
}

/**
 * An object that admission has patched: what of its metadata no field can be is left out, as
 * upstream does when it stores it. Owners are looked at before that, each of their fields alone.
 */
export function withFitMetadata(object: JsonObject): JsonObject {
  const metadata = objectAt(object, 'metadata');
  if (metadata === undefined || METADATA_OWNER === undefined) return object;
  const fits = (part: JsonObject): boolean =>
    METADATA_OWNER === undefined || refit(METADATA_OWNER, { metadata: part }, false).ok;
  if (fits(metadata)) return object;
  const left: JsonObject = {};
  for (const [field, value] of Object.entries(metadata)) {
    const own = field === 'ownerReferences' ? withFitOwners(value ?? null) : value;
    if (fits({ [field]: own })) putMember(left, field, own);
  }
  return { ...object, metadata: left };
}

/** Texts of owners that are none are empty. */
function withFitOwners(value: JsonValue): JsonValue {
  if (!Array.isArray(value)) return value;
  return value.map((owner) => {
    if (!isObject(owner)) return owner;
    const texts = ['apiVersion', 'kind', 'name', 'uid'].map((field) => [
      field,
      stringAt(owner, field),
    ]);
    return { ...owner, ...Object.fromEntries(texts) };
  });
}

/** Upstream decodes the metadata by themselves: what is wrong with them is not within anything. */
function ofMetadata(message: string): string {
  return message
    .replace('Go struct field Namespace.metadata of type', 'Go value of type')
    .replace(/ Go struct field (\w+)\.metadata\./, ' Go struct field $1.');
}

/** Fills in the defaults of the schema, in place. */
export function defaultCustom(custom: CustomVersion, object: JsonObject): JsonObject {
  custom.schemas.schemaOf(custom).applyDefaults(object);
  return object;
}

const READ = { isTracked: false, isStored: true } as const;

/**
 * A stored object in the form that its schemas give it now: pruned and defaulted by the version
 * that it is stored in, then pruned by the one that is asked for, whose defaults are for what
 * clients send. Keeps the apiVersion that it has.
 */
export function formStored(custom: CustomVersion, object: JsonObject): JsonObject {
  const { kind, facts, schemas } = custom;
  const stored = stringAt(object, 'apiVersion').split('/')[1] ?? '';
  const home = stored === facts.name ? undefined : kind.schemaOwner(stored);
  const first = schemas.schemaOf(home ?? custom);
  first.decode(object, READ);
  first.applyDefaults(object);
  if (home !== undefined) schemas.schemaOf(custom).decode(object, READ);
  return object;
}

/**
 * An object that is stored, or is to be, in the form that the version gives it in which it is: as
 * upstream decodes it, before a webhook sees it.
 */
export function formKept({ kind, schemas }: CustomVersion, object: JsonObject): JsonObject {
  const home = kind.schemaOwner(stringAt(object, 'apiVersion').split('/')[1] ?? '');
  if (home === undefined) return object;
  const schema = schemas.schemaOf(home);
  schema.decode(object, READ);
  schema.applyDefaults(object);
  return object;
}

/**
 * What a webhook made in a version, pruned; the defaults of the version are for what clients send.
 * A text says what of it the version cannot have.
 */
export function formConverted(
  { kind, schemas }: CustomVersion,
  version: string,
  made: JsonObject,
): JsonObject | string {
  const owner = kind.schemaOwner(version);
  const object = { ...made };
  if (owner === undefined) return object;
  const { fault } = schemas.schemaOf(owner).decode(object, { isTracked: false, isStored: false });
  return fault === null ? object : `${fault.field}: ${fault.body}`;
}

/** Objects that were applied or patched by admission: their schemas have not seen all they hold. */
const unpruned = new WeakSet<JsonObject>();

export function markUnpruned(object: JsonObject): void {
  unpruned.add(object);
}

/**
 * An object as it is to be stored, by way of its settled form: without what the version that it is
 * stored in does not have, and without nulls that it may not have, which upstream stores and never
 * shows. The object itself stays as it is.
 */
export function keptForm(
  served: Served,
  object: JsonObject,
  settled: JsonObject = object,
): JsonObject {
  const { custom, isConverted, resource } = served;
  const stored = toStored(settled, resource);
  if (custom === null) return stored;
  const { kind, schemas } = custom;
  if ((!isConverted || kind.facts.areAlike) && !unpruned.has(object)) return stored;
  const home = isConverted ? kind.schemaOwner(kind.facts.storageVersion) : custom;
  if (home === undefined) return stored;
  const own = structuredClone(stored);
  schemas.schemaOf(home).decode(own, READ);
  return own;
}

/** Takes texts for the client. */
export type Warn = (text: string) => void;

function typeFaults({ kind: { facts }, facts: version }: CustomVersion, object: JsonObject) {
  const found: FieldError[] = [];
  const kind = stringAt(object, 'kind');
  const { names, group } = facts;
  if (kind !== names.kind) found.push(invalidValue('kind', kind, `must be ${names.kind}`));
  const own = `${group}/${version.name}`;
  const said = stringAt(object, 'apiVersion');
  if (said !== own) found.push(invalidValue('apiVersion', said, `must be ${own}`));
  return found;
}

/**
 * What is wrong with an object that is to be stored; `previous` is null for a new one. The revision
 * is stripped from objects that are to be stored, and looked for by the rules. `warn` is told what
 * would be refused, had it changed.
 */
export function customFaults(
  custom: CustomVersion,
  object: JsonObject,
  previous: JsonObject | null,
  subresource: string,
  warn: Warn,
): readonly FieldError[] {
  const { isNamespaced } = custom.kind.facts;
  const foreign = typeFaults(custom, object);
  if (foreign.length > 0) return foreign;
  const found: FieldError[] = [];
  const metadata = objectAt(object, 'metadata') ?? {};
  if (previous === null) checkMetadata(found, metadata, isNamespaced, SUBDOMAIN_NAME, false);
  else {
    const stored = objectAt(previous, 'metadata') ?? {};
    const resourceVersion = stringAt(stored, 'resourceVersion');
    // twice for all kinds and once by the kind itself, as upstream's causes list them
    const revised = { ...metadata, resourceVersion };
    checkMetadata(found, revised, isNamespaced, SEGMENT_NAME, false);
    checkMetadataUpdate(found, revised, stored, false);
    checkMetadataUpdate(found, revised, stored, false);
  }
  const schema = custom.schemas.schemaOf(custom);
  const part = subresource === 'status' ? 'status' : 'object';
  const scope = { part, scale: custom.facts.scale, found, warn } as const;
  const all = schema.validate(object, previous, scope);
  if (previous === null && all.length === 0) {
    checkMetadata(found, metadata, isNamespaced, SEGMENT_NAME, false);
    all.push(...found);
  }
  if (all.length === 0) for (const text of finalizerWarnings(object, previous)) warn(text);
  return all;
}
