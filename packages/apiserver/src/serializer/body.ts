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
import type { Call } from '../request/call.ts';
import type { CustomVersion } from '../storage/served.ts';
import { readCustomJson } from '../apiextensions/schema/custom-objects.ts';
import { JSON_TYPE, PROTOBUF_TYPE, YAML_TYPE } from '../request/negotiation.ts';
import { readYaml, yamlComplaints } from '../request/yaml/yaml-body.ts';
import type { Normal } from '../apiextensions/schema/normal.ts';

/** Upstream's limit of a request's body. */
export const BODY_BYTES_MAX: number = 3 * 1024 * 1024;

const BODY_TYPES: readonly string[] = [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE];
const CUSTOM_TYPES: readonly string[] = [JSON_TYPE, YAML_TYPE];

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
  const decoded = decode(call, type, expected, isStrict, hasVoids);
  if (!decoded.ok) return failed(badRequest(decoded.message));
  return success({ object: decoded.object, complaints: decoded.strictErrors });
}

/** Options in a body: their kind counts, whatever group and version it is said to be of. */
export function readOptionsBody(call: Call, kind: string): Result<JsonObject> {
  const size = checkSize(call);
  if (!size.ok) return size;
  const type = mediaTypeOf(call);
  if (type !== '' && !BODY_TYPES.includes(type)) return failed(unsupportedMediaType(BODY_TYPES));
  const decoded = decodeOptions(call, type, kind);
  return decoded.ok ? success(decoded.object) : failed(badRequest(decoded.message));
}

function decodeOptions(call: Call, type: string, kind: string): Body {
  if (type === PROTOBUF_TYPE) {
    // client-go names the group of the resource, which says nothing about the type
    return decodeProtobufOptions(call.body, kind);
  }
  if (type !== YAML_TYPE) return decodeJsonOptions(call.body, kind);
  const read = jsonOfYaml(call, { apiVersion: 'v1', kind });
  return 'message' in read ? read : decodeJsonOptions(read.json, kind);
}

function readCustom(
  call: Call,
  type: string,
  expected: ExpectedKind,
  isStrict: boolean,
  custom: CustomVersion,
): Result<Normal> {
  if (type !== '' && !CUSTOM_TYPES.includes(type)) {
    // told of protobuf as well, which it then cannot read
    return failed(unsupportedMediaType(type === PROTOBUF_TYPE ? CUSTOM_TYPES : BODY_TYPES));
  }
  if (type !== YAML_TYPE) return readCustomJson(call.body, custom, expected, isStrict);
  const read = jsonOfYaml(call, expected);
  if ('message' in read) return failed(badRequest(read.message));
  const form = readCustomJson(read.json, custom, expected, isStrict);
  if (!form.ok || !isStrict) return form;
  return success({ ...form.value, complaints: [...read.complaints, ...form.value.complaints] });
}

type ReadDocument =
  | { readonly json: Buffer; readonly complaints: readonly string[] }
  | { readonly ok: false; readonly message: string };

/** The text of a document as JSON, or what is wrong with it. */
function jsonOfYaml(call: Call, expected: ExpectedKind): ReadDocument {
  const { body } = call;
  const read = (call.yaml ??= readYaml(body));
  if ('error' in read) {
    const { message } = unrecognized(body, 0, body.length, expected, read.error);
    return { ok: false, message };
  }
  const { buffer, byteOffset, length } = read.json;
  return {
    json: Buffer.from(buffer, byteOffset, length),
    complaints: yamlComplaints(read.doubles),
  };
}

function decode(
  call: Call,
  type: string,
  expected: ExpectedKind,
  isStrict: boolean,
  hasVoids: boolean,
): Body {
  const bytes = call.body;
  if (type === PROTOBUF_TYPE) return decodeProtobufBody(bytes, 0, bytes.length, expected);
  if (type !== YAML_TYPE)
    return decodeJsonBody(bytes, 0, bytes.length, expected, isStrict, hasVoids);
  const read = jsonOfYaml(call, expected);
  if ('message' in read) return read;
  const { json } = read;
  const body = decodeJsonBody(json, 0, json.length, expected, isStrict, hasVoids);
  if (!body.ok || !isStrict) return body;
  return { ...body, strictErrors: [...read.complaints, ...body.strictErrors] };
}
