/** What `transcode.ts` knows of a type: where each key goes, and how each field is written. */

import { EncodedValueCache } from './encoded-value-cache.ts';
import { MessageEncoder } from './protobuf-encode.ts';
import type { Field, Shape, Type } from '../scheme/schema.ts';
import type { Scalar } from '../scheme/zero-values.ts';

/** How a value is read from JSON bytes and written to protobuf. */
export const OP_STRING = 0;
export const OP_INT = 1;
export const OP_BOOL = 2;
export const OP_BYTES = 3;
export const OP_TIME = 4;
export const OP_MICRO_TIME = 5;
export const OP_QUANTITY = 6;
export const OP_INT_OR_STRING = 7;
export const OP_RAW = 8;
export const OP_OBJECT = 9;

/** One value, one list of values, or one map of values. */
export const FORM_ONE = 0;
export const FORM_LIST = 1;
export const FORM_MAP = 2;

/** Where a key may follow: the beginning of an object, or another key. */
export interface KeyPlace {
  /** The key that followed last. */
  next: FieldPlan | undefined;
}

export interface FieldPlan extends KeyPlace {
  /** Slot of the field in an object's row. */
  readonly slot: number;
  readonly number: number;
  readonly form: number;
  readonly op: number;
  /** Of `OP_OBJECT`. */
  readonly plan: TypePlan | undefined;
  readonly key: Uint8Array;
  /** `"key":` */
  readonly opening: Uint8Array;
  /** What is written, tag and all, where the field is absent; may be empty. */
  readonly absent: Uint8Array;
  /** True where it is not. */
  readonly isWritten: boolean;
  /** What came last, of fields that have more than a number or a text. */
  readonly known: EncodedValueCache | null;
}

/** A step of writing: a field, or a message of fields that JSON has inline. In descending order. */
export interface StepPlan {
  readonly number: number;
  readonly field: FieldPlan | undefined;
  readonly inner: readonly StepPlan[];
}

export interface TypePlan {
  readonly type: Type;
  readonly slots: number;
  readonly start: KeyPlace;
  readonly fields: FieldPlan[];
  /** Open addressing by `hashOf`; entries are indices into `fields` plus one. */
  table: Uint8Array;
  steps: readonly StepPlan[];
  /** False for types with shapes that only the slow way knows. */
  isKnown: boolean;
}

const OPS: ReadonlyMap<Scalar, number> = new Map<Scalar, number>([
  ['string', OP_STRING],
  ['int32', OP_INT],
  ['int64', OP_INT],
  ['bool', OP_BOOL],
  ['bytes', OP_BYTES],
  ['time', OP_TIME],
  ['microTime', OP_MICRO_TIME],
  ['quantity', OP_QUANTITY],
  ['intOrString', OP_INT_OR_STRING],
  ['raw', OP_RAW],
  ['json', OP_RAW],
  ['fieldsV1', OP_RAW],
]);

export const OBJECT_META = 'meta.v1.ObjectMeta';

const NOTHING = new Uint8Array(0);
const plans = new Map<Type, TypePlan>();
const encoder = new MessageEncoder();

/** Spreads short keys well enough: length, first, middle and last byte. */
export function hashOf(length: number, first: number, middle: number, last: number): number {
  return (length * 7 + first * 31 + middle * 131 + last * 17) >>> 0;
}

/** The plan of a type, made when first asked for. */
export function planOf(type: Type): TypePlan {
  let plan = plans.get(type);
  if (plan !== undefined) return plan;
  plan = {
    type,
    slots: type.fields.length,
    start: { next: undefined },
    fields: [],
    table: NOTHING,
    steps: [],
    isKnown: true,
  };
  plans.set(type, plan);
  for (const [slot, field] of type.fields.entries()) {
    const fieldPlan = fieldPlanOf(field, slot);
    if (fieldPlan === undefined) {
      plan.isKnown = false;
      return plan;
    }
    if (fieldPlan.plan?.isKnown === false) plan.isKnown = false;
    plan.fields.push(fieldPlan);
  }
  plan.table = tableOf(plan.fields);
  plan.steps = stepsOf(type.fields, plan.fields, 0);
  return plan;
}

function fieldPlanOf(field: Field, slot: number): FieldPlan | undefined {
  const { shape } = field;
  if (shape.kind === 'list' && shape.isMessage) return undefined;
  const inner = shape.kind === 'list' ? shape.items : shape.kind === 'map' ? shape.values : shape;
  const op = opOf(inner);
  if (op === undefined) return undefined;
  const plan = inner.kind === 'object' ? planOf(inner.type) : undefined;
  const form = shape.kind === 'list' ? FORM_LIST : shape.kind === 'map' ? FORM_MAP : FORM_ONE;
  const key = new TextEncoder().encode(field.name);
  const absent = field.isPointer ? NOTHING : encoder.absentField(field.number, shape);
  const opening = new TextEncoder().encode(`"${field.name}":`);
  const isWritten = absent.length > 0;
  const { number } = field;
  // revisions are put into metadata, which is another one each time anyway
  const isLarge = (form !== FORM_ONE || op === OP_OBJECT) && plan?.type.name !== OBJECT_META;
  const known = isLarge ? new EncodedValueCache() : null;
  return { slot, number, form, op, plan, key, opening, absent, isWritten, known, next: undefined };
}

function opOf(shape: Shape): number | undefined {
  if (shape.kind === 'object') return OP_OBJECT;
  return shape.kind === 'scalar' ? OPS.get(shape.scalar) : undefined;
}

function tableOf(fields: readonly FieldPlan[]): Uint8Array {
  let size = 4;
  while (size < fields.length * 2) size *= 2;
  const table = new Uint8Array(size);
  for (const [index, { key }] of fields.entries()) {
    const middle = key[key.length >> 1] ?? 0;
    const last = key.at(-1) ?? 0;
    let at = hashOf(key.length, key[0] ?? 0, middle, last) & (size - 1);
    while (table[at] !== 0) at = (at + 1) & (size - 1);
    table[at] = index + 1;
  }
  return table;
}

function stepsOf(
  fields: readonly Field[],
  plans: readonly FieldPlan[],
  depth: number,
): readonly StepPlan[] {
  const steps: StepPlan[] = [];
  const groups = new Map<number, number[]>();
  for (const [index, field] of fields.entries()) {
    const around = field.within[depth];
    if (around === undefined) {
      if (field.number === 0) continue;
      steps.push({ number: field.number, field: plans[index], inner: [] });
    } else groups.set(around, [...(groups.get(around) ?? []), index]);
  }
  for (const [number, members] of groups) {
    const some = members.flatMap((index) => fields[index] ?? []);
    const somePlans = members.flatMap((index) => plans[index] ?? []);
    steps.push({ number, field: undefined, inner: stepsOf(some, somePlans, depth + 1) });
  }
  return steps.toSorted((left, right) => right.number - left.number);
}
