/**
 * Structured parameters: which devices of a node the claims of a pod could have, as kube-scheduler
 * 1.36 with its usual gates answers it (KEP-4381, 4815, 4816, 5018, 5055, 5075).
 */
import { createHash } from 'node:crypto';
import type { Matchable } from '../api/node-selector.ts';
import type { NodeSelectorObject, NodeSelectorTerm, SelectorRequirement } from '../api/objects.ts';
import type { AllocatedDevices } from '../devices/allocated-devices.ts';
import { takenCapacity } from '../devices/device-capacity.ts';
import { constraintOf, type ConstraintState } from './device-constraints.ts';
import type {
  AllocatedDevice,
  AllocationResult,
  DeviceClassObject,
  DeviceConfiguration,
  DeviceDemand,
  DeviceRequest,
  ResourceClaimObject,
} from '../devices/device-objects.ts';
import { claimText } from '../devices/device-objects.ts';
import { isForNode, poolsOf, type Pool, type SliceIndex } from '../devices/device-pools.ts';
import { CLAIM_DEVICES_MAX, candidatesOf, DeviceSearch } from './device-search.ts';
import type { Candidate, ClaimPlan, Option, Picked } from './device-search.ts';
import { matchesDevice } from './device-selectors.ts';

/** `error`: the claim or a class is at fault; `invalid`: only this node's pools are. */
export type Allocation =
  | { readonly kind: 'found'; readonly results: readonly AllocationResult[] }
  | { readonly kind: 'none' | 'invalid' | 'overTime' }
  | { readonly kind: 'error'; readonly text: string };

type Planned<Value> = { readonly value: Value } | { readonly error: string };

export class DeviceAllocator {
  readonly #claims: readonly ResourceClaimObject[];
  readonly #slices: SliceIndex;
  readonly #classOf: (name: string) => DeviceClassObject | undefined;
  readonly #allocated: AllocatedDevices;
  /** Answers of selectors: by request, device. They are the same on all nodes. */
  readonly #wanted = new WeakMap<Device, Map<string, boolean | string>>();

  constructor(
    claims: readonly ResourceClaimObject[],
    slices: SliceIndex,
    classOf: (name: string) => DeviceClassObject | undefined,
    allocated: AllocatedDevices,
  ) {
    this.#claims = claims;
    this.#slices = slices;
    this.#classOf = classOf;
    this.#allocated = allocated;
  }

  /** Devices for all claims on a node, or why there are none. */
  allocate(node: Matchable): Allocation {
    const pools = poolsOf(this.#slices, node);
    const plans: ClaimPlan[] = [];
    for (const [index, claim] of this.#claims.entries()) {
      const plan = this.#planOf(claim, index, pools, node);
      if ('error' in plan) return { kind: 'error', text: plan.error };
      plans.push(plan.value);
    }
    const search = new DeviceSearch(plans, pools, node, this.#allocated);
    if (!search.run()) {
      if (search.isOverTime) return { kind: 'overTime' };
      if (search.error !== '') return { kind: 'error', text: search.error };
      return { kind: pools.some(({ state }) => state === 'invalid') ? 'invalid' : 'none' };
    }
    const results = this.#claims.map((claim, index) =>
      this.#resultOf(claim, search.picked[index] ?? [], node.name),
    );
    return { kind: 'found', results };
  }

  #planOf(
    claim: ResourceClaimObject,
    claimIndex: number,
    pools: readonly Pool[],
    node: Matchable,
  ): Planned<ClaimPlan> {
    const text = claimText(claim);
    const requests: Option[][] = [];
    let devicesMin = 0;
    for (const request of claim.spec?.devices?.requests ?? []) {
      const options: Option[] = [];
      for (const [path, demand] of demandsOf(request)) {
        const option = this.#optionOf(claimIndex, request.name, path, demand, pools, node);
        if ('error' in option) return option;
        options.push(option.value);
      }
      requests.push(options);
      devicesMin += Math.min(...options.map(({ count }) => count));
    }
    if (devicesMin > CLAIM_DEVICES_MAX) {
      const found = `number of requested devices ${devicesMin}`;
      return { error: `claim ${text}: ${found} exceeds the claim limit of ${CLAIM_DEVICES_MAX}` };
    }
    const constraints: ConstraintState[] = [];
    for (const [index, constraint] of (claim.spec?.devices?.constraints ?? []).entries()) {
      const state = constraintOf(constraint);
      if (state === null) {
        const why = 'empty constraint (unsupported constraint type?)';
        return { error: `claim ${text}, constraint #${index}: ${why}` };
      }
      constraints.push(state);
    }
    return { value: { text, requests, constraints } };
  }

  #optionOf(
    claimIndex: number,
    request: string,
    path: string,
    demand: DeviceDemand,
    pools: readonly Pool[],
    node: Matchable,
  ): Planned<Option> {
    const claim = this.#claims[claimIndex];
    const text = claim === undefined ? '' : claimText(claim);
    const place = `claim ${text}, request ${path.slice(path.indexOf('/') + 1)}`;
    for (const [index, { cel }] of (demand.selectors ?? []).entries()) {
      if (cel !== undefined) continue;
      const why = 'CEL expression empty (unsupported selector type?)';
      return { error: `${place}, selector #${index}: ${why}` };
    }
    const className = demand.deviceClassName ?? '';
    if (className === '') {
      return { error: `${place}: missing device class name (unsupported request type?)` };
    }
    const deviceClass = this.#classOf(className);
    if (deviceClass === undefined) {
      const why = `deviceclass.resource.k8s.io "${className}" not found`;
      return { error: `${place}: could not retrieve device class ${className}: ${why}` };
    }
    const memoKey = `${claimIndex} ${path}`;
    const isWanted = (candidate: Candidate): boolean | string =>
      this.#isWanted(memoKey, text, deviceClass, demand, candidate);
    const base = { request, path, demand, className, isWanted };
    const mode = demand.allocationMode ?? 'ExactCount';
    if (mode === 'ExactCount') return { value: { ...base, count: demand.count ?? 1, all: null } };
    if (mode !== 'All') return { error: `${place}: unsupported count mode ${mode}` };
    const all = this.#allOf(place, base, pools, node);
    return 'error' in all ? all : { value: { ...base, count: all.value.length, all: all.value } };
  }

  /** Every device that the request wants, of pools that are known as a whole. */
  #allOf(
    place: string,
    option: Pick<Option, 'demand' | 'isWanted'>,
    pools: readonly Pool[],
    node: Matchable,
  ): Planned<Candidate[]> {
    const all: Candidate[] = [];
    for (const pool of pools) {
      if (pool.state !== 'usable') {
        const state = pool.state === 'invalid' ? 'invalid' : 'being updated';
        const which = `resource pool ${pool.driver}/${pool.name} is currently ${state}`;
        return { error: `${place}: asks for all devices, but ${which}` };
      }
      for (const candidate of candidatesOf(pool)) {
        const { device, slice, id } = candidate;
        const wanted = option.isWanted(candidate);
        if (typeof wanted === 'string') return { error: wanted };
        if (!wanted) continue;
        if (slice.perDeviceNodeSelection === true && !isForNode(device, node)) continue;
        const taken = this.#allocated.shared.get(id) ?? new Map();
        if (takenCapacity(option.demand.capacity, device.capacity, taken) === null) continue;
        all.push(candidate);
      }
    }
    return { value: all };
  }

  #isWanted(
    memoKey: string,
    claim: string,
    deviceClass: DeviceClassObject,
    { selectors }: DeviceDemand,
    { device, slice }: Candidate,
  ): boolean | string {
    let memo = this.#wanted.get(device);
    if (memo === undefined) this.#wanted.set(device, (memo = new Map()));
    const known = memo.get(memoKey);
    if (known !== undefined) return known;
    const { name } = deviceClass.metadata;
    const ofClass = selected(`class ${name}`, deviceClass.spec?.selectors, slice.driver, device);
    const verdict =
      ofClass === true ? selected(`claim ${claim}`, selectors, slice.driver, device) : ofClass;
    memo.set(memoKey, verdict);
    return verdict;
  }

  #resultOf(
    claim: ResourceClaimObject,
    picked: readonly Picked[],
    nodeName: string,
  ): AllocationResult {
    const results = picked.map((one, index) =>
      resultOf(one, one.consumed === null ? '' : shareIdOf(claim, one, index)),
    );
    const config = this.#configOf(claim, picked);
    const nodeSelector = selectorOf(picked, nodeName);
    return {
      devices: { results, ...(config.length === 0 ? {} : { config }) },
      ...(nodeSelector === null ? {} : { nodeSelector }),
    };
  }

  /** Parameters of each class once, then those of the claim, once for each request they name. */
  #configOf(
    claim: ResourceClaimObject,
    picked: readonly Picked[],
  ): (DeviceConfiguration & { source: string })[] {
    const { requests = [], config = [] } = claim.spec?.devices ?? {};
    const chosen = requests.flatMap(({ name }) => {
      const option = picked.find((one) => one.option.request === name)?.option;
      return option === undefined ? [] : [option];
    });
    const paths = new Map<string, string[]>();
    for (const { className, path } of chosen) {
      paths.set(className, [...(paths.get(className) ?? []), path]);
    }
    const result: (DeviceConfiguration & { source: string })[] = [];
    for (const [className, own] of paths) {
      for (const { requests: _, ...rest } of this.#classOf(className)?.spec?.config ?? []) {
        result.push({ source: 'FromClass', requests: own, ...rest });
      }
    }
    for (const one of config) {
      const named = one.requests ?? [];
      const count =
        named.length === 0
          ? 1
          : chosen.filter(({ request, path }) => named.includes(request) || named.includes(path))
              .length;
      for (let i = 0; i < count; i++) result.push({ source: 'FromClaim', ...one });
    }
    return result;
  }
}

type Device = Candidate['device'];

function demandsOf({
  name,
  exactly,
  firstAvailable = [],
}: DeviceRequest): [string, DeviceDemand][] {
  if (exactly !== undefined) return [[name, exactly]];
  return firstAvailable.map((one) => [`${name}/${one.name}`, { ...one, adminAccess: false }]);
}

function selected(
  whose: string,
  selectors: DeviceDemand['selectors'],
  driver: string,
  device: Device,
): boolean | string {
  for (const [index, { cel }] of (selectors ?? []).entries()) {
    const verdict = matchesDevice(cel?.expression ?? '', driver, device);
    if (typeof verdict === 'string') return `${whose}: selector #${index}: ${verdict}`;
    if (!verdict) return false;
  }
  return true;
}

/** The same for the same share, so that a repeated try is no other one. */
function shareIdOf(
  { metadata }: ResourceClaimObject,
  { candidate }: Picked,
  index: number,
): string {
  const name = `${metadata.uid ?? ''} ${metadata.namespace ?? ''}/${metadata.name}`;
  const hash = createHash('sha256').update(`${name} ${candidate.id} ${index}`).digest('hex');
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `4${hash.slice(13, 16)}`];
  return [...parts, `8${hash.slice(17, 20)}`, hash.slice(20, 32)].join('-');
}

function resultOf({ option, candidate, consumed }: Picked, shareID: string): AllocatedDevice {
  const { device, slice, pool } = candidate;
  const { adminAccess, tolerations } = option.demand;
  const { bindingConditions, bindingFailureConditions } = device;
  return {
    request: option.path,
    driver: slice.driver,
    pool: pool.name,
    device: device.name,
    ...(adminAccess === true ? { adminAccess } : {}),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(bindingConditions === undefined ? {} : { bindingConditions }),
    ...(bindingFailureConditions === undefined ? {} : { bindingFailureConditions }),
    ...(consumed === null
      ? {}
      : {
          shareID,
          consumedCapacity: Object.fromEntries(
            consumed.entries().map(([name, amount]) => [name, amount.toString()]),
          ),
        }),
  };
}

const sameSet = (left: readonly string[] = [], right: readonly string[] = []): boolean =>
  left.every((one) => right.includes(one)) && right.every((one) => left.includes(one));

function addRequirements(
  from: readonly SelectorRequirement[] | undefined,
  to: SelectorRequirement[],
): void {
  for (const one of from ?? []) {
    const isKnown = to.some(
      ({ key, operator, values }) =>
        key === one.key && operator === one.operator && sameSet(values, one.values),
    );
    if (!isKnown) to.push(one);
  }
}

/** Where the devices can be used; null: everywhere. */
function selectorOf(picked: readonly Picked[], nodeName: string): NodeSelectorObject | null {
  const matchFields: SelectorRequirement[] = [];
  const matchExpressions: SelectorRequirement[] = [];
  for (const { candidate } of picked) {
    const { slice, device } = candidate;
    const where = slice.perDeviceNodeSelection === true ? device : slice;
    if ((where.nodeName ?? '') !== '' || device.bindsToNode === true) {
      const here = { key: 'metadata.name', operator: 'In', values: [nodeName] };
      return { nodeSelectorTerms: [{ matchFields: [here] }] };
    }
    const term = where.nodeSelector?.nodeSelectorTerms?.[0];
    addRequirements(term?.matchFields, matchFields);
    addRequirements(term?.matchExpressions, matchExpressions);
  }
  const term: NodeSelectorTerm = {
    ...(matchFields.length === 0 ? {} : { matchFields }),
    ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
  };
  return Object.keys(term).length === 0 ? null : { nodeSelectorTerms: [term] };
}
