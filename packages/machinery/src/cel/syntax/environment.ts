/** What an expression may use, and what is known of one that was checked. */
import type { FunctionTable, Overload } from '../values/functions.ts';
import type { Expr } from './syntax.ts';
import type { CelType } from '../values/typing.ts';
import type { CelValue } from '../values/values.ts';

/** What an expression may use. */
export interface Environment {
  readonly variables: ReadonlyMap<string, CelType>;
  readonly functions: FunctionTable;
  /** Names of types that stand for themselves as values. */
  readonly types: ReadonlyMap<string, CelType>;
  readonly structs: (name: string) => StructType | undefined;
  /** Members of a list, and of a map, must be of one type. */
  readonly isHomogeneous: boolean;
  readonly canBind: boolean;
}

/** What the checker found out, by part of the tree. */
export interface Checked {
  readonly types: ReadonlyMap<Expr, CelType>;
  /** Overloads that a call may mean; several where its arguments are dyn. */
  readonly calls: ReadonlyMap<Expr, readonly Overload[]>;
  /** Calls whose target is part of the name: `sets.contains(a, b)`. */
  readonly isGlobal: ReadonlySet<Expr>;
  /** Selections that are names: of variables, or of types. */
  readonly names: ReadonlyMap<Expr, string>;
}

/** A type that expressions can construct: `Object{...}`. */
export interface StructType {
  readonly type: CelType;
  readonly make: (fields: ReadonlyMap<string, CelValue>) => CelValue;
}
