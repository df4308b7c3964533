/**
 * CEL as the API server uses it: compile once, evaluate often, within a budget.
 *
 * A program is compiled for an environment (which variables there are and of which types) and is
 * kept by its text. Evaluation never throws; it gives a value or an error with cel-go's words.
 */
import { AUTHORIZER_LIBRARY } from './library/authorizer-library.ts';
import { check } from './checker.ts';
import { estimateCost } from './cost/cost-estimate.ts';
import type { CostRange } from './cost/cost-range.ts';
import { compileTree } from './evaluator.ts';
import { OVER_BUDGET, type Bindings, type Frame, type Step } from './steps.ts';
import { literalTypeIssues } from './literal-types.ts';
import { formatIssue } from './format-check.ts';
import { FORMAT_LIBRARY, PATCH_LIBRARY } from './library/format-library.ts';
import { tableOf, type FunctionTable, type Library } from './values/functions.ts';
import { forgetKeys } from './values/json-values.ts';
import { LIST_LIBRARY, SET_LIBRARY } from './library/list-library.ts';
import { CIDR_LIBRARY, IP_LIBRARY, URL_LIBRARY } from './library/network-library.ts';
import { OPTIONAL_LIBRARY } from './library/optional-library.ts';
import { parseCel } from './syntax/parser.ts';
import { QUANTITY_LIBRARY, SEMVER_LIBRARY } from './library/quantity-library.ts';
import { compilePattern, withPatternSteps, REGEX_LIBRARY } from './library/regex-library.ts';
import { STANDARD_LIBRARY } from './library/standard-library.ts';
import { STRING_LIBRARY } from './library/string-library.ts';
import { issueText, partsOf, type Expr, type Issue } from './syntax/syntax.ts';
import { parseCelDuration, parseTimestamp, TIME_LIBRARY } from './values/time-library.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaque,
  STRING,
  TIMESTAMP,
  typeOf,
  UINT,
  type CelType,
} from './values/typing.ts';
import { CelError, type CelValue } from './values/values.ts';
import type { Checked, Environment, StructType } from './syntax/environment.ts';

/** Units that one evaluation of one expression may cost (upstream's PerCallLimit). */
export const CALL_COST_MAX = 1_000_000;
/** Units for all rules together on one object (upstream's RuntimeCELCostBudget). */
export const OBJECT_COST_MAX = 10_000_000;
/** Units for all match conditions of one request. */
export const MATCH_CONDITIONS_COST_MAX = 2_500_000;
/** Units that one rule of a schema may be estimated at, and all rules of one CRD. */
export const RULE_ESTIMATE_MAX = 10_000_000;
export const SCHEMA_ESTIMATE_MAX = 100_000_000;

/** Every function that Kubernetes gives to expressions everywhere. */
const LIBRARIES: readonly Library[] = [
  ...STANDARD_LIBRARY,
  ...TIME_LIBRARY,
  ...LIST_LIBRARY,
  ...FORMAT_LIBRARY,
  STRING_LIBRARY,
  REGEX_LIBRARY,
  SET_LIBRARY,
  OPTIONAL_LIBRARY,
  URL_LIBRARY,
  IP_LIBRARY,
  CIDR_LIBRARY,
  QUANTITY_LIBRARY,
  SEMVER_LIBRARY,
  AUTHORIZER_LIBRARY,
];
const FUNCTIONS: FunctionTable = tableOf(LIBRARIES);
const PATCH_FUNCTIONS: FunctionTable = tableOf([...LIBRARIES, PATCH_LIBRARY]);

const TYPES: ReadonlyMap<string, CelType> = new Map([
  ['bool', BOOL],
  ['bytes', BYTES],
  ['double', DOUBLE],
  ['google.protobuf.Duration', DURATION],
  ['google.protobuf.Timestamp', TIMESTAMP],
  ['int', INT],
  ['list', listOf(DYN)],
  ['map', mapOf(DYN, DYN)],
  ['null_type', NULL],
  ['string', STRING],
  ['type', typeOf(DYN)],
  ['uint', UINT],
  ['optional_type', opaque('optional_type', DYN)],
  ['net.IP', opaque('net.IP')],
  ['net.CIDR', opaque('net.CIDR')],
  ['kubernetes.Quantity', opaque('kubernetes.Quantity')],
  ['kubernetes.URL', opaque('kubernetes.URL')],
  ['kubernetes.Semver', opaque('kubernetes.Semver')],
]);

/** What differs between environments. */
export interface EnvironmentOptions {
  readonly variables: Readonly<Record<string, CelType>>;
  readonly structs?: (name: string) => StructType | undefined;
  /** Default true, as Kubernetes has it: lists and maps of one type of members. */
  readonly isHomogeneous?: boolean;
  /** `cel.bind(x, value, body)`, which only selectors of devices have. */
  readonly canBind?: boolean;
  /** Functions for those who make JSON patches. */
  readonly makesPatches?: boolean;
}

const noStructs = (): undefined => undefined;

/** An environment; make one for many programs. */
export function celEnvironment(options: EnvironmentOptions): Environment {
  return {
    variables: new Map(Object.entries(options.variables)),
    functions: options.makesPatches === true ? PATCH_FUNCTIONS : FUNCTIONS,
    types: TYPES,
    structs: options.structs ?? noStructs,
    isHomogeneous: options.isHomogeneous ?? true,
    canBind: options.canBind ?? false,
  };
}

export interface Evaluation {
  readonly value: CelValue;
  /** Units that were used, also where the value is an error. */
  readonly cost: number;
}

/** A compiled expression. */
export class Program {
  readonly source: string;
  readonly type: CelType;
  readonly #step: Step;
  readonly #estimate: () => CostRange;
  /** Variables of the environment that the expression names. */
  readonly variables: ReadonlySet<string>;

  constructor(
    source: string,
    type: CelType,
    step: Step,
    estimate: () => CostRange,
    variables: ReadonlySet<string>,
  ) {
    this.source = source;
    this.type = type;
    this.#step = step;
    this.#estimate = estimate;
    this.variables = variables;
  }

  /** Least and most units that the types allow an evaluation to cost. */
  estimate(): CostRange {
    return this.#estimate();
  }

  /** Evaluates with at most `costMax` units. */
  evaluate(bindings: Bindings, costMax: number = CALL_COST_MAX): Evaluation {
    forgetKeys();
    const frame: Frame = { bindings, slots: [], cost: 0, costMax };
    const value = withPatternSteps(() => this.#step(frame));
    return { value: frame.cost > costMax ? OVER_BUDGET : value, cost: frame.cost };
  }
}

/** Why an expression cannot be used; `program`: it checks, but a constant part of it fails. */
export interface Uncompiled {
  readonly ok: false;
  readonly message: string;
  readonly kind: 'syntax' | 'type' | 'program';
  /** What it would give, where that is known. */
  readonly type?: CelType;
}

/** What failed, in upstream's words. */
export function failureText({ kind, message }: Uncompiled): string {
  const stage = kind === 'program' ? 'program instantiation' : 'compilation';
  return `${stage} failed: ${message}`;
}

export type Compiled = { readonly ok: true; readonly program: Program } | Uncompiled;

/** Environments keep this many programs each; the oldest goes first. */
const PROGRAMS_MAX = 2000;
const kept = new WeakMap<Environment, Map<string, Compiled>>();

/** Compiles an expression, or finds it compiled. The message names line and column. */
export function compileCel(environment: Environment, source: string): Compiled {
  let programs = kept.get(environment);
  if (programs === undefined) kept.set(environment, (programs = new Map()));
  const known = programs.get(source);
  if (known !== undefined) return known;
  const compiled = compile(environment, source);
  if (programs.size >= PROGRAMS_MAX) programs.delete(programs.keys().next().value ?? '');
  programs.set(source, compiled);
  return compiled;
}

function compile(environment: Environment, source: string): Compiled {
  const parsed = parseCel(source, environment.canBind);
  if (!parsed.ok) return { ok: false, kind: 'syntax', message: issueText(source, parsed.issues) };
  const outcome = check(parsed.expr, environment);
  if (!outcome.ok) return { ok: false, kind: 'type', message: issueText(source, outcome.issues) };
  const issues = literalIssues(parsed.expr, outcome.checked);
  if (environment.isHomogeneous) issues.push(...literalTypeIssues(parsed.expr, outcome.checked));
  if (issues.length > 0) return { ok: false, kind: 'type', message: issueText(source, issues) };
  const { type, checked } = outcome;
  const { step, failure } = compileTree(parsed.expr, checked, environment);
  if (step === null) return { ok: false, kind: 'program', message: failure, type };
  const variables = new Set(
    Array.from(checked.names.values()).filter((name) => environment.variables.has(name)),
  );
  const estimate = (): CostRange => estimateCost(parsed.expr, checked, environment);
  return { ok: true, program: new Program(source, type, step, estimate, variables) };
}

/** Texts of patterns, durations and times that can be looked at before anything runs. */
const LITERALS: Readonly<Record<string, (text: string) => string>> = {
  matches: (text) => {
    const pattern = compilePattern(text);
    return pattern.ok ? '' : 'invalid matches argument';
  },
  duration: (text) =>
    parseCelDuration(text) instanceof CelError ? 'invalid duration argument' : '',
  timestamp: (text) =>
    parseTimestamp(text) instanceof CelError ? 'invalid timestamp argument' : '',
};

function literalIssues(root: Expr, checked: Checked): Issue[] {
  const issues: Issue[] = [];
  const visit = (expr: Expr): void => {
    for (const part of partsOf(expr)) visit(part);
    if (expr.kind !== 'call') return;
    const format = formatIssue(expr, checked);
    if (format !== null) issues.push(format);
    const last = expr.args.at(-1);
    const checkLiteral = Object.hasOwn(LITERALS, expr.name) ? LITERALS[expr.name] : undefined;
    if (checkLiteral === undefined || last?.kind !== 'constant') return;
    const isNumber = expr.name === 'duration' && typeof last.value === 'bigint';
    if (isNumber) issues.push({ at: last.at, message: 'invalid duration argument' });
    if (typeof last.value !== 'string') return;
    const message = checkLiteral(last.value);
    if (message !== '') issues.push({ at: last.at, message });
  };
  visit(root);
  return issues;
}
