/**
 * Finds devices on one node for all requests of all claims of a pod: an exhaustive search with
 * backtracking, in the order of claims, requests, alternatives, pools, slices and devices. The
 * first solution is taken.
 */
import type { Matchable } from '../api/node-selector.ts';
import { addAmounts, takenCapacity, type Amounts } from '../devices/device-capacity.ts';
import type { AllocatedDevices } from '../devices/allocated-devices.ts';
import type { ConstraintState } from './device-constraints.ts';
import { PoolCounters } from './device-counters.ts';
import { deviceId, type Device, type DeviceDemand } from '../devices/device-objects.ts';
import { isForNode, type Pool, type Slice } from '../devices/device-pools.ts';
import { toleratesTaints } from './device-taints.ts';

/** Devices that one claim can hold (upstream's AllocationResultsMaxSize). */
export const CLAIM_DEVICES_MAX = 32;
/** Devices looked at in one search, before it is given up: seconds, as upstream's timeout. */
export const SEARCH_STEPS_MAX = 2_000_000;

/** A device in its pool. */
export interface Candidate {
  readonly id: string;
  readonly device: Device;
  readonly slice: Slice;
  readonly pool: Pool;
}

/** One way to satisfy a request: itself, or one of its alternatives. */
export interface Option {
  /** Of the request. */
  readonly request: string;
  /** `request`, or `request/alternative`. */
  readonly path: string;
  readonly demand: DeviceDemand;
  readonly className: string;
  readonly count: number;
  /** Mode All: exactly these. */
  readonly all: readonly Candidate[] | null;
  /** Whether selectors of class and request want a device; a text is the end of the search. */
  isWanted(candidate: Candidate): boolean | string;
}

export interface ClaimPlan {
  /** Namespace and name, for messages. */
  readonly text: string;
  readonly requests: readonly (readonly Option[])[];
  readonly constraints: readonly ConstraintState[];
}

/** A device that the search has taken. */
export interface Picked {
  readonly option: Option;
  readonly candidate: Candidate;
  /** Of a device that claims share: what this one takes. */
  readonly consumed: Amounts | null;
}

/** `full`: one more device than a claim can hold. */
type Outcome = 'found' | 'none' | 'full' | 'error';

export class DeviceSearch {
  /** Why the search ended with an error. */
  error = '';
  isOverTime = false;
  /** By claim. */
  readonly picked: Picked[][];
  readonly #plans: readonly ClaimPlan[];
  readonly #candidates: readonly Candidate[];
  readonly #node: Matchable;
  readonly #allocated: AllocatedDevices;
  /** Claims that are to hold a device. */
  readonly #taken = new Map<string, Set<number>>();
  readonly #shared = new Map<string, Amounts>();
  readonly #counters = new Map<Pool, PoolCounters>();
  #stepsLeft = SEARCH_STEPS_MAX;

  constructor(
    plans: readonly ClaimPlan[],
    pools: readonly Pool[],
    node: Matchable,
    allocated: AllocatedDevices,
  ) {
    this.#plans = plans;
    this.#candidates = pools.flatMap((pool) => [...candidatesOf(pool)]);
    this.#node = node;
    this.#allocated = allocated;
    this.picked = plans.map(() => []);
  }

  /** Whether there are devices for everything; `picked` then has them. */
  run(): boolean {
    const outcome = this.#claim(0);
    if (outcome === 'full') this.error = 'allocation max size exceeded';
    return outcome === 'found';
  }

  #claim(claim: number): Outcome {
    if (claim === this.#plans.length) return 'found';
    const outcome = this.#request(claim, 0);
    // Another choice for an earlier claim may let this one do with fewer devices.
    return outcome === 'full' && claim > 0 ? 'none' : outcome;
  }

  #request(claim: number, request: number): Outcome {
    const options = this.#plans[claim]?.requests[request];
    if (options === undefined) return this.#claim(claim + 1);
    let isFull = true;
    for (const option of options) {
      const outcome = this.#device(claim, request, option, 0);
      if (outcome === 'found' || outcome === 'error') return outcome;
      if (outcome !== 'full') isFull = false;
    }
    return isFull ? 'full' : 'none';
  }

  /** Devices of a request are taken in order, so none is looked at twice for it, shared or not. */
  #device(claim: number, request: number, option: Option, index: number, start = 0): Outcome {
    if (option.all?.length === 0) return 'none';
    if (index >= option.count) return this.#request(claim, request + 1);
    const held = this.picked[claim]?.length ?? 0;
    if (held + option.count - index > CLAIM_DEVICES_MAX) return 'full';
    if (option.all !== null) return this.#exactDevice(claim, request, option, index);
    for (let at = start; at < this.#candidates.length; at++) {
      const candidate = this.#candidates[at];
      if (candidate === undefined) break;
      if (--this.#stepsLeft < 0) {
        this.isOverTime = true;
        return 'error';
      }
      if (this.#isInUse(candidate, option, claim)) continue;
      const wanted = option.isWanted(candidate);
      if (typeof wanted === 'string') return this.#failWith(wanted);
      if (!wanted || !this.#isHere(candidate) || !this.#take(claim, option, candidate)) continue;
      const outcome = this.#device(claim, request, option, index + 1, at + 1);
      if (outcome === 'found') return outcome;
      this.#release(claim);
      if (outcome !== 'none') return outcome;
    }
    return 'none';
  }

  /** Of all devices the next one: if that cannot be had there is no solution. */
  #exactDevice(claim: number, request: number, option: Option, index: number): Outcome {
    const candidate = option.all?.[index];
    if (candidate === undefined || !this.#take(claim, option, candidate)) {
      return this.error === '' ? 'none' : 'error';
    }
    const outcome = this.#device(claim, request, option, index + 1);
    if (outcome !== 'found') this.#release(claim);
    return outcome;
  }

  #isHere({ device, slice }: Candidate): boolean {
    return slice.perDeviceNodeSelection !== true || isForNode(device, this.#node);
  }

  /** Administrators only may not have a device twice in one claim. */
  #isInUse({ id }: Candidate, { demand }: Option, claim: number): boolean {
    const takers = this.#taken.get(id);
    if (demand.adminAccess === true) return takers?.has(claim) ?? false;
    return this.#allocated.whole.has(id) || (takers !== undefined && takers.size > 0);
  }

  /** True if the device is now one of the claim's. */
  #take(claim: number, option: Option, candidate: Candidate): boolean {
    const { id, device, pool } = candidate;
    if (this.#isInUse(candidate, option, claim)) return false;
    if (!toleratesTaints(device.taints, option.demand.tolerations)) return false;
    const isShared = device.allowMultipleAllocations === true;
    const before = this.#sharedOf(id);
    const consumed = takenCapacity(option.demand.capacity, device.capacity, before);
    if (consumed === null) return false;
    // What is shared already has its counters.
    const countsAnew = !(isShared && (this.#allocated.shared.has(id) || this.#shared.has(id)));
    if (countsAnew && !this.#countersOf(pool).take(device)) return false;
    if (!this.#satisfies(claim, option, candidate)) {
      if (countsAnew) this.#countersOf(pool).giveBack(device);
      return false;
    }
    if (isShared) this.#shared.set(id, addAmounts(this.#shared.get(id) ?? new Map(), consumed, 1));
    else this.#takersOf(id).add(claim);
    this.picked[claim]?.push({ option, candidate, consumed: isShared ? consumed : null });
    return true;
  }

  #satisfies(claim: number, option: Option, candidate: Candidate): boolean {
    const plan = this.#plans[claim];
    const added: ConstraintState[] = [];
    for (const constraint of plan?.constraints ?? []) {
      if (!constraint.concerns(option.request, option.path)) continue;
      if (constraint.add(candidate.device, candidate.slice.driver)) {
        added.push(constraint);
        continue;
      }
      for (const one of added) one.undo();
      if (option.all !== null) {
        const what = `cannot add device ${candidate.id} because a claim constraint`;
        const name = option.path.slice(option.path.indexOf('/') + 1);
        this.error = `claim ${plan?.text ?? ''}, request ${name}: ${what} would not be satisfied`;
      }
      return false;
    }
    return true;
  }

  /** Gives back what the claim took last. */
  #release(claim: number): void {
    const last = this.picked[claim]?.pop();
    if (last === undefined) return;
    const { option, candidate, consumed } = last;
    const { id, device, pool } = candidate;
    for (const constraint of this.#plans[claim]?.constraints ?? []) {
      if (constraint.concerns(option.request, option.path)) constraint.undo();
    }
    this.#taken.get(id)?.delete(claim);
    let givesBack = true;
    if (consumed !== null) {
      const isLast = !this.picked.flat().some((other) => other.candidate.id === id);
      if (isLast) this.#shared.delete(id);
      else this.#shared.set(id, addAmounts(this.#shared.get(id) ?? new Map(), consumed, -1));
      givesBack = isLast && !this.#allocated.shared.has(id);
    }
    if (givesBack) this.#countersOf(pool).giveBack(device);
  }

  #sharedOf(id: string): Amounts {
    const before = this.#allocated.shared.get(id) ?? new Map();
    return addAmounts(before, this.#shared.get(id) ?? new Map(), 1);
  }

  #takersOf(id: string): Set<number> {
    let takers = this.#taken.get(id);
    if (takers === undefined) this.#taken.set(id, (takers = new Set()));
    return takers;
  }

  #countersOf(pool: Pool): PoolCounters {
    let counters = this.#counters.get(pool);
    if (counters === undefined) {
      counters = new PoolCounters(pool, this.#allocated.whole);
      this.#counters.set(pool, counters);
    }
    return counters;
  }

  #failWith(text: string): Outcome {
    this.error = text;
    return 'error';
  }
}

export function* candidatesOf(pool: Pool): Iterable<Candidate> {
  if (pool.state !== 'usable') return;
  for (const slice of pool.slices) {
    for (const device of slice.devices ?? []) {
      yield { id: deviceId(slice.driver, pool.name, device.name), device, slice, pool };
    }
  }
}
