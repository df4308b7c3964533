/**
 * Nodes that have about as many volumes as their drivers allow. Kept up to date by what has
 * changed: each volume that is attached changes one node, and pods with volumes come by the
 * thousand.
 */
import type { NodeTable } from './node-table.ts';
import type { ObjectStore } from './object-store.ts';
import type { KubeObject } from '../api/objects.ts';
import { limitsOf, type AttachmentObject, type CsiNodeObject } from '../framework/attach-limits.ts';

const CSI_NODE = 'CSINode';
const ATTACHMENT = 'VolumeAttachment';

export class VolumeRoom {
  readonly #nodes: NodeTable;
  readonly #objects: ObjectStore;
  readonly #roomWatched: number;
  /** By node: volumes of its pods that may count, each as often as a pod has it. */
  readonly #disks = new Map<number, number>();
  /** By node: how many its least driver allows, without those that are attached. */
  readonly #limits = new Map<number, number>();
  readonly #near = new Set<number>();
  /** By name of the node, which may not be here yet: what its least driver allows. */
  readonly #least = new Map<string, number>();
  /** By attachment: the name of its node. */
  readonly #attachedTo = new Map<string, string>();
  readonly #attached = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  /** Position in the log of the nodes. */
  #nodesTo = -1;

  /** Nodes with room for fewer than `roomWatched` volumes are watched. */
  constructor(nodes: NodeTable, objects: ObjectStore, roomWatched: number) {
    this.#nodes = nodes;
    this.#objects = objects;
    this.#roomWatched = roomWatched;
  }

  /** Rows of the nodes that are watched, as of the last `catchUp`. */
  get near(): ReadonlySet<number> {
    return this.#near;
  }

  /** Pods took a node with so many volumes, or left it. */
  count(node: number, delta: number): void {
    const disks = (this.#disks.get(node) ?? 0) + delta;
    if (disks === 0) this.#disks.delete(node);
    else this.#disks.set(node, disks);
    this.#watch(node);
  }

  /** Takes in what has changed of nodes, their drivers and attachments. */
  catchUp(): void {
    this.#catchUpKind(ATTACHMENT, this.#attachedTo, (key) => this.#setAttachment(key));
    this.#catchUpKind(CSI_NODE, this.#least, (key) => this.#setLeast(key));
    const { log } = this.#nodes;
    if (this.#nodesTo >= 0 && log.holds(this.#nodesTo)) {
      for (let at = this.#nodesTo; at < log.end; at++) this.#look(log.at(at));
    } else {
      for (let id = 0; id < this.#nodes.idEnd; id++) this.#look(id);
    }
    this.#nodesTo = log.end;
  }

  #catchUpKind(
    kind: string,
    known: ReadonlyMap<string, unknown>,
    set: (key: string) => void,
  ): void {
    const version = this.#objects.versionOf(kind);
    const seen = this.#seen.get(kind) ?? -1;
    if (version === seen) return;
    this.#seen.set(kind, version);
    const news = this.#objects.changesSince(kind, seen);
    const keys = news ?? new Set([...known.keys(), ...namesOf(this.#objects.objects(kind))]);
    for (const key of keys) set(key);
  }

  #setAttachment(key: string): void {
    const attachment: AttachmentObject | undefined = this.#objects.object(ATTACHMENT, key);
    const before = this.#attachedTo.get(key);
    const after = attachment === undefined ? undefined : (attachment.spec?.nodeName ?? '');
    if (before === after) return;
    if (after === undefined) this.#attachedTo.delete(key);
    else this.#attachedTo.set(key, after);
    if (before !== undefined) this.#attach(before, -1);
    if (after !== undefined) this.#attach(after, 1);
  }

  #attach(name: string, delta: number): void {
    const count = (this.#attached.get(name) ?? 0) + delta;
    if (count === 0) this.#attached.delete(name);
    else this.#attached.set(name, count);
    this.#lookAt(name);
  }

  #setLeast(name: string): void {
    const csiNode: CsiNodeObject | undefined = this.#objects.object(CSI_NODE, name);
    const least = csiNode === undefined ? Infinity : Math.min(...limitsOf(csiNode).values());
    if (least === Infinity) this.#least.delete(name);
    else this.#least.set(name, least);
    this.#lookAt(name);
  }

  #lookAt(name: string): void {
    const node = this.#nodes.find(name);
    if (node >= 0) this.#look(node);
  }

  #look(node: number): void {
    const name = this.#nodes.isPresent(node) ? this.#nodes.nameOf(node) : '';
    const least = this.#least.get(name);
    if (least === undefined) this.#limits.delete(node);
    else this.#limits.set(node, least - (this.#attached.get(name) ?? 0));
    this.#watch(node);
  }

  #watch(node: number): void {
    const limit = this.#limits.get(node);
    const disks = this.#disks.get(node) ?? 0;
    if (limit !== undefined && limit - disks < this.#roomWatched) this.#near.add(node);
    else this.#near.delete(node);
  }
}

function* namesOf(objects: Iterable<KubeObject>): Iterable<string> {
  for (const { metadata } of objects) yield metadata.name;
}
