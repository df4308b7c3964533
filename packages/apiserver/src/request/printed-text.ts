/**
 * Objects printed for people: YAML, and indented JSON (`pretty`).
 *
 * What stands deep is indented line by line, so that 1 MB of brackets a thousand levels deep would
 * become 1 GB of spaces. How much that is to be is counted before anything is made; beyond
 * `INDENTS_BYTES_MAX` a value is written as compact JSON, which both forms are also read as.
 */
import type { JsonValue } from '@megaplane/machinery/json-value';
import { printYaml } from './yaml-text.ts';

/** Spaces before the lines of one value, all together. */
export const INDENTS_BYTES_MAX: number = 8 * 1024 * 1024;
/** More than a level adds in either form. */
const LEVEL_COLUMNS = 2;

/** A document of YAML, with a line feed at its end. */
export function yamlText(value: JsonValue): string {
  return isTooDeep(value) ? `${compactYaml(value)}\n` : printYaml(value);
}

/** Indented JSON; `columns` stand before each line but the first. */
export function indentedJson(value: JsonValue, columns = 0): string {
  if (isTooDeep(value, columns)) return JSON.stringify(value);
  const text = JSON.stringify(value, null, 2);
  // line ends within strings are escaped, so each one in the text is one of the layout
  return columns === 0 ? text : text.replaceAll('\n', `\n${' '.repeat(columns)}`);
}

/** One item of a list at the margin of a document of YAML. */
export function yamlItem(item: JsonValue): string {
  if (isTooDeep(item, LEVEL_COLUMNS)) return `- ${compactYaml(item)}\n`;
  const key = 'items:\n';
  return printYaml({ items: [item] }).slice(key.length);
}

/** Letters that JSON takes as they are, and readers of YAML do not. */
const UNREADABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** JSON on one line that is YAML, too. */
function compactYaml(value: JsonValue): string {
  return readableJson(JSON.stringify(value));
}

/** The same of a text of JSON, or of a part of one. */
export function readableJson(text: string): string {
  return text.replaceAll(
    UNREADABLE,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

interface Level {
  readonly values: readonly (JsonValue | undefined)[];
  /** Before each line of it. */
  readonly columns: number;
}

/** Whether the indents of a value would take more than is made for one; it is not recursive. */
function isTooDeep(value: JsonValue, columns = 0): boolean {
  let bytes = 0;
  const open: Level[] = [{ values: [value], columns }];
  for (let level = open.pop(); level !== undefined; level = open.pop()) {
    for (const one of level.values) {
      bytes += level.columns;
      if (typeof one === 'string') bytes += level.columns * breaksOf(one);
      else if (typeof one === 'object' && one !== null) {
        const values = Array.isArray(one) ? one : Object.values(one);
        // the line of its closing bracket is its own
        open.push({ values, columns: level.columns + LEVEL_COLUMNS });
        bytes += level.columns;
      }
    }
    if (bytes > INDENTS_BYTES_MAX) return true;
  }
  return false;
}

/** Lines that YAML may make of a text: it is cut at line feeds, and folded at spaces. */
function breaksOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const letter = text.charCodeAt(at);
    if (letter === 10 || letter === 32) count++;
  }
  return count;
}
