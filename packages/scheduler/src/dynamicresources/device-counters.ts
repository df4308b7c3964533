/** Counters that partitions of a device share: what is left of them in a pool (KEP-4815). */
import { Quantity } from '@megaplane/machinery/quantity';
import type { AllocatedDevices } from '../devices/allocated-devices.ts';
import { quantityOf } from '../devices/device-capacity.ts';
import { deviceId, type Device } from '../devices/device-objects.ts';
import type { Pool } from '../devices/device-pools.ts';

const ZERO = new Quantity(0n, 0, 'DecimalSI');
const counterKey = (set: string, counter: string): string => `${set} ${counter}`;

function* consumed({ consumesCounters = [] }: Device): Iterable<[string, Quantity]> {
  for (const { counterSet, counters = {} } of consumesCounters) {
    for (const [name, { value }] of Object.entries(counters)) {
      yield [counterKey(counterSet, name), quantityOf(value)];
    }
  }
}

/** The counters of one pool during one search. */
export class PoolCounters {
  readonly #left = new Map<string, Quantity>();

  /** Devices in `whole` have taken theirs already. */
  constructor(pool: Pool, whole: AllocatedDevices['whole']) {
    if (pool.counterSets.length === 0) return;
    for (const { name, counters = {} } of pool.counterSets) {
      for (const [counter, { value }] of Object.entries(counters)) {
        this.#left.set(counterKey(name, counter), quantityOf(value));
      }
    }
    for (const { driver, pool: own, devices = [] } of [...pool.slices, ...pool.others]) {
      for (const device of devices) {
        if (whole.has(deviceId(driver, own.name, device.name))) this.#change(device, -1);
      }
    }
  }

  /**
   * False, and nothing taken, if some counter has too little left: any counter of the pool, as
   * upstream. One that is overdrawn already means that nothing of the pool is what it says.
   */
  take(device: Device): boolean {
    if ((device.consumesCounters ?? []).length === 0) return true;
    this.#change(device, -1);
    for (const left of this.#left.values()) {
      if (left.compare(ZERO) >= 0) continue;
      this.#change(device, 1);
      return false;
    }
    return true;
  }

  giveBack(device: Device): void {
    this.#change(device, 1);
  }

  #change(device: Device, sign: 1 | -1): void {
    for (const [key, amount] of consumed(device)) {
      const left = this.#left.get(key) ?? ZERO;
      this.#left.set(key, sign === 1 ? left.add(amount) : left.subtract(amount));
    }
  }
}
