/** What Go's JSON scanner says of text that is no JSON. */

import { JSON_DEPTH_MAX } from '@megaplane/base/nested-json';
import { quoted } from './quoting.ts';

/**
 * The message of Go's scanner for text that is no JSON or nested too deep; '' if it finds nothing
 * wrong.
 */
export function syntaxError(text: string): string {
  const scanner = new SyntaxScanner(text);
  scanner.value();
  if (scanner.failure === '') scanner.finish();
  return scanner.failure;
}

/**
 * Where the first value of a text ends, as Go's stream decoder reads it: what follows is not looked
 * at. `failure`: what that decoder says where there is no whole value.
 */
export function firstValue(text: string): { readonly failure: string; readonly end: number } {
  const scanner = new SyntaxScanner(text);
  scanner.value();
  const { failure, end } = scanner;
  if (failure !== END) return { failure, end };
  return { failure: text.trim() === '' ? 'EOF' : 'unexpected EOF', end };
}

const END = 'unexpected end of JSON input';

class SyntaxScanner {
  failure = '';
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** After what has been read. */
  get end(): number {
    return this.#at;
  }

  finish(): void {
    if (this.#peek() !== '') this.#fail('after top-level value');
  }

  #peek(): string {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? 'x')) this.#at++;
    return this.#text[this.#at] ?? '';
  }

  #fail(context: string): void {
    if (this.failure !== '') return;
    const found = this.#text[this.#at];
    if (found === undefined) this.failure = END;
    else {
      const shown = found === "'" ? "\\'" : found === '"' ? '"' : quoted(found).slice(1, -1);
      this.failure = `invalid character '${shown}' ${context}`;
    }
  }

  value(): void {
    /** Brackets that are open; explicit, so that deep nesting cannot exhaust the stack. */
    const open: string[] = [];
    do {
      const first = this.#peek();
      if (first === '{' || first === '[') {
        this.#at++;
        open.push(first);
        if (open.length > JSON_DEPTH_MAX) {
          this.failure = `invalid character '${first}' exceeded max depth`;
          return;
        }
        if (this.#peek() === (first === '{' ? '}' : ']')) {
          this.#at++;
          open.pop();
        } else {
          if (first === '{') this.#key();
          continue;
        }
      } else if (first === '"') this.#string();
      else if (first === '-' || (first >= '0' && first <= '9')) this.#number();
      else if (first === 't') this.#literal('true');
      else if (first === 'f') this.#literal('false');
      else if (first === 'n') this.#literal('null');
      else this.#fail('looking for beginning of value');
      this.#close(open);
    } while (this.failure === '' && open.length > 0);
  }

  /** After a value: a comma goes on, brackets close. */
  #close(open: string[]): void {
    while (this.failure === '' && open.length > 0) {
      const isObject = open.at(-1) === '{';
      const next = this.#peek();
      if (next === ',') {
        this.#at++;
        if (isObject) this.#key();
        return;
      }
      if (next !== (isObject ? '}' : ']')) {
        return this.#fail(isObject ? 'after object key:value pair' : 'after array element');
      }
      this.#at++;
      open.pop();
    }
  }

  #key(): void {
    if (this.#peek() !== '"') return this.#fail('looking for beginning of object key string');
    this.#string();
    if (this.failure !== '') return;
    if (this.#peek() !== ':') return this.#fail('after object key');
    this.#at++;
  }

  #string(): void {
    this.#at++;
    for (; this.failure === ''; this.#at++) {
      const found = this.#text[this.#at];
      if (found === undefined || found < ' ') return this.#fail('in string literal');
      if (found === '"') break;
      if (found === '\\') this.#escape();
    }
    this.#at++;
  }

  #escape(): void {
    this.#at++;
    const found = this.#text[this.#at] ?? '';
    if (found === 'u') {
      for (let digit = 0; digit < 4; digit++) {
        this.#at++;
        if (!/^[0-9a-fA-F]$/.test(this.#text[this.#at] ?? '')) {
          return this.#fail('in \\u hexadecimal character escape');
        }
      }
    } else if (found === '' || !'"\\/bfnrt'.includes(found)) {
      this.#fail('in string escape code');
    }
  }

  #number(): void {
    if (this.#text[this.#at] === '-') this.#at++;
    if (this.#text[this.#at] === '0') this.#at++;
    else if (!this.#digits()) return this.#fail('in numeric literal');
    if (this.#text[this.#at] === '.') {
      this.#at++;
      if (!this.#digits()) return this.#fail('after decimal point in numeric literal');
    }
    const letter = this.#text[this.#at];
    if (letter !== 'e' && letter !== 'E') return;
    this.#at++;
    const sign = this.#text[this.#at];
    if (sign === '+' || sign === '-') this.#at++;
    if (!this.#digits()) this.#fail('in exponent of numeric literal');
  }

  #digits(): boolean {
    const start = this.#at;
    while (/^[0-9]$/.test(this.#text[this.#at] ?? '')) this.#at++;
    return this.#at > start;
  }

  #literal(word: string): void {
    for (const letter of word) {
      if (this.#text[this.#at] !== letter) {
        return this.#fail(`in literal ${word} (expecting '${letter}')`);
      }
      this.#at++;
    }
  }
}
