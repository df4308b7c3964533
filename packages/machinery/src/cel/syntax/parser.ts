/** From the text of a CEL expression to its tree. */
import { tokenize, type Token } from './lexer.ts';
import { expandGlobal, expandMember } from './macros.ts';
import {
  ISSUES_MAX,
  partsOf,
  type Entry,
  type Expr,
  type Issue,
  type StructField,
} from './syntax.ts';
import { Uint, type CelValue } from '../values/values.ts';

/** Upstream's limits: nesting of an expression, and code points of its text. */
const DEPTH_MAX = 250;
const SOURCE_RUNES_MAX = 100_000;
/** Terms of one chain of equal operators, `a + b + c`; keeps the tree within the stack. */
const CHAIN_MAX = 250;
/** Depth of the whole tree, in which chains nest; keeps every walk over it within the stack. */
const TREE_DEPTH_MAX = 600;

const RESERVED: ReadonlySet<string> = new Set(
  (
    'as break const continue else for function if import let loop package namespace return ' +
    'var void while'
  ).split(' '),
);
/** Words of the language itself, which no field can be selected by. */
const WORDS: ReadonlySet<string> = new Set(['in', 'true', 'false', 'null']);
const RELATIONS: ReadonlySet<string> = new Set(['<', '<=', '>', '>=', '==', '!=', 'in']);
const FIRST_WORDS =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, " +
  'STRING, BYTES, IDENTIFIER}';

const FIRST_INDEX = FIRST_WORDS.replace("'!', ", "'!', '?', ");
const FIRST_ENTRY = FIRST_INDEX.replace("'(', '.', ", "'}', '(', '.', ',', ");
const STARTS: ReadonlySet<string> = new Set(['[', '{', '(', '.', '-', '!']);

/** Whether an expression can begin with it. */
function isStart(token: Token | undefined): boolean {
  if (token === undefined || token.kind === 'end' || token.kind === 'quotedName') return false;
  if (token.kind === 'sign') return STARTS.has(token.text);
  return token.kind !== 'name' || token.text !== 'in';
}

const FIRST_ARGUMENT = FIRST_WORDS.replace("'(', ", "'(', ')', ");

export type Parsed =
  | { readonly ok: true; readonly expr: Expr }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** Parses one expression and expands its macros; `cel.bind` is one only where `canBind`. */
export function parseCel(source: string, canBind: boolean): Parsed {
  if (source.length > SOURCE_RUNES_MAX) {
    const message =
      'expression code point size exceeds limit: ' +
      `size: ${source.length}, limit ${SOURCE_RUNES_MAX}`;
    return { ok: false, issues: [{ at: -1, message }] };
  }
  const parser = new Parser(source, canBind);
  const expr = parser.parse();
  if (expr === null || parser.issues.length > 0) return { ok: false, issues: parser.issues };
  if (isTooDeep(expr)) {
    const message = `expression recursion limit exceeded: ${TREE_DEPTH_MAX}`;
    return { ok: false, issues: [{ at: -1, message }] };
  }
  return { ok: true, expr };
}

function isTooDeep(root: Expr): boolean {
  let level: Expr[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > TREE_DEPTH_MAX) return true;
    level = level.flatMap(partsOf);
  }
  return false;
}

/** Signs and words that stand between two values. */
const OPERATORS: ReadonlySet<string> = new Set('? || && == != < <= > >= in + * / %'.split(' '));
const CLOSERS: ReadonlySet<string> = new Set([')', ']']);

class Halt {
  readonly kind = 'halt';
}
const HALT = new Halt();

class Parser {
  readonly issues: Issue[] = [];
  readonly #tokens: readonly Token[];
  #index = 0;
  #depth = 0;
  readonly #canBind: boolean;
  readonly #source: string;

  constructor(source: string, canBind: boolean) {
    this.#canBind = canBind;
    this.#source = source;
    this.#tokens = tokenize(source, this.issues);
  }

  parse(): Expr | null {
    const expr = this.#expr();
    if (expr instanceof Halt) return null;
    const rest = this.#peek();
    if (rest.kind !== 'end') {
      // one word too many is told from an expression that goes wrong there
      const isLast = this.#tokens[this.#index + 1]?.kind === 'end';
      const what = isLast ? 'extraneous' : 'mismatched';
      this.#refuse(rest, `Syntax error: ${what} input '${rest.text}' expecting <EOF>`);
      return null;
    }
    return expr;
  }

  #peek(): Token {
    return this.#tokens[this.#index] ?? { kind: 'end', at: 0, text: '' };
  }

  #take(): Token {
    const token = this.#peek();
    if (token.kind !== 'end') this.#index++;
    return token;
  }

  #isSign(text: string): boolean {
    const token = this.#peek();
    return (token.kind === 'sign' || token.kind === 'name') && token.text === text;
  }

  /** The sign if it is next, taken. */
  #accept(text: string): Token | null {
    return this.#isSign(text) ? this.#take() : null;
  }

  #refuse(token: Token, message: string): Halt {
    if (this.issues.length < ISSUES_MAX) this.issues.push({ at: token.at, message });
    return HALT;
  }

  /** What is wrong with the whole, not with a place in it. */
  #exceed(message: string): Halt {
    if (this.issues.length < ISSUES_MAX) this.issues.push({ at: -1, message });
    return HALT;
  }

  #unexpected(expecting: string): Halt {
    const token = this.#peek();
    const text = token.kind === 'end' ? '<EOF>' : token.text;
    return this.#refuse(token, `Syntax error: mismatched input '${text}' expecting ${expecting}`);
  }

  /** As ANTLR does, goes on past one word that should not be there, or that should be. */
  #expect(text: string): Token | Halt {
    const found = this.#accept(text);
    if (found !== null) return found;
    const token = this.#peek();
    const after = this.#tokens[this.#index + 1];
    if (token.kind !== 'end' && after?.text === text && after.kind === 'sign') {
      this.#refuse(token, `Syntax error: extraneous input '${token.text}' expecting '${text}'`);
      this.#index += 2;
      return after;
    }
    const isMissing = token.kind === 'end' ? CLOSERS.has(text) : text === ':' && isStart(token);
    if (!isMissing) return this.#unexpected(`'${text}'`);
    this.#refuse(token, `Syntax error: missing '${text}' at '${token.text || '<EOF>'}'`);
    return token;
  }

  /** A word that nothing begins with is passed over where something begins after it. */
  #primaryAfter(expecting: string): Expr | Halt {
    const token = this.#peek();
    if (token.kind === 'end' || !isStart(this.#tokens[this.#index + 1])) {
      const halt = this.#unexpected(expecting);
      this.#afterOperator(token);
      return halt;
    }
    this.#refuse(token, `Syntax error: extraneous input '${token.text}' expecting ${expecting}`);
    this.#index++;
    return this.#primary();
  }

  /** ANTLR takes an operator that has nothing before it for one, and misses what comes after. */
  #afterOperator(token: Token): void {
    if (!OPERATORS.has(token.text)) return;
    this.#index++;
    const next = this.#peek();
    if (isStart(next)) return;
    this.#unexpected(FIRST_WORDS);
    if (token.text !== '?') this.#afterOperator(next);
  }

  /** Whether something follows a `!` or a `-` that one of them can stand before. */
  #afterSign(sign: string): Halt | null {
    const next = this.#peek();
    const isMinus = next.text === '-' && next.kind === 'sign';
    if (sign === '!' && isMinus) {
      const number = this.#tokens[this.#index + 1];
      if (number?.kind === 'int' || number?.kind === 'double') return null;
      this.#index++;
      return this.#afterSign('-') ?? this.#unexpected(FIRST_WORDS);
    }
    if (isStart(next) && (sign === '!' || next.text !== '!')) return null;
    const text = next.text || '<EOF>';
    if (sign === '!') {
      this.#refuse(next, `Syntax error: extraneous input '${text}' expecting ${FIRST_WORDS}`);
    } else {
      this.#refuse(next, `Syntax error: no viable alternative at input '-${next.text}'`);
      if (next.text === '!') return this.#unary() instanceof Halt ? HALT : null;
      this.#unexpected(FIRST_WORDS);
    }
    this.#afterOperator(next);
    return HALT;
  }

  #expr(): Expr | Halt {
    if (++this.#depth > DEPTH_MAX) {
      return this.#exceed(`expression recursion limit exceeded: ${DEPTH_MAX}`);
    }
    const condition = this.#logic('||', '_||_', () =>
      this.#logic('&&', '_&&_', () => this.#relation()),
    );
    this.#depth--;
    if (condition instanceof Halt) return condition;
    const mark = this.#accept('?');
    if (mark === null) return condition;
    const yes = this.#logic('||', '_||_', () => this.#logic('&&', '_&&_', () => this.#relation()));
    if (yes instanceof Halt) return yes;
    const colon = this.#expect(':');
    if (colon instanceof Halt) return colon;
    this.#depth++;
    const no = this.#expr();
    this.#depth--;
    return no instanceof Halt ? no : call(mark.at, '_?_:_', [condition, yes, no]);
  }

  /** A chain of one logical operator becomes a balanced tree, as cel-go builds it. */
  #logic(sign: string, name: string, operand: () => Expr | Halt): Expr | Halt {
    const first = operand();
    if (first instanceof Halt) return first;
    const terms: Expr[] = [first];
    const places: number[] = [];
    for (let mark = this.#accept(sign); mark !== null; mark = this.#accept(sign)) {
      const term = operand();
      if (term instanceof Halt) return term;
      terms.push(term);
      places.push(mark.at);
    }
    return balanced(name, terms, places, 0, terms.length);
  }

  #relation(): Expr | Halt {
    let left = this.#sum();
    let length = 0;
    while (!(left instanceof Halt) && RELATIONS.has(this.#peek().text)) {
      const mark = this.#take();
      const right = this.#sum();
      if (right instanceof Halt) return right;
      const name = mark.text === 'in' ? '@in' : `_${mark.text}_`;
      left = call(mark.at, name, [left, right]);
      if (++length > CHAIN_MAX) return this.#tooLong();
    }
    return left;
  }

  #tooLong(): Halt {
    return this.#exceed('max recursion depth exceeded');
  }

  #sum(): Expr | Halt {
    let left = this.#product();
    let length = 0;
    while (!(left instanceof Halt) && (this.#isSign('+') || this.#isSign('-'))) {
      const mark = this.#take();
      const right = this.#product();
      if (right instanceof Halt) return right;
      left = call(mark.at, `_${mark.text}_`, [left, right]);
      if (++length > CHAIN_MAX) return this.#tooLong();
    }
    return left;
  }

  #product(): Expr | Halt {
    let left = this.#unary();
    let length = 0;
    const isNext = (): boolean => this.#isSign('*') || this.#isSign('/') || this.#isSign('%');
    while (!(left instanceof Halt) && isNext()) {
      const mark = this.#take();
      const right = this.#unary();
      if (right instanceof Halt) return right;
      left = call(mark.at, `_${mark.text}_`, [left, right]);
      if (++length > CHAIN_MAX) return this.#tooLong();
    }
    return left;
  }

  #unary(): Expr | Halt {
    const mark = this.#peek();
    if (!this.#isSign('!') && !this.#isSign('-')) return this.#member();
    const sign = mark.text;
    let count = 0;
    let last: Token = mark;
    while (this.#isSign(sign)) {
      last = this.#take();
      count++;
    }
    const number = this.#peek();
    const fault = this.#afterSign(sign);
    if (fault !== null) return fault;
    if (sign === '-' && (number.kind === 'int' || number.kind === 'double')) {
      this.#index--;
      count--;
    }
    const operand = this.#member();
    if (operand instanceof Halt || count % 2 === 0) return operand;
    return call(count === 1 ? mark.at : last.at, sign === '!' ? '!_' : '-_', [operand]);
  }

  #member(): Expr | Halt {
    let left = this.#primary();
    for (let length = 0; !(left instanceof Halt); length++) {
      if (length > CHAIN_MAX) return this.#tooLong();
      const mark = this.#peek();
      if (this.#accept('.') !== null) left = this.#select(left, mark.at);
      else if (this.#accept('[') !== null) left = this.#index_(left, mark.at);
      else if (this.#isSign('{') && pathOf(left) !== null) left = this.#struct(left, mark.at);
      else return left;
    }
    return left;
  }

  #select(operand: Expr, at: number): Expr | Halt {
    const isOptional = this.#accept('?') !== null;
    const token = this.#take();
    if (token.kind === 'quotedName') return this.#refuse(token, "unsupported syntax: '`'");
    if (token.kind !== 'name' || WORDS.has(token.text)) {
      this.#index--;
      return this.#refuse(token, `Syntax error: no viable alternative at input '.${token.text}'`);
    }
    const field = token.text;
    const open = this.#peek();
    if (isOptional || this.#accept('(') === null) {
      return { kind: 'selection', at, operand, field, isTest: false, isOptional };
    }
    const args = this.#list(')');
    if (args instanceof Halt) return args;
    const expanded = expandMember(field, operand, args, open.at, this.#canBind);
    if (expanded === null) return { kind: 'call', at: open.at, name: field, target: operand, args };
    return this.#checked(expanded);
  }

  #checked(expanded: Expr | Issue): Expr | Halt {
    if ('kind' in expanded) return expanded;
    this.issues.push(expanded);
    return HALT;
  }

  #index_(operand: Expr, at: number): Expr | Halt {
    const isOptional = this.#accept('?') !== null;
    if (!isOptional && (this.#peek().kind === 'end' || this.#isSign(']'))) {
      return this.#unexpected(FIRST_INDEX);
    }
    const index = this.#expr();
    if (index instanceof Halt) return index;
    const close = this.#expect(']');
    if (close instanceof Halt) return close;
    return call(at, isOptional ? '_[?_]' : '_[_]', [operand, index]);
  }

  #list(end: string): Expr[] | Halt {
    const items: Expr[] = [];
    if (this.#peek().kind === 'end') return this.#unexpected(FIRST_ARGUMENT);
    if (this.#isSign(',')) {
      const token = this.#take();
      const what = `extraneous input ',' expecting ${FIRST_ARGUMENT}`;
      this.#refuse(token, `Syntax error: ${what}`);
    }
    while (this.#accept(end) === null) {
      const item = this.#expr();
      if (item instanceof Halt) return item;
      items.push(item);
      if (this.#accept(',') === null && !this.#isSign(end)) {
        return this.#expect(end) instanceof Halt ? HALT : items;
      }
      if (this.#isSign(end) && this.#tokens[this.#index - 1]?.text === ',') {
        return this.#unexpected(FIRST_WORDS);
      }
    }
    return items;
  }

  #primary(): Expr | Halt {
    const token = this.#peek();
    switch (token.kind) {
      case 'int':
      case 'uint':
      case 'double':
      case 'string':
      case 'bytes':
        return this.#literal(false);
      case 'name':
        return this.#name('');
      case 'sign':
        return this.#bracket(token);
      case 'quotedName':
      case 'end':
        return this.#primaryAfter(FIRST_WORDS);
    }
  }

  #bracket(token: Token): Expr | Halt {
    if (this.#accept('-') !== null) return this.#literal(true);
    if (this.#accept('(') !== null) {
      const inner = this.#expr();
      if (inner instanceof Halt) return inner;
      const close = this.#expect(')');
      return close instanceof Halt ? close : inner;
    }
    if (this.#accept('[') !== null) return this.#listLiteral(token.at);
    if (this.#accept('{') !== null) return this.#mapLiteral(token.at);
    if (this.#accept('.') !== null) return this.#name('.');
    return this.#primaryAfter(FIRST_WORDS);
  }

  #name(dot: string): Expr | Halt {
    const token = this.#take();
    if (token.kind !== 'name') {
      this.#index--;
      const text = this.#source.slice(this.#tokens[this.#index - 1]?.at, token.at) + token.text;
      return this.#refuse(token, `Syntax error: no viable alternative at input '${text}'`);
    }
    if (dot === '' && ['true', 'false', 'null'].includes(token.text)) {
      const value = token.text === 'null' ? null : token.text === 'true';
      return { kind: 'constant', at: token.at, value };
    }
    if (token.text === 'in') {
      this.#index--;
      return this.#primaryAfter(FIRST_WORDS);
    }
    if (RESERVED.has(token.text)) {
      this.#refuse(token, `reserved identifier: ${token.text}`);
    }
    const open = this.#peek();
    const name = dot + token.text;
    if (this.#accept('(') === null) return { kind: 'identifier', at: token.at, name };
    const args = this.#list(')');
    if (args instanceof Halt) return args;
    const expanded = expandGlobal(name, args, open.at);
    if (expanded !== null) return this.#checked(expanded);
    return { kind: 'call', at: open.at, name, target: null, args };
  }

  #listLiteral(at: number): Expr | Halt {
    const items: Expr[] = [];
    const optional: number[] = [];
    if (this.#isSign(',') && this.#tokens[this.#index + 1]?.text === ']') this.#take();
    while (this.#accept(']') === null) {
      if (items.length > 0 && this.#peek().kind === 'end') {
        const closed = this.#expect(']');
        return closed instanceof Halt ? closed : { kind: 'list', at, items, optional };
      }
      if (this.#accept('?') !== null) optional.push(items.length);
      const item = this.#expr();
      if (item instanceof Halt) return item;
      items.push(item);
      if (this.#accept(',') === null && !this.#isSign(']')) {
        return this.#unexpected("{']', ','}");
      }
    }
    return { kind: 'list', at, items, optional };
  }

  #mapLiteral(at: number): Expr | Halt {
    const entries: Entry[] = [];
    if (this.#isSign(',') && this.#tokens[this.#index + 1]?.text === '}') this.#take();
    while (this.#accept('}') === null) {
      const isOptional = this.#accept('?') !== null;
      if (entries.length === 0 && this.#peek().kind === 'end') {
        return this.#unexpected(FIRST_ENTRY);
      }
      const key = this.#expr();
      if (key instanceof Halt) return key;
      const colon = this.#expect(':');
      if (colon instanceof Halt) return colon;
      const value = this.#expr();
      if (value instanceof Halt) return value;
      entries.push({ key, value, isOptional });
      if (this.#accept(',') === null && !this.#isSign('}')) {
        return this.#unexpected("{'}', ','}");
      }
    }
    return { kind: 'map', at, entries };
  }

  #struct(type: Expr, at: number): Expr | Halt {
    this.#take();
    const fields: StructField[] = [];
    while (this.#accept('}') === null) {
      const isOptional = this.#accept('?') !== null;
      const token = this.#take();
      if (token.kind !== 'name' && token.kind !== 'quotedName') {
        this.#index--;
        return this.#unexpected("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}");
      }
      const colon = this.#expect(':');
      if (colon instanceof Halt) return colon;
      const value = this.#expr();
      if (value instanceof Halt) return value;
      const name = token.kind === 'quotedName' ? token.text.slice(1, -1) : token.text;
      fields.push({ at: colon.at, name, value, isOptional });
      if (this.#accept(',') === null && !this.#isSign('}')) {
        return this.#unexpected("{'}', ','}");
      }
    }
    return { kind: 'struct', at, name: pathOf(type) ?? '', fields };
  }

  #literal(isNegative: boolean): Expr | Halt {
    const token = this.#take();
    const value = literalValue(token, isNegative);
    if (value === undefined) {
      if (token.kind === 'int') return this.#refuse(token, 'invalid int literal');
      if (token.kind === 'uint') return this.#refuse(token, 'invalid uint literal');
      if (token.kind === 'double') return this.#refuse(token, 'invalid double literal');
      this.#index--;
      return this.#unexpected(FIRST_WORDS);
    }
    return { kind: 'constant', at: isNegative ? token.at - 1 : token.at, value };
  }
}

function call(at: number, name: string, args: readonly Expr[]): Expr {
  return { kind: 'call', at, name, target: null, args };
}

function balanced(
  name: string,
  terms: readonly Expr[],
  places: readonly number[],
  from: number,
  to: number,
): Expr | Halt {
  const [only] = terms.slice(from, from + 1);
  if (only === undefined) return HALT;
  if (to - from === 1) return only;
  const middle = from + Math.ceil((to - from) / 2);
  const left = balanced(name, terms, places, from, middle);
  const right = balanced(name, terms, places, middle, to);
  if (left instanceof Halt || right instanceof Halt) return HALT;
  return call(places[middle - 1] ?? 0, name, [left, right]);
}

/** `a.b.c` of a chain of plain selections, or null. */
export function pathOf(expr: Expr): string | null {
  if (expr.kind === 'identifier') return expr.name;
  if (expr.kind !== 'selection' || expr.isTest || expr.isOptional) return null;
  const head = pathOf(expr.operand);
  return head === null ? null : `${head}.${expr.field}`;
}

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;

function literalValue(token: Token, isNegative: boolean): CelValue | undefined {
  if (token.kind === 'string' || token.kind === 'bytes') {
    return isNegative ? undefined : token.value;
  }
  if (token.kind === 'double') {
    const value = Number(isNegative ? `-${token.text}` : token.text);
    return Number.isFinite(value) ? value : undefined;
  }
  if (token.kind === 'int') {
    const digits = BigInt(token.text);
    const value = isNegative ? -digits : digits;
    return value >= INT_MIN && value <= INT_MAX ? value : undefined;
  }
  if (token.kind !== 'uint' || isNegative) return undefined;
  const value = BigInt(token.text.slice(0, -1));
  return value <= UINT_MAX ? new Uint(value) : undefined;
}
