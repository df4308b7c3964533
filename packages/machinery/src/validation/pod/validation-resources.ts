/** Amounts of resources that containers, and pods as a whole, ask for. */

import { ownMember } from '@megaplane/base/members';
import { forbiddenField, invalidValue, notSupported, required } from '../../meta/fielderrors.ts';
import { listAt, objectAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { parseQuantity, Quantity } from '../../meta/quantity.ts';
import { amountsOf, containerAmounts, containersAmounts } from '../../meta/pod-resources.ts';
import {
  checkContainerResource,
  checkResourceName,
  isOvercommitted,
  isWholeResource,
} from '../field/resource-names.ts';
import { nonNegativeAmount, type Findings } from '../field/validation-rules.ts';

const POD_RESOURCES = ['cpu', 'memory'];

type NameCheck = (found: Findings, path: string, name: string) => void;

/** Amounts for a pod as a whole: processor, memory, huge pages. */
export function checkPodResources(
  found: Findings,
  path: string,
  resources: JsonObject | undefined,
): void {
  if (listAt(resources, 'claims').length > 0) {
    const text = 'claims may not be set for Resources at pod-level';
    found.push(forbiddenField(`${path}.claims`, text));
  }
  checkResources(found, path, resources, checkPodsName);
}

/** Amounts that a container asks for and may use at most. */
export function checkResources(
  found: Findings,
  path: string,
  resources: JsonObject | undefined,
  checkName: NameCheck = checkContainerResource,
): void {
  const limits = objectAt(resources, 'limits') ?? {};
  const requests = objectAt(resources, 'requests') ?? {};
  for (const [name, amount] of Object.entries(limits)) {
    checkName(found, `${path}.limits[${name}]`, name);
    checkAmount(found, `${path}.limits[${name}]`, name, amount);
    checkPages(found, `${path}.limits[${name}]`, name, amount);
  }
  for (const [name, amount] of Object.entries(requests)) {
    checkName(found, `${path}.requests[${name}]`, name);
    checkAmount(found, `${path}.requests[${name}]`, name, amount);
    checkLimit(found, path, name, amount, ownMember(limits, name));
    checkPages(found, `${path}.requests[${name}]`, name, amount);
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.includes('cpu') || names.includes('memory')) return;
  if (names.some((name) => name.startsWith('hugepages-'))) {
    found.push(forbiddenField(path, 'HugePages require cpu or memory'));
  }
}

/** A request is at most its limit, and equal to it where nothing is overcommitted. */
function checkLimit(
  found: Findings,
  path: string,
  name: string,
  amount: JsonValue | undefined,
  limit: JsonValue | undefined,
): void {
  const isShared = isOvercommitted(name);
  if (limit === undefined) {
    if (isShared) return;
    const text = 'Limit must be set for non overcommitable resources';
    found.push(required(`${path}.limits`, text));
    return;
  }
  const order = compareAmounts(amount, limit);
  const relation = !isShared && order !== 0 ? 'equal to' : order > 0 ? 'less than or equal to' : '';
  if (relation === '') return;
  const text = `must be ${relation} ${name} limit of ${textOf(limit)}`;
  found.push(invalidValue(`${path}.requests`, textOf(amount), text));
}

/** Huge pages come whole. */
function checkPages(
  found: Findings,
  path: string,
  name: string,
  value: JsonValue | undefined,
): void {
  if (!name.startsWith('hugepages-')) return;
  const size = parseQuantity(name.slice('hugepages-'.length));
  const amount = parseQuantity(textOf(value));
  if (!(size instanceof Quantity) || !(amount instanceof Quantity)) return;
  const [pages, bytes] = [size.scaled(0), amount.scaled(0)];
  if (pages > 0n && bytes % pages === 0n) return;
  const text = `${amount.toString()} is not positive integer multiple of ${name}`;
  found.push(invalidValue(path, amount.toString(), text));
}

/** The pod as a whole may use what its containers may, and no container more than the pod. */
export function checkPodSums(found: Findings, path: string, spec: JsonObject): void {
  const ofPod = {
    requests: amountsOf(objectAt(spec, 'resources', 'requests')),
    limits: amountsOf(objectAt(spec, 'resources', 'limits')),
  };
  for (const side of ['requests', 'limits'] as const) {
    for (const [name, sum] of containersAmounts(spec, side)) {
      const own = ofPod[side].get(name);
      if (own === undefined || sum.compare(own) <= 0) continue;
      if (side === 'limits' && !name.startsWith('hugepages-')) continue;
      const text = `must be greater than or equal to aggregate container ${side} of`;
      const at = `${path}.${side}[${name}]`;
      found.push(invalidValue(at, own.toString(), `${text} ${sum.toString()}`));
    }
  }
  for (const [index, container] of listAt(spec, 'containers').entries()) {
    for (const [name, limit] of containerAmounts(container, 'limits')) {
      const own = ofPod.limits.get(name);
      if (own === undefined || limit.compare(own) <= 0) continue;
      const text = `must be less than or equal to pod limits of ${own.toString()}`;
      const at = `${path}.containers[${index}][${name}].limits`;
      found.push(invalidValue(at, limit.toString(), text));
    }
  }
}

function compareAmounts(left: JsonValue | undefined, right: JsonValue | undefined): number {
  const [one, other] = [parseQuantity(textOf(left)), parseQuantity(textOf(right))];
  return one instanceof Quantity && other instanceof Quantity ? one.compare(other) : 0;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function checkPodsName(found: Findings, path: string, name: string): void {
  if (!checkResourceName(found, path, name)) return;
  if (POD_RESOURCES.includes(name) || name.startsWith('hugepages-')) return;
  found.push(notSupported(path, name, ['cpu', 'hugepages-', 'memory']));
}

/** An amount of a resource: not negative, and whole where there are no parts. */
export function checkAmount(
  found: Findings,
  path: string,
  name: string,
  amount: JsonValue | undefined,
): void {
  nonNegativeAmount(found, path, amount);
  if (!isWholeResource(name)) return;
  const parsed = parseQuantity(textOf(amount));
  if (parsed instanceof Quantity && parsed.hasFraction) {
    found.push(invalidValue(path, textOf(amount), 'must be an integer'));
  }
}
