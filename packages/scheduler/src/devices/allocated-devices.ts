/** Devices that claims hold, by what the API server says and by what is under way. */
import { addAmounts, quantityOf, type Amounts } from './device-capacity.ts';
import { deviceId, type ResourceClaimObject } from './device-objects.ts';

export interface AllocatedDevices {
  /** Taken as a whole. */
  readonly whole: { has(id: string): boolean };
  /** Taken in part, by several claims. */
  readonly shared: ReadonlyMap<string, Amounts>;
}

/** A device that a claim holds; `share`: what of it, null for all. */
export interface Holding {
  readonly id: string;
  readonly driver: string;
  readonly pool: string;
  readonly share: Amounts | null;
}

/** All claims are asked about with each pod, and few have changed: a changed one is another one. */
const known = new WeakMap<ResourceClaimObject, readonly Holding[]>();

export function allocatedBy(claims: Iterable<ResourceClaimObject>): AllocatedDevices {
  const whole = new Set<string>();
  const shared = new Map<string, Amounts>();
  for (const claim of claims) {
    if (claim.status?.allocation === undefined) continue;
    for (const { id, share } of holdingsOf(claim)) {
      if (share === null) whole.add(id);
      else shared.set(id, addAmounts(shared.get(id) ?? new Map(), share, 1));
    }
  }
  return { whole, shared };
}

export function holdingsOf(claim: ResourceClaimObject): readonly Holding[] {
  let holdings = known.get(claim);
  if (holdings === undefined) known.set(claim, (holdings = findHoldings(claim)));
  return holdings;
}

/** Administrator's access takes nothing. */
function findHoldings({ status }: ResourceClaimObject): Holding[] {
  return (status?.allocation?.devices.results ?? [])
    .filter(({ adminAccess }) => adminAccess !== true)
    .map(({ driver, pool, device, shareID, consumedCapacity = {} }) => {
      const id = deviceId(driver, pool, device);
      const base = { id, driver, pool };
      if (shareID === undefined) return { ...base, share: null };
      const taken = Object.entries(consumedCapacity);
      return { ...base, share: new Map(taken.map(([name, amount]) => [name, quantityOf(amount)])) };
    });
}
