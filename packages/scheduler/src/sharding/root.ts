/**
 * The root's side of the shards: tells them of the cluster, each of its own nodes and the pods on
 * them, and asks them rounds. What it has not told counts for nothing: changes go ahead of the
 * round that may depend on them, on the same streams, in order.
 */
import type { KubeObject, PodObject } from '../api/objects.ts';
import { keyOf } from '../api/objects.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { Gathering } from './gathering.ts';
import { Rendezvous } from './protocol/rendezvous.ts';
import { encodeRound } from './protocol/round-codec.ts';
import type { Reply, Round } from './protocol/rounds.ts';
import { encodeState, type StateChange } from './protocol/state.ts';
import type { ShareOrder } from './scatter/scattered-cycle.ts';

export class ShardRoot implements ShareOrder {
  readonly #gathering: Gathering;
  readonly #shards: Rendezvous;
  /** Shards that hold a pod, by its key. */
  readonly #podOwners = new Map<string, string>();
  readonly #orders = new Map<string, readonly NodeInfo[]>();
  readonly #orderTexts = new Map<string, string>();
  readonly #images = new Map<string, string>();
  #rounds = 0;

  constructor(gathering: Gathering) {
    this.#gathering = gathering;
    this.#shards = new Rendezvous(gathering.members);
  }

  nodesOf(member: string): readonly NodeInfo[] {
    return this.#orders.get(member) ?? [];
  }

  /** Tells of an object that was created or changed. */
  applied(object: KubeObject): void {
    const kind = object.kind ?? 'Pod';
    const change = { kind: 'apply', object: Buffer.from(JSON.stringify(object)) } as const;
    if (kind === 'Node') return this.#tell(this.#shards.ownerOf(object.metadata.name), change);
    if (kind !== 'Pod') return this.#tell('', change);
    const key = keyOf(object);
    const node = (object as PodObject).spec.nodeName ?? '';
    const owner = node === '' ? '' : this.#shards.ownerOf(node);
    const before = this.#podOwners.get(key) ?? '';
    if (before !== '' && before !== owner) {
      this.#tell(before, { kind: 'delete', objectKind: 'Pod', key });
      this.#podOwners.delete(key);
    }
    if (owner === '') return;
    this.#podOwners.set(key, owner);
    this.#tell(owner, change);
  }

  deleted(kind: string, key: string): void {
    const change = { kind: 'delete', objectKind: kind, key } as const;
    if (kind === 'Node') return this.#tell(this.#shards.ownerOf(key), change);
    if (kind !== 'Pod') return this.#tell('', change);
    const owner = this.#podOwners.get(key) ?? '';
    this.#podOwners.delete(key);
    if (owner !== '') this.#tell(owner, change);
  }

  /** The nodes as a decision is about to see them, in their order. */
  see(nodes: readonly NodeInfo[]): void {
    this.#orders.clear();
    for (const node of nodes) {
      const owner = this.#shards.ownerOf(node.name);
      const order = (this.#orders.get(owner) ?? []) as NodeInfo[];
      order.push(node);
      this.#orders.set(owner, order);
      this.#seeImages(owner, node);
    }
    for (const member of this.#shards.members) {
      const names = this.nodesOf(member).map(({ name }) => name);
      const text = names.join('\n');
      if (this.#orderTexts.get(member) === text) continue;
      this.#orderTexts.set(member, text);
      this.#tell(member, { kind: 'order', nodes: names });
    }
  }

  #seeImages(owner: string, { name, images }: NodeInfo): void {
    if (images.size === 0 && !this.#images.has(name)) return;
    const text = JSON.stringify([...images]);
    if (this.#images.get(name) === text) return;
    this.#images.set(name, text);
    this.#tell(owner, { kind: 'images', node: name, images });
  }

  /** What all shards say; the answer tells of trouble. */
  ask(round: Round): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const number = ++this.#rounds;
    this.#gathering.ask({ to: '', state: null, round: encodeRound(round), number }, resolve);
    return promise;
  }

  #tell(to: string, change: StateChange): void {
    this.#gathering.pass({ to, state: encodeState(change), round: null, number: 0 });
  }
}
