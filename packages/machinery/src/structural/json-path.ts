/**
 * JSONPath as Kubernetes has it in printer columns: fields, indexes, slices, wildcards, filters,
 * unions and descent (`.status.conditions[?(@.type=="Ready")].status`). Odd paths are read as the
 * parser of client-go reads them, so that what leads nowhere there leads nowhere here: a quoted
 * key in brackets is a path of its own, spaces end a name, two values do not compare.
 */
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { PathReader, type Operator, type Slice, type Step } from './json-path-reader.ts';
import { isGoInt } from '../json/go-integers.ts';

/** Longer paths are none. */
export const PATH_CHARS_MAX: number = 16 * 1024;
/** A path that leads to more fails: `..` after `..` finds the same again and again. */
export const PATH_VALUES_MAX = 100_000;

/** Values that a path leads to; null where a step of it fails, as an index out of bounds does. */
type Values = readonly JsonValue[] | null;

/** A path that was read once and can be followed in any object. */
export class JsonPath {
  readonly #steps: readonly Step[];

  private constructor(steps: readonly Step[]) {
    this.#steps = steps;
  }

  /** Reads a path (`.spec.replicas`, without braces); null where it is none. */
  static parse(text: string): JsonPath | null {
    const steps = text.length > PATH_CHARS_MAX ? null : PathReader.read(text);
    return steps === null ? null : new JsonPath(steps);
  }

  /** What the path leads to, in order; nothing where a step is absent or fails. */
  find(object: JsonObject): readonly JsonValue[] {
    valuesLeft = PATH_VALUES_MAX;
    return follow(this.#steps, [object]) ?? [];
  }
}

let valuesLeft = 0;

function follow(steps: readonly Step[], start: readonly JsonValue[]): Values {
  let values: Values = start;
  for (const step of steps) {
    values = next(step, values);
    if (values === null || (valuesLeft -= values.length + 1) < 0) return null;
  }
  return values;
}

function next(step: Step, values: readonly JsonValue[]): Values {
  switch (step.kind) {
    case 'field':
      return values.flatMap((value) => member(value, step.name));
    case 'all':
      return values.flatMap(inner);
    case 'descent':
      return descend(values);
    case 'slice':
      return each(values, (value) => (value === null ? [] : sliced(step, value)));
    case 'union':
      return each(step.paths, (path) => follow(path, values));
    case 'filter':
      return each(values, (value) => filtered(step, value));
    case 'text':
      return [step.text];
    case 'literal':
      return values.map(() => step.value);
    case 'identifier':
      return null;
  }
}

function each<T>(values: readonly T[], work: (value: T) => Values): Values {
  const all: JsonValue[] = [];
  for (const value of values) {
    const found = work(value);
    if (found === null) return null;
    all.push(...found);
  }
  return all;
}

function member(value: JsonValue, name: string): readonly JsonValue[] {
  return isObject(value) && Object.hasOwn(value, name) ? [value[name] ?? null] : [];
}

function inner(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value).filter((one) => one !== undefined) : [];
}

/** All that has something in it, each before what is in it. */
function descend(values: readonly JsonValue[]): Values {
  const found: JsonValue[] = [];
  const visit = (value: JsonValue): void => {
    const parts = inner(value);
    if (parts.length === 0 || --valuesLeft < 0) return;
    found.push(value);
    parts.forEach(visit);
  };
  values.forEach(visit);
  return valuesLeft < 0 ? null : found;
}

function sliced({ from, to, isOne, step }: Slice, value: JsonValue): Values {
  if (!Array.isArray(value)) return null;
  const size = value.length;
  const start = from === null ? 0 : from < 0 ? from + size : from;
  const given = isOne ? (from ?? 0) + 1 : (to ?? size);
  const end = given < 0 || (given === 0 && isOne) ? given + size : given;
  if (start === end) return [];
  if (start < 0 || start >= size || end < 0 || end > size || start > end) return null;
  if (step !== null && step <= 0) return null;
  return value.slice(start, end).filter((_, index) => index % (step ?? 1) === 0);
}

function filtered({ left, operator, right }: Step & { kind: 'filter' }, value: JsonValue): Values {
  if (!Array.isArray(value)) return null;
  return each(value, (one) => {
    const lefts = follow(left, [one]);
    if (operator === 'exists') return lefts !== null && lefts.length > 0 ? [one] : [];
    if (lefts === null || lefts.length > 1) return null;
    if (lefts.length === 0) return [];
    const rights = follow(right, [one]);
    if (rights === null || rights.length > 1) return null;
    if (rights.length === 0) return [];
    const passes = compare(operator, lefts[0] ?? null, rights[0] ?? null);
    return passes === null ? null : passes ? [one] : [];
  });
}

/** As Go's templates compare: numbers with numbers of their kind, texts, and truth for sameness. */
function compare(operator: Operator, one: JsonValue, other: JsonValue): boolean | null {
  const kind = kindOf(one);
  if (kind === 'none' || kind !== kindOf(other)) return null;
  if (operator === '==') return one === other;
  if (operator === '!=') return one !== other;
  if (kind === 'boolean') return null;
  switch (operator) {
    case '<':
      return (one ?? 0) < (other ?? 0);
    case '<=':
      return (one ?? 0) <= (other ?? 0);
    case '>':
      return (one ?? 0) > (other ?? 0);
    case '>=':
      return (one ?? 0) >= (other ?? 0);
    case 'exists':
    case 'unknown':
      return null;
  }
}

function kindOf(value: JsonValue): 'string' | 'boolean' | 'whole' | 'float' | 'none' {
  if (isNumber(value)) return isGoInt(value) ? 'whole' : 'float';
  if (typeof value === 'string') return 'string';
  return typeof value === 'boolean' ? 'boolean' : 'none';
}
