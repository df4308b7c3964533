/**
 * Reviews that webhooks answer with, read as Go's decoder reads them: its failures are what
 * operators find in the refusals. YAML is read like JSON, and members that are not known are
 * passed over.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { syntaxError } from '@megaplane/machinery/json-syntax';
import { KIND_STRUCT, wordOf } from '../apiextensions/schema/custom-objects.ts';
import { parseYaml } from '../request/yaml/yaml-body.ts';

const VERSIONS: readonly string[] = ['v1', 'v1beta1'];
/** Of an answer in YAML, which is read in one turn: 400 KB of brackets take seconds. */
const YAML_LENGTH_MAX: number = 4 * 1024;
const SCHEME = 'in scheme "pkg/runtime/scheme.go:111"';

/** What was asked for: a kind of `group` in the version that was sent. */
export interface Reviewed {
  readonly group: string;
  readonly kind: string;
  readonly version: string;
}

/** `told` is `group/version, Kind=kind` as it was sent. */
export type Decoded =
  | { readonly ok: true; readonly told: string; readonly review: JsonObject }
  | { readonly ok: false; readonly why: string };

/** Reads the text of an answer; its members are looked at by the caller. */
export function decodeReview(text: string, wanted: Reviewed): Decoded {
  const parsed = parse(text);
  if (typeof parsed === 'string') {
    return { ok: false, why: `couldn't get version/kind; json parse error: ${parsed}` };
  }
  const { review } = parsed;
  const apiVersion = textOf(review, 'apiVersion');
  const kind = textOf(review, 'kind');
  const foreign = foreignKind(
    apiVersion || `${wanted.group}/${wanted.version}`,
    kind || wanted.kind,
    wanted,
  );
  if (foreign !== '') return { ok: false, why: foreign };
  const group = apiVersion === '' || !apiVersion.includes('/') ? `/${apiVersion}` : apiVersion;
  return { ok: true, told: `${group}, Kind=${kind}`, review };
}

function textOf(review: JsonObject, name: string): string {
  const value = ownMember(review, name);
  return typeof value === 'string' ? value : '';
}

function parse(text: string): { readonly review: JsonObject } | string {
  const isJson = text.trimStart().startsWith('{');
  const fault = isJson ? syntaxError(text) : '';
  if (fault !== '') return fault;
  if (!isJson && text.length > YAML_LENGTH_MAX) {
    return `yaml: more than ${YAML_LENGTH_MAX} characters, which are read as JSON alone`;
  }
  const parsed = isJson ? { value: parseJson(text) } : parseYaml(text);
  if ('error' in parsed) return parsed.error;
  const { value } = parsed;
  if (value === null) return { review: {} };
  if (isObject(value)) return { review: value };
  return `json: cannot unmarshal ${wordOf(value)} into Go value of type ${KIND_STRUCT}`;
}

/** What is wrong with the kind; upstream decodes into the kind that it sent. */
function foreignKind(apiVersion: string, kind: string, wanted: Reviewed): string {
  const own = VERSIONS.find((one) => apiVersion === `${wanted.group}/${one}`);
  const isReview = kind === wanted.kind && own !== undefined;
  if (isReview && own === wanted.version) return '';
  const isStatus = kind === 'Status' && apiVersion === 'v1';
  if (!isReview && !isStatus) {
    return `no kind "${kind}" is registered for version "${apiVersion}" ${SCHEME}`;
  }
  const target = `${wanted.version}.${wanted.kind}`;
  return `converting (${own ?? 'v1'}.${kind}) to (${target}): unknown conversion`;
}

/** What Go says of a value that `field` cannot take. */
export function unfit(value: JsonValue, field: string): string {
  return `json: cannot unmarshal ${wordOf(value)} into Go struct field ${field}`;
}

/** What is wrong with a value at a path; empty where nothing is. */
export type Check = (value: JsonValue, path: string) => string;

const text: Check = (value, path) => (typeof value === 'string' ? '' : unfit(value, path));
/** A string of a type of its own. */
export const plain = (type: string): Check => {
  return (value, path) => text(value, `${path} of type ${type}`);
};
/** A whole number. */
export const number =
  (type: string): Check =>
  (value, path) =>
    Number.isInteger(value) ? '' : unfit(value, `${path} of type ${type}`);

const CAUSE: Readonly<Record<string, Check>> = {
  reason: plain('v1.CauseType'),
  message: plain('string'),
  field: plain('string'),
};

const DETAILS: Readonly<Record<string, Check>> = {
  name: plain('string'),
  group: plain('string'),
  kind: plain('string'),
  uid: plain('types.UID'),
  retryAfterSeconds: number('int32'),
  causes: (value, path) => {
    if (!Array.isArray(value)) return unfit(value, `${path} of type []v1.StatusCause`);
    return firstFault(value, (item) =>
      membersFault(item, CAUSE, 'StatusCause', path, 'v1.StatusCause'),
    );
  },
};

/** The members of a Status. */
export const STATUS: Readonly<Record<string, Check>> = {
  status: plain('string'),
  message: plain('string'),
  reason: plain('v1.StatusReason'),
  code: number('int32'),
  details: (value, path) => membersFault(value, DETAILS, 'StatusDetails', path, 'v1.StatusDetails'),
};

/** The first fault of values, nulls aside. */
export function firstFault(
  values: readonly (JsonValue | undefined)[],
  check: (value: JsonValue) => string,
): string {
  for (const value of values) {
    if (value === null || value === undefined) continue;
    const fault = check(value);
    if (fault !== '') return fault;
  }
  return '';
}

/**
 * The first member of a wrong type. `path` is that of the value from the review on, and `.status`
 * in `AdmissionResponse.status`; Go names the struct that a field is in, and then the whole path.
 */
export function membersFault(
  value: JsonValue,
  checks: Readonly<Record<string, Check>>,
  struct: string,
  path: string,
  type: string,
): string {
  const inner = path.slice(path.indexOf('.'));
  if (!isObject(value)) return unfit(value, `${path} of type ${type}`);
  for (const [name, member] of Object.entries(value)) {
    const check = ownMember(checks, name);
    if (check === undefined || member === null || member === undefined) continue;
    const fault = check(member, `${struct}${inner}.${name}`);
    if (fault !== '') return fault;
  }
  return '';
}
