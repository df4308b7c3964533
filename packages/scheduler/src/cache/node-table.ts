// data plane: a million nodes in columns
import { assert } from '@megaplane/base/assert';
import { Float64Column, Int32Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import { AmountColumn } from '../collections/amount-column.ts';
import { ChangeLog } from '../collections/change-log.ts';
import { ImageTable } from './image-table.ts';
import { Interner } from '../collections/interner.ts';
import {
  HOSTNAME_KEY,
  sizeOf,
  type NodeFacts,
  type NodeKind,
  type NodeSize,
} from './node-facts.ts';
import { ScalarNames, Usages, type Usage } from './usage.ts';

/**
 * Nodes by number. A node that pods name before it exists, or after it is gone, has a row too (it
 * is then not `isPresent`), so that its pods are counted when it comes.
 *
 *   key       name <-> id
 *   present   Uint8    1: the node exists
 *   kind      Uint32   labels, taints and cordon, interned
 *   size      Uint32   allocatable, interned; its amounts in columns by that number
 *   images    Uint32   images that it holds, interned           (0: none)
 *   used      5 x Float64   cpu, memory, ephemeral; cpu and memory with defaults
 *   pods      Uint32   pods on it
 *   firstPod  Int32    head of the list of its pods, -1 for none  (kept by PodTable)
 */
export class NodeTable {
  readonly kinds: Interner<NodeKind> = new Interner();
  readonly sizes: Interner<NodeSize> = new Interner();
  readonly images: ImageTable = new ImageTable();
  readonly scalars: ScalarNames = new ScalarNames();
  readonly usages: Usages = new Usages(this.scalars);
  readonly log: ChangeLog = new ChangeLog();
  readonly present: Uint8Column = new Uint8Column();
  readonly kind: Uint32Column = new Uint32Column();
  readonly size: Uint32Column = new Uint32Column();
  readonly imageSet: Uint32Column = new Uint32Column();
  /** By number of the size: what nodes of that size have. */
  readonly sizeMilliCpu: Float64Column = new Float64Column();
  readonly sizeMemory: Float64Column = new Float64Column();
  readonly sizeEphemeral: Float64Column = new Float64Column();
  readonly sizePods: Float64Column = new Float64Column();
  readonly milliCpu: Float64Column = new Float64Column();
  readonly memory: Float64Column = new Float64Column();
  readonly ephemeral: Float64Column = new Float64Column();
  readonly milliCpuNonZero: Float64Column = new Float64Column();
  readonly memoryNonZero: Float64Column = new Float64Column();
  readonly pods: Uint32Column = new Uint32Column();
  readonly firstPod: Int32Column = new Int32Column();
  /** By number of the kind: present nodes of it. */
  readonly kindNodes: Uint32Column = new Uint32Column();
  /** Changes with each node that comes, goes or changes its kind. */
  population = 0;
  /** Changes when the first node of a kind comes, or the last one goes. */
  kindSet = 0;
  /** Changes when a node with pods comes, goes or changes its kind: then they count elsewhere. */
  topologyVersion = 0;
  /** Nodes whose host name is not their own: others may have the same. */
  sharedHostnames = 0;
  /** By number of the size: scalar resources that nodes of that size have any of. */
  readonly sizeScalars: (readonly number[])[] = [];
  /** Scalar resources in use, a column each, made when first used. */
  readonly scalarColumns: (AmountColumn | undefined)[] = [];
  readonly #keys: KeyTable;
  readonly #name = Buffer.allocUnsafe(1024);
  #count = 0;
  #version = 0;

  constructor(random: Random) {
    this.#keys = new KeyTable({ random });
  }

  /** Nodes that are present. */
  get count(): number {
    return this.#count;
  }

  /** All ids are below this. */
  get idEnd(): number {
    return this.#keys.idEnd;
  }

  /** Counts nodes that came, went or changed (not what pods take). */
  get version(): number {
    return this.#version;
  }

  nameOf(id: number): string {
    return this.#keys.keyText(id);
  }

  /** The row of a node, present or not; -1 if nobody has named it. */
  find(name: string): number {
    return this.#keys.find(this.#name, 0, this.#name.write(name));
  }

  /** As `find`, for the name as it stands in bytes. */
  findBytes(bytes: Uint8Array, start: number, end: number): number {
    return this.#keys.find(bytes, start, end);
  }

  /** The row of a node, made if it has none. */
  idOf(name: string): number {
    return this.idOfBytes(this.#name, 0, this.#name.write(name));
  }

  idOfBytes(bytes: Uint8Array, start: number, end: number): number {
    const id = this.#keys.insert(bytes, start, end);
    if (this.#keys.isNew) this.#clear(id);
    return id;
  }

  isPresent(id: number): boolean {
    return this.present.get(id) === 1;
  }

  /** A node is there, or has changed. Returns its row. */
  set(facts: NodeFacts): number {
    const id = this.idOf(facts.name);
    const wasPresent = this.isPresent(id);
    const kind = this.kinds.acquire(facts.kindKey, () => facts.kind);
    const size = this.#acquireSize(facts);
    if (wasPresent) {
      if (this.#isSame(id, kind, size, facts)) {
        this.kinds.release(kind);
        this.sizes.release(size);
        return id;
      }
      this.#populate(id, this.kind.get(id), -1);
      this.kinds.release(this.kind.get(id));
      this.sizes.release(this.size.get(id));
      this.images.release(this.imageSet.get(id));
    } else {
      this.present.set(id, 1);
      this.#count++;
      this.log.reserve(this.#count + (this.#count >>> 2));
    }
    this.kind.set(id, kind);
    this.#populate(id, kind, 1);
    this.size.set(id, size);
    this.imageSet.set(id, this.images.acquire(facts.images));
    this.#version++;
    this.log.append(id);
    return id;
  }

  /** Counts a node among those of its kind, or does so no more. */
  #populate(id: number, kindId: number, delta: 1 | -1): void {
    const nodes = this.kindNodes.get(kindId) + delta;
    assert(nodes >= 0, 'no more nodes leave a kind than are of it');
    this.kindNodes.set(kindId, nodes);
    this.population++;
    if (nodes === (delta === 1 ? 1 : 0)) this.kindSet++;
    if (this.pods.get(id) > 0) this.topologyVersion++;
    const kind = this.kinds.get(kindId);
    if (!kind.hasOwnHostname && kind.labels[HOSTNAME_KEY] !== undefined) {
      this.sharedHostnames += delta;
    }
  }

  #acquireSize(facts: NodeFacts): number {
    let made: NodeSize | undefined;
    const id = this.sizes.acquire(facts.sizeKey, () => (made = sizeOf(facts.object)));
    if (made !== undefined) {
      this.sizeMilliCpu.set(id, made.resources.milliCpu);
      this.sizeMemory.set(id, made.resources.memory);
      this.sizeEphemeral.set(id, made.resources.ephemeral);
      this.sizePods.set(id, made.pods);
      const offered = [...made.resources.scalars].filter(([, amount]) => amount > 0);
      this.sizeScalars[id] = offered.map(([name]) => this.scalars.numberOf(name));
    }
    return id;
  }

  /** Heartbeats change nothing that matters here. */
  #isSame(id: number, kind: number, size: number, { images }: NodeFacts): boolean {
    const isSame = this.kind.get(id) === kind && this.size.get(id) === size;
    return isSame && this.images.equals(this.imageSet.get(id), images);
  }

  /** Keeps a row that nobody may be using for a moment; `letGo` must follow. */
  hold(id: number): void {
    this.pods.add(id, 1);
  }

  letGo(id: number): void {
    assert(this.pods.get(id) > 0, 'a row is let go as often as it was held');
    this.pods.set(id, this.pods.get(id) - 1);
    this.#forgetIfUnused(id);
  }

  /** A node is gone; its row stays while pods are on it. */
  remove(id: number): void {
    if (!this.isPresent(id)) return;
    this.#populate(id, this.kind.get(id), -1);
    this.kinds.release(this.kind.get(id));
    this.sizes.release(this.size.get(id));
    this.images.release(this.imageSet.get(id));
    this.present.set(id, 0);
    this.#count--;
    assert(this.#count >= 0, 'no more nodes go than are there');
    this.#version++;
    this.log.append(id);
    this.#forgetIfUnused(id);
  }

  /** A pod is on a node now. */
  addUsage(id: number, usage: Usage): void {
    this.#use(id, usage, 1);
  }

  removeUsage(id: number, usage: Usage): void {
    this.#use(id, usage, -1);
    this.#forgetIfUnused(id);
  }

  /** Counts a pod in or out for a moment: whoever ranks nodes does not hear of it. */
  lend(id: number, usage: Usage, sign: 1 | -1): void {
    this.#add(id, usage, sign);
  }

  scalarUsed(scalar: number, id: number): number {
    const column = this.scalarColumns[scalar];
    return column === undefined ? 0 : column.get(id);
  }

  get memoryBytes(): number {
    let bytes = this.#keys.memoryBytes + this.log.memoryBytes;
    bytes += this.present.memoryBytes + this.kind.memoryBytes + this.size.memoryBytes;
    bytes += this.imageSet.memoryBytes + this.pods.memoryBytes + this.firstPod.memoryBytes;
    bytes += 5 * this.milliCpu.memoryBytes;
    for (const column of this.scalarColumns) bytes += column?.memoryBytes ?? 0;
    return bytes;
  }

  #use(id: number, usage: Usage, sign: 1 | -1): void {
    this.#add(id, usage, sign);
    this.log.append(id);
  }

  #add(id: number, usage: Usage, sign: 1 | -1): void {
    this.milliCpu.add(id, sign * usage.milliCpu);
    this.memory.add(id, sign * usage.memory);
    this.ephemeral.add(id, sign * usage.ephemeral);
    this.milliCpuNonZero.add(id, sign * usage.milliCpuNonZero);
    this.memoryNonZero.add(id, sign * usage.memoryNonZero);
    assert(sign > 0 || this.pods.get(id) > 0, 'no more pods leave a node than are on it');
    this.pods.set(id, this.pods.get(id) + sign);
    for (let i = 0; i < usage.scalars.length; i++) {
      const { scalar, amount } = usage.scalars[i]!;
      const column = (this.scalarColumns[scalar] ??= new AmountColumn());
      column.set(id, column.get(id) + sign * amount);
    }
  }

  #forgetIfUnused(id: number): void {
    if (this.isPresent(id) || this.pods.get(id) > 0) return;
    assert(this.firstPod.get(id) < 0, 'a row that is forgotten has no pods');
    this.#keys.remove(id);
  }

  #clear(id: number): void {
    this.present.set(id, 0);
    this.milliCpu.set(id, 0);
    this.memory.set(id, 0);
    this.ephemeral.set(id, 0);
    this.milliCpuNonZero.set(id, 0);
    this.memoryNonZero.set(id, 0);
    this.pods.set(id, 0);
    this.firstPod.set(id, -1);
    for (const column of this.scalarColumns) if (column !== undefined) column.set(id, 0);
  }
}
