/**
 * What a pod asks of its node: what kube-scheduler counts for it, by containers. Limits and
 * `spec.resources` of the pod are not looked at.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { Quantity } from '@megaplane/machinery/quantity';

type Amounts = Map<string, Quantity>;

/**
 * The containers and the sidecars together, or the largest stage of the start if that is more, and
 * the overhead on top. A sidecar (an init container that always restarts) runs from its stage on.
 */
export function podResources(pod: JsonObject): ReadonlyMap<string, Quantity> {
  const running: Amounts = new Map();
  for (const container of listAt(pod, 'spec', 'containers')) add(running, requestsOf(container));
  const sidecars: Amounts = new Map();
  const starting: Amounts = new Map();
  for (const container of listAt(pod, 'spec', 'initContainers')) {
    const requests = requestsOf(container);
    if (stringAt(container, 'restartPolicy') === 'Always') {
      add(running, requests);
      add(sidecars, requests);
      raise(starting, sidecars);
    } else {
      add(requests, sidecars);
      raise(starting, requests);
    }
  }
  raise(running, starting);
  add(running, amountsOf(objectAt(pod, 'spec', 'overhead')));
  return running;
}

function requestsOf(container: JsonValue): Amounts {
  return amountsOf(objectAt(container, 'resources', 'requests'));
}

/** What the API server has stored is a quantity; anything else counts for nothing. */
function amountsOf(list: JsonObject | undefined): Amounts {
  const amounts: Amounts = new Map();
  for (const [name, value] of Object.entries(list ?? {})) {
    if (typeof value !== 'string' && typeof value !== 'number') continue;
    const quantity = parseQuantity(String(value));
    if (typeof quantity !== 'string') amounts.set(name, quantity);
  }
  return amounts;
}

function add(to: Amounts, amounts: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of amounts) {
    const sum = to.get(name);
    to.set(name, sum === undefined ? quantity : sum.add(quantity));
  }
}

function raise(to: Amounts, amounts: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of amounts) {
    const largest = to.get(name);
    if (largest === undefined || quantity.compare(largest) > 0) to.set(name, quantity);
  }
}
