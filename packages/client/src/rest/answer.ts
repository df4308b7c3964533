/** Answers of the API server as values for control-plane code. */
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';
import { asStatus, REASONS, type Status } from '@megaplane/machinery/status';
import { STATUS_NONE, type ClientRequest, type ClientResponse } from './client.ts';

/** Characters of an undecodable answer that are shown in a message. */
const SHOWN_TEXT_MAX = 200;

/** What upstream's client calls an answer without a decodable Status, by its code. */
const REASON_BY_CODE: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The cause by which upstream's clients mark an answer that was no Status. */
const UNEXPECTED = 'UnexpectedServerResponse';

const GENERAL_TEXTS: Readonly<Record<number, string>> = {
  400: REASONS.BadRequest.text,
  401: 'the server has asked for the client to provide credentials',
  404: REASONS.NotFound.text,
  405: REASONS.MethodNotAllowed.text,
  406: REASONS.NotAcceptable.text,
  409: REASONS.Conflict.text,
  422: REASONS.Invalid.text,
  429: REASONS.TooManyRequests.text,
  503: REASONS.ServiceUnavailable.text,
  504:
    'the server was unable to return a response in the time allotted, but may still be ' +
    'processing the request',
};

/** A failure that no server described. `code` is `STATUS_NONE` when no answer came. */
export function madeUpStatus(code: number, message: string): Status {
  const reason = REASON_BY_CODE[code];
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    ...(reason === undefined ? {} : { reason }),
    ...(code === STATUS_NONE ? {} : { code }),
  };
}

/** The Status that a failed answer carries, or one made up from its code and text. */
export function statusOf(code: number, bytes: Uint8Array, start: number, end: number): Status {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
  const status = asStatus(parse(text));
  if (status !== undefined) return status;
  const shown = text.trim().slice(0, SHOWN_TEXT_MAX);
  const made = madeUpStatus(code, shown === '' ? `the server answered ${code}` : shown);
  return { ...made, details: { causes: [{ reason: UNEXPECTED, message: shown }] } };
}

/**
 * What upstream's clients say of a failure: the server's own words, or general ones, with what was
 * asked for, where the answer was no Status.
 */
export function failureText(code: number, status: Status, verb: string, what: string): string {
  const cause = status.details?.causes?.find((one) => one.reason === UNEXPECTED);
  if (cause === undefined) return status.message ?? `the server did not answer (${code})`;
  return `${generalText(code, cause.message ?? '')} (${verb} ${what})`;
}

function generalText(code: number, said: string): string {
  if (code === 403 || code === 415) return said;
  const known = GENERAL_TEXTS[code];
  if (known !== undefined) return known;
  if (code >= 500) {
    const what = JSON.stringify(said);
    return `an error on the server (${what}) has prevented the request from succeeding`;
  }
  return `the server responded with the status code ${code} but did not return more information`;
}

function parse(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    // No JSON is an answer like any other (plain text of a proxy): the caller shows it.
    return undefined;
  }
}

export function decodeAnswer(
  request: ClientRequest,
  code: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  etag: string = '',
): ClientResponse {
  if (code === STATUS_NONE)
    return noAnswer(request, Buffer.from(bytes).toString('utf8', start, end));
  if (code >= 400) return { ok: false, code, status: statusOf(code, bytes, start, end) };
  const kept = Buffer.from(bytes.subarray(start, end));
  const wantsJson = request.accept === undefined || request.accept.includes('json');
  const value = wantsJson && kept.length > 0 ? parse(kept.toString()) : {};
  if (isObject(value)) return { ok: true, code, object: value, bytes: kept, etag };
  const shown = kept.toString('utf8', 0, SHOWN_TEXT_MAX);
  const message = `${request.method} ${request.path}: expected a JSON object, got: ${shown}`;
  return { ok: false, code, status: madeUpStatus(code, message) };
}

export function noAnswer(request: ClientRequest, why: string): ClientResponse {
  const message = `${request.method} ${request.path}: ${why}`;
  return { ok: false, code: STATUS_NONE, status: madeUpStatus(STATUS_NONE, message) };
}
