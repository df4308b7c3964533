/** YAML of requests and answers; the library is loaded when the first one comes. */
import { createRequire } from 'node:module';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';

interface Yaml {
  parseDocument(text: string, options: object): YamlDocument;
  stringify(value: unknown, options: object): string;
}

interface YamlDocument {
  readonly errors: readonly Error[];
  toJS(): unknown;
}

const load = createRequire(import.meta.url);
let yaml: Yaml | null = null;

function library(): Yaml {
  return (yaml ??= load('yaml') as Yaml);
}

/** A document of YAML 1.1 as JSON values, or the text of what is wrong with it. */
export function parseYaml(text: string): { value: JsonValue } | { error: string } {
  const document = library().parseDocument(text, { version: '1.1', logLevel: 'silent' });
  const fault = document.errors[0];
  if (fault !== undefined) return { error: fault.message };
  return { value: stringKeys(document.toJS() as JsonValue) };
}

/** Keys that YAML reads as booleans or numbers become their text, as upstream does it. */
function stringKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(stringKeys);
  if (value === null || typeof value !== 'object') return value;
  const plain: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner !== undefined) plain[key] = stringKeys(inner);
  }
  return plain;
}

/** An object as YAML with its keys sorted, as upstream prints it. */
export function yamlText(object: JsonObject): string {
  return library().stringify(object, { sortMapEntries: true, version: '1.1', singleQuote: true });
}
