/**
 * What is wrong with a value by its schema, in the words, the order and the choice of upstream's
 * OpenAPI validator: of alternatives that all fail, those faults are shown of the one that came
 * furthest (`matches` counts what held on the way, as upstream does).
 */
import { ownMember } from '@megaplane/base/members';
import { matchesRe2 } from '../cel/library/regex-library.ts';
import {
  invalidValue,
  notSupported,
  printed,
  required,
  tooLong,
  tooMany,
  typeInvalid,
  type FieldError,
} from '../meta/fielderrors.ts';
import { isNumber, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';
import { accepts, isListed, isOfType, isTooLong, isTooShort } from './quick-validate.ts';
import type { Correlation } from './correlation.ts';
import { child, shownPath } from './schema/field-path.ts';
import { goJson, goNumber } from '../gotext/go-texts.ts';
import { numberFaults } from './number-rule.ts';
import { TYPE_BITS, type SchemaNode } from './schema/schema-node.ts';
import { doubleText } from '../gotext/go-floats.ts';
import { isGoInt } from '../json/go-integers.ts';

/** A fault; `text` tells it apart from others, `error` says it of a field below `base`. */
interface Fault {
  readonly text: string;
  error(base: string): FieldError;
}

/** Texts of what is wrong with an object: one of thousands of faults is not told them all. */
export const FAULT_CHARS_MAX: number = 1024 * 1024;
/**
 * Alternatives (of `anyOf`, `oneOf`, `allOf`) of one object that are looked at for what is wrong: a
 * thousand of them for each of thousands of items took minutes. Of those behind it is only told
 * that none of them, or not all, hold.
 */
export const ALTERNATIVES_MAX = 100_000;

/** Of the object that is explained just now. */
let alternativesLeft = 0;

/** Explains an alternative; null where there were too many of them. */
function explainAlternative(node: SchemaNode, value: JsonValue, path: string): Outcome | null {
  if (alternativesLeft > 0) {
    alternativesLeft--;
    return explain(node, value, path, null);
  }
  // an outcome without a fault is one that holds
  return accepts(node, value) ? new Outcome() : null;
}

class Outcome {
  readonly faults: Fault[] = [];
  matches = 0;
  readonly #texts = new Set<string>();
  #chars = 0;

  /** The first always; others as long as their texts have room. */
  add(fault: Fault): void {
    if (this.#chars > FAULT_CHARS_MAX || this.#texts.has(fault.text)) return;
    this.#texts.add(fault.text);
    this.#chars += fault.text.length;
    this.faults.push(fault);
  }

  merge(other: Outcome): void {
    for (const fault of other.faults) this.add(fault);
    this.matches += other.matches;
  }
}

/** `name` may start with a point: members of a root without name. */
function fieldOf(base: string, name: string): string {
  const trimmed = name.replace(/^\./, '');
  if (trimmed === '') return shownPath(base);
  return child(base, trimmed);
}

function shown(value: JsonValue | undefined): string | ReturnType<typeof printed> {
  if (typeof value === 'string') return value;
  return printed(isNumber(value) ? goNumber(value) : goJson(value ?? null));
}

function named(name: string, text: string, error: (field: string) => FieldError): Fault {
  return { text, error: (base) => error(fieldOf(base, name)) };
}

function invalid(name: string, text: string, value: JsonValue): Fault {
  return named(name, text, (field) => invalidValue(field, shown(value), text));
}

/** Faults that upstream knows no field of. */
function general(text: string): Fault {
  return { text, error: (base) => invalidValue(shownPath(base), '', text) };
}

/**
 * The errors of a value. `base` is the path of the value in its object; texts count paths from the
 * value on. `correlation` ties it to the value that it replaces.
 */
export function valueErrors(
  node: SchemaNode,
  value: JsonValue,
  base: string,
  correlation: Correlation | null,
): FieldError[] {
  return accepts(node, value) ? [] : explainedErrors(node, value, base, correlation);
}

/** The same by the slow way alone, which must find nothing where a value is accepted. */
export function explainedErrors(
  node: SchemaNode,
  value: JsonValue,
  base: string,
  correlation: Correlation | null,
): FieldError[] {
  alternativesLeft = ALTERNATIVES_MAX;
  const outcome = ratcheted(node, value, '', correlation);
  return outcome.faults.map((fault) => fault.error(base));
}

/** What did not change is let through as a whole. */
function ratcheted(
  node: SchemaNode,
  value: JsonValue,
  path: string,
  correlation: Correlation | null,
): Outcome {
  const outcome = explain(node, value, path, correlation);
  if (correlation !== null && outcome.faults.length > 0 && correlation.isEqual()) {
    outcome.faults.length = 0;
  }
  return outcome;
}

function typeNames({ typeBits, type }: SchemaNode): string {
  return typeBits === (TYPE_BITS.integer | TYPE_BITS.string) ? 'integer,string' : type;
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (isNumber(value)) return isGoInt(value) ? 'integer' : 'number';
  return typeof value;
}

function typeFault(node: SchemaNode, value: JsonValue, path: string): Fault {
  const isListLike = typeof value === 'string' || Array.isArray(value);
  if (!isListLike && value !== null && node.format !== '') {
    const found = isNumber(value) ? (isGoInt(value) ? 'int64' : 'float64') : '';
    return typeFaultOf(path, node.format, found);
  }
  return typeFaultOf(path, typeNames(node), kindOf(value));
}

function typeFaultOf(path: string, wanted: string, found: string): Fault {
  const text = `${path} in body must be of type ${wanted}: ${quoted(found)}`;
  return named(path, text, (field) => typeInvalid(field, found, text));
}

interface ListedNames {
  readonly names: readonly string[];
  readonly joined: string;
}

/** By the list, which belongs to its schema. */
const listedNames = new WeakMap<readonly JsonValue[], ListedNames>();

function namesIn(listed: readonly JsonValue[]): ListedNames {
  const known = listedNames.get(listed);
  if (known !== undefined) return known;
  const names = listed.map((one) => (typeof one === 'string' ? one : goJson(one)));
  const made = { names, joined: names.join(' ') };
  listedNames.set(listed, made);
  return made;
}

function enumFault(listed: readonly JsonValue[], value: JsonValue, path: string): Fault {
  const { names, joined } = namesIn(listed);
  const text = `${path} in body should be one of [${joined}]`;
  return named(path, text, (field) => notSupported(field, shown(value), names));
}

function explain(
  node: SchemaNode,
  value: JsonValue,
  path: string,
  correlation: Correlation | null,
): Outcome {
  const outcome = new Outcome();
  if (value === null) {
    if (node.typeBits === 0 || node.isNullable) outcome.matches++;
    else outcome.add(typeFault(node, value, path));
    if (node.enum !== null) outcome.add(enumFault(node.enum, value, path));
    return outcome;
  }
  if (node.typeBits !== 0 || node.format !== '') {
    if (isOfType(node, value)) outcome.matches++;
    else outcome.add(typeFault(node, value, path));
    outcome.matches++;
  }
  outcome.merge(explainJunctors(node, value, path));
  outcome.matches++;
  if (typeof value === 'string') explainText(node, value, path, outcome);
  if (isNumber(value)) explainNumber(node, value, path, outcome);
  if (Array.isArray(value)) explainItems(node, value, path, correlation, outcome);
  if (node.enum !== null && !isListed(node.enum, value)) {
    outcome.add(enumFault(node.enum, value, path));
  }
  outcome.matches++;
  if (typeof value === 'object' && !Array.isArray(value)) {
    explainMembers(node, value, path, correlation, outcome);
  }
  outcome.matches++;
  return outcome;
}

function explainText(node: SchemaNode, text: string, path: string, outcome: Outcome): void {
  const { lengthMax, lengthMin, pattern, checkFormat } = node;
  if (isTooLong(text, lengthMax)) {
    const words = `${path} in body should be at most ${lengthMax} chars long`;
    outcome.add(named(path, words, (field) => tooLong(field, lengthMax)));
  } else if (isTooShort(text, lengthMin)) {
    outcome.add(invalid(path, `${path} in body should be at least ${lengthMin} chars long`, text));
  } else if (pattern !== '' && !matchesRe2(text, pattern)) {
    outcome.add(invalid(path, `${path} in body should match '${pattern}'`, text));
  }
  outcome.matches++;
  if (checkFormat === null) return;
  if (!checkFormat(text)) outcome.add(typeFaultOf(path, node.format, text));
  outcome.matches++;
}

function explainNumber(
  node: SchemaNode,
  value: number | bigint,
  path: string,
  outcome: Outcome,
): void {
  for (const fault of node.number === null ? [] : numberFaults(node.number, value, path)) {
    const { kind, text, value: wrong, isFloat } = fault;
    if (kind === 'general') outcome.add(general(text));
    else if (isFloat === true) {
      const float = printed(doubleText(Number(wrong)));
      outcome.add(named(path, text, (field) => invalidValue(field, float, text)));
    } else outcome.add(invalid(path, text, wrong));
  }
  outcome.matches += 2;
}

/** How many there are, of items or of properties. */
function explainCount(
  path: string,
  count: number,
  [min, max]: readonly [number, number],
  what: string,
  outcome: Outcome,
): void {
  if (count < min) {
    outcome.add(invalid(path, `${path} in body should have at least ${min} ${what}`, count));
  }
  if (count > max) {
    const text = `${path} in body should have at most ${max} ${what}`;
    outcome.add(named(path, text, (field) => tooMany(field, count, max)));
  }
}

function explainItems(
  node: SchemaNode,
  items: readonly JsonValue[],
  path: string,
  correlation: Correlation | null,
  outcome: Outcome,
): void {
  const { items: schema, itemsMin, itemsMax } = node;
  if (schema !== null) {
    for (const [i, item] of items.entries()) {
      const at = `${path}[${i}]`;
      outcome.merge(ratcheted(schema, item, at, correlation?.item(i) ?? null));
    }
  }
  explainCount(path, items.length, [itemsMin, itemsMax], 'items', outcome);
  outcome.matches += 2;
}

function explainMembers(
  node: SchemaNode,
  object: JsonObject,
  path: string,
  correlation: Correlation | null,
  outcome: Outcome,
): void {
  const { properties, additional, additionalKind, propertiesMin, propertiesMax } = node;
  const names = Object.keys(object).filter((name) => object[name] !== undefined);
  explainCount(path, names.length, [propertiesMin, propertiesMax], 'properties', outcome);
  for (const name of names) {
    if (properties?.has(name) === true) continue;
    if (additionalKind === 'denied') {
      const text = `${path}.${name} in body is a forbidden property`;
      outcome.add(invalid(path, text, name));
    } else if (additional !== null) {
      const tie = path === '' && isTypeMember(name) ? null : (correlation?.member(name) ?? null);
      outcome.merge(ratcheted(additional, ownMember(object, name) ?? null, `${path}.${name}`, tie));
    }
  }
  for (const [name, property] of properties ?? []) {
    const value = ownMember(object, name);
    if (value === undefined) continue;
    const tie = path === '' && isTypeMember(name) ? null : (correlation?.member(name) ?? null);
    outcome.merge(ratcheted(property, value, child(path, name), tie));
  }
  for (const name of node.required) {
    if (ownMember(object, name) !== undefined) continue;
    const at = `${path}.${name}`;
    outcome.add(named(at, `${at} in body is required`, (field) => required(field)));
  }
  outcome.matches++;
}

/** Kind and apiVersion are alike in both by construction, so their equality says nothing. */
function isTypeMember(name: string): boolean {
  return name === 'kind' || name === 'apiVersion';
}

/** The alternative that came furthest so far. */
function further(best: Outcome | null, next: Outcome): Outcome {
  return best === null || next.matches > best.matches ? next : best;
}

function explainJunctors(node: SchemaNode, value: JsonValue, path: string): Outcome {
  const outcome = new Outcome();
  explainAnyOf(node.anyOf, value, path, outcome);
  explainOneOf(node.oneOf, value, path, outcome);
  explainAllOf(node.allOf, value, path, outcome);
  if (node.not !== null && accepts(node.not, value)) {
    outcome.add(general(`${quoted(path)} must not validate the schema (not)`));
  }
  outcome.matches++;
  return outcome;
}

function explainAnyOf(
  nodes: readonly SchemaNode[],
  value: JsonValue,
  path: string,
  outcome: Outcome,
): void {
  if (nodes.length === 0) return;
  let best: Outcome | null = null;
  for (const node of nodes) {
    const one = explainAlternative(node, value, path);
    if (one === null) continue;
    if (one.faults.length === 0) {
      outcome.merge(one);
      return;
    }
    best = further(best, one);
  }
  outcome.add(general(`${quoted(path)} must validate at least one schema (anyOf)`));
  if (best !== null) outcome.merge(best);
}

function explainOneOf(
  nodes: readonly SchemaNode[],
  value: JsonValue,
  path: string,
  outcome: Outcome,
): void {
  if (nodes.length === 0) return;
  let best: Outcome | null = null;
  let first: Outcome | null = null;
  let count = 0;
  for (const node of nodes) {
    const one = explainAlternative(node, value, path);
    if (one === null) continue;
    if (one.faults.length === 0) {
      count++;
      best = null;
      first ??= one;
    } else if (count === 0) best = further(best, one);
  }
  if (count === 1 && first !== null) {
    outcome.merge(first);
    return;
  }
  const found = count === 0 ? 'Found none valid' : `Found ${count} valid alternatives`;
  const text = `${quoted(path)} must validate one and only one schema (oneOf). ${found}`;
  outcome.add(general(text));
  if (best !== null) outcome.merge(best);
}

function explainAllOf(
  nodes: readonly SchemaNode[],
  value: JsonValue,
  path: string,
  outcome: Outcome,
): void {
  if (nodes.length === 0) return;
  let count = 0;
  for (const node of nodes) {
    const one = explainAlternative(node, value, path);
    if (one === null) continue;
    if (one.faults.length === 0) count++;
    outcome.merge(one);
  }
  if (count === nodes.length) return;
  const none = count === 0 ? '. None validated' : '';
  outcome.add(general(`${quoted(path)} must validate all the schemas (allOf)${none}`));
}
