/** Match conditions: expressions that all must hold for a webhook or policy to be asked. */
import { admissionEnvironment } from '@megaplane/machinery/cel/admission-environment';
import {
  CALL_COST_MAX,
  compileCel,
  MATCH_CONDITIONS_COST_MAX,
  type Program,
} from '@megaplane/machinery/cel/program';
import { CelError, type CelValue } from '@megaplane/machinery/cel/values';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
  /** Null where it does not compile: then it can only fail. */
  readonly program: Program | null;
  readonly failure: string;
}

export function readConditions(owner: JsonObject, hasParams: boolean): readonly MatchCondition[] {
  const environment = admissionEnvironment({ hasParams });
  return listAt(owner, 'matchConditions').map((condition) => {
    const expression = stringAt(condition, 'expression');
    const compiled = compileCel(environment, expression);
    return {
      name: stringAt(condition, 'name'),
      expression,
      program: compiled.ok ? compiled.program : null,
      failure: compiled.ok ? '' : `compilation error: ${compiled.message}`,
    };
  });
}

/** `failures`: conditions that could not be evaluated. */
export type Matched =
  | { readonly kind: 'match'; readonly failures: number }
  /** `condition` did not hold. */
  | { readonly kind: 'skip'; readonly failures: number; readonly condition: string }
  | { readonly kind: 'failed'; readonly failures: number; readonly message: string };

const EXHAUSTED =
  'validation failed due to running out of cost budget, no further validation rules will be run';

/** One condition that does not hold outweighs any that fail. */
export function evaluateConditions(
  conditions: readonly MatchCondition[],
  bindings: () => Readonly<Record<string, CelValue | undefined>>,
): Matched {
  let left = MATCH_CONDITIONS_COST_MAX;
  const failures: string[] = [];
  // upstream knows the namespace when it judges an object, and not here
  const values = conditions.length === 0 ? {} : { ...bindings(), namespaceObject: null };
  for (const { name, expression, program, failure } of conditions) {
    if (left <= 0) return { kind: 'failed', failures: 0, message: EXHAUSTED };
    const outcome = program?.evaluate(values, Math.min(left, CALL_COST_MAX));
    left -= outcome?.cost ?? 0;
    const value = outcome?.value ?? new CelError(failure);
    if (value === false) return { kind: 'skip', failures: failures.length, condition: name };
    if (value instanceof CelError) {
      failures.push(`expression '${expression}' resulted in error: ${value.message}`);
    } else if (value !== true) {
      failures.push(`expression '${expression}' resulted in error: no such overload`);
    }
  }
  if (failures.length === 0) return { kind: 'match', failures: 0 };
  return { kind: 'failed', failures: failures.length, message: aggregate(failures) };
}
