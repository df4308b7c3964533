/**
 * What an expression can cost at least and at most, before it runs. Sizes come from literals, from
 * what calls make, and from what the schema says of the values that a path leads to; where nothing
 * is known a size has no bound, and neither has the cost. The rules are those of cel-go's estimator
 * with the additions of Kubernetes; they decide which rules a schema may have, so they stay as they
 * are upstream.
 */
import { costRuleOf, type CallEstimate } from './call-estimates.ts';
import { add, fixed, multiply, NONE, ONE, union, UNKNOWN, type CostRange } from './cost-range.ts';
import type { Overload } from '../values/functions.ts';
import { LIST_COST, MAP_COST, STRUCT_COST } from './runtime-cost.ts';
import type { CallExpr, Expr, Fold, Selection } from '../syntax/syntax.ts';
import { DYN, type CelType } from '../values/typing.ts';
import { sizeOf } from '../values/values.ts';
import type { Checked, Environment } from '../syntax/environment.ts';

/**
 * Fields of a variable whose path has four steps with theirs: cel-go writes all of them into the
 * same memory, so that each has the size of the one that was named last. Rules are accepted and
 * refused by that, so it has to be the same here.
 */
interface SharedStep {
  type: CelType | null;
}
const SHARED_PATH_STEPS = 3;

interface Local {
  readonly steps: number;
  readonly shared: SharedStep | null;
  /** The type by the schema, where the value is a part of the request. */
  readonly declared: CelType | null;
  readonly size: CostRange | null;
  readonly entry: EntrySize | null;
}

/** What a path leads to that the schema does not have: nothing is known of its size. */
const UNDECLARED: CelType = { kind: 'dyn', name: 'dyn', params: [] };

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
  /** Steps from the variable of the environment to an expression. */
  readonly #steps = new Map<Expr, number>();
  readonly #shared = new Map<Expr, SharedStep>();
  /**
   * Where a schema tells the sizes, its root: upstream takes a path of a single step for it,
   * whatever the step, and so the members of what has no path are taken for the root itself.
   */
  readonly #root: CelType | null;

  constructor(checked: Checked, environment: Environment) {
    this.#checked = checked;
    this.#environment = environment;
    this.#root = environment.variables.get('self') ?? null;
  }

  /** The declaration one step on; null: nothing has a size here. */
  #stepFrom(from: Expr, member: CelType | undefined): CelType | null {
    if (this.#root === null) return member ?? null;
    return this.#declared.has(from) ? (member ?? UNDECLARED) : this.#root;
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
      if (local?.declared) {
        this.#declared.set(expr, local.declared);
        this.#steps.set(expr, local.steps);
      }
      return ONE;
    }
    const type = this.#environment.variables.get(known);
    if (type === undefined) return NONE;
    this.#declared.set(expr, type);
    this.#steps.set(expr, 1);
    return ONE;
  }

  #selection(expr: Selection): CostRange {
    const name = this.#checked.names.get(expr);
    if (name !== undefined) return this.#name(expr, name);
    const operand = this.cost(expr.operand);
    if (expr.isTest) return operand;
    if (expr.isOptional) return add(operand, ONE);
    const declared = this.#declared.get(expr.operand);
    const member = this.#stepFrom(
      expr.operand,
      declared?.kind === 'map' ? declared.params[1] : declared?.fields?.get(expr.field)?.type,
    );
    if (member !== null) {
      this.#declared.set(expr, member);
      this.#steps.set(expr, (this.#steps.get(expr.operand) ?? 0) + 1);
      const shared = this.#local(expr.operand)?.shared ?? null;
      if (shared !== null) {
        shared.type = member;
        this.#shared.set(expr, shared);
      }
    }
    const kind = this.#checked.types.get(expr.operand)?.kind ?? 'dyn';
    const isCounted = kind === 'map' || kind === 'object' || kind === 'param';
    return isCounted ? add(operand, ONE) : operand;
  }

  #fold(expr: Fold): CostRange {
    let sum = add(this.cost(expr.range), this.cost(expr.init));
    if (expr.condition.kind === 'constant' && expr.condition.value === false) {
      this.#push(expr.accumulator, {
        steps: this.#steps.get(expr.init) ?? 0,
        shared: null,
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
    const entry = this.#entry(expr.init);
    this.#push(expr.accumulator, { declared: null, steps: 0, shared: null, size, entry });
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
    const kind = this.#checked.types.get(expr.range)?.kind;
    const isList = kind === 'list' || (kind !== 'map' && entry !== null);
    const keys = declared?.kind === 'map' ? declared.params[0] : undefined;
    const steps = (this.#steps.get(expr.range) ?? 0) + 1;
    const shared = steps === SHARED_PATH_STEPS ? { type: null } : null;
    const member: Local = {
      declared: this.#stepFrom(expr.range, elementOf(declared)),
      steps,
      shared,
      size: entry?.value ?? null,
      entry: null,
    };
    const key: Local = {
      declared: this.#stepFrom(expr.range, isList ? undefined : keys),
      steps,
      shared: null,
      size: entry?.key ?? null,
      entry: null,
    };
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
    this.#steps.set(to, this.#steps.get(from) ?? 0);
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
    const declared = this.#shared.get(expr)?.type ?? this.#declared.get(expr);
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
        this.#join(expr, second, third);
        return { cost: add(one, union(two, three)), size, isWhole: true };
      }
      case 'index_list':
      case 'index_map': {
        if (first === undefined) return null;
        const declared = this.#stepFrom(first, elementOf(this.#declared.get(first)));
        if (declared !== null) {
          this.#declared.set(expr, declared);
          this.#steps.set(expr, (this.#steps.get(first) ?? 0) + 1);
        }
        const size = this.#entry(first)?.value ?? this.#sizeOrNull(expr);
        return { cost: ONE, ...(size === null ? {} : { size }) };
      }
      case 'add_string':
      case 'add_bytes':
      case 'add_list':
        if (first !== undefined && second !== undefined) this.#join(expr, first, second);
        return null;
      default:
        return null;
    }
  }

  /** Members of a value that is made of two others. */
  #join(expr: Expr, left: Expr, right: Expr): void {
    const one = this.#entry(left);
    const other = this.#entry(right);
    if (one === null || other === null) return;
    const key = union(one.key, other.key);
    this.#entries.set(expr, { key, value: union(one.value, other.value) });
  }

  #function(
    overload: Overload,
    operands: readonly Expr[],
  ): CallEstimate & { readonly isWhole?: boolean } {
    const sizes = operands.map((operand) => this.#size(operand));
    const rule = costRuleOf(overload);
    if (rule === undefined) return { cost: ONE };
    const [list] = operands;
    const own = list === undefined ? DYN : (this.#checked.types.get(list) ?? DYN);
    if (overload.id === 'equals' && SMALL_TYPES.has(own.name)) return { cost: ONE };
    const item = list === undefined ? null : this.#item(list);
    const isTexts = item !== null && (item.kind === 'string' || item.kind === 'bytes');
    const declared = list === undefined ? undefined : this.#declared.get(list);
    const known = elementOf(declared);
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

/** The type of members, as schemas have it. */
function elementOf(type: CelType | undefined): CelType | undefined {
  if (type?.kind === 'list') return type.params[0];
  return type?.kind === 'map' ? type.params[1] : undefined;
}

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
