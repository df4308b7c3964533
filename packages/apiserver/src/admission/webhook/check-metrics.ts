/** What policies and match conditions find and take, under upstream's names. */
import type { CelValue } from '@megaplane/machinery/cel/values';
import { LabelledCounter, LabelledHistogram, labelsText } from '../../metrics/labelled-metrics.ts';
import { evaluateConditions, type MatchCondition, type Matched } from './match-conditions.ts';

const POLICY_BOUNDS_S = [5e-7, 0.001, 0.01, 0.1, 1] as const;
const CONDITION_BOUNDS_S = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25] as const;

/** Whose conditions are looked at; upstream calls both kinds of policies `validate`. */
export interface ConditionOwner {
  readonly kind: 'policy' | 'webhook';
  readonly type: 'admit' | 'validate' | 'validating';
  readonly name: string;
}

export type Enforcement = 'allow' | 'audit' | 'deny' | 'warn';

export class CheckMetrics {
  /** Milliseconds of a clock that goes on evenly. */
  readonly clockMs: () => number;
  readonly #validating = new LabelledHistogram(`${VALIDATING}_duration_seconds`, POLICY_BOUNDS_S);
  readonly #mutating = new LabelledHistogram(`${MUTATING}_duration_seconds`, POLICY_BOUNDS_S);
  readonly #conditions = new LabelledHistogram(`${CONDITION}_seconds`, CONDITION_BOUNDS_S);
  readonly #conditionErrors = new LabelledCounter(`${CONDITION}_errors_total`);
  readonly #exclusions = new LabelledCounter(
    'apiserver_admission_match_condition_exclusions_total',
  );

  constructor(clockMs: () => number) {
    this.clockMs = clockMs;
  }

  /** A validation did not hold (or could not be judged), which had this effect. */
  validated(
    policy: string,
    binding: string,
    message: string,
    action: Enforcement,
    tookMs: number,
  ): void {
    const labels = { enforcement_action: action, error_type: errorTypeOf(message) };
    const text = labelsText({ ...labels, policy, policy_binding: binding });
    this.#validating.observe(text, tookMs / 1000);
  }

  /** A mutation was tried; `message` says why it failed, if it did. */
  mutated(policy: string, binding: string, message: string, tookMs: number): void {
    const error = message === '' ? 'no_error' : errorTypeOf(message);
    const text = labelsText({ error_type: error, policy, policy_binding: binding });
    this.#mutating.observe(text, tookMs / 1000);
  }

  /** Whether conditions hold. */
  matched(
    owner: ConditionOwner,
    operation: string,
    conditions: readonly MatchCondition[],
    bindings: () => Readonly<Record<string, CelValue | undefined>>,
  ): Matched {
    if (conditions.length === 0) return { kind: 'match', failures: 0 };
    const fromMs = this.clockMs();
    const found = evaluateConditions(conditions, bindings);
    const { kind, type, name } = owner;
    const labels = labelsText({ kind, name, operation, type });
    this.#conditions.observe(labels, (this.clockMs() - fromMs) / 1000);
    if (found.failures > 0) this.#conditionErrors.add(labels, found.failures);
    return found;
  }

  /** A webhook was not asked because of its conditions. */
  excluded({ kind, type, name }: ConditionOwner, operation: string): void {
    this.#exclusions.add(labelsText({ kind, name, operation, type }));
  }

  print(lines: string[]): void {
    this.#validating.printCounts(lines, `${VALIDATING}_total`);
    this.#validating.print(lines);
    this.#mutating.printCounts(lines, `${MUTATING}_total`);
    this.#mutating.print(lines);
    this.#conditions.print(lines);
    this.#conditionErrors.print(lines);
    this.#exclusions.print(lines);
  }
}

const VALIDATING = 'apiserver_validating_admission_policy_check';
const MUTATING = 'apiserver_mutating_admission_policy_check';
const CONDITION = 'apiserver_admission_match_condition_evaluation';

/** What a message begins with tells upstream what went wrong. */
function errorTypeOf(message: string): string {
  if (message.startsWith('compilation')) return 'compile_error';
  const exhausted = 'validation failed due to running out of cost budget';
  return message.startsWith(exhausted) ? 'out_of_budget' : 'invalid_error';
}
