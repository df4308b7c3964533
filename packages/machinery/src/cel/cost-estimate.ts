/**
 * What an expression can cost at least and at most, before it runs. Sizes come from literals, from
 * what calls make, and from what the schema says of the values that a path leads to; where nothing
 * is known a size has no bound, and neither has the cost. The rules are those of cel-go's estimator
 * with the additions of Kubernetes; they decide which rules a schema may have, so they stay as they
 * are upstream.
 */
import type { Checked, Environment } from './checker.ts';
import type { Overload } from './functions.ts';
import {
  AUTHORIZER_CHECK_COST,
  LIST_COST,
  MAP_COST,
  REGEX_LENGTH,
  STRUCT_COST,
  TRAVERSAL,
} from './runtime-cost.ts';
import type { CallExpr, Expr, Fold, Selection } from './syntax.ts';
import { DYN, type CelType } from './typing.ts';
import { sizeOf } from './values.ts';

export interface CostRange {
  readonly min: number;
  readonly max: number;
}

const NONE: CostRange = { min: 0, max: 0 };
const ONE: CostRange = { min: 1, max: 1 };
const UNKNOWN: CostRange = { min: 0, max: Infinity };

function fixed(cost: number): CostRange {
  return { min: cost, max: cost };
}

function add(left: CostRange, right: CostRange): CostRange {
  return { min: left.min + right.min, max: left.max + right.max };
}

/** Nothing times anything is nothing, also where the other has no bound. */
function times(left: number, right: number): number {
  return left === 0 || right === 0 ? 0 : left * right;
}

function multiply(left: CostRange, right: CostRange): CostRange {
  return { min: times(left.min, right.min), max: times(left.max, right.max) };
}

function scale({ min, max }: CostRange, factor: number): CostRange {
  return { min: Math.ceil(min * factor), max: Math.ceil(max * factor) };
}

function union(left: CostRange, right: CostRange): CostRange {
  return { min: Math.min(left.min, right.min), max: Math.max(left.max, right.max) };
}

/** What a call costs, and the size of what it gives. */
interface CallEstimate {
  readonly cost: CostRange;
  readonly size?: CostRange;
}

interface Local {
  /** The type by the schema, where the value is a part of the request. */
  readonly declared: CelType | null;
  readonly size: CostRange | null;
  readonly entry: EntrySize | null;
}

interface EntrySize {
  readonly key: CostRange;
  readonly value: CostRange;
}

/** Least and most units of one evaluation. */
export function estimateCost(expr: Expr, checked: Checked, environment: Environment): CostRange {
  return new Estimator(checked, environment).cost(expr);
}

class Estimator {
  readonly #checked: Checked;
  readonly #environment: Environment;
  readonly #declared = new Map<Expr, CelType>();
  readonly #sizes = new Map<Expr, CostRange>();
  readonly #entries = new Map<Expr, EntrySize>();
  readonly #locals = new Map<string, Local[]>();

  constructor(checked: Checked, environment: Environment) {
    this.#checked = checked;
    this.#environment = environment;
  }

  cost(expr: Expr): CostRange {
    switch (expr.kind) {
      case 'constant':
        return NONE;
      case 'identifier':
        return this.#name(expr, expr.name);
      case 'selection':
        return this.#selection(expr);
      case 'call':
        return this.#call(expr);
      case 'list': {
        let sum = fixed(LIST_COST);
        let item: CostRange | null = null;
        for (const one of expr.items) {
          sum = add(sum, this.cost(one));
          item = item === null ? this.#size(one) : union(item, this.#size(one));
        }
        this.#entries.set(expr, { key: ONE, value: item ?? NONE });
        return sum;
      }
      case 'map':
        return this.#map(expr);
      case 'struct':
        return expr.fields.reduce(
          (sum, field) => add(sum, this.cost(field.value)),
          fixed(STRUCT_COST),
        );
      case 'fold':
        return this.#fold(expr);
    }
  }

  #map(expr: Expr & { readonly kind: 'map' }): CostRange {
    let sum = fixed(MAP_COST);
    let key: CostRange | null = null;
    let value: CostRange | null = null;
    for (const entry of expr.entries) {
      sum = add(sum, add(this.cost(entry.key), this.cost(entry.value)));
      key = key === null ? this.#size(entry.key) : union(key, this.#size(entry.key));
      value = value === null ? this.#size(entry.value) : union(value, this.#size(entry.value));
    }
    this.#entries.set(expr, { key: key ?? NONE, value: value ?? NONE });
    return sum;
  }

  #local(expr: Expr): Local | undefined {
    if (expr.kind !== 'identifier' || this.#checked.names.has(expr)) return undefined;
    return this.#locals.get(expr.name)?.at(-1);
  }

  #name(expr: Expr, text: string): CostRange {
    const known = this.#checked.names.get(expr);
    if (known === undefined) {
      const local = this.#locals.get(text)?.at(-1);
      if (local?.declared) this.#declared.set(expr, local.declared);
      return ONE;
    }
    const type = this.#environment.variables.get(known);
    if (type === undefined) return NONE;
    this.#declared.set(expr, type);
    return ONE;
  }

  #selection(expr: Selection): CostRange {
    const name = this.#checked.names.get(expr);
    if (name !== undefined) return this.#name(expr, name);
    const operand = this.cost(expr.operand);
    if (expr.isTest) return operand;
    const declared = this.#declared.get(expr.operand);
    const member =
      declared?.kind === 'map' ? declared.params[1] : declared?.fields?.get(expr.field)?.type;
    if (member !== undefined) this.#declared.set(expr, member);
    const kind = this.#checked.types.get(expr.operand)?.kind ?? 'dyn';
    const isCounted = kind === 'map' || kind === 'object' || kind === 'param';
    return isCounted ? add(operand, ONE) : operand;
  }

  #fold(expr: Fold): CostRange {
    let sum = add(this.cost(expr.range), this.cost(expr.init));
    if (expr.condition.kind === 'constant' && expr.condition.value === false) {
      this.#push(expr.accumulator, {
        declared: this.#declared.get(expr.init) ?? null,
        size: this.#sizeOrNull(expr.init),
        entry: this.#entry(expr.init),
      });
      sum = add(sum, this.cost(expr.result));
      this.#pop(expr.accumulator);
      this.#copy(expr, expr.result);
      return sum;
    }
    const size = this.#sizeOrNull(expr.init);
    this.#push(expr.accumulator, { declared: null, size, entry: this.#entry(expr.init) });
    this.#pushLoop(expr);
    const turn = add(this.cost(expr.condition), this.cost(expr.step));
    this.#pop(expr.first);
    if (expr.second !== '') this.#pop(expr.second);
    sum = add(sum, this.cost(expr.result));
    this.#pop(expr.accumulator);
    const count = this.#size(expr.range);
    if (expr.init.kind === 'list' || expr.init.kind === 'map') {
      this.#sizes.set(expr, count);
      const grown = this.#entry(expr.step);
      if (grown !== null) this.#entries.set(expr, grown);
    } else if (size !== null) {
      this.#sizes.set(expr, size);
    }
    return add(sum, multiply(count, turn));
  }

  #pushLoop(expr: Fold): void {
    const declared = this.#declared.get(expr.range);
    const entry = this.#entry(expr.range);
    const [first = null, second = null] = declared?.params ?? [];
    const isList = (declared ?? this.#checked.types.get(expr.range))?.kind === 'list';
    const member = { declared: isList ? first : second, size: entry?.value ?? null, entry: null };
    const key = { declared: isList ? null : first, size: entry?.key ?? null, entry: null };
    if (expr.second === '') {
      this.#push(expr.first, isList ? member : key);
    } else {
      this.#push(expr.first, key);
      this.#push(expr.second, member);
    }
  }

  #push(name: string, local: Local): void {
    const stack = this.#locals.get(name);
    if (stack === undefined) this.#locals.set(name, [local]);
    else stack.push(local);
  }

  #pop(name: string): void {
    this.#locals.get(name)?.pop();
  }

  #copy(to: Expr, from: Expr): void {
    const size = this.#sizeOrNull(from);
    const entry = this.#entry(from);
    const declared = this.#declared.get(from);
    if (size !== null) this.#sizes.set(to, size);
    if (entry !== null) this.#entries.set(to, entry);
    if (declared !== undefined) this.#declared.set(to, declared);
  }

  #entry(expr: Expr): EntrySize | null {
    return this.#entries.get(expr) ?? this.#local(expr)?.entry ?? null;
  }

  /** What is known of the size of a value; null: nothing. */
  #sizeOrNull(expr: Expr): CostRange | null {
    const known = this.#sizes.get(expr);
    if (known !== undefined) return known;
    if (expr.kind === 'constant') return fixed(sizeOf(expr.value));
    if (expr.kind === 'list') return fixed(expr.items.length);
    if (expr.kind === 'map') return fixed(expr.entries.length);
    const declared = this.#declared.get(expr);
    if (declared !== undefined) return sizeOfDeclared(declared);
    const type = this.#checked.types.get(expr);
    if (type !== undefined && SCALARS.has(type.kind)) return ONE;
    return this.#local(expr)?.size ?? null;
  }

  #size(expr: Expr): CostRange {
    return this.#sizeOrNull(expr) ?? UNKNOWN;
  }

  #call(expr: CallExpr): CostRange {
    const isGlobal = this.#checked.isGlobal.has(expr);
    const isMember = expr.target !== null && !isGlobal;
    const [only] = expr.args;
    if (expr.name === 'dyn' && !isMember && only !== undefined) {
      const cost = add(ONE, this.cost(only));
      this.#copy(expr, only);
      return cost;
    }
    const costs = expr.args.map((arg) => this.cost(arg));
    const target = isMember ? expr.target : null;
    const before = target === null ? NONE : this.cost(target);
    const overloads = this.#checked.calls.get(expr) ?? [];
    if (overloads.length === 0) return NONE;
    let cost: CostRange | null = null;
    let size: CostRange | null = null;
    for (const overload of overloads) {
      const own = this.#overload(expr, overload, target, costs);
      cost = cost === null ? own.cost : union(cost, own.cost);
      if (own.size !== undefined) size = size === null ? own.size : union(size, own.size);
    }
    if (size !== null) this.#sizes.set(expr, size);
    return add(before, cost ?? NONE);
  }

  #overload(
    expr: CallExpr,
    overload: Overload,
    target: Expr | null,
    costs: readonly CostRange[],
  ): CallEstimate {
    const operands = target === null ? expr.args : [target, ...expr.args];
    const own = this.#special(expr, overload, costs) ?? this.#function(overload, operands);
    const args = own.isWhole === true ? NONE : costs.reduce(add, NONE);
    return { cost: add(own.cost, args), ...(own.size === undefined ? {} : { size: own.size }) };
  }

  /** Operators whose parts are not all evaluated, and those that lead to a member. */
  #special(
    expr: CallExpr,
    { id }: Overload,
    costs: readonly CostRange[],
  ): (CallEstimate & { readonly isWhole?: boolean }) | null {
    const [first, second, third] = expr.args;
    const [one = NONE, two = NONE, three = NONE] = costs;
    switch (id) {
      case 'logical_and':
      case 'logical_or':
        return { cost: { min: one.min, max: one.max + two.max }, isWhole: true };
      case 'conditional': {
        if (second === undefined || third === undefined) return null;
        const size = union(this.#size(second), this.#size(third));
        return { cost: add(one, union(two, three)), size, isWhole: true };
      }
      case 'index_list':
      case 'index_map': {
        if (first === undefined) return null;
        const declared = this.#declared.get(first)?.params[id === 'index_list' ? 0 : 1];
        if (declared !== undefined) this.#declared.set(expr, declared);
        const size = this.#entry(first)?.value ?? this.#sizeOrNull(expr);
        return { cost: ONE, ...(size === null ? {} : { size }) };
      }
      default:
        return null;
    }
  }

  #function(
    overload: Overload,
    operands: readonly Expr[],
  ): CallEstimate & { readonly isWhole?: boolean } {
    const sizes = operands.map((operand) => this.#size(operand));
    const rule = BY_OVERLOAD[overload.id] ?? BY_NAME[overload.name];
    if (rule === undefined) return { cost: ONE };
    const [list] = operands;
    const own = list === undefined ? DYN : (this.#checked.types.get(list) ?? DYN);
    if (overload.id === 'equals' && SMALL_TYPES.has(own.name)) return { cost: ONE };
    const item = list === undefined ? null : this.#item(list);
    const isTexts = item !== null && (item.kind === 'string' || item.kind === 'bytes');
    const declared = list === undefined ? undefined : this.#declared.get(list);
    const known = declared?.params[0];
    const itemSize = known === undefined ? UNKNOWN : sizeOfDeclared(known);
    const numbers = operands.map(literalNumber);
    return rule({ sizes, numbers, item: isTexts ? itemSize : null, isList: item !== null });
  }

  #item(list: Expr): CelType | null {
    const type = this.#checked.types.get(list) ?? DYN;
    return type.kind === 'list' ? (type.params[0] ?? DYN) : null;
  }
}

/** Types of Kubernetes whose values are equal or not at once. */
const SMALL_TYPES: ReadonlySet<string> = new Set([
  'net.IP',
  'net.CIDR',
  'kubernetes.Quantity',
  'kubernetes.Semver',
]);

function literalNumber(expr: Expr): number | null {
  const isWhole = expr.kind === 'constant' && typeof expr.value === 'bigint';
  return isWhole ? Math.max(0, Number(expr.value)) : null;
}

const SCALARS: ReadonlySet<CelType['kind']> = new Set([
  'bool',
  'int',
  'uint',
  'double',
  'null',
  'timestamp',
  'duration',
  'type',
]);

function sizeOfDeclared(type: CelType): CostRange | null {
  return type.sizeMax === undefined ? null : { min: 0, max: type.sizeMax };
}

interface Operands {
  readonly sizes: readonly CostRange[];
  /** Operands that are whole numbers in the text; null: others. */
  readonly numbers: readonly (number | null)[];
  /** Size of the members of the first operand, where those are texts. */
  readonly item: CostRange | null;
  readonly isList: boolean;
}

type Rule = (operands: Operands) => CallEstimate;

const traverse: Rule = ({ sizes: [first = UNKNOWN] }) => ({ cost: scale(first, TRAVERSAL) });
const traverseKeeping: Rule = ({ sizes: [first = UNKNOWN] }) => ({
  cost: scale(first, TRAVERSAL),
  size: first,
});
const traverseSecond: Rule = ({ sizes: [, second = UNKNOWN] }) => ({
  cost: scale(second, TRAVERSAL),
});
const constant =
  (cost: number): Rule =>
  () => ({ cost: fixed(cost) });

const compareTexts: Rule = ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => {
  const max = Math.min(left.max, right.max);
  return { cost: scale({ min: max > 0 ? 1 : 0, max }, TRAVERSAL) };
};

const concatenate: Rule = ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => {
  const size = add(left, right);
  return { cost: scale(size, TRAVERSAL), size };
};

const match: Rule = ({ sizes: [text = UNKNOWN, pattern = UNKNOWN] }) => ({
  cost: multiply(scale(add(text, ONE), TRAVERSAL), scale(pattern, REGEX_LENGTH)),
});

const findMatches: Rule = (operands) => ({
  ...match(operands),
  size: { min: 0, max: operands.sizes[0]?.max ?? Infinity },
});

/** One for each member, and the characters of members that are texts. */
const wholeList: Rule = ({ sizes: [first = UNKNOWN], item, isList }) => {
  if (!isList) return { cost: scale(first, TRAVERSAL) };
  return { cost: multiply(first, item === null ? ONE : add(ONE, scale(item, TRAVERSAL))) };
};

const replace: Rule = ({ sizes: [text = UNKNOWN, old = UNKNOWN, next = UNKNOWN] }) => ({
  cost: scale(text, 2 * TRAVERSAL),
  size: { min: replacedMin(text, old, next), max: replacedMax(text, old, next) },
});

function replacedMax(text: CostRange, old: CostRange, next: CostRange): number {
  if (old.min === 0) return times(text.max + 1, next.max) + text.max;
  if (next.max <= old.min) return text.max;
  return times(Math.ceil(text.max / old.min), next.max);
}

function replacedMin(text: CostRange, old: CostRange, next: CostRange): number {
  if (old.max === 0) return times(text.min + 1, next.min) + text.min;
  if (old.max <= next.min) return text.min;
  return times(Math.ceil(text.min / old.max), next.min);
}

const split: Rule = ({ sizes: [text = UNKNOWN] }) => ({
  cost: scale(text, 2 * TRAVERSAL),
  size: { min: 0, max: text.max },
});

const join: Rule = ({ sizes: [list = UNKNOWN, by = NONE], item }) => {
  const between = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
  const size = add(multiply(list, item ?? UNKNOWN), multiply(by, between));
  return { cost: scale(size, TRAVERSAL), size };
};

const compareAddresses = (isRange: boolean, isText: boolean): Rule => {
  const bytes = { min: 4, max: 16 };
  const compared = scale(add(bytes, bytes), TRAVERSAL);
  const own = isRange ? add(compared, add(scale(bytes, TRAVERSAL), ONE)) : compared;
  return ({ sizes: [, other = UNKNOWN] }) => ({
    cost: isText ? add(own, scale(other, TRAVERSAL)) : own,
  });
};

/** A new list: what it takes to make it, and so much for each of its members. */
function newList(factor: number, size: CostRange): CallEstimate {
  return { cost: add(scale(size, factor), fixed(1 + LIST_COST)), size };
}

/** Each member is held against each other one. */
const compareMembers =
  (isSorted: boolean): Rule =>
  ({ sizes: [list = UNKNOWN], item }) =>
    newList(isSorted && item !== null ? 2 + TRAVERSAL : 2, multiply(list, list));

const slice: Rule = ({ sizes: [list = UNKNOWN], numbers: [, start, end] }) => {
  const length = Math.max(0, (end ?? list.max) - (start ?? 0));
  return newList(1, { min: length, max: length });
};

const flatten: Rule = ({ sizes: [list = UNKNOWN, depth], numbers: [, levels] }) =>
  newList(depth === undefined ? 1 : (levels ?? Infinity), list);

const sets: Rule = ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => ({
  cost: add(ONE, multiply(left, right)),
});

const BY_NAME: Readonly<Record<string, Rule | undefined>> = {
  check: constant(AUTHORIZER_CHECK_COST),
  isSorted: wholeList,
  sum: wholeList,
  max: wholeList,
  min: wholeList,
  indexOf: wholeList,
  lastIndexOf: wholeList,
  url: traverseKeeping,
  isIP: traverse,
  cidr: traverse,
  isCIDR: traverse,
  quantity: traverse,
  isQuantity: traverse,
  semver: traverse,
  isSemver: traverse,
  'ip.isCanonical': ({ sizes: [first = UNKNOWN] }) => ({ cost: scale(first, 2 * TRAVERSAL) }),
  lowerAscii: traverseKeeping,
  upperAscii: traverseKeeping,
  substring: traverseKeeping,
  trim: traverseKeeping,
  replace,
  split,
  join,
  find: findMatches,
  findAll: findMatches,
  validate: ({ sizes: [, text = UNKNOWN] }) => ({
    cost: multiply(scale(text, TRAVERSAL), fixed(Math.ceil(128 * REGEX_LENGTH))),
  }),
  'sets.contains': sets,
  'sets.intersects': sets,
  'sets.equivalent': ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => ({
    cost: add(ONE, multiply(fixed(2), multiply(left, right))),
  }),
};

const BY_OVERLOAD: Readonly<Record<string, Rule | undefined>> = {
  string_to_ip: traverse,
  list_slice: slice,
  list_flatten: flatten,
  list_flatten_int: flatten,
  list_distinct: compareMembers(false),
  list_sort: compareMembers(true),
  list_reverse: ({ sizes: [list = UNKNOWN] }) => newList(1, list),
  lists_range: ({ numbers: [end] }) => newList(1, { min: end ?? Infinity, max: end ?? Infinity }),
  starts_with_string: traverseSecond,
  ends_with_string: traverseSecond,
  in_list: ({ sizes: [, list = UNKNOWN] }) => ({ cost: list }),
  matches: match,
  matches_string: match,
  contains_string: ({ sizes: [text = UNKNOWN, part = UNKNOWN] }) => ({
    cost: multiply(scale(text, TRAVERSAL), scale(part, TRAVERSAL)),
  }),
  string_to_bytes: ({ sizes: [text = UNKNOWN] }) => ({
    cost: scale(text, TRAVERSAL),
    size: { min: text.min, max: text.max * 4 },
  }),
  bytes_to_string: ({ sizes: [bytes = UNKNOWN] }) => ({
    cost: scale(bytes, TRAVERSAL),
    size: { min: Math.floor(bytes.min / 4), max: bytes.max },
  }),
  strings_quote: ({ sizes: [text = UNKNOWN] }) => ({
    cost: scale(text, TRAVERSAL),
    size: { min: text.min + 2, max: text.max * 2 + 2 },
  }),
  string_format: traverse,
  add_string: concatenate,
  add_bytes: concatenate,
  add_list: ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => ({
    cost: ONE,
    size: add(left, right),
  }),
  equals: compareTexts,
  not_equals: compareTexts,
  less_string: compareTexts,
  less_equals_string: compareTexts,
  greater_string: compareTexts,
  greater_equals_string: compareTexts,
  less_bytes: compareTexts,
  less_equals_bytes: compareTexts,
  greater_bytes: compareTexts,
  greater_equals_bytes: compareTexts,
  cidr_contains_ip_ip: compareAddresses(false, false),
  cidr_contains_ip_string: compareAddresses(false, true),
  cidr_contains_cidr: compareAddresses(true, false),
  cidr_contains_cidr_string: compareAddresses(true, true),
};
