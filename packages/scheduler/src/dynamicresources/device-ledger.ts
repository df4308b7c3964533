/**
 * All slices of devices and what claims hold of them, kept up to date by what has changed, so that
 * a pod with claims costs nothing for those of all others.
 */
import type { ObjectStore } from '../cache/object-store.ts';
import { ALLOCATING_CLAIM } from '../framework/reservation.ts';
import { holdingsOf, type AllocatedDevices, type Holding } from '../devices/allocated-devices.ts';
import { addAmounts, type Amounts } from '../devices/device-capacity.ts';
import type { ResourceClaimObject, ResourceSliceObject } from '../devices/device-objects.ts';
import { SliceIndex } from '../devices/device-pools.ts';

/** Who wants to know which nodes' own devices have changed. */
export interface TouchedNodes {
  readonly idEnd: number;
  nameOf(id: number): string;
  find(name: string): number;
  isPresent(id: number): boolean;
  readonly log: { append(id: number): void };
}

const SLICE = 'ResourceSlice';
/** Those on their way to the server hold devices, too. */
const CLAIM_KINDS = ['ResourceClaim', ALLOCATING_CLAIM];

export class DeviceLedger {
  readonly #objects: ObjectStore;
  readonly #nodes: TouchedNodes;
  #slices = new SliceIndex();
  readonly #seen = new Map<string, number>();
  readonly #holdings = new Map<string, readonly Holding[]>();
  /** By device: how many claims have all of it. */
  readonly #whole = new Map<string, number>();
  /** By device: what each claim has of it. */
  readonly #shares = new Map<string, Map<string, Amounts>>();
  readonly #shared = new Map<string, Amounts>();
  /** Counts changes of slices. */
  sliceVersion = 0;

  constructor(objects: ObjectStore, nodes: TouchedNodes) {
    this.#objects = objects;
    this.#nodes = nodes;
  }

  /** As of the last `catchUp`. */
  get slices(): SliceIndex {
    return this.#slices;
  }

  /** As of the last `catchUp`. */
  get allocated(): AllocatedDevices {
    return { whole: this.#whole, shared: this.#shared };
  }

  /** Takes in all changes; nodes whose own devices they touch have changed then. */
  catchUp(): void {
    const touched = new Set<string>();
    this.#catchUpSlices(touched);
    for (const kind of CLAIM_KINDS) this.#catchUpClaims(kind, touched);
    for (const name of touched) {
      const node = this.#nodes.find(name);
      if (node >= 0 && this.#nodes.isPresent(node)) this.#nodes.log.append(node);
    }
  }

  /** Keys of a kind that have changed; null: look at all. */
  #news(kind: string): readonly string[] | null {
    const version = this.#objects.versionOf(kind);
    const known = this.#seen.get(kind) ?? -1;
    if (version === known) return [];
    this.#seen.set(kind, version);
    return this.#objects.changesSince(kind, known);
  }

  #catchUpSlices(touched: Set<string>): void {
    const news = this.#news(SLICE);
    if (news?.length === 0) return;
    this.sliceVersion++;
    if (news === null) {
      this.#slices = new SliceIndex();
      for (const { metadata, spec } of this.#objects.objects(
        SLICE,
      ) as Iterable<ResourceSliceObject>) {
        this.#slices.set(metadata.name, spec);
      }
      for (let id = 0; id < this.#nodes.idEnd; id++) touched.add(this.#nodes.nameOf(id));
      return;
    }
    for (const key of news) this.#setSlice(key, touched);
  }

  /** What a slice says of its pool may make other slices of it void. */
  #setSlice(key: string, touched: Set<string>): void {
    const { spec }: ResourceSliceObject = this.#objects.object(SLICE, key) ?? NO_SLICE;
    for (const node of this.#slices.nodesBeside(key)) touched.add(node);
    this.#slices.set(key, spec);
    for (const node of this.#slices.nodesBeside(key)) touched.add(node);
  }

  #catchUpClaims(kind: string, touched: Set<string>): void {
    const news = this.#news(kind);
    if (news !== null) {
      for (const key of news) this.#setClaim(kind, key, touched);
      return;
    }
    const known = [...this.#holdings.keys()].filter((holder) => holder.startsWith(`${kind} `));
    const keys = new Set(known.map((holder) => holder.slice(kind.length + 1)));
    for (const { metadata } of this.#objects.objects(kind)) {
      keys.add(`${metadata.namespace ?? 'default'}/${metadata.name}`);
    }
    for (const key of keys) this.#setClaim(kind, key, touched);
  }

  #setClaim(kind: string, key: string, touched: Set<string>): void {
    const holder = `${kind} ${key}`;
    const claim: ResourceClaimObject | undefined = this.#objects.object(kind, key);
    const before = this.#holdings.get(holder) ?? NOTHING;
    const after = claim === undefined ? NOTHING : holdingsOf(claim);
    if (before === after) return;
    if (after.length === 0) this.#holdings.delete(holder);
    else this.#holdings.set(holder, after);
    for (const holding of before) this.#giveBack(holder, holding);
    for (const holding of after) this.#take(holder, holding);
    for (const { driver, pool } of [...before, ...after]) {
      for (const node of this.#slices.nodesOfPool(driver, pool)) touched.add(node);
    }
  }

  #take(holder: string, { id, share }: Holding): void {
    if (share === null) return void this.#whole.set(id, (this.#whole.get(id) ?? 0) + 1);
    const shares = this.#shares.get(id) ?? new Map<string, Amounts>();
    shares.set(holder, addAmounts(shares.get(holder) ?? new Map(), share, 1));
    this.#shares.set(id, shares);
    this.#sum(id, shares);
  }

  #giveBack(holder: string, { id, share }: Holding): void {
    if (share === null) {
      const count = (this.#whole.get(id) ?? 0) - 1;
      if (count > 0) this.#whole.set(id, count);
      else this.#whole.delete(id);
      return;
    }
    const shares = this.#shares.get(id);
    shares?.delete(holder);
    if (shares !== undefined) this.#sum(id, shares);
  }

  #sum(id: string, shares: ReadonlyMap<string, Amounts>): void {
    let sum: Amounts = new Map();
    for (const share of shares.values()) sum = addAmounts(sum, share, 1);
    if (shares.size > 0) return void this.#shared.set(id, sum);
    this.#shared.delete(id);
    this.#shares.delete(id);
  }
}

const NOTHING: readonly Holding[] = [];
const NO_SLICE: ResourceSliceObject = { metadata: { name: '' } };
