/**
 * One Stage of kwok (`kwok.x-k8s.io/v1alpha1`), compiled: when it plays, after what delay, with
 * which weight, and the steps that it takes. The rules are those of kwok v0.8.
 */
import { ownMember } from '@megaplane/base/members';
import { parseTimestamp } from '@megaplane/machinery/cel/time-library';
import {
  CelError,
  Duration,
  Timestamp,
  Uint,
  type CelValue,
} from '@megaplane/machinery/cel/values';
import type { Program } from '@megaplane/machinery/cel/program';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { selfOf } from '../cel/go-struct.ts';
import type { JqQuery } from '../jq/jq.ts';
import type { Template } from '../gotemplate/template-run.ts';
import { durationMs, wholeNumberOf } from '../yaml/go-numbers.ts';

export type SelectorOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

/** One condition on the object. */
export type StageCondition =
  | {
      readonly kind: 'jq';
      readonly query: JqQuery;
      readonly operator: SelectorOperator;
      readonly values: readonly string[];
    }
  | { readonly kind: 'cel'; readonly program: Program };

/** Where a number of a stage comes from, when not from the stage itself. */
export type StageSource =
  | { readonly kind: 'jq'; readonly query: JqQuery }
  | { readonly kind: 'cel'; readonly program: Program };

export type StageStep =
  | {
      readonly kind: 'event';
      readonly type: 'Normal' | 'Warning';
      readonly reason: string;
      readonly message: string;
    }
  | {
      readonly kind: 'finalizers';
      readonly add: readonly string[];
      readonly remove: readonly string[];
      readonly isEmpty: boolean;
    }
  | { readonly kind: 'delete' }
  | {
      readonly kind: 'patch';
      /** '' takes the default of the kind. */
      readonly type: 'json' | 'merge' | 'strategic' | '';
      readonly subresource: string;
      readonly root: string;
      readonly template: Template;
      /** User to act as; '' for ourselves. */
      readonly user: string;
    }
  | {
      readonly kind: 'apply';
      readonly type: 'apply' | 'merge' | 'strategic';
      readonly subresource: string;
      readonly template: Template;
      /** User to act as; '' for ourselves. */
      readonly user: string;
    };

export interface StageDelay {
  readonly durationMs: number;
  readonly durationFrom: StageSource | null;
  /** null: no jitter. */
  readonly jitterMs: number | null;
  readonly jitterFrom: StageSource | null;
}

export interface Stage {
  readonly name: string;
  /** Where it stands: `FILE:LINE:COLUMN` of its resource. */
  readonly place: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly conditions: readonly StageCondition[];
  readonly weight: number;
  readonly weightFrom: StageSource | null;
  readonly delay: StageDelay | null;
  readonly steps: readonly StageStep[];
  /** Look for the next stage at once, in what the server answered. */
  readonly isImmediate: boolean;
  /** Without a selector: it is for no object, but stands for its kind. */
  readonly isIdle: boolean;
}

/** An object, with what stages look up in it again and again. */
export class StageSubject {
  readonly object: JsonObject;
  readonly labels: JsonObject;
  readonly annotations: JsonObject;
  #bindings: { readonly self: CelValue } | undefined;

  constructor(object: JsonObject) {
    this.object = object;
    const metadata = isObject(object['metadata']) ? object['metadata'] : {};
    this.labels = isObject(metadata['labels']) ? metadata['labels'] : {};
    this.annotations = isObject(metadata['annotations']) ? metadata['annotations'] : {};
  }

  /** The variables of a CEL expression. */
  get bindings(): { readonly self: CelValue } {
    this.#bindings ??= { self: selfOf(this.object) };
    return this.#bindings;
  }
}

/** A CEL expression that fails keeps its object from every stage, as in kwok. */
export class StageError extends Error {}

/** Whether the stage is for the object as it is now; throws a StageError. */
export function isCandidate(stage: Stage, subject: StageSubject): boolean {
  const hasAll = (wanted: Readonly<Record<string, string>>, held: JsonObject): boolean =>
    Object.entries(wanted).every(([name, value]) => ownMember(held, name) === value);
  return (
    !stage.isIdle &&
    hasAll(stage.labels, subject.labels) &&
    hasAll(stage.annotations, subject.annotations) &&
    stage.conditions.every((condition) => isMet(condition, subject))
  );
}

function isMet(condition: StageCondition, subject: StageSubject): boolean {
  if (condition.kind === 'cel') {
    const value = evaluated(condition.program, subject);
    if (typeof value !== 'boolean') throw new StageError('a CEL selector gives no bool');
    return value;
  }
  const { operator, values } = condition;
  const { counts } = condition.query;
  const found = condition.query.run(subject.object) ?? [];
  switch (operator) {
    case 'In':
      return found.some((value) => isOneOf(value, values, counts));
    case 'NotIn':
      return !found.some((value) => isOneOf(value, values, counts));
    case 'Exists':
      return found.some((value) => value !== null);
    case 'DoesNotExist':
      return found.every((value) => value === null);
  }
}

/** As kwok: a number is one of `values` where it was counted, never where the object holds it. */
function isOneOf(value: JsonValue, values: readonly string[], counts: boolean): boolean {
  const isNumber = counts && typeof value === 'number' && Number.isInteger(value);
  if (!isNumber && typeof value !== 'string' && typeof value !== 'boolean') return false;
  return values.includes(String(value));
}

function evaluated(program: Program, subject: StageSubject): unknown {
  const { value } = program.evaluate(subject.bindings);
  if (value instanceof CelError) throw new StageError(value.message);
  return value;
}

/** The weight; undefined where `weightFrom` gives something that is no weight. */
export function weightOf(stage: Stage, subject: StageSubject): number | undefined {
  const { weight, weightFrom } = stage;
  if (weightFrom === null) return weight;
  if (weightFrom.kind === 'cel') {
    const value = evaluated(weightFrom.program, subject);
    if (value instanceof Duration) return Number(value.nanos);
    const number = numberOf(typeof value === 'boolean' ? BigInt(value) : value);
    if (number === undefined) throw new StageError('weightFrom gives no number');
    return Math.trunc(number);
  }
  const [first] = weightFrom.query.run(subject.object) ?? [];
  if (typeof first === 'number') return Math.trunc(first);
  return typeof first === 'string' ? wholeNumberOf(first) : weight;
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Uint) return Number(value.value);
  return typeof value === 'number' ? value : undefined;
}

/**
 * The stage that plays for an object: the only candidate, or one of them by chance in proportion
 * to their weights; undefined without one. `below(n)` gives a whole number from 0 to n - 1.
 */
export function chooseStage(
  stages: readonly Stage[],
  subject: StageSubject,
  below: (n: number) => number,
): Stage | undefined {
  const candidates = stages.filter((stage) => isCandidate(stage, subject));
  if (candidates.length <= 1) return candidates[0];
  const weights = candidates.map((stage) => weightOf(stage, subject));
  const known = candidates.filter((_, index) => weights[index] !== undefined);
  const total = weights.reduce<number>((sum, weight) => sum + Math.max(0, weight ?? 0), 0);
  if (known.length === 0) return candidates[below(candidates.length)];
  if (total === 0) return known[below(known.length)];
  let left = below(total);
  for (const [index, stage] of candidates.entries()) {
    left -= Math.max(0, weights[index] ?? 0);
    if (left < 0) return stage;
  }
  return candidates.at(-1);
}

/**
 * How long after `nowMs` a stage plays. With a jitter the delay lies between duration and jitter;
 * a jitter that is no longer than the duration *is* the delay, which kwok's own files rely on.
 */
export function delayOf(
  stage: Stage,
  subject: StageSubject,
  nowMs: number,
  random: () => number,
): number {
  const { delay } = stage;
  if (delay === null) return 0;
  const duration = sourceMs(delay.durationFrom, delay.durationMs, subject, nowMs);
  if (duration === undefined) return 0;
  if (delay.jitterMs === null && delay.jitterFrom === null) return Math.max(0, duration);
  const jitter = sourceMs(delay.jitterFrom, delay.jitterMs, subject, nowMs);
  if (jitter === undefined) return Math.max(0, duration);
  if (jitter <= duration) return Math.max(0, jitter);
  return Math.max(0, duration + Math.floor(random() * (jitter - duration)));
}

function sourceMs(
  source: StageSource | null,
  fallback: number | null,
  subject: StageSubject,
  nowMs: number,
): number | undefined {
  if (source === null) return fallback ?? undefined;
  if (source.kind === 'cel') {
    const value = evaluated(source.program, subject);
    if (value instanceof Duration) return Number(value.nanos / 1_000_000n);
    if (value instanceof Timestamp) return Number(value.nanos / 1_000_000n) - nowMs;
    const given = typeof value === 'string' ? durationMs(value) : nanosMs(numberOf(value));
    if (given === undefined) throw new StageError('a delay in CEL gives no duration');
    return given;
  }
  const [first] = source.query.run(subject.object) ?? [];
  if (typeof first !== 'string') return fallback ?? undefined;
  if (first === '') return undefined;
  const time = parseTimestamp(first);
  if (time instanceof Timestamp) return Number(time.nanos / 1_000_000n) - nowMs;
  return durationMs(first) ?? fallback ?? undefined;
}

/** A number of CEL is one of nanoseconds, as a duration of Go. */
function nanosMs(nanos: number | undefined): number | undefined {
  return nanos === undefined ? undefined : nanos / 1e6;
}
