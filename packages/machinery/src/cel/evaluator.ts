/** Expressions as closures over a frame that holds variables and counts the cost up to a limit. */
import { ownMember } from '@megaplane/base/members';
import { isOfType, type Overload } from './values/functions.ts';
import {
  hasMembers,
  NO_OVERLOAD,
  noMember,
  noOverload,
  notIterable,
} from './values/overload-errors.ts';
import { compilePattern } from './library/regex-library.ts';
import {
  callCostOf,
  needsResult,
  LIST_COST,
  MAP_COST,
  STRUCT_COST,
  type CallCost,
} from './cost/runtime-cost.ts';
import type {
  CallExpr,
  Expr,
  Fold,
  ListExpr,
  MapExpr,
  Selection,
  StructExpr,
} from './syntax/syntax.ts';
import {
  alternative,
  based,
  branch,
  conditional,
  constantMembership,
  isBinding,
  lazy,
  logical,
  OVER_BUDGET,
  UNSET,
  type Frame,
  type Step,
} from './steps.ts';
import { DYN } from './values/typing.ts';
import {
  ArrayList,
  CelError,
  CelList,
  CelMap,
  CelObject,
  Duration,
  EntryMap,
  Optional,
  TypeValue,
  typeNameOf,
  Uint,
  type CelValue,
} from './values/values.ts';
import type { Checked, Environment, StructType } from './syntax/environment.ts';

/** A step, or what a constant part of the expression fails with. */
export type CompiledTree =
  | { readonly step: Step; readonly failure: null }
  | { readonly step: null; readonly failure: string };

/** Compiles a checked tree; what is constant in it is evaluated here, as upstream does. */
export function compileTree(expr: Expr, checked: Checked, environment: Environment): CompiledTree {
  const compiler = new Compiler(checked, environment);
  const step = compiler.compile(expr);
  const { failure } = compiler;
  return failure === null ? { step, failure } : { step: null, failure };
}

/** Functions that are evaluated once where their argument is a constant. */
const CONVERSIONS: ReadonlySet<string> = new Set(
  'bool bytes double duration dyn int string timestamp type uint'.split(' '),
);

interface Variable {
  readonly name: string;
  readonly slot: number;
  /** How a bound name gets its value; null: the loop gives it. */
  readonly init: Step | null;
}

const NO_VARIABLE: Variable = { name: '', slot: 0, init: null };
class Compiler {
  readonly #checked: Checked;
  readonly #environment: Environment;
  readonly #scope: Variable[] = [];
  #slots = 0;
  /** Why no program can be made of the expression. */
  failure: string | null = null;

  constructor(checked: Checked, environment: Environment) {
    this.#checked = checked;
    this.#environment = environment;
  }

  compile(expr: Expr): Step {
    const folded = this.#folded(expr);
    if (folded !== undefined) return () => folded;
    switch (expr.kind) {
      case 'constant':
        return () => expr.value;
      case 'identifier':
        return this.#name(expr, expr.name);
      case 'selection':
        return this.#selection(expr);
      case 'call':
        return this.#call(expr);
      case 'list':
        return this.#list(expr);
      case 'map':
        return this.#map(expr);
      case 'struct':
        return this.#struct(expr);
      case 'fold':
        return this.#fold(expr);
    }
  }

  #name(expr: Expr, text: string): Step {
    const known = this.#checked.names.get(expr);
    if (known === undefined) {
      const { slot, init } = this.#scope.findLast((one) => one.name === text) ?? NO_VARIABLE;
      if (init !== null) return lazy(slot, init);
      return (frame) => {
        frame.cost++;
        return frame.slots[slot] ?? null;
      };
    }
    if (!this.#environment.variables.has(known)) {
      const value = new TypeValue(known);
      return () => value;
    }
    const missing = new CelError(`no such attribute(s): ${known}`);
    return (frame) => {
      frame.cost++;
      return (
        ownMember(frame.bindings, known) ??
        (ownMember(frame.bindings, known) === null ? null : missing)
      );
    };
  }

  #selection(expr: Selection): Step {
    const name = this.#checked.names.get(expr);
    if (name !== undefined) return this.#name(expr, name);
    const operand = based(this.compile(expr.operand), expr.operand);
    const { field } = expr;
    if (expr.isTest) {
      return (frame) => {
        const value = operand(frame);
        if (value instanceof CelError) return value;
        if (value instanceof Optional) {
          return value.value !== undefined && isPresent(value.value, field);
        }
        return isPresent(value, field);
      };
    }
    const isWanted = expr.isOptional;
    return (frame) => {
      const value = operand(frame);
      frame.cost++;
      if (value instanceof CelError) return value;
      if (isWanted || value instanceof Optional) {
        const found = selectOptional(value, field);
        // what is not there is not stepped to
        if (found === NOTHING) frame.cost--;
        return found;
      }
      return selectField(value, field);
    };
  }

  #call(expr: CallExpr): Step {
    const isGlobal = this.#checked.isGlobal.has(expr);
    const exprs = expr.target === null || isGlobal ? expr.args : [expr.target, ...expr.args];
    const args = exprs.map((arg) => this.compile(arg));
    if (expr.name === '_[_]' && args[0] !== undefined) args[0] = based(args[0], exprs[0]);
    const [first, second, third] = args;
    if (first !== undefined && second !== undefined) {
      if (expr.name === '_&&_') return logical(first, second, false);
      if (expr.name === '_||_') return logical(first, second, true);
      if (expr.name === '_?_:_' && third !== undefined) {
        return conditional(first, branch(second, exprs[1]), branch(third, exprs[2]));
      }
      const set =
        expr.name === '@in' && exprs[1] !== undefined ? this.#folded(exprs[1]) : undefined;
      if (set instanceof ArrayList) {
        const member = constantMembership(first, set);
        if (member !== null) return member;
      }
      if (expr.name === 'or') return alternative(first, second, false);
      if (expr.name === 'orValue') return alternative(first, second, true);
      if (expr.name === 'find' || expr.name === 'findAll') this.#checkPattern(exprs[1]);
    }
    const overloads = this.#checked.calls.get(expr) ?? [];
    const isExact = overloads.length === 1 && exprs.every((arg) => this.#isExact(arg));
    const [only] = overloads;
    return isExact && only !== undefined ? direct(only, args) : dispatch(overloads, args);
  }

  /** The value of a part that needs no variable and is made once; undefined: it is none. */
  #folded(expr: Expr): CelValue | undefined {
    switch (expr.kind) {
      case 'constant':
        return expr.value;
      case 'list': {
        const items = expr.items.map((item) => this.#folded(item));
        const isWhole = expr.optional.length === 0 && items.every((item) => item !== undefined);
        return isWhole ? new ArrayList(items.map((item) => item ?? null)) : undefined;
      }
      case 'map':
        return this.#foldedMap(expr);
      case 'call':
        return this.#converted(expr);
      case 'fold':
      case 'struct':
        return undefined;
      case 'identifier':
      case 'selection': {
        const name = this.#checked.names.get(expr);
        const isType = name !== undefined && !this.#environment.variables.has(name);
        return isType ? new TypeValue(name) : undefined;
      }
    }
  }

  #foldedMap({ entries }: MapExpr): CelValue | undefined {
    const map = new EntryMap();
    for (const { key, value, isOptional } of entries) {
      const name = this.#folded(key);
      const member = this.#folded(value);
      if (isOptional || name === undefined || member === undefined) return undefined;
      if (typeof name === 'number' || !map.set(name, member)) return undefined;
    }
    return map;
  }

  /** Conversions of constants; one that fails makes the whole expression useless. */
  #converted({ name, target, args: [only, ...more] }: CallExpr): CelValue | undefined {
    if (target !== null || only === undefined || more.length > 0) return undefined;
    if (!CONVERSIONS.has(name)) return undefined;
    const value = this.#folded(only);
    if (value === undefined) return undefined;
    const overloads = this.#environment.functions.get(name) ?? [];
    const fitting = overloads.find(({ params: [param] }) => isOfType(value, param ?? DYN));
    const result = fitting === undefined ? noOverload(name, [value]) : fitting.apply(value);
    if (result instanceof CelError) this.failure ??= result.message;
    return result;
  }

  #checkPattern(pattern: Expr | undefined): void {
    const text = pattern === undefined ? undefined : this.#folded(pattern);
    if (typeof text !== 'string') return;
    const compiled = compilePattern(text);
    if (!compiled.ok) this.failure ??= compiled.message;
  }

  /** True where a value cannot be of another type than the checker says. */
  #isExact(expr: Expr): boolean {
    const kind = this.#checked.types.get(expr)?.kind;
    // times that upstream declares for a namespace are texts in what it gives
    if (kind === 'timestamp' && expr.kind === 'selection') return false;
    return kind !== undefined && kind !== 'dyn' && kind !== 'param' && kind !== 'object';
  }

  #list(expr: ListExpr): Step {
    const items = expr.items.map((item) => this.compile(item));
    const optional = new Set(expr.optional);
    return (frame) => {
      const values: CelValue[] = [];
      for (const [index, item] of items.entries()) {
        let value = item(frame);
        if (value instanceof CelError) return value;
        if (optional.has(index)) {
          if (!(value instanceof Optional)) return NO_OVERLOAD;
          if (value.value === undefined) continue;
          value = value.value;
        }
        values.push(value);
      }
      frame.cost += LIST_COST;
      return new ArrayList(values);
    };
  }

  #map(expr: MapExpr): Step {
    const entries = expr.entries.map(({ key, value, isOptional }) => ({
      key: this.compile(key),
      value: this.compile(value),
      isOptional,
    }));
    return (frame) => {
      const map = new EntryMap();
      for (const entry of entries) {
        const key = entry.key(frame);
        if (key instanceof CelError) return key;
        let value = entry.value(frame);
        if (value instanceof CelError) return value;
        if (entry.isOptional) {
          if (!(value instanceof Optional)) return NO_OVERLOAD;
          if (value.value === undefined) continue;
          value = value.value;
        }
        if (typeof key === 'number' || !map.set(key, value)) {
          return new CelError(`unsupported key type: ${typeNameOf(key)}`);
        }
      }
      frame.cost += MAP_COST;
      return map;
    };
  }

  #struct(expr: StructExpr): Step {
    const name = expr.name.startsWith('.') ? expr.name.slice(1) : expr.name;
    const type: StructType | undefined = this.#environment.structs(name);
    const fields = expr.fields.map((field) => ({ ...field, step: this.compile(field.value) }));
    return (frame) => {
      const values = new Map<string, CelValue>();
      for (const { name: field, step, isOptional } of fields) {
        let value = step(frame);
        if (value instanceof CelError) return value;
        if (isOptional) {
          if (!(value instanceof Optional)) return NO_OVERLOAD;
          if (value.value === undefined) continue;
          value = value.value;
        }
        values.set(field, value);
      }
      frame.cost += STRUCT_COST;
      return type === undefined ? NO_OVERLOAD : type.make(values);
    };
  }

  #fold(expr: Fold): Step {
    if (isBinding(expr)) return this.#binding(expr);
    const range = this.compile(expr.range);
    const init = this.#start(expr.init);
    const accumulator = this.#enter(expr.accumulator);
    const first = this.#enter(expr.first);
    const second = expr.second === '' ? -1 : this.#enter(expr.second);
    const condition = this.compile(expr.condition);
    const step = this.#growth(expr, accumulator) ?? this.compile(expr.step);
    this.#scope.length -= expr.second === '' ? 1 : 2;
    const result = this.compile(expr.result);
    this.#scope.pop();
    const isConstantTrue = expr.condition.kind === 'constant' && expr.condition.value === true;
    return (frame) => {
      const over = range(frame);
      if (over instanceof CelError) return over;
      const keys = over instanceof CelMap ? over.keys() : null;
      if (keys === null && !(over instanceof CelList)) return notIterable(over, second >= 0);
      const { slots } = frame;
      slots[accumulator] = init(frame);
      const length = keys === null && over instanceof CelList ? over.length : (keys?.length ?? 0);
      for (let index = 0; index < length; index++) {
        const member = keys === null ? (over as CelList).at(index) : (keys[index] ?? null);
        slots[first] = second >= 0 && keys === null ? BigInt(index) : member;
        if (second >= 0) {
          slots[second] = keys === null ? member : ((over as CelMap).get(member) ?? null);
        }
        if (!isConstantTrue && condition(frame) !== true) break;
        slots[accumulator] = step(frame);
        if (frame.cost > frame.costMax) return OVER_BUDGET;
      }
      return result(frame);
    };
  }

  /** What a loop begins with; a list or map that it grows is its own each time. */
  #start(init: Expr): Step {
    if (init.kind === 'list' && init.items.length === 0) return () => new ArrayList([]);
    if (init.kind === 'map' && init.entries.length === 0) return () => new EntryMap();
    return this.compile(init);
  }

  /** A name for a value, which is evaluated when it is first asked for. */
  #binding(expr: Fold): Step {
    const slot = this.#enter(expr.accumulator, this.compile(expr.init));
    const result = this.compile(expr.result);
    this.#scope.pop();
    return (frame) => {
      frame.slots[slot] = UNSET;
      return result(frame);
    };
  }

  #enter(name: string, init: Step | null = null): number {
    const slot = this.#slots++;
    this.#scope.push({ name, slot, init });
    return slot;
  }

  /**
   * Steps that put one more into a list or map of their own do so in place: a copy for each member
   * would cost the square of their number. The cost that is counted is that of the written step.
   */
  #growth(expr: Fold, slot: number): Step | null {
    const isNew =
      (expr.init.kind === 'list' && expr.init.items.length === 0) ||
      (expr.init.kind === 'map' && expr.init.entries.length === 0);
    if (!isNew || expr.step.kind !== 'call') return null;
    if (expr.step.name !== '_?_:_') return this.#grow(expr.step, slot);
    const [test, grown] = expr.step.args;
    if (test === undefined || grown?.kind !== 'call') return null;
    const grow = this.#grow(grown, slot);
    if (grow === null) return null;
    return conditional(this.compile(test), grow, (frame) => frame.slots[slot] ?? null);
  }

  #grow({ name, args }: CallExpr, slot: number): Step | null {
    const [, second, third] = args;
    if (name === '_+_' && second?.kind === 'list' && second.items[0] !== undefined) {
      const item = this.compile(second.items[0]);
      const cost = this.#folded(second) === undefined ? LIST_COST + 2 : 2;
      return (frame) => {
        const list = frame.slots[slot] ?? null;
        const value = item(frame);
        frame.cost += cost;
        if (value instanceof CelError) return value;
        if (!(list instanceof ArrayList)) return list;
        list.items.push(value);
        return list;
      };
    }
    if (name !== 'cel.@mapInsert' || second === undefined) return null;
    const steps = [second, third].flatMap((one) => (one === undefined ? [] : [this.compile(one)]));
    return (frame) => {
      const map = frame.slots[slot] ?? null;
      const values = steps.map((step) => step(frame));
      frame.cost += 2;
      return map instanceof EntryMap ? insert(map, values) : map;
    };
  }
}

function insert(map: EntryMap, values: readonly CelValue[]): CelValue {
  const failure = values.find((value) => value instanceof CelError);
  if (failure !== undefined) return failure;
  const [first = null, second] = values;
  const entries: [CelValue, CelValue][] =
    second === undefined && first instanceof CelMap
      ? first.keys().map((key) => [key, first.get(key) ?? null])
      : [[first, second ?? null]];
  for (const [key, value] of entries) {
    if (map.get(key) !== undefined)
      return new CelError(`insert failed: key ${printed(key)} already exists`);
    if (!map.set(key, value)) return new CelError(`unsupported key type: ${typeNameOf(key)}`);
  }
  return map;
}

function isLenient({ id }: Overload): boolean {
  return id === 'not_strictly_false';
}

/** null passes the checker where times, spans and opaque values are taken, and no call. */
const NULL_PASSES: ReadonlySet<string> = new Set(['timestamp', 'duration', 'opaque']);

function guarded({ name, params, apply }: Overload): Overload['apply'] {
  const taken = params.map(({ kind }) => NULL_PASSES.has(kind));
  if (!taken.includes(true)) return apply;
  return (...values) =>
    values.some((value, at) => value === null && taken[at] === true)
      ? noOverload(name, values)
      : apply(...values);
}

function direct(overload: Overload, args: readonly Step[]): Step {
  const apply = guarded(overload);
  const cost: CallCost | null = callCostOf(overload);
  const isCostFirst = cost !== null && !needsResult(cost);
  const [first, second] = args;
  if (isLenient(overload) && first !== undefined) {
    return (frame) => {
      frame.cost++;
      return first(frame) !== false;
    };
  }
  if (args.length === 2 && first !== undefined && second !== undefined) {
    return (frame) => {
      const left = first(frame);
      const right = second(frame);
      if (isCostFirst && cost !== null) {
        // nobody does what cannot be paid for
        frame.cost += cost([left, right], null);
        if (frame.cost > frame.costMax) return OVER_BUDGET;
      }
      const failed = left instanceof CelError ? left : right;
      const result = failed instanceof CelError ? failed : apply(left, right);
      if (isCostFirst) return result;
      frame.cost += cost === null ? 1 : cost([left, right], result);
      return frame.cost > frame.costMax ? OVER_BUDGET : result;
    };
  }
  return (frame) => {
    const values = valuesOf(args, frame);
    if (values instanceof CelError) return values;
    if (isCostFirst && cost !== null) {
      frame.cost += cost(values, null);
      if (frame.cost > frame.costMax) return OVER_BUDGET;
    }
    const failed = values.find((value) => value instanceof CelError);
    const result = failed ?? apply(...values);
    if (isCostFirst) return result;
    frame.cost += cost === null ? 1 : cost(values, result);
    return frame.cost > frame.costMax ? OVER_BUDGET : result;
  };
}

/** Arguments, whose last may be an error: the call is then made and paid for, upstream. */
function valuesOf(args: readonly Step[], frame: Frame): CelValue[] | CelError {
  const values: CelValue[] = [];
  for (const arg of args) {
    const value = arg(frame);
    if (value instanceof CelError && args.length > 2 && values.length < args.length - 1) {
      return value;
    }
    values.push(value);
  }
  return values;
}

/** What a call gives that no overload takes. */
function unfitting(name: string, values: readonly CelValue[]): CelValue {
  const [value = null, key = null] = values;
  if (name === '_[_]') return noMember(value, key);
  if (name === '_[?_]') return value instanceof CelList ? noMember(value, key) : NOTHING;
  if (name === '-_' && value instanceof Duration) return new Duration(-value.nanos);
  return noOverload(name, values);
}

/** Chooses the overload by the values, where the types were not known before. */
function dispatch(overloads: readonly Overload[], args: readonly Step[]): Step {
  const [first] = overloads;
  if (first !== undefined && isLenient(first)) return direct(first, args);
  // where several are possible upstream knows the function alone when it counts
  const cost =
    first === undefined ? null : callCostOf(overloads.length > 1 ? { ...first, id: '' } : first);
  const isCostFirst = cost !== null && !needsResult(cost);
  const unfit = (values: readonly CelValue[]): CelValue => unfitting(first?.name ?? '', values);
  return (frame) => {
    const values = valuesOf(args, frame);
    if (values instanceof CelError) return values;
    if (isCostFirst && cost !== null) {
      frame.cost += cost(values, null);
      if (frame.cost > frame.costMax) return OVER_BUDGET;
    }
    const failed = values.find((value) => value instanceof CelError);
    const fitting = overloads.find(({ params }) =>
      params.every((param, at) => isOfType(values[at] ?? null, param)),
    );
    const result = failed ?? (fitting === undefined ? unfit(values) : fitting.apply(...values));
    if (isCostFirst) return result;
    frame.cost += cost === null ? 1 : cost(values, result);
    return frame.cost > frame.costMax ? OVER_BUDGET : result;
  };
}

function isPresent(value: CelValue, field: string): CelValue {
  if (!hasMembers(value)) return value instanceof CelList ? noMember(value, field) : false;
  const member = value instanceof CelMap ? value.get(field) : value.field(field);
  return member instanceof CelError ? member : member !== undefined;
}

function selectField(value: CelValue, field: string): CelValue {
  let member: CelValue | undefined;
  if (value instanceof CelObject) member = value.field(field) ?? value.zero?.(field);
  else if (value instanceof CelMap) member = value.get(field);
  // null is a value; what is not there is none
  return member ?? (member === undefined ? noMember(value, field) : member);
}

function selectOptional(value: CelValue, field: string): CelValue {
  const inner = value instanceof Optional ? value.value : value;
  if (inner === null && value instanceof Optional) return new CelError(`no such key: ${field}`);
  if (inner === undefined || inner === null) return NOTHING;
  if (inner instanceof CelObject) return optional(inner.field(field));
  if (inner instanceof CelMap) return optional(inner.get(field));
  if (inner instanceof CelError) return inner;
  return inner instanceof CelList ? noMember(inner, field) : NOTHING;
}

const NOTHING = new Optional(undefined);

function optional(value: CelValue | undefined): CelValue {
  if (value === undefined) return NOTHING;
  return value instanceof CelError ? value : new Optional(value);
}

function printed(value: CelValue): string {
  if (typeof value === 'string') return value;
  if (value instanceof Uint) return String(value.value);
  const isPlain = typeof value === 'bigint' || typeof value === 'number';
  return isPlain || typeof value === 'boolean' ? String(value) : typeNameOf(value);
}
