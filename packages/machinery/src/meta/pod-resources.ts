/** What a pod asks for: of its containers, one by one and together. */
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import { parseQuantity, type Quantity } from './quantity.ts';

/** Amounts by the name of the resource. */
export type Amounts = Map<string, Quantity>;

export function amountsOf(value: JsonValue | undefined): Amounts {
  const amounts: Amounts = new Map();
  if (!isObject(value)) return amounts;
  for (const [name, text] of Object.entries(value)) {
    const amount = quantityOf(text);
    if (amount !== null) amounts.set(name, amount);
  }
  return amounts;
}

function quantityOf(value: JsonValue | undefined): Quantity | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const parsed = parseQuantity(String(value));
  return typeof parsed === 'string' ? null : parsed;
}

/** Adds `more` to `total`. */
export function addAmounts(total: Amounts, more: Amounts): void {
  for (const [name, amount] of more) {
    const own = total.get(name);
    total.set(name, own === undefined ? amount : own.add(amount));
  }
}

/** The larger of both, by resource. */
function raise(total: Amounts, other: Amounts): void {
  for (const [name, amount] of other) {
    const own = total.get(name);
    if (own === undefined || own.compare(amount) < 0) total.set(name, amount);
  }
}

type Side = 'requests' | 'limits';

export function containerAmounts(container: JsonValue, side: Side): Amounts {
  return amountsOf(objectAt(container, 'resources', side));
}

/**
 * What the scheduler and quotas count for a pod: its containers and sidecars together, or the
 * largest init container with the sidecars before it, whichever is more; what is said of the pod as
 * a whole comes first, and the overhead is added.
 */
export function podAmounts(pod: JsonObject, side: Side): Amounts {
  const spec = objectAt(pod, 'spec') ?? {};
  const total = podSpecAmounts(spec, side);
  for (const [name, amount] of amountsOf(objectAt(spec, 'overhead'))) {
    const own = total.get(name);
    if (own !== undefined) total.set(name, own.add(amount));
    else if (side === 'requests') total.set(name, amount);
  }
  return total;
}

/** The same without the overhead: what a limit range looks at. */
export function podSpecAmounts(spec: JsonObject, side: Side): Amounts {
  const total = containersAmounts(spec, side);
  for (const [name, amount] of amountsOf(objectAt(spec, 'resources', side))) {
    total.set(name, amount);
  }
  return total;
}

/** What the containers of a pod's spec ask for together, whatever is said of the pod as a whole. */
export function containersAmounts(spec: JsonObject, side: Side): Amounts {
  const total: Amounts = new Map();
  for (const container of listAt(spec, 'containers')) {
    addAmounts(total, containerAmounts(container, side));
  }
  const sidecars: Amounts = new Map();
  const starting: Amounts = new Map();
  for (const container of listAt(spec, 'initContainers')) {
    const own = containerAmounts(container, side);
    if (stringAt(container, 'restartPolicy') === 'Always') {
      addAmounts(total, own);
      addAmounts(sidecars, own);
      raise(starting, sidecars);
    } else {
      addAmounts(own, sidecars);
      raise(starting, own);
    }
  }
  raise(total, starting);
  return total;
}

/** True if something is said of the pod as a whole, even nothing. */
export function isWhole(pod: JsonObject): boolean {
  return objectAt(pod, 'spec', 'resources') !== undefined;
}

/** True if an amount is said of the pod as a whole. */
export function hasWholeAmounts(pod: JsonObject): boolean {
  const sides = ['requests', 'limits'].map((side) => objectAt(pod, 'spec', 'resources', side));
  return sides.some((amounts) => Object.keys(amounts ?? {}).length > 0);
}

/**
 * Guaranteed, Burstable or BestEffort: by the cpu and memory of all containers, or of the pod as a
 * whole where they are said of it.
 */
export function qosClassOf(pod: JsonObject): string {
  const containers: readonly JsonValue[] = isWhole(pod)
    ? [objectAt(pod, 'spec') ?? {}]
    : [...listAt(pod, 'spec', 'initContainers'), ...listAt(pod, 'spec', 'containers')];
  let isBestEffort = true;
  let isGuaranteed = containers.length > 0;
  for (const container of containers) {
    const limits = objectAt(container, 'resources', 'limits') ?? {};
    const requests = { ...limits, ...objectAt(container, 'resources', 'requests') };
    for (const resource of ['cpu', 'memory']) {
      const limit = limits[resource];
      const request = requests[resource];
      if (!isZero(limit) || !isZero(request)) isBestEffort = false;
      if (isZero(limit) || (request !== undefined && request !== limit)) isGuaranteed = false;
    }
  }
  if (isBestEffort) return 'BestEffort';
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

function isZero(quantity: JsonValue | undefined): boolean {
  if (typeof quantity === 'number') return quantity === 0;
  return typeof quantity !== 'string' || /^0*(\.0*)?[a-zA-Z]*$/.test(quantity);
}
