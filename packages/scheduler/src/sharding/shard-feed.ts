/**
 * Tells shards of the cluster as the root knows it: each of its own nodes with their pods, all of
 * everything else. What changes is only noted at first, and told before the next round begins; a
 * pod that comes and goes in between is never told of.
 *
 *   toldTo     Int32   by node: shard that knows it, by its place plus 1; 0: none
 *   nameMark   Int32   by node: a hash of the name that was told, for numbers that are given again
 *   podOn      Int32   by pod: the node on which it was told of, plus 1; 0: none
 */
import { Int32Column } from '@megaplane/base/column';
import type { Identities } from '../cache/identities.ts';
import type { NodeKind, NodeSize } from '../cache/node-facts.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { PodTable } from '../cache/pod-table.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import { markOf, Rendezvous } from './protocol/rendezvous.ts';
import type { StateChange } from './protocol/state.ts';
import { sumsBytes } from './protocol/sums.ts';

export interface FeedTables {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly objects: ObjectStore;
  readonly view: ClusterView;
}

/** Sends a change to a shard; an empty name: to all. */
export type Tell = (to: string, change: StateChange) => void;

/** What was told of a node, by identity: what is interned is the same as long as it is in use. */
interface ToldNode {
  readonly kind: NodeKind;
  readonly size: NodeSize;
  readonly images: readonly string[];
}

const NO_BYTES = Buffer.alloc(0);

export class ShardFeed {
  readonly #tables: FeedTables;
  readonly #tell: Tell;
  readonly #toldTo = new Int32Column();
  readonly #nameMark = new Int32Column();
  readonly #podOn = new Int32Column();
  readonly #toldNodes: (ToldNode | undefined)[] = [];
  readonly #toldObjects = new Map<string, { version: number; keys: Set<string> }>();
  readonly #toldImages = new Map<string, number>();
  readonly #specs = new WeakMap<object, Buffer>();
  /** Shards by place, as long as this process lives. */
  readonly #names: string[] = [];
  readonly #places = new Map<string, number>();
  #members = new Rendezvous([]);
  #live: ReadonlySet<number> = new Set();
  /** Places of shards that know nothing yet. */
  readonly #fresh = new Set<number>();
  readonly #nodeNews = new Set<number>();
  readonly #podNews: Set<number>;
  /** The next node that the scan after a change of members comes to. */
  #scanAt = Infinity;
  #cursor = 0;
  #imageVersion = -1;
  #changeCount = -1;
  /** Nodes that were told to another shard than before, and all that were told of. */
  moved = 0;
  readonly #counts = new Map<number, number>();

  constructor(tables: FeedTables, tell: Tell) {
    this.#tables = tables;
    this.#tell = tell;
    this.#podNews = tables.pods.news ??= new Set();
  }

  /** Nodes of a shard. */
  nodesOf(member: string): number {
    return this.#counts.get(this.#places.get(member) ?? -1) ?? 0;
  }

  /** Nobody is told anything, and nothing is kept for them. */
  stop(): void {
    this.#members = new Rendezvous([]);
    this.#live = new Set();
    this.#scanAt = Infinity;
  }

  /** Other shards are there; `fresh` of them know nothing. All nodes are gone through. */
  reshard(members: readonly string[], fresh: Iterable<string>): void {
    this.#members = new Rendezvous(members);
    this.#live = new Set(members.map((name) => this.#placeOf(name)));
    for (const name of fresh) this.#greet(name);
    for (const place of this.#fresh) if (!this.#live.has(place)) this.#fresh.delete(place);
    this.#scanAt = 0;
  }

  #placeOf(name: string): number {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.#names.push(name) - 1;
      this.#places.set(name, place);
    }
    return place;
  }

  /** Forgets what the name knew before, and tells what all shards know. */
  #greet(name: string): void {
    this.#fresh.add(this.#placeOf(name));
    this.#tell(name, { kind: 'epoch', number: 0 });
    this.#tellImages();
    for (const [image, { sizeBytes, nodes }] of this.#tables.nodes.images.records) {
      this.#tell(name, { kind: 'image', name: image, sizeBytes, nodes });
    }
    this.#tellObjects();
    for (const [kind, { keys }] of this.#toldObjects) {
      for (const key of keys) this.#tellObject(name, kind, key);
    }
  }

  /** Whether there are nodes that may belong to somebody else by now. */
  get isScanning(): boolean {
    return this.#scanAt !== Infinity;
  }

  /** Nodes and pods about which there is news, or may be. */
  get backlog(): number {
    const { log } = this.#tables.nodes;
    const changes = log.holds(this.#cursor) ? log.end - this.#cursor : Infinity;
    return this.#podNews.size + this.#nodeNews.size + changes;
  }

  /** Goes on with the scan, or with the news: as much as makes about `limit` messages. */
  step(limit: number): void {
    if (this.#live.size === 0) return;
    this.#collect();
    this.#tellImages();
    this.#tellObjects();
    if (this.isScanning) return this.#scan(limit);
    this.flush(limit);
  }

  /** Tells all news; `limit`: about so many messages. */
  flush(limit: number = Infinity): void {
    if (this.#live.size === 0) return;
    this.#collect();
    this.#tellImages();
    this.#tellObjects();
    let left = limit;
    for (const id of this.#nodeNews) {
      if (left <= 0) return;
      this.#nodeNews.delete(id);
      left -= this.#tellNode(id);
    }
    for (const row of this.#podNews) {
      if (left-- <= 0) return;
      this.#podNews.delete(row);
      this.#tellPod(row);
    }
  }

  #scan(limit: number): void {
    const { idEnd } = this.#tables.nodes;
    for (let left = limit; this.#scanAt < idEnd && left > 0; this.#scanAt++) {
      this.#nodeNews.delete(this.#scanAt);
      left -= this.#tellNode(this.#scanAt);
    }
    if (this.#scanAt < idEnd) return;
    this.#scanAt = Infinity;
    this.#fresh.clear();
  }

  /** Which nodes the log of changes names. */
  #collect(): void {
    const { log } = this.#tables.nodes;
    if (!log.holds(this.#cursor)) this.#scanAt = 0;
    else for (let at = this.#cursor; at < log.end; at++) this.#nodeNews.add(log.at(at));
    this.#cursor = log.end;
  }

  /** Returns what it cost, in messages. */
  #tellNode(id: number): number {
    const { nodes, pods } = this.#tables;
    const told = this.#toldTo.get(id) - 1;
    if (!nodes.isPresent(id)) {
      this.#forget(id, told);
      return 1;
    }
    const name = nodes.nameOf(id);
    const owner = this.#places.get(this.#members.ownerOf(name)) ?? -1;
    const nameMark = markOf(name, 0) | 0;
    const facts = this.#factsOf(id);
    const isKnown = told === owner && !this.#fresh.has(owner);
    const before = this.#toldNodes[id];
    if (isKnown && this.#nameMark.get(id) === nameMark && isSame(before, facts)) return 0.1;
    if (told !== owner) this.#forget(id, told);
    const object = bytesOf(this.#tables.view.nodeObjectAt(id));
    const to = this.#names[owner] ?? '';
    this.#tell(to, { kind: 'node', id, object, imageNames: facts.images });
    this.#nameMark.set(id, nameMark);
    this.#toldNodes[id] = facts;
    if (isKnown) return 1;
    if (told !== owner) this.#count(owner, 1);
    this.moved++;
    this.#toldTo.set(id, owner + 1);
    let cost = 1;
    for (let row = nodes.firstPod.get(id); row >= 0; row = pods.next.get(row)) {
      this.#podNews.delete(row);
      this.#tellPod(row);
      cost++;
    }
    return cost;
  }

  #count(place: number, delta: 1 | -1): void {
    this.#counts.set(place, (this.#counts.get(place) ?? 0) + delta);
  }

  /** Who knew the node knows it no more. */
  #forget(id: number, place: number): void {
    if (place < 0) return;
    this.#count(place, -1);
    this.#toldTo.set(id, 0);
    this.#toldNodes[id] = undefined;
    if (this.#live.has(place)) this.#tell(this.#names[place] ?? '', { kind: 'nodeGone', id });
  }

  #factsOf(id: number): ToldNode {
    const { kinds, kind, sizes, size, images, imageSet } = this.#tables.nodes;
    return {
      kind: kinds.get(kind.get(id)),
      size: sizes.get(size.get(id)),
      images: images.namesOf(imageSet.get(id)),
    };
  }

  #tellPod(row: number): void {
    const { pods } = this.#tables;
    const node = pods.node.get(row);
    const before = this.#podOn.get(row) - 1;
    const owner = node < 0 ? -1 : this.#toldTo.get(node) - 1;
    const knew = before < 0 ? -1 : this.#toldTo.get(before) - 1;
    if (knew >= 0 && knew !== owner && this.#live.has(knew)) {
      this.#tell(this.#names[knew] ?? '', { kind: 'podGone', row });
    }
    const isTold = owner >= 0 && this.#live.has(owner);
    this.#podOn.set(row, isTold ? node + 1 : 0);
    if (isTold) this.#tell(this.#names[owner] ?? '', this.#podChange(row, node));
  }

  #podChange(row: number, node: number): StateChange {
    const { pods, identities, nodes, view } = this.#tables;
    const podClass = identities.classes.get(pods.podClass.get(row));
    const { metadata, status } = view.podAt(row).pod;
    const usage = pods.usage.get(row);
    const isAsSaid = usage === podClass.usage;
    return {
      ...{ kind: 'pod', row, node },
      object: bytesOf({ metadata, status }),
      spec: this.#specOf(podClass.template.spec),
      sums: isAsSaid ? NO_BYTES : sumsBytes(nodes.usages.requestsOf(usage)),
    };
  }

  #specOf(spec: object): Buffer {
    let bytes = this.#specs.get(spec);
    if (bytes === undefined) this.#specs.set(spec, (bytes = bytesOf(spec)));
    return bytes;
  }

  #tellImages(): void {
    const { images } = this.#tables.nodes;
    if (images.version === this.#imageVersion) return;
    this.#imageVersion = images.version;
    const gone = new Set(this.#toldImages.keys());
    for (const [name, { sizeBytes, nodes }] of images.records) {
      gone.delete(name);
      if (this.#toldImages.get(name) === nodes) continue;
      this.#toldImages.set(name, nodes);
      this.#tell('', { kind: 'image', name, sizeBytes, nodes });
    }
    for (const name of gone) {
      this.#toldImages.delete(name);
      this.#tell('', { kind: 'image', name, sizeBytes: 0, nodes: 0 });
    }
  }

  #tellObjects(): void {
    const { objects } = this.#tables;
    if (objects.changeCount === this.#changeCount) return;
    this.#changeCount = objects.changeCount;
    for (const kind of objects.kinds) {
      const version = objects.versionOf(kind);
      // whole nodes are kept for extenders, which shards do not ask
      if (kind === 'Node' || this.#toldObjects.get(kind)?.version === version) continue;
      const told = this.#toldObjects.get(kind) ?? { version: -1, keys: new Set<string>() };
      const changes = objects.changesSince(kind, told.version) ?? this.#allKeys(kind, told.keys);
      for (const key of new Set(changes)) {
        if (this.#tellObject('', kind, key)) told.keys.add(key);
        else told.keys.delete(key);
      }
      this.#toldObjects.set(kind, { version, keys: told.keys });
    }
  }

  /** Of all that is there, and of all that was told. */
  #allKeys(kind: string, told: ReadonlySet<string>): Iterable<string> {
    const { objects } = this.#tables;
    return new Set([...objects.keysOf(kind), ...told]);
  }

  /** False where it is gone. */
  #tellObject(to: string, objectKind: string, key: string): boolean {
    const object = this.#tables.objects.object(objectKind, key);
    if (object === undefined) this.#tell(to, { kind: 'delete', objectKind, key });
    else this.#tell(to, { kind: 'object', objectKind, key, object: bytesOf(object) });
    return object !== undefined;
  }
}

function isSame(told: ToldNode | undefined, now: ToldNode): boolean {
  return told?.kind === now.kind && told.size === now.size && told.images === now.images;
}

function bytesOf(object: object): Buffer {
  return Buffer.from(JSON.stringify(object));
}
