/** YAML of requests; the library is loaded when the first one comes. */
import { putMember } from '@megaplane/base/members';
import { createRequire } from 'node:module';
import { base64Fault } from '@megaplane/machinery/base64';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';

import { contentsFault, octetFault, textFault, type YamlNode } from './yaml-faults.ts';
import { parseJson, wholeNumber } from '@megaplane/machinery/json-text';
import type { YamlReading } from '../yaml-reading.ts';

interface Yaml {
  parseDocument(text: string, options: object): YamlDocument;
  visit(document: YamlDocument, visitor: object): void;
  readonly LineCounter: new () => LineCounter;
}

interface YamlDocument {
  readonly errors: readonly Error[];
  readonly contents: YamlNode | null;
  toJS(options: object): unknown;
}

interface LineCounter {
  linePos(offset: number): { readonly line: number };
}

/** A mapping as the library parses it. */
interface YamlMap {
  readonly items: readonly {
    readonly key: { readonly value: unknown; readonly range: number[] };
  }[];
}

const load = createRequire(import.meta.url);
let yaml: Yaml | null = null;

function library(): Yaml {
  return (yaml ??= load('yaml') as Yaml);
}

interface Tag {
  readonly test?: RegExp;
  readonly resolve?: (text: string, ...more: unknown[]) => unknown;
  readonly tag?: string;
}

/** What YAML 1.1 reads as a time or a number to the base of 60, and upstream's library as text. */
const TEXTS_OF_UPSTREAM = ['2001-12-14', '12:30', '1:30.5'];

/**
 * Where the library and upstream's differ. A lone point is a number without digits in the one and
 * text in the other: sets of fields (`.: {}` in managedFields) are full of it.
 */
function customTags(tags: readonly (Tag | string)[]): (Tag | string)[] {
  const kept = tags.filter((tag) => {
    return typeof tag === 'string' || !TEXTS_OF_UPSTREAM.some((text) => tag.test?.test(text));
  });
  const changed = kept.map((tag) => {
    if (typeof tag === 'string' || tag.test === undefined) return tag;
    if (tag.test.test('1e5') || tag.test.test('1.5')) return boundedFloat(tag, tag.test);
    if (tag.tag === INT_TAG) return { ...tag, resolve: wholeOf };
    if (!tag.test.test('.')) return tag;
    return { ...tag, test: withDigits(tag.test) };
  });
  return [OCTAL, WHOLE_FLOAT, BINARY, ...changed];
}

function withDigits(test: RegExp): RegExp {
  return new RegExp(`^(?=.*[0-9])(?:${test.source})$`);
}

/** A number that no double holds is text. */
function boundedFloat(tag: Tag, test: RegExp): Tag {
  const read = tag.resolve;
  return {
    ...tag,
    test: withDigits(test),
    resolve: (text, ...more) => {
      const found = read?.(text, ...more);
      return isInfinite(found) ? text : found;
    },
  };
}

/** What the library makes of a number: itself, or a node with its value. */
function isInfinite(found: unknown): boolean {
  const value =
    typeof found === 'object' && found !== null && 'value' in found ? found.value : found;
  return value === Infinity || value === -Infinity;
}

/** Whole numbers that say that they are floats. */
const WHOLE_FLOAT = {
  tag: 'tag:yaml.org,2002:float',
  default: false,
  test: /^[-+]?[0-9][0-9_]*$/,
  resolve: (text: string): number => Number(text.replaceAll('_', '')),
};

/** Upstream decodes it to text. */
const BINARY = {
  tag: 'tag:yaml.org,2002:binary',
  default: false,
  resolve: (text: string, fail: unknown): string => {
    const compact = text.replaceAll(/[\r\n]/g, '');
    if (base64Fault(compact) < 0) return Buffer.from(compact, 'base64').toString('utf8');
    if (typeof fail === 'function') fail(BAD_BINARY);
    return '';
  },
};

const BAD_BINARY = '!!binary value contains invalid base64 data';

const INT_TAG = 'tag:yaml.org,2002:int';
/** Of the longest integer of 64 bits, to the base of two. */
const INTEGER_DIGITS_MAX = 64;

/** Octal numbers as YAML 1.2 has them, which upstream's parser of 1.1 knows, too. */
const OCTAL = {
  tag: INT_TAG,
  default: true,
  test: /^[-+]?0[oO][0-7_]+$/,
  resolve: wholeOf,
};

/**
 * An integer of 64 bits with all its digits, with or without a sign; a longer one is a double where
 * its digits are those of ten, else text.
 */
function wholeOf(sent: string): number | bigint | string {
  const text = sent.replaceAll('_', '').toLowerCase();
  const [, sign = '', prefix = '', digits = ''] = /^([-+]?)(0[xbo]?(?=.))?0*(.*)$/.exec(text) ?? [];
  if (digits.length <= INTEGER_DIGITS_MAX) {
    const radix = prefix === '0' ? '0o' : prefix;
    const size = BigInt(`${radix}${digits === '' ? '0' : digits}`);
    const value = sign === '-' ? -size : size;
    if (value >= -(2n ** 63n) && value < 2n ** 64n) return wholeNumber(value);
  }
  return prefix === '' || prefix === '0' ? Number(text) : sent;
}

/**
 * A document of YAML 1.1 as JSON values, or the text of what is wrong with it. Of several values of
 * one key the last counts; members are sorted, as upstream's way through JSON leaves them.
 */
export function parseYaml(sent: string): { value: JsonValue } | { error: string } {
  const parsed = parse(sent);
  return 'error' in parsed ? parsed : { value: parseJson(JSON.stringify(parsed.value)) };
}

/** The same as bytes of JSON, and the keys that it has twice. */
export function readYaml(sent: Buffer | string): YamlReading {
  const parsed = parse(sent);
  if ('error' in parsed) return parsed;
  const json = Buffer.from(JSON.stringify(parsed.value));
  return { json, doubles: doublesOf(parsed.document, parsed.lineCounter) };
}

interface Parsed {
  readonly document: YamlDocument;
  readonly lineCounter: LineCounter;
}

function parsedDocument(text: string): Parsed {
  const lineCounter = new (library().LineCounter)();
  const uniqueKeys = false;
  const options = { version: '1.1', logLevel: 'silent', uniqueKeys, customTags, lineCounter };
  return { document: library().parseDocument(text, options), lineCounter };
}

function parse(sent: Buffer | string): (Parsed & { value: JsonValue }) | { error: string } {
  const text = typeof sent === 'string' ? sent : sent.toString('utf8');
  const early = (typeof sent === 'string' ? '' : octetFault(sent)) || textFault(text);
  if (early !== '') return { error: `yaml: ${early}` };
  const parsed = parsedDocument(withLineFeeds(text));
  const { document } = parsed;
  const fault = document.errors[0];
  if (fault !== undefined) return { error: `yaml: ${lineFirst(fault.message)}` };
  const inner = contentsFault(document.contents);
  if (inner !== '') return { error: inner };
  try {
    // what aliases stand for was measured above
    const value = stringKeys(document.toJS({ maxAliasCount: -1 }) as JsonValue);
    const infinite = unsupportedNumber(value);
    if (infinite !== undefined) return { error: `json: unsupported value: ${infinite}` };
    return { ...parsed, value };
  } catch (error) {
    return { error: `yaml: ${aliasFault((error as Error).message)}` };
  }
}

/** Lines may end in a carriage return alone, which the library takes for a part of them. */
function withLineFeeds(text: string): string {
  return text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text;
}

/** What the library throws only as aliases are followed, as upstream's parser says it. */
function aliasFault(message: string): string {
  const unknown = /^Unresolved alias [^:]*: (.*)$/s.exec(message)?.[1];
  if (unknown !== undefined) return `unknown anchor '${unknown}' referenced`;
  if (message.startsWith('Merge sources')) {
    return 'map merge requires map or sequence of maps as the value';
  }
  return message.startsWith('Maximum call stack') ? 'values are nested too deeply' : message;
}

/** The first number that JSON cannot say, as Go writes it. */
function unsupportedNumber(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return undefined;
    return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (const inner of Object.values(value)) {
    const found = unsupportedNumber(inner);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The library's text as upstream's parser puts it: the line, then what is wrong with it. */
function lineFirst(error: string): string {
  const [first = ''] = error.split('\n');
  const place = / at line (\d+), column \d+:?$/.exec(first);
  const isNested = first.startsWith('Nested mappings are not allowed');
  const isDeep = first.startsWith('Maximum call stack');
  if (first.startsWith(BAD_BINARY)) return BAD_BINARY;
  const isForeign = /^Plain value cannot start with|^Tabs are not allowed/.test(first);
  const text = isNested
    ? 'mapping values are not allowed in this context'
    : isDeep
      ? 'values are nested too deeply'
      : isForeign
        ? 'found character that cannot start any token'
        : first.startsWith('Invalid escape sequence')
          ? 'found unknown escape character'
          : first.slice(0, place?.index);
  // upstream's parser counts lines from none, and tells those that are not the first
  return place === null || place[1] === '1' ? text : `line ${place[1] ?? ''}: ${text}`;
}

function doublesOf(document: YamlDocument, lineCounter: LineCounter): string[] {
  const found: { readonly line: number; readonly text: string }[] = [];
  library().visit(document, {
    Map: (_: unknown, map: YamlMap) => {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        if (seen.has(key.value)) {
          const { line } = lineCounter.linePos(key.range[0] ?? 0);
          const name = JSON.stringify(key.value);
          found.push({ line, text: `line ${line}: key ${name} already set in map` });
        }
        seen.add(key.value);
      }
    },
  });
  return found.sort((a, b) => a.line - b.line).map((one) => one.text);
}

const STRICT_HEAD = 'yaml: unmarshal errors:\n';

/** What strict decoding says of doubled keys: one complaint with a line for each key, or none. */
export function yamlComplaints(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [STRICT_HEAD + lines.map((line) => `  ${line}`).join('\n')];
}

/** A complaint as warnings tell it: each doubled key of YAML by itself. */
export function warningsOf(complaint: string): string[] {
  if (!complaint.startsWith(STRICT_HEAD)) return [complaint];
  return complaint
    .slice(STRICT_HEAD.length)
    .split('\n')
    .map((line) => line.trim());
}

const MEMBER = { enumerable: true, configurable: true, writable: true } as const;

/** Keys that YAML reads as booleans or numbers become their text, as upstream does it. */
function stringKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(stringKeys);
  if (value === null || typeof value !== 'object') return value;
  const plain: JsonObject = {};
  for (const key of Object.keys(value).sort()) {
    const inner = value[key];
    if (inner === undefined) continue;
    // by assignment that one would become the prototype
    if (key !== '__proto__') putMember(plain, key, stringKeys(inner));
    else Object.defineProperty(plain, key, { ...MEMBER, value: stringKeys(inner) });
  }
  return plain;
}
