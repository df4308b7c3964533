/**
 * Pods that wait for a node to be freed for them, seen from the nodes: a pod that is not more
 * important has to fit beside them. They are few, so a decision looks at each of their nodes.
 */
import { assert } from '@megaplane/base/assert';
import { ChangeLog } from '../collections/change-log.ts';
import type { Identities } from '../cache/identities.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Nominator } from '../placement/topology/nominator.ts';
import { usageOf } from '../cache/pod-class.ts';
import type { PodTable } from '../cache/pod-table.ts';

/** Rivals whose room is set aside while one node is looked at. */
const LENT_MAX = 1024;

export class Rivals {
  /** Nodes that somebody waits for, or waits for no more. */
  readonly log: ChangeLog = new ChangeLog();
  /** Some of the pods that wait have a say about where others may go. */
  haveTerms = false;
  /** Some want host ports. */
  havePorts = false;
  readonly #nominator: Nominator;
  readonly #nodes: NodeTable;
  readonly #pods: PodTable;
  readonly #identities: Identities;
  /** By node: pods that wait for it. */
  readonly #waiting = new Map<number, readonly number[]>();
  #cursor = -1;
  #nodeVersion = -1;
  readonly #lent = new Int32Array(LENT_MAX);
  #lentCount = 0;
  /** Usages of pods that are left out. */
  readonly #spared: number[] = [];
  #lentNode = -1;

  constructor(nominator: Nominator, nodes: NodeTable, pods: PodTable, identities: Identities) {
    this.#nominator = nominator;
    this.#nodes = nodes;
    this.#pods = pods;
    this.#identities = identities;
  }

  /** Must be called before a series of questions. */
  prepare(): void {
    const nominator = this.#nominator;
    if (this.#cursor === nominator.end && this.#nodeVersion === this.#nodes.version) return;
    const isWhole = this.#nodeVersion !== this.#nodes.version || !nominator.holds(this.#cursor);
    const from = this.#cursor;
    this.#cursor = nominator.end;
    this.#nodeVersion = this.#nodes.version;
    if (isWhole) {
      for (const node of this.#waiting.keys()) this.log.append(node);
      this.#waiting.clear();
      for (const name of nominator.nodes) this.#take(name);
    } else {
      for (let position = from; position < nominator.end; position++) {
        this.#take(nominator.changedAt(position));
      }
    }
    if (this.#waiting.size > 0) return;
    this.haveTerms = false;
    this.havePorts = false;
  }

  /** Nodes that somebody waits for. */
  get nodes(): Iterable<number> {
    return this.#waiting.keys();
  }

  /**
   * Counts the rivals of a pod on a node as if they ran there, until `giveBack`; false if there is
   * none.
   */
  lend(node: number, id: number, priority: number): boolean {
    const waiting = this.#waiting.get(node);
    if (waiting === undefined) return false;
    const { classes } = this.#identities;
    assert(this.#isClear(node), 'room is lent on one node at a time');
    this.#lentNode = node;
    for (const other of waiting) {
      const podClass = classes.get(this.#pods.podClass.get(other));
      if (other === id || podClass.priority < priority || this.#lentCount === LENT_MAX) continue;
      const usage = usageOf(podClass, this.#nodes.usages);
      this.#nodes.lend(node, this.#nodes.usages.get(usage), 1);
      this.#lent[this.#lentCount++] = usage;
    }
    return this.#lentCount > 0;
  }

  /** Leaves less important pods out until `giveBack`; false if there is none. */
  spare(node: number, priority: number): boolean {
    const [pods, nodes] = [this.#pods, this.#nodes];
    assert(this.#isClear(node), 'room is lent on one node at a time');
    this.#lentNode = node;
    for (let other = nodes.firstPod.get(node); other >= 0; other = pods.next.get(other)) {
      if (this.#identities.classes.get(pods.podClass.get(other)).priority >= priority) continue;
      const usage = pods.usage.get(other);
      nodes.lend(node, nodes.usages.get(usage), -1);
      this.#spared.push(usage);
    }
    return this.#spared.length > 0;
  }

  /** Nothing is lent, or on this node. */
  #isClear(node: number): boolean {
    return node === this.#lentNode || (this.#lentCount === 0 && this.#spared.length === 0);
  }

  giveBack(): void {
    for (const usage of this.#spared.splice(0)) {
      this.#nodes.lend(this.#lentNode, this.#nodes.usages.get(usage), 1);
    }
    for (let i = 0; i < this.#lentCount; i++) {
      const usage = this.#lent[i] ?? 0;
      this.#nodes.lend(this.#lentNode, this.#nodes.usages.get(usage), -1);
    }
    this.#lentCount = 0;
  }

  #take(name: string): void {
    const node = this.#nodes.find(name);
    if (node < 0) return;
    const waiting = this.#nominator.waitingFor(name);
    if (waiting.length === 0) this.#waiting.delete(node);
    else this.#waiting.set(node, waiting);
    this.log.append(node);
    for (const id of waiting) {
      const podClass = this.#identities.classes.get(this.#pods.podClass.get(id));
      if (podClass.hasPodTerms) this.haveTerms = true;
      if (podClass.ports.length > 0) this.havePorts = true;
    }
  }
}
