/**
 * Status objects: how every failure of the Kubernetes API looks on the wire.
 *
 * A failure is a value. The code that finds it builds a `Status` with one of the functions below;
 * the edge encodes it. Codes and fixed texts live in REASONS and nowhere else.
 */
import { aggregate, FIELD_ERROR_KINDS, fieldErrorText, type FieldError } from './fielderrors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { escapedJson, quoted } from '../json/quoting.ts';

/** Reason -> HTTP code, and the text that the server gives when it has nothing better to say. */
export const REASONS = {
  BadRequest: { code: 400, text: 'the server rejected our request for an unknown reason' },
  Unauthorized: { code: 401, text: 'Unauthorized' },
  Forbidden: { code: 403, text: 'forbidden' },
  NotFound: { code: 404, text: 'the server could not find the requested resource' },
  MethodNotAllowed: {
    code: 405,
    text: 'the server does not allow this method on the requested resource',
  },
  NotAcceptable: {
    code: 406,
    text: 'the server was unable to respond with a content type that the client supports',
  },
  AlreadyExists: { code: 409, text: 'the server reported a conflict' },
  Conflict: { code: 409, text: 'the server reported a conflict' },
  Expired: { code: 410, text: 'The resourceVersion for the provided list is too old.' },
  RequestEntityTooLarge: { code: 413, text: 'Request entity too large' },
  UnsupportedMediaType: { code: 415, text: 'the body of the request was in an unknown format' },
  Invalid: { code: 422, text: 'the server rejected our request due to an error in our request' },
  TooManyRequests: {
    code: 429,
    text: 'the server has received too many requests and has asked us to try again later',
  },
  InternalError: { code: 500, text: 'Internal error occurred' },
  ServerTimeout: {
    code: 500,
    text: 'The operation could not be completed at this time, please try again.',
  },
  ServiceUnavailable: {
    code: 503,
    text: 'the server is currently unable to handle the request',
  },
  Timeout: { code: 504, text: 'Timeout: request did not complete within the allotted timeout' },
} as const;
export type Reason = keyof typeof REASONS;

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** Fields stand in the order in which upstream sends them. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: { readonly continue?: string; readonly resourceVersion?: string };
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code?: number;
}

/** What an operation that may fail in an expected way returns. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly status: Status };

export function success<T>(value: T): Result<T> {
  return { ok: true, value };
}

export function failed(status: Status): { readonly ok: false; readonly status: Status } {
  return { ok: false, status };
}

/** Group and plural (or kind, where upstream puts the kind there): `deployments.apps`, `pods`. */
export interface Qualified {
  readonly group: string;
  readonly name: string;
}

export function qualifiedName({ group, name }: Qualified): string {
  return group === '' ? name : `${name}.${group}`;
}

function failure(
  reason: Reason | '',
  code: number,
  message: string,
  details?: StatusDetails,
): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    ...(message === '' ? {} : { message }),
    ...(reason === '' ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  };
}

function about(
  resource: Qualified,
  name: string,
  more: Pick<StatusDetails, 'causes' | 'retryAfterSeconds'> = {},
): StatusDetails {
  return {
    ...(name === '' ? {} : { name }),
    ...(resource.group === '' ? {} : { group: resource.group }),
    ...(resource.name === '' ? {} : { kind: resource.name }),
    ...more,
  };
}

/** The answer to a request that failed before anything knew which object it is about. */
export function generic(reason: Reason): Status {
  return failure(reason, REASONS[reason].code, REASONS[reason].text, {});
}

export function notFound(resource: Qualified, name: string): Status {
  const message = `${qualifiedName(resource)} ${quoted(name)} not found`;
  return failure('NotFound', 404, message, about(resource, name));
}

/** `isDeleting`: the object that is in the way has a deletionTimestamp. */
export function alreadyExists(resource: Qualified, name: string, isDeleting = false): Status {
  const prefix = isDeleting ? 'object is being deleted: ' : '';
  const message = `${prefix}${qualifiedName(resource)} ${quoted(name)} already exists`;
  return failure('AlreadyExists', 409, message, about(resource, name));
}

/** All tries of a generated name were taken; the client may try again after a second. */
export function generateNameConflict(resource: Qualified, name: string): Status {
  const text = 'the server was not able to generate a unique name for the object';
  const message = `${qualifiedName(resource)} ${quoted(name)} already exists, ${text}`;
  return failure('AlreadyExists', 409, message, about(resource, name, { retryAfterSeconds: 1 }));
}

export const CONFLICT_TEXT =
  'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(resource: Qualified, name: string, why: string = CONFLICT_TEXT): Status {
  const what = `${qualifiedName(resource)} ${quoted(name)}`;
  const message = `Operation cannot be fulfilled on ${what}: ${why}`;
  return failure('Conflict', 409, message, about(resource, name));
}

/** A precondition of a deletion did not hold; upstream names the kind here, not the plural. */
export function preconditionFailed(
  kind: Qualified,
  name: string,
  which: 'UID' | 'ResourceVersion',
  wanted: string,
  found: string,
): Status {
  const end = which === 'UID' ? 'have been deleted and then recreated' : 'have been modified';
  return conflict(
    kind,
    name,
    `the ${which} in the precondition (${wanted}) does not match the ${which} in record ` +
      `(${found}). The object might ${end}`,
  );
}

/** The UID in the body of an update, or of a binding, is not that of the stored object. */
export function storageUidConflict(
  resource: Qualified,
  name: string,
  storageKey: string,
  wanted: string,
  found: string,
): Status {
  return conflict(
    resource,
    name,
    `StorageError: invalid object, Code: 4, Key: ${storageKey}, ResourceVersion: 0, ` +
      'AdditionalErrorMsg: Precondition failed: ' +
      `UID in precondition: ${wanted}, UID in object meta: ${found}`,
  );
}

/** One field that another manager owns: `manager` is already in words (`"m1" using v1`). */
export interface ApplyConflict {
  readonly manager: string;
  readonly field: string;
}

/** Server-side apply met fields of others; `conflicts` sorted by manager, then by field. */
export function applyConflict(conflicts: readonly ApplyConflict[]): Status {
  const causes = conflicts.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }));
  return failure('Conflict', 409, applyConflictText(conflicts), { causes });
}

function applyConflictText(conflicts: readonly ApplyConflict[]): string {
  const [first, ...others] = conflicts;
  if (first !== undefined && others.length === 0) {
    return `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.field}`;
  }
  const fieldsOf = new Map<string, string[]>();
  for (const { manager, field } of conflicts) {
    const fields = fieldsOf.get(manager) ?? [];
    fieldsOf.set(manager, fields);
    fields.push(field);
  }
  const blocks: string[] = [];
  for (const [manager, fields] of fieldsOf) {
    blocks.push([`conflicts with ${manager}:`, ...fields.map((field) => `- ${field}`)].join('\n'));
  }
  return `Apply failed with ${conflicts.length} conflicts: ${blocks.join('\n')}`;
}

/** `kind` is the Kind with its group; an empty one prints as upstream prints it (` "" is ...`). */
export function invalid(kind: Qualified, name: string, errors: readonly FieldError[]): Status {
  const what = `${qualifiedName(kind)} ${quoted(name)} is invalid`;
  const message = errors.length === 0 ? what : `${what}: ${aggregate(errors.map(fieldErrorText))}`;
  const causes = errors.map((error) => ({
    reason: FIELD_ERROR_KINDS[error.kind].reason,
    message: error.body,
    field: error.field,
  }));
  const more = causes.length === 0 ? {} : { causes };
  return failure('Invalid', 422, message, about(kind, name, more));
}

export function badRequest(message: string): Status {
  return failure('BadRequest', 400, message);
}

export function unauthorized(message: string = REASONS.Unauthorized.text): Status {
  return failure('Unauthorized', 401, message);
}

/** An empty `name` or resource leaves its part of the text out. */
export function forbidden(
  resource: Qualified,
  name: string,
  why: string,
  causes?: readonly StatusCause[],
): Status {
  let message = `forbidden: ${why}`;
  if (resource.name !== '') {
    const what = qualifiedName(resource);
    message = `${name === '' ? what : `${what} ${quoted(name)}`} is forbidden: ${why}`;
  }
  const details = about(resource, name, causes === undefined ? {} : { causes });
  return failure('Forbidden', 403, message, details);
}

export function methodNotSupported(resource: Qualified, verb: string): Status {
  const what = quoted(qualifiedName(resource));
  const message = `${verb} is not supported on resources of kind ${what}`;
  return failure('MethodNotAllowed', 405, message, about(resource, ''));
}

/** The type asked for exists, with parameters that do not. */
export function notAcceptable(mediaTypes: readonly string[]): Status {
  const list = mediaTypes.join(', ');
  const message = `only the following media types are accepted: ${list}`;
  return failure('NotAcceptable', 406, message);
}

/** No clause of the Accept header can be served at all. */
export function nothingAcceptable(mediaTypes: readonly string[]): Status {
  const message = `406: Not Acceptable\n\nAvailable representations: ${mediaTypes.join(', ')}`;
  return failure('NotAcceptable', 406, message, {});
}

export function notAcceptableText(message: string): Status {
  return failure('NotAcceptable', 406, message);
}

export function unsupportedMediaType(mediaTypes: readonly string[]): Status {
  const list = mediaTypes.join(', ');
  const text = 'the body of the request was in an unknown format - accepted media types include';
  return failure('UnsupportedMediaType', 415, `${text}: ${list}`);
}

/** A PATCH of an unknown type on a built-in resource. */
export function unsupportedPatchType(): Status {
  return failure('UnsupportedMediaType', 415, '415: Unsupported Media Type', {});
}

export function requestEntityTooLarge(why: string): Status {
  return failure('RequestEntityTooLarge', 413, `Request entity too large: ${why}`);
}

/** The revision that a list, a page or a watch needs is compacted. `continueToken`: a fresh one. */
export function expired(message: string = REASONS.Expired.text, continueToken = ''): Status {
  const status = failure('Expired', 410, message);
  return continueToken === '' ? status : { ...status, metadata: { continue: continueToken } };
}

export const CONTINUE_EXPIRED_TEXT: string =
  'The provided continue parameter is too old to display a consistent list result. You can start ' +
  'a new list without the continue parameter, or use the continue token in this response to ' +
  'retrieve the remainder of the results. Continuing with the provided token results in an ' +
  'inconsistent list - objects that were created, modified, or deleted between the time the ' +
  'first chunk was returned and now may show up in the list.';

/** What a watch says when it starts before the oldest event that is kept. */
export function tooOldResourceVersion(asked: number, oldest: number): Status {
  return expired(`too old resource version: ${asked} (${oldest})`);
}

export function timeout(why = 'request did not complete within the allotted timeout'): Status {
  return failure('Timeout', 504, `Timeout: ${why}`, {});
}

/**
 * A revision that has not happened. Upstream's cache, which answers exact reads, too (v1.34), says
 * when to ask again; its storage, which is asked for what is not cached, does not.
 */
export function tooLargeResourceVersion(
  asked: number | bigint,
  current: number,
  isUncached = false,
): Status {
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`;
  const cause = { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' };
  const again = isUncached ? {} : { retryAfterSeconds: 1 };
  return failure('Timeout', 504, message, { causes: [cause], ...again });
}

export function serverTimeout(
  resource: Qualified,
  verb: string,
  retryAfterSeconds: number,
): Status {
  const what = qualifiedName(resource);
  const message =
    `The ${verb} operation against ${what} could not be completed at this time, ` +
    'please try again.';
  const more = retryAfterSeconds > 0 ? { retryAfterSeconds } : {};
  return failure('ServerTimeout', 500, message, about(resource, '', more));
}

export function tooManyRequests(
  message: string,
  retryAfterSeconds: number,
  causes?: readonly StatusCause[],
): Status {
  return failure('TooManyRequests', 429, message, {
    ...(causes === undefined ? {} : { causes }),
    ...(retryAfterSeconds > 0 ? { retryAfterSeconds } : {}),
  });
}

export function serviceUnavailable(message: string): Status {
  return failure('ServiceUnavailable', 503, message);
}

export function internalError(why: string): Status {
  const message = `Internal error occurred: ${why}`;
  return failure('InternalError', 500, message, { causes: [{ message: why }] });
}

/** Errors that upstream does not classify: 500, the bare text, no reason. */
export function unclassified(message: string): Status {
  return failure('', 500, message);
}

/** The plain `Success` answer; `code` only where upstream sends one (a binding: 201). */
export function successStatus(code?: number, details?: StatusDetails): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...(details === undefined ? {} : { details }),
    ...(code === undefined ? {} : { code }),
  };
}

/** What DELETE answers once the object is gone. */
export function deletedStatus(resource: Qualified, name: string, uid: string): Status {
  return successStatus(undefined, { ...about(resource, name), ...(uid === '' ? {} : { uid }) });
}

/** The code of the HTTP answer that carries this Status. */
export function httpCode(status: Status): number {
  return status.code ?? (status.status === 'Success' ? 200 : 500);
}

/** The JSON body of a Status, ready to send. `isPretty` indents as upstream does for browsers. */
export function statusBytes(status: Status, isPretty = false): Buffer {
  const text = escapedJson(status as unknown as JsonObject, isPretty ? 2 : 0);
  return Buffer.from(isPretty ? text : `${text}\n`);
}

/** Reads a value that may be a Status; undefined where it is something else. */
export function asStatus(value: JsonValue | undefined): Status | undefined {
  if (!isObject(value) || value['kind'] !== 'Status') return undefined;
  return value as unknown as Status;
}
