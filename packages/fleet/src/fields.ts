/** JSON of questions, read once: each error says where the wrong thing stands. */

export class Fields {
  readonly all: Readonly<Record<string, unknown>>;
  readonly #where: string;

  constructor(where: string, value: unknown) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Error(`${where}: an object is needed`);
    }
    this.#where = where;
    this.all = value as Readonly<Record<string, unknown>>;
  }

  /** True if the field is there and not null. */
  has(name: string): boolean {
    return this.#get(name) !== undefined;
  }

  /** Empty if missing. */
  text(name: string): string {
    const value = this.#get(name) ?? '';
    return typeof value === 'string' ? value : this.#refuse(name, 'a text');
  }

  number(name: string, fallback: number): number {
    const value = this.#get(name) ?? fallback;
    const spelled: unknown = typeof value === 'string' ? SPELLED.get(value) : value;
    return typeof spelled === 'number' ? spelled : this.#refuse(name, 'a number');
  }

  flag(name: string, fallback: boolean): boolean {
    const value = this.#get(name) ?? fallback;
    return typeof value === 'boolean' ? value : this.#refuse(name, 'true or false');
  }

  /** One of `words`; the first one if missing. */
  word<Word extends string>(name: string, words: readonly [Word, ...Word[]]): Word {
    const value = this.#get(name) ?? words[0];
    return words.find((word) => word === value) ?? this.#refuse(name, `one of ${words.join(', ')}`);
  }

  /** Empty if missing. */
  list(name: string): readonly unknown[] {
    const value = this.#get(name) ?? [];
    return Array.isArray(value) ? value : this.#refuse(name, 'a list');
  }

  texts(name: string): readonly string[] {
    return this.list(name).map((item) => {
      return typeof item === 'string' ? item : this.#refuse(name, 'a list of texts');
    });
  }

  /** Without fields if missing. */
  fields(name: string): Fields {
    return new Fields(`${this.#where}: ${name}`, this.#get(name) ?? {});
  }

  #get(name: string): unknown {
    return Object.hasOwn(this.all, name) ? (this.all[name] ?? undefined) : undefined;
  }

  #refuse(name: string, wanted: string): never {
    throw new Error(`${this.#where}: ${name}: ${wanted} is needed`);
  }
}

/** Numbers that JSON cannot write. */
const SPELLED: ReadonlyMap<string, number> = new Map([
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
]);

/** A map of texts; empty if missing. */
export function textMapOf(fields: Fields, name: string): Readonly<Record<string, string>> {
  const map = fields.fields(name);
  return Object.fromEntries(Object.keys(map.all).map((key) => [key, map.text(key)]));
}
