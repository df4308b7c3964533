/** Policies of both kinds with their bindings: what they are about, and with which parameters. */
import { admissionEnvironment } from '@megaplane/machinery/cel/admission-environment';
import { compileCel, OBJECT_COST_MAX, type Program } from '@megaplane/machinery/cel/program';
import { DYN, type CelType } from '@megaplane/machinery/cel/typing';
import { CelError, CelObject, type CelValue } from '@megaplane/machinery/cel/values';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import type { CheckMetrics } from '../webhook/check-metrics.ts';
import { FollowedObjects } from '../../lister/followed-objects.ts';
import { readConditions, type MatchCondition, type Matched } from '../webhook/match-conditions.ts';
import {
  isExempt,
  isNamed,
  isRuleFor,
  isSelected,
  readSelectors,
  rulesAt,
  targetOf,
  type ResourceRule,
  type Selectors,
} from '../webhook/matching.ts';
import { writtenName } from '../../registry/rest/refusal.ts';
import type { Environment } from '@megaplane/machinery/environment';
import type { Admitted } from '../../registry/rest/admitted.ts';

/** `matchConstraints` of a policy, or `matchResources` of a binding. */
export interface MatchResources {
  readonly rules: readonly ResourceRule[];
  readonly excluded: readonly ResourceRule[];
  readonly isEquivalent: boolean;
  readonly selectors: Selectors;
}

export interface Binding {
  readonly name: string;
  readonly policyName: string;
  /** Null: everything that the policy is about. */
  readonly match: MatchResources | null;
  readonly paramRef: JsonObject | null;
  readonly actions: ReadonlySet<string>;
}

/** One expression; `program` is null where it does not compile. */
export interface Expression {
  readonly source: string;
  readonly program: Program | null;
  readonly failure: string;
}

export interface Policy {
  readonly name: string;
  readonly object: JsonObject;
  readonly match: MatchResources;
  readonly paramKind: { readonly apiVersion: string; readonly kind: string } | null;
  readonly conditions: readonly MatchCondition[];
  readonly variables: readonly { readonly name: string; readonly expression: Expression }[];
  /** Sees the variables too. */
  readonly environment: Environment;
  readonly ignoresFailures: boolean;
}

export function readExpression(environment: Environment, source: string): Expression {
  const compiled = compileCel(environment, source);
  if (compiled.ok) return { source, program: compiled.program, failure: '' };
  return { source, program: null, failure: `compilation error: ${compiled.message}` };
}

function readMatch(match: JsonObject): MatchResources {
  return {
    rules: rulesAt(match, 'resourceRules'),
    excluded: rulesAt(match, 'excludeResourceRules'),
    isEquivalent: stringAt(match, 'matchPolicy') !== 'Exact',
    selectors: readSelectors(match),
  };
}

function readPolicy(object: JsonObject, makesPatches: boolean): Policy {
  const spec = objectAt(object, 'spec') ?? {};
  const kind = objectAt(spec, 'paramKind');
  const hasParams = kind !== undefined;
  const types = new Map<string, CelType>();
  const variables = listAt(spec, 'variables').map((variable) => {
    const name = stringAt(variable, 'name');
    const environment = admissionEnvironment({
      hasParams,
      makesPatches,
      variables: new Map(types),
    });
    const expression = readExpression(environment, stringAt(variable, 'expression'));
    types.set(name, expression.program?.type ?? DYN);
    return { name, expression };
  });
  return {
    name: stringAt(object, 'metadata', 'name'),
    object,
    match: readMatch(objectAt(spec, 'matchConstraints') ?? {}),
    paramKind:
      kind === undefined
        ? null
        : { apiVersion: stringAt(kind, 'apiVersion'), kind: stringAt(kind, 'kind') },
    conditions: readConditions(spec, hasParams),
    variables,
    environment: admissionEnvironment({ hasParams, makesPatches, variables: types }),
    ignoresFailures: stringAt(spec, 'failurePolicy') === 'Ignore',
  };
}

function readBinding(object: JsonObject): Binding {
  const spec = objectAt(object, 'spec') ?? {};
  const match = objectAt(spec, 'matchResources');
  const actions = listAt(spec, 'validationActions').filter((one) => typeof one === 'string');
  return {
    name: stringAt(object, 'metadata', 'name'),
    policyName: stringAt(spec, 'policyName'),
    match: match === undefined ? null : readMatch(match),
    paramRef: objectAt(spec, 'paramRef') ?? null,
    actions: new Set(actions),
  };
}

/** A policy of type T for a kind of write: the version to show, and the bindings. */
export interface Applicable<T> {
  readonly policy: Policy;
  readonly own: T;
  readonly target: Served;
  readonly rules: readonly ResourceRule[];
  readonly bindings: readonly Binding[];
}

/** All policies of one kind, read when they change and matched once for each kind of write. */
export class Policies<T> {
  readonly #policies: FollowedObjects<{ readonly policy: Policy; readonly own: T }>;
  readonly #bindings: FollowedObjects<Binding>;
  #matching = new WeakMap<Served, Map<string, readonly Applicable<T>[]>>();
  #generation = '';

  /** `read` takes from a policy what its kind has beyond the other. */
  constructor(world: World, kind: string, makesPatches: boolean, read: (policy: Policy) => T) {
    const group = 'admissionregistration.k8s.io';
    this.#policies = new FollowedObjects(world, group, `${kind}admissionpolicies`, (object) => {
      const policy = readPolicy(object, makesPatches);
      return { policy, own: read(policy) };
    });
    const plural = `${kind}admissionpolicybindings`;
    this.#bindings = new FollowedObjects(world, group, plural, readBinding);
  }

  /** Those with a rule for this kind of write, by name. */
  for(write: Pick<Admitted, 'served' | 'operation' | 'subresource'>): readonly Applicable<T>[] {
    const policies = this.#policies.all();
    if (policies.length === 0) return [];
    const bindings = this.#bindings.all();
    if (bindings.length === 0 || isExempt(write.served)) return [];
    const generation = `${this.#policies.generation}/${this.#bindings.generation}`;
    if (this.#generation !== generation) {
      this.#generation = generation;
      this.#matching = new WeakMap();
    }
    const { served, operation, subresource } = write;
    let own = this.#matching.get(served);
    if (own === undefined) this.#matching.set(served, (own = new Map()));
    const key = `${operation}/${subresource}`;
    let found = own.get(key);
    if (found === undefined) {
      found = policies.flatMap(({ policy, own: more }) => {
        const { rules, isEquivalent } = policy.match;
        const hit = targetOf(rules, isEquivalent, served, operation, subresource);
        const bound = bindings.filter(({ policyName }) => policyName === policy.name);
        if (hit === null || bound.length === 0) return [];
        return [{ policy, own: more, target: hit.target, rules: hit.rules, bindings: bound }];
      });
      own.set(key, found);
    }
    return found;
  }
}

/** Whether a policy is about this very object. */
export function isAbout({ policy, rules }: Applicable<unknown>, write: Admitted): boolean {
  if (!isNamed(rules, writtenName(write))) return false;
  return isIncluded(policy.match, write);
}

/** Whether a binding narrows the policy down to other objects than this one. */
export function isBound({ match }: Binding, write: Admitted): boolean {
  if (match === null) return true;
  const { served, operation, subresource } = write;
  if (match.rules.length > 0) {
    const hit = targetOf(match.rules, match.isEquivalent, served, operation, subresource);
    if (hit === null || !isNamed(hit.rules, writtenName(write))) return false;
  }
  return isIncluded(match, write);
}

function isIncluded({ excluded, selectors }: MatchResources, write: Admitted): boolean {
  const { served, operation, subresource } = write;
  const hits = excluded.filter((rule) => isRuleFor(rule, served, operation, subresource));
  if (hits.length > 0 && isNamed(hits, writtenName(write))) return false;
  return isSelected(selectors, write);
}

/** Values of one evaluation of a policy; what it costs goes down from a common budget. */
export class Evaluation {
  readonly bindings: Readonly<Record<string, CelValue | undefined>>;
  #left = OBJECT_COST_MAX;

  constructor(
    policy: Policy,
    common: Readonly<Record<string, CelValue | undefined>>,
    params: CelValue | undefined,
  ) {
    const variables = new LazyVariables(policy, (expression) => this.#run(expression));
    this.bindings = { ...common, params, variables };
  }

  /** The value, or an error in upstream's words. */
  evaluate(expression: Expression): CelValue {
    const value = this.#run(expression);
    if (value instanceof CelError && value !== EXHAUSTED) {
      return new CelError(resultedIn(expression.source, value.message));
    }
    return value;
  }

  #run({ program, failure }: Expression): CelValue {
    if (this.#left <= 0) return EXHAUSTED;
    if (program === null) return new CelError(failure);
    const { value, cost } = program.evaluate(this.bindings);
    this.#left -= cost;
    return this.#left < 0 ? EXHAUSTED : value;
  }
}

/** Whether the conditions of a policy hold. */
export function conditionsOf(
  checks: CheckMetrics,
  { name, conditions }: Policy,
  operation: string,
  evaluation: Evaluation,
): Matched {
  const owner = { kind: 'policy', type: 'validate', name } as const;
  return checks.matched(owner, operation, conditions, () => evaluation.bindings);
}

function resultedIn(source: string, message: string): string {
  return `expression '${source}' resulted in error: ${message}`;
}

const EXHAUSTED = new CelError(
  'validation failed due to running out of cost budget, no further validation rules will be run',
);

/** `variables`: each is evaluated when it is first asked for, and then known. */
class LazyVariables extends CelObject {
  readonly typeName = 'kubernetes.variables';
  readonly #expressions: ReadonlyMap<string, Expression>;
  readonly #values = new Map<string, CelValue>();
  readonly #evaluate: (expression: Expression) => CelValue;

  constructor({ variables }: Policy, evaluate: (expression: Expression) => CelValue) {
    super();
    this.#expressions = new Map(variables.map(({ name, expression }) => [name, expression]));
    this.#evaluate = evaluate;
  }

  field(name: string): CelValue | undefined {
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const expression = this.#expressions.get(name);
    if (expression === undefined) return undefined;
    const value = this.#evaluate(expression);
    const kept =
      value instanceof CelError
        ? new CelError(`composited variable "${name}" fails to evaluate: ${value.message}`)
        : value;
    this.#values.set(name, kept);
    return kept;
  }

  fieldNames(): readonly string[] {
    return Array.from(this.#expressions.keys());
  }
}
