/**
 * Pools of devices as one node can use them: the slices of the newest generation that target the
 * node, and whether that is all of the pool. A pool that is being replaced, lacks slices or
 * contradicts itself gives no devices.
 */
import { matchesTerms, parseNodeSelector, type Matchable } from '../api/node-selector.ts';
import type { NodeSelectorObject } from '../api/objects.ts';
import type { Device, ResourceSliceObject } from './device-objects.ts';

export type Slice = NonNullable<ResourceSliceObject['spec']>;

export interface Pool {
  readonly driver: string;
  readonly name: string;
  readonly state: 'usable' | 'incomplete' | 'invalid';
  /** With devices for the node. */
  readonly slices: readonly Slice[];
  /** Others of the pool: their devices may use up counters. */
  readonly others: readonly Slice[];
  /** Counter sets of the pool, wherever they are declared. */
  readonly counterSets: NonNullable<Slice['sharedCounters']>;
}

interface Where {
  readonly nodeName?: string;
  readonly allNodes?: boolean;
  readonly nodeSelector?: NodeSelectorObject;
}

/** Whether a slice or a device is there for a node. */
export function isForNode({ nodeName, allNodes, nodeSelector }: Where, node: Matchable): boolean {
  if (nodeName !== undefined && nodeName !== '') return nodeName === node.name;
  if (allNodes === true) return true;
  return nodeSelector !== undefined && matchesTerms(parseNodeSelector(nodeSelector), node);
}

function targets(slice: Slice, node: Matchable): boolean {
  // Counters are needed for any device of the pool.
  if ((slice.sharedCounters ?? []).length > 0) return true;
  if (slice.perDeviceNodeSelection !== true) return isForNode(slice, node);
  return (slice.devices ?? []).some((device) => isForNode(device, node));
}

function hasConditions({ devices = [] }: Slice): boolean {
  return devices.some(({ bindingConditions }) => bindingConditions !== undefined);
}

const generationOf = ({ pool }: Slice): number => pool.generation ?? 0;

/** Slices by where they may be used: nearly all are for one node. */
export class SliceIndex {
  readonly #slices = new Map<string, Placed>();
  readonly #byNode = new Map<string, Set<Placed>>();
  readonly #byPool = new Map<string, Set<Placed>>();

  /** Slices without names of their own get names in their order. */
  constructor(slices: readonly Slice[] = []) {
    for (const [position, slice] of slices.entries()) {
      this.set(String(position).padStart(8, '0'), slice);
    }
  }

  /** Whether each slice is for one node alone. */
  get isLocal(): boolean {
    return !this.#byNode.has(ANY_NODE);
  }

  /** A slice by its name; undefined: it is gone. */
  set(name: string, slice: Slice | undefined): void {
    const before = this.#slices.get(name);
    if (before !== undefined) {
      part(this.#byNode, before.node, before);
      part(this.#byPool, poolKey(before.slice), before);
    }
    if (slice === undefined) return void this.#slices.delete(name);
    const placed = { slice, name, node: onlyNodeOf(slice) };
    this.#slices.set(name, placed);
    join(this.#byNode, placed.node, placed);
    join(this.#byPool, poolKey(slice), placed);
  }

  /** Nodes that the slices of a pool are for alone. */
  nodesOfPool(driver: string, pool: string): string[] {
    return nodesOf(this.#byPool.get(`${driver}/${pool}`));
  }

  /** The same of the pool that a slice belongs to. */
  nodesBeside(name: string): string[] {
    const placed = this.#slices.get(name);
    return placed === undefined ? [] : nodesOf(this.#byPool.get(poolKey(placed.slice)));
  }

  /** Slices that target a node, in order. */
  targeting(node: Matchable): Slice[] {
    const own = this.#byNode.get(node.name) ?? [];
    const others = this.#byNode.get(ANY_NODE) ?? [];
    return inOrder([...own, ...others]).filter((slice) => targets(slice, node));
  }

  ofPool(slice: Slice): readonly Slice[] {
    return inOrder([...(this.#byPool.get(poolKey(slice)) ?? [])]);
  }
}

interface Placed {
  readonly slice: Slice;
  readonly name: string;
  /** The only node, or `ANY_NODE`. */
  readonly node: string;
}

/** No node is called so. */
const ANY_NODE = '';

function nodesOf(placed: ReadonlySet<Placed> | undefined): string[] {
  return [...(placed ?? [])].map(({ node }) => node).filter((node) => node !== ANY_NODE);
}

function join(groups: Map<string, Set<Placed>>, key: string, placed: Placed): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, new Set([placed]));
  else group.add(placed);
}

function part(groups: Map<string, Set<Placed>>, key: string, placed: Placed): void {
  const group = groups.get(key);
  group?.delete(placed);
  if (group?.size === 0) groups.delete(key);
}

/** By name: so drivers can say which devices are to be given out first. */
function inOrder(placed: Placed[]): Slice[] {
  placed.sort((one, other) => compare(one.name, other.name));
  return placed.map(({ slice }) => slice);
}

function poolKey({ driver, pool }: Slice): string {
  return `${driver}/${pool.name}`;
}

function onlyNodeOf({ sharedCounters = [], perDeviceNodeSelection, nodeName = '' }: Slice): string {
  return sharedCounters.length > 0 || perDeviceNodeSelection === true ? ANY_NODE : nodeName;
}

/** All pools that matter to a node, by name; those with binding conditions come last. */
export function poolsOf(slices: SliceIndex, node: Matchable): Pool[] {
  const found = new Map<string, Slice[]>();
  for (const slice of slices.targeting(node)) {
    const id = poolKey(slice);
    const known = found.get(id);
    const newest = known?.[0] === undefined ? -1 : generationOf(known[0]);
    if (known !== undefined && generationOf(slice) === newest) known.push(slice);
    else if (generationOf(slice) > newest) found.set(id, [slice]);
  }
  const pools = found.values().flatMap((own): Pool[] => {
    const pool = own[0] === undefined ? null : poolOf(own, slices.ofPool(own[0]));
    return pool === null ? [] : [pool];
  });
  return [...pools].toSorted(
    (left, right) =>
      conditionRank(left) - conditionRank(right) ||
      compare(left.driver, right.driver) ||
      compare(left.name, right.name),
  );
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

function conditionRank({ slices }: Pool): number {
  return slices.some(hasConditions) ? 1 : 0;
}

/** Null for a pool that a newer generation replaces, on other nodes so far. */
function poolOf(own: readonly Slice[], whole: readonly Slice[]): Pool | null {
  const [first] = own;
  if (first === undefined) return null;
  const { driver, pool } = first;
  const count = pool.resourceSliceCount ?? 0;
  const generation = generationOf(first);
  // Where the node has as many slices as there should be, upstream looks at no others.
  const isWhole = own.length === count;
  if (!isWhole && whole.some((slice) => generationOf(slice) > generation)) return null;
  const current = isWhole ? own : whole.filter((slice) => generationOf(slice) === generation);
  const counterSets = current.flatMap(({ sharedCounters = [] }) => sharedCounters);
  const base = { driver, name: pool.name, slices: [], others: [], counterSets };
  if (current.length !== count) return { ...base, state: 'incomplete' };
  const slices = own.filter(({ sharedCounters = [] }) => sharedCounters.length === 0);
  if (!isConsistent(slices, current)) return { ...base, state: 'invalid' };
  return { ...base, state: 'usable', slices, others: current.filter((one) => !own.includes(one)) };
}

/** Names of devices are unique, and counters that they use exist. */
function isConsistent(slices: readonly Slice[], current: readonly Slice[]): boolean {
  const names = slices.flatMap(({ devices = [] }) => devices.map(({ name }) => name));
  if (new Set(names).size !== names.length) return false;
  const sets = current.flatMap(({ sharedCounters = [] }) => sharedCounters);
  const counters = new Map(sets.map(({ name, counters: own = {} }) => [name, own]));
  if (counters.size !== sets.length) return false;
  const usesKnown = ({ consumesCounters = [] }: Device): boolean =>
    consumesCounters.every(({ counterSet, counters: used = {} }) => {
      const known = counters.get(counterSet);
      return known !== undefined && Object.keys(used).every((name) => Object.hasOwn(known, name));
    });
  return current.every(({ devices = [] }) => devices.every(usesKnown));
}
