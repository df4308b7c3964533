/** What `message-text.ts` knows of a type: which field a number is, and how it stands in JSON. */

import { WIRE_BYTES, WIRE_VARINT } from '@megaplane/wire/protobuf';
import { absentValue } from '../scheme/normal-form.ts';
import type { Field, Omission, Shape, Type } from '../scheme/schema.ts';
import type { Scalar } from '../scheme/zero-values.ts';

/** How a value is read from a message and written as JSON. */
export const TEXT_STRING = 0;
export const TEXT_INT = 1;
export const TEXT_BOOL = 2;
export const TEXT_TIME = 3;
export const TEXT_MICRO_TIME = 4;
export const TEXT_RAW = 5;
export const TEXT_OBJECT = 6;
export const TEXT_QUANTITY = 7;
export const TEXT_INT_OR_STRING = 8;

/** One value, one list of values, or one map of strings or quantities. */
export const TEXT_ONE = 0;
export const TEXT_LIST = 1;
export const TEXT_MAP = 2;
/** A message around fields that JSON has inline. */
export const TEXT_AROUND = 3;

/** Fields by their numbers. */
export type TextNumbers = (TextField | undefined)[];

export interface TextField {
  /** Slot of the field in a message's row. */
  readonly slot: number;
  readonly form: number;
  readonly wireType: number;
  readonly op: number;
  /** Of `TEXT_OBJECT`. */
  readonly plan: TextPlan | undefined;
  /** Of `TEXT_AROUND`: its fields, which have their slots in the row of the message around it. */
  readonly inside: TextNumbers;
  /** `,"name":` */
  readonly open: Uint8Array;
  /** The same and the value, where it stands though the field is absent; may be empty. */
  readonly absent: Uint8Array;
  readonly omission: Omission;
}

export interface TextPlan {
  /** In the order of JSON. */
  readonly fields: TextField[];
  /** Without those whose shape only the slow way knows. */
  readonly byNumber: TextNumbers;
}

const OPS: ReadonlyMap<Scalar, number> = new Map<Scalar, number>([
  ['string', TEXT_STRING],
  ['int32', TEXT_INT],
  ['int64', TEXT_INT],
  ['bool', TEXT_BOOL],
  ['time', TEXT_TIME],
  ['microTime', TEXT_MICRO_TIME],
  ['fieldsV1', TEXT_RAW],
  ['quantity', TEXT_QUANTITY],
  ['intOrString', TEXT_INT_OR_STRING],
]);
const NOTHING_INSIDE: TextNumbers = [];

const encoder = new TextEncoder();
const plans = new Map<Type, TextPlan>();

/** The plan of a type, made when first asked for. */
export function textPlanOf(type: Type): TextPlan {
  let plan = plans.get(type);
  if (plan !== undefined) return plan;
  plan = { fields: [], byNumber: [] };
  plans.set(type, plan);
  for (const field of type.fields.toSorted(ownersFirst)) {
    const made = fieldOf(field, plan.fields.length);
    plan.fields.push(made);
    if (!isKnown(field)) continue;
    let numbers = plan.byNumber;
    for (const number of field.within) numbers = (numbers[number] ??= aroundOf(made)).inside;
    numbers[field.number] = made;
  }
  return plan;
}

function aroundOf(field: TextField): TextField {
  return { ...field, form: TEXT_AROUND, wireType: WIRE_BYTES, inside: [] };
}

/** Stored objects, and so answers, begin with the owners of their fields. */
function ownersFirst(left: Field, right: Field): number {
  return Number(right.name === 'managedFields') - Number(left.name === 'managedFields');
}

function isKnown({ number, shape }: Field): boolean {
  if (number === 0 || (shape.kind === 'list' && shape.isMessage)) return false;
  const op = opOf(innerOf(shape));
  if (shape.kind === 'map') return op === TEXT_STRING || op === TEXT_QUANTITY;
  return op !== undefined;
}

function innerOf(shape: Shape): Shape {
  return shape.kind === 'list' ? shape.items : shape.kind === 'map' ? shape.values : shape;
}

function fieldOf(field: Field, slot: number): TextField {
  const { name, shape, omission } = field;
  const inner = innerOf(shape);
  const op = opOf(inner) ?? TEXT_STRING;
  // lists of numbers that are packed have another wire type than this
  const isNumber = op === TEXT_INT || op === TEXT_BOOL;
  const form = shape.kind === 'list' ? TEXT_LIST : shape.kind === 'map' ? TEXT_MAP : TEXT_ONE;
  const open = `,${JSON.stringify(name)}:`;
  const value = absentValue(field);
  const absent = value === undefined ? '' : open + JSON.stringify(value);
  return {
    slot,
    form,
    wireType: isNumber ? WIRE_VARINT : WIRE_BYTES,
    op,
    plan: inner.kind === 'object' ? textPlanOf(inner.type) : undefined,
    inside: NOTHING_INSIDE,
    open: encoder.encode(open),
    absent: encoder.encode(absent),
    omission,
  };
}

function opOf(shape: Shape): number | undefined {
  if (shape.kind === 'object') return TEXT_OBJECT;
  return shape.kind === 'scalar' ? OPS.get(shape.scalar) : undefined;
}
