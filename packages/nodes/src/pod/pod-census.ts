/** Counts and addresses of pods whose stages come from files, by row of the pods' informer. */
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { matches } from '@megaplane/machinery/scan';
import type { PodAddresses, PodNetwork } from './pod-addresses.ts';
import { PodColumns, RUNNING, STARTED } from './pod-columns.ts';
import { PodIps } from './pod-ips.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { podIps } from './pod-ip-fields.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

const PHASE_RUNNING = new TextEncoder().encode('Running');

export class PodCensus {
  readonly handler: InformerHandler;
  readonly #columns = new PodColumns();
  readonly #scan = new ObjectScan();
  readonly #metrics: SimulatorMetrics;
  readonly #ips: PodIps;

  constructor(metrics: SimulatorMetrics, addresses: PodAddresses) {
    this.#metrics = metrics;
    this.#ips = new PodIps(addresses);
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => this.#onPod(id, isNew, bytes, start, end),
      onDelete: (id) => this.#onGone(id),
    };
  }

  /** The addresses of the pod at a row, of its node's networks; none when none are left. */
  addressesOf(id: number, networks: readonly PodNetwork[]): readonly string[] {
    return id < 0 ? [] : this.#ips.of(id, networks);
  }

  /** Whether the pod at a row begins now: true once for each pod. */
  begins(id: number): boolean {
    if (this.#columns.has(id, STARTED)) return false;
    this.#columns.mark(id, STARTED, true);
    return true;
  }

  #onPod(id: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): void {
    const scan = this.#scan;
    if (isNew) {
      this.#columns.reset(id);
      this.#ips.reset(id);
      this.#metrics.podsBound++;
    }
    if (!scan.scan(bytes, start, end)) return;
    this.#count(id, matches(bytes, scan.phaseStart, scan.phaseEnd, PHASE_RUNNING));
    if (this.#ips.has(id)) return;
    this.#ips.keep(id, podIps(bytes, scan.statusStart, scan.statusEnd));
  }

  #onGone(id: number): void {
    this.#count(id, false);
    this.#ips.free(id);
    this.#columns.retire(id);
    this.#metrics.podsBound--;
  }

  #count(id: number, isRunning: boolean): void {
    if (isRunning === this.#columns.has(id, RUNNING)) return;
    this.#columns.mark(id, RUNNING, isRunning);
    this.#metrics.podsRunning += isRunning ? 1 : -1;
  }
}
