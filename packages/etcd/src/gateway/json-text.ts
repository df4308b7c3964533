/**
 * JSON as a tree that keeps numbers as written: revisions and lease ids do not fit a double. The
 * messages of syntax errors are Go's, which clients of etcd's gateway know.
 */
import { ownMember } from '@megaplane/base/members';

export type Json =
  | { readonly kind: 'null' }
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'number'; readonly text: string }
  /** `raw` is what stands between the quotes. */
  | { readonly kind: 'string'; readonly value: string; readonly raw: string }
  | { readonly kind: 'array'; readonly items: readonly Json[] }
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, Json> };

/** Arrays and objects inside each other: a transaction of 128 operations nests 384 deep. */
const DEPTH_MAX = 1024;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f' },
  ...{ n: '\n', r: '\r', t: '\t' },
};

export class JsonError extends Error {}

const EOF = 'unexpected EOF';

/** Reads documents that follow each other in one text. */
export class JsonDocuments {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the last document ended. */
  get at(): number {
    return this.#at;
  }

  /** The next document, null at the end. Throws a JsonError whose text goes to the client. */
  next(): Json | null {
    this.#space();
    return this.#at >= this.#text.length ? null : this.#value(0);
  }

  /**
   * The only document of the text, as Go's json.Unmarshal reads it. Throws a JsonError whose text
   * goes to the client.
   */
  only(): Json {
    try {
      const json = this.next();
      if (json === null) throw new JsonError(EOF);
      this.#space();
      if (this.#at < this.#text.length) throw this.#wrong('after top-level value');
      return json;
    } catch (error) {
      if (!(error instanceof JsonError) || error.message !== EOF) throw error;
      throw new JsonError('unexpected end of JSON input', { cause: error });
    }
  }

  #space(): void {
    while (' \t\r\n'.includes(this.#peek()) && this.#at < this.#text.length) this.#at++;
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #wrong(where: string): JsonError {
    if (this.#at >= this.#text.length) return new JsonError(EOF);
    // Go reads bytes: of a character beyond ASCII it shows the first one, as if it were whole.
    const [byte = 0] = Buffer.from(this.#text.slice(this.#at, this.#at + 2), 'utf8');
    const found = String.fromCharCode(byte);
    const shown =
      found === "'" ? String.raw`'\''` : found === '"' ? `'"'` : `'${escapedCharacter(found)}'`;
    return new JsonError(`invalid character ${shown} ${where}`);
  }

  #value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new JsonError('exceeded max depth');
    this.#space();
    const first = this.#peek();
    if (first === '{') return this.#object(depth);
    if (first === '[') return this.#array(depth);
    if (first === '"') {
      const start = this.#at + 1;
      const value = this.#string();
      return { kind: 'string', value, raw: this.#text.slice(start, this.#at - 1) };
    }
    if (first === 't') return this.#literal('true', { kind: 'bool', value: true });
    if (first === 'f') return this.#literal('false', { kind: 'bool', value: false });
    if (first === 'n') return this.#literal('null', { kind: 'null' });
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text);
    if (number !== null) {
      this.#at += number[0].length;
      return { kind: 'number', text: number[0] };
    }
    if (first === '-') {
      this.#at++;
      throw this.#wrong('in numeric literal');
    }
    throw this.#wrong('looking for beginning of value');
  }

  #literal(word: string, value: Json): Json {
    for (let i = 0; i < word.length; i++, this.#at++) {
      if (this.#peek() === word.charAt(i)) continue;
      throw this.#wrong(`in literal ${word} (expecting '${word.charAt(i)}')`);
    }
    return value;
  }

  #object(depth: number): Json {
    const members = new Map<string, Json>();
    this.#at++;
    this.#space();
    if (this.#peek() === '}') {
      this.#at++;
      return { kind: 'object', members };
    }
    for (;;) {
      this.#space();
      if (this.#peek() !== '"') throw this.#wrong('looking for beginning of object key string');
      const name = this.#string();
      this.#space();
      if (this.#peek() !== ':') throw this.#wrong('after object key');
      this.#at++;
      members.set(name, this.#value(depth + 1));
      this.#space();
      const next = this.#peek();
      if (next !== ',' && next !== '}') throw this.#wrong('after object key:value pair');
      this.#at++;
      if (next === '}') return { kind: 'object', members };
    }
  }

  #array(depth: number): Json {
    const items: Json[] = [];
    this.#at++;
    this.#space();
    if (this.#peek() === ']') {
      this.#at++;
      return { kind: 'array', items };
    }
    for (;;) {
      items.push(this.#value(depth + 1));
      this.#space();
      const next = this.#peek();
      if (next !== ',' && next !== ']') throw this.#wrong('after array element');
      this.#at++;
      if (next === ']') return { kind: 'array', items };
    }
  }

  #string(): string {
    this.#at++;
    let value = '';
    for (;;) {
      const start = this.#at;
      while (isPlain(this.#text.charCodeAt(this.#at))) this.#at++;
      value += this.#text.slice(start, this.#at);
      const next = this.#peek();
      if (next === '"') {
        this.#at++;
        return value;
      }
      if (next !== '\\') throw this.#wrong('in string literal');
      this.#at++;
      value += this.#escape();
    }
  }

  #escape(): string {
    const letter = this.#peek();
    if (letter !== 'u') {
      const plain = ownMember(ESCAPES, letter);
      if (plain === undefined) throw this.#wrong('in string escape code');
      this.#at++;
      return plain;
    }
    this.#at++;
    const start = this.#at;
    for (; this.#at < start + 4; this.#at++) {
      if (!/[0-9a-fA-F]/.test(this.#peek())) {
        throw this.#wrong(String.raw`in \u hexadecimal character escape`);
      }
    }
    return String.fromCharCode(Number.parseInt(this.#text.slice(start, this.#at), 16));
  }
}

/**
 * Follows brackets and strings through pieces of a text, so that a document that comes in many
 * pieces need not be read again at each of them.
 */
export class JsonPieces {
  #depth = 0;
  #isString = false;
  #isEscaped = false;

  /** May a document end in this piece, the next one of the text? */
  mayEnd(piece: string): boolean {
    let mayEnd = false;
    for (const character of piece) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isString) {
        this.#isEscaped = character === '\\';
        this.#isString = character !== '"';
      } else if (character === '"') this.#isString = true;
      else if (character === '{' || character === '[') this.#depth++;
      else if (character === '}' || character === ']') this.#depth--;
      if (this.#depth <= 0 && !this.#isString) mayEnd = true;
    }
    return mayEnd;
  }
}

/** Neither the end of a string, nor an escape, nor a control character, nor the text's end. */
function isPlain(code: number): boolean {
  return code >= 0x20 && code !== 0x22 && code !== 0x5c;
}

function escapedCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x20 && code !== 0x7f) return character === '\\' ? '\\\\' : character;
  const known = Object.entries(ESCAPES).find(([, value]) => value === character);
  return known === undefined ? `\\x${code.toString(16).padStart(2, '0')}` : `\\${known[0]}`;
}
