/**
 * `x-kubernetes-validations`: rules that one node of a schema has for its values. `self` is the
 * value, `oldSelf` the one that it replaces; a rule that names `oldSelf` runs only where there is
 * one. Texts are upstream's.
 */
import type { JsonValue } from '../json-value.ts';
import { fromJson } from './json-values.ts';
import {
  CALL_COST_MAX,
  celEnvironment,
  compileCel,
  OBJECT_COST_MAX,
  type Program,
} from './program.ts';
import { optionalOf, type CelType } from './typing.ts';
import { CelError, Optional, type CelValue } from './values.ts';

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export interface CompiledRule {
  readonly source: ValidationRule;
  readonly program: Program;
  readonly message: Program | null;
  /** The rule names `oldSelf`. */
  readonly isTransition: boolean;
}

/** A rule that cannot be used: where it is wrong, and why in upstream's words. */
export interface RuleFault {
  readonly index: number;
  readonly field: 'rule' | 'messageExpression';
  readonly message: string;
}

export interface CompiledRules {
  readonly type: CelType;
  readonly rules: readonly CompiledRule[];
  readonly faults: readonly RuleFault[];
}

/** Compiles the rules of one node, whose values are of `type` (of `declaredType`). */
export function compileRules(type: CelType, sources: readonly ValidationRule[]): CompiledRules {
  const plain = celEnvironment({ variables: { self: type, oldSelf: type } });
  const lenient = celEnvironment({ variables: { self: type, oldSelf: optionalOf(type) } });
  const rules: CompiledRule[] = [];
  const faults: RuleFault[] = [];
  for (const [index, source] of sources.entries()) {
    const environment = source.optionalOldSelf === true ? lenient : plain;
    const compiled = compileCel(environment, source.rule);
    if (!compiled.ok) {
      faults.push({ index, field: 'rule', message: `compilation failed: ${compiled.message}` });
      continue;
    }
    if (compiled.program.type.kind !== 'bool') {
      faults.push({ index, field: 'rule', message: 'cel expression must evaluate to a bool' });
      continue;
    }
    let message: Program | null = null;
    if (source.messageExpression !== undefined && source.messageExpression !== '') {
      const text = compileCel(environment, source.messageExpression);
      if (!text.ok) {
        const why = `messageExpression compilation failed: ${text.message}`;
        faults.push({ index, field: 'messageExpression', message: why });
      } else if (text.program.type.kind !== 'string') {
        const why = 'messageExpression must evaluate to a string';
        faults.push({ index, field: 'messageExpression', message: why });
      } else {
        message = text.program;
      }
    }
    const isTransition = compiled.program.variables.has('oldSelf');
    rules.push({ source, program: compiled.program, message, isTransition });
  }
  return { type, rules, faults };
}

/** Units that are left for all rules on one object. Made by `ruleBudget`. */
export interface RuleBudget {
  left: number;
}

export function ruleBudget(): RuleBudget {
  return { left: OBJECT_COST_MAX };
}

/** A rule that does not hold. */
export interface RuleFailure {
  readonly rule: ValidationRule;
  readonly message: string;
  /** No rule after this one was run. */
  readonly isLast: boolean;
}

const EXHAUSTED =
  'validation failed due to running out of cost budget, no further validation rules will be run';
/** Bytes of a message that an expression makes. */
const MESSAGE_BYTES_MAX = 5 * 1024;

/**
 * Runs the rules of a node on a value. `old` is undefined on creation, and where the value cannot
 * be told to be the successor of another. Ends early when the budget is used up.
 */
export function evaluateRules(
  { rules, type }: CompiledRules,
  self: JsonValue,
  old: JsonValue | undefined,
  budget: RuleBudget,
): RuleFailure[] {
  const failures: RuleFailure[] = [];
  const value = fromJson(self, type);
  const before = old === undefined ? undefined : fromJson(old, type);
  for (const rule of rules) {
    const { source } = rule;
    if (rule.isTransition && before === undefined && source.optionalOldSelf !== true) continue;
    const oldSelf = source.optionalOldSelf === true ? new Optional(before) : before;
    const bindings = { self: value, oldSelf };
    const { value: verdict, cost } = rule.program.evaluate(bindings, CALL_COST_MAX);
    budget.left -= cost;
    const failure = verdict === true ? null : failureOf(rule, verdict, bindings, budget);
    if (failure !== null) failures.push(failure);
    if (failure?.isLast === true) return failures;
    if (budget.left < 0) {
      failures.push({ rule: source, message: EXHAUSTED, isLast: true });
      return failures;
    }
  }
  return failures;
}

function failureOf(
  { source, message }: CompiledRule,
  verdict: CelValue,
  bindings: Readonly<Record<string, CelValue | undefined>>,
  budget: RuleBudget,
): RuleFailure {
  if (verdict instanceof CelError) {
    const own = (source.message ?? '').trim();
    return failedEvaluation(source, verdict, own === '' ? source.rule.trim() : own);
  }
  const text = message === null ? null : messageText(message, bindings, budget);
  const plain = source.message ?? '';
  const fallback = plain === '' ? `failed rule: ${source.rule.trim()}` : plain.trim();
  return { rule: source, message: text ?? fallback, isLast: false };
}

function failedEvaluation(rule: ValidationRule, { message }: CelError, text: string): RuleFailure {
  if (message.startsWith('no such overload')) {
    const why =
      `'${message}': call arguments did not match a supported operator, function or macro ` +
      `signature for rule: ${text}`;
    return { rule, message: why, isLast: false };
  }
  if (message.startsWith('operation cancelled: actual cost limit exceeded')) {
    const why =
      `'${message}': no further validation rules will be run due to call cost exceeds limit ` +
      `for rule: ${text}`;
    return { rule, message: why, isLast: true };
  }
  return { rule, message: `${message} evaluating rule: ${text}`, isLast: false };
}

/** What the expression says, or null where that can be no message. */
function messageText(
  program: Program,
  bindings: Readonly<Record<string, CelValue | undefined>>,
  budget: RuleBudget,
): string | null {
  const { value, cost } = program.evaluate(bindings, Math.min(CALL_COST_MAX, budget.left));
  budget.left -= cost;
  if (typeof value !== 'string') return null;
  const text = value.trim();
  const isUsable = text !== '' && !text.includes('\n');
  return isUsable && Buffer.byteLength(text) <= MESSAGE_BYTES_MAX ? text : null;
}
