/** Macros: calls that are written out as comprehensions and tests before anything is checked. */
import { ownMember } from '@megaplane/base/members';
import type { Expr, Issue } from './syntax.ts';

/** No variable of an expression can have this name. */
export const RESULT = '@result';

type Expanded = Expr | Issue;

function constant(at: number, value: boolean | bigint): Expr {
  return { kind: 'constant', at, value };
}

function name(at: number, text: string): Expr {
  return { kind: 'identifier', at, name: text };
}

function call(at: number, text: string, ...args: readonly Expr[]): Expr {
  return { kind: 'call', at, name: text, target: null, args };
}

function list(at: number, ...items: readonly Expr[]): Expr {
  return { kind: 'list', at, items, optional: [] };
}

function nameOf(expr: Expr | undefined): string | null {
  return expr?.kind === 'identifier' && !expr.name.startsWith('.') ? expr.name : null;
}

const BAD_VARIABLE = 'argument must be a simple name';
const OVERWRITES = 'iteration variable overwrites accumulator variable';

/** `has(a.b)`, or null for a call that is no macro. */
export function expandGlobal(text: string, args: readonly Expr[], at: number): Expanded | null {
  if (text !== 'has' || args.length !== 1) return null;
  const [field] = args;
  if (field?.kind === 'selection' && !field.isTest && !field.isOptional) {
    return { ...field, at, isTest: true };
  }
  return { at: field?.at ?? at, message: 'invalid argument to has() macro' };
}

interface Loop {
  readonly at: number;
  readonly range: Expr;
  readonly first: string;
  readonly second: string;
}

/** Macros that are written like methods; null for a call that is none. `canBind`: `cel.bind`. */
export function expandMember(
  text: string,
  target: Expr,
  args: readonly Expr[],
  at: number,
  canBind: boolean,
): Expanded | null {
  if (canBind && text === 'bind' && nameOf(target) === 'cel' && args.length === 3) {
    return bind(args, at);
  }
  if (text === 'sortBy' && args.length === 2) return sortBy(target, args, at);
  if ((text === 'optMap' || text === 'optFlatMap') && args.length === 2) {
    return optionalMap(text, target, args, at);
  }
  const one = ownMember(ONE_VARIABLE, text)?.[args.length];
  const two = ownMember(TWO_VARIABLES, text)?.[args.length];
  if (one === undefined && two === undefined) return null;
  const first = nameOf(args[0]);
  if (first === null) return { at: args[0]?.at ?? at, message: BAD_VARIABLE };
  if (first === RESULT || first === '__result__') {
    return { at: args[0]?.at ?? at, message: OVERWRITES };
  }
  if (one !== undefined) {
    const loop: Loop = { at, range: target, first, second: '' };
    return one(loop, args.slice(1));
  }
  const second = nameOf(args[1]);
  if (second === null) return { at: args[1]?.at ?? at, message: BAD_VARIABLE };
  if (first === second) {
    return { at: args[1]?.at ?? at, message: `duplicate variable name: ${first}` };
  }
  return two === undefined ? null : two({ at, range: target, first, second }, args.slice(2));
}

type Maker = (loop: Loop, args: readonly Expr[]) => Expr;

function all(loop: Loop, [test = constant(0, true)]: readonly Expr[]): Expr {
  const { at } = loop;
  return {
    kind: 'fold',
    ...loop,
    accumulator: RESULT,
    init: constant(at, true),
    condition: call(at, '@not_strictly_false', name(at, RESULT)),
    step: call(at, '_&&_', name(at, RESULT), test),
    result: name(at, RESULT),
  };
}

function exists(loop: Loop, [test = constant(0, true)]: readonly Expr[]): Expr {
  const { at } = loop;
  return {
    kind: 'fold',
    ...loop,
    accumulator: RESULT,
    init: constant(at, false),
    condition: call(at, '@not_strictly_false', call(at, '!_', name(at, RESULT))),
    step: call(at, '_||_', name(at, RESULT), test),
    result: name(at, RESULT),
  };
}

function existsOne(loop: Loop, [test = constant(0, true)]: readonly Expr[]): Expr {
  const { at } = loop;
  const count = call(at, '_+_', name(at, RESULT), constant(at, 1n));
  return {
    kind: 'fold',
    ...loop,
    accumulator: RESULT,
    init: constant(at, 0n),
    condition: constant(at, true),
    step: call(at, '_?_:_', test, count, name(at, RESULT)),
    result: call(at, '_==_', name(at, RESULT), constant(at, 1n)),
  };
}

function collect(loop: Loop, item: Expr, test: Expr | null): Expr {
  const { at } = loop;
  const grown = call(at, '_+_', name(at, RESULT), list(at, item));
  return {
    kind: 'fold',
    ...loop,
    accumulator: RESULT,
    init: list(at),
    condition: constant(at, true),
    step: test === null ? grown : call(at, '_?_:_', test, grown, name(at, RESULT)),
    result: name(at, RESULT),
  };
}

function collectMap(loop: Loop, inserted: readonly Expr[], test: Expr | null): Expr {
  const { at } = loop;
  const grown = call(at, 'cel.@mapInsert', name(at, RESULT), ...inserted);
  return {
    kind: 'fold',
    ...loop,
    accumulator: RESULT,
    init: { kind: 'map', at, entries: [] },
    condition: constant(at, true),
    step: test === null ? grown : call(at, '_?_:_', test, grown, name(at, RESULT)),
    result: name(at, RESULT),
  };
}

const map: Maker = (loop, args) => {
  const [first = constant(0, true), second] = args;
  return second === undefined ? collect(loop, first, null) : collect(loop, second, first);
};
const filter: Maker = (loop, [test = constant(0, true)]) =>
  collect(loop, name(loop.at, loop.first), test);

const transformMap: Maker = (loop, args) => {
  const [first = constant(0, true), second] = args;
  const key = name(loop.at, loop.first);
  return second === undefined
    ? collectMap(loop, [key, first], null)
    : collectMap(loop, [key, second], first);
};
const transformEntry: Maker = (loop, args) => {
  const [first = constant(0, true), second] = args;
  return second === undefined ? collectMap(loop, [first], null) : collectMap(loop, [second], first);
};

type Makers = Readonly<Record<string, Readonly<Record<number, Maker>>>>;

/** By name and number of arguments. */
const ONE_VARIABLE: Makers = {
  all: { 2: all },
  exists: { 2: exists },
  exists_one: { 2: existsOne },
  map: { 2: map, 3: map },
  filter: { 2: filter },
};
const TWO_VARIABLES: Makers = {
  all: { 3: all },
  exists: { 3: exists },
  exists_one: { 3: existsOne },
  existsOne: { 3: existsOne },
  transformList: { 3: map, 4: map },
  transformMap: { 3: transformMap, 4: transformMap },
  transformMapEntry: { 3: transformEntry, 4: transformEntry },
};

/** `cel.bind(x, value, body)`: a comprehension over nothing whose accumulator is `x`. */
function bound(at: number, variable: string, value: Expr, body: Expr): Expr {
  return {
    kind: 'fold',
    at,
    range: list(at),
    first: '#unused',
    second: '',
    accumulator: variable,
    init: value,
    condition: constant(at, false),
    step: name(at, variable),
    result: body,
  };
}

function bind(args: readonly Expr[], at: number): Expanded {
  const [variable, value, body] = args;
  const text = nameOf(variable);
  if (text === null || value === undefined || body === undefined) {
    return {
      at: variable?.at ?? at,
      message: 'cel.bind() variable names must be simple identifiers',
    };
  }
  return bound(at, text, value, body);
}

const SORTABLE: ReadonlySet<string> = new Set(['list', 'selection', 'identifier', 'fold', 'call']);

/** `target.sortBy(x, key)`: the target is evaluated once, and its members' keys are listed. */
function sortBy(target: Expr, args: readonly Expr[], at: number): Expanded {
  const input = '@__sortBy_input__';
  if (!SORTABLE.has(target.kind)) {
    return {
      at: target.at,
      message:
        'sortBy can only be applied to a list, identifier, comprehension, ' +
        'call or select expression',
    };
  }
  const [variable, key] = args;
  const first = nameOf(variable);
  if (first === null || key === undefined) {
    return { at: variable?.at ?? at, message: 'argument is not an identifier' };
  }
  if (first === RESULT || first === '__result__') {
    return { at: variable?.at ?? at, message: OVERWRITES };
  }
  const keys = collect({ at, range: name(at, input), first, second: '' }, key, null);
  const sorted: Expr = {
    kind: 'call',
    at,
    name: '@sortByAssociatedKeys',
    target: name(at, input),
    args: [keys],
  };
  return bound(at, input, target, sorted);
}

function optionalMap(text: string, target: Expr, args: readonly Expr[], at: number): Expanded {
  const [variable, body] = args;
  const own = nameOf(variable);
  if (own === null || body === undefined) {
    return {
      at: variable?.at ?? at,
      message: `${text}() variable name must be a simple identifier`,
    };
  }
  const method = (field: string): Expr => ({ kind: 'call', at, name: field, target, args: [] });
  const inner = bound(at, own, method('value'), body);
  const found = text === 'optMap' ? call(at, 'optional.of', inner) : inner;
  return call(at, '_?_:_', method('hasValue'), found, call(at, 'optional.none'));
}
