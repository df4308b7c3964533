/**
 * What expressions of jq are made of. A node tells its values one by one to `emit`, so that what
 * nobody waits for is never worked out. With each value goes the path that leads to it, where
 * somebody asks for paths: `null` where nobody does, `NO_PATH` for what was computed.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { cutOut, indexed, isTruthy, iterated, operate, shown } from './jq-values.ts';

/** Values that one expression may give on its way. */
const VALUES_MAX = 1_000_000;

export type Path = readonly JsonValue[];
export type Emit = (value: JsonValue, path: Path | null) => void;
export type Node = (input: JsonValue, path: Path | null, scope: Scope | null, emit: Emit) => void;

/** The names that are known somewhere, the newest first. */
export interface Scope {
  /** `$x`, `f/1` or `*label`. */
  readonly name: string;
  readonly value: JsonValue;
  /** Of functions: what they do, and where their own names are looked up. */
  readonly body: Node | null;
  readonly params: readonly string[] | null;
  readonly home: Scope | null;
  readonly next: Scope | null;
}

/** Ends what stands after a label. */
export class Break extends Error {
  readonly label: Scope;

  constructor(label: Scope) {
    super('break');
    this.label = label;
  }
}

/** What went wrong behind a `try`, which is not for it. */
class Passed extends Error {
  readonly inner: unknown;

  constructor(inner: unknown) {
    super('passed');
    this.inner = inner;
  }
}

export const NO_PATH: Path = Object.freeze([]);

let left = VALUES_MAX;

/** An expression begins: it may give so many values. */
export function refill(): void {
  left = VALUES_MAX;
}

/** One more value; throws a JqError where there were too many. */
export function spend(): void {
  if (left-- <= 0) throw new JqError(`more than ${VALUES_MAX} values`);
}

/** The path of what is computed from something. */
export function off(path: Path | null): Path | null {
  return path === null ? null : NO_PATH;
}

export function beyond(path: Path | null, key: JsonValue, value: JsonValue): Path | null {
  if (path === null) return null;
  if (path === NO_PATH) throw new JqError(`invalid path against: ${shown(value)}`);
  return [...path, key];
}

export function find(scope: Scope | null, name: string): Scope | null {
  let at = scope;
  while (at !== null && at.name !== name) at = at.next;
  return at;
}

export function withValue(next: Scope | null, name: string, value: JsonValue): Scope {
  return { name, value, body: null, params: null, home: null, next };
}

/** All values of a node, no paths. */
export function valuesOf(node: Node, input: JsonValue, scope: Scope | null): JsonValue[] {
  const values: JsonValue[] = [];
  node(input, null, scope, (value) => {
    spend();
    values.push(value);
  });
  return values;
}

/** Up to the first value that `take` says false to. */
export function someOf(
  node: Node,
  from: { readonly input: JsonValue; readonly path: Path | null; readonly scope: Scope | null },
  take: (value: JsonValue, path: Path | null) => boolean,
): void {
  const end = new Break(withValue(null, '*end', null));
  try {
    node(from.input, from.path, from.scope, (value, path) => {
      if (!take(value, path)) throw end;
    });
  } catch (error) {
    if (error !== end) throw error;
  }
}

export const self: Node = (input, path, _scope, emit) => emit(input, path);

export function constant(value: JsonValue): Node {
  return (_input, path, _scope, emit) => emit(value, off(path));
}

export function piped(first: Node, second: Node): Node {
  return (input, path, scope, emit) =>
    first(input, path, scope, (value, found) => {
      spend();
      second(value, found, scope, emit);
    });
}

export function both(first: Node, second: Node): Node {
  return (input, path, scope, emit) => {
    first(input, path, scope, emit);
    second(input, path, scope, emit);
  };
}

/** `of[key]`, for each key that `key` gives for the same input. */
export function through(of: Node, key: Node): Node {
  return (input, path, scope, emit) =>
    key(input, null, scope, (name) =>
      of(input, path, scope, (value, found) =>
        emit(indexed(value, name), beyond(found, name, value)),
      ),
    );
}

export function sliced(of: Node, from: Node, to: Node): Node {
  return (input, path, scope, emit) =>
    to(input, null, scope, (end) =>
      from(input, null, scope, (start) =>
        of(input, path, scope, (value, found) =>
          emit(cutOut(value, start, end), beyond(found, { start, end }, value)),
        ),
      ),
    );
}

export function each(of: Node): Node {
  return (input, path, scope, emit) =>
    of(input, path, scope, (value, found) => emitMembers(value, found, emit));
}

export function emitMembers(value: JsonValue, path: Path | null, emit: Emit): void {
  if (path === null) {
    for (const member of iterated(value)) {
      spend();
      emit(member, null);
    }
  } else if (isObject(value)) {
    for (const name of Object.keys(value).toSorted()) {
      emit(value[name] ?? null, beyond(path, name, value));
    }
  } else {
    for (const [at, member] of iterated(value).entries()) emit(member, beyond(path, at, value));
  }
}

/** `a // b`: the values of `a` that are true, or `b` if there is none. */
export function alternative(first: Node, second: Node): Node {
  return (input, path, scope, emit) => {
    let isFound = false;
    first(input, path, scope, (value, found) => {
      if (!isTruthy(value)) return;
      isFound = true;
      emit(value, found);
    });
    if (!isFound) second(input, path, scope, emit);
  };
}

export function joined(operator: string, first: Node, second: Node): Node {
  if (operator === 'and' || operator === 'or') {
    const decides = operator === 'or';
    return (input, path, scope, emit) =>
      first(input, null, scope, (value) => {
        if (isTruthy(value) === decides) return emit(decides, off(path));
        second(input, null, scope, (other) => emit(isTruthy(other), off(path)));
      });
  }
  return (input, path, scope, emit) =>
    second(input, null, scope, (right) =>
      first(input, null, scope, (value) => emit(operate(operator, value, right), off(path))),
    );
}

export function condition(test: Node, yes: Node, no: Node): Node {
  return (input, path, scope, emit) =>
    test(input, null, scope, (value) => (isTruthy(value) ? yes : no)(input, path, scope, emit));
}

/** Errors of the body alone are caught, not those of what is done with its values. */
export function attempted(body: Node, handler: Node | null): Node {
  return (input, path, scope, emit) => {
    try {
      body(input, path, scope, (value, found) => {
        try {
          emit(value, found);
        } catch (error) {
          throw new Passed(error);
        }
      });
    } catch (error) {
      if (error instanceof Passed) throw error.inner;
      if (!(error instanceof JqError)) throw error;
      handler?.(error.value, off(path), scope, emit);
    }
  };
}

export function listed(items: Node): Node {
  return (input, path, scope, emit) => emit(valuesOf(items, input, scope), off(path));
}

export type Member = readonly [name: Node, value: Node];

export function constructed(members: readonly Member[]): Node {
  return (input, path, scope, emit) => {
    const add = (at: number, made: JsonObject): void => {
      const member = members[at];
      if (member === undefined) return emit(made, off(path));
      const [name, of] = member;
      name(input, null, scope, (key) => {
        if (typeof key !== 'string') {
          throw new JqError(`expected a string for object key but got: ${shown(key)}`);
        }
        of(input, null, scope, (value) => {
          spend();
          add(at + 1, { ...made, [key]: value });
        });
      });
    };
    add(0, {});
  };
}

/** Texts and what stands between them, as `show` writes it. */
export function interpolated(pieces: readonly Node[], show: (value: JsonValue) => string): Node {
  return (input, path, scope, emit) => {
    const add = (at: number, text: string): void => {
      const piece = pieces[at];
      if (piece === undefined) return emit(text, off(path));
      piece(input, null, scope, (value) => {
        spend();
        add(at + 1, text + (at % 2 === 0 && typeof value === 'string' ? value : show(value)));
      });
    };
    add(0, '');
  };
}

export function labelled(name: string, body: Node): Node {
  return (input, path, scope, emit) => {
    const label = withValue(scope, name, null);
    try {
      body(input, path, label, emit);
    } catch (error) {
      if (!(error instanceof Break) || error.label !== label) throw error;
    }
  };
}

/** A function's name with its closures, where it is known. */
export function defined(
  { name, params, body }: { name: string; params: readonly string[]; body: Node },
  rest: Node,
): Node {
  return (input, path, scope, emit) =>
    rest(input, path, { name, value: null, body, params, home: null, next: scope }, emit);
}

/** A call of a function that the expression defines, or of an argument of one. */
export function called(name: string, args: readonly Node[]): Node {
  return (input, path, scope, emit) => {
    const found = find(scope, name);
    const body = found?.body;
    if (found === null || body === null || body === undefined) {
      throw new JqError(`function not defined: ${name}`);
    }
    spend();
    if (found.params === null) return body(input, path, found.home, emit);
    let inner: Scope = found;
    const values: [string, Node][] = [];
    for (const [at, param] of found.params.entries()) {
      const arg = args[at] ?? self;
      if (param.startsWith('$')) values.push([param, arg]);
      const own = param.startsWith('$') ? param.slice(1) : param;
      inner = { name: `${own}/0`, value: null, body: arg, params: null, home: scope, next: inner };
    }
    const bind = (at: number, bound: Scope): void => {
      const [param, arg] = values[at] ?? [];
      if (param === undefined || arg === undefined) return body(input, path, bound, emit);
      arg(input, null, scope, (value) => bind(at + 1, withValue(bound, param, value)));
    };
    bind(0, inner);
  };
}
