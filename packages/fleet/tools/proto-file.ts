/**
 * Reads the part of the proto3 language that `packages/fleet/proto` is written in: messages, maps,
 * oneofs, reserved numbers, nested enums, services. Anything else is refused with its line.
 */
import { create } from '@bufbuild/protobuf';
import {
  DescriptorProto_ReservedRangeSchema,
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  EnumValueDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  MethodDescriptorProtoSchema,
  OneofDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  ServiceDescriptorProto,
} from '@bufbuild/protobuf/wkt';

const SCALARS: Readonly<Record<string, Type>> = {
  double: Type.DOUBLE,
  int64: Type.INT64,
  int32: Type.INT32,
  bool: Type.BOOL,
  string: Type.STRING,
  bytes: Type.BYTES,
};

interface Token {
  readonly text: string;
  readonly line: number;
  /** The comment lines right above. */
  readonly comment: string;
}

/** A file, and the comments of its declarations by full name (`.package.Message.field`). */
export interface ProtoFile {
  readonly descriptor: FileDescriptorProto;
  readonly comments: ReadonlyMap<string, string>;
}

/** `name` is its path as imports write it; throws with the line where it is not understood. */
export function parseProto(name: string, text: string): ProtoFile {
  return new Parser(name, tokensOf(text)).file();
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let comment: string[] = [];
  for (const [index, whole] of text.split('\n').entries()) {
    const own = /^\s*\/\/ ?(.*)$/.exec(whole);
    if (own !== null) {
      comment.push(own[1] ?? '');
      continue;
    }
    if (whole.trim() === '') comment = [];
    for (const match of whole.replace(/\/\/.*$/, '').matchAll(/"[^"]*"|[\w.]+|[^\s\w.]/g)) {
      tokens.push({ text: match[0], line: index + 1, comment: comment.join(' ') });
      comment = [];
    }
  }
  return tokens;
}

class Parser {
  readonly #name: string;
  readonly #tokens: readonly Token[];
  #at = 0;
  readonly #comments = new Map<string, string>();

  constructor(name: string, tokens: readonly Token[]) {
    this.#name = name;
    this.#tokens = tokens;
  }

  file(): ProtoFile {
    const descriptor = create(FileDescriptorProtoSchema, { name: this.#name, syntax: 'proto3' });
    while (this.#at < this.#tokens.length) {
      const { text, comment } = this.#next();
      if (text === 'syntax') this.#words('=', '"proto3"', ';');
      else if (text === 'package') descriptor.package = this.#until(';');
      else if (text === 'import') descriptor.dependency.push(this.#until(';').slice(1, -1));
      else {
        const scope = `.${descriptor.package}`;
        if (text === 'message') descriptor.messageType.push(this.#message(scope, comment));
        else if (text === 'enum') descriptor.enumType.push(this.#enum(scope, comment));
        else if (text === 'service') descriptor.service.push(this.#service(scope, comment));
        else this.#refuse(text);
      }
    }
    return { descriptor, comments: this.#comments };
  }

  #message(scope: string, comment: string): DescriptorProto {
    const message = create(DescriptorProtoSchema, { name: this.#next().text });
    const inside = `${scope}.${message.name}`;
    this.#comments.set(inside, comment);
    this.#words('{');
    while (!this.#is('}')) {
      const token = this.#next();
      if (token.text === 'reserved') this.#reserved(message);
      else if (token.text === 'enum') message.enumType.push(this.#enum(inside, token.comment));
      else if (token.text === 'oneof') this.#oneof(message, inside);
      else message.field.push(this.#field(message, inside, token));
    }
    return message;
  }

  #oneof(message: DescriptorProto, inside: string): void {
    const oneofIndex = message.oneofDecl.length;
    message.oneofDecl.push(create(OneofDescriptorProtoSchema, { name: this.#next().text }));
    this.#words('{');
    while (!this.#is('}')) {
      const field = this.#field(message, inside, this.#next());
      field.oneofIndex = oneofIndex;
      message.field.push(field);
    }
  }

  #field(message: DescriptorProto, inside: string, first: Token): FieldDescriptorProto {
    const isRepeated = first.text === 'repeated';
    const type = isRepeated ? this.#next().text : first.text;
    const value = type === 'map' ? this.#mapValue() : '';
    const name = this.#next().text;
    this.#words('=');
    const number = Number(this.#next().text);
    this.#words(';');
    this.#comments.set(`${inside}.${name}`, first.comment);
    const label = isRepeated || type === 'map' ? Label.REPEATED : Label.OPTIONAL;
    if (type !== 'map') return this.#typed(name, number, label, type);
    const pascal = name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    const entry = `${pascal}Entry`;
    message.nestedType.push(
      create(DescriptorProtoSchema, {
        name: entry,
        field: [
          this.#typed('key', 1, Label.OPTIONAL, 'string'),
          this.#typed('value', 2, Label.OPTIONAL, value),
        ],
        options: { mapEntry: true },
      }),
    );
    const typeName = `${inside}.${entry}`;
    return create(FieldDescriptorProtoSchema, {
      name,
      number,
      label,
      type: Type.MESSAGE,
      typeName,
    });
  }

  /** A type that is no scalar is a name, to be found when all files are read. */
  #typed(name: string, number: number, label: Label, type: string): FieldDescriptorProto {
    const scalar = Object.hasOwn(SCALARS, type) ? SCALARS[type] : undefined;
    if (scalar !== undefined) {
      return create(FieldDescriptorProtoSchema, { name, number, label, type: scalar });
    }
    return create(FieldDescriptorProtoSchema, { name, number, label, typeName: type });
  }

  #mapValue(): string {
    this.#words('<', 'string', ',');
    const value = this.#next().text;
    this.#words('>');
    return value;
  }

  #reserved(message: DescriptorProto): void {
    do {
      const start = Number(this.#next().text);
      const range = { start, end: start + 1 };
      message.reservedRange.push(create(DescriptorProto_ReservedRangeSchema, range));
    } while (this.#is(','));
    this.#words(';');
  }

  #enum(scope: string, comment: string): EnumDescriptorProto {
    const found = create(EnumDescriptorProtoSchema, { name: this.#next().text });
    this.#comments.set(`${scope}.${found.name}`, comment);
    this.#words('{');
    while (!this.#is('}')) {
      const token = this.#next();
      const name = token.text;
      this.#comments.set(`${scope}.${found.name}.${name}`, token.comment);
      this.#words('=');
      const number = Number(this.#next().text);
      this.#words(';');
      found.value.push(create(EnumValueDescriptorProtoSchema, { name, number }));
    }
    return found;
  }

  #service(scope: string, comment: string): ServiceDescriptorProto {
    const service = create(ServiceDescriptorProtoSchema, { name: this.#next().text });
    this.#comments.set(`${scope}.${service.name}`, comment);
    this.#words('{');
    while (!this.#is('}')) {
      const token = this.#next();
      if (token.text !== 'rpc') this.#refuse(token.text);
      const name = this.#next().text;
      this.#comments.set(`${scope}.${service.name}.${name}`, token.comment);
      const input = this.#side();
      this.#words('returns');
      const output = this.#side();
      this.#words(';');
      service.method.push(
        create(MethodDescriptorProtoSchema, {
          name,
          inputType: input.type,
          outputType: output.type,
          clientStreaming: input.isStream,
          serverStreaming: output.isStream,
        }),
      );
    }
    return service;
  }

  #side(): { readonly type: string; readonly isStream: boolean } {
    this.#words('(');
    const isStream = this.#is('stream');
    const type = this.#next().text;
    this.#words(')');
    return { type, isStream };
  }

  #is(text: string): boolean {
    if (this.#tokens[this.#at]?.text !== text) return false;
    this.#at++;
    return true;
  }

  #next(): Token {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw new Error(`${this.#name}: it ends too early`);
    return token;
  }

  #words(...texts: readonly string[]): void {
    for (const text of texts) {
      const token = this.#next();
      if (token.text !== text) this.#refuse(token.text);
    }
  }

  #until(end: string): string {
    const { text } = this.#next();
    this.#words(end);
    return text;
  }

  #refuse(text: string): never {
    const line = this.#tokens[this.#at - 1]?.line;
    throw new Error(`${this.#name}:${line}: ${text} is not understood`);
  }
}
