/**
 * jq expressions as selectors and delays of stages use them: the language of gojq, but for what
 * reads files or more inputs. An expression becomes nodes (`jq-nodes.ts`) that call each other.
 */
import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { JQ_FILTERS } from './jq-filters.ts';
import { JQ_FORMATS, jsonText } from './jq-formats.ts';
import { JQ_FUNCTIONS, type Filter } from './jq-functions.ts';
import { JqError, jqTokens, type JqToken } from './jq-lexer.ts';
import * as nodes from './jq-nodes.ts';
import type { Member, Node } from './jq-nodes.ts';
import { assigned, bound, folded, unfolded, type Pattern } from './jq-patterns.ts';
import { JQ_PRELUDE } from './jq-prelude.ts';

const DEPTH_MAX = 200;
/** Characters of an expression. */
export const QUERY_CHARS_MAX: number = 64 * 1024;

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
  readonly #node: Node;
  readonly #nowMs: () => number;

  /** Throws a JqError that says what is wrong. `nowMs` is what `now` asks. */
  constructor(source: string, nowMs: () => number) {
    if (source.length > QUERY_CHARS_MAX) {
      throw new JqError(`an expression of more than ${QUERY_CHARS_MAX} characters`);
    }
    this.#nowMs = nowMs;
    this.#node = new Parser(source, [], []).whole();
    this.counts = COUNTING.test(source) || /^[\s()]*\d+[\s()]*$/.test(source);
  }

  /** As kwok has it, an error anywhere makes the whole result null. */
  run(input: JsonValue): readonly JsonValue[] | null {
    nodes.refill();
    try {
      return nodes.valuesOf(this.#node, input, nodes.withValue(null, '$now', this.#nowMs()));
    } catch (error) {
      // a function that calls itself for ever ends where the stack does
      if (error instanceof JqError || error instanceof RangeError) return null;
      throw error;
    }
  }
}

/** Definitions that expressions have used so far, compiled; as many as there are in the prelude. */
const prelude: Map<string, Node> = new Map();

function preludeCall(name: string, args: readonly Node[]): Node | undefined {
  const source = JQ_PRELUDE.get(name);
  if (source === undefined) return undefined;
  const [own = ''] = name.split('/');
  const [, list = '', body = ''] = /^\(([^)]*)\) (.*)$/s.exec(source) ?? [];
  const params = list === '' ? [] : list.split('; ');
  let compiled = prelude.get(name);
  if (compiled === undefined) {
    const closures = params.map((param) => `${param.replace('$', '')}/0`);
    const values = params.filter((param) => param.startsWith('$'));
    compiled = new Parser(body, values, [...closures, `${own}/${params.length}`]).whole();
    prelude.set(name, compiled);
  }
  const call = nodes.called(name, args);
  return nodes.defined({ name, params, body: compiled }, call);
}

/** Binary operators from the loosest to the tightest. */
const LEVELS: readonly (readonly string[])[] = [
  ['or'],
  ['and'],
  ['==', '!=', '<', '<=', '>', '>='],
  ['+', '-'],
  ['*', '/', '%'],
];
const ASSIGNMENTS = ['=', '|=', '+=', '-=', '*=', '/=', '%=', '//='] as const;

class Parser {
  readonly #tokens: readonly JqToken[];
  /** Variables and labels, and functions, that are known where the parser is. */
  readonly #known: string[];
  readonly #functions: string[];
  #next = 0;
  #depth = 0;

  constructor(source: string, known: readonly string[], functions: readonly string[]) {
    this.#tokens = jqTokens(source);
    this.#known = [...known];
    this.#functions = [...functions];
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
    let node: Node;
    if (this.#takeWord('def')) node = this.#definition();
    else {
      node = this.#comma();
      if (this.#takeMark('|')) node = nodes.piped(node, this.#pipe());
    }
    this.#depth--;
    return node;
  }

  #definition(): Node {
    const name = this.#expectName();
    const params: string[] = [];
    if (this.#takeMark('(')) {
      do {
        const token = this.#tokens[this.#next];
        params.push(token?.kind === 'variable' ? this.#expectVariable() : this.#expectName());
      } while (this.#takeMark(';'));
      this.#expectMark(')');
    }
    this.#expectMark(':');
    const key = `${name}/${params.length}`;
    const own = params.map((param) => `${param.replace('$', '')}/0`);
    const values = params.filter((param) => param.startsWith('$'));
    const [known, functions] = [this.#known.length, this.#functions.length];
    this.#known.push(...values);
    this.#functions.push(key, ...own);
    const body = this.#pipe();
    this.#known.length = known;
    this.#functions.length = functions;
    this.#expectMark(';');
    this.#functions.push(key);
    const rest = this.#pipe();
    this.#functions.length = functions;
    return nodes.defined({ name: key, params, body }, rest);
  }

  #comma(): Node {
    let node = this.#bindable();
    while (this.#takeMark(',')) node = nodes.both(node, this.#bindable());
    return node;
  }

  #bindable(): Node {
    const node = this.#alternative();
    return this.#takeWord('as') ? this.#binding(node) : node;
  }

  #alternative(): Node {
    const left = this.#assignment();
    return this.#takeMark('//') ? nodes.alternative(left, this.#alternative()) : left;
  }

  #assignment(): Node {
    const left = this.#binary(0);
    const operator = ASSIGNMENTS.find((one) => this.#takeMark(one));
    return operator === undefined ? left : assigned(operator, left, this.#alternative());
  }

  #binary(level: number): Node {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#postfix();
    let node = this.#binary(level + 1);
    for (;;) {
      const operator = operators.find((one) => this.#takeMark(one) || this.#takeWord(one));
      if (operator === undefined) return node;
      node = nodes.joined(operator, node, this.#binary(level + 1));
    }
  }

  #postfix(): Node {
    if (this.#takeMark('-')) {
      return nodes.joined('-', nodes.constant(0), this.#postfix());
    }
    return this.#suffixed(this.#term());
  }

  /** A question mark is for the step before it alone: `.a[]?` fails where `.a` does. */
  #suffixed(term: Node): Node {
    let before: Node | null = null;
    let node = term;
    for (;;) {
      if (this.#takeMark('?')) {
        const last = nodes.attempted(node, null);
        node = before === null ? last : nodes.piped(before, last);
        before = null;
        continue;
      }
      const step = this.#step();
      if (step === null) return before === null ? node : nodes.piped(before, node);
      // what stands in brackets is worked out for the input of the whole term
      const isPlain = this.#isMark('?');
      if (isPlain) {
        before = before === null ? node : nodes.piped(before, node);
        node = step(nodes.self);
      } else {
        node = step(before === null ? node : nodes.piped(before, node));
        before = null;
      }
    }
  }

  /** One more `.name`, `[…]` or `."text"`; null where there is none. */
  #step(): ((of: Node) => Node) | null {
    const token = this.#tokens[this.#next];
    if (token?.kind === 'field') {
      this.#next++;
      return (of) => nodes.through(of, nodes.constant(token.name));
    }
    if (this.#takeMark('[')) return this.#brackets();
    if (token?.kind !== 'mark' || token.text !== '.' || !this.#isPathAfterDot()) return null;
    this.#next++;
    const key = this.#tokens[this.#next];
    if (key?.kind !== 'string') return this.#step();
    this.#next++;
    const name = this.#text(key.parts);
    return (of) => nodes.through(of, name);
  }

  #binding(source: Node): Node {
    const before = this.#known.length;
    const patterns = [this.#pattern()];
    while (this.#takeMark('?//')) patterns.push(this.#pattern());
    this.#expectMark('|');
    const names = this.#known.slice(before);
    const body = this.#pipe();
    this.#known.length = before;
    return bound(source, { patterns, names }, body);
  }

  /** What values are taken apart by; its variables are known from here on. */
  #pattern(): Pattern {
    if (this.#takeMark('[')) {
      const items: Pattern[] = [];
      do items.push(this.#pattern());
      while (this.#takeMark(','));
      this.#expectMark(']');
      return { kind: 'list', items };
    }
    if (!this.#takeMark('{')) {
      const name = this.#expectVariable();
      this.#known.push(name);
      return { kind: 'name', name };
    }
    const members: Extract<Pattern, { readonly kind: 'map' }>['members'][number][] = [];
    do members.push(this.#patternMember());
    while (this.#takeMark(','));
    this.#expectMark('}');
    return { kind: 'map', members };
  }

  #patternMember(): Extract<Pattern, { readonly kind: 'map' }>['members'][number] {
    const token = this.#tokens[this.#next++];
    let name: string | null = null;
    let key: Node;
    if (token?.kind === 'variable') {
      ({ name } = token);
      this.#known.push(name);
      key = nodes.constant(name.slice(1));
    } else if (token?.kind === 'word') key = nodes.constant(token.name);
    else if (token?.kind === 'string') key = this.#text(token.parts);
    else if (token?.kind === 'mark' && token.text === '(') {
      key = this.#pipe();
      this.#expectMark(')');
    } else throw unexpected(token);
    if (!this.#takeMark(':')) {
      if (name === null) throw unexpected(this.#tokens[this.#next], ':');
      return { key, name, inner: null };
    }
    return { key, name, inner: this.#pattern() };
  }

  /** `.["a"]`, `.[]` and `."a"` may follow a term with a dot. */
  #isPathAfterDot(): boolean {
    const after = this.#tokens[this.#next + 1];
    return after?.kind === 'string' || (after?.kind === 'mark' && after.text === '[');
  }

  /** After `[`: an index, a slice, or everything. */
  #brackets(): (of: Node) => Node {
    if (this.#takeMark(']')) return nodes.each;
    const none = nodes.constant(null);
    const from = this.#isMark(':') ? none : this.#pipe();
    if (!this.#takeMark(':')) {
      this.#expectMark(']');
      return (of) => nodes.through(of, from);
    }
    const to = this.#isMark(']') ? none : this.#pipe();
    this.#expectMark(']');
    return (of) => nodes.sliced(of, from, to);
  }

  #term(): Node {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw new JqError('unexpected EOF');
    switch (token.kind) {
      case 'number':
        return nodes.constant(token.value);
      case 'string':
        return this.#text(token.parts);
      case 'field':
        return nodes.through(nodes.self, nodes.constant(token.name));
      case 'variable':
        return this.#variable(token.name);
      case 'format':
        return this.#format(token.name);
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
        if (this.#takeMark(']')) return nodes.constant([]);
        const items = this.#pipe();
        this.#expectMark(']');
        return nodes.listed(items);
      }
      case '{':
        return this.#object();
      default:
        throw unexpected(token);
    }
  }

  #dot(): Node {
    const next = this.#tokens[this.#next];
    if (next?.kind !== 'string') return nodes.self;
    this.#next++;
    return nodes.through(nodes.self, this.#text(next.parts));
  }

  #text(parts: readonly string[], show: (value: JsonValue) => string = jsonText): Node {
    const [first = ''] = parts;
    if (parts.length === 1) return nodes.constant(first);
    const pieces = parts.map((part, index) =>
      index % 2 === 0
        ? nodes.constant(part)
        : new Parser(part, this.#known, this.#functions).whole(),
    );
    return nodes.interpolated(pieces, show);
  }

  /** `@base64` of the input, or of what stands in the text behind it. */
  #format(name: string): Node {
    const show = ownMember(JQ_FORMATS, name);
    if (show === undefined) throw new JqError(`format not defined: ${name}`);
    const next = this.#tokens[this.#next];
    if (next?.kind !== 'string') {
      return (input, path, _scope, emit) => emit(show(input), nodes.off(path));
    }
    this.#next++;
    return this.#text(next.parts, show);
  }

  #word(name: string): Node {
    switch (name) {
      case 'null':
        return nodes.constant(null);
      case 'true':
      case 'false':
        return nodes.constant(name === 'true');
      case 'if':
        return this.#condition();
      case 'try': {
        const body = this.#postfix();
        const handler = this.#takeWord('catch') ? this.#postfix() : null;
        return nodes.attempted(body, handler);
      }
      case 'reduce':
      case 'foreach':
        return this.#fold(name);
      case 'label':
        return this.#label();
      case 'break':
        return this.#break();
      case 'now':
        return (_input, path, scope, emit) => {
          const nowMs = nodes.find(scope, '$now')?.value;
          emit(typeof nowMs === 'number' ? nowMs / 1000 : 0, nodes.off(path));
        };
      case 'def':
        this.#next--;
        return this.#pipe();
      default:
        return this.#call(name, this.#arguments());
    }
  }

  #arguments(): Node[] {
    const args: Node[] = [];
    if (!this.#takeMark('(')) return args;
    do args.push(this.#pipe());
    while (this.#takeMark(';'));
    this.#expectMark(')');
    return args;
  }

  #call(name: string, args: readonly Node[]): Node {
    const key = `${name}/${args.length}`;
    if (this.#functions.includes(key)) return nodes.called(key, args);
    const filter = JQ_FILTERS.get(key);
    if (filter !== undefined) return filter(args);
    const own = JQ_FUNCTIONS.get(key);
    const call = own === undefined ? preludeCall(key, args) : valueCall(own, args);
    if (call === undefined) throw new JqError(`function not defined: ${key}`);
    return call;
  }

  #condition(): Node {
    const test = this.#pipe();
    this.#expectWord('then');
    const yes = this.#pipe();
    let no = nodes.self;
    if (this.#takeWord('elif')) no = this.#condition();
    else {
      if (this.#takeWord('else')) no = this.#pipe();
      this.#expectWord('end');
    }
    return nodes.condition(test, yes, no);
  }

  /** `reduce SOURCE as $x (FIRST; UPDATE)`, and `foreach` with what it tells of each state. */
  #fold(kind: 'reduce' | 'foreach'): Node {
    const source = this.#alternative();
    this.#expectWord('as');
    const before = this.#known.length;
    const patterns = [this.#pattern()];
    while (this.#takeMark('?//')) patterns.push(this.#pattern());
    const names = this.#known.slice(before);
    this.#expectMark('(');
    const first = this.#pipe();
    this.#expectMark(';');
    const update = this.#pipe();
    const isLong = kind === 'foreach' && this.#takeMark(';');
    const told = isLong ? this.#pipe() : nodes.self;
    this.#expectMark(')');
    this.#known.length = before;
    const by = { patterns, names };
    return kind === 'reduce'
      ? folded(source, by, { first, update })
      : unfolded(source, by, { first, update, told });
  }

  #label(): Node {
    const name = `*${this.#expectVariable()}`;
    this.#expectMark('|');
    this.#known.push(name);
    const body = this.#pipe();
    this.#known.pop();
    return nodes.labelled(name, body);
  }

  #break(): Node {
    const name = `*${this.#expectVariable()}`;
    if (!this.#known.includes(name)) throw new JqError(`label not defined: ${name.slice(1)}`);
    return (_input, _path, scope) => {
      const label = nodes.find(scope, name);
      if (label !== null) throw new nodes.Break(label);
    };
  }

  #object(): Node {
    const members: Member[] = [];
    while (!this.#takeMark('}')) {
      if (members.length > 0) this.#expectMark(',');
      members.push(this.#member());
    }
    return nodes.constructed(members);
  }

  #member(): Member {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw new JqError('unexpected EOF');
    if (token.kind === 'variable') {
      return [nodes.constant(token.name.slice(1)), this.#variable(token.name)];
    }
    const isComputed = token.kind === 'mark' && token.text === '(';
    let name: Node;
    if (token.kind === 'word') name = nodes.constant(token.name);
    else if (token.kind === 'string') name = this.#text(token.parts);
    else if (token.kind === 'format') name = this.#format(token.name);
    else if (isComputed) {
      name = this.#pipe();
      this.#expectMark(')');
    } else throw unexpected(token);
    if (this.#takeMark(':')) return [name, this.#memberValue()];
    if (isComputed) throw new JqError('unexpected token: a ":" is missing');
    return [name, nodes.through(nodes.self, name)];
  }

  #memberValue(): Node {
    let node = this.#alternative();
    while (this.#takeMark('|')) node = nodes.piped(node, this.#alternative());
    return node;
  }

  #variable(name: string): Node {
    if (name === '$ENV') return nodes.constant({});
    if (!this.#known.includes(name)) throw new JqError(`variable not defined: ${name}`);
    return (_input, path, scope, emit) =>
      emit(nodes.find(scope, name)?.value ?? null, nodes.off(path));
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

  #expectName(): string {
    const token = this.#tokens[this.#next++];
    if (token?.kind !== 'word') throw unexpected(token, 'a name');
    return token.name;
  }

  #expectVariable(): string {
    const token = this.#tokens[this.#next++];
    if (token?.kind !== 'variable') throw unexpected(token, 'a variable');
    return token.name;
  }
}

/** A function that takes filters and gives values, but no paths. */
function valueCall(
  own: (input: JsonValue, ...args: Filter[]) => readonly JsonValue[],
  args: readonly Node[],
): Node {
  return (input, path, scope, emit) => {
    const filters = args.map(
      (arg): Filter =>
        (value) =>
          nodes.valuesOf(arg, value, scope),
    );
    for (const value of own(input, ...filters)) emit(value, nodes.off(path));
  };
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
