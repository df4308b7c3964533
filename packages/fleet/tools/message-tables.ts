/** The text of each generated table: one TypeScript file per proto file. */
import { embedFileDesc } from '@bufbuild/protobuf/codegenv2';
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import { parseProto } from './proto-file.ts';
import type { ProtoFile } from './proto-file.ts';

/** Proto file, and the table that is made of it. A file comes after those that it imports. */
const PROTO_FILES = [
  ['bigfleet/v1alpha1/capacity.proto', 'capacity.ts'],
  ['bigfleet/v1alpha1/provider.proto', 'provider.ts'],
  ['bigfleet/v1alpha1/shard.proto', 'shard.ts'],
  ['bigfleet/v1alpha1/coordinator.proto', 'coordinator.ts'],
  ['bigfleet/v1alpha1/shardread.proto', 'shardread.ts'],
  ['bigfleet/lucy.sh/v1alpha1/autoscaler.proto', 'autoscaler.ts'],
  ['megaplane/fleet/v1alpha1/registry.proto', 'registry.ts'],
  ['megaplane/fleet/v1alpha1/shardlook.proto', 'shardlook.ts'],
] as const;

const TIMESTAMP_FILE = 'google/protobuf/timestamp.proto';
const TIMESTAMP = '.google.protobuf.Timestamp';

const SCALAR_TYPES = new Map<Type, string>([
  [Type.DOUBLE, 'number'],
  [Type.INT64, 'bigint'],
  [Type.INT32, 'number'],
  [Type.BOOL, 'boolean'],
  [Type.STRING, 'string'],
  [Type.BYTES, 'Uint8Array'],
]);

interface Declared {
  readonly kind: 'message' | 'enum';
  /** Name in TypeScript: nested names joined by `_`. */
  readonly local: string;
  readonly table: string;
}

/** Reads all proto files by `read`; returns name and text of each table. */
export function messageTables(read: (path: string) => string): Map<string, string> {
  const tables = new Map<string, string>();
  const declared = new Map<string, Declared>([
    [TIMESTAMP, { kind: 'message', local: 'Timestamp', table: '' }],
  ]);
  for (const [path, table] of PROTO_FILES) {
    const file = parseProto(path, read(path));
    declare(file, table, declared);
    resolve(file, declared);
    tables.set(table, new Writer(file, table, declared).text());
  }
  return tables;
}

function declare({ descriptor }: ProtoFile, table: string, declared: Map<string, Declared>): void {
  const scope = `.${descriptor.package}`;
  for (const { name } of descriptor.enumType) {
    declared.set(`${scope}.${name}`, { kind: 'enum', local: name, table });
  }
  for (const message of descriptor.messageType) {
    const { name } = message;
    declared.set(`${scope}.${name}`, { kind: 'message', local: name, table });
    for (const inner of message.enumType) {
      const local = `${name}_${inner.name}`;
      declared.set(`${scope}.${name}.${inner.name}`, { kind: 'enum', local, table });
    }
  }
}

/** Gives each name of a type its full form and its kind: the innermost scope that knows it. */
function resolve({ descriptor }: ProtoFile, declared: ReadonlyMap<string, Declared>): void {
  const find = (name: string, scope: string): string => {
    for (let at = scope; ; at = at.slice(0, at.lastIndexOf('.'))) {
      if (declared.has(`${at}.${name}`)) return `${at}.${name}`;
      if (at === '') throw new Error(`${descriptor.name}: nothing is called ${name}`);
    }
  };
  for (const message of descriptor.messageType) {
    const scope = `.${descriptor.package}.${message.name}`;
    for (const field of message.field) {
      if (field.typeName === '' || field.typeName.startsWith('.')) continue;
      field.typeName = find(field.typeName, scope);
      field.type = declared.get(field.typeName)?.kind === 'enum' ? Type.ENUM : Type.MESSAGE;
    }
  }
  for (const service of descriptor.service) {
    for (const method of service.method) {
      method.inputType = find(method.inputType, `.${descriptor.package}`);
      method.outputType = find(method.outputType, `.${descriptor.package}`);
    }
  }
}

class Writer {
  readonly #file: ProtoFile;
  readonly #table: string;
  readonly #declared: ReadonlyMap<string, Declared>;
  readonly #lines: string[] = [];
  readonly #imports = new Map<string, Set<string>>();
  readonly #scope: string;

  constructor(file: ProtoFile, table: string, declared: ReadonlyMap<string, Declared>) {
    this.#file = file;
    this.#table = table;
    this.#declared = declared;
    this.#scope = `.${file.descriptor.package}`;
  }

  text(): string {
    const { descriptor } = this.#file;
    for (const [index, found] of descriptor.enumType.entries()) {
      this.#enum(found, found.name, this.#scope, `file, ${index}`);
    }
    for (const [index, message] of descriptor.messageType.entries()) this.#message(message, index);
    for (const [index, service] of descriptor.service.entries()) {
      this.#comment(`${this.#scope}.${service.name}`, '');
      this.#lines.push(`export const ${service.name}: GenService<{`);
      for (const method of service.method) {
        this.#comment(`${this.#scope}.${service.name}.${method.name}`, '  ');
        const kind = methodKind(method.clientStreaming, method.serverStreaming);
        const input = this.#schemaOf(method.inputType);
        const output = this.#schemaOf(method.outputType);
        const local = method.name.charAt(0).toLowerCase() + method.name.slice(1);
        const sides = `input: typeof ${input}; output: typeof ${output}`;
        this.#lines.push(`  ${local}: { methodKind: '${kind}'; ${sides} };`);
      }
      this.#lines.push(`}> = serviceDesc(file, ${index});`, '');
    }
    return `${this.#head()}\n${this.#lines.join('\n').trimEnd()}\n`;
  }

  #head(): string {
    const { descriptor } = this.#file;
    const files: string[] = [];
    for (const path of descriptor.dependency) {
      if (path === TIMESTAMP_FILE) {
        files.push('file_google_protobuf_timestamp');
        continue;
      }
      const table = PROTO_FILES.find(([name]) => name === path)?.[1];
      if (table === undefined) throw new Error(`${descriptor.name}: cannot import ${path}`);
      const local = `${table.slice(0, -3)}File`;
      files.push(local);
      this.#import(`./${table}`, `file as ${local}`);
    }
    const lines = [
      `// Written by packages/fleet/tools/generate.ts from ${descriptor.name}.`,
      `import type { Message } from '@bufbuild/protobuf';`,
    ];
    const uses = this.#lines.join('\n');
    const made = ['enumDesc', 'fileDesc', 'messageDesc', 'serviceDesc'];
    const kinds = ['GenEnum', 'GenFile', 'GenMessage', 'GenService'];
    const isUsed = (name: string): boolean => /File|fileDesc/.test(name) || uses.includes(name);
    const from = `from '@bufbuild/protobuf/codegenv2';`;
    lines.push(`import { ${made.filter(isUsed).join(', ')} } ${from}`);
    lines.push(`import type { ${kinds.filter(isUsed).join(', ')} } ${from}`);
    if (files.includes('file_google_protobuf_timestamp')) {
      lines.push(`import type { Timestamp } from '@bufbuild/protobuf/wkt';`);
      lines.push(`import { file_google_protobuf_timestamp } from '@bufbuild/protobuf/wkt';`);
    }
    for (const [path, names] of this.#imports) {
      const all = [...names].sort();
      const types = all.filter((name) => name.startsWith('type ')).map((name) => name.slice(5));
      const values = all.filter((name) => !name.startsWith('type '));
      if (types.length > 0) lines.push(`import type { ${types.join(', ')} } from '${path}';`);
      if (values.length > 0) lines.push(`import { ${values.join(', ')} } from '${path}';`);
    }
    const text = embedFileDesc(descriptor).base64();
    const chunks = text.match(/.{1,92}/g) ?? [];
    lines.push('', 'export const file: GenFile = fileDesc(');
    lines.push(chunks.map((chunk) => `  '${chunk}'`).join(' +\n') + ',');
    if (files.length > 0) lines.push(`  [${files.join(', ')}],`);
    lines.push(');', '');
    return lines.join('\n');
  }

  #message(message: DescriptorProto, index: number): void {
    const full = `${this.#scope}.${message.name}`;
    for (const [inner, found] of message.enumType.entries()) {
      this.#enum(found, `${message.name}_${found.name}`, full, `file, ${index}, ${inner}`);
    }
    this.#comment(full, '');
    const typeName = `Message<'${full.slice(1)}'>`;
    const fields = message.field.filter((field) => !isInOneof(message, field));
    const isEmpty = message.field.length === 0;
    this.#lines.push(`export type ${message.name} = ${typeName}${isEmpty ? ';' : ' & {'}`);
    for (const field of fields) {
      this.#comment(`${full}.${field.name}`, '  ');
      const optional = field.type === Type.MESSAGE && field.label !== Label.REPEATED ? '?' : '';
      this.#lines.push(`  ${camel(field.name)}${optional}: ${this.#type(message, field)};`);
    }
    for (const [at, oneof] of message.oneofDecl.entries()) {
      this.#lines.push(`  ${camel(oneof.name)}:`);
      for (const field of message.field) {
        if (!isInOneof(message, field) || field.oneofIndex !== at) continue;
        this.#comment(`${full}.${field.name}`, '    ');
        const value = this.#type(message, field);
        this.#lines.push(`    | { case: '${camel(field.name)}'; value: ${value} }`);
      }
      this.#lines.push('    | { case: undefined; value?: undefined };');
    }
    if (!isEmpty) this.#lines.push('};');
    const schema = `${message.name}Schema: GenMessage<${message.name}>`;
    this.#lines.push(`export const ${schema} = messageDesc(file, ${index});`, '');
  }

  #enum(found: EnumDescriptorProto, local: string, scope: string, path: string): void {
    const full = `${scope}.${found.name}`;
    const prefix = `${snake(found.name)}_`;
    this.#comment(full, '');
    this.#lines.push(`export const ${local} = {`);
    for (const { name, number } of found.value) {
      this.#comment(`${full}.${name}`, '  ');
      const short = name.startsWith(prefix) ? name.slice(prefix.length) : name;
      this.#lines.push(`  ${/^\d/.test(short) ? `_${short}` : short}: ${number},`);
    }
    this.#lines.push('} as const;');
    this.#lines.push(`export type ${local} = (typeof ${local})[keyof typeof ${local}];`);
    this.#lines.push(`export const ${local}Schema: GenEnum<${local}> = enumDesc(${path});`, '');
  }

  #type(message: DescriptorProto, field: FieldDescriptorProto): string {
    const entry = message.nestedType.find(
      ({ name }) => field.typeName === `${this.#scope}.${message.name}.${name}`,
    );
    if (entry !== undefined) {
      const value = entry.field[1];
      if (value === undefined) throw new Error(`${entry.name} has no value`);
      return `{ [key: string]: ${this.#plainType(value)} }`;
    }
    const plain = this.#plainType(field);
    return field.label === Label.REPEATED ? `${plain}[]` : plain;
  }

  #plainType(field: FieldDescriptorProto): string {
    const scalar = SCALAR_TYPES.get(field.type);
    if (scalar !== undefined) return scalar;
    const { local, table } = this.#known(field.typeName);
    if (table !== this.#table && table !== '') this.#import(`./${table}`, `type ${local}`);
    return local;
  }

  #schemaOf(typeName: string): string {
    const { local, table } = this.#known(typeName);
    if (table !== this.#table) this.#import(`./${table}`, `type ${local}Schema`);
    return `${local}Schema`;
  }

  #known(typeName: string): Declared {
    const found = this.#declared.get(typeName);
    if (found === undefined) throw new Error(`nothing is called ${typeName}`);
    return found;
  }

  #import(path: string, name: string): void {
    const names = this.#imports.get(path) ?? new Set();
    this.#imports.set(path, names.add(name));
  }

  #comment(full: string, indent: string): void {
    const comment = this.#file.comments.get(full) ?? '';
    if (comment !== '') this.#lines.push(`${indent}/** ${comment} */`);
  }
}

/** The number 0 is also what a field outside all oneofs has. */
function isInOneof(message: DescriptorProto, field: FieldDescriptorProto): boolean {
  return message.oneofDecl.length > 0 && Object.hasOwn(field, 'oneofIndex');
}

function methodKind(client: boolean, server: boolean): string {
  if (client && server) return 'bidi_streaming';
  return server ? 'server_streaming' : client ? 'client_streaming' : 'unary';
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name.replace(/(?!^)([A-Z])/g, '_$1').toUpperCase();
}
