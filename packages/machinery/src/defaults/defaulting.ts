/**
 * Fills in what a client left out, as upstream does for each version of each type.
 *
 * Rules hang on types, not on kinds: a rule of `core.v1.Container` runs for each container wherever
 * one is, in a pod, a template or a template of a template. An object's own rules run before those
 * of its parts. A new kind gets its defaults by entries in the tables of `defaults-*.ts`; nothing
 * else has to be said. /
 */

import { ownMember, putMember } from '@megaplane/base/members';
import { ADMISSION_DEFAULTS } from './defaults-cluster.ts';
import { CORE_DEFAULTS } from './defaults-core.ts';
import { WORKLOAD_DEFAULTS } from './defaults-workloads.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import { findTypeOfKind, type Field, type Type } from '../scheme/schema.ts';
import { isVoid } from '../scheme/empty-collections.ts';
import type { DefaultRules, DefaultRule } from './default-rules.ts';

/** Types in which no defaults are, and that contain themselves. */
const CLOSED_TYPES: readonly string[] = ['apiextensions.v1.JSONSchemaProps'];

interface Part {
  readonly name: string;
  readonly kind: 'object' | 'list' | 'map' | 'quantities';
  readonly plan: Plan;
}

/** What to do with objects of one type; compiled when the type is first met. */
interface Plan {
  readonly constants: readonly (readonly [field: Field, value: JsonValue])[];
  readonly step: ((object: JsonObject) => void) | undefined;
  readonly parts: readonly Part[];
}

/** Groups whose amounts of resources stay as exact as they come. */
const UNROUNDED = /^(node|resource)\./;

const NOTHING: Plan = { constants: [], step: undefined, parts: [] };
const rules: DefaultRules = { ...CORE_DEFAULTS, ...WORKLOAD_DEFAULTS, ...ADMISSION_DEFAULTS };
const plans = new Map<Type, Plan>();
const ruleOfType = new Map<Type, DefaultRule | undefined>();

/** An alpha or beta version has the rules of the first stable one, unless it has its own. */
function ruleOf(type: Type): DefaultRule | undefined {
  if (ruleOfType.has(type)) return ruleOfType.get(type);
  const stable = type.name.replace(/\.v\d+(alpha|beta)\d+\./, '.v1.');
  const found = ownMember(rules, type.name) ?? ownMember(rules, stable);
  ruleOfType.set(type, found);
  return found;
}

/**
 * Fills in the defaults of an object in normal form, in place. Kinds without rules are left alone.
 */
export function applyDefaults(object: JsonObject): void {
  const { apiVersion, kind } = object;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return;
  const type = findTypeOfKind(apiVersion, kind);
  if (type === undefined) return;
  applyPlan(planOf(type), object);
  ruleOf(type)?.whole?.(object);
}

/** The same for a part of an object, by its type. */
export function applyTypeDefaults(type: Type, object: JsonObject): void {
  applyPlan(planOf(type), object);
}

/** Fills in what an object itself lacks, in place; not what its parts lack. */
export function applyOwnDefaults(type: Type, object: JsonObject): void {
  ruleOf(type)?.step?.(object);
}

function planOf(type: Type): Plan {
  const known = plans.get(type);
  if (known !== undefined) return known;
  if (CLOSED_TYPES.includes(type.name)) return NOTHING;
  const rule = ruleOf(type);
  const parts: Part[] = [];
  for (const field of type.fields) {
    const part = partOf(field);
    if (part === undefined) continue;
    if (part.kind !== 'quantities' || !UNROUNDED.test(type.name)) parts.push(part);
  }
  const constants = Object.entries(rule?.values ?? {}).map(([name, value]) => {
    const field = type.field(name);
    if (field === undefined) throw new Error(`defaults: ${type.name} has no field ${name}`);
    return [field, value] as const;
  });
  const isEmpty = constants.length === 0 && rule?.step === undefined && parts.length === 0;
  const plan = isEmpty ? NOTHING : { constants, step: rule?.step, parts };
  plans.set(type, plan);
  return plan;
}

function partOf(field: Field): Part | undefined {
  const shape = field.shape;
  if (shape.kind === 'scalar') return undefined;
  if (shape.kind === 'object') {
    const plan = planOf(shape.type);
    return plan === NOTHING ? undefined : { name: field.name, kind: 'object', plan };
  }
  const inner = shape.kind === 'list' ? shape.items : shape.values;
  if (shape.kind === 'map' && inner.kind === 'scalar' && inner.scalar === 'quantity') {
    return { name: field.name, kind: 'quantities', plan: NOTHING };
  }
  if (inner.kind !== 'object') return undefined;
  const plan = planOf(inner.type);
  return plan === NOTHING ? undefined : { name: field.name, kind: shape.kind, plan };
}

function applyPlan(plan: Plan, object: JsonObject): void {
  for (const [field, value] of plan.constants) {
    if (isUnset(field, ownMember(object, field.name))) putMember(object, field.name, copied(value));
  }
  plan.step?.(object);
  for (const part of plan.parts) {
    const value = ownMember(object, part.name);
    if (value === undefined || value === null) continue;
    if (part.kind === 'object') {
      if (isObject(value)) applyPlan(part.plan, value);
    } else if (part.kind === 'list') {
      if (Array.isArray(value)) applyEach(part.plan, value);
    } else if (part.kind === 'map') {
      if (isObject(value)) applyEach(part.plan, Object.values(value));
    } else if (isObject(value)) roundQuantities(value);
  }
}

function applyEach(plan: Plan, values: readonly (JsonValue | undefined)[]): void {
  for (const value of values) if (isObject(value)) applyPlan(plan, value);
}

/** A pointer's zero is a value; a plain field's zero is absence, as are an empty list or map. */
function isUnset(field: Field, value: JsonValue | undefined): boolean {
  if (isVoid(value)) return true;
  return !field.isPointer && (value === '' || value === 0 || value === false);
}

function copied(value: JsonValue): JsonValue {
  return typeof value === 'object' ? (structuredClone(value) as JsonValue) : value;
}

/** Amounts of resources below a thousandth are rounded up. */
function roundQuantities(amounts: JsonObject): void {
  for (const name of Object.keys(amounts)) {
    const text = amounts[name];
    if (typeof text !== 'string' || !/[nu.e]/.test(text)) continue;
    const amount = parseQuantity(text);
    if (typeof amount === 'string' || amount.isExact(-3)) continue;
    amounts[name] = new Quantity(amount.scaled(-3), -3, amount.format).toString();
  }
}
