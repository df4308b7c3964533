/**
 * JSONPath as Kubernetes has it in printer columns: fields, indexes, slices, wildcards, filters,
 * unions and descent (`.status.conditions[?(@.type=="Ready")].status`).
 */
import { equals } from '../json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json-value.ts';

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'all' }
  | { readonly kind: 'descent' }
  | { readonly kind: 'slice'; readonly from: number | null; readonly to: number | null }
  | { readonly kind: 'index'; readonly at: number }
  | { readonly kind: 'union'; readonly steps: readonly Step[] }
  | { readonly kind: 'filter'; readonly filter: Filter };

interface Filter {
  readonly left: Operand;
  readonly operator: string;
  readonly right: Operand | null;
}

type Operand = { readonly path: readonly Step[] } | { readonly value: JsonValue };

/** A path that was read once and can be followed in any object. */
export class JsonPath {
  readonly #steps: readonly Step[];

  private constructor(steps: readonly Step[]) {
    this.#steps = steps;
  }

  /** Reads a path (`.spec.replicas`, without braces); null where it is none. */
  static parse(text: string): JsonPath | null {
    const steps = new PathReader(text).path();
    return steps === null ? null : new JsonPath(steps);
  }

  /** What the path leads to, in order; nothing where a step is absent. */
  find(object: JsonObject): readonly JsonValue[] {
    return follow(this.#steps, [object]);
  }
}

const OPERATORS = ['==', '!=', '<=', '>=', '<', '>'] as const;

class PathReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  path(): readonly Step[] | null {
    const steps: Step[] = [];
    while (this.#at < this.#text.length) {
      const step = this.#step();
      if (step === null) return null;
      steps.push(step);
    }
    return steps;
  }

  #step(): Step | null {
    const text = this.#text;
    if (text.startsWith('..', this.#at)) {
      this.#at++;
      // what follows a descent is a field with its point, or a bracket
      if (text[this.#at + 1] === '[') this.#at++;
      return { kind: 'descent' };
    }
    if (text[this.#at] === '[') return this.#bracket();
    if (text[this.#at] === '.') this.#at++;
    else if (this.#at > 0) return null;
    if (text[this.#at] === '[') return this.#bracket();
    let name = '';
    for (let char = text[this.#at]; char !== undefined; char = text[this.#at]) {
      if (char === '.' || char === '[') break;
      if (char === '\\') this.#at++;
      name += text[this.#at] ?? '';
      this.#at++;
    }
    if (name === '') return null;
    return name === '*' ? { kind: 'all' } : { kind: 'field', name };
  }

  #bracket(): Step | null {
    const end = closingBracket(this.#text, this.#at);
    if (end < 0) return null;
    const inside = this.#text.slice(this.#at + 1, end).trim();
    this.#at = end + 1;
    if (inside.startsWith('?(') && inside.endsWith(')')) return filterStep(inside.slice(2, -1));
    const parts = splitOutside(inside, ',').map((part) => bracketPart(part.trim()));
    if (parts.length === 1) return parts[0] ?? null;
    return parts.includes(null)
      ? null
      : { kind: 'union', steps: parts.filter((part) => part !== null) };
  }
}

/** Where the bracket at `from` ends, looking past quoted text; -1 where it does not. */
function closingBracket(text: string, from: number): number {
  let depth = 0;
  let quote = '';
  for (let at = from; at < text.length; at++) {
    const char = text[at] ?? '';
    if (quote !== '') {
      if (char === '\\') at++;
      else if (char === quote) quote = '';
    } else if (char === '"' || char === "'") quote = char;
    else if (char === '[') depth++;
    else if (char === ']' && --depth === 0) return at;
  }
  return -1;
}

function splitOutside(text: string, separator: string): string[] {
  const parts: string[] = [];
  let quote = '';
  let part = '';
  for (const char of text) {
    if (quote === '' && char === separator) {
      parts.push(part);
      part = '';
      continue;
    }
    if (quote === '' && (char === '"' || char === "'")) quote = char;
    else if (char === quote) quote = '';
    part += char;
  }
  parts.push(part);
  return parts;
}

function bracketPart(part: string): Step | null {
  if (part === '*') return { kind: 'all' };
  const quoted = /^(?:'(.*)'|"(.*)")$/s.exec(part);
  if (quoted !== null) return { kind: 'field', name: unescape(quoted[1] ?? quoted[2] ?? '') };
  if (/^-?\d+$/.test(part)) return { kind: 'index', at: Number(part) };
  const range = /^(-?\d*):(-?\d*)(?::1?)?$/.exec(part);
  if (range === null) return null;
  return { kind: 'slice', from: boundOf(range[1]), to: boundOf(range[2]) };
}

function boundOf(text: string | undefined): number | null {
  return text === undefined || text === '' ? null : Number(text);
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/gs, '$1');
}

function filterStep(text: string): Step | null {
  for (const operator of OPERATORS) {
    const at = indexOutside(text, operator);
    if (at < 0) continue;
    const left = operandOf(text.slice(0, at).trim());
    const right = operandOf(text.slice(at + operator.length).trim());
    if (left === null || right === null) return null;
    return { kind: 'filter', filter: { left, operator, right } };
  }
  const left = operandOf(text.trim());
  return left === null ? null : { kind: 'filter', filter: { left, operator: '', right: null } };
}

function indexOutside(text: string, wanted: string): number {
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? '';
    if (quote !== '') {
      if (char === quote) quote = '';
    } else if (char === '"' || char === "'") quote = char;
    else if (text.startsWith(wanted, at)) return at;
  }
  return -1;
}

function operandOf(text: string): Operand | null {
  if (text.startsWith('@')) {
    const path = new PathReader(text.slice(1)).path();
    return path === null ? null : { path };
  }
  const quoted = /^(?:'(.*)'|"(.*)")$/s.exec(text);
  if (quoted !== null) return { value: unescape(quoted[1] ?? quoted[2] ?? '') };
  if (text === 'true' || text === 'false') return { value: text === 'true' };
  return text !== '' && Number.isFinite(Number(text)) ? { value: Number(text) } : null;
}

function follow(steps: readonly Step[], start: readonly JsonValue[]): readonly JsonValue[] {
  let values = start;
  for (const step of steps) values = values.flatMap((value) => next(step, value));
  return values;
}

function next(step: Step, value: JsonValue): readonly JsonValue[] {
  switch (step.kind) {
    case 'field':
      return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name] ?? null] : [];
    case 'all':
      return inner(value);
    case 'descent':
      return descend(value);
    case 'index': {
      if (!Array.isArray(value)) return [];
      const found = value.at(step.at);
      return found === undefined ? [] : [found];
    }
    case 'slice':
      return Array.isArray(value) ? value.slice(step.from ?? 0, step.to ?? value.length) : [];
    case 'union':
      return step.steps.flatMap((one) => next(one, value));
    case 'filter':
      return Array.isArray(value) ? value.filter((one) => passes(step.filter, one)) : [];
  }
}

function inner(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value).filter((one) => one !== undefined) : [];
}

function descend(value: JsonValue): readonly JsonValue[] {
  return [value, ...inner(value).flatMap(descend)];
}

function passes({ left, operator, right }: Filter, value: JsonValue): boolean {
  const one = valueOf(left, value);
  if (right === null) return one !== undefined;
  const other = valueOf(right, value);
  if (one === undefined || other === undefined) return false;
  if (operator === '==') return equals(one, other);
  if (operator === '!=') return !equals(one, other);
  if (!isOrdered(one) || !isOrdered(other) || typeof one !== typeof other) return false;
  if (operator === '<') return one < other;
  if (operator === '<=') return one <= other;
  return operator === '>' ? one > other : one >= other;
}

function isOrdered(value: JsonValue): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function valueOf(operand: Operand, value: JsonValue): JsonValue | undefined {
  return 'value' in operand ? operand.value : follow(operand.path, [value])[0];
}
