/**
 * `x-kubernetes-validations`: rules that one node of a schema has for its values. `self` is the
 * value, `oldSelf` the one that it replaces; a rule that names `oldSelf` runs only where there is
 * one. Texts are upstream's.
 */
import type { JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';
import type { Bindings } from './steps.ts';
import { fromJson } from './values/json-values.ts';
import {
  CALL_COST_MAX,
  celEnvironment,
  compileCel,
  failureText,
  OBJECT_COST_MAX,
  type Program,
} from './program.ts';
import { optionalOf, type CelType } from './values/typing.ts';
import { CelError, Optional } from './values/values.ts';
import type { ValidationRule } from '../structural/schema/validation-rule.ts';
import type { Environment } from './syntax/environment.ts';

export interface CompiledRule {
  /** Its place among the rules of the node. */
  readonly index: number;
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
  const steps = compilingSteps(type, sources);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same, a rule with each step. */
export function* compilingSteps(
  type: CelType,
  sources: readonly ValidationRule[],
): Generator<void, CompiledRules> {
  const plain = celEnvironment({ variables: { self: type, oldSelf: type } });
  const lenient = celEnvironment({ variables: { self: type, oldSelf: optionalOf(type) } });
  const rules: CompiledRule[] = [];
  const faults: RuleFault[] = [];
  for (const [index, source] of sources.entries()) {
    yield;
    if (source.rule.trim() === '') continue;
    const environment = source.optionalOldSelf === true ? lenient : plain;
    const compiled = compileCel(environment, source.rule);
    const type = compiled.ok ? compiled.program.type : compiled.type;
    if (type !== undefined && type.kind !== 'bool') {
      faults.push({ index, field: 'rule', message: 'cel expression must evaluate to a bool' });
      continue;
    }
    if (!compiled.ok) {
      faults.push({ index, field: 'rule', message: failureText(compiled) });
      continue;
    }
    const message = compileMessage(environment, index, source, faults);
    const isTransition = compiled.program.variables.has('oldSelf');
    rules.push({ index, source, program: compiled.program, message, isTransition });
  }
  return { type, rules, faults };
}

function compileMessage(
  environment: Environment,
  index: number,
  { messageExpression = '' }: ValidationRule,
  faults: RuleFault[],
): Program | null {
  if (messageExpression === '') return null;
  const text = compileCel(environment, messageExpression);
  if (text.ok && text.program.type.kind === 'string') return text.program;
  const why = text.ok
    ? 'messageExpression must evaluate to a string'
    : `messageExpression ${failureText(text).replace(/^program /, '')}`;
  faults.push({ index, field: 'messageExpression', message: why });
  return null;
}

/** Units that are left for all rules on one object; below zero: no more rules are run. */
export interface RuleBudget {
  left: number;
}

export function ruleBudget(): RuleBudget {
  return { left: OBJECT_COST_MAX };
}

/** A rule that does not hold, or could not be judged. */
export interface RuleFailure {
  readonly source: ValidationRule;
  readonly message: string;
  readonly isTransition: boolean;
  /**
   * `refused`: the value is not as the rule wants it. `broken`: the rule could not be run to its
   * end; such failures are of the value as a whole, whatever reason and path the rule has.
   * `silent`: like `refused`, with an expression for the message that could not be afforded.
   */
  readonly kind: 'refused' | 'broken' | 'silent';
}

const EXHAUSTED =
  'validation failed due to running out of cost budget, no further validation rules will be run';
const MESSAGE_EXHAUSTED =
  'messageExpression evaluation failed due to running out of cost budget, ' +
  'no further validation rules will be run';
/** Bytes of a message that an expression makes. */
const MESSAGE_BYTES_MAX = 5 * 1024;
const OVER_LIMIT = 'operation cancelled: actual cost limit exceeded';

/**
 * Runs the rules of a node on a value. `old` is undefined on creation, and where the value cannot
 * be told to be the successor of another. When the budget is used up it is left below zero.
 */
export function evaluateRules(
  { rules, type }: CompiledRules,
  self: JsonValue,
  old: JsonValue | undefined,
  budget: RuleBudget,
): readonly RuleFailure[] {
  if (budget.left <= 0 && rules[0] !== undefined) {
    budget.left = -1;
    return [broken(rules[0], EXHAUSTED)];
  }
  let failures: RuleFailure[] | null = null;
  const value = fromJson(self, type);
  const before = old === undefined || old === null ? undefined : fromJson(old, type);
  for (const rule of rules) {
    const { source } = rule;
    const isLenient = source.optionalOldSelf === true;
    if (rule.isTransition && before === undefined && !isLenient) continue;
    const bindings = { self: value, oldSelf: isLenient ? new Optional(before) : before };
    const { value: verdict, cost } = rule.program.evaluate(bindings, CALL_COST_MAX);
    if (cost > budget.left) {
      budget.left = -1;
      (failures ??= []).push(broken(rule, EXHAUSTED));
      return failures;
    }
    budget.left -= cost;
    if (verdict === true) continue;
    (failures ??= []).push(
      verdict instanceof CelError
        ? failedEvaluation(rule, verdict, budget)
        : refused(rule, bindings, budget),
    );
    if (budget.left < 0) return failures;
  }
  return failures ?? NO_FAILURES;
}

const NO_FAILURES: readonly RuleFailure[] = [];

function broken({ source, isTransition }: CompiledRule, message: string): RuleFailure {
  return { source, message, isTransition, kind: 'broken' };
}

function refused(rule: CompiledRule, bindings: Bindings, budget: RuleBudget): RuleFailure {
  const { source, isTransition } = rule;
  const made = rule.message === null ? null : messageText(rule.message, bindings, budget);
  if (made !== null && made.isFatal) {
    return { source, message: made.text, isTransition, kind: 'silent' };
  }
  const own = (source.message ?? '').trim();
  const plain = (source.message ?? '') === '' ? `failed rule: ${source.rule.trim()}` : own;
  const message = made === null ? plain : made.text;
  return { source, message, isTransition, kind: 'refused' };
}

function failedEvaluation(
  rule: CompiledRule,
  { message }: CelError,
  budget: RuleBudget,
): RuleFailure {
  const { source } = rule;
  const text = ((source.message ?? '') === '' ? source.rule : (source.message ?? '')).trim();
  if (message.startsWith('no such overload')) {
    const why =
      `'${message}': call arguments did not match a supported operator, function or macro ` +
      `signature for rule: ${text}`;
    return broken(rule, why);
  }
  if (message.startsWith(OVER_LIMIT)) {
    budget.left = -1;
    const why =
      `'${message}': no further validation rules will be run due to call cost exceeds limit ` +
      `for rule: ${text}`;
    return broken(rule, why);
  }
  return broken(rule, `${message} evaluating rule: ${text}`);
}

/** What the expression says, or null where that can be no message. */
function messageText(
  program: Program,
  bindings: Bindings,
  budget: RuleBudget,
): { readonly text: string; readonly isFatal: boolean } | null {
  const { value, cost } = program.evaluate(bindings, CALL_COST_MAX);
  if (cost > budget.left) {
    budget.left = -1;
    return { text: MESSAGE_EXHAUSTED, isFatal: true };
  }
  if (value instanceof CelError && value.message.startsWith(OVER_LIMIT)) {
    budget.left = -1;
    const why =
      'no further validation rules will be run due to call cost exceeds limit for ' +
      `messageExpression: ${quoted(program.source)}`;
    return { text: why, isFatal: true };
  }
  budget.left -= cost;
  if (typeof value !== 'string') return null;
  const text = value.trim();
  const isUsable = text !== '' && !text.includes('\n');
  return isUsable && Buffer.byteLength(text) <= MESSAGE_BYTES_MAX ? { text, isFatal: false } : null;
}
