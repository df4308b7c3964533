/** How many volumes and claims there are, and are bound, under upstream's names. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { Counter, MetricsRegistry } from '../framework/metrics-registry.ts';
import { classOf } from './claim-match.ts';
import { migratedPluginOf } from './provisioning.ts';

/** Plug-ins that the binder has itself; upstream knows no others either. */
const PLUGINS: Readonly<Record<string, string>> = {
  hostPath: 'kubernetes.io/host-path',
  nfs: 'kubernetes.io/nfs',
};

export class VolumeMetrics {
  readonly defaulted: Counter;
  readonly notDefaulted: Counter;
  readonly #volumes: Counter;
  readonly #bound: Counter;
  readonly #unbound: Counter;
  readonly #boundClaims: Counter;
  readonly #unboundClaims: Counter;

  constructor(board: MetricsRegistry) {
    const gauge = (name: string, of: string, labels: readonly string[]): Counter =>
      board.gauge(`pv_collector_${name}_count`, `Gauge measuring number of ${of}`, labels);
    const volume = 'persistent volumes';
    this.#volumes = gauge('total_pv', volume, ['plugin_name', 'volume_mode']);
    this.#bound = gauge('bound_pv', `${volume} currently bound`, ['storage_class']);
    this.#unbound = gauge('unbound_pv', `${volume} currently unbound`, ['storage_class']);
    const claim = 'persistent volume claims currently';
    const labels = ['namespace', 'storage_class', 'volume_attributes_class'];
    this.#boundClaims = gauge('bound_pvc', `${claim} bound`, labels);
    this.#unboundClaims = gauge('unbound_pvc', `${claim} unbound`, labels);
    const given =
      'Total number of retroactive StorageClass assignments to persistent volume claims';
    this.defaulted = board.counter('retroactive_storageclass_total', given);
    const failed = `${given} that failed`;
    this.notDefaulted = board.counter('retroactive_storageclass_errors_total', failed);
  }

  volumeChanged(before: JsonObject | undefined, after: JsonObject | undefined): void {
    if (before !== undefined) this.#countVolume(before, -1);
    if (after !== undefined) this.#countVolume(after, 1);
  }

  claimChanged(before: JsonObject | undefined, after: JsonObject | undefined): void {
    if (before !== undefined) this.#countClaim(before, -1);
    if (after !== undefined) this.#countClaim(after, 1);
  }

  #countVolume(volume: JsonObject, by: 1 | -1): void {
    const mode = stringAt(volume, 'spec', 'volumeMode') || 'Filesystem';
    this.#volumes.add([pluginOf(volume), mode], by);
    (isBound(volume) ? this.#bound : this.#unbound).add([classOf(volume)], by);
  }

  #countClaim(claim: JsonObject, by: 1 | -1): void {
    const namespace = stringAt(claim, 'metadata', 'namespace');
    const attributes = stringAt(claim, 'spec', 'volumeAttributesClassName');
    const counter = isBound(claim) ? this.#boundClaims : this.#unboundClaims;
    counter.add([namespace, classOf(claim), attributes], by);
  }
}

function isBound(object: JsonObject): boolean {
  return stringAt(object, 'status', 'phase') === 'Bound';
}

function pluginOf(volume: JsonObject): string {
  const driver = stringAt(volume, 'spec', 'csi', 'driver');
  if (driver !== '') return `kubernetes.io/csi:${driver}`;
  const migrated = migratedPluginOf(volume);
  if (migrated !== undefined) return `kubernetes.io/csi:${migrated.driver}`;
  for (const [field, plugin] of Object.entries(PLUGINS)) {
    if (objectAt(volume, 'spec', field) !== undefined) return plugin;
  }
  return 'N/A';
}
