/**
 * Pods and Nodes as expressions of kwok see them: structs of Go. A field that is left out has the
 * zero value of its type, `has()` says that it is not there, and quantities are numbers.
 */
import { parseTimestamp } from '@megaplane/machinery/cel/time-library';
import { fromJson } from '@megaplane/machinery/cel/json-values';
import {
  CelError,
  CelList,
  CelMap,
  CelObject,
  Timestamp,
  type CelValue,
} from '@megaplane/machinery/cel/values';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { parseQuantity } from '@megaplane/machinery/quantity';
import { findTypeOfKind, type Shape, type Type } from '@megaplane/machinery/schema';
import type { Scalar } from '@megaplane/machinery/zero-values';

/** The first of January of the year 1, which a `time.Time` is without a value. */
const YEAR_ONE = new Timestamp(-62_135_596_800_000_000_000n);

/** An object for expressions: a struct where it is a Pod or a Node, else as it stands. */
export function selfOf(object: JsonObject): CelValue {
  const { apiVersion, kind } = object;
  const isCore = apiVersion === 'v1' && (kind === 'Pod' || kind === 'Node');
  const type = isCore ? findTypeOfKind('v1', kind) : undefined;
  return type === undefined ? fromJson(object) : new GoStruct(object, type);
}

/** A quantity as a number; an error where the text is none. */
export function quantityOf(text: string): number | CelError {
  const parsed = parseQuantity(text);
  if (typeof parsed === 'string') return new CelError(`${text} is no quantity`);
  return Number(`${parsed.digits}e${parsed.scale}`);
}

/** Fields that are pointers in Go: nil, where they are left out. */
const POINTERS: ReadonlySet<string> = new Set(
  [
    ...['activeDeadlineSeconds', 'affinity', 'automountServiceAccountToken', 'dnsConfig'],
    ...['enableServiceLinks', 'hostUsers', 'hostnameOverride', 'os', 'preemptionPolicy'],
    ...['priority', 'resources', 'runtimeClassName', 'schedulingGroup', 'securityContext'],
    ...['setHostnameAsFQDN', 'shareProcessNamespace', 'terminationGracePeriodSeconds'],
  ]
    .map((name) => `core.v1.PodSpec.${name}`)
    .concat(
      ['lifecycle', 'livenessProbe', 'readinessProbe', 'restartPolicy', 'securityContext']
        .concat('startupProbe')
        .map((name) => `core.v1.Container.${name}`),
      ['extendedResourceClaimStatus', 'resources'].map((name) => `core.v1.PodStatus.${name}`),
      ['config', 'features'].map((name) => `core.v1.NodeStatus.${name}`),
      'core.v1.NodeSpec.configSource',
      'meta.v1.ObjectMeta.deletionGracePeriodSeconds',
    ),
);

/** See the head of the file. */
export class GoStruct extends CelObject {
  readonly json: JsonObject;
  readonly #type: Type;

  constructor(json: JsonObject, type: Type) {
    super();
    this.json = json;
    this.#type = type;
  }

  get typeName(): string {
    return this.#type.name;
  }

  field(name: string): CelValue | undefined {
    if (!Object.hasOwn(this.json, name)) return undefined;
    const value = this.json[name];
    const shape = this.#shapeOf(name);
    if (value === undefined || value === null || shape === undefined) return undefined;
    return valueOf(value, shape);
  }

  override zero(name: string): CelValue | undefined {
    const shape = this.#shapeOf(name);
    if (shape !== undefined && POINTERS.has(`${this.typeName}.${name}`)) return null;
    return shape === undefined ? undefined : zeroOf(shape);
  }

  fieldNames(): readonly string[] {
    return Object.keys(this.json).filter((name) => this.field(name) !== undefined);
  }

  #shapeOf(name: string): Shape | undefined {
    return this.#type.fields.find((field) => field.name === name)?.shape;
  }
}

class GoSlice extends CelList {
  readonly #json: readonly JsonValue[];
  readonly #items: Shape;

  constructor(json: readonly JsonValue[], items: Shape) {
    super();
    this.#json = json;
    this.#items = items;
  }

  get length(): number {
    return this.#json.length;
  }

  at(index: number): CelValue {
    return valueOf(this.#json[index] ?? null, this.#items);
  }
}

class GoMapping extends CelMap {
  readonly #json: JsonObject;
  readonly #values: Shape;

  constructor(json: JsonObject, values: Shape) {
    super();
    this.#json = json;
    this.#values = values;
  }

  get size(): number {
    return Object.keys(this.#json).length;
  }

  /** Of resources none is missing: there is nothing of those that are not named. */
  get(key: CelValue): CelValue | undefined {
    const isAmount = this.#values.kind === 'scalar' && this.#values.scalar === 'quantity';
    if (typeof key !== 'string') return undefined;
    if (!Object.hasOwn(this.#json, key)) return isAmount ? 0 : undefined;
    return valueOf(this.#json[key] ?? null, this.#values);
  }

  override has(key: CelValue): boolean {
    return typeof key === 'string' && Object.hasOwn(this.#json, key);
  }

  keys(): readonly string[] {
    return Object.keys(this.#json);
  }
}

function valueOf(value: JsonValue, shape: Shape): CelValue {
  if (value === null) return zeroOf(shape);
  switch (shape.kind) {
    case 'object':
      return isObject(value) ? new GoStruct(value, shape.type) : fromJson(value);
    case 'list':
      return Array.isArray(value) ? new GoSlice(value, shape.items) : fromJson(value);
    case 'map':
      return isObject(value) ? new GoMapping(value, shape.values) : fromJson(value);
    case 'scalar':
      return scalarOf(value, shape.scalar);
  }
}

function scalarOf(value: JsonValue, scalar: Scalar): CelValue {
  if (typeof value === 'string' && scalar === 'quantity') return quantityOf(value);
  const isTime = scalar === 'time' || scalar === 'microTime';
  return typeof value === 'string' && isTime ? parseTimestamp(value) : fromJson(value);
}

const EMPTY: JsonObject = {};

function zeroOf(shape: Shape): CelValue {
  switch (shape.kind) {
    case 'object':
      return new GoStruct(EMPTY, shape.type);
    case 'list':
      return new GoSlice([], shape.items);
    case 'map':
      return new GoMapping(EMPTY, shape.values);
    case 'scalar':
      return ZEROS[shape.scalar] ?? '';
  }
}

const ZEROS: Readonly<Record<string, CelValue>> = {
  int32: 0n,
  int64: 0n,
  quantity: 0,
  double: 0,
  bool: false,
  time: YEAR_ONE,
  microTime: YEAR_ONE,
};
