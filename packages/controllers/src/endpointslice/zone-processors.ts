/**
 * The share of all processors that each zone has: nodes that are ready and no control plane's.
 * Nodes are looked at from the moment that somebody asks, in a watch of its own if need be: hardly
 * any cluster has a service whose hints depend on it.
 *
 *   by row of the nodes' informer:
 *   zone     index of its zone + 1; 0 = the node does not count
 *   millis   thousandths of processors that it has for pods
 */
import { assert } from '@megaplane/base/assert';
import { Float64Column, Uint32Column } from '@megaplane/base/column';
import { asBuffer } from '@megaplane/base/bytes';
import type { Informer } from '@megaplane/client/informer';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { milliValueOf } from '@megaplane/machinery/quantity';
import type { SharedInformers } from '../framework/shared-informers.ts';
import type { ZoneShares } from './topology-hints.ts';

const EXCLUDED = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** The zone of nodes that do not say it, or not what they have. */
const NOWHERE = '';

export class ZoneProcessors {
  readonly #informers: SharedInformers;
  readonly #changed: () => void;
  readonly #zone = new Uint32Column();
  readonly #millis = new Float64Column();
  readonly #indexes: Map<string, number> = new Map();
  readonly #names: string[] = [];
  /** By zone: nodes, and their processors. */
  readonly #nodes: number[] = [];
  readonly #sums: number[] = [];
  #informer: Informer | undefined;

  /** `changed` hears when shares may be others. */
  constructor(informers: SharedInformers, changed: () => void) {
    this.#informers = informers;
    this.#changed = changed;
  }

  /** Begins to look at nodes. */
  start(): void {
    if (this.#informer !== undefined) return;
    this.#informer = this.#informers.subscribe(
      { path: '/api/v1/nodes' },
      {
        onUpsert: (row, isNew, bytes, start, end) => {
          assert(!isNew || this.#zone.get(row) === 0, 'a row is free before a node has it');
          const text = asBuffer(bytes).toString('utf8', start, end);
          this.#set(row, ...judge(parseJson(text) as JsonObject));
        },
        onDelete: (row) => this.#set(row, undefined, 0),
        onSynced: () => this.#changed(),
      },
    );
    this.#informers.start();
  }

  /** Whether all nodes have been seen. */
  get isReady(): boolean {
    return this.#informer?.isSynced === true;
  }

  /** Zone -> share; undefined where a node does not say its part, or all are in one zone. */
  get shares(): ZoneShares {
    const known = this.#indexes.get(NOWHERE);
    if (known !== undefined && this.#nodes[known] !== 0) return undefined;
    const zones = [...this.#names.keys()].filter((zone) => this.#nodes[zone] !== 0);
    const total = zones.reduce((sum, zone) => sum + (this.#sums[zone] ?? 0), 0);
    if (zones.length < 2 || total === 0) return undefined;
    const shareOf = (zone: number): number => (this.#sums[zone] ?? 0) / total;
    return new Map(zones.map((zone) => [this.#names[zone] ?? '', shareOf(zone)]));
  }

  #set(row: number, name: string | undefined, millis: number): void {
    const zone = name === undefined ? 0 : this.#indexOf(name) + 1;
    const before = this.#zone.get(row);
    if (before === zone && (zone === 0 || this.#millis.get(row) === millis)) return;
    if (before !== 0) this.#add(before - 1, -1, -this.#millis.get(row));
    if (zone !== 0) this.#add(zone - 1, 1, millis);
    this.#zone.set(row, zone);
    this.#millis.set(row, millis);
    if (this.isReady) this.#changed();
  }

  #add(zone: number, nodes: number, millis: number): void {
    const count = (this.#nodes[zone] ?? 0) + nodes;
    assert(count >= 0, 'no more nodes leave a zone than it has');
    this.#nodes[zone] = count;
    this.#sums[zone] = (this.#sums[zone] ?? 0) + millis;
  }

  #indexOf(name: string): number {
    let index = this.#indexes.get(name);
    if (index === undefined) {
      index = this.#names.push(name) - 1;
      this.#indexes.set(name, index);
      this.#add(index, 0, 0);
    }
    return index;
  }
}

/** The zone that a node counts for, undefined for none, and its processors. */
function judge(node: JsonObject): [string | undefined, number] {
  const labels = objectAt(node, 'metadata', 'labels');
  if (EXCLUDED.some((label) => valueAt(labels, label) !== undefined)) return [undefined, 0];
  const ready = listAt(node, 'status', 'conditions').find(
    (one) => stringAt(one, 'type') === 'Ready',
  );
  if (stringAt(ready, 'status') !== 'True') return [undefined, 0];
  const zone = stringAt(labels, 'topology.kubernetes.io/zone');
  const millis = milliValueOf(stringAt(node, 'status', 'allocatable', 'cpu'));
  return zone === '' || millis === 0 ? [NOWHERE, 0] : [zone, millis];
}
