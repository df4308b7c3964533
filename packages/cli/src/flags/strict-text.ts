/**
 * A configuration file as kube-scheduler's decoder reads it: JSON if it begins like it, YAML
 * turned into JSON otherwise, members that are there twice told and taken as they are last.
 */
import { putMember } from '@megaplane/base/members';
import { wholeNumber } from '@megaplane/machinery/json-text';
import { parseWithLiterals, type NumberLiterals } from '@megaplane/machinery/number-literals';
import { syntaxError } from '@megaplane/machinery/json-syntax';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, ParsedNode, ScalarTag, Tags } from 'yaml';

export interface StrictText {
  readonly value: JsonValue;
  /** What cannot be read; empty if all can. */
  readonly fault: string;
  /** What is wrong beside unknown members, to be told before them. */
  readonly repeated: readonly string[];
  /** How numbers of JSON are written. */
  readonly numbers: NumberLiterals;
}

/** What Go's YAML takes for text, which that of 1.1 takes for times and for numbers of base 60. */
function isTime(tag: Tags[number]): boolean {
  if (typeof tag === 'string') return false;
  return tag.tag === 'tag:yaml.org,2002:timestamp' || tag.format === 'TIME';
}

/** Octal digits as YAML 1.2 has them, which Go's reads, too. */
const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  format: 'OCT',
  identify: () => false,
  test: /^[-+]?0o[0-7]+$/,
  resolve: (text) => {
    const value = BigInt(text.replace(/^[-+]/, ''));
    return text.startsWith('-') ? -value : value;
  },
};

/** A number with an exponent; what no double holds is a text in Go. */
const EXPONENT: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  format: 'EXP',
  identify: () => false,
  test: /^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$/,
  resolve: (text) => {
    const value = Number(text.replaceAll('_', ''));
    return Number.isFinite(value) ? value : text;
  },
};

/** A mark of the order of bytes is no space, unlike in JavaScript. */
const JSON_START = /^[\t\n\v\f\r \u0085\u00A0]*\{/;

export function readStrictText(text: string): StrictText {
  const isJson = JSON_START.test(text);
  if (isJson) {
    const wrong = syntaxError(text);
    if (wrong !== '') return refused(`couldn't get version/kind; json parse error: ${wrong}`);
  }
  const lines = new LineCounter();
  // `yes` is true, and nothing after `---` is read.
  const [document] = parseAllDocuments(text, {
    ...{ version: '1.1', uniqueKeys: false, lineCounter: lines, intAsBigInt: true },
    customTags: (tags) => [OCTAL, EXPONENT, ...tags.filter((tag) => !isTime(tag))],
  });
  if (document === undefined) return { ...refused(''), value: null };
  const [wrong] = document.errors;
  // What follows the first mistake is mostly its consequence.
  if (wrong !== undefined) return refused(wrong.message);
  if (isJson) {
    return { ...parseWithLiterals(text), fault: '', repeated: repeatedIn(document, jsonPlace) };
  }
  const value = document.toJS() as JsonValue;
  const nothing = notANumber(value);
  if (nothing !== '') return refused(`json: unsupported value: ${nothing}`);
  const found = repeatedIn(document, (key, _, node, end) => {
    const line = lines.linePos(node?.range[0] ?? end).line;
    return `line ${line}: key ${JSON.stringify(key)} already set in map`;
  });
  const repeated = found.length === 0 ? [] : [['yaml: unmarshal errors:', ...found].join('\n    ')];
  return { ...refused(''), value: sorted(value), repeated };
}

function refused(fault: string): StrictText {
  return { value: null, fault, repeated: [], numbers: new Map() };
}

type Told = (key: string, path: string, node: ParsedNode | null, end: number) => string;

const jsonPlace: Told = (_, path) => `duplicate field ${JSON.stringify(path)}`;

/** Members that are there already, what is within them before them. */
function repeatedIn(document: Document.Parsed, told: Told): string[] {
  const found: string[] = [];
  const visit = (node: ParsedNode | null, path: string): void => {
    if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) visit(item, `${path}[${index}]`);
    }
    if (!isMap(node)) return;
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? String(key.value) : String(key);
      const place = path === '' ? name : `${path}.${name}`;
      if (!isAlias(value)) visit(value, place);
      if (seen.has(name)) found.push(told(name, place, value, key.range[1]));
      seen.add(name);
    }
  };
  visit(document.contents, '');
  return found;
}

/** The first number that JSON has not, in Go's words. */
function notANumber(value: JsonValue): string {
  if (typeof value === 'number') {
    if (Number.isNaN(value)) return 'NaN';
    if (Number.isFinite(value)) return '';
    return value > 0 ? '+Inf' : '-Inf';
  }
  if (typeof value !== 'object' || value === null) return '';
  for (const inner of Object.values(value)) {
    const found = notANumber(inner ?? null);
    if (found !== '') return found;
  }
  return '';
}

/** An integer as Go reads it: with its digits if 64 bits hold it, signed or not. */
function goInteger(value: bigint): number | bigint {
  const isHeld = BigInt.asIntN(64, value) === value || BigInt.asUintN(64, value) === value;
  return isHeld ? wholeNumber(value) : Number(value);
}

/** Turning YAML into JSON sorts the members. */
function sorted(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return goInteger(value);
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const name of Object.keys(value).toSorted())
    putMember(result, name, sorted(value[name] ?? null));
  return result;
}
