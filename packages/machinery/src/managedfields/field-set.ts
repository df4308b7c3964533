/**
 * A set of fields of an object, as a trie of path steps. A field and what lies below it are owned
 * apart: `spec` in the set says nothing of `spec.replicas`, and the other way round.
 *
 * The operations leave their operands alone and share what does not change; where nothing changes,
 * they give the set itself. Only `insert` and `put` change a set, and only while it is built.
 */

import { compareSteps } from './path-element.ts';

export type FieldPath = readonly string[];

/** What the set says of one step. A node is a member, or has members below, or both. */
interface FieldNode {
  readonly isMember: boolean;
  readonly below: FieldSet | null;
}

const MEMBER: FieldNode = { isMember: true, below: null };

export class FieldSet {
  readonly #nodes: Map<string, FieldNode>;

  constructor(nodes: Map<string, FieldNode> = new Map()) {
    this.#nodes = nodes;
  }

  static of(...paths: readonly FieldPath[]): FieldSet {
    const set = new FieldSet();
    for (const path of paths) set.insert(path, path.length);
    return set;
  }

  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** How many fields are in the set. */
  get size(): number {
    let size = 0;
    for (const { isMember, below } of this.#nodes.values()) {
      size += (isMember ? 1 : 0) + (below?.size ?? 0);
    }
    return size;
  }

  /** Adds the field at the first `depth` steps of `path`. The object itself is nobody's. */
  insert(path: FieldPath, depth: number, at = 0): void {
    const step = path[at];
    if (step === undefined || at >= depth) return;
    const node = this.#nodes.get(step);
    if (at === depth - 1) {
      if (node === undefined) this.#nodes.set(step, MEMBER);
      else if (!node.isMember) this.#nodes.set(step, { isMember: true, below: node.below });
      return;
    }
    let below = node?.below ?? null;
    if (below === null) {
      below = new FieldSet();
      this.#nodes.set(step, { isMember: node?.isMember ?? false, below });
    }
    below.insert(path, depth, at + 1);
  }

  /** Adds what was read of one step. */
  put(step: string, isMember: boolean, below: FieldSet | null): void {
    const kept = below === null || below.isEmpty ? null : below;
    if (isMember || kept !== null) this.#nodes.set(step, { isMember, below: kept });
  }

  has(path: FieldPath, at = 0): boolean {
    const step = path[at];
    const node = step === undefined ? undefined : this.#nodes.get(step);
    if (node === undefined) return false;
    if (at === path.length - 1) return node.isMember;
    return node.below?.has(path, at + 1) ?? false;
  }

  hasStep(step: string): boolean {
    return this.#nodes.get(step)?.isMember ?? false;
  }

  /** The fields below a step, without the step; null where there are none. */
  below(step: string): FieldSet | null {
    return this.#nodes.get(step)?.below ?? null;
  }

  /** Steps in no order. */
  entries(): IterableIterator<[string, FieldNode]> {
    return this.#nodes.entries();
  }

  /** Steps in the order in which they are written. */
  sortedSteps(): string[] {
    const steps = [...this.#nodes.keys()];
    return steps.length > 1 ? steps.sort(compareSteps) : steps;
  }

  union(other: FieldSet): FieldSet {
    if (other.isEmpty || other === this) return this;
    if (this.isEmpty) return other;
    let nodes: Map<string, FieldNode> | null = null;
    for (const [step, node] of other.#nodes) {
      const own = this.#nodes.get(step);
      const both = own === undefined ? node : joined(own, node);
      if (both === own) continue;
      nodes ??= new Map(this.#nodes);
      nodes.set(step, both);
    }
    return nodes === null ? this : new FieldSet(nodes);
  }

  intersection(other: FieldSet): FieldSet {
    const nodes = new Map<string, FieldNode>();
    const [small, large] = this.#nodes.size <= other.#nodes.size ? [this, other] : [other, this];
    for (const [step, node] of small.#nodes) {
      const match = large.#nodes.get(step);
      if (match === undefined) continue;
      const below =
        node.below === null || match.below === null ? null : node.below.intersection(match.below);
      putNode(nodes, step, node.isMember && match.isMember, below);
    }
    return new FieldSet(nodes);
  }

  /** The fields of this set that are not in `other`; what lies below a field stays. */
  difference(other: FieldSet): FieldSet {
    let nodes: Map<string, FieldNode> | null = null;
    for (const [step, match] of other.#nodes) {
      const node = this.#nodes.get(step);
      if (node === undefined) continue;
      const below =
        node.below === null || match.below === null
          ? node.below
          : node.below.difference(match.below);
      const isMember = node.isMember && !match.isMember;
      if (isMember === node.isMember && below === node.below) continue;
      nodes ??= new Map(this.#nodes);
      nodes.delete(step);
      putNode(nodes, step, isMember, below);
    }
    return nodes === null ? this : new FieldSet(nodes);
  }

  /** The fields of this set that neither are in `other` nor lie below a field of it. */
  recursiveDifference(other: FieldSet): FieldSet {
    let nodes: Map<string, FieldNode> | null = null;
    for (const [step, match] of other.#nodes) {
      const node = this.#nodes.get(step);
      if (node === undefined) continue;
      let below = match.isMember ? null : node.below;
      if (below !== null && match.below !== null) below = below.recursiveDifference(match.below);
      const isMember = node.isMember && !match.isMember;
      if (isMember === node.isMember && below === node.below) continue;
      nodes ??= new Map(this.#nodes);
      nodes.delete(step);
      putNode(nodes, step, isMember, below);
    }
    return nodes === null ? this : new FieldSet(nodes);
  }

  equals(other: FieldSet): boolean {
    if (this === other) return true;
    if (this.#nodes.size !== other.#nodes.size) return false;
    for (const [step, node] of this.#nodes) {
      const match = other.#nodes.get(step);
      if (match === undefined || match.isMember !== node.isMember) return false;
      if (node.below === null || match.below === null) {
        if (node.below !== match.below) return false;
      } else if (!node.below.equals(match.below)) return false;
    }
    return true;
  }

  /** All fields, those of a level before those below it, in written order. */
  paths(prefix: FieldPath = []): FieldPath[] {
    const found: FieldPath[] = [];
    const steps = this.sortedSteps();
    for (const step of steps) if (this.hasStep(step)) found.push([...prefix, step]);
    for (const step of steps) {
      const below = this.below(step);
      if (below !== null) found.push(...below.paths([...prefix, step]));
    }
    return found;
  }
}

function joined(own: FieldNode, other: FieldNode): FieldNode {
  const isMember = own.isMember || other.isMember;
  const below =
    own.below === null || other.below === null
      ? (own.below ?? other.below)
      : own.below.union(other.below);
  return isMember === own.isMember && below === own.below ? own : { isMember, below };
}

function putNode(
  nodes: Map<string, FieldNode>,
  step: string,
  isMember: boolean,
  below: FieldSet | null,
): void {
  const kept = below === null || below.isEmpty ? null : below;
  if (isMember || kept !== null) nodes.set(step, { isMember, below: kept });
}
