/** Counts and addresses of pods whose stages come from files, by row of the pods' informer. */
import type { InformerHandler } from '@megaplane/client/informer';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, matches, pathOf, stringValue } from '@megaplane/machinery/scan';
import { addressText } from './addresses.ts';
import type { NodeNetwork, PodAddresses } from './pod-addresses.ts';
import { PodColumns, RUNNING } from './pod-columns.ts';
import type { SimulatorMetrics } from './simulator-metrics.ts';

const PHASE_RUNNING = new TextEncoder().encode('Running');
const POD_IP = pathOf('podIP');

export class PodCensus {
  readonly handler: InformerHandler;
  readonly #columns = new PodColumns();
  readonly #scan = new ObjectScan();
  readonly #metrics: SimulatorMetrics;
  readonly #addresses: PodAddresses;

  constructor(metrics: SimulatorMetrics, addresses: PodAddresses) {
    this.#metrics = metrics;
    this.#addresses = addresses;
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => this.#onPod(id, isNew, bytes, start, end),
      onDelete: (id) => this.#onGone(id),
    };
  }

  /** The address of the pod at a row, of its node's network; '' when none is left. */
  addressOf(id: number, network: NodeNetwork): string {
    if (id < 0) return '';
    if (this.#columns.address.get(id) === 0) {
      this.#columns.address.set(id, Math.max(0, this.#addresses.allocate(network)));
    }
    const address = this.#columns.address.get(id);
    return address === 0 ? '' : addressText(address);
  }

  #onPod(id: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): void {
    const scan = this.#scan;
    if (isNew) {
      this.#columns.reset(id);
      this.#metrics.podsBound++;
    }
    if (!scan.scan(bytes, start, end)) return;
    this.#count(id, matches(bytes, scan.phaseStart, scan.phaseEnd, PHASE_RUNNING));
    if (this.#columns.address.get(id) > 0 || scan.statusStart < 0) return;
    const at = findPath(bytes, scan.statusStart, scan.statusEnd, POD_IP);
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const address = this.#addresses.take(stringValue(buffer, at, scan.statusEnd));
    if (address < 0) return;
    this.#columns.address.set(id, address);
  }

  #onGone(id: number): void {
    this.#count(id, false);
    const address = this.#columns.address.get(id);
    if (address > 0) this.#addresses.free(address);
    this.#columns.retire(id);
    this.#metrics.podsBound--;
  }

  #count(id: number, isRunning: boolean): void {
    if (isRunning === this.#columns.has(id, RUNNING)) return;
    this.#columns.mark(id, RUNNING, isRunning);
    this.#metrics.podsRunning += isRunning ? 1 : -1;
  }
}
