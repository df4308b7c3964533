/**
 * Which devices bear NoExecute taints, and when the users of a claim have to go for it. Of a pool
 * only the slices of its newest generation count.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import { taintOf, tolerates } from '../framework/tolerations.ts';

const EFFECT = 'NoExecute';

interface SliceTaints {
  readonly generation: number;
  /** By name of the device; only devices that have such taints. */
  readonly taints: ReadonlyMap<string, readonly JsonValue[]>;
}

export class DeviceTaints {
  /** By pool, then by name of the slice. */
  readonly #pools: Map<string, Map<string, SliceTaints>> = new Map();

  /** A slice has come, changed or gone; true where taints of its pool may be others now. */
  setSlice(name: string, after: JsonObject | undefined, before: JsonObject | undefined): boolean {
    const pool = poolOfSlice(after ?? before ?? {});
    const hadTaints = this.#hasTaints(pool);
    const slices = this.#pools.get(pool) ?? new Map<string, SliceTaints>();
    if (after === undefined) slices.delete(name);
    else slices.set(name, taintsOf(after));
    if (slices.size === 0) this.#pools.delete(pool);
    else this.#pools.set(pool, slices);
    return hadTaints || this.#hasTaints(pool);
  }

  #hasTaints(pool: string): boolean {
    return [...(this.#pools.get(pool)?.values() ?? [])].some(({ taints }) => taints.size > 0);
  }

  #taintsOfDevice(pool: string, device: string): readonly JsonValue[] {
    const slices = [...(this.#pools.get(pool)?.values() ?? [])];
    const newest = slices.reduce((most, one) => Math.max(most, one.generation), -Infinity);
    const own = slices.find((one) => one.generation === newest && one.taints.has(device));
    return own?.taints.get(device) ?? [];
  }

  /** When those who use an allocated claim must go; Infinity where they may stay. */
  evictionMs(claim: JsonObject): number {
    let soonestMs = Infinity;
    for (const device of devicesOf(claim)) {
      const tolerations = listAt(device, 'tolerations');
      for (const taint of this.#taintsOfDevice(poolOfDevice(device), stringAt(device, 'device'))) {
        const added = parseTime(stringAt(taint, 'timeAdded'));
        if (added === undefined) continue;
        const seconds = toleratedSeconds(tolerations, taint);
        soonestMs = Math.min(soonestMs, (added.seconds + seconds) * 1000);
      }
    }
    return soonestMs;
  }
}

/** What was allocated to a claim. */
export function devicesOf(claim: JsonObject): readonly JsonValue[] {
  return listAt(claim, 'status', 'allocation', 'devices', 'results');
}

export function poolOfDevice(device: JsonValue): string {
  return `${stringAt(device, 'driver')} ${stringAt(device, 'pool')}`;
}

export function poolOfSlice(slice: JsonObject): string {
  return `${stringAt(slice, 'spec', 'driver')} ${stringAt(slice, 'spec', 'pool', 'name')}`;
}

function taintsOf(slice: JsonObject): SliceTaints {
  const taints = new Map<string, readonly JsonValue[]>();
  for (const device of listAt(slice, 'spec', 'devices')) {
    const own = listAt(device, 'taints').filter((one) => stringAt(one, 'effect') === EFFECT);
    if (own.length > 0) taints.set(stringAt(device, 'name'), own);
  }
  return { generation: numberAt(slice, 'spec', 'pool', 'generation'), taints };
}

/** 0 where nobody tolerates it; of several limits the shortest, unless one has none. */
function toleratedSeconds(tolerations: readonly JsonValue[], taint: JsonValue): number {
  let seconds = Infinity;
  let isTolerated = false;
  for (const toleration of tolerations) {
    if (stringAt(toleration, 'effect') !== EFFECT) continue;
    if (!tolerates(toleration, taintOf(taint))) continue;
    const limit = valueAt(toleration, 'tolerationSeconds');
    if (typeof limit !== 'number') return Infinity;
    seconds = Math.min(seconds, Math.max(0, limit));
    isTolerated = true;
  }
  return isTolerated ? seconds : 0;
}
