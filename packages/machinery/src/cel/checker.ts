/** Types of every part of an expression, or what is wrong with them. */
import type { Overload } from './values/functions.ts';
import { pathOf } from './syntax/parser.ts';
import type { CallExpr, Expr, Fold, Issue, Selection, StructExpr } from './syntax/syntax.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  ANY,
  DYN,
  INT,
  isAssignable,
  isOptional,
  join,
  keywordName,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  resolve,
  settle,
  STRING,
  typeOf,
  typeText,
  UINT,
  type CelType,
  TriedSubstitution,
  type Substitution,
} from './values/typing.ts';
import { Uint, type CelValue } from './values/values.ts';
import type { Environment, Checked } from './syntax/environment.ts';

export type CheckOutcome =
  | { readonly ok: true; readonly type: CelType; readonly checked: Checked }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** Checks the whole tree; reports all issues, not the first alone. */
export function check(expr: Expr, environment: Environment): CheckOutcome {
  const checker = new Checker(environment);
  const type = checker.typeOf(expr);
  if (checker.issues.length > 0) return { ok: false, issues: checker.issues };
  return { ok: true, type: checker.settle(type), checked: checker.finish() };
}

/** What an issue was found in: anything goes with it, so that it is told once. */
const WRONG: CelType = { kind: 'dyn', name: '!error!', params: [] };

class Checker {
  readonly issues: Issue[] = [];
  readonly #environment: Environment;
  readonly #types = new Map<Expr, CelType>();
  readonly #calls = new Map<Expr, readonly Overload[]>();
  readonly #isGlobal = new Set<Expr>();
  readonly #names = new Map<Expr, string>();
  readonly #scope: Map<string, CelType>[] = [];
  readonly #known: Substitution = new Map<string, CelType>();
  #fresh = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  settle(type: CelType): CelType {
    return settle(type, this.#known);
  }

  finish(): Checked {
    for (const [expr, type] of this.#types) this.#types.set(expr, this.settle(type));
    return {
      types: this.#types,
      calls: this.#calls,
      isGlobal: this.#isGlobal,
      names: this.#names,
    };
  }

  typeOf(expr: Expr): CelType {
    const type = this.#typeOf(expr);
    this.#types.set(expr, type);
    return type;
  }

  #issue(at: number, message: string): CelType {
    this.issues.push({ at, message });
    return WRONG;
  }

  #text(type: CelType): string {
    return typeText(this.settle(type));
  }

  #param(): CelType {
    return { kind: 'param', name: `_${this.#fresh++}`, params: [] };
  }

  #typeOf(expr: Expr): CelType {
    switch (expr.kind) {
      case 'constant':
        return constantType(expr.value);
      case 'identifier':
        return (
          this.#lookup(expr, expr.name) ??
          this.#issue(expr.at, `undeclared reference to '${expr.name}' (in container '')`)
        );
      case 'selection':
        return this.#selection(expr);
      case 'call':
        return this.#call(expr);
      case 'list': {
        let item: CelType | null = null;
        for (const [index, one] of expr.items.entries()) {
          const own = this.#unwrapped(one, expr.optional.includes(index));
          item = this.#joined(item, own);
        }
        return listOf(item ?? this.#param());
      }
      case 'map': {
        let key: CelType | null = null;
        let value: CelType | null = null;
        for (const entry of expr.entries) {
          key = this.#joined(key, this.typeOf(entry.key));
          const own = this.#unwrapped(entry.value, entry.isOptional);
          value = this.#joined(value, own);
        }
        return mapOf(key ?? this.#param(), value ?? this.#param());
      }
      case 'struct':
        return this.#struct(expr);
      case 'fold':
        return this.#fold(expr);
    }
  }

  /** Of `?x`: what the optional holds. */
  #unwrapped(expr: Expr, isOptionalEntry: boolean): CelType {
    const type = resolve(this.typeOf(expr), this.#known);
    if (!isOptionalEntry || type.kind === 'dyn') return type;
    if (isOptional(type)) return type.params[0] ?? DYN;
    const found = this.#text(type);
    return this.#issue(expr.at, `expected type 'optional_type(${found})' but found '${found}'`);
  }

  /** Arguments of a format may be of all types, whatever holds for other lists. */
  #formatList(expr: Expr): CelType {
    if (expr.kind !== 'list') return this.typeOf(expr);
    for (const item of expr.items) this.typeOf(item);
    this.#types.set(expr, listOf(DYN));
    return listOf(DYN);
  }

  #joined(left: CelType | null, right: CelType): CelType {
    return left === null ? right : (join(left, right, this.#known) ?? DYN);
  }

  /** The type of a variable, or of a type's name; notes what the name stands for. */
  #lookup(expr: Expr, path: string): CelType | null {
    const name = bare(path);
    if (name === path) {
      for (let depth = this.#scope.length - 1; depth >= 0; depth--) {
        const found = this.#scope[depth]?.get(name);
        if (found !== undefined) return found;
      }
    }
    const variable = this.#environment.variables.get(name);
    const type = this.#environment.types.get(name);
    if (variable === undefined && type === undefined) return null;
    this.#names.set(expr, name);
    return variable ?? (type === undefined ? null : typeOf(type));
  }

  #isLocal(path: string): boolean {
    const [head = ''] = path.split('.');
    return this.#scope.some((names) => names.has(head));
  }

  #selection(expr: Selection): CelType {
    const path = expr.isTest || expr.isOptional ? null : pathOf(expr);
    if (path !== null && !this.#isLocal(path)) {
      const found = this.#lookup(expr, path);
      if (found !== null) return found;
    }
    const operand = resolve(this.typeOf(expr.operand), this.#known);
    const isChained = isOptional(operand);
    const target = isChained ? resolve(operand.params[0] ?? DYN, this.#known) : operand;
    const field = this.#field(target, expr);
    if (expr.isTest) return BOOL;
    return expr.isOptional || isChained ? optionalOf(field) : field;
  }

  #field(target: CelType, expr: Selection): CelType {
    const kind: string = target.kind;
    switch (kind) {
      case 'dyn':
      case 'param':
        return DYN;
      case 'map':
        return target.params[1] ?? DYN;
      case 'object': {
        if (target.fields === null || target.fields === undefined) return DYN;
        const field = target.fields.get(expr.field) ?? target.fields.get(keywordName(expr.field));
        return field?.type ?? this.#issue(expr.at, `undefined field '${expr.field}'`);
      }
      default:
        return this.#issue(
          expr.at,
          `type '${this.#text(target)}' does not support field selection`,
        );
    }
  }

  #call(expr: CallExpr): CelType {
    const target = expr.target === null ? null : pathOf(expr.target);
    if (target !== null && !this.#isLocal(target)) {
      const global = this.#environment.functions.get(`${bare(target)}.${expr.name}`);
      if (global !== undefined) {
        this.#isGlobal.add(expr);
        return this.#overload(expr, `${bare(target)}.${expr.name}`, global, false);
      }
    }
    const found = this.#environment.functions.get(bare(expr.name));
    if (found === undefined) {
      if (expr.target !== null) this.typeOf(expr.target);
      for (const arg of expr.args) this.typeOf(arg);
      return this.#issue(expr.at, `undeclared reference to '${bare(expr.name)}' (in container '')`);
    }
    return this.#overload(expr, bare(expr.name), found, expr.target !== null);
  }

  #overload(
    expr: CallExpr,
    name: string,
    overloads: readonly Overload[],
    isMember: boolean,
  ): CelType {
    const exprs = isMember && expr.target !== null ? [expr.target, ...expr.args] : expr.args;
    const args = exprs.map((arg) => (name === 'format' ? this.#formatList(arg) : this.typeOf(arg)));
    if (name === '_&&_' || name === '_||_') return this.#logical(expr, name, args);
    if (name === '_[_]' || name === '_[?_]') {
      const found = this.#indexed(expr, args);
      if (found !== null) return found;
    }
    let result: CelType | null = null;
    const matching: Overload[] = [];
    for (const overload of overloads) {
      if (overload.isMember !== isMember || overload.params.length !== args.length) continue;
      if (overload.id.endsWith('_runtime')) continue;
      const tried = new TriedSubstitution(this.#known);
      const renamed = this.#instance(overload);
      const fits = renamed.params.every((param, index) =>
        isAssignable(param, args[index] ?? DYN, tried),
      );
      if (!fits) continue;
      // what the first match teaches is kept; others may only widen the result
      if (matching.length === 0) tried.keep();
      matching.push(overload);
      const own = resolve(renamed.result, tried);
      result = result === null || this.#text(result) === this.#text(own) ? own : DYN;
    }
    if (result !== null) {
      this.#calls.set(expr, matching);
      return result;
    }
    const texts = args.map((type) => this.#text(type));
    const [first = '', ...rest] = texts;
    const applied = isMember ? `${first}.(${rest.join(', ')})` : `(${texts.join(', ')})`;
    return this.#issue(expr.at, `found no matching overload for '${name}' applied to '${applied}'`);
  }

  /** Operands that are not boolean are named one by one. */
  #logical(expr: CallExpr, name: string, args: readonly CelType[]): CelType {
    for (const [index, type] of args.entries()) {
      if (isAssignable(BOOL, type, this.#known)) continue;
      const at = expr.args[index]?.at ?? expr.at;
      this.#issue(at, `expected type 'bool' but found '${this.#text(type)}'`);
    }
    this.#calls.set(expr, this.#environment.functions.get(name) ?? []);
    return BOOL;
  }

  /** Members keep what a schema says of them, which a parameter of a signature would lose. */
  #indexed(expr: CallExpr, args: readonly CelType[]): CelType | null {
    const target = resolve(args[0] ?? DYN, this.#known);
    const index = resolve(args[1] ?? DYN, this.#known);
    const isList = target.kind === 'list' && ['int', 'dyn', 'param'].includes(index.kind);
    const isMap =
      target.kind === 'map' && isAssignable(target.params[0] ?? DYN, index, this.#known);
    if (!isList && !isMap) return null;
    const overloads = this.#environment.functions.get(expr.name) ?? [];
    const isKnown = index.kind === 'int';
    this.#calls.set(
      expr,
      overloads.filter(
        (one) => one.params[0]?.kind === target.kind && !(isKnown && one.id.endsWith('_runtime')),
      ),
    );
    const member = target.params[isList ? 0 : 1] ?? DYN;
    return expr.name === '_[?_]' ? optionalOf(member) : member;
  }

  /** The overload with type parameters of its own. */
  #instance({ params, result }: Overload): { params: CelType[]; result: CelType } {
    const names = new Map<string, CelType>();
    const rename = (type: CelType): CelType => {
      if (type.kind === 'param') {
        let own = names.get(type.name);
        if (own === undefined) names.set(type.name, (own = this.#param()));
        return own;
      }
      if (type.params.length === 0) return type;
      return { ...type, params: type.params.map(rename) };
    };
    return { params: params.map(rename), result: rename(result) };
  }

  #struct(expr: StructExpr): CelType {
    const name = bare(expr.name);
    const found = this.#environment.structs(name);
    if (found === undefined) {
      for (const field of expr.fields) this.typeOf(field.value);
      return this.#issue(expr.at, `undeclared reference to '${name}' (in container '')`);
    }
    for (const field of expr.fields) {
      const type = this.#unwrapped(field.value, field.isOptional);
      const declared = found.type.fields?.get(field.name)?.type;
      if (found.type.fields !== null && declared === undefined) {
        this.#issue(field.at, `undefined field '${field.name}'`);
      } else if (declared !== undefined && !isAssignable(declared, type, this.#known)) {
        this.#issue(
          field.at,
          `expected type of field '${field.name}' is '${this.#text(declared)}' ` +
            `but provided type is '${this.#text(type)}'`,
        );
      }
    }
    return found.type;
  }

  #fold(expr: Fold): CelType {
    const range = resolve(this.typeOf(expr.range), this.#known);
    const init = this.typeOf(expr.init);
    const [first, second] = this.#loopTypes(expr, range);
    this.#scope.push(new Map([[expr.accumulator, init]]));
    const loop = new Map([[expr.first, first]]);
    if (expr.second !== '') loop.set(expr.second, second);
    this.#scope.push(loop);
    this.#expect(expr.condition, BOOL);
    this.#expect(expr.step, init);
    this.#scope.pop();
    const result = this.typeOf(expr.result);
    this.#scope.pop();
    return resolve(result, this.#known);
  }

  #expect(expr: Expr, wanted: CelType): void {
    const type = this.typeOf(expr);
    if (isAssignable(wanted, type, this.#known)) return;
    this.#issue(expr.at, `expected type '${this.#text(wanted)}' but found '${this.#text(type)}'`);
  }

  #loopTypes(expr: Fold, range: CelType): readonly [CelType, CelType] {
    const [key = DYN, value = DYN] = range.params;
    const isPair = expr.second !== '';
    const kind: string = range.name === ANY.name ? range.name : range.kind;
    switch (kind) {
      case 'list':
        return isPair ? [INT, key] : [key, DYN];
      case 'map':
        return [key, value];
      case 'dyn':
      case 'param':
        return [DYN, DYN];
      default:
        this.#issue(
          expr.range.at,
          `expression of type '${this.#text(range)}' cannot be range of a comprehension ` +
            '(must be list, map, or dynamic)',
        );
        return [DYN, DYN];
    }
  }
}

function bare(name: string): string {
  return name.startsWith('.') ? name.slice(1) : name;
}

function constantType(value: CelValue): CelType {
  const kind: string = typeof value;
  switch (kind) {
    case 'boolean':
      return BOOL;
    case 'bigint':
      return INT;
    case 'number':
      return DOUBLE;
    case 'string':
      return STRING;
    default:
  }
  if (value === null) return NULL;
  return value instanceof Uint ? UINT : BYTES;
}
