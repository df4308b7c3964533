/** From the bytes of a request to an object of the kind that the URL expects. */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import {
  decodeJsonBody,
  decodeProtobufBody,
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
import { JSON_TYPE, PROTOBUF_TYPE, YAML_TYPE } from './negotiation.ts';
import { parseYaml } from './yaml-body.ts';

/** Upstream's limit of a request's body. */
export const BODY_BYTES_MAX: number = 3 * 1024 * 1024;

const BODY_TYPES: readonly string[] = [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE];

/** An object in its type's form, and what strict decoding would complain about. */
export interface Normal {
  readonly object: JsonObject;
  /** `unknown field "spec.foo"`, `duplicate field "spec.x"`, in upstream's order. */
  readonly complaints: readonly string[];
}

/** The media type of the body without its parameters. */
export function mediaTypeOf(call: Call): string {
  const header = call.exchange.header('content-type') ?? '';
  return (header.split(';')[0] ?? '').trim().toLowerCase();
}

/** Refuses a body above the limit. */
export function checkSize(call: Call): Result<true> {
  if (call.body.length <= BODY_BYTES_MAX) return success(true);
  return failed(requestEntityTooLarge(`limit is ${BODY_BYTES_MAX}`));
}

/** Decodes the body; kind and apiVersion are filled in where it names none. */
export function readBody(call: Call, expected: ExpectedKind, isStrict: boolean): Result<Normal> {
  const size = checkSize(call);
  if (!size.ok) return size;
  const type = mediaTypeOf(call);
  if (type !== '' && !BODY_TYPES.includes(type)) return failed(unsupportedMediaType(BODY_TYPES));
  const decoded = decode(call.body, type, expected, isStrict);
  if (!decoded.ok) return failed(badRequest(decoded.message));
  return success({ object: decoded.object, complaints: decoded.strictErrors });
}

function decode(bytes: Buffer, type: string, expected: ExpectedKind, isStrict: boolean): Body {
  if (type === PROTOBUF_TYPE) return decodeProtobufBody(bytes, 0, bytes.length, expected);
  if (type !== YAML_TYPE) return decodeJsonBody(bytes, 0, bytes.length, expected, isStrict);
  const parsed = parseYaml(bytes.toString('utf8'));
  if ('error' in parsed || !isObject(parsed.value)) {
    const why = 'error' in parsed ? parsed.error : 'the document is not an object';
    const head = `the object provided is unrecognized (must be of type ${expected.kind})`;
    return { ok: false, message: `${head}: ${why}` };
  }
  const json = Buffer.from(JSON.stringify(parsed.value));
  return decodeJsonBody(json, 0, json.length, expected, isStrict);
}
