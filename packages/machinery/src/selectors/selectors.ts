/**
 * Label selectors: the text form of URLs (`a=b,c in (d,e),!f`), the object form (`matchLabels`,
 * `matchExpressions`), and matching on parsed labels. Matching on stored bytes is in
 * `selectors-bytes.ts`.
 *
 * Parsing follows upstream token by token, because clients see its complaints: a word is an
 * operator or a name depending on where it stands (`in in (in)` is legal).
 */
import { ownMember } from '@megaplane/base/members';
import {
  aggregate,
  fieldErrorText,
  invalidValue,
  printed,
  type FieldError,
} from '../meta/fielderrors.ts';
import { escapedJson } from '../json/quoting.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import { labelValueErrors, qualifiedNameErrors } from '../meta/names.ts';

export const OPERATORS = ['in', 'notin', '=', '==', '!=', 'gt', 'lt', 'exists', '!'] as const;
export type Operator = (typeof OPERATORS)[number];

/** Characters of a selector in a text; of a list of values the most that a client needs. */
export const SELECTOR_CHARS_MAX: number = 256 * 1024;
/** Conditions of one selector: all are asked of each object. */
export const SELECTOR_TERMS_MAX = 1000;

/** Why a selector is not read; '' where it is. */
export function selectorExcess(chars: number, terms: number): string {
  if (chars > SELECTOR_CHARS_MAX) return `more than ${SELECTOR_CHARS_MAX} characters in a selector`;
  return terms > SELECTOR_TERMS_MAX ? `more than ${SELECTOR_TERMS_MAX} terms in a selector` : '';
}

/** Longer lists of values are searched, not scanned. */
const SCANNED_MAX = 16;

/** One condition on one label. `values` is sorted, without doubles. */
export interface Requirement {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

/** All requirements must hold; none means everything. `nothing` matches no object at all. */
export interface LabelSelector {
  readonly requirements: readonly Requirement[];
  readonly nothing?: boolean;
}

export const EVERYTHING: LabelSelector = { requirements: [] };
export const NOTHING: LabelSelector = { requirements: [], nothing: true };

/** A parse that fails gives the text that a 400 carries. */
export type Parsed<T> = { readonly value: T } | { readonly error: string };

const BINARY_OPERATORS = OPERATORS.slice(0, 7).join(', ');

type TokenKind =
  | 'end'
  | 'name'
  | 'in'
  | 'notin'
  | '('
  | ')'
  | ','
  | '!'
  | '='
  | '=='
  | '!='
  | '>'
  | '<';
interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const TOKEN = /[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>\0]+)|(\0|$))/y;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (;;) {
    const match = TOKEN.exec(text);
    const [, symbol, word] = match ?? [];
    if (symbol !== undefined) tokens.push({ kind: symbol as TokenKind, text: symbol });
    else if (word === 'in' || word === 'notin') tokens.push({ kind: word, text: word });
    else if (word !== undefined) tokens.push({ kind: 'name', text: word });
    else {
      tokens.push({ kind: 'end', text: '' });
      return tokens;
    }
  }
}

const END: Token = { kind: 'end', text: '' };

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  /** The next token; `in` and `notin` are names everywhere but where an operator stands. */
  peek(): Token {
    const token = this.#tokens[this.#at] ?? END;
    return token.kind === 'in' || token.kind === 'notin' ? { ...token, kind: 'name' } : token;
  }

  take(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }

  takeOperator(): Token {
    return this.#tokens[this.#at++] ?? END;
  }
}

/** Parses the text of a `labelSelector` parameter; the requirements come sorted by key. */
export function parseLabelSelector(text: string): Parsed<LabelSelector> {
  const excess = selectorExcess(text.length, 0);
  if (excess !== '') return { error: excess };
  const parser = new Parser(text);
  const requirements: Requirement[] = [];
  for (;;) {
    const first = parser.peek();
    if (first.kind === 'end') break;
    if (first.kind !== 'name' && first.kind !== '!') {
      return { error: `found '${first.text}', expected: !, identifier, or 'end of string'` };
    }
    const parsed = parseRequirement(parser);
    if ('error' in parsed) return { error: `unable to parse requirement: ${parsed.error}` };
    requirements.push(parsed.value);
    const tooMany = selectorExcess(0, requirements.length);
    if (tooMany !== '') return { error: tooMany };
    const after = parser.take();
    if (after.kind === 'end') break;
    if (after.kind !== ',') {
      return { error: `found '${after.text}', expected: ',' or 'end of string'` };
    }
    const next = parser.peek();
    if (next.kind !== 'name' && next.kind !== '!') {
      return { error: `found '${next.text}', expected: identifier after ','` };
    }
  }
  return { value: { requirements: sorted(requirements) } };
}

function sorted(requirements: Requirement[]): Requirement[] {
  return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

function parseRequirement(parser: Parser): Parsed<Requirement> {
  let token = parser.take();
  const isNegated = token.kind === '!';
  if (isNegated) token = parser.take();
  if (token.kind !== 'name') return { error: `found '${token.text}', expected: identifier` };
  const key = token.text;
  const wrongKey = keyError(key);
  if (wrongKey !== undefined) return { error: fieldErrorText(wrongKey) };
  if (isNegated) return { value: { key, operator: '!', values: [] } };
  const after = parser.peek();
  if (after.kind === 'end' || after.kind === ',') {
    return { value: { key, operator: 'exists', values: [] } };
  }
  const operator = operatorOf(parser.takeOperator());
  if ('error' in operator) return operator;
  const isSet = operator.value === 'in' || operator.value === 'notin';
  const values = isSet ? parseValues(parser) : parseExactValue(parser);
  if ('error' in values) return values;
  // Of a set in a text upstream sees each value once, in order.
  return requirementOf(key, operator.value, [...new Set(values.value)].sort());
}

const BY_TOKEN: ReadonlyMap<TokenKind, Operator> = new Map([
  ['in', 'in'],
  ['notin', 'notin'],
  ['=', '='],
  ['==', '=='],
  ['!=', '!='],
  ['>', 'gt'],
  ['<', 'lt'],
]);

function operatorOf(token: Token): Parsed<Operator> {
  const value = BY_TOKEN.get(token.kind);
  if (value !== undefined) return { value };
  return { error: `found '${token.text}', expected: ${BINARY_OPERATORS}` };
}

function parseExactValue(parser: Parser): Parsed<string[]> {
  const next = parser.peek();
  if (next.kind === 'end' || next.kind === ',') return { value: [''] };
  const token = parser.take();
  if (token.kind === 'name') return { value: [token.text] };
  return { error: `found '${token.text}', expected: identifier` };
}

function parseValues(parser: Parser): Parsed<string[]> {
  const open = parser.take();
  if (open.kind !== '(') return { error: `found '${open.text}' expected: '('` };
  const next = parser.peek();
  if (next.kind === ')') {
    parser.take();
    return { value: [''] };
  }
  if (next.kind !== 'name' && next.kind !== ',') {
    return { error: `found '${next.text}', expected: ',', ')' or identifier` };
  }
  const list = parseList(parser);
  if ('error' in list) return list;
  const close = parser.take();
  // Upstream names the token that opened the list here, not the one it found.
  return close.kind === ')' ? list : { error: `found '${next.text}', expected: ')'` };
}

/** Names and commas up to the closing parenthesis; an empty place in the list is the value "". */
function parseList(parser: Parser): Parsed<string[]> {
  const values: string[] = [];
  for (;;) {
    const token = parser.take();
    if (token.kind === 'name') {
      values.push(token.text);
      const next = parser.peek();
      if (next.kind === ')') return { value: values };
      if (next.kind !== ',') return { error: `found '${next.text}', expected: ',' or ')'` };
    } else if (token.kind === ',') {
      if (values.length === 0) values.push('');
      const next = parser.peek();
      if (next.kind === ')') return { value: [...values, ''] };
      if (next.kind === ',') {
        parser.take();
        values.push('');
      }
    } else {
      return { error: `found '${token.text}', expected: ',', or identifier` };
    }
  }
}

function keyError(key: string, path = '<nil>'): FieldError | undefined {
  const found = qualifiedNameErrors(key);
  return found.length === 0 ? undefined : invalidValue(path, key, found.join('; '));
}

const INTEGER = /^[+-]?0*([0-9]{1,19})$/;
const INT64_MAX = 2n ** 63n - 1n;

/** A label value read as Go reads an int64; undefined where it is none. */
export function integerOf(text: string): bigint | undefined {
  const digits = INTEGER.exec(text)?.[1];
  if (digits === undefined) return undefined;
  const value = text.startsWith('-') ? -BigInt(digits) : BigInt(digits);
  return value > INT64_MAX || value < -INT64_MAX - 1n ? undefined : value;
}

/** Checks and builds one requirement; the error is the aggregated text of all findings. */
export function requirementOf(
  key: string,
  operator: Operator,
  list: readonly string[],
): Parsed<Requirement> {
  const found = requirementErrors(key, operator, list, '');
  if (found.length > 0) return { error: aggregate(found.map(fieldErrorText)) };
  return { value: { key, operator, values: [...new Set(list)].sort() } };
}

/** What is wrong with a requirement at `path`, as `labels.NewRequirement` says it. */
export function requirementErrors(
  key: string,
  operator: Operator,
  values: readonly string[] | undefined,
  path: string,
): FieldError[] {
  const prefix = path === '' ? '' : `${path}.`;
  const found: FieldError[] = [];
  const wrongKey = keyError(key, `${prefix}key`);
  if (wrongKey !== undefined) found.push(wrongKey);
  const where = `${prefix}values`;
  const counted = countError(operator, values ?? []);
  if (counted !== undefined) {
    found.push(invalidValue(where, values === undefined ? null : [...values], counted));
  }
  if (operator === 'gt' || operator === 'lt') {
    const text = "for 'Gt', 'Lt' operators, the value must be an integer";
    for (const [index, value] of (values ?? []).entries()) {
      if (integerOf(value) === undefined) {
        found.push(invalidValue(`${where}[${index}]`, value, text));
      }
    }
  }
  for (const [index, value] of (values ?? []).entries()) {
    const wrong = labelValueErrors(value);
    if (wrong.length > 0) {
      found.push(invalidValue(`${where}[${index}][${key}]`, value, wrong.join('; ')));
    }
  }
  return found;
}

function countError(operator: Operator, values: readonly string[]): string | undefined {
  switch (operator) {
    case 'in':
    case 'notin':
      if (values.length > 0) return undefined;
      return "for 'in', 'notin' operators, values set can't be empty";
    case '=':
    case '==':
    case '!=':
      if (values.length === 1) return undefined;
      return 'exact-match compatibility requires one single value';
    case 'gt':
    case 'lt':
      if (values.length === 1) return undefined;
      return "for 'Gt', 'Lt' operators, exactly one value is required";
    case 'exists':
    case '!':
      if (values.length === 0) return undefined;
      return 'values set must be empty for exists and does not exist';
  }
}

const OBJECT_OPERATORS: ReadonlyMap<string, Operator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

/**
 * The selector of a `LabelSelector` object. An absent object selects nothing, an empty one
 * everything: the difference decides who owns which pods.
 */
export function labelSelectorOf(object: JsonValue | undefined): Parsed<LabelSelector> {
  if (!isObject(object)) return { value: NOTHING };
  const requirements: Requirement[] = [];
  for (const [key, value] of Object.entries(objectAt(object, 'matchLabels') ?? {})) {
    const parsed = requirementOf(key, '=', [typeof value === 'string' ? value : '']);
    if ('error' in parsed) return parsed;
    requirements.push(parsed.value);
  }
  for (const expression of listAt(object, 'matchExpressions')) {
    const name = stringAt(expression, 'operator');
    const operator = OBJECT_OPERATORS.get(name);
    if (operator === undefined)
      return { error: `"${name}" is not a valid label selector operator` };
    const values = listAt(expression, 'values').filter((value) => typeof value === 'string');
    const parsed = requirementOf(stringAt(expression, 'key'), operator, values);
    if ('error' in parsed) return parsed;
    requirements.push(parsed.value);
  }
  return { value: { requirements: sorted(requirements) } };
}

/** The selector of a plain map (`spec.selector` of Services and replication controllers). */
export function mapSelector(map: JsonObject | undefined): LabelSelector {
  const requirements: Requirement[] = [];
  for (const [key, value] of Object.entries(map ?? {})) {
    if (typeof value === 'string') requirements.push({ key, operator: '=', values: [value] });
  }
  return { requirements: sorted(requirements) };
}

/** What is wrong with a LabelSelector object inside another object, by path. */
export function labelSelectorErrors(object: JsonValue | undefined, path: string): FieldError[] {
  const found: FieldError[] = [];
  for (const [key, value] of Object.entries(objectAt(object, 'matchLabels') ?? {})) {
    const wrongKey = keyError(key, `${path}.matchLabels`);
    if (wrongKey !== undefined) found.push(wrongKey);
    const text = typeof value === 'string' ? value : '';
    for (const wrong of labelValueErrors(text)) {
      found.push(invalidValue(`${path}.matchLabels`, text, wrong));
    }
  }
  for (const [index, expression] of listAt(object, 'matchExpressions').entries()) {
    found.push(...expressionErrors(expression, `${path}.matchExpressions[${index}]`));
  }
  return found;
}

function expressionErrors(expression: JsonValue, path: string): FieldError[] {
  const found: FieldError[] = [];
  const operator = stringAt(expression, 'operator');
  const values = listAt(expression, 'values');
  const known = OBJECT_OPERATORS.get(operator);
  if (known === undefined) {
    const text = 'not a valid selector operator';
    found.push(invalidValue(`${path}.operator`, printed(escapedJson(operator)), text));
  } else if ((known === 'in' || known === 'notin') && values.length === 0) {
    const body = "must be specified when `operator` is 'In' or 'NotIn'";
    found.push({ kind: 'required', field: `${path}.values`, body: `Required value: ${body}` });
  } else if ((known === 'exists' || known === '!') && values.length > 0) {
    const body = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    found.push({ kind: 'forbidden', field: `${path}.values`, body: `Forbidden: ${body}` });
  }
  const wrongKey = keyError(stringAt(expression, 'key'), `${path}.key`);
  if (wrongKey !== undefined) found.push(wrongKey);
  for (const [index, value] of values.entries()) {
    const text = typeof value === 'string' ? value : '';
    for (const wrong of labelValueErrors(text)) {
      found.push(invalidValue(`${path}.values[${index}]`, text, wrong));
    }
  }
  return found;
}

/** True where the labels (`metadata.labels`, may be absent) satisfy every requirement. */
export function matchesLabels(selector: LabelSelector, labels: JsonObject | undefined): boolean {
  if (selector.nothing === true) return false;
  return selector.requirements.every((requirement) => holds(requirement, labels));
}

function holds(requirement: Requirement, labels: JsonObject | undefined): boolean {
  const has = labels !== undefined && Object.hasOwn(labels, requirement.key);
  const raw = has ? ownMember(labels, requirement.key) : undefined;
  const value = typeof raw === 'string' ? raw : '';
  switch (requirement.operator) {
    case 'in':
    case '=':
    case '==':
      return has && isAmong(requirement.values, value);
    case 'notin':
    case '!=':
      return !has || !isAmong(requirement.values, value);
    case 'exists':
      return has;
    case '!':
      return !has;
    case 'gt':
    case 'lt':
      return has && comparesTo(value, requirement);
  }
}

/** Lists of megabytes are legal, and are asked about each object. */
function isAmong(values: readonly string[], value: string): boolean {
  if (values.length <= SCANNED_MAX) return values.includes(value);
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? '') < value) low = middle + 1;
    else high = middle;
  }
  return values[low] === value;
}

function comparesTo(value: string, requirement: Requirement): boolean {
  const found = integerOf(value);
  const bound = integerOf(requirement.values[0] ?? '');
  if (found === undefined || bound === undefined) return false;
  return requirement.operator === 'gt' ? found > bound : found < bound;
}

/** The text form; parsing it gives the same selector. Sets stay sets: `a in (b)`. */
export function selectorText(selector: LabelSelector): string {
  return selector.requirements.map(requirementText).join(',');
}

function requirementText({ key, operator, values }: Requirement): string {
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case 'gt':
      return `${key}>${values[0] ?? ''}`;
    case 'lt':
      return `${key}<${values[0] ?? ''}`;
    case '=':
    case '==':
    case '!=':
      return `${key}${operator}${values[0] ?? ''}`;
  }
}

/** A LabelSelector object as tables show it: `<none>` where nothing narrows it. */
export function formatLabelSelector(object: JsonValue | undefined): string {
  const parsed = labelSelectorOf(object);
  if ('error' in parsed) return '<error>';
  return selectorText(parsed.value) || '<none>';
}
