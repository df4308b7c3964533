/** The files that make machines: a catalogue for the simulated provider, a list of hosts. */
import { create } from '@bufbuild/protobuf';
import { isObject } from '@megaplane/machinery/json-value';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseQuantity } from '@megaplane/machinery/quantity';
import {
  CapacityType,
  HostRefSchema,
  MachineSchema,
  MachineState,
} from '../contract/tables/provider.ts';
import type { Machine } from '../contract/tables/provider.ts';

/** Slots of all offers together. */
export const SLOTS_MAX = 5_000_000;

const CAPACITY_TYPES = new Map<string, CapacityType>([
  ['BareMetal', CapacityType.BARE_METAL],
  ['Reserved', CapacityType.RESERVED],
  ['OnDemand', CapacityType.ON_DEMAND],
  ['Spot', CapacityType.SPOT],
]);

export interface Latency {
  readonly minMs: number;
  readonly maxMs: number;
  /** Share of these transitions that fails, 0 to 1. */
  readonly failures: number;
}

export interface Catalogue {
  readonly machines: readonly Machine[];
  /** Machines of an offer (`instanceType/zone/capacityType`) that exist at once, at most. */
  readonly stock: ReadonlyMap<string, number>;
  readonly latencies: Readonly<Record<'create' | 'configure' | 'drain' | 'delete', Latency>>;
}

/** Which offer a machine is of. */
export function offerOf({ instanceType, zone, capacityType }: Machine): string {
  return `${instanceType}/${zone}/${capacityType}`;
}

/**
 * Reads a catalogue: `offers`, each with `instanceType`, `zones`, `capacityType`, `slots` (in each
 * zone), `price`, `interruptionProbability`, `resources`, `labels`, `stock`; and `latencies` by
 * transition. Throws an `Error` that names what is wrong.
 */
export function readCatalogue(file: JsonValue): Catalogue {
  const machines: Machine[] = [];
  const stock = new Map<string, number>();
  for (const [index, offer] of listAt(file, 'offers').entries()) {
    const at = `offers[${index}]`;
    if (!isObject(offer)) throw new Error(`${at} is no object`);
    const slots = wholeAt(offer, 'slots', at);
    for (const zone of listAt(offer, 'zones')) {
      if (typeof zone !== 'string') throw new Error(`${at}.zones are no texts`);
      const model = machineOf(offer, at, zone);
      const limit = valueAt(offer, 'stock');
      if (limit !== undefined) stock.set(offerOf(model), wholeAt(offer, 'stock', at));
      if (machines.length + slots > SLOTS_MAX) throw new Error(`there are over ${SLOTS_MAX} slots`);
      for (let slot = 0; slot < slots; slot++) {
        const kind = stringAt(offer, 'capacityType').toLowerCase();
        const id = `${model.instanceType}-${zone}-${kind}-${slot}`.replaceAll(/[^a-z0-9.-]/g, '-');
        machines.push({ ...model, id, labels: { ...model.labels } });
      }
    }
  }
  const latency = (kind: string): Latency => readLatency(objectAt(file, 'latencies', kind), kind);
  return {
    ...{ machines, stock },
    latencies: {
      create: latency('create'),
      configure: latency('configure'),
      drain: latency('drain'),
      delete: latency('delete'),
    },
  };
}

/**
 * Reads a list of hosts: `machines`, each with `id`, `instanceType`, `zone`, `resources`, `labels`.
 * They are there, and nobody pays for them by the hour.
 */
export function readInventory(file: JsonValue): Machine[] {
  return listAt(file, 'machines').map((host, index) => {
    const at = `machines[${index}]`;
    if (!isObject(host)) throw new Error(`${at} is no object`);
    const id = stringAt(host, 'id');
    if (id === '') throw new Error(`${at} has no id`);
    const machine = machineOf({ capacityType: 'BareMetal', ...host }, at, stringAt(host, 'zone'));
    const ref = stringAt(host, 'host') || id;
    const hostRef = create(HostRefSchema, { provider: 'static', ref });
    return { ...machine, id, state: MachineState.IDLE, host: hostRef };
  });
}

function machineOf(from: JsonObject, at: string, zone: string): Machine {
  const instanceType = stringAt(from, 'instanceType');
  if (instanceType === '') throw new Error(`${at} has no instanceType`);
  const written = stringAt(from, 'capacityType');
  const capacityType = CAPACITY_TYPES.get(written);
  if (capacityType === undefined) {
    throw new Error(
      `${at}.capacityType ${written}: one of ${[...CAPACITY_TYPES.keys()].join(', ')}`,
    );
  }
  const pricePerHour = numberAt(from, 'price');
  if (!(pricePerHour >= 0 && pricePerHour < Infinity)) throw new Error(`${at}.price is negative`);
  const interruptionProbability = numberAt(from, 'interruptionProbability');
  if (!(interruptionProbability >= 0 && interruptionProbability <= 1)) {
    throw new Error(`${at}.interruptionProbability is not between 0 and 1`);
  }
  return create(MachineSchema, {
    ...{ state: MachineState.SPECULATIVE, instanceType, zone, capacityType },
    ...{ pricePerHour, interruptionProbability },
    resources: { resources: textsAt(from, 'resources', at, true) },
    labels: textsAt(from, 'labels', at, false),
  });
}

function textsAt(
  from: JsonObject,
  field: string,
  at: string,
  areQuantities: boolean,
): { [name: string]: string } {
  const texts: [string, string][] = [];
  for (const [name, value] of Object.entries(objectAt(from, field) ?? {})) {
    const text = typeof value === 'number' ? String(value) : value;
    if (typeof text !== 'string') throw new Error(`${at}.${field}[${name}] is no text`);
    if (areQuantities && typeof parseQuantity(text) === 'string') {
      throw new Error(`${at}.${field}[${name}]: ${text} is no quantity`);
    }
    texts.push([name, text]);
  }
  return Object.fromEntries(texts);
}

function wholeAt(from: JsonObject, field: string, at: string): number {
  const value = numberAt(from, field);
  if (!Number.isInteger(value) || value < 0) throw new Error(`${at}.${field} is no whole number`);
  return value;
}

function readLatency(from: JsonObject | undefined, kind: string): Latency {
  const minMs = numberAt(from, 'minMs');
  const maxMs = Math.max(minMs, numberAt(from, 'maxMs'));
  const failures = numberAt(from, 'failures');
  if (!(minMs >= 0) || !(failures >= 0 && failures <= 1)) {
    throw new Error(`latencies.${kind}: minMs is negative, or failures is not between 0 and 1`);
  }
  return { minMs, maxMs, failures };
}
