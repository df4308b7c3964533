/**
 * Which simulated nodes have a fault now. A row has one at most: of several the last that takes it.
 */
import { Uint8Column } from '@megaplane/base/column';
import { STATUS_NONE, type Client } from '@megaplane/client/client';
import { createInformer, type Informer } from '@megaplane/client/informer';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { isPassing, retry } from '../client/retry.ts';
import { covers, FAULTS_NAME, FAULTS_NAMESPACE, readFaults, takes, type Fault } from './fault.ts';

export interface FaultsOptions {
  readonly client: Client;
  /** Rows of nodes: all that are ours lie below `idLimit`. */
  readonly rows: {
    idLimit(): number;
    has(id: number): boolean;
    nameOf(id: number): string;
    /** Row of a node that is ours, or -1. */
    find(name: string): number;
  };
  /** The fault of a row is another one now. */
  onChange(id: number, fault: Fault | null): void;
  /** These rows were down and are no longer. */
  onRecovered(ids: readonly number[]): void;
  onTrouble(message: string): void;
}

export class Faults {
  readonly #options: FaultsOptions;
  readonly #at = new Uint8Column();
  readonly #informer: Informer;
  readonly #scan = new ObjectScan();
  /** A row says one of these, by its number + 1. */
  #active: readonly Fault[] = [];
  #turn = 0;
  #cancel: () => void = () => {};

  constructor(options: FaultsOptions) {
    this.#options = options;
    this.#informer = createInformer({
      client: options.client,
      path: `/api/v1/namespaces/${FAULTS_NAMESPACE}/configmaps`,
      fieldSelector: `metadata.name=${FAULTS_NAME}`,
      handler: {
        onUpsert: (_id, _isNew, bytes, start, end) => {
          const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
          this.#read(parseJson(text.toString('utf8')) as JsonObject);
        },
        onDelete: () => void this.#apply([]),
        onTrouble: (message) => options.onTrouble(message),
      },
    });
  }

  start(): void {
    this.#informer.start();
  }

  stop(): void {
    this.#turn++;
    this.#cancel();
    this.#informer.stop();
  }

  /** The fault of a row; null: none. */
  of(id: number): Fault | null {
    return this.#active.length === 0 ? null : (this.#active[this.#at.get(id) - 1] ?? null);
  }

  /** A row is new: `bytes[start..end)` is its Node. */
  onNode(id: number, bytes: Uint8Array, start: number, end: number): void {
    this.#at.set(id, 0);
    if (this.#active.length === 0) return;
    const scan = this.#scan;
    scan.scan(bytes, start, end);
    const text = Buffer.from(bytes.subarray(scan.labelsStart, scan.labelsEnd)).toString('utf8');
    const labels = scan.labelsStart < 0 ? {} : (parseJson(text) as JsonObject);
    const name = Buffer.from(bytes.subarray(scan.nameStart, scan.nameEnd)).toString('utf8');
    for (const [index, fault] of this.#active.entries()) {
      if (covers(fault, name, labels)) this.#at.set(id, index + 1);
    }
  }

  #read(configMap: JsonObject): void {
    try {
      void this.#apply(readFaults(configMap));
    } catch (error) {
      this.#options.onTrouble((error as Error).message);
    }
  }

  async #apply(given: readonly Fault[]): Promise<void> {
    const { client, rows } = this.#options;
    const turn = ++this.#turn;
    const nowMs = client.timers.wallMs();
    const active = given.filter(({ untilMs }) => untilMs === 0 || untilMs > nowMs);
    this.#cancel();
    const ends = active.map(({ untilMs }) => untilMs).filter((untilMs) => untilMs > 0);
    if (ends.length > 0) {
      const restMs = Math.min(...ends) - nowMs;
      this.#cancel = client.timers.after(restMs, () => void this.#apply(given));
    }
    const next = new Uint8Column();
    for (const [index, fault] of active.entries()) {
      const mark = (id: number, name: string): void => {
        if (takes(fault, name)) next.set(id, index + 1);
      };
      if (fault.names.length > 0) {
        for (const name of fault.names) if (rows.find(name) >= 0) mark(rows.find(name), name);
      } else if (fault.selector === '') {
        for (let id = 0; id < rows.idLimit(); id++) if (rows.has(id)) mark(id, rows.nameOf(id));
      } else await this.#select(fault, mark, () => turn !== this.#turn);
      if (turn !== this.#turn) return;
    }
    this.#turnTo(active, next);
  }

  /** Which nodes a selector leaves is asked of the server: labels are not kept here. */
  async #select(
    fault: Fault,
    mark: (id: number, name: string) => void,
    isStopped: () => boolean,
  ): Promise<void> {
    const { client, rows } = this.#options;
    const onTrouble = (message: string): void => this.#options.onTrouble(message);
    const scan = new ObjectScan();
    const attempt = async (): Promise<string> => {
      const result = await readPages({
        client,
        path: '/api/v1/nodes',
        labelSelector: fault.selector,
        onItem: (bytes, start, end) => {
          if (!scan.scan(bytes, start, end)) return;
          const name = Buffer.from(bytes.subarray(scan.nameStart, scan.nameEnd)).toString('utf8');
          const id = rows.find(name);
          if (id >= 0) mark(id, name);
        },
      });
      if (result.ok) return '';
      // a selector that the server does not understand is told, and takes no node
      const isOver = !isPassing(result.status.code ?? STATUS_NONE);
      if (isOver) onTrouble(`fault ${fault.id}: ${result.status.message}`);
      return isOver ? '' : `fault ${fault.id}: ${result.status.message}`;
    };
    await retry({ client, isStopped, onTrouble, attempt });
  }

  #turnTo(active: readonly Fault[], next: Uint8Column): void {
    const { rows } = this.#options;
    const before = this.#active;
    const recovered: number[] = [];
    let count = 0;
    this.#active = active;
    for (let id = 0; id < rows.idLimit(); id++) {
      const was = before[this.#at.get(id) - 1] ?? null;
      const is = active[next.get(id) - 1] ?? null;
      this.#at.set(id, next.get(id));
      if (!rows.has(id)) continue;
      if (is !== null) count++;
      if (was?.id === is?.id) continue;
      if (was?.kind === 'down' && is?.kind !== 'down') recovered.push(id);
      this.#options.onChange(id, is);
    }
    if (before.length + active.length > 0) {
      this.#options.onTrouble(
        `faults: ${active.map(({ id }) => id).join(', ') || 'none'}; ${count} nodes`,
      );
    }
    if (recovered.length > 0) this.#options.onRecovered(recovered);
  }
}
