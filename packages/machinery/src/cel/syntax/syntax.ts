/**
 * The tree of a CEL expression after macros were expanded. `at` is the offset of the character that
 * messages point to, as cel-go chooses it: the dot of a selection, the parenthesis of a call, the
 * sign of an operator.
 */
import type { CelValue } from '../values/values.ts';

interface Place {
  readonly at: number;
}

export interface Constant extends Place {
  readonly kind: 'constant';
  readonly value: CelValue;
}

export interface Identifier extends Place {
  readonly kind: 'identifier';
  readonly name: string;
}

export interface Selection extends Place {
  readonly kind: 'selection';
  readonly operand: Expr;
  readonly field: string;
  /** `has(a.b)`: whether it is there, not what it is. */
  readonly isTest: boolean;
  /** `a.?b` */
  readonly isOptional: boolean;
}

export interface CallExpr extends Place {
  readonly kind: 'call';
  readonly name: string;
  readonly target: Expr | null;
  readonly args: readonly Expr[];
}

export interface ListExpr extends Place {
  readonly kind: 'list';
  readonly items: readonly Expr[];
  /** Positions of `?x` items. */
  readonly optional: readonly number[];
}

export interface Entry {
  readonly key: Expr;
  readonly value: Expr;
  readonly isOptional: boolean;
}

export interface MapExpr extends Place {
  readonly kind: 'map';
  readonly entries: readonly Entry[];
}

export interface StructField extends Place {
  readonly name: string;
  readonly value: Expr;
  readonly isOptional: boolean;
}

export interface StructExpr extends Place {
  readonly kind: 'struct';
  readonly name: string;
  readonly fields: readonly StructField[];
}

/**
 * A comprehension: `accumulator` starts as `init`, becomes `step` for every member of `range` while
 * `condition` holds, and ends as `result`. `second` is '' unless the macro names two variables.
 */
export interface Fold extends Place {
  readonly kind: 'fold';
  readonly range: Expr;
  readonly first: string;
  readonly second: string;
  readonly accumulator: string;
  readonly init: Expr;
  readonly condition: Expr;
  readonly step: Expr;
  readonly result: Expr;
}

export type Expr =
  | Constant
  | Identifier
  | Selection
  | CallExpr
  | ListExpr
  | MapExpr
  | StructExpr
  | Fold;

/** One thing that is wrong with an expression. */
export interface Issue {
  /** Offset in the source; -1 where the expression as a whole is at fault. */
  readonly at: number;
  readonly message: string;
}

/** A line that is longer is not shown below its message. */
const SNIPPET_BYTES_MAX = 16_384;
/** Mistakes of one text that are told of, as upstream has it; of more only how many there are. */
export const ISSUES_MAX = 100;

/** Whether a text begins with what takes more than one byte: its mark is as wide. */
function isWide(text: string): boolean {
  return (text.codePointAt(0) ?? 0) > 0x7f;
}

/** Issues as cel-go prints them: each with the source line and a caret below its place. */
export function issueText(source: string, issues: readonly Issue[]): string {
  const told = issues
    .slice(0, ISSUES_MAX)
    .sort((left, right) => left.at - right.at)
    .map((issue) => placedText(source, issue));
  const more = issues.length - ISSUES_MAX;
  if (more > 0) told.push(`${more} more errors were truncated`);
  return told.join('\n');
}

function placedText(source: string, { at, message }: Issue): string {
  // cel-go has no place in a source without anything
  if (source === '') return `ERROR: <input>:1:0: ${message}`;
  if (at < 0) return `ERROR: <input>:-1:0: ${message}`;
  const before = source.slice(0, at);
  const start = before.lastIndexOf('\n') + 1;
  const end = source.indexOf('\n', at);
  const line = source.slice(start, end < 0 ? source.length : end).replaceAll('\t', ' ');
  const row = before.split('\n').length;
  const ahead = Array.from(before.slice(start));
  const text = `ERROR: <input>:${row}:${ahead.length + 1}: ${message}`;
  if (Buffer.byteLength(line) > SNIPPET_BYTES_MAX) return text;
  const dots = ahead.map((one) => (isWide(one) ? '\uff0e' : '.')).join('');
  const caret = isWide(source.slice(at, end < 0 ? source.length : end)) ? '\uff3e' : '^';
  return `${text}\n | ${line}\n | ${dots}${caret}`;
}

/** Direct parts of an expression. */
export function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'constant':
    case 'identifier':
      return [];
    case 'selection':
      return [expr.operand];
    case 'call':
      return expr.target === null ? expr.args : [expr.target, ...expr.args];
    case 'list':
      return expr.items;
    case 'map':
      return expr.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return expr.fields.map(({ value }) => value);
    case 'fold':
      return [expr.range, expr.init, expr.condition, expr.step, expr.result];
  }
}
