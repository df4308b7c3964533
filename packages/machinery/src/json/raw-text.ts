/**
 * The text of what Go holds as `runtime.RawExtension`: kube-apiserver keeps the octets that were
 * sent and looks at none of them, so that `1.0`, a name that stands twice and the order of names
 * stay. Where a text says more than its value, it is kept beside the value, for as long as the
 * value says the same. Copies of the value have no text, and neither do values that were changed.
 */
import { parseJson } from './json-text.ts';
import { isObject, type JsonObject, type JsonValue } from './json-value.ts';
import { escapedJson, withEscapes } from './quoting.ts';

/**
 * Kinds that are stored and have such parts. kube-controller-manager compares the octets of these
 * with what Go writes.
 */
export const RAW_KINDS: ReadonlySet<string> = new Set([
  'ControllerRevision',
  'DeviceClass',
  'ResourceClaim',
  'ResourceClaimTemplate',
]);

/** How the parts are named: ControllerRevision's and a device's `data`, a driver's parameters. */
const RAW_MEMBERS: ReadonlySet<string> = new Set(['data', 'parameters']);
const MAYBE_RAW = /"(?:data|parameters)"/;

/** Where a text hangs on its value: no member, and not copied with the members. */
const TEXT = Symbol('text');

interface Kept {
  readonly [TEXT]?: string;
}

/** Keeps the text of each such part of an object that was parsed; `kind` if it names none. */
export function keepRawTexts(text: string, value: JsonValue, kind?: string): void {
  const said = kind ?? (isObject(value) ? value['kind'] : undefined);
  if (typeof said !== 'string' || !RAW_KINDS.has(said) || !MAYBE_RAW.test(text)) return;
  for (const { path, start, end } of new RawFinder(text).whole()) {
    let found: JsonValue | undefined = value;
    for (const step of path) found = childOf(found, step);
    if (found !== undefined) keepRawText(text.slice(start, end), found);
  }
}

/** Keeps the text that a value was parsed from, if it says more than the value. */
export function keepRawText(text: string, value: JsonValue): void {
  if (!isObject(value)) return;
  const compact = compactText(text);
  if (compact === escapedJson(value)) return;
  Object.defineProperty(value, TEXT, { value: compact, enumerable: false, configurable: true });
}

/** JSON as `escapedJson` writes it, with the parts that have a text as they were sent. */
export function rawJson(value: JsonValue): string {
  return hasText(value) ? written(value) : escapedJson(value);
}

/** A whole object as JSON, with its raw parts as they were sent. */
export function objectJson(object: JsonObject): string {
  const { kind } = object;
  return typeof kind === 'string' && RAW_KINDS.has(kind) ? rawJson(object) : JSON.stringify(object);
}

function hasText(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasText);
  if (!isObject(value)) return false;
  return (value as Kept)[TEXT] !== undefined || Object.values(value).some(hasText);
}

function written(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(written).join()}]`;
  if (!isObject(value)) return escapedJson(value);
  const text = (value as Kept)[TEXT];
  if (text !== undefined && escapedJson(parseJson(text)) === escapedJson(value)) return text;
  const members: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) members.push(`${escapedJson(name)}:${written(member)}`);
  }
  return `{${members.join()}}`;
}

function childOf(value: JsonValue | undefined, step: string | number): JsonValue | undefined {
  if (typeof step === 'number') return Array.isArray(value) ? value[step] : undefined;
  return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

/** Valid JSON as Go's encoder writes a raw message: without spaces between its parts. */
function compactText(text: string): string {
  let compact = '';
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return compact + text.slice(at).replaceAll(/[ \t\r\n]+/g, '');
    const end = stringEnd(text, quote);
    compact += text.slice(at, quote).replaceAll(/[ \t\r\n]+/g, '');
    compact += withEscapes(text.slice(quote, end));
    at = end;
  }
  return compact;
}

/** The offset behind the string whose opening quote stands at `quote`. */
function stringEnd(text: string, quote: number): number {
  let at = quote + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    let slashes = end;
    while (text.charCodeAt(slashes - 1) === BACKSLASH) slashes--;
    if ((end - slashes) % 2 === 0) return end + 1;
    at = end + 1;
  }
}

interface RawSpan {
  readonly path: readonly (string | number)[];
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const SPACE = 0x20;

/** Finds the outermost objects below the names of such parts in valid JSON. */
class RawFinder {
  readonly #text: string;
  readonly #path: (string | number)[] = [];
  readonly #found: RawSpan[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): readonly RawSpan[] {
    this.#value();
    return this.#found;
  }

  /** The next letter that is no space, which stays the next one. */
  #peek(): number {
    let code = this.#text.charCodeAt(this.#at);
    while (code <= SPACE || code === COMMA || code === COLON) {
      code = this.#text.charCodeAt(++this.#at);
    }
    return code;
  }

  #value(): void {
    const code = this.#peek();
    if (code === BRACE_OPEN) this.#object();
    else if (code === BRACKET_OPEN) this.#list();
    else this.#scalar(code);
  }

  #scalar(code: number): void {
    if (code === QUOTE) {
      this.#at = stringEnd(this.#text, this.#at);
      return;
    }
    while (code > SPACE && code !== COMMA && code !== BRACKET_CLOSE && code !== BRACE_CLOSE) {
      code = this.#text.charCodeAt(++this.#at);
    }
  }

  #list(): void {
    this.#at++;
    for (let index = 0; this.#peek() !== BRACKET_CLOSE; index++) {
      this.#path.push(index);
      this.#value();
      this.#path.pop();
    }
    this.#at++;
  }

  #object(): void {
    this.#at++;
    while (this.#peek() !== BRACE_CLOSE) {
      const start = this.#at;
      this.#at = stringEnd(this.#text, start);
      const name = parseJson(this.#text.slice(start, this.#at)) as string;
      this.#path.push(name);
      if (this.#peek() === BRACE_OPEN && RAW_MEMBERS.has(name)) this.#raw();
      else this.#value();
      this.#path.pop();
    }
    this.#at++;
  }

  #raw(): void {
    const text = this.#text;
    const start = this.#at;
    let depth = 0;
    do {
      const code = text.charCodeAt(this.#at);
      if (code === BRACE_OPEN) depth++;
      else if (code === BRACE_CLOSE) depth--;
      this.#at = code === QUOTE ? stringEnd(text, this.#at) : this.#at + 1;
    } while (depth > 0);
    this.#found.push({ path: [...this.#path], start, end: this.#at });
  }
}
