/**
 * The tree of a CEL expression, as far as a shard selector needs it: shapes and names, nothing is
 * checked or evaluated. Upstream parses shard selectors with cel-go and tells people what kind of
 * expression it found; kinds have cel-go's numbers for that.
 */
import { ownMember } from '@megaplane/base/members';
import { tokensOf, type Token } from './tokens.ts';

export const KIND = {
  call: 1,
  identifier: 3,
  list: 4,
  literal: 5,
  map: 6,
  select: 7,
  struct: 8,
} as const;

export type Expression =
  | { readonly kind: typeof KIND.call; readonly name: string; readonly args: Expression[] }
  | { readonly kind: typeof KIND.identifier; readonly name: string }
  | { readonly kind: typeof KIND.literal; readonly type: string; readonly text: string }
  | { readonly kind: typeof KIND.select; readonly operand: Expression; readonly name: string }
  | { readonly kind: typeof KIND.list | typeof KIND.map | typeof KIND.struct };

/** Go's names of the types of literals, as upstream prints them. */
const TYPES = {
  string: 'string',
  bytes: '[]uint8',
  int: 'int64',
  uint: 'uint64',
  double: 'float64',
};
const RESERVED: ReadonlySet<string> = new Set(
  (
    'as break const continue else for function if import let loop package namespace return ' +
    'var void while'
  ).split(' '),
);
const STARTS =
  "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, " +
  'STRING, BYTES, IDENTIFIER';
const STARTS_OR_CLOSE = STARTS.replace("'.',", "')', '.',");
/** Operators from loose to tight; those of one row bind from the left. */
const OPERATORS: readonly (readonly string[])[] = [
  ['||'],
  ['&&'],
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];
/** Nesting that is followed; upstream stops at 250. */
const DEPTH_MAX = 250;

/** Ends a parse that cannot go on; caught in `parseExpression` and nowhere else. */
class SyntaxFault extends Error {}

/** The tree of `text`, or upstream's text of the first fault (exact for the usual ones). */
export function parseExpression(text: string): Expression | string {
  const { tokens, error } = tokensOf(text);
  // the lexer is one token ahead, so what it stumbles over is told first where both fail
  if (error !== '') return error;
  try {
    return new Parser(tokens).whole();
  } catch (fault) {
    if (fault instanceof SyntaxFault) return fault.message;
    throw fault;
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;
  /** Faults in meaning, which upstream's parser reports after those in form. */
  #later = '';

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const expression = this.#expression(STARTS);
    const { kind, text } = this.#peek();
    if (kind !== 'end') {
      const verb = this.#peek(1).kind === 'end' ? 'extraneous' : 'mismatched';
      throw new SyntaxFault(`Syntax error: ${verb} input '${text}' expecting <EOF>`);
    }
    if (this.#later !== '') throw new SyntaxFault(this.#later);
    return expression;
  }

  #peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] ?? END;
  }

  #is(text: string): boolean {
    const { kind, text: found } = this.#peek();
    return kind === 'sign' && found === text;
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at++;
    return true;
  }

  #expect(text: string): void {
    if (this.#take(text)) return;
    const found = this.#peek().text;
    if (text === ']') throw new SyntaxFault(`Syntax error: missing ']' at '${found}'`);
    throw new SyntaxFault(`Syntax error: mismatched input '${found}' expecting '${text}'`);
  }

  #note(fault: string): void {
    if (this.#later === '') this.#later = fault;
  }

  #expression(expected: string): Expression {
    if (++this.#depth > DEPTH_MAX) throw new SyntaxFault('max recursion depth exceeded');
    const condition = this.#binary(0, expected);
    let result = condition;
    if (this.#take('?')) {
      const first = this.#binary(0, STARTS);
      this.#expect(':');
      result = call('_?_:_', [condition, first, this.#expression(STARTS)]);
    }
    this.#depth--;
    return result;
  }

  #binary(level: number, expected: string): Expression {
    const operators = OPERATORS[level];
    if (operators === undefined) return this.#unary(expected);
    let left = this.#binary(level + 1, expected);
    for (;;) {
      const { kind, text } = this.#peek();
      if (kind !== 'sign' || !operators.includes(text)) return left;
      this.#at++;
      const right = this.#binary(level + 1, STARTS);
      left = joined(text === 'in' ? '@in' : `_${text}_`, left, right);
    }
  }

  #unary(expected: string): Expression {
    const sign = this.#is('!') ? '!' : '-';
    let count = 0;
    while (this.#take(sign)) count++;
    if (count === 0) return this.#member(this.#primary(expected));
    const next = this.#peek();
    if (sign === '-' && count === 1 && (next.kind === 'int' || next.kind === 'double')) {
      return this.#member(this.#number(next, '-'));
    }
    const inner = this.#member(this.#operand());
    return count % 2 === 0 ? inner : call(`${sign}_`, [inner]);
  }

  /** What stands behind signs: `!-1` is "not" of a negative number. */
  #operand(): Expression {
    const number = this.#peek(1);
    const isNumber = number.kind === 'int' || number.kind === 'double';
    if (!this.#is('-') || !isNumber) return this.#primary(STARTS);
    this.#at++;
    return this.#number(number, '-');
  }

  #member(start: Expression): Expression {
    let found = start;
    for (;;) {
      if (this.#take('.')) found = this.#select(found);
      else if (this.#take('[')) {
        if (this.#take('?')) this.#note("unsupported syntax '[?'");
        const index = this.#expression(STARTS);
        this.#expect(']');
        found = call('_[_]', [found, index]);
      } else if (this.#is('{') && isTypeName(found)) {
        this.#at++;
        this.#fields();
        found = { kind: KIND.struct };
      } else return found;
    }
  }

  #select(operand: Expression): Expression {
    if (this.#take('?')) this.#note("unsupported syntax '.?'");
    const { kind, text } = this.#peek();
    if (kind !== 'name') {
      const isValue = text === 'true' || text === 'false' || text === 'null';
      throw new SyntaxFault(
        isValue
          ? `Syntax error: mismatched input '${text}' expecting IDENTIFIER`
          : `Syntax error: no viable alternative at input '.${kind === 'end' ? '' : text}'`,
      );
    }
    this.#at++;
    if (text.startsWith('`')) this.#note("unsupported syntax: '`'");
    if (this.#take('(')) return call(text, this.#list(')'));
    return { kind: KIND.select, operand, name: text };
  }

  #primary(expected: string): Expression {
    const token = this.#peek();
    switch (token.kind) {
      case 'string':
      case 'bytes':
        this.#at++;
        return this.#quoted(token);
      case 'int':
      case 'uint':
      case 'double':
        return this.#number(token, '');
      case 'name':
        return this.#name('');
      case 'sign':
      case 'end':
        return this.#sign(token.text, expected);
    }
  }

  #sign(text: string, expected: string): Expression {
    if (text === 'true' || text === 'false' || text === 'null') {
      this.#at++;
      const type = text === 'null' ? 'structpb.NullValue' : 'bool';
      return { kind: KIND.literal, type, text };
    }
    if (this.#take('(')) {
      const inner = this.#expression(STARTS);
      this.#expect(')');
      return inner;
    }
    if (this.#take('[')) {
      this.#list(']');
      return { kind: KIND.list };
    }
    if (this.#take('{')) {
      this.#fields();
      return { kind: KIND.map };
    }
    if (this.#take('.')) return this.#name('.');
    // one token too many is said to be that where what follows would fit
    const next = this.#peek(1);
    const fits =
      next.kind !== 'end' && (isStart(next) || (next.text === ')' && expected !== STARTS));
    const verb = fits ? 'extraneous' : 'mismatched';
    throw new SyntaxFault(`Syntax error: ${verb} input '${text}' expecting {${expected}}`);
  }

  #name(dot: string): Expression {
    const { kind, text } = this.#peek();
    if (kind !== 'name') throw new SyntaxFault(`Syntax error: no viable alternative at input '.'`);
    this.#at++;
    if (text.startsWith('`')) {
      throw new SyntaxFault(`Syntax error: mismatched input '${text}' expecting {${STARTS}}`);
    }
    if (RESERVED.has(text)) this.#note(`reserved identifier: ${text}`);
    if (this.#take('(')) return call(dot + text, this.#list(')'));
    return { kind: KIND.identifier, name: dot + text };
  }

  #number(token: Token, minus: string): Expression {
    this.#at++;
    const { kind, text } = token;
    if (kind === 'double') {
      if (!Number.isFinite(Number(text))) this.#note('invalid double literal');
    } else {
      const value = BigInt(text.replace(/[uU]$/, ''));
      const bound = kind === 'uint' ? 2n ** 64n - 1n : 2n ** 63n - (minus === '' ? 1n : 0n);
      if (value > bound) this.#note(`invalid ${kind} literal`);
    }
    return {
      kind: KIND.literal,
      type: ownMember(TYPES, kind) ?? '',
      text: minus + text,
    };
  }

  #quoted({ kind, text }: Token): Expression {
    const value = unquote(text);
    if (value === null) this.#note('invalid unicode code point');
    return {
      kind: KIND.literal,
      type: ownMember(TYPES, kind) ?? '',
      text: value ?? '',
    };
  }

  /** Expressions between commas up to `close`; lists may end with a comma, calls may not. */
  #list(close: ')' | ']'): Expression[] {
    const found: Expression[] = [];
    if (this.#take(close)) return found;
    for (;;) {
      if (close === ']' && this.#take('?')) this.#note("unsupported syntax '?'");
      const isFirstOfCall = found.length === 0 && close === ')';
      found.push(this.#expression(isFirstOfCall ? STARTS_OR_CLOSE : STARTS));
      if (!this.#take(',')) break;
      if (close === ']' && (this.#is(close) || this.#peek().kind === 'end')) break;
    }
    this.#expect(close);
    return found;
  }

  /** `key: value` between commas, of maps and messages. */
  #fields(): void {
    while (!this.#is('}')) {
      if (this.#take('?')) this.#note("unsupported syntax '?'");
      this.#expression(STARTS);
      this.#expect(':');
      this.#expression(STARTS);
      if (!this.#take(',')) break;
    }
    this.#expect('}');
  }
}

const END: Token = { kind: 'end', text: '<EOF>' };

function call(name: string, args: Expression[]): Expression {
  return { kind: KIND.call, name, args };
}

/** One operator between two operands; chains of `||` and `&&` become one call, however long. */
function joined(name: string, left: Expression, right: Expression): Expression {
  const isChain = (name === '_||_' || name === '_&&_') && left.kind === KIND.call;
  if (!isChain || left.name !== name) return call(name, [left, right]);
  left.args.push(right);
  return left;
}

function isStart({ kind, text }: Token): boolean {
  if (kind !== 'sign') return kind !== 'end';
  return ['[', '{', '(', '.', '-', '!', 'true', 'false', 'null'].includes(text);
}

function isTypeName(found: Expression): boolean {
  let part = found;
  while (part.kind === KIND.select) part = part.operand;
  return part.kind === KIND.identifier;
}

const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** What a literal stands for; null where an escape names no character. */
function unquote(text: string): string | null {
  const [, prefix = '', quote = ''] = /^([bBrR]*)('''|"""|'|")/.exec(text) ?? [];
  const inner = text.slice(prefix.length + quote.length, text.length - quote.length);
  if (/[rR]/.test(prefix)) return inner;
  let isValid = true;
  const value = inner.replaceAll(
    /\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3]..)|([^]))/g,
    (_, hex?: string, four?: string, eight?: string, octal?: string, plain?: string) => {
      if (plain !== undefined) return ownMember(SIMPLE, plain) ?? plain;
      const digits = hex ?? four ?? eight;
      const code =
        digits === undefined ? Number.parseInt(octal ?? '', 8) : Number.parseInt(digits, 16);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        isValid = false;
        return '';
      }
      return String.fromCodePoint(code);
    },
  );
  return isValid ? value : null;
}
