/**
 * One module as the body of a function: `($exports, $load, $meta, $include) => { ... }`.
 *
 * Lines stay where they are, so that positions in stack traces are those of the source. Bindings of
 * other modules become constants, which is right where no module gives a variable out that changes
 * and none waits for another at its top level; both are refused.
 */
import { stripTypeScriptTypes } from 'node:module';
import { parse, type Node, type Program } from 'acorn';

/** What a module asks for, by the words that it uses. */
export interface ModuleText {
  readonly text: string;
  /** Imported when it runs, in this order. */
  readonly imports: readonly string[];
  /** Imported by a call, when it comes to that. */
  readonly calls: readonly string[];
  /** Run by threads. */
  readonly workers: readonly string[];
}

/** `number`: what `$load` and `$include` take for a word of an import. */
export function moduleText(source: string, number: (word: string) => number): ModuleText {
  const plain = stripTypeScriptTypes(source);
  const program = parse(plain, { ecmaVersion: 'latest', sourceType: 'module' });
  const edits = new Edits(plain, number);
  for (const statement of program.body) edits.statement(statement);
  edits.expressions(program);
  return edits.finish();
}

type Statement = Program['body'][number];
type Named = Extract<Statement, { type: 'ExportNamedDeclaration' }>;

class Edits {
  readonly #plain: string;
  readonly #number: (word: string) => number;
  readonly #imports: string[] = [];
  readonly #calls: string[] = [];
  readonly #workers: string[] = [];
  /** Replacements, in any order. */
  readonly #edits: { readonly start: number; readonly end: number; readonly text: string }[] = [];
  /** Behind the module's own text. */
  readonly #given: string[] = [];

  constructor(plain: string, number: (word: string) => number) {
    this.#plain = plain;
    this.#number = number;
  }

  statement(node: Statement): void {
    if (node.type === 'ImportDeclaration') {
      this.#replace(node, this.#bound(node.specifiers, this.#load(node.source.value)));
    } else if (node.type === 'ExportAllDeclaration') {
      if (node.exported !== null) throw new Error('export * as: no module does so');
      const given = `Object.entries(${this.#load(node.source.value)})`;
      const each = "if ($k !== 'default') $exports[$k] = $v;";
      this.#replace(node, `for (const [$k, $v] of ${given}) ${each}`);
    } else if (node.type === 'ExportDefaultDeclaration') {
      throw new Error('export default: no module does so');
    } else if (node.type === 'ExportNamedDeclaration') {
      this.#named(node);
    }
  }

  #bound(specifiers: readonly Specifier[], from: string): string {
    const names: string[] = [];
    let whole = '';
    for (const one of specifiers) {
      if (one.type === 'ImportNamespaceSpecifier') whole = `const ${one.local.name} = ${from};`;
      else if (one.type === 'ImportDefaultSpecifier') names.push(`default: ${one.local.name}`);
      else names.push(`${wordOf(one.imported ?? one.local)}: ${one.local.name}`);
    }
    if (whole !== '' && names.length > 0) throw new Error('a namespace beside names');
    if (whole !== '') return whole;
    return names.length === 0 ? `${from};` : `const { ${names.join(', ')} } = ${from};`;
  }

  #load(word: unknown): string {
    const text = String(word);
    this.#imports.push(text);
    return `$load(${this.#number(text)})`;
  }

  #named(node: Named): void {
    if (node.source !== null && node.source !== undefined) {
      const from = this.#load(node.source.value);
      const parts = node.specifiers.map(
        ({ local, exported }) => `$exports[${nameOf(exported)}] = $m[${nameOf(local)}];`,
      );
      return this.#replace(node, `{ const $m = ${from}; ${parts.join(' ')} }`);
    }
    const { declaration } = node;
    if (declaration === null || declaration === undefined) {
      for (const { local, exported } of node.specifiers) {
        this.#given.push(`$exports[${nameOf(exported)}] = ${wordOf(local)};`);
      }
      return this.#replace(node, '');
    }
    this.#edits.push({ start: node.start, end: declaration.start, text: '' });
    if (declaration.type !== 'VariableDeclaration') {
      const give = `$exports.${declaration.id.name} = ${declaration.id.name};`;
      this.#given.push(give);
      return undefined;
    }
    if (declaration.kind !== 'const') throw new Error('a variable that changes is given out');
    for (const { id } of declaration.declarations) {
      if (id.type !== 'Identifier') throw new Error('a pattern is given out');
      this.#given.push(`$exports.${id.name} = ${id.name};`);
    }
  }

  /** `import()` and `import.meta`, wherever they are; the functions around `await`. */
  expressions(node: unknown, inFunction = false): void {
    if (Array.isArray(node)) {
      for (const one of node) this.expressions(one, inFunction);
      return;
    }
    if (typeof node !== 'object' || node === null) return;
    const { type, start, end, source } = node as Expression;
    if (type === 'AwaitExpression' && !inFunction) throw new Error('await at the top level');
    if (type === 'MetaProperty' && this.#plain.startsWith('import', start)) {
      this.#edits.push({ start: start ?? 0, end: end ?? 0, text: '$meta' });
    }
    const worker = this.#workerOf(node);
    if (worker !== '') {
      const text = `$meta.worker(${this.#number(worker)})`;
      this.#workers.push(worker);
      this.#edits.push({ start: start ?? 0, end: end ?? 0, text });
      return;
    }
    if (type === 'ImportExpression') {
      const word = source?.value;
      if (typeof word !== 'string') throw new Error('import() of what is known later');
      this.#calls.push(word);
      const text = `$include(${this.#number(word)})`;
      this.#edits.push({ start: start ?? 0, end: end ?? 0, text });
      return;
    }
    const isInside = inFunction || (type?.includes('Function') ?? false);
    for (const value of Object.values(node)) {
      if (typeof value === 'object') this.expressions(value, isInside);
    }
  }

  /** The word of `new URL('./x.ts', import.meta.url)`, which names a thread's module; else ''. */
  #workerOf({ type, callee, arguments: args = [] }: Expression): string {
    if (type !== 'NewExpression' || callee?.name !== 'URL') return '';
    const word = args[0]?.value;
    return typeof word === 'string' && word.endsWith('.ts') ? word : '';
  }

  #replace({ start, end }: Node, text: string): void {
    const lines = this.#plain.slice(start, end).split('\n').length - 1;
    this.#edits.push({ start, end, text: text + '\n'.repeat(lines) });
  }

  finish(): ModuleText {
    const parts: string[] = [];
    let at = 0;
    for (const { start, end, text } of this.#edits.toSorted((a, b) => a.start - b.start)) {
      parts.push(this.#plain.slice(at, start), text);
      at = end;
    }
    parts.push(this.#plain.slice(at), '\n', this.#given.join('\n'));
    const text = parts.join('');
    return { text, imports: this.#imports, calls: this.#calls, workers: this.#workers };
  }
}

interface Expression {
  readonly type?: string;
  readonly start?: number;
  readonly end?: number;
  readonly source?: { readonly value?: unknown } | null;
  readonly callee?: { readonly name?: string };
  readonly arguments?: readonly { readonly value?: unknown }[];
}

interface Word {
  readonly name?: string;
  readonly value?: unknown;
}

interface Specifier {
  readonly type: string;
  readonly local: { readonly name: string };
  readonly imported?: Word;
}

function wordOf({ name, value }: Word): string {
  return name ?? JSON.stringify(value);
}

function nameOf({ name, value }: Word): string {
  return JSON.stringify(name ?? value);
}
