/**
 * OpenAPI v2 as the protobuf message `openapi.v2.Document`, the only form that kubectl up to 1.28
 * asks for: `apply` reads merge keys and `dryRun` parameters from it. Field numbers are those of
 * gnostic's OpenAPIv2.proto. Extensions travel as YAML text, of which JSON is a part.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import {
  closeMessage,
  openMessage,
  writeBoolField,
  writeTextField,
} from '@megaplane/wire/protobuf-write';

/** Media type of the message, as clients ask for it. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
/** The same as it is answered: `@` is no character of a media type, and Go's parser refuses it. */
export const OPENAPI_V2_ANSWER = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const DOCUMENT = { swagger: 1, info: 2, paths: 8, definitions: 9 } as const;
const INFO = { title: 1, version: 2 } as const;
const SCHEMA = {
  ref: 1,
  format: 2,
  description: 4,
  required: 19,
  additional: 21,
  type: 22,
  items: 23,
} as const;
const SCHEMA_PROPERTIES = 25;
const SCHEMA_EXTENSION = 31;
const OPERATION = {
  operationId: 5,
  produces: 6,
  consumes: 7,
  parameters: 8,
  extension: 13,
} as const;
const METHODS: Readonly<Record<string, number>> = {
  get: 2,
  put: 3,
  post: 4,
  delete: 5,
  options: 6,
  head: 7,
  patch: 8,
};
const PATH_PARAMETERS = 9;
/** The kinds of parameters that are no body, as `oneof` of NonBodyParameter. */
const PARAMETER_IN: Readonly<Record<string, { readonly kind: number; readonly type: number }>> = {
  header: { kind: 1, type: 5 },
  query: { kind: 3, type: 6 },
  path: { kind: 4, type: 5 },
};

/** The message of a version 2 document. */
export function encodeOpenApiV2(document: JsonObject): Buffer {
  // The message is smaller than its JSON except where extensions are text within text.
  let size = JSON.stringify(document).length * 2;
  for (;;) {
    const out = new Encoder(Buffer.allocUnsafe(size));
    out.document(document);
    if (out.at <= out.bytes.length) return out.bytes.subarray(0, out.at);
    size *= 2;
  }
}

class Encoder {
  readonly bytes: Buffer;
  at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  document(document: JsonObject): void {
    this.#text(DOCUMENT.swagger, document['swagger']);
    this.#message(DOCUMENT.info, () => {
      const info = object(document['info']);
      this.#text(INFO.title, info['title']);
      this.#text(INFO.version, info['version']);
    });
    this.#message(DOCUMENT.paths, () => {
      this.#named(2, document['paths'], (path) => this.#path(path));
    });
    this.#message(DOCUMENT.definitions, () => {
      this.#named(1, document['definitions'], (schema) => this.#schema(schema));
    });
  }

  #schema(schema: JsonObject): void {
    this.#text(SCHEMA.ref, schema['$ref']);
    this.#text(SCHEMA.format, schema['format']);
    this.#text(SCHEMA.description, schema['description']);
    for (const name of list(schema['required'])) this.#text(SCHEMA.required, name);
    const additional = schema['additionalProperties'];
    if (isObject(additional)) {
      this.#message(SCHEMA.additional, () => this.#message(1, () => this.#schema(additional)));
    }
    const { type, items } = schema;
    if (type !== undefined) this.#message(SCHEMA.type, () => this.#text(1, type));
    if (isObject(items)) {
      this.#message(SCHEMA.items, () => this.#message(1, () => this.#schema(items)));
    }
    if (schema['properties'] !== undefined) {
      this.#message(SCHEMA_PROPERTIES, () => {
        this.#named(1, schema['properties'], (property) => this.#schema(property));
      });
    }
    this.#extensions(SCHEMA_EXTENSION, schema);
  }

  #path(path: JsonObject): void {
    for (const [method, field] of Object.entries(METHODS)) {
      const operation = path[method];
      if (isObject(operation)) this.#message(field, () => this.#operation(operation));
    }
    for (const parameter of list(path['parameters'])) this.#parameter(PATH_PARAMETERS, parameter);
  }

  #operation(operation: JsonObject): void {
    this.#text(OPERATION.operationId, operation['operationId']);
    for (const type of list(operation['produces'])) this.#text(OPERATION.produces, type);
    for (const type of list(operation['consumes'])) this.#text(OPERATION.consumes, type);
    for (const one of list(operation['parameters'])) this.#parameter(OPERATION.parameters, one);
    this.#extensions(OPERATION.extension, operation);
  }

  /** Bodies are left out: readers of this form look at the names of the others. */
  #parameter(field: number, value: JsonValue): void {
    const parameter = object(value);
    const where = parameter['in'];
    const place = typeof where === 'string' ? PARAMETER_IN[where] : undefined;
    if (place === undefined) return;
    const write = (): void => {
      if (parameter['required'] === true) {
        this.at = writeBoolField(this.bytes, this.at, 1, true);
      }
      this.#text(2, parameter['in']);
      this.#text(4, parameter['name']);
      this.#text(place.type, parameter['type']);
    };
    // ParametersItem.parameter, Parameter.non_body_parameter, then which kind of it.
    this.#message(field, () =>
      this.#message(1, () => this.#message(2, () => this.#message(place.kind, write))),
    );
  }

  #extensions(field: number, holder: JsonObject): void {
    for (const [name, value] of Object.entries(holder)) {
      if (!name.startsWith('x-')) continue;
      this.#message(field, () => {
        this.#text(1, name);
        this.#message(2, () => this.#text(2, JSON.stringify(value)));
      });
    }
  }

  /** A map as a list of pairs. */
  #named(field: number, map: JsonValue | undefined, write: (value: JsonObject) => void): void {
    for (const [name, value] of Object.entries(object(map))) {
      this.#message(field, () => {
        this.#text(1, name);
        this.#message(2, () => write(object(value)));
      });
    }
  }

  #text(field: number, value: JsonValue | undefined): void {
    if (typeof value === 'string') this.at = writeTextField(this.bytes, this.at, field, value);
  }

  #message(field: number, write: () => void): void {
    const start = openMessage(this.bytes, this.at, field);
    this.at = start;
    write();
    this.at = closeMessage(this.bytes, start, this.at);
  }
}

function object(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
