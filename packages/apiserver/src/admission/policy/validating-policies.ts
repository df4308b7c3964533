/** ValidatingAdmissionPolicy: expressions that every write must satisfy. Texts are upstream's. */
import { ownMember } from '@megaplane/base/members';
import { fromJson } from '@megaplane/machinery/cel/json-values';
import { CelError, type CelValue } from '@megaplane/machinery/cel/values';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { World } from '../../lister/world.ts';
import { bindingsOf } from '../webhook/admission-request.ts';
import type { CheckMetrics, Enforcement } from '../webhook/check-metrics.ts';
import { prepared } from '../webhook/equivalent-forms.ts';
import { paramsOf, policyFault } from './policy-params.ts';
import {
  conditionsOf,
  Evaluation,
  isAbout,
  isBound,
  Policies,
  readExpression,
  type Applicable,
  type Binding,
  type Expression,
  type Policy,
} from './policies.ts';
import { writtenName } from '../../registry/rest/refusal.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import { shownObject } from '../../managedfields/shown-fields.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

interface Validation {
  readonly expression: Expression;
  readonly message: string;
  readonly messageExpression: Expression | null;
  readonly reason: string;
}

/** Bytes of a message that an expression makes. */
const MESSAGE_BYTES_MAX = 5 * 1024;

/** HTTP codes of the reasons that a validation may give. */
const CODES: Readonly<Record<string, number>> = {
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

/** What a validating policy has beyond a mutating one. */
interface Checks {
  readonly validations: readonly Validation[];
  readonly annotations: readonly { readonly key: string; readonly expression: Expression }[];
}

function readChecks({ object, environment }: Policy): Checks {
  const validations = listAt(object, 'spec', 'validations').map((one) => {
    const text = stringAt(one, 'messageExpression');
    return {
      expression: readExpression(environment, stringAt(one, 'expression')),
      message: stringAt(one, 'message').trim(),
      messageExpression: text === '' ? null : readExpression(environment, text),
      reason: stringAt(one, 'reason') || 'Invalid',
    };
  });
  const annotations = listAt(object, 'spec', 'auditAnnotations').map((one) => ({
    key: stringAt(one, 'key'),
    expression: readExpression(environment, stringAt(one, 'valueExpression')),
  }));
  return { validations, annotations };
}

/** Bytes of one annotation's value. */
const ANNOTATION_BYTES_MAX = 10 * 1024;

/**
 * Tells the audit log what the policy has to say of the write. What cannot be said denies it, as
 * the policy's failures do, whatever the actions are.
 */
function annotate(
  { name, ignoresFailures }: Policy,
  annotations: Checks['annotations'],
  evaluation: Evaluation,
  { call }: Admitted,
): Violation[] {
  const found: Violation[] = [];
  for (const { key, expression } of annotations) {
    const value = evaluation.evaluate(expression);
    if (typeof value === 'string' && value.trim() !== '') {
      call.annotate(`${name}/${key}`, value.slice(0, ANNOTATION_BYTES_MAX));
    }
    if (!(value instanceof CelError) || ignoresFailures) continue;
    const { message } = value;
    found.push({ index: 0, message, reason: 'Invalid', kind: 'annotation', tookMs: 0 });
  }
  return found;
}

/** The annotation of a violation in the audit log. */
const FAILURE = 'validation.policy.admission.k8s.io/validation_failure';

interface Violation {
  /** Of the validation; 0 where none was reached. */
  readonly index: number;
  readonly message: string;
  readonly reason: string;
  /**
   * Only what validations say is for the binding's actions to judge: annotations for the audit log
   * and bindings that cannot be followed deny the write, whatever the actions are.
   */
  readonly kind: 'validation' | 'annotation' | 'configuration';
  readonly tookMs: number;
}

export function validatingPolicies(world: World, checks: CheckMetrics): AdmissionPlugin {
  const policies = new Policies(world, 'validating', false, readChecks);
  return {
    name: 'ValidatingAdmissionPolicy',
    connects: true,
    repeats: ({ served, call }) => {
      const operation = call.exchange.method === 'POST' ? 'CREATE' : 'UPDATE';
      return policies.for({ served, operation, subresource: call.info.subresource }).length === 0;
    },
    validate: (write) => {
      const applicable = policies.for(write);
      if (applicable.length === 0) return null;
      return prepared(write, applicable, () => judge(checks, applicable, write));
    },
  };
}

function judge(
  checks: CheckMetrics,
  applicable: readonly Applicable<Checks>[],
  write: Admitted,
): Status | null {
  let first: Status | null = null;
  for (const one of applicable) {
    if (!isAbout(one, write)) continue;
    const fault = policyFault(one.policy, write);
    if (fault !== '') {
      const where = `ValidatingAdmissionPolicy '${one.policy.name}'`;
      if (!one.policy.ignoresFailures) first ??= denialOf(write, where, fault, 'Invalid');
      continue;
    }
    const common = bindingsOf(write, one.target, 'validating');
    for (const binding of one.bindings) {
      if (!isBound(binding, write)) continue;
      for (const violation of violationsOf(checks, one, binding, write, common)) {
        const denial = act(checks, one.policy, binding, violation, write);
        first ??= denial;
      }
    }
  }
  return first;
}

/** What the binding's actions make of a violation. */
function act(
  checks: CheckMetrics,
  { name }: Policy,
  binding: Binding,
  violation: Violation,
  write: Admitted,
): Status | null {
  const { index, message, reason, kind, tookMs } = violation;
  const where = `ValidatingAdmissionPolicy '${name}' with binding '${binding.name}'`;
  const does = (action: string): boolean => kind === 'validation' && binding.actions.has(action);
  const count = (action: Enforcement): void =>
    checks.validated(name, binding.name, message, action, tookMs);
  if (does('Warn')) {
    write.call.warn(`Validation failed for ${where}: ${message}`);
    count('warn');
  }
  if (does('Audit')) {
    const validationActions = Array.from(binding.actions);
    const entry = {
      message,
      policy: name,
      binding: binding.name,
      expressionIndex: index,
      validationActions,
    };
    write.call.annotate(FAILURE, JSON.stringify([entry]));
    count('audit');
  }
  if (kind === 'validation' && !binding.actions.has('Deny')) return null;
  if (kind !== 'configuration') count('deny');
  return denialOf(write, where, message, reason);
}

function denialOf(write: Admitted, where: string, message: string, reason: string): Status {
  const text = `${where} denied request: ${message}`;
  const status = forbidden(write.served.plural, writtenName(write), text, [{ message: text }]);
  return { ...status, reason, code: ownMember(CODES, reason) ?? 422 };
}

function violationsOf(
  checks: CheckMetrics,
  { policy, own }: Applicable<Checks>,
  binding: Binding,
  write: Admitted,
  common: Readonly<Record<string, CelValue | undefined>>,
): Violation[] {
  const failure = (message: string, kind: Violation['kind']): Violation[] =>
    policy.ignoresFailures ? [] : [{ index: 0, message, reason: 'Invalid', kind, tookMs: 0 }];
  const params = paramsOf(policy, binding, write);
  if (params.kind === 'none') return [];
  if (params.kind === 'failed') return failure(params.message, 'configuration');
  return params.all.flatMap((param) => {
    const value = param === null ? null : fromJson(shownObject(param));
    const evaluation = new Evaluation(policy, common, value);
    const matched = conditionsOf(checks, policy, write.operation, evaluation);
    if (matched.kind === 'skip') return [];
    if (matched.kind === 'failed') return failure(matched.message, 'validation');
    const unsaid = annotate(policy, own.annotations, evaluation, write);
    const judged = own.validations.map((one) => judgeOne(checks, one, evaluation));
    const violations = judged.flatMap((verdict, index): Violation[] => {
      if (verdict === null) return [];
      const { message, reason, tookMs, isError } = verdict;
      if (!isError || !policy.ignoresFailures) {
        return [{ index, message, reason, kind: 'validation', tookMs }];
      }
      checks.validated(policy.name, binding.name, message, 'allow', tookMs);
      return [];
    });
    return [...violations, ...unsaid];
  });
}

interface Verdict {
  readonly message: string;
  readonly reason: string;
  readonly tookMs: number;
  /** It could not be judged. */
  readonly isError: boolean;
}

/** Null where a validation holds. */
function judgeOne(
  checks: CheckMetrics,
  validation: Validation,
  evaluation: Evaluation,
): Verdict | null {
  const fromMs = checks.clockMs();
  const value = evaluation.evaluate(validation.expression);
  if (value === true) return null;
  const isError = value instanceof CelError;
  const message = isError ? value.message : messageOf(validation, evaluation);
  const reason = isError ? 'Invalid' : validation.reason;
  return { message, reason, tookMs: checks.clockMs() - fromMs, isError };
}

function messageOf(
  { expression, message, messageExpression }: Validation,
  evaluation: Evaluation,
): string {
  if (messageExpression !== null) {
    const value = evaluation.evaluate(messageExpression);
    const text = typeof value === 'string' ? value.trim() : '';
    const isShort = Buffer.byteLength(text) <= MESSAGE_BYTES_MAX;
    if (text !== '' && isShort && !text.includes('\n')) return text;
  }
  return message === '' ? `failed expression: ${expression.source.trim()}` : message;
}
