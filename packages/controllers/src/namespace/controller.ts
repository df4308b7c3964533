/** Deletion of namespaces, and the objects that every namespace has. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { Informer } from '@megaplane/client/informer';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Counter, Histogram } from '../framework/metrics-registry.ts';
import { ensureDefault, ROOT_CA_NAME, type NamespaceDefault } from './namespace-defaults.ts';
import { ResourceDiscovery } from '../framework/api-resources.ts';
import { deleteNamespace, type Left } from './namespace-deletion.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

const DELETION_WORKERS = 10;
const DEFAULT_WORKERS = 16;
/** nsControllerRateLimiter of upstream's namespace_controller.go. */
const RETRY = { minMs: 5, maxMs: 60_000 };
/** Creations that were under way when the deletion began may finish before the first round. */
const DELETION_DELAY_MS = 100;

export interface NamespaceControllerOptions extends ControllerContext {
  readonly isDeletion: boolean;
  readonly defaults: readonly NamespaceDefault[];
  readonly now: () => string;
}

export class NamespaceController {
  readonly #options: NamespaceControllerOptions;
  readonly #namespaces: Informer;
  readonly #scan = new ObjectScan();
  readonly #terminating: Set<string> = new Set();
  /** What the last round left in each namespace that goes. */
  readonly #left: Map<string, Left> = new Map();
  readonly #deletions: Workers<string>;
  readonly #ensured: readonly Workers<string>[];
  readonly #published: Counter;
  readonly #publishSeconds: Histogram;

  constructor(options: NamespaceControllerOptions) {
    this.#options = options;
    const { client, informers, now, onError } = options;
    const { timers } = client;
    const discovery = new ResourceDiscovery(client);
    const subsystem = 'root_ca_cert_publisher';
    const help = 'Number of namespace syncs happened in root ca cert publisher.';
    const { metrics } = informers;
    this.#published = metrics.counter(`${subsystem}_sync_total`, help, ['code']);
    this.#publishSeconds = metrics.histogram(
      `${subsystem}_sync_duration_seconds`,
      'How long they took.',
      exponential(0.001, 15),
      ['code'],
    );
    this.#deletions = new Workers(
      timers,
      options.workers ?? DELETION_WORKERS,
      (name) =>
        deleteNamespace(discovery, name, now, this.#left.get(name) ?? null, (left) => {
          if (this.#terminating.has(name)) this.#left.set(name, left);
        }),
      onError,
      informers.queues.queue('namespace'),
      RETRY,
    );
    this.#ensured = options.defaults.map(
      (one) =>
        new Workers(
          timers,
          DEFAULT_WORKERS,
          (name) => this.#ensure(name, one),
          onError,
          informers.queues.queue(one.queue),
        ),
    );
    this.#namespaces = informers.subscribe(
      { path: '/api/v1/namespaces' },
      this.#namespaceHandler(),
    );
    for (const [index, one] of options.defaults.entries()) this.#watchDefault(one, index);
  }

  async #ensure(name: string, one: NamespaceDefault): Promise<WorkResult> {
    if (this.#terminating.has(name)) return 'done';
    const { client } = this.#options;
    const startMs = client.timers.nowMs();
    const result = await ensureDefault(client, name, one);
    if (one.name === ROOT_CA_NAME) {
      const code = [result === 'done' ? '200' : '500'];
      this.#published.add(code);
      this.#publishSeconds.record((client.timers.nowMs() - startMs) / 1000, code);
    }
    return result;
  }

  #namespaceHandler(): InformerHandler {
    return {
      onUpsert: (row, _isNew, bytes, start, end) => {
        const name = this.#namespaces.keyOf(row);
        this.#scan.scan(bytes, start, end);
        if (this.#scan.deletionTimestampStart < 0) {
          for (const workers of this.#ensured) workers.add(name);
          return;
        }
        // What comes after that are our own conditions: its rounds have a time of their own.
        if (this.#terminating.has(name)) return;
        this.#terminating.add(name);
        if (this.#options.isDeletion) this.#deletions.addAfter(name, DELETION_DELAY_MS);
      },
      onDelete: (row) => {
        const name = this.#namespaces.keyOf(row);
        this.#terminating.delete(name);
        this.#left.delete(name);
        this.#deletions.queue.drop(name);
      },
    };
  }

  #watchDefault(one: NamespaceDefault, index: number): void {
    const informer = this.#options.informers.subscribe(
      { path: `/api/v1/${one.resource}` },
      {
        onUpsert: (row, isNew) => this.#defaultChanged(informer.keyOf(row), one, index, isNew),
        onDelete: (row) => this.#defaultChanged(informer.keyOf(row), one, index, false),
      },
    );
  }

  /** Its own creation needs no look; a change or a deletion does. */
  #defaultChanged(key: string, one: NamespaceDefault, index: number, isNew: boolean): void {
    const slash = key.indexOf('/');
    if (isNew || key.length - slash - 1 !== one.name.length || !key.endsWith(one.name)) return;
    this.#ensured[index]?.add(key.slice(0, slash));
  }

  start(): void {
    this.#deletions.start();
    for (const workers of this.#ensured) workers.start();
  }

  stop(): void {
    this.#deletions.stop();
    for (const workers of this.#ensured) workers.stop();
  }
}
