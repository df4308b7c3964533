/**
 * jq expressions as selectors and delays of stages use them: paths, pipes, comparisons,
 * conditions, construction, variables, `reduce`, `try` and the functions of `jq-functions.ts`.
 * Definitions, assignments, formats and loops are refused.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { JQ_FUNCTIONS, type Filter } from './jq-functions.ts';
import { JqError, jqTokens, type JqToken } from './jq-lexer.ts';
import { cutOut, indexed, isTruthy, iterated, operate } from './jq-values.ts';

/** Values that one expression may give on its way. */
const VALUES_MAX = 1_000_000;
const DEPTH_MAX = 200;

/** Functions of gojq that give whole numbers. */
const COUNTING =
  /(?<![.\w])(length|utf8bytelength|range|index|rindex|indices|tonumber|keys|explode|reduce)\b/;

/** A compiled expression: all its values for an input, or null when it fails on the way. */
export class JqQuery {
  /**
   * Numbers of the result may be whole ones: gojq makes them by counting and reading. Those of the
   * object are floats for kwok, even when they are whole.
   */
  readonly counts: boolean;
  readonly #filter: Node;

  /** Throws a JqError that says what is wrong. */
  constructor(source: string) {
    this.#filter = new Parser(source).whole();
    this.counts = COUNTING.test(source) || /^[\s()]*\d+[\s()]*$/.test(source);
  }

  /** As kwok has it, an error anywhere makes the whole result null. */
  run(input: JsonValue): readonly JsonValue[] | null {
    try {
      return this.#filter(input, {});
    } catch (error) {
      if (error instanceof JqError) return null;
      throw error;
    }
  }
}

type Variables = Readonly<Record<string, JsonValue>>;
type Node = (input: JsonValue, variables: Variables) => readonly JsonValue[];

/** Binary operators from the loosest to the tightest. */
const LEVELS: readonly (readonly string[])[] = [
  ['or'],
  ['and'],
  ['==', '!=', '<', '<=', '>', '>='],
  ['+', '-'],
  ['*', '/', '%'],
];

const self: Node = (input) => [input];

class Parser {
  readonly #tokens: readonly JqToken[];
  /** Variables that are known where the parser is. */
  readonly #known: string[];
  #next = 0;
  #depth = 0;

  constructor(source: string, known: readonly string[] = []) {
    this.#tokens = jqTokens(source);
    this.#known = [...known];
  }

  whole(): Node {
    if (this.#tokens.length === 0) throw new JqError('missing query (try ".")');
    const node = this.#pipe();
    const rest = this.#tokens[this.#next];
    if (rest !== undefined) throw unexpected(rest);
    return node;
  }

  #pipe(): Node {
    if (++this.#depth > DEPTH_MAX) throw new JqError('the expression is nested too deeply');
    const first = this.#comma();
    let node = first;
    if (this.#takeWord('as')) node = this.#binding(first);
    else if (this.#takeMark('|')) {
      const rest = this.#pipe();
      node = (input, variables) =>
        flatten(first(input, variables), (value) => rest(value, variables));
    }
    this.#depth--;
    return node;
  }

  #binding(source: Node): Node {
    const name = this.#expectVariable();
    this.#expectMark('|');
    const body = this.#within(name);
    return (input, variables) =>
      flatten(source(input, variables), (value) => body(input, { ...variables, [name]: value }));
  }

  /** A pipe in which one more variable is known. */
  #within(name: string): Node {
    this.#known.push(name);
    const body = this.#pipe();
    this.#known.pop();
    return body;
  }

  #comma(): Node {
    let node = this.#alternative();
    while (this.#takeMark(',')) {
      const left = node;
      const right = this.#alternative();
      node = (input, variables) => [...left(input, variables), ...right(input, variables)];
    }
    return node;
  }

  /** `a // b`: the values of `a` that are true, or `b` if there is none; errors count as none. */
  #alternative(): Node {
    const left = this.#binary(0);
    if (!this.#takeMark('//')) return left;
    const right = this.#alternative();
    return (input, variables) => {
      const good = attempt(() => left(input, variables)).filter(isTruthy);
      return good.length > 0 ? good : right(input, variables);
    };
  }

  #binary(level: number): Node {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#postfix();
    let node = this.#binary(level + 1);
    for (;;) {
      const operator = operators.find((one) => this.#takeMark(one) || this.#takeWord(one));
      if (operator === undefined) return node;
      node = joined(operator, node, this.#binary(level + 1));
    }
  }

  #postfix(): Node {
    if (this.#takeMark('-')) {
      const of = this.#postfix();
      return (input, variables) => of(input, variables).map((value) => operate('-', 0, value));
    }
    let node = this.#term();
    for (;;) {
      const token = this.#tokens[this.#next];
      if (token?.kind === 'field') {
        this.#next++;
        node = through(node, constant(token.name));
      } else if (this.#takeMark('[')) {
        node = this.#brackets(node);
      } else if (this.#takeMark('?')) {
        const of = node;
        node = (input, variables) => attempt(() => of(input, variables));
      } else if (token?.kind === 'mark' && token.text === '.' && this.#isPathAfterDot()) {
        this.#next++;
        const key = this.#tokens[this.#next];
        if (key?.kind === 'string') {
          this.#next++;
          node = through(node, this.#text(key.parts));
        }
      } else {
        return node;
      }
    }
  }

  /** `.["a"]`, `.[]` and `."a"` may follow a term with a dot. */
  #isPathAfterDot(): boolean {
    const after = this.#tokens[this.#next + 1];
    return after?.kind === 'string' || (after?.kind === 'mark' && after.text === '[');
  }

  /** After `[`: an index, a slice, or everything. */
  #brackets(of: Node): Node {
    if (this.#takeMark(']')) {
      return (input, variables) => flatten(of(input, variables), iterated);
    }
    const none = constant(null);
    const from = this.#isMark(':') ? none : this.#pipe();
    if (!this.#takeMark(':')) {
      this.#expectMark(']');
      return through(of, from);
    }
    const to = this.#isMark(']') ? none : this.#pipe();
    this.#expectMark(']');
    return (input, variables) =>
      flatten(to(input, variables), (end) =>
        flatten(from(input, variables), (start) =>
          of(input, variables).map((value) => cutOut(value, start, end)),
        ),
      );
  }

  #term(): Node {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw new JqError('unexpected EOF');
    switch (token.kind) {
      case 'number':
        return constant(token.value);
      case 'string':
        return this.#text(token.parts);
      case 'field':
        return through(self, constant(token.name));
      case 'variable':
        return this.#variable(token.name);
      case 'word':
        return this.#word(token.name);
      case 'mark':
        return this.#mark(token);
    }
  }

  #mark(token: JqToken & { readonly kind: 'mark' }): Node {
    switch (token.text) {
      case '.':
        return this.#dot();
      case '..':
        return this.#call('recurse', []);
      case '(': {
        const inner = this.#pipe();
        this.#expectMark(')');
        return inner;
      }
      case '[': {
        if (this.#takeMark(']')) return constant([]);
        const items = this.#pipe();
        this.#expectMark(']');
        return (input, variables) => [[...items(input, variables)]];
      }
      case '{':
        return this.#object();
      default:
        throw unexpected(token);
    }
  }

  #dot(): Node {
    const next = this.#tokens[this.#next];
    if (next?.kind !== 'string') return self;
    this.#next++;
    return through(self, this.#text(next.parts));
  }

  #text(parts: readonly string[]): Node {
    const [first = ''] = parts;
    if (parts.length === 1) return constant(first);
    const pieces = parts.map((part, index) =>
      index % 2 === 0 ? constant(part) : new Parser(part, this.#known).whole(),
    );
    return (input, variables) => {
      let texts: readonly string[] = [''];
      for (const piece of pieces) {
        const values = piece(input, variables);
        texts = flatten(texts, (before) =>
          values.map(
            (value) => before + (typeof value === 'string' ? value : JSON.stringify(value)),
          ),
        );
      }
      return texts;
    };
  }

  #word(name: string): Node {
    switch (name) {
      case 'null':
        return constant(null);
      case 'true':
      case 'false':
        return constant(name === 'true');
      case 'if':
        return this.#condition();
      case 'try':
        return this.#try();
      case 'reduce':
        return this.#reduce();
      default: {
        const args: Node[] = [];
        if (this.#takeMark('(')) {
          do args.push(this.#pipe());
          while (this.#takeMark(';'));
          this.#expectMark(')');
        }
        return this.#call(name, args);
      }
    }
  }

  #call(name: string, args: readonly Node[]): Node {
    const called = JQ_FUNCTIONS.get(`${name}/${args.length}`);
    if (called === undefined) throw new JqError(`function not defined: ${name}/${args.length}`);
    return (input, variables) => {
      const filters = args.map(
        (arg): Filter =>
          (value) =>
            arg(value, variables),
      );
      return called(input, ...filters);
    };
  }

  #condition(): Node {
    const test = this.#pipe();
    this.#expectWord('then');
    const yes = this.#pipe();
    let no = self;
    if (this.#takeWord('elif')) no = this.#condition();
    else {
      if (this.#takeWord('else')) no = this.#pipe();
      this.#expectWord('end');
    }
    return (input, variables) =>
      flatten(test(input, variables), (value) =>
        isTruthy(value) ? yes(input, variables) : no(input, variables),
      );
  }

  #try(): Node {
    const body = this.#postfix();
    const handler = this.#takeWord('catch') ? this.#postfix() : null;
    return (input, variables) => {
      try {
        return body(input, variables);
      } catch (error) {
        if (!(error instanceof JqError)) throw error;
        return handler === null ? [] : handler(error.message, variables);
      }
    };
  }

  #reduce(): Node {
    const source = this.#postfix();
    this.#expectWord('as');
    const name = this.#expectVariable();
    this.#expectMark('(');
    const initial = this.#pipe();
    this.#expectMark(';');
    const update = this.#within(name);
    this.#expectMark(')');
    return (input, variables) =>
      initial(input, variables).map((start) =>
        source(input, variables).reduce<JsonValue>(
          (state, value) => update(state, { ...variables, [name]: value }).at(-1) ?? null,
          start,
        ),
      );
  }

  #object(): Node {
    const members: (readonly [Node, Node])[] = [];
    while (!this.#takeMark('}')) {
      if (members.length > 0) this.#expectMark(',');
      members.push(this.#member());
    }
    return (input, variables) => {
      let objects: readonly JsonObject[] = [{}];
      for (const [name, value] of members) {
        const names = name(input, variables);
        const values = value(input, variables);
        objects = flatten(objects, (object) =>
          flatten(names, (key) => {
            if (typeof key !== 'string') throw new JqError('expected a string for object key');
            return values.map((one) => ({ ...object, [key]: one }));
          }),
        );
      }
      return objects;
    };
  }

  #member(): readonly [Node, Node] {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw new JqError('unexpected EOF');
    if (token.kind === 'variable') {
      return [constant(token.name.slice(1)), this.#variable(token.name)];
    }
    const isComputed = token.kind === 'mark' && token.text === '(';
    if (!isComputed && token.kind !== 'word' && token.kind !== 'string') throw unexpected(token);
    let name: Node;
    if (token.kind === 'word') name = constant(token.name);
    else if (token.kind === 'string') name = this.#text(token.parts);
    else {
      name = this.#pipe();
      this.#expectMark(')');
    }
    if (this.#takeMark(':')) return [name, this.#alternative()];
    if (isComputed) throw new JqError('unexpected token: a ":" is missing');
    return [name, through(self, name)];
  }

  #variable(name: string): Node {
    if (!this.#known.includes(name)) throw new JqError(`variable not defined: ${name}`);
    return (_, variables) => [variables[name] ?? null];
  }

  #isMark(text: string): boolean {
    const token = this.#tokens[this.#next];
    return token?.kind === 'mark' && token.text === text;
  }

  #takeMark(text: string): boolean {
    if (!this.#isMark(text)) return false;
    this.#next++;
    return true;
  }

  #takeWord(name: string): boolean {
    const token = this.#tokens[this.#next];
    if (token?.kind !== 'word' || token.name !== name) return false;
    this.#next++;
    return true;
  }

  #expectMark(text: string): void {
    if (!this.#takeMark(text)) throw unexpected(this.#tokens[this.#next], text);
  }

  #expectWord(name: string): void {
    if (!this.#takeWord(name)) throw unexpected(this.#tokens[this.#next], name);
  }

  #expectVariable(): string {
    const token = this.#tokens[this.#next++];
    if (token?.kind !== 'variable') throw unexpected(token, 'a variable');
    return token.name;
  }
}

function unexpected(token: JqToken | undefined, wanted?: string): JqError {
  const hint = wanted === undefined ? '' : `, ${JSON.stringify(wanted)} is expected`;
  if (token === undefined) return new JqError(`unexpected EOF${hint}`);
  let text: string;
  if (token.kind === 'mark') ({ text } = token);
  else if (token.kind === 'number') text = String(token.value);
  else if (token.kind === 'string') text = JSON.stringify(token.parts.join(''));
  else text = token.name;
  return new JqError(`unexpected token ${JSON.stringify(text)} at ${token.at + 1}${hint}`);
}

function constant(value: JsonValue): Node {
  return () => [value];
}

function through(of: Node, key: Node): Node {
  return (input, variables) =>
    flatten(key(input, variables), (name) =>
      of(input, variables).map((value) => indexed(value, name)),
    );
}

function joined(operator: string, left: Node, right: Node): Node {
  if (operator === 'and' || operator === 'or') {
    const decides = operator === 'or';
    return (input, variables) =>
      flatten(left(input, variables), (value) =>
        isTruthy(value) === decides ? [decides] : right(input, variables).map(isTruthy),
      );
  }
  return (input, variables) =>
    flatten(right(input, variables), (second) =>
      left(input, variables).map((first) => operate(operator, first, second)),
    );
}

function attempt(run: () => readonly JsonValue[]): readonly JsonValue[] {
  try {
    return run();
  } catch (error) {
    if (error instanceof JqError) return [];
    throw error;
  }
}

function flatten<From, To>(
  values: readonly From[],
  of: (value: From) => readonly To[],
): readonly To[] {
  const all: To[] = [];
  for (const value of values) {
    for (const one of of(value)) all.push(one);
    if (all.length > VALUES_MAX) throw new JqError(`more than ${VALUES_MAX} values`);
  }
  return all;
}
