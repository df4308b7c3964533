/**
 * OpenAPI v3 as the protobuf message `openapi.v3.Document`, by the field numbers of gnostic's
 * OpenAPIv3.proto. It has no form for defaults that are lists or objects: they are there, empty, as
 * upstream's conversion leaves them.
 */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
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

/** Media type of the message. */
export const OPENAPI_V3_PROTOBUF = 'application/com.github.proto-openapi.spec.v3.v1.0+protobuf';
/** Its older name, which is no media type to Go's parser. */
export const OPENAPI_V3_OLD_NAME = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf';

const EXTERNAL_DOCS = message({ description: [1, text], url: [2, text] }, 3);
const REFERENCE = message({ $ref: [1, text], summary: [2, text], description: [3, text] }, 0);

function orReference(write: Write): Write {
  return oneOf((value) => (isReference(value) ? [2, object(REFERENCE)] : [1, write]));
}

const schema: Write = object(() => SCHEMA);
const schemaOrReference: Write = orReference(schema);
/** Those within a `oneof` are written though they are zero. */
const defaultType: Write = (out, field, value) => {
  out.nest(field, () => {
    if (typeof value === 'number') out.double(1, value);
    else if (typeof value === 'boolean') out.bool(2, value);
    else if (typeof value === 'string') out.text(3, value);
  });
};
const SCHEMA: Message = message(
  {
    nullable: [1, bool],
    readOnly: [3, bool],
    writeOnly: [4, bool],
    externalDocs: [6, object(EXTERNAL_DOCS)],
    example: [7, any],
    deprecated: [8, bool],
    title: [9, text],
    multipleOf: [10, double],
    maximum: [11, double],
    exclusiveMaximum: [12, bool],
    minimum: [13, double],
    exclusiveMinimum: [14, bool],
    maxLength: [15, integer],
    minLength: [16, integer],
    pattern: [17, text],
    maxItems: [18, integer],
    minItems: [19, integer],
    uniqueItems: [20, bool],
    maxProperties: [21, integer],
    minProperties: [22, integer],
    required: [23, texts],
    enum: [24, anys],
    type: [25, text],
    allOf: [26, each(schemaOrReference)],
    oneOf: [27, each(schemaOrReference)],
    anyOf: [28, each(schemaOrReference)],
    not: [29, schema],
    items: [30, within(1, schemaOrReference)],
    properties: [31, named(schemaOrReference)],
    additionalProperties: [
      32,
      oneOf((value) =>
        isObject(value)
          ? [1, schemaOrReference]
          : [2, (out, field) => out.bool(field, value === true)],
      ),
    ],
    default: [33, defaultType],
    description: [34, text],
    format: [35, text],
  },
  36,
);

const content: Write = named(object(message({ schema: [1, schemaOrReference] }, 5)));
const PARAMETER = message(
  {
    name: [1, text],
    in: [2, text],
    description: [3, text],
    required: [4, bool],
    schema: [10, schemaOrReference],
    content: [13, content],
  },
  14,
);
const BODY = message({ description: [1, text], content: [2, content], required: [3, bool] }, 4);
const RESPONSE = message({ description: [1, text], content: [3, content] }, 5);
const parameters: Write = each(orReference(object(PARAMETER)));
const requirements: Write = each(named(within(1, texts)));

const OPERATION = message(
  {
    tags: [1, texts],
    summary: [2, text],
    description: [3, text],
    externalDocs: [4, object(EXTERNAL_DOCS)],
    operationId: [5, text],
    parameters: [6, parameters],
    requestBody: [7, orReference(object(BODY))],
    responses: [8, named(orReference(object(RESPONSE)), 2)],
    deprecated: [10, bool],
    security: [11, requirements],
  },
  13,
);
const operation: Write = object(OPERATION);
const PATH_ITEM = message(
  {
    $ref: [1, text],
    summary: [2, text],
    description: [3, text],
    get: [4, operation],
    put: [5, operation],
    post: [6, operation],
    delete: [7, operation],
    options: [8, operation],
    head: [9, operation],
    patch: [10, operation],
    parameters: [13, parameters],
  },
  14,
);
const SECURITY_SCHEME = message(
  { type: [1, text], description: [2, text], name: [3, text], in: [4, text] },
  9,
);
const COMPONENTS = message(
  {
    schemas: [1, named(schemaOrReference)],
    securitySchemes: [7, named(orReference(object(SECURITY_SCHEME)))],
  },
  10,
);
const DOCUMENT = message(
  {
    openapi: [1, text],
    info: [2, object(message({ title: [1, text], description: [2, text], version: [6, text] }, 7))],
    paths: [4, named(object(PATH_ITEM))],
    components: [5, object(COMPONENTS)],
    security: [6, requirements],
  },
  9,
);

/** The message of a version 3 document. */
export function encodeOpenApiV3(document: JsonObject): Buffer {
  return encodeMessage(DOCUMENT, document);
}
