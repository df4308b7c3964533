/**
 * Hints of a service that asks for them by `service.kubernetes.io/topology-mode: Auto`: each zone
 * gets a share of the endpoints as large as its share of the processors of all nodes, from its own
 * as far as they go. Where no share can be had without more than a fifth of overload there are
 * none. As upstream's topologycache.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { endpointsOf, isReady, removeHints, withHints } from './endpoint-hints.ts';
import type { HintedSlices } from './endpoint-hints.ts';

const OVERLOAD_MAX = 0.2;

export interface HintEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** Zone -> its share of the processors; undefined where nodes do not tell, or of one zone. */
export type ZoneShares = ReadonlyMap<string, number> | undefined;

interface Allocation {
  readonly least: number;
  readonly most: number;
  readonly desired: number;
}

type Counts = Map<string, number>;

const NO_NODES =
  'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes';

/** What is known of one service from one look to the next. */
export class TopologyHints {
  #isPopulated = false;
  /** Family -> endpoints that each zone has. */
  readonly #counts: Map<string, Counts> = new Map();

  /** Whether a zone has fewer endpoints than its share allows: the hints are to be made anew. */
  isOverloaded(shares: ZoneShares): boolean {
    return [...this.#counts.values()].some((counts) => isOverloaded(counts, shares));
  }

  /** The service wants no such hints, or no more. */
  drop(family: string): HintEvent[] {
    const event = disabled('Topology Aware Hints has been disabled', family);
    const events = this.#isPopulated ? [event] : [];
    this.#forget(family);
    return events;
  }

  #forget(family: string): void {
    this.#counts.delete(family);
    this.#isPopulated = false;
  }

  apply(shares: ZoneShares, family: string, slices: HintedSlices): HintEvent[] {
    const all = [...slices.create, ...slices.update, ...slices.unchanged];
    const ready = all.flatMap(endpointsOf).filter(isReady);
    const allocations = allocate(shares, ready.length);
    const isZoned = ready.every((one) => stringAt(one, 'zone') !== '');
    const why =
      typeof allocations === 'string'
        ? allocations
        : isZoned
          ? ready.length === 0
            ? 'No hints allocated for zones'
            : ''
          : 'One or more endpoints do not have a zone specified';
    if (typeof allocations === 'string' || why !== '') {
      this.#forget(family);
      removeHints(slices);
      return [disabled(why, family)];
    }
    this.#counts.set(family, hint(allocations, slices));
    if (this.#isPopulated) return [];
    this.#isPopulated = true;
    const message = `Topology Aware Hints has been enabled, addressType: ${family}`;
    return [{ type: 'Normal', reason: 'TopologyAwareHintsEnabled', message }];
  }
}

function disabled(why: string, family: string): HintEvent {
  const message = `${why}, addressType: ${family}`;
  return { type: 'Warning', reason: 'TopologyAwareHintsDisabled', message };
}

/** What each zone should get, or why that cannot be. */
function allocate(shares: ZoneShares, endpoints: number): Map<string, Allocation> | string {
  if (shares === undefined) return NO_NODES;
  const numbers = `(${endpoints} endpoints, ${shares.size} zones)`;
  if (shares.size > endpoints) return `Insufficient number of endpoints ${numbers}`;
  const least = new Map(
    [...shares].map(([zone, share]) => [zone, Math.ceil((share * endpoints) / (1 + OVERLOAD_MAX))]),
  );
  const spare = endpoints - [...least.values()].reduce((sum, one) => sum + one, 0);
  if (spare < 0) {
    const why = 'Unable to allocate minimum required endpoints to each zone without exceeding';
    return `${why} overload threshold ${numbers}`;
  }
  const allocations = new Map<string, Allocation>();
  for (const [zone, one] of least) {
    const desired = Math.max(one, (shares.get(zone) ?? 0) * endpoints);
    allocations.set(zone, { least: one, most: one + spare, desired });
  }
  return allocations;
}

/** Puts hints into what is written; slices whose hints will do stay as they are. */
function hint(allocations: ReadonlyMap<string, Allocation>, slices: HintedSlices): Counts {
  const counts: Counts = new Map();
  slices.unchanged = slices.unchanged.filter((slice) => {
    const of = countsOf(slice, counts, allocations);
    if (of === undefined) {
      slices.update.push(slices.revise(slice, endpointsOf(slice)));
      return false;
    }
    for (const [zone, count] of of) add(counts, zone, count);
    return true;
  });
  const written = [...slices.create, ...slices.update];
  const endpoints = written.flatMap(endpointsOf).filter(isReady);
  const zones = endpoints.map((one) => stringAt(one, 'zone'));
  for (const zone of zones) add(counts, zone, 1);
  const { giving, receiving } = imbalance(allocations, counts);
  zones.forEach((zone, index) => {
    const [to] = receiving.keys();
    if (to === undefined || !giving.has(zone)) return;
    zones[index] = to;
    for (const [of, one] of [
      [giving, zone],
      [receiving, to],
    ] as const) {
      add(of, one, -1);
      if (of.get(one) === 0) of.delete(one);
    }
    add(counts, zone, -1);
    add(counts, to, 1);
  });
  let next = 0;
  for (const slice of written) {
    const list = endpointsOf(slice).map((one) =>
      withHints(one, isReady(one) ? { forZones: [{ name: zones[next++] ?? '' }] } : undefined),
    );
    if (list.length > 0) slice['endpoints'] = list;
  }
  return counts;
}

/** Endpoints of a slice by the zones hinted at; undefined where those hints cannot stay. */
function countsOf(
  slice: JsonObject,
  others: Counts,
  allocations: ReadonlyMap<string, Allocation>,
): Counts | undefined {
  const counts: Counts = new Map();
  for (const endpoint of endpointsOf(slice)) {
    if (!isReady(endpoint)) continue;
    const zones = listAt(endpoint, 'hints', 'forZones').map((one) => stringAt(one, 'name'));
    if (zones.length === 0) return undefined;
    for (const zone of zones) add(counts, zone, 1);
  }
  for (const [zone, count] of counts) {
    const most = allocations.get(zone)?.most ?? 0;
    if (count + (others.get(zone) ?? 0) > most) return undefined;
  }
  return counts;
}

/** How many endpoints zones give to others, whole ones, the largest difference first. */
function imbalance(
  allocations: ReadonlyMap<string, Allocation>,
  counts: Counts,
): { giving: Counts; receiving: Counts } {
  const over: Counts = new Map();
  const under: Counts = new Map();
  for (const [zone, { desired }] of allocations) {
    const surplus = (counts.get(zone) ?? 0) - desired;
    if (surplus > 0) over.set(zone, surplus);
    else if (surplus < 0) under.set(zone, -surplus);
  }
  const giving: Counts = new Map();
  const receiving: Counts = new Map();
  for (;;) {
    const [from, give] = largest(over);
    const [to, take] = largest(under);
    if ((give < 1 && take < 1) || give < 0.5 || take < 0.5) return { giving, receiving };
    add(giving, from, 1);
    add(over, from, -1);
    add(receiving, to, 1);
    add(under, to, -1);
  }
}

function largest(counts: Counts): readonly [string, number] {
  let found: readonly [string, number] = ['', 0];
  for (const one of counts) if (one[1] > found[1]) found = one;
  return found;
}

function isOverloaded(counts: Counts, shares: ZoneShares): boolean {
  if (counts.size === 0) return false;
  if (shares === undefined) return true;
  const total = [...counts.values()].reduce((sum, one) => sum + one, 0);
  return [...shares].some(([zone, share]) => {
    const has = counts.get(zone);
    return has === undefined || has < Math.ceil((total * share) / (1 + OVERLOAD_MAX));
  });
}

function add(counts: Counts, zone: string, by: number): void {
  counts.set(zone, (counts.get(zone) ?? 0) + by);
}
