/** From the bytes of a request to an object of the kind that the URL expects. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  decodeJsonBody,
  decodeJsonOptions,
  decodeProtobufBody,
  decodeProtobufOptions,
  unrecognized,
  type Body,
  type ExpectedKind,
} from '@megaplane/machinery/request-body';
import {
  badRequest,
  failed,
  requestEntityTooLarge,
  success,
  unsupportedMediaType,
  type Result,
} from '@megaplane/machinery/status';
import type { Call } from './call.ts';
import type { CustomVersion } from './custom/custom-kind.ts';
import { readCustomJson } from './custom/custom-objects.ts';
import { JSON_TYPE, PROTOBUF_TYPE, YAML_TYPE } from './negotiation.ts';
import { parseYaml, yamlComplaints } from './yaml-body.ts';

/** Upstream's limit of a request's body. */
export const BODY_BYTES_MAX: number = 3 * 1024 * 1024;

const BODY_TYPES: readonly string[] = [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE];
const CUSTOM_TYPES: readonly string[] = [JSON_TYPE, YAML_TYPE];

/** An object in its type's form, and what strict decoding would complain about. */
export interface Normal {
  readonly object: JsonObject;
  /** `unknown field "spec.foo"`, `duplicate field "spec.x"`, in upstream's order. */
  readonly complaints: readonly string[];
  /** A refusal that comes after what the complaints lead to: another version than the URL's. */
  readonly mismatch?: string;
}

/** The media type of the body without its parameters. */
export function mediaTypeOf(call: Call): string {
  const header = call.exchange.header('content-type') ?? '';
  if (header === JSON_TYPE || header === PROTOBUF_TYPE) return header;
  return (header.split(';')[0] ?? '').trim().toLowerCase();
}

/** Refuses a body above the limit. */
export function checkSize(call: Call): Result<true> {
  if (call.body.length <= BODY_BYTES_MAX) return success(true);
  return failed(requestEntityTooLarge(`limit is ${BODY_BYTES_MAX}`));
}

/**
 * Decodes the body; kind and apiVersion are filled in where it names none. Empty lists and maps
 * stay in what is to be stored (`hasVoids`).
 */
export function readBody(
  call: Call,
  expected: ExpectedKind,
  isStrict: boolean,
  custom: CustomVersion | null = null,
  hasVoids = false,
): Result<Normal> {
  const size = checkSize(call);
  if (!size.ok) return size;
  const type = mediaTypeOf(call);
  if (custom !== null) return readCustom(call, type, expected, isStrict, custom);
  if (type !== '' && !BODY_TYPES.includes(type)) return failed(unsupportedMediaType(BODY_TYPES));
  const decoded = decode(call.body, type, expected, isStrict, hasVoids);
  if (!decoded.ok) return failed(badRequest(decoded.message));
  return success({ object: decoded.object, complaints: decoded.strictErrors });
}

/** Options in a body: their kind counts, whatever group and version it is said to be of. */
export function readOptionsBody(call: Call, kind: string): Result<JsonObject> {
  const size = checkSize(call);
  if (!size.ok) return size;
  const type = mediaTypeOf(call);
  if (type !== '' && !BODY_TYPES.includes(type)) return failed(unsupportedMediaType(BODY_TYPES));
  const decoded = decodeOptions(call.body, type, kind);
  return decoded.ok ? success(decoded.object) : failed(badRequest(decoded.message));
}

function decodeOptions(bytes: Buffer, type: string, kind: string): Body {
  if (type === PROTOBUF_TYPE) {
    // client-go names the group of the resource, which says nothing about the type
    return decodeProtobufOptions(bytes, kind);
  }
  if (type !== YAML_TYPE) return decodeJsonOptions(bytes, kind);
  const json = jsonOfYaml(bytes, { apiVersion: 'v1', kind });
  return typeof json === 'string' ? { ok: false, message: json } : decodeJsonOptions(json, kind);
}

function readCustom(
  call: Call,
  type: string,
  expected: ExpectedKind,
  isStrict: boolean,
  custom: CustomVersion,
): Result<Normal> {
  if (type !== '' && !CUSTOM_TYPES.includes(type)) {
    return failed(unsupportedMediaType(CUSTOM_TYPES));
  }
  if (type !== YAML_TYPE) return readCustomJson(call.body, custom, expected, isStrict);
  const json = jsonOfYaml(call.body, expected);
  if (typeof json === 'string') return failed(badRequest(json));
  const form = readCustomJson(json, custom, expected, isStrict);
  if (!form.ok || !isStrict) return form;
  const doubles = yamlComplaints(call.body.toString('utf8'));
  return success({ ...form.value, complaints: [...doubles, ...form.value.complaints] });
}

/** The text of a document as JSON, or what is wrong with it. */
function jsonOfYaml(bytes: Buffer, expected: ExpectedKind): Buffer | string {
  const parsed = parseYaml(bytes.toString('utf8'));
  if (!('error' in parsed)) return Buffer.from(JSON.stringify(parsed.value));
  return unrecognized(bytes, 0, bytes.length, expected, parsed.error).message;
}

function decode(
  bytes: Buffer,
  type: string,
  expected: ExpectedKind,
  isStrict: boolean,
  hasVoids: boolean,
): Body {
  if (type === PROTOBUF_TYPE) return decodeProtobufBody(bytes, 0, bytes.length, expected);
  if (type !== YAML_TYPE)
    return decodeJsonBody(bytes, 0, bytes.length, expected, isStrict, hasVoids);
  const json = jsonOfYaml(bytes, expected);
  if (typeof json === 'string') return { ok: false, message: json };
  const body = decodeJsonBody(json, 0, json.length, expected, isStrict, hasVoids);
  if (!body.ok || !isStrict) return body;
  return {
    ...body,
    strictErrors: [...yamlComplaints(bytes.toString('utf8')), ...body.strictErrors],
  };
}
