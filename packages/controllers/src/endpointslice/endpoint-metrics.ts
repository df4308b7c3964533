/** What the controllers of EndpointSlices tell of their work, under upstream's names. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Counter, Histogram, MetricsRegistry } from '../framework/metrics-registry.ts';

const PER_SYNC: readonly number[] = exponential(2, 15);
/** What upstream uses where a histogram names none. */
const USUAL: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Slices that a sync makes, changes and deletes. */
export interface SliceChanges {
  readonly create: readonly JsonObject[];
  readonly update: readonly JsonObject[];
  readonly gone: readonly JsonObject[];
}

interface Sizes {
  readonly endpoints: number;
  readonly slices: number;
  readonly desired: number;
}

/** Of `endpoint_slice_controller`, or of `endpoint_slice_mirroring_controller`. */
export class SliceMetrics {
  readonly #added: Histogram;
  readonly #removed: Histogram;
  readonly #changes: Counter;
  readonly #sizes: Map<string, Sizes> = new Map();
  readonly #endpointsMax: number;

  constructor(board: MetricsRegistry, subsystem: string, endpointsMax: number) {
    this.#endpointsMax = endpointsMax;
    const of = (what: string): string => `${subsystem}_${what}`;
    const help = (what: string): string => `Number of endpoints ${what} on each sync`;
    this.#added = board.histogram(of('endpoints_added_per_sync'), help('added'), PER_SYNC);
    this.#removed = board.histogram(of('endpoints_removed_per_sync'), help('removed'), PER_SYNC);
    this.#changes = board.counter(of('changes'), 'Number of EndpointSlice changes', ['operation']);
    const sum = (name: string, text: string, field: keyof Sizes): void =>
      board.reading(of(name), text, [], () => [[[], this.#sum(field)]]);
    sum('endpoints_desired', 'Number of endpoints desired', 'endpoints');
    sum('num_endpoint_slices', 'Number of EndpointSlices', 'slices');
    const ideal = 'Number of EndpointSlices that would exist with perfect endpoint allocation';
    sum('desired_endpoint_slices', ideal, 'desired');
  }

  #sum(field: keyof Sizes): number {
    let sum = 0;
    for (const sizes of this.#sizes.values()) sum += sizes[field];
    return sum;
  }

  /** A service was looked at; `before` are the slices that it had. */
  synced(key: string, before: readonly JsonObject[], changes: SliceChanges): void {
    const { create, update, gone } = changes;
    const named = new Set([...update, ...gone].map(nameOf));
    const old = keysOf(before.filter((slice) => named.has(nameOf(slice))));
    const fresh = keysOf([...create, ...update]);
    this.#added.record([...fresh].filter((one) => !old.has(one)).length);
    this.#removed.record([...old].filter((one) => !fresh.has(one)).length);
    const counts = { create: create.length, update: update.length, delete: gone.length };
    for (const [operation, count] of Object.entries(counts)) {
      if (count > 0) this.#changes.add([operation], count);
    }
    const after = [...before.filter((slice) => !named.has(nameOf(slice))), ...create, ...update];
    const endpoints = after.reduce((sum, slice) => sum + listAt(slice, 'endpoints').length, 0);
    const desired = Math.max(1, Math.ceil(endpoints / this.#endpointsMax));
    this.#sizes.set(key, { endpoints, slices: after.length, desired });
  }

  forget(key: string): void {
    this.#sizes.delete(key);
  }
}

/** What only the slices of services with selectors have. */
export class ServiceSliceMetrics extends SliceMetrics {
  readonly #perSync: Histogram;
  readonly #syncs: Counter;
  readonly #distributions: Map<string, string> = new Map();

  constructor(board: MetricsRegistry, endpointsMax: number) {
    const subsystem = 'endpoint_slice_controller';
    super(board, subsystem, endpointsMax);
    this.#perSync = board.histogram(
      `${subsystem}_endpointslices_changed_per_sync`,
      'Number of EndpointSlices changed on each Service sync',
      USUAL,
      ['topology', 'traffic_distribution'],
    );
    this.#syncs = board.counter(`${subsystem}_syncs`, 'Number of EndpointSlice syncs', ['result']);
    board.reading(
      `${subsystem}_services_count_by_traffic_distribution`,
      'Number of Services using some specific trafficDistribution',
      ['traffic_distribution'],
      () => {
        const counts: Map<string, number> = new Map();
        for (const one of this.#distributions.values()) counts.set(one, (counts.get(one) ?? 0) + 1);
        return [...counts].map(([one, count]) => [[one], count] as const);
      },
    );
  }

  /** As `synced`, of a service that is there. */
  served(
    key: string,
    service: JsonObject,
    before: readonly JsonObject[],
    changes: SliceChanges,
    isByTopology: boolean,
  ): void {
    this.synced(key, before, changes);
    const distribution = stringAt(service, 'spec', 'trafficDistribution');
    if (distribution === '') this.#distributions.delete(key);
    else this.#distributions.set(key, distribution);
    const { create, update, gone } = changes;
    const count = create.length + update.length + gone.length;
    this.#perSync.record(count, [isByTopology ? 'Auto' : 'Disabled', distribution]);
  }

  ended(isWell: boolean): void {
    this.#syncs.add([isWell ? 'success' : 'error']);
  }

  override forget(key: string): void {
    super.forget(key);
    this.#distributions.delete(key);
  }
}

/** And what only mirrored ones have. */
export class MirrorMetrics extends SliceMetrics {
  readonly #skipped: Histogram;
  readonly #seconds: Histogram;

  constructor(board: MetricsRegistry, endpointsMax: number) {
    const subsystem = 'endpoint_slice_mirroring_controller';
    super(board, subsystem, endpointsMax);
    this.#skipped = board.histogram(
      `${subsystem}_addresses_skipped_per_sync`,
      'Number of addresses skipped on each Endpoints sync, invalid ones and those beyond the limit',
      PER_SYNC,
    );
    this.#seconds = board.histogram(
      `${subsystem}_endpoints_sync_duration`,
      'Duration of syncEndpoints() in seconds',
      exponential(0.001, 15),
    );
  }

  skipped(addresses: number): void {
    this.#skipped.record(addresses);
  }

  took(seconds: number): void {
    this.#seconds.record(seconds);
  }
}

function nameOf(slice: JsonObject): string {
  return stringAt(slice, 'metadata', 'name');
}

function keysOf(slices: readonly JsonObject[]): Set<string> {
  const keys = slices.flatMap((slice) =>
    listAt(slice, 'endpoints').map((endpoint) => {
      const addresses = JSON.stringify(listAt(endpoint, 'addresses'));
      return `${addresses} ${stringAt(objectAt(endpoint, 'targetRef'), 'uid')}`;
    }),
  );
  return new Set(keys);
}
