/**
 * OpenAPI v2 as the protobuf message `openapi.v2.Document`, the only form that kubectl up to 1.28
 * asks for: `apply` reads merge keys and `dryRun` parameters from it. Field numbers are those of
 * gnostic's OpenAPIv2.proto.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import {
  any,
  anys,
  bool,
  double,
  each,
  encodeMessage,
  integer,
  isReference,
  message,
  named,
  object,
  oneOf,
  text,
  texts,
  within,
  type Message,
  type Write,
} from './openapi-messages.ts';

/** Media type of the message, as clients ask for it. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
/** The same as it is answered: `@` is no character of a media type, and Go's parser refuses it. */
export const OPENAPI_V2_ANSWER = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const EXTERNAL_DOCS = message({ description: [1, text], url: [2, text] }, 3);
const schema: Write = object(() => SCHEMA);
const SCHEMA: Message = message(
  {
    $ref: [1, text],
    format: [2, text],
    title: [3, text],
    description: [4, text],
    default: [5, any],
    multipleOf: [6, double],
    maximum: [7, double],
    exclusiveMaximum: [8, bool],
    minimum: [9, double],
    exclusiveMinimum: [10, bool],
    maxLength: [11, integer],
    minLength: [12, integer],
    pattern: [13, text],
    maxItems: [14, integer],
    minItems: [15, integer],
    uniqueItems: [16, bool],
    maxProperties: [17, integer],
    minProperties: [18, integer],
    required: [19, texts],
    enum: [20, anys],
    additionalProperties: [
      21,
      oneOf((value) =>
        isObject(value) ? [1, schema] : [2, (out, field) => out.bool(field, value === true)],
      ),
    ],
    type: [22, within(1, (out, field, value) => typeNames(out, field, value))],
    items: [23, within(1, schema)],
    allOf: [24, each(schema)],
    properties: [25, named(schema)],
    readOnly: [27, bool],
    externalDocs: [29, object(EXTERNAL_DOCS)],
    example: [30, any],
  },
  31,
);

const typeNames: Write = (out, field, value) => {
  texts(out, field, Array.isArray(value) ? value : [value]);
};

const JSON_REFERENCE = message({ $ref: [1, text], description: [2, text] }, 0);

/** A parameter that is no body; the forms differ in where the type stands. */
function plainParameter(type: number, extension: number): Message {
  return message(
    {
      required: [1, bool],
      in: [2, text],
      description: [3, text],
      name: [4, text],
      type: [type, text],
      format: [type + 1, text],
      uniqueItems: [type + 14, bool],
    },
    extension,
  );
}

const QUERY: readonly [number, Write] = [3, object(plainParameter(6, 23))];
const PLAIN_PARAMETERS: ReadonlyMap<JsonValue | undefined, readonly [number, Write]> = new Map([
  ['header', [1, object(plainParameter(5, 22))]],
  ['query', QUERY],
  ['path', [4, object(plainParameter(5, 22))]],
]);
const BODY_PARAMETER = message(
  {
    description: [1, text],
    name: [2, text],
    in: [3, text],
    required: [4, bool],
    schema: [5, schema],
  },
  6,
);

const parameter: Write = oneOf((value) => {
  const place = isObject(value) ? value['in'] : undefined;
  if (place === 'body') return [1, object(BODY_PARAMETER)];
  return [2, oneOf(() => PLAIN_PARAMETERS.get(place) ?? QUERY)];
});
const parametersItem: Write = oneOf((value) =>
  isReference(value) ? [2, object(JSON_REFERENCE)] : [1, parameter],
);

const RESPONSE = message({ description: [1, text], schema: [2, oneOf(() => [1, schema])] }, 5);
const response: Write = oneOf((value) =>
  isReference(value) ? [2, object(JSON_REFERENCE)] : [1, object(RESPONSE)],
);
const requirement: Write = named((out, field, value) => within(1, texts)(out, field, value));

const OPERATION = message(
  {
    tags: [1, texts],
    summary: [2, text],
    description: [3, text],
    externalDocs: [4, object(EXTERNAL_DOCS)],
    operationId: [5, text],
    produces: [6, texts],
    consumes: [7, texts],
    parameters: [8, each(parametersItem)],
    responses: [9, named(response)],
    schemes: [10, texts],
    deprecated: [11, bool],
    security: [12, each(requirement)],
  },
  13,
);
const operation: Write = object(OPERATION);
const PATH_ITEM = message(
  {
    $ref: [1, text],
    get: [2, operation],
    put: [3, operation],
    post: [4, operation],
    delete: [5, operation],
    options: [6, operation],
    head: [7, operation],
    patch: [8, operation],
    parameters: [9, each(parametersItem)],
  },
  10,
);
const API_KEY = message(
  { type: [1, text], name: [2, text], in: [3, text], description: [4, text] },
  5,
);
const DOCUMENT = message(
  {
    swagger: [1, text],
    info: [2, object(message({ title: [1, text], version: [2, text] }, 7))],
    paths: [8, named(object(PATH_ITEM), 2)],
    definitions: [9, named(schema)],
    parameters: [10, named(parameter)],
    security: [12, each(requirement)],
    securityDefinitions: [13, named(oneOf(() => [2, object(API_KEY)]))],
  },
  16,
);

/** The message of a version 2 document. */
export function encodeOpenApiV2(document: JsonObject): Buffer {
  return encodeMessage(DOCUMENT, document);
}
