/** Reads the spec of a CapacityRequest: which row it belongs to, and what it adds there. */
import { isObject } from '@megaplane/machinery/json-value';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { Quantity } from '@megaplane/machinery/quantity';
import { groupOf } from '../contract/group.ts';
import { approximate, bucketOfDollars } from '../contract/penalty.ts';
import { canonicalProfile, fingerprintOf, operatorOf, withSame } from '../contract/profile.ts';
import type { Profile, Requirement, Spread } from '../contract/profile.ts';
import {
  PenaltyBucket,
  TopologySpread_WhenUnsatisfiable as WhenUnsatisfiable,
} from '../contract/tables/capacity.ts';

/** What one request adds to which row. */
export interface Shape {
  /** Canonical; with `Same` where there is a group. */
  readonly profile: Profile;
  readonly fingerprint: string;
  readonly group: string;
  readonly resources: ReadonlyMap<string, Quantity>;
}

/** Why a request cannot be part of a roll-up: reason and message of a condition. */
export interface Refusal {
  readonly reason: 'UnknownOperator' | 'MalformedQuantity' | 'MalformedSpec' | 'TooManySpecs';
  readonly message: string;
}

export interface ShapeOptions {
  /** Keeps gangs of this namespace apart from others; '' as the reference does. */
  readonly groupNamespace: string;
}

const INT32_MAX = 2 ** 31 - 1;

/** The shape of a request by its `spec`, which anybody may have written. */
export function readShape(spec: JsonValue | undefined, options: ShapeOptions): Shape | Refusal {
  if (!isObject(spec)) return malformed('spec is no object');
  const requirements = requirementsOf(spec);
  if ('reason' in requirements) return requirements;
  const resources = resourcesOf(spec);
  if ('reason' in resources) return resources;
  const interruption = bucketAt(spec, 'interruptionPenalty');
  if (typeof interruption === 'object') return interruption;
  const reclamation = bucketAt(spec, 'reclamationPenalty');
  if (typeof reclamation === 'object') return reclamation;
  const priority = numberAt(spec, 'priority');
  if (!isInt32(priority)) return malformed(`spec.priority is ${priority}, no 32-bit integer`);
  const spread = spreadOf(spec);
  if ('reason' in spread) return spread;
  const coLocation = objectAt(spec, 'coLocation');
  const group = groupOf(coLocation, options.groupNamespace);
  let profile: Profile = {
    requirements,
    spread,
    priority,
    interruptionBucket: interruption,
    reclamationBucket: reclamation,
  };
  if (group !== '') profile = withSame(profile, stringAt(coLocation, 'topologyKey'));
  profile = canonicalProfile(profile);
  return { profile, fingerprint: fingerprintOf(profile), group, resources };
}

export function isRefusal(found: Shape | Refusal): found is Refusal {
  return 'reason' in found;
}

function malformed(message: string): Refusal {
  return { reason: 'MalformedSpec', message };
}

function isInt32(value: number): boolean {
  return Number.isInteger(value) && value <= INT32_MAX && value >= -INT32_MAX - 1;
}

function requirementsOf(spec: JsonObject): Requirement[] | Refusal {
  const requirements: Requirement[] = [];
  for (const [index, item] of listAt(spec, 'requirements').entries()) {
    const written = stringAt(item, 'operator');
    const operator = operatorOf(written);
    const at = `spec.requirements[${index}]`;
    if (operator === undefined) {
      const message = `${at}: ${JSON.stringify(written)} on ${stringAt(item, 'key')}: `;
      const known = 'a fleet knows In, NotIn, Exists and DoesNotExist';
      return { reason: 'UnknownOperator', message: message + known };
    }
    const values: string[] = [];
    for (const value of listAt(item, 'values')) {
      if (typeof value !== 'string') return malformed(`${at}.values are no texts`);
      values.push(value);
    }
    requirements.push({ key: stringAt(item, 'key'), operator, values });
  }
  return requirements;
}

/** Constraints that may be broken are no business of machines. */
function spreadOf(spec: JsonObject): Spread[] | Refusal {
  const spread: Spread[] = [];
  for (const [index, item] of listAt(spec, 'topologySpread').entries()) {
    if (stringAt(item, 'whenUnsatisfiable') !== 'DoNotSchedule') continue;
    const maxSkew = numberAt(item, 'maxSkew');
    if (!isInt32(maxSkew)) {
      return malformed(`spec.topologySpread[${index}].maxSkew is ${maxSkew}, no 32-bit integer`);
    }
    const topologyKey = stringAt(item, 'topologyKey');
    spread.push({ topologyKey, maxSkew, whenUnsatisfiable: WhenUnsatisfiable.DO_NOT_SCHEDULE });
  }
  return spread;
}

function resourcesOf(spec: JsonObject): ReadonlyMap<string, Quantity> | Refusal {
  const resources = new Map<string, Quantity>();
  for (const [name, value] of Object.entries(objectAt(spec, 'resources') ?? {})) {
    const quantity = quantityOf(value);
    if (quantity === undefined) return badQuantity(`spec.resources[${name}]`, value);
    resources.set(name, quantity);
  }
  return resources;
}

function bucketAt(spec: JsonObject, field: string): PenaltyBucket | Refusal {
  const value = valueAt(spec, field);
  if (value === undefined || value === null) return PenaltyBucket.UNSPECIFIED;
  const quantity = quantityOf(value);
  if (quantity === undefined) return badQuantity(`spec.${field}`, value);
  return bucketOfDollars(approximate(quantity));
}

function badQuantity(at: string, value: JsonValue | undefined): Refusal {
  return { reason: 'MalformedQuantity', message: `${at}: ${JSON.stringify(value)} is no quantity` };
}

/** Quantities are written as texts or as numbers. */
function quantityOf(value: JsonValue | undefined): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const quantity = parseQuantity(typeof value === 'number' ? String(value) : value.trim());
  return typeof quantity === 'string' ? undefined : quantity;
}
