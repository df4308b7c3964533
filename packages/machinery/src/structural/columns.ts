/** Printer columns of custom resources: JSONPath as upstream's table convertor reads it. */
import { numberAt, stringAt } from '../json/json.ts';
import { goJson, goNumber } from '../gotext/go-texts.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { agoText } from '../printers/printing-age.ts';
import { columnsOf, nameOf, type Column } from '../printers/printing-columns.ts';
import { customPrinter, type Printer } from '../printers/printing.ts';
import { parseTime } from '../meta/times.ts';
import { JsonPath } from './json-path.ts';
import { wholeNumber } from '../json/json-text.ts';

/**
 * The printer of a version: its name, then its `additionalPrinterColumns`; without any, name and
 * age. Cells are of the column's type, or null where the object has nothing there; a null in an
 * object is printed as Go's templates print it.
 */
export function customPrinterOf(columns: readonly JsonObject[]): Printer {
  if (columns.length === 0) return customPrinter;
  const own: { readonly column: Column; readonly path: JsonPath }[] = [];
  for (const column of columns) {
    const path = JsonPath.parse(stringAt(column, 'jsonPath'));
    // upstream takes those before a path that it cannot read, and none after it
    if (path === null) break;
    own.push({ column: columnOf(column), path });
  }
  return {
    columns: [...columnsOf('Name'), ...own.map(({ column }) => column)],
    row: (object, nowMs) => ({
      cells: [
        nameOf(object),
        ...own.map(({ column, path }) => cellOf(column.type, path.find(object)[0], nowMs)),
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
  if (value === undefined) return null;
  if (value === null) return type === 'string' ? '<no value>' : null;
  switch (type) {
    case 'string':
      return plainText(value);
    case 'integer':
      return isNumber(value) ? wholeOf(value) : null;
    case 'number':
      return isNumber(value) ? Number(value) : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? dateText(value, nowMs) : null;
    default:
      return null;
  }
}

/** What Go's conversion to an integer of 64 bits makes of a number, on most processors. */
function wholeOf(value: number | bigint): number | bigint {
  if (typeof value === 'bigint') return value;
  return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : wholeNumber(-(2n ** 63n));
}

function dateText(value: string, nowMs: number): string {
  if (value === '' || value === 'null') return '<unknown>';
  const time = parseTime(value);
  return time === undefined ? '<invalid>' : agoText(time.seconds * 1000, nowMs);
}

/** A value as text: what has members as JSON. */
function plainText(value: JsonValue): string {
  if (Array.isArray(value) || isObject(value)) return goJson(value);
  return isNumber(value) ? goNumber(value) : String(value);
}
