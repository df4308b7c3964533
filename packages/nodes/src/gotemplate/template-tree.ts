/** Go's text/template, second step: the tree of a template, with every name looked up. */
import {
  splitTemplate,
  templateError,
  type Piece,
  type TemplateError,
  type Token,
} from './template-lexer.ts';
import { GoFloat, type GoValue } from './go-values.ts';

/** One argument of a command. */
export type Operand =
  | { readonly kind: 'value'; readonly value: GoValue; readonly at: number }
  | { readonly kind: 'dot'; readonly at: number }
  | { readonly kind: 'function'; readonly name: string; readonly at: number }
  | { readonly kind: 'variable'; readonly name: string; readonly at: number }
  | { readonly kind: 'pipe'; readonly pipe: Pipe; readonly at: number }
  /** `.a.b` of another operand. */
  | {
      readonly kind: 'chain';
      readonly of: Operand;
      readonly names: readonly string[];
      readonly at: number;
    };

export interface Pipe {
  /** Variables that get the value. */
  readonly names: readonly string[];
  /** `=` and not `:=`. */
  readonly assigns: boolean;
  readonly commands: readonly (readonly [Operand, ...Operand[]])[];
}

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly pipe: Pipe }
  | {
      readonly kind: 'if' | 'with' | 'range';
      readonly pipe: Pipe;
      readonly body: readonly TemplateNode[];
      readonly otherwise: readonly TemplateNode[];
    }
  | { readonly kind: 'template'; readonly name: string; readonly pipe: Pipe | null }
  | { readonly kind: 'break' | 'continue' };

export interface TemplateTree {
  readonly source: string;
  readonly body: readonly TemplateNode[];
  readonly defined: ReadonlyMap<string, readonly TemplateNode[]>;
}

/** Depth of parentheses and blocks in one template. */
const DEPTH_MAX = 100;

/** Parses a template whose functions are named by `hasFunction`; throws a TemplateError. */
export function parseTemplate(
  source: string,
  hasFunction: (name: string) => boolean,
): TemplateTree {
  const parser = new Parser(source, splitTemplate(source), hasFunction);
  const body = parser.nodes(['$']);
  parser.finish();
  return { source, body, defined: parser.defined };
}

function isVisible(node: TemplateNode): boolean {
  return node.kind !== 'text' || node.text.trim() !== '';
}

class Parser {
  readonly defined: Map<string, readonly TemplateNode[]> = new Map();
  readonly #source: string;
  readonly #pieces: readonly Piece[];
  readonly #hasFunction: (name: string) => boolean;
  #next = 0;
  #depth = 0;
  #ranges = 0;
  /** What ended the last list: `end`, `else` with what follows it, or nothing. */
  #ended: 'end' | 'else' | 'nothing' = 'nothing';
  #tokens: readonly Token[] = [];
  #at = 0;
  #token = 0;

  constructor(source: string, pieces: readonly Piece[], hasFunction: (name: string) => boolean) {
    this.#source = source;
    this.#pieces = pieces;
    this.#hasFunction = hasFunction;
  }

  /** After the outermost list: nothing may be left. */
  finish(): void {
    if (this.#ended !== 'nothing') throw this.#error(`unexpected {{${this.#ended}}}`);
  }

  /** Nodes up to `{{end}}`, `{{else}}` or the end; `scope` are the variables that are known. */
  nodes(scope: string[]): TemplateNode[] {
    if (++this.#depth > DEPTH_MAX) throw this.#error('the template is nested too deeply');
    const known = scope.length;
    const nodes: TemplateNode[] = [];
    this.#ended = 'nothing';
    for (;;) {
      const piece = this.#pieces[this.#next++];
      if (piece === undefined) break;
      if (piece.kind === 'text') {
        nodes.push(piece);
        continue;
      }
      this.#tokens = piece.tokens;
      this.#at = piece.at;
      this.#token = 0;
      const node = this.#action(scope);
      if (node !== undefined) nodes.push(node);
      else if (this.#ended !== 'nothing') break;
    }
    scope.length = known;
    this.#depth--;
    return nodes;
  }

  #action(scope: string[]): TemplateNode | undefined {
    this.#skipSpace();
    const first = this.#tokens[this.#token];
    const word = first?.kind === 'word' ? first.text : '';
    switch (word) {
      case 'if':
      case 'with':
      case 'range':
        this.#token++;
        return this.#control(word, scope);
      case 'end':
      case 'else':
        this.#token++;
        this.#ended = word;
        if (word === 'end') this.#expectEnd();
        return undefined;
      case 'define':
      case 'block':
        this.#token++;
        return this.#definition(word, scope);
      case 'template':
        this.#token++;
        return this.#call(scope);
      case 'break':
      case 'continue':
        this.#token++;
        this.#expectEnd();
        if (this.#ranges === 0) throw this.#error(`{{${word}}} outside {{range}}`);
        return { kind: word };
      default:
        return { kind: 'print', pipe: this.#pipe(scope, 'command', false) };
    }
  }

  #control(kind: 'if' | 'with' | 'range', scope: string[]): TemplateNode {
    const known = scope.length;
    const pipe = this.#pipe(scope, kind, kind === 'range');
    if (kind === 'range') this.#ranges++;
    const body = this.nodes(scope);
    if (kind === 'range') this.#ranges--;
    let otherwise: readonly TemplateNode[] = [];
    if (this.#endedBy() === 'else') otherwise = this.#otherwise(kind, scope);
    else if (this.#endedBy() !== 'end') throw this.#error('unexpected EOF');
    this.#ended = 'nothing';
    scope.length = known;
    return { kind, pipe, body, otherwise };
  }

  #endedBy(): 'end' | 'else' | 'nothing' {
    return this.#ended;
  }

  /** `{{else}}`, and `{{else if}}`, which shares the `{{end}}` of what it belongs to. */
  #otherwise(kind: 'if' | 'with' | 'range', scope: string[]): readonly TemplateNode[] {
    this.#skipSpace();
    const next = this.#tokens[this.#token];
    const word = next?.kind === 'word' ? next.text : '';
    if ((word === 'if' && kind !== 'range') || (word === 'with' && kind === 'with')) {
      this.#token++;
      return [this.#control(word === 'if' ? 'if' : 'with', scope)];
    }
    this.#expectEnd();
    const nodes = this.nodes(scope);
    if (this.#endedBy() !== 'end') {
      const what = this.#endedBy() === 'else' ? 'expected end; found {{else}}' : 'unexpected EOF';
      throw this.#error(what);
    }
    return nodes;
  }

  #definition(kind: 'define' | 'block', scope: string[]): TemplateNode | undefined {
    this.#skipSpace();
    const name = this.#tokens[this.#token++];
    if (name?.kind !== 'string') throw this.#error(`unexpected token in ${kind} clause`);
    const pipe = kind === 'block' ? this.#pipe(scope, 'block clause', false) : null;
    if (kind === 'define') this.#expectEnd();
    const ranges = this.#ranges;
    this.#ranges = 0;
    const body = this.nodes(['$']);
    this.#ranges = ranges;
    if (this.#endedBy() !== 'end') throw this.#error('unexpected EOF');
    this.#ended = 'nothing';
    // one that prints nothing neither takes another's place nor keeps its own
    const before = this.defined.get(name.text) ?? [];
    if (before.some(isVisible) && body.some(isVisible)) {
      throw this.#error(`multiple definition of template ${quote(name.text)}`);
    }
    if (body.some(isVisible) || before.length === 0) this.defined.set(name.text, body);
    return kind === 'block' ? { kind: 'template', name: name.text, pipe } : undefined;
  }

  #call(scope: string[]): TemplateNode {
    this.#skipSpace();
    const name = this.#tokens[this.#token++];
    if (name?.kind !== 'string') throw this.#error('unexpected token in template clause');
    this.#skipSpace();
    const hasArgument = this.#token < this.#tokens.length;
    const pipe = hasArgument ? this.#pipe(scope, 'template clause', false) : null;
    return { kind: 'template', name: name.text, pipe };
  }

  /** Reads to the end of the action, or of the parentheses it stands in. */
  #pipe(scope: string[], context: string, isRange: boolean): Pipe {
    if (++this.#depth > DEPTH_MAX) throw this.#error('the template is nested too deeply');
    const { names, assigns } = this.#declaration(scope, isRange);
    const commands: (readonly [Operand, ...Operand[]])[] = [];
    for (;;) {
      this.#skipSpace();
      const operands = this.#operands(scope);
      const [head, ...rest] = operands;
      if (head === undefined) throw this.#error(`missing value for ${context}`);
      if (commands.length > 0 && head.kind === 'value') {
        throw this.#error(`non executable command in pipeline stage ${commands.length + 1}`);
      }
      if (head.kind === 'value' && head.value === null) throw this.#error('nil is not a command');
      commands.push([head, ...rest]);
      const next = this.#tokens[this.#token];
      if (next?.kind !== 'mark' || next.text !== '|') break;
      this.#token++;
    }
    if (!assigns) scope.push(...names);
    this.#depth--;
    const next = this.#tokens[this.#token];
    const isClosing = next?.kind === 'mark' && next.text === ')';
    if (next !== undefined && !isClosing) throw this.#error(`unexpected token in ${context}`);
    return { names, assigns, commands };
  }

  #declaration(
    scope: readonly string[],
    isRange: boolean,
  ): { readonly names: string[]; readonly assigns: boolean } {
    const start = this.#token;
    const names: string[] = [];
    for (;;) {
      this.#skipSpace();
      const variable = this.#tokens[this.#token];
      if (variable?.kind !== 'variable') break;
      this.#token++;
      this.#skipSpace();
      names.push(variable.text);
      const mark = this.#tokens[this.#token];
      if (mark?.kind !== 'mark') break;
      if (mark.text === ',' && isRange && names.length === 1) {
        this.#token++;
        continue;
      }
      if (mark.text !== ':=' && mark.text !== '=') break;
      this.#token++;
      const assigns = mark.text === '=';
      const unknown = assigns ? names.find((name) => !scope.includes(name)) : undefined;
      if (unknown !== undefined) throw this.#error(`undefined variable ${quote(unknown)}`);
      return { names, assigns };
    }
    this.#token = start;
    return { names: [], assigns: false };
  }

  #operands(scope: string[]): Operand[] {
    const operands: Operand[] = [];
    for (;;) {
      this.#skipSpace();
      const operand = this.#operand(scope);
      if (operand === undefined) return operands;
      operands.push(operand);
      const next = this.#tokens[this.#token];
      const isApart = next === undefined || next.kind === 'space';
      if (isApart || (next.kind === 'mark' && (next.text === '|' || next.text === ')'))) continue;
      throw this.#error('unexpected token after an operand: a space is missing');
    }
  }

  #operand(scope: string[]): Operand | undefined {
    const term = this.#term(scope);
    if (term === undefined) return undefined;
    const names: string[] = [];
    for (;;) {
      const next = this.#tokens[this.#token];
      if (next?.kind !== 'field') break;
      names.push(next.text);
      this.#token++;
    }
    if (names.length === 0) return term;
    if (term.kind === 'value') throw this.#error('unexpected . after a constant');
    if (term.kind !== 'chain') return { kind: 'chain', of: term, names, at: term.at };
    return { ...term, names: [...term.names, ...names] };
  }

  #term(scope: string[]): Operand | undefined {
    const token = this.#tokens[this.#token];
    if (token === undefined) return undefined;
    const { at } = token;
    switch (token.kind) {
      case 'field':
        this.#token++;
        return { kind: 'chain', of: { kind: 'dot', at }, names: [token.text], at };
      case 'dot':
        this.#token++;
        return { kind: 'dot', at };
      case 'variable':
        if (!scope.includes(token.text)) {
          throw this.#error(`undefined variable ${quote(token.text)}`);
        }
        this.#token++;
        return { kind: 'variable', name: token.text, at };
      case 'string':
        this.#token++;
        return { kind: 'value', value: token.text, at };
      case 'rune':
        this.#token++;
        return { kind: 'value', value: BigInt(token.text.codePointAt(0) ?? 0), at };
      case 'number':
        return this.#number(token.text, at);
      case 'word':
        this.#token++;
        return this.#word(token.text, at);
      case 'mark':
        return token.text === '(' ? this.#parenthesis(scope, at) : undefined;
      case 'space':
        return undefined;
    }
  }

  #number(text: string, at: number): Operand {
    const value = numberOf(text);
    if (value instanceof Error) throw this.#error(value.message);
    this.#token++;
    return { kind: 'value', value, at };
  }

  #word(text: string, at: number): Operand {
    if (text === 'true' || text === 'false') return { kind: 'value', value: text === 'true', at };
    if (text === 'nil') return { kind: 'value', value: null, at };
    if (!this.#hasFunction(text)) throw this.#error(`function ${quote(text)} not defined`);
    return { kind: 'function', name: text, at };
  }

  #parenthesis(scope: string[], at: number): Operand {
    this.#token++;
    const pipe = this.#pipe(scope, 'parenthesized pipeline', false);
    const close = this.#tokens[this.#token];
    if (close === undefined) throw this.#error('unclosed left paren');
    this.#token++;
    return { kind: 'pipe', pipe, at };
  }

  #skipSpace(): void {
    while (this.#tokens[this.#token]?.kind === 'space') this.#token++;
  }

  #expectEnd(): void {
    this.#skipSpace();
    if (this.#token < this.#tokens.length) throw this.#error('unexpected token in an action');
  }

  #error(what: string): TemplateError {
    return templateError(this.#source, this.#tokens[this.#token]?.at ?? this.#at, what);
  }
}

function quote(text: string): string {
  return JSON.stringify(text);
}

/** As Go's `strconv.ParseInt` with base 0; the last form is octal. */
const INTEGER = /^(0x(_?[\da-f])+|0b(_?[01])+|0o(_?[0-7])+|[1-9](_?\d)*|0(_?[0-7])*)$/;
const INT64_MAX = 2n ** 63n - 1n;

/** An integer where the text is one, else a float; an Error in Go's words where it is neither. */
function numberOf(text: string): GoValue | Error {
  const isNegative = text.startsWith('-');
  const digits = text.replace(/^[+-]/, '').toLowerCase();
  if (INTEGER.test(digits)) {
    const plain = digits.replaceAll('_', '').replace(/^0(?=\d)/, '0o');
    const value = BigInt(plain);
    if (value <= INT64_MAX) return isNegative ? -value : value;
    if (isNegative && value === INT64_MAX + 1n) return -value;
    return new Error(`integer overflow: ${quote(text)}`);
  }
  const isFloat = /^(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/.test(digits);
  const float = isFloat ? Number(text) : Infinity;
  if (!Number.isFinite(float)) return new Error(`illegal number syntax: ${quote(text)}`);
  if (!/[.e]/.test(digits)) return new Error(`integer overflow: ${quote(text)}`);
  return new GoFloat(float);
}
