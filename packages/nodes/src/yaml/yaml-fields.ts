/** YAML documents read field by field, so that every error says its line and column. */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  visit,
  type Document,
  type Node,
  type Pair,
  type YAMLMap,
} from 'yaml';

/** Members of metadata that files and servers hold. */
export const METADATA: readonly string[] = [
  ...['name', 'namespace', 'labels', 'annotations', 'creationTimestamp', 'uid', 'generation'],
  ...['resourceVersion', 'managedFields', 'finalizers', 'ownerReferences', 'deletionTimestamp'],
  ...['deletionGracePeriodSeconds', 'selfLink', 'generateName'],
];

/** What is wrong in a file: `FILE:LINE:COLUMN: FIELD: what`. */
export class FileError extends Error {}

interface Source {
  readonly file: string;
  readonly lines: LineCounter;
  readonly document: Document;
}

type Entry = Pair<Node, Node | null>;

/** One value of a document and where it stands. */
export class Field {
  readonly path: string;
  readonly #node: Node | null;
  readonly #source: Source;

  constructor(node: Node | null, path: string, source: Source) {
    this.#node = isAlias(node) ? (node.resolve(source.document) ?? node) : node;
    this.path = path;
    this.#source = source;
  }

  /** Left out, or null. */
  get isAbsent(): boolean {
    return this.#node === null || (isScalar(this.#node) && this.#node.value === null);
  }

  /** `kind` of the document that begins here; '' where it has none. */
  get kindInside(): string {
    const kind: unknown = isMap(this.#node) ? this.#node.get('kind') : undefined;
    return typeof kind === 'string' ? kind : '';
  }

  /** `metadata.namespace/name` of the document that begins here; '' where it has none. */
  get nameInside(): string {
    const metadata = isMap(this.#node) ? this.#node.get('metadata') : undefined;
    if (!isMap(metadata)) return '';
    const part = (name: string): string => {
      const found: unknown = metadata.get(name);
      return typeof found === 'string' ? found : '';
    };
    return `${part('namespace')}/${part('name')}`;
  }

  /** `FILE:LINE:COLUMN`. */
  get place(): string {
    const offset = this.#node?.range?.[0] ?? 0;
    const { line, col } = this.#source.lines.linePos(offset);
    return `${this.#source.file}:${line}:${col}`;
  }

  /** The error that says `what` is wrong here. */
  error(what: string): FileError {
    const { place, path } = this;
    return new FileError(path === '' ? `${place}: ${what}` : `${place}: ${path}: ${what}`);
  }

  /** A member, whatever its name; absent where this is no mapping. */
  inside(name: string): Field {
    const found = isMap(this.#node) ? this.#entriesOf(this.#node) : [];
    const entry = found.find((one) => nameOf(one) === name);
    return this.#child(entry?.value ?? null, name, this.#node);
  }

  /** What a mapping holds, with what it merges from others (`<<`), as YAML 1.1 does. */
  #entriesOf(map: YAMLMap): readonly Entry[] {
    const entries = map.items as Entry[];
    if (!entries.some(isMerge)) return entries;
    const found = entries.filter((entry) => !isMerge(entry));
    for (const { value } of entries.filter(isMerge)) {
      for (const one of isSeq(value) ? (value.items as Node[]) : [value]) {
        const source = isAlias(one) ? one.resolve(this.#source.document) : one;
        if (!isMap(source)) throw this.error('<< takes a mapping, or a list of them');
        const names = new Set(found.map(nameOf));
        found.push(...this.#entriesOf(source).filter((entry) => !names.has(nameOf(entry))));
      }
    }
    return found;
  }

  /** The members of a mapping; names that are not among `known` are refused. */
  members(known: readonly string[]): (name: string) => Field {
    if (this.isAbsent) return (name) => this.#child(null, name, this.#node);
    const node = this.#node;
    if (!isMap(node)) throw this.error('a mapping is expected');
    const found = new Map<string, Field>();
    for (const pair of this.#entriesOf(node)) {
      const name = nameOf(pair);
      const child = this.#child(pair.value ?? pair.key, name);
      if (!known.includes(name)) {
        throw child.error(`unknown field ${JSON.stringify(name)}; known are ${known.join(', ')}`);
      }
      found.set(name, child);
    }
    return (name) => found.get(name) ?? this.#child(null, name, node);
  }

  /** The items of a list; none where it is left out. */
  items(): readonly Field[] {
    if (this.isAbsent) return [];
    if (!isSeq(this.#node)) throw this.error('a list is expected');
    const items = this.#node.items as Node[];
    return items.map((item, index) => new Field(item, `${this.path}[${index}]`, this.#source));
  }

  /** The text; `fallback` where it is left out, or an error without one. */
  text(fallback?: string): string {
    if (this.isAbsent) {
      if (fallback === undefined) throw this.error('is required');
      return fallback;
    }
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    if (typeof value !== 'string') throw this.error(`a text is expected${this.#found}`);
    return value;
  }

  /** What stands here in place of what is expected. */
  get #found(): string {
    if (isMap(this.#node)) return ', not a mapping';
    if (isSeq(this.#node)) return ', not a list';
    return isScalar(this.#node) ? `, not ${JSON.stringify(this.#node.value)}` : '';
  }

  /** A whole number that is not negative. */
  count(fallback: number): number {
    const value = this.number(fallback);
    if (value < 0) throw this.error(`a number of 0 or more is expected${this.#found}`);
    return value;
  }

  number(fallback: number): number {
    if (this.isAbsent) return fallback;
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
      throw this.error(`a whole number is expected${this.#found}`);
    }
    return value;
  }

  /** A number with or without a fraction; `.inf` is one. */
  decimal(): number {
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    if (typeof value !== 'number' || Number.isNaN(value)) throw this.error('a number is expected');
    return value;
  }

  /** A text, or what a number is written as. */
  word(): string {
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    return typeof value === 'number' ? String(value) : this.text();
  }

  /** One of these words. */
  oneOf<Word extends string>(words: readonly Word[]): Word {
    const text = this.text();
    const found = words.find((word) => word === text);
    if (found === undefined) {
      throw this.error(`${JSON.stringify(text)} is none of ${words.join(', ')}`);
    }
    return found;
  }

  flag(): boolean {
    if (this.isAbsent) return false;
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    if (typeof value !== 'boolean') throw this.error(`true or false is expected${this.#found}`);
    return value;
  }

  /** The members of a mapping whose names are the user's; none where it is left out. */
  entries(): readonly (readonly [string, Field])[] {
    if (this.isAbsent) return [];
    const node = this.#node;
    if (!isMap(node)) throw this.error('a mapping is expected');
    return this.#entriesOf(node).map((pair) => {
      const name = nameOf(pair);
      return [name, this.#child(pair.value, name)];
    });
  }

  /** A mapping of texts, or undefined where it is left out. */
  texts(): Readonly<Record<string, string>> | undefined {
    if (this.isAbsent) return undefined;
    return Object.fromEntries(this.entries().map(([name, field]) => [name, field.text('')]));
  }

  #child(node: Node | null, name: string, near: Node | null = null): Field {
    const path = this.path === '' ? name : `${this.path}.${name}`;
    const child = new Field(node, path, this.#source);
    return node === null && near !== null ? new AbsentField(near, path, this.#source) : child;
  }
}

/** A field that is left out; its errors point at the mapping that lacks it. */
class AbsentField extends Field {
  override get isAbsent(): boolean {
    return true;
  }
}

function nameOf({ key }: Entry): string {
  return isScalar(key) ? String(key.value) : '';
}

/** `<<`, which the parser makes a symbol where nothing quotes it. */
function isMerge({ key }: Entry): boolean {
  return isScalar(key) && (key.value === '<<' || typeof key.value === 'symbol');
}

function parsed(file: string, text: string, lineCounter: LineCounter): Parsed {
  try {
    return parseAllDocuments(text, { lineCounter, version: '1.1' });
  } catch (error) {
    if (error instanceof RangeError) throw new FileError(`${file}: nested too deep`);
    throw error;
  }
}

type Parsed = ReturnType<typeof parseAllDocuments>;

/** The documents of a file; empty ones are left out. Throws a FileError. */
export function readDocuments(file: string, text: string): readonly Field[] {
  const lines = new LineCounter();
  const documents = parsed(file, text, lines);
  const fields: Field[] = [];
  for (const document of documents) {
    const [error] = document.errors;
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0]);
      const what = error.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '');
      throw new FileError(`${file}:${line}:${col}: ${what}`);
    }
    const source = { file, lines, document };
    visit(document, {
      Alias: (_key, alias) => {
        if (alias.resolve(document) !== undefined) return;
        throw new Field(alias, '', source).error(`unknown anchor ${alias.source}`);
      },
    });
    const field = new Field(document.contents, '', source);
    if (!field.isAbsent) fields.push(field);
  }
  return fields;
}
