/** What `message-text.ts` knows of a type: which field a number is, and how it stands in JSON. */

import { WIRE_BYTES, WIRE_VARINT } from '@megaplane/wire/protobuf';
import { absentValue } from './normal-form.ts';
import type { Field, Omission, Scalar, Shape, Type } from './schema.ts';

/** How a value is read from a message and written as JSON. */
export const TEXT_STRING = 0;
export const TEXT_INT = 1;
export const TEXT_BOOL = 2;
export const TEXT_TIME = 3;
export const TEXT_MICRO_TIME = 4;
export const TEXT_RAW = 5;
export const TEXT_OBJECT = 6;

/** One value, one list of values, or one map of strings. */
export const TEXT_ONE = 0;
export const TEXT_LIST = 1;
export const TEXT_MAP = 2;

export interface TextField {
  /** Slot of the field in a message's row. */
  readonly slot: number;
  readonly form: number;
  readonly wireType: number;
  readonly op: number;
  /** Of `TEXT_OBJECT`. */
  readonly plan: TextPlan | undefined;
  /** `,"name":` */
  readonly open: Uint8Array;
  /** The same and the value, where it stands though the field is absent; may be empty. */
  readonly absent: Uint8Array;
  readonly omission: Omission;
}

export interface TextPlan {
  /** In the order of JSON. */
  readonly fields: TextField[];
  readonly byNumber: (TextField | undefined)[];
  /** False for types with shapes that only the slow way knows. */
  isKnown: boolean;
}

const OPS: ReadonlyMap<Scalar, number> = new Map<Scalar, number>([
  ['string', TEXT_STRING],
  ['int32', TEXT_INT],
  ['int64', TEXT_INT],
  ['bool', TEXT_BOOL],
  ['time', TEXT_TIME],
  ['microTime', TEXT_MICRO_TIME],
  ['fieldsV1', TEXT_RAW],
]);

const encoder = new TextEncoder();
const plans = new Map<Type, TextPlan>();

/** The plan of a type, made when first asked for. */
export function textPlanOf(type: Type): TextPlan {
  let plan = plans.get(type);
  if (plan !== undefined) return plan;
  plan = { fields: [], byNumber: [], isKnown: true };
  plans.set(type, plan);
  for (const field of type.fields.toSorted(ownersFirst)) {
    const made = fieldOf(field, plan.fields.length);
    if (made === undefined || made.plan?.isKnown === false) {
      plan.isKnown = false;
      return plan;
    }
    plan.fields.push(made);
    plan.byNumber[field.number] = made;
  }
  return plan;
}

/** Stored objects, and so answers, begin with the owners of their fields. */
function ownersFirst(left: Field, right: Field): number {
  return Number(right.name === 'managedFields') - Number(left.name === 'managedFields');
}

function fieldOf(field: Field, slot: number): TextField | undefined {
  const { name, number, within, shape, omission } = field;
  if (number === 0 || within.length > 0 || (shape.kind === 'list' && shape.isMessage)) {
    return undefined;
  }
  const inner = shape.kind === 'list' ? shape.items : shape.kind === 'map' ? shape.values : shape;
  const op = opOf(inner);
  if (op === undefined || (shape.kind === 'map' && op !== TEXT_STRING)) return undefined;
  const isNumber = op === TEXT_INT || op === TEXT_BOOL;
  // lists of numbers may be packed
  if (isNumber && shape.kind === 'list') return undefined;
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
    open: encoder.encode(open),
    absent: encoder.encode(absent),
    omission,
  };
}

function opOf(shape: Shape): number | undefined {
  if (shape.kind === 'object') return TEXT_OBJECT;
  return shape.kind === 'scalar' ? OPS.get(shape.scalar) : undefined;
}
