/** Go's text/template, third step: a template applied to an object. */
import { ownMember } from '@megaplane/base/members';
import {
  GoFloat,
  GoInt64,
  isList,
  isMap,
  isTrue,
  memberOf,
  printed,
  typeName,
  type GoMap,
  type GoValue,
} from './go-values.ts';
import { lineOf, TemplateError } from './template-lexer.ts';
import { parseTemplate } from './template-tree.ts';
import type { Operand, Pipe, TemplateNode, TemplateTree } from './template-tree.ts';

/** A function of templates; throws an Error to end the template. */
export type TemplateFunction = (...args: GoValue[]) => GoValue;
export type TemplateFunctions = Readonly<Record<string, TemplateFunction>>;

/** Characters of a template. */
export const TEMPLATE_CHARS_MAX: number = 256 * 1024;
/** Text that one template may make. */
export const OUTPUT_LENGTH_MAX: number = 16 * 1024 * 1024;
/** Nodes that one application may walk through: a template cannot run for ever. */
const STEPS_MAX = 1_000_000;
const CALL_DEPTH_MAX = 200;

/** Evaluated lazily: the second argument is looked at only where the first does not decide. */
const SHORT = new Set(['and', 'or']);
/** Change the map that they are given, be it the object itself. */
const CHANGING: ReadonlySet<string> = new Set(
  ['set', 'unset'].concat('merge', 'mergeOverwrite', 'mustMerge', 'mustMergeOverwrite'),
);

/** A parsed template with its functions. */
export class Template {
  readonly #tree: TemplateTree;
  readonly #functions: TemplateFunctions;
  /** Whether it may change the object that it is applied to. */
  readonly #isChanging: boolean;

  /** Throws a TemplateError that says what is wrong in which line. */
  constructor(source: string, functions: TemplateFunctions) {
    if (source.length > TEMPLATE_CHARS_MAX) {
      throw new TemplateError(`a template of more than ${TEMPLATE_CHARS_MAX} characters`);
    }
    this.#functions = functions;
    let isChanging = false;
    this.#tree = parseTemplate(source, (name) => {
      isChanging ||= CHANGING.has(name);
      return SHORT.has(name) || Object.hasOwn(functions, name);
    });
    this.#isChanging = isChanging;
  }

  /** The text for an object; throws a TemplateError. */
  render(data: GoValue): string {
    try {
      const own = this.#isChanging ? structuredClone(data) : data;
      return new Run(this.#tree, this.#functions).render(own);
    } catch (error) {
      // a map that `set` has put into itself has no end
      if (error instanceof RangeError) throw new TemplateError(error.message);
      throw error;
    }
  }
}

interface Variable {
  readonly name: string;
  value: GoValue;
}

type Flow = 'on' | 'break' | 'continue';

class Run {
  readonly #tree: TemplateTree;
  readonly #functions: TemplateFunctions;
  #variables: Variable[] = [];
  #text = '';
  #steps = 0;
  #depth = 0;

  constructor(tree: TemplateTree, functions: TemplateFunctions) {
    this.#tree = tree;
    this.#functions = functions;
  }

  render(data: GoValue): string {
    this.#variables = [{ name: '$', value: data }];
    this.#nodes(this.#tree.body, data);
    return this.#text;
  }

  #nodes(nodes: readonly TemplateNode[], dot: GoValue): Flow {
    for (const node of nodes) {
      if (++this.#steps > STEPS_MAX)
        throw new TemplateError('the template does not come to an end');
      const flow = this.#node(node, dot);
      if (flow !== 'on') return flow;
    }
    return 'on';
  }

  #node(node: TemplateNode, dot: GoValue): Flow {
    switch (node.kind) {
      case 'text':
        this.#write(node.text);
        return 'on';
      case 'print': {
        const value = this.#pipe(node.pipe, dot);
        if (node.pipe.names.length === 0) this.#write(printed(value));
        return 'on';
      }
      case 'if':
      case 'with':
        return this.#choose(node, dot);
      case 'range':
        return this.#range(node, dot);
      case 'template':
        this.#call(node.name, node.pipe === null ? undefined : this.#pipe(node.pipe, dot));
        return 'on';
      case 'break':
      case 'continue':
        return node.kind;
    }
  }

  #write(text: string): void {
    this.#text += text;
    if (this.#text.length > OUTPUT_LENGTH_MAX) {
      throw new TemplateError(`the template makes more than ${OUTPUT_LENGTH_MAX} characters`);
    }
  }

  #choose(
    node: Extract<TemplateNode, { readonly kind: 'if' | 'with' | 'range' }>,
    dot: GoValue,
  ): Flow {
    const mark = this.#variables.length;
    const value = this.#pipe(node.pipe, dot);
    const isMet = isTrue(value);
    const inner = node.kind === 'with' && isMet ? value : dot;
    const flow = this.#nodes(isMet ? node.body : node.otherwise, inner);
    this.#variables.length = mark;
    return flow;
  }

  #range(
    node: Extract<TemplateNode, { readonly kind: 'if' | 'with' | 'range' }>,
    dot: GoValue,
  ): Flow {
    const mark = this.#variables.length;
    const value = this.#pipe({ ...node.pipe, names: [] }, dot);
    const { names, assigns } = node.pipe;
    const last = names.at(-1);
    const first = names.length > 1 ? names[0] : undefined;
    if (!assigns) for (const name of names) this.#variables.push({ name, value: undefined });
    const inside = this.#variables.length;
    let isEmpty = true;
    for (const [key, item] of entriesOf(value, names.length)) {
      isEmpty = false;
      if (first !== undefined) this.#set(first, key);
      if (last !== undefined) this.#set(last, item);
      const flow = this.#nodes(node.body, item);
      this.#variables.length = inside;
      if (flow === 'break') break;
    }
    const flow = isEmpty ? this.#nodes(node.otherwise, dot) : 'on';
    this.#variables.length = mark;
    return flow;
  }

  #call(name: string, argument: GoValue): void {
    const body = this.#tree.defined.get(name);
    if (body === undefined) throw new TemplateError(`template ${JSON.stringify(name)} not defined`);
    if (++this.#depth > CALL_DEPTH_MAX) throw new TemplateError('exceeded maximum template depth');
    const outer = this.#variables;
    this.#variables = [{ name: '$', value: argument }];
    this.#nodes(body, argument);
    this.#variables = outer;
    this.#depth--;
  }

  #set(name: string, value: GoValue): void {
    const variable = this.#variables.findLast((one) => one.name === name);
    if (variable !== undefined) variable.value = value;
  }

  #pipe(pipe: Pipe, dot: GoValue): GoValue {
    let value: GoValue;
    let isFirst = true;
    for (const command of pipe.commands) {
      value = this.#command(command, dot, isFirst ? [] : [value]);
      isFirst = false;
    }
    for (const name of pipe.names) {
      if (pipe.assigns) this.#set(name, value);
      else this.#variables.push({ name, value });
    }
    return value;
  }

  #command(
    [head, ...rest]: readonly [Operand, ...Operand[]],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    if (head.kind === 'function') return this.#apply(head, rest, dot, piped);
    if (rest.length > 0 || piped.length > 0) {
      throw this.#error(head.at, `can't give argument to non-function`);
    }
    return this.#value(head, dot);
  }

  #apply(
    head: Extract<Operand, { readonly kind: 'function' }>,
    rest: readonly Operand[],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    const { name } = head;
    if (SHORT.has(name)) return this.#shortCut(head, rest, dot, piped);
    const args = rest.map((operand) => this.#value(operand, dot));
    try {
      return ownMember(this.#functions, name)?.(...args, ...piped);
    } catch (error) {
      if (error instanceof TemplateError) throw error;
      throw this.#error(head.at, `error calling ${name}: ${(error as Error).message}`);
    }
  }

  #shortCut(
    { name, at }: Extract<Operand, { readonly kind: 'function' }>,
    rest: readonly Operand[],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    if (rest.length + piped.length === 0) {
      throw this.#error(at, `wrong number of args for ${name}: want at least 1 got 0`);
    }
    let value: GoValue;
    for (const operand of rest) {
      value = this.#value(operand, dot);
      if (isTrue(value) === (name === 'or')) return value;
    }
    return piped.length > 0 ? piped[0] : value;
  }

  #value(operand: Operand, dot: GoValue): GoValue {
    switch (operand.kind) {
      case 'value':
        return operand.value;
      case 'dot':
        return dot;
      case 'variable':
        return this.#variables.findLast((one) => one.name === operand.name)?.value;
      case 'function':
        return this.#apply(operand, [], dot, []);
      case 'pipe':
        return this.#pipe(operand.pipe, dot);
      case 'chain': {
        let value = this.#value(operand.of, dot);
        for (const name of operand.names) value = this.#member(value, name, operand.at);
        return value;
      }
    }
  }

  #member(value: GoValue, name: string, at: number): GoValue {
    if (value === undefined) return undefined;
    if (value === null) throw this.#error(at, `nil pointer evaluating interface {}.${name}`);
    if (!isMap(value)) {
      throw this.#error(at, `can't evaluate field ${name} in type ${typeName(value)}`);
    }
    return memberOf(value, name);
  }

  #error(at: number, what: string): TemplateError {
    const { source } = this.#tree;
    return new TemplateError(`template: _:${lineOf(source, at)}: executing "_": ${what}`);
  }
}

/** What `range` goes over: lists in order, maps in the order of their keys, numbers from 0. */
function entriesOf(value: GoValue, names: number): readonly (readonly [GoValue, GoValue])[] {
  if (value === undefined || value === null) return [];
  if (isList(value)) return value.map((item, index) => [BigInt(index), item]);
  const count = value instanceof GoInt64 ? value.value : value;
  if (typeof count === 'bigint') {
    if (names > 1) {
      throw new TemplateError(`can't use ${count} to iterate over more than one variable`);
    }
    if (count > 1_000_000n) throw new TemplateError(`range over ${count} is too long`);
    return Array.from({ length: Number(count) }, (_, index) => [BigInt(index), BigInt(index)]);
  }
  if (value instanceof GoFloat || !isMap(value)) {
    throw new TemplateError(`range can't iterate over ${printed(value)}`);
  }
  const map: GoMap = value;
  return Object.keys(map)
    .toSorted()
    .map((name) => [name, map[name]]);
}
