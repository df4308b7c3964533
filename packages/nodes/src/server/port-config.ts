/**
 * What kwok's files and objects say about the kubelets' port, beside stages: Logs, Exec, Attach,
 * PortForward and ResourceUsage, each of one pod or of the cluster, and Metric.
 */
import type { Field } from '../yaml/yaml-fields.ts';
import { readMetricPage, type MetricPage } from './metric-pages.ts';
import {
  PodRules,
  readAttach,
  readExec,
  readForward,
  readLog,
  readPodRule,
  type AttachItem,
  type ExecItem,
  type ForwardItem,
  type LogItem,
} from './pod-rules.ts';
import { readUsage, Usage, type UsageItem, type UsageWorld } from './usage.ts';

/** Kinds that are read here; the names of their collections on a server. */
export const PORT_KINDS: Readonly<Record<string, string>> = {
  Logs: 'logs',
  ClusterLogs: 'clusterlogs',
  Exec: 'execs',
  ClusterExec: 'clusterexecs',
  Attach: 'attaches',
  ClusterAttach: 'clusterattaches',
  PortForward: 'portforwards',
  ClusterPortForward: 'clusterportforwards',
  ResourceUsage: 'resourceusages',
  ClusterResourceUsage: 'clusterresourceusages',
  Metric: 'metrics',
};

/**
 * Kinds by which pods reach the simulator's own machine: its programs, its files, its network. From
 * the server they are only read where a flag names them: there, whoever may make them would be as
 * the simulator.
 */
export const HOST_KINDS: ReadonlySet<string> = new Set([
  ...['Logs', 'ClusterLogs', 'Exec', 'ClusterExec', 'Attach', 'ClusterAttach'],
  ...['PortForward', 'ClusterPortForward'],
]);

export class PortConfig {
  readonly logs: PodRules<LogItem> = new PodRules();
  readonly execs: PodRules<ExecItem> = new PodRules();
  readonly attaches: PodRules<AttachItem> = new PodRules();
  readonly forwards: PodRules<ForwardItem> = new PodRules();
  readonly usages: PodRules<UsageItem> = new PodRules();
  readonly usage: Usage;
  readonly #pages: Map<string, MetricPage> = new Map();
  readonly #defaultPages: Map<string, MetricPage> = new Map();
  #usages = 0;

  constructor(world: Omit<UsageWorld, 'rules'>) {
    this.usage = new Usage({
      rules: this.usages,
      nowMs: () => world.nowMs(),
      random: () => world.random(),
      startedContainers: (node) => world.startedContainers(node),
    });
  }

  /** Pages of metrics, in the order in which they came; those that come along are last. */
  get pages(): readonly MetricPage[] {
    return [...this.#pages.values(), ...this.#defaultPages.values()];
  }

  get hasUsages(): boolean {
    return this.#usages > 0;
  }

  /**
   * Takes a document of one of the kinds; throws a FileError. A later one of a key replaces;
   * `isDefault` ones hold where no other says anything.
   */
  put(kind: string, key: string, document: Field, isDefault = false): void {
    const own = `${kind} ${key}`;
    switch (kind.replace(/^Cluster/, '')) {
      case 'Logs':
        this.logs.put(own, readPodRule(document, 'logs', readLog));
        break;
      case 'Exec':
        this.execs.put(own, readPodRule(document, 'execs', readExec));
        break;
      case 'Attach':
        this.attaches.put(own, readPodRule(document, 'attaches', readAttach));
        break;
      case 'PortForward':
        this.forwards.put(own, readPodRule(document, 'forwards', readForward));
        break;
      case 'ResourceUsage':
        this.usages.put(
          own,
          readPodRule(document, 'usages', (item) => this.#usageOf(item)),
          isDefault,
        );
        this.#usages++;
        break;
      case 'Metric':
        (isDefault ? this.#defaultPages : this.#pages).set(
          own,
          readMetricPage(document, this.usage),
        );
        break;
    }
  }

  #usageOf(item: Field): UsageItem {
    return readUsage(item, this.usage);
  }

  /** Forgets a document. */
  remove(kind: string, key: string): void {
    const own = `${kind} ${key}`;
    for (const rules of [this.logs, this.execs, this.attaches, this.forwards, this.usages]) {
      rules.remove(own);
    }
    this.#pages.delete(own);
  }
}
