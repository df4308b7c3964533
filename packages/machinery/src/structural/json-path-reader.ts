/**
 * Reads JSONPath as client-go's parser does (`util/jsonpath/parser.go`), with what is odd in it:
 * the text stands between braces there, so what follows a closing brace belongs to another path.
 */
import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '../json/json-value.ts';

/** Part of a list. `isOne`: nothing but an index was written. */
export interface Slice {
  readonly kind: 'slice';
  readonly from: number | null;
  readonly to: number | null;
  readonly isOne: boolean;
  readonly step: number | null;
}

export type Operator = 'exists' | '==' | '!=' | '<' | '<=' | '>' | '>=' | 'unknown';

export type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'all' }
  | { readonly kind: 'descent' }
  | Slice
  | { readonly kind: 'union'; readonly paths: readonly (readonly Step[])[] }
  | {
      readonly kind: 'filter';
      readonly left: readonly Step[];
      readonly operator: Operator;
      readonly right: readonly Step[];
    }
  /** Takes the place of all that was found so far. */
  | { readonly kind: 'text'; readonly text: string }
  /** Takes the place of each. */
  | { readonly kind: 'literal'; readonly value: JsonValue }
  /** A bare word: it can be read, and fails when it is followed. */
  | { readonly kind: 'identifier' };

const OPERATORS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);
const COMPARISON = /^([^!<>=]+)([!<>=]+)(.+)$/s;
const SLICE = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
const TERMINATORS = new Set([' ', '\t', '\r', '\n', '.', ',', '[', ']', '$', '@', '{', '}']);
const WORD = /[\p{L}\p{Nd}_]/u;

export class PathReader {
  readonly #text: string;
  #at = 0;
  readonly #steps: Step[] = [];

  private constructor(text: string) {
    this.#text = text;
  }

  /** The steps of a path without its braces; null where it cannot be read. */
  static read(text: string): readonly Step[] | null {
    const reader = new PathReader(text);
    return reader.#read() ? reader.#steps : null;
  }

  #read(): boolean {
    const text = this.#text;
    while (this.#at < text.length) {
      const char = text[this.#at] ?? '';
      // what comes after is text beside the path, which nobody looks at
      if (char === '}') return true;
      if (!this.#one(char)) return false;
    }
    return true;
  }

  #one(char: string): boolean {
    const text = this.#text;
    if (text.startsWith('[?(', this.#at)) return this.#filter();
    if (text.startsWith('..', this.#at)) return this.#descent();
    if (char === '[') return this.#bracket();
    if (char === '"' || char === "'") return this.#quote(char);
    if (char === '.') {
      this.#at++;
      return this.#field();
    }
    if (char === '+' || char === '-' || /\p{Nd}/u.test(char)) return this.#number();
    if (WORD.test(char)) return this.#word();
    this.#at++;
    return char === ' ' || char === '@' || char === '$';
  }

  #descent(): boolean {
    if (this.#steps.at(-1)?.kind === 'descent') return false;
    this.#at += 2;
    this.#steps.push({ kind: 'descent' });
    return WORD.test(this.#text[this.#at] ?? '') ? this.#field() : true;
  }

  #field(): boolean {
    const start = this.#at;
    this.#toTerminator();
    const name = this.#text.slice(start, this.#at);
    const isAll = name === '*';
    this.#steps.push(isAll ? { kind: 'all' } : { kind: 'field', name: name.replaceAll('\\', '') });
    return true;
  }

  #toTerminator(): void {
    const text = this.#text;
    while (this.#at < text.length && !TERMINATORS.has(text[this.#at] ?? '')) {
      this.#at += text[this.#at] === '\\' ? 2 : 1;
    }
  }

  #word(): boolean {
    const start = this.#at;
    const text = this.#text;
    while (this.#at < text.length && !TERMINATORS.has(text[this.#at] ?? '')) this.#at++;
    const word = text.slice(start, this.#at);
    const isTruth = word === 'true' || word === 'false';
    this.#steps.push(
      isTruth ? { kind: 'literal', value: word === 'true' } : { kind: 'identifier' },
    );
    return true;
  }

  #number(): boolean {
    const [found = ''] = /^[+-]?[.\d]*/.exec(this.#text.slice(this.#at)) ?? [];
    this.#at += found.length;
    if (!/^[+-]?(\d+(?:\.\d*)?|\.\d+)$/.test(found)) return false;
    this.#steps.push({ kind: 'literal', value: Number(found) });
    return true;
  }

  #quote(quote: string): boolean {
    const start = this.#at + 1;
    for (let at = start; at < this.#text.length; at++) {
      const char = this.#text[at];
      if (char === '\n') return false;
      if (char !== quote || this.#text[at - 1] === '\\') continue;
      const text = unquoted(this.#text.slice(start, at));
      if (text === null) return false;
      this.#at = at + 1;
      this.#steps.push({ kind: 'text', text });
      return true;
    }
    return false;
  }

  #bracket(): boolean {
    const end = this.#text.indexOf(']', this.#at);
    if (end < 0) return false;
    const inside = this.#text.slice(this.#at + 1, end);
    if (inside.includes('\n')) return false;
    this.#at = end + 1;
    const parts = inside.split(',');
    if (parts.length === 1) return this.#add(bracketed(inside));
    const paths: (readonly Step[])[] = [];
    for (const part of parts) {
      const path = bracketed(part.replaceAll(/^ +|(?<! ) +$/g, ''));
      if (path === null) return false;
      paths.push(path);
    }
    return this.#add([{ kind: 'union', paths }]);
  }

  #add(steps: readonly Step[] | null): boolean {
    if (steps !== null) this.#steps.push(...steps);
    return steps !== null;
  }

  #filter(): boolean {
    const start = this.#at + 3;
    const end = this.#filterEnd(start);
    if (end < 0 || this.#text[end + 1] !== ']') return false;
    this.#at = end + 2;
    const inside = this.#text.slice(start, end);
    const parts = COMPARISON.exec(inside);
    const left = PathReader.read(parts?.[1] ?? inside);
    const right = parts === null ? [] : PathReader.read(parts[3] ?? '');
    if (left === null || right === null) return false;
    const operator = parts === null ? 'exists' : operatorOf(parts[2] ?? '');
    this.#steps.push({ kind: 'filter', left, operator, right });
    return true;
  }

  /** Where its round bracket closes; one quoted text is looked past. */
  #filterEnd(start: number): number {
    let quote = '';
    let isPast = false;
    for (let at = start; at < this.#text.length; at++) {
      const char = this.#text[at] ?? '';
      if (char === '\n') return -1;
      if (char === '"' || char === "'") {
        if (quote === '') quote = char;
        else if (char === quote && this.#text[at - 1] !== '\\') isPast = true;
      } else if (char === ')' && (quote !== '') === isPast) return at;
    }
    return -1;
  }
}

function operatorOf(text: string): Operator {
  return OPERATORS.has(text) ? (text as Operator) : 'unknown';
}

/** What stands in brackets: a quoted key, which is a path of its own, or part of a list. */
function bracketed(inside: string): readonly Step[] | null {
  const key = /^'([^']*)'$/.exec(inside)?.[1];
  if (key !== undefined) return PathReader.read(`.${key}`);
  const found = SLICE.exec(inside === '*' ? ':' : inside);
  if (found === null) return null;
  const [, from = '', to, step] = found;
  const bounds = [from, to?.slice(1) ?? '', step?.slice(1) ?? ''];
  if (bounds.includes('-')) return null;
  const [first = null, second = null, third = null] = bounds.map((text) =>
    text === '' ? null : Number(text),
  );
  return [{ kind: 'slice', from: first, to: second, isOne: to === undefined, step: third }];
}

const ESCAPES: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', '\\': '\\' },
  ...{ "'": "'", '"': '"' },
};

function unquoted(text: string): string | null {
  let isRight = true;
  const plain = text.replaceAll(/\\(?:x([\da-f]{2})|u([\da-f]{4})|(.?))/gi, (_, hex, wide, one) => {
    if (typeof one !== 'string') return String.fromCharCode(parseInt(String(hex ?? wide), 16));
    const found = ownMember(ESCAPES, one);
    if (found === undefined) isRight = false;
    return found ?? '';
  });
  return isRight ? plain : null;
}
