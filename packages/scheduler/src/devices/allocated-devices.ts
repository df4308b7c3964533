/** Devices that claims hold, by what the API server says and by what is under way. */
import { addAmounts, quantityOf, type Amounts } from './device-capacity.ts';
import { deviceId, type ResourceClaimObject } from './device-objects.ts';

export interface AllocatedDevices {
  /** Taken as a whole. */
  readonly whole: ReadonlySet<string>;
  /** Taken in part, by several claims. */
  readonly shared: ReadonlyMap<string, Amounts>;
}

/** Claims with administrator's access take nothing. */
export function allocatedBy(claims: Iterable<ResourceClaimObject>): AllocatedDevices {
  const whole = new Set<string>();
  const shared = new Map<string, Amounts>();
  for (const { status } of claims) {
    for (const result of status?.allocation?.devices.results ?? []) {
      if (result.adminAccess === true) continue;
      const id = deviceId(result.driver, result.pool, result.device);
      if (result.shareID === undefined) {
        whole.add(id);
        continue;
      }
      const taken = Object.entries(result.consumedCapacity ?? {}).map(
        ([name, amount]) => [name, quantityOf(amount)] as const,
      );
      shared.set(id, addAmounts(shared.get(id) ?? new Map(), new Map(taken), 1));
    }
  }
  return { whole, shared };
}
