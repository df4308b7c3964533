/** Printer columns of custom resources: JSONPath as upstream's table convertor reads it. */
import { numberAt, stringAt } from '../json.ts';
import { goJson } from './go-texts.ts';
import { isObject, type JsonObject, type JsonValue } from '../json-value.ts';
import { sinceText } from '../printing-age.ts';
import { columnsOf, nameOf, type Column } from '../printing-columns.ts';
import { customPrinter, type Printer } from '../printing.ts';
import { JsonPath } from './json-path.ts';

/**
 * The printer of a version: its name, then its `additionalPrinterColumns`; without any, name and
 * age. Cells are of the column's type, or null where the object has nothing there.
 */
export function customPrinterOf(columns: readonly JsonObject[]): Printer {
  if (columns.length === 0) return customPrinter;
  const own = columns.map((column) => ({
    column: columnOf(column),
    path: JsonPath.parse(stringAt(column, 'jsonPath')),
  }));
  return {
    columns: [...columnsOf('Name'), ...own.map(({ column }) => column)],
    row: (object, nowMs) => ({
      cells: [
        nameOf(object),
        ...own.map(({ column, path }) => cellOf(column.type, path?.find(object)[0], nowMs)),
      ],
    }),
  };
}

function columnOf(column: JsonObject): Column {
  const description = stringAt(column, 'description');
  const path = stringAt(column, 'jsonPath');
  return {
    name: stringAt(column, 'name'),
    type: stringAt(column, 'type'),
    format: stringAt(column, 'format'),
    description:
      description === ''
        ? `Custom resource definition column (in JSONPath format): ${path}`
        : description,
    priority: numberAt(column, 'priority'),
  };
}

function cellOf(type: string, value: JsonValue | undefined, nowMs: number): JsonValue {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'string':
      return plainText(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? dateText(value, nowMs) : null;
    default:
      return null;
  }
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

function dateText(value: string, nowMs: number): string {
  if (!RFC_3339.test(value) || Number.isNaN(Date.parse(value))) return '<invalid>';
  return sinceText(value, nowMs);
}

/** A value as text: what has members as JSON. */
function plainText(value: JsonValue): string {
  if (Array.isArray(value) || isObject(value)) return goJson(value);
  return typeof value === 'number' ? numberText(value) : String(value);
}

/** Go writes exponents of fractions from 1e-05 on, with at least two digits. */
function numberText(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || size >= 1e-4) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}
