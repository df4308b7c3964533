/**
 * The AdmissionReview that a webhook answers with, read as Go's decoder reads it: its failures are
 * what operators find in the refusals, and with `failurePolicy: Ignore` decide whether a write goes
 * on. YAML is read like JSON, and members that are not known are passed over.
 */
import { base64Fault } from '@megaplane/machinery/base64';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { syntaxError } from '@megaplane/machinery/json-syntax';
import { KIND_STRUCT } from '../custom/custom-objects.ts';
import { parseYaml } from '../yaml-body.ts';

const GROUP = 'admission.k8s.io';
const KIND = 'AdmissionReview';
const VERSIONS: readonly string[] = ['v1', 'v1beta1'];
const SCHEME = 'in scheme "pkg/runtime/scheme.go:111"';

/** What was read: `response` in JSON of the right types, null where there is none. */
export type Answer =
  | {
      readonly ok: true;
      /** `group/version, Kind=kind` as it was sent. */
      readonly kind: string;
      readonly response: JsonObject | null;
    }
  | { readonly ok: false; readonly why: string };

/** Reads the body of an answer to a review of `version`. */
export function readAnswer(body: Buffer, version: string): Answer {
  const text = body.toString('utf8');
  const parsed = parse(text);
  if (typeof parsed === 'string')
    return fail(`couldn't get version/kind; json parse error: ${parsed}`);
  const { review } = parsed;
  const apiVersion = typeOf(review, 'apiVersion');
  const kind = typeOf(review, 'kind');
  const foreign = foreignKind(apiVersion || `${GROUP}/${version}`, kind || KIND, version);
  if (foreign !== '') return fail(foreign);
  const group = apiVersion === '' || !apiVersion.includes('/') ? `/${apiVersion}` : apiVersion;
  const told = `${group}, Kind=${kind}`;
  const response = review['response'] ?? null;
  if (response === null) return { ok: true, kind: told, response: null };
  if (!isObject(response)) {
    return fail(unfit(response, `AdmissionReview.response of type ${version}.AdmissionResponse`));
  }
  const fault = responseFault(response, version);
  return fault === '' ? { ok: true, kind: told, response } : fail(fault);
}

function fail(why: string): Answer {
  return { ok: false, why };
}

function typeOf(review: JsonObject, name: string): string {
  const value = review[name];
  return typeof value === 'string' ? value : '';
}

function parse(text: string): { readonly review: JsonObject } | string {
  const isJson = text.trimStart().startsWith('{');
  const fault = isJson ? syntaxError(text) : '';
  if (fault !== '') return fault;
  const parsed = isJson ? { value: JSON.parse(text) as JsonValue } : parseYaml(text);
  if ('error' in parsed) return parsed.error;
  const { value } = parsed;
  if (value === null) return { review: {} };
  if (isObject(value)) return { review: value };
  return `json: cannot unmarshal ${wordOf(value)} into Go value of type ${KIND_STRUCT}`;
}

/** What is wrong with the kind; upstream decodes into the kind that it sent. */
function foreignKind(apiVersion: string, kind: string, wanted: string): string {
  const own = VERSIONS.find((one) => apiVersion === `${GROUP}/${one}`);
  const isReview = kind === KIND && own !== undefined;
  if (isReview && own === wanted) return '';
  const isStatus = kind === 'Status' && apiVersion === 'v1';
  if (!isReview && !isStatus) {
    return `no kind "${kind}" is registered for version "${apiVersion}" ${SCHEME}`;
  }
  return `converting (${own ?? 'v1'}.${kind}) to (${wanted}.${KIND}): unknown conversion`;
}

/** What Go calls a JSON value that it cannot use. */
function wordOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  return value === null ? 'null' : typeof value === 'boolean' ? 'bool' : typeof value;
}

function unfit(value: JsonValue, field: string): string {
  return `json: cannot unmarshal ${wordOf(value)} into Go struct field ${field}`;
}

type Check = (value: JsonValue, path: string) => string;

const text: Check = (value, path) => (typeof value === 'string' ? '' : unfit(value, path));
const plain = (type: string): Check => {
  return (value, path) => text(value, `${path} of type ${type}`);
};
const number =
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

const STATUS: Readonly<Record<string, Check>> = {
  status: plain('string'),
  message: plain('string'),
  reason: plain('v1.StatusReason'),
  code: number('int32'),
  details: (value, path) => membersFault(value, DETAILS, 'StatusDetails', path, 'v1.StatusDetails'),
};

function responseFault(response: JsonObject, version: string): string {
  const checks: Readonly<Record<string, Check>> = {
    uid: plain('types.UID'),
    allowed: (value, path) =>
      typeof value === 'boolean' ? '' : unfit(value, `${path} of type bool`),
    status: (value, path) => membersFault(value, STATUS, 'Status', path, 'v1.Status'),
    patch: bytesFault,
    patchType: plain(`${version}.PatchType`),
    auditAnnotations: (value, path) => {
      if (!isObject(value)) return unfit(value, `${path} of type map[string]string`);
      return firstFault(Object.values(value), (item) => plain('string')(item, path));
    },
    warnings: (value, path) => {
      if (!Array.isArray(value)) return unfit(value, `${path} of type []string`);
      return firstFault(value, (item) => plain('string')(item, path));
    },
  };
  return membersFault(response, checks, 'AdmissionResponse', '.response', '');
}

const bytesFault: Check = (value, path) => {
  if (Array.isArray(value)) {
    return firstFault(value, (item) => number('uint8')(item, path));
  }
  if (typeof value !== 'string') return unfit(value, `${path} of type []uint8`);
  const at = base64Fault(value);
  return at < 0 ? '' : `illegal base64 data at input byte ${at}`;
};

function firstFault(
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
function membersFault(
  value: JsonValue,
  checks: Readonly<Record<string, Check>>,
  struct: string,
  path: string,
  type: string,
): string {
  const inner = path.slice(path.indexOf('.'));
  if (!isObject(value)) return unfit(value, `${path} of type ${type}`);
  for (const [name, member] of Object.entries(value)) {
    const check = checks[name];
    if (check === undefined || member === null || member === undefined) continue;
    const fault = check(member, `${struct}${inner}.${name}`);
    if (fault !== '') return fault;
  }
  return '';
}
