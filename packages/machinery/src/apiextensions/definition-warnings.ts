/** What is told to who writes a definition that is let through. */
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';
import { schemaOf } from './definition-form.ts';
import { effectiveFormat } from '../structural/schema/formats.ts';
import { partsOf } from '../structural/schema/schema-json.ts';

/** Formats that the server does not know and will not check; those that were there before aside. */
export function definitionWarnings(definition: JsonObject, old: JsonObject | null): string[] {
  const formats = unknownFormats(definition);
  if (formats.size === 0) return [];
  const before = old === null ? new Set<string>() : unknownFormats(old);
  return Array.from(formats)
    .filter((format) => !before.has(format))
    .map((format) => `unrecognized format ${quoted(format)}`);
}

function unknownFormats(definition: JsonObject): Set<string> {
  const found = new Set<string>();
  for (const version of listAt(definition, 'spec', 'versions')) {
    const schema = schemaOf(objectAt(version, 'schema'));
    if (schema !== undefined) collect(schema, found);
  }
  return found;
}

function collect(schema: JsonObject, found: Set<string>): void {
  const format = stringAt(schema, 'format');
  if (format !== '' && effectiveFormat(stringAt(schema, 'type'), format) === '') found.add(format);
  for (const part of partsOf(schema)) collect(part, found);
}
