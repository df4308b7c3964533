/**
 * What a pod asks for and what a node gives, in integers: thousandths of a CPU, bytes, counts.
 *
 * Sums are taken on exact quantities and rounded up once per pod, as upstream does: two containers
 * of 100.1m are 201m, not 202m.
 */
import { parseQuantity, Quantity } from '@megaplane/machinery/quantity';
import type { ContainerStatus, PodObject, Quantities } from './objects.ts';

export interface Resources {
  milliCpu: number;
  memory: number;
  ephemeral: number;
  /** Extended resources, huge pages, attachable volumes: everything else that is counted. */
  readonly scalars: Map<string, number>;
}

const ZERO = new Quantity(0n, 0, 'DecimalSI');
/** What was read already: nodes are of a few sizes, and pods ask for the same amounts. */
const known = new Map<string, Quantity>();
const KNOWN_MAX = 1024;

const DEFAULTS: ReadonlyMap<string, Quantity> = new Map([
  ['cpu', quantityOf('100m')],
  ['memory', quantityOf('200Mi')],
]);

type Amounts = Map<string, Quantity>;

function quantityOf(text: string | number): Quantity {
  const key = String(text);
  let quantity = known.get(key);
  if (quantity !== undefined) return quantity;
  const parsed = parseQuantity(key);
  quantity = typeof parsed === 'string' ? ZERO : parsed;
  if (known.size === KNOWN_MAX) known.clear();
  known.set(key, quantity);
  return quantity;
}

function amountsOf(quantities: Quantities | undefined): Amounts {
  const amounts: Amounts = new Map();
  for (const [name, text] of Object.entries(quantities ?? {})) amounts.set(name, quantityOf(text));
  return amounts;
}

function add(target: Amounts, other: ReadonlyMap<string, Quantity>): void {
  for (const [name, amount] of other) {
    const present = target.get(name);
    target.set(name, present === undefined ? amount : present.add(amount));
  }
}

function raise(target: Amounts, other: ReadonlyMap<string, Quantity>): void {
  for (const [name, amount] of other) {
    const present = target.get(name);
    if (present === undefined || amount.compare(present) > 0) target.set(name, amount);
  }
}

/** Whether a resource is counted by name: not a native one without a prefix. */
export function isScalar(name: string): boolean {
  if (name.startsWith('hugepages-') || name.startsWith('attachable-volumes-')) return true;
  return name.includes('/') && !name.startsWith('requests.');
}

/** An extended resource, which profiles may tell the fit to ignore. */
export function isExtended(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.');
}

export interface RequestOptions {
  /** What a container that does not mention a resource is taken to ask for. */
  readonly defaults?: ReadonlyMap<string, Quantity>;
  /** Leave `spec.resources` of the pod aside. */
  readonly isPodLevelIgnored?: boolean;
}

function isResizeInfeasible(pod: PodObject): boolean {
  const conditions = pod.status?.conditions ?? [];
  return conditions.some(
    ({ type, reason }) => type === 'PodResizePending' && reason === 'Infeasible',
  );
}

type ResizeStatus = Pick<ContainerStatus, 'resources' | 'allocatedResources'>;

/** In-place resize: the larger of what is wanted, what was granted and what is in effect. */
function effectiveAmounts(pod: PodObject, requests?: Quantities, status?: ResizeStatus): Amounts {
  const wanted = amountsOf(requests);
  if (status?.resources === undefined) return wanted;
  const amounts = isResizeInfeasible(pod) ? new Map<string, Quantity>() : wanted;
  raise(amounts, amountsOf(status.resources.requests));
  raise(amounts, amountsOf(status.allocatedResources));
  return amounts;
}

function withDefaults(amounts: Amounts, options: RequestOptions): Amounts {
  for (const [name, amount] of options.defaults ?? []) {
    if (!amounts.has(name)) amounts.set(name, amount);
  }
  return amounts;
}

const POD_LEVEL = /^(cpu$|memory$|hugepages-)/;

function podLevelOf(pod: PodObject): [string, string | number][] {
  const requests = Object.entries(pod.spec.resources?.requests ?? {});
  return requests.filter(([name]) => POD_LEVEL.test(name));
}

/** The effective request of a pod (KEP-753 sidecars, KEP-2837 pod level, overhead). */
export function podAmounts(pod: PodObject, options: RequestOptions): Map<string, Quantity> {
  const sum: Amounts = new Map();
  const peak: Amounts = new Map();
  const sidecars: Amounts = new Map();
  const statusOf = (name: string): ContainerStatus | undefined =>
    pod.status?.containerStatuses?.find((status) => status.name === name) ??
    pod.status?.initContainerStatuses?.find((status) => status.name === name);
  for (const container of pod.spec.containers ?? []) {
    const amounts = effectiveAmounts(pod, container.resources?.requests, statusOf(container.name));
    add(sum, withDefaults(amounts, options));
  }
  for (const container of pod.spec.initContainers ?? []) {
    if (container.restartPolicy === 'Always') {
      const { name, resources } = container;
      const status = effectiveAmounts(pod, resources?.requests, statusOf(name));
      const amounts = withDefaults(status, options);
      add(sum, amounts);
      add(sidecars, amounts);
      raise(peak, sidecars);
    } else {
      const amounts = withDefaults(amountsOf(container.resources?.requests), options);
      add(amounts, sidecars);
      raise(peak, amounts);
    }
  }
  raise(sum, peak);
  if (options.isPodLevelIgnored !== true) {
    const effective = effectiveAmounts(pod, pod.spec.resources?.requests, pod.status);
    for (const [name] of podLevelOf(pod)) sum.set(name, effective.get(name) ?? ZERO);
  }
  add(sum, amountsOf(pod.spec.overhead));
  return sum;
}

/** Digits that upstream keeps in an int64; beyond them it takes a big decimal. */
const SMALL_MAX: bigint = 10n ** 18n;
const INT64_MAX: bigint = 2n ** 63n - 1n;
/** Factors of ten for which upstream has a shortcut, which wraps. */
const WRAPPING_STEPS: ReadonlySet<number> = new Set([1, 2, 3, 6, 9]);
/** What Go makes of a power of ten that no int64 holds. */
const NO_FACTOR: bigint = -(2n ** 63n);

/**
 * In units of `10 ** scale`, fractions rounded away from zero, as int64 has it: what is too large
 * for it is nothing (`1e30`), and big decimals wrap around. Nodes and pods may say such things.
 * What is negative is nothing, too: it would make room where there is none.
 */
function int64Of(amount: Quantity, scale: number): number {
  const exact = amount.scaled(scale);
  return Number(exact > INT64_MAX ? wrapped(amount, exact, amount.scale - scale) : max0(exact));
}

function wrapped({ digits }: Quantity, exact: bigint, steps: number): bigint {
  if (digits < SMALL_MAX) return WRAPPING_STEPS.has(steps) ? max0(BigInt.asIntN(64, exact)) : 0n;
  if (steps < 0) return max0(BigInt.asIntN(64, exact));
  const power = 10n ** BigInt(steps);
  const factor = power > INT64_MAX ? NO_FACTOR : power;
  return max0(BigInt.asIntN(64, BigInt.asIntN(64, digits) * factor));
}

function max0(value: bigint): bigint {
  return value < 0n ? 0n : value;
}

export function emptyResources(): Resources {
  return { milliCpu: 0, memory: 0, ephemeral: 0, scalars: new Map() };
}

/** Fractions are rounded up. What is not counted at all (`storage`, `pods`) is left out. */
export function resourcesOf(amounts: ReadonlyMap<string, Quantity>): Resources {
  const resources = emptyResources();
  for (const [name, amount] of amounts) {
    if (name === 'cpu') resources.milliCpu = int64Of(amount, -3);
    else if (name === 'memory') resources.memory = int64Of(amount, 0);
    else if (name === 'ephemeral-storage') resources.ephemeral = int64Of(amount, 0);
    else if (isScalar(name)) resources.scalars.set(name, int64Of(amount, 0));
  }
  return resources;
}

/** What the fit compares and what a placed pod takes from its node. */
export function podRequests(pod: PodObject): Resources {
  return resourcesOf(podAmounts(pod, {}));
}

/**
 * What a placed pod counts for in the allocation scores, with defaults for CPU and memory. With
 * pod-level requests the defaults fill in only what nobody mentions.
 */
export function podRequestsNonZero(pod: PodObject): Resources {
  if (podLevelOf(pod).length === 0) return resourcesOf(podAmounts(pod, { defaults: DEFAULTS }));
  const requests = podAmounts(pod, {});
  const missing = new Map([...DEFAULTS].filter(([name]) => !requests.has(name)));
  return resourcesOf(podAmounts(pod, { defaults: missing }));
}

/** What an incoming pod counts for in the allocation scores: the pod level is not looked at. */
export function podRequestsForScore(pod: PodObject): Resources {
  return resourcesOf(podAmounts(pod, { defaults: DEFAULTS, isPodLevelIgnored: true }));
}

/** Allocatable of a node; `pods` apart, because it is no request of a pod. */
export function allocatableOf(quantities: Quantities | undefined): {
  readonly resources: Resources;
  readonly pods: number;
} {
  const amounts = amountsOf(quantities);
  const pods = amounts.get('pods');
  return { resources: resourcesOf(amounts), pods: pods === undefined ? 0 : int64Of(pods, 0) };
}

/** Adds `sign` times `other`. A scalar that falls to zero stays, as an entry of zero. */
export function accumulate(target: Resources, other: Resources, sign: 1 | -1): void {
  target.milliCpu += sign * other.milliCpu;
  target.memory += sign * other.memory;
  target.ephemeral += sign * other.ephemeral;
  for (const [name, amount] of other.scalars) {
    target.scalars.set(name, (target.scalars.get(name) ?? 0) + sign * amount);
  }
}

/** One resource by its API name; absent counts as zero. */
export function amountIn(resources: Resources, name: string): number {
  if (name === 'cpu') return resources.milliCpu;
  if (name === 'memory') return resources.memory;
  if (name === 'ephemeral-storage') return resources.ephemeral;
  return resources.scalars.get(name) ?? 0;
}
