/**
 * What the pods of a node need it to read. Nothing is kept for nodes that do not ask: pods are
 * found by the index of node names, and what they refer to is remembered for a while for the nodes
 * that asked last. An object that was not found is looked for again at once when anything has
 * changed, so that a pod that was bound just now can start.
 */
import { parseFieldSelector } from '@megaplane/machinery/fieldselectors';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { EVERYTHING } from '@megaplane/machinery/selectors';
import { readStoredObject } from '../lister/stored-object.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { Filter } from '../request/filter.ts';
import { findServed, rangeOf, type Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import { addPodReferences, referenceOf, volumeSecrets } from './pod-references.ts';
import type { RowSource } from '../storage/row-source.ts';

/** Nodes whose references are remembered, and for how long. */
const NODES_MAX = 2000;
const REMEMBERED_MS = 10_000;

interface Remembered {
  readonly references: ReadonlySet<string>;
  readonly revision: number;
  readonly untilMs: number;
}

/** `pending` where the pods of the node have to be looked for first. */
export type Related = boolean | { readonly pending: (then: () => void) => void };

export class NodeRelations {
  readonly #world: World;
  readonly #byNode = new Map<string, Remembered>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Whether a pod of the node leads to the object, a key of `referenceOf`. */
  has(node: string, reference: string): Related {
    const { storage, edge } = this.#world;
    const known = this.#byNode.get(node);
    if (known !== undefined && known.untilMs > edge.nowMs()) {
      if (known.references.has(reference)) return true;
      if (known.revision === storage.appliedRevision) return false;
    }
    let isAtOnce = true;
    let result: boolean | null = null;
    let waiting: (() => void) | null = null;
    this.#read(node, (references) => {
      result = references.has(reference);
      if (!isAtOnce) waiting?.();
    });
    isAtOnce = false;
    if (result !== null) return result;
    return {
      pending: (then) => {
        if (result === null) waiting = then;
        else then();
      },
    };
  }

  #read(node: string, then: (references: ReadonlySet<string>) => void): void {
    const pods = findServed('', 'v1', 'pods');
    if (pods === undefined) return;
    const parsed = parseFieldSelector(`spec.nodeName=${node}`, '', 'Pod');
    if ('error' in parsed) {
      then(new Set());
      return;
    }
    const world = this.#world.at(pods);
    const filter = new Filter(EVERYTHING, parsed.value, pods.prefix.length, true);
    const range = rangeOf(pods, '');
    const revision = world.storage.publishedRevision;
    world.hubOf(pods).whenIndexed(filter, range, revision, world.edge.nowMs(), (source) => {
      const references = this.#collect(source, pods, filter);
      this.#remember(node, references);
      then(references);
    });
  }

  #remember(node: string, references: ReadonlySet<string>): void {
    this.#byNode.delete(node);
    if (this.#byNode.size >= NODES_MAX) {
      const [oldest] = this.#byNode.keys();
      if (oldest !== undefined) this.#byNode.delete(oldest);
    }
    const { storage, edge } = this.#world;
    const revision = storage.appliedRevision;
    this.#byNode.set(node, { references, revision, untilMs: edge.nowMs() + REMEMBERED_MS });
  }

  #collect(source: RowSource, pods: Served, filter: Filter): Set<string> {
    const found = new Set<string>();
    const { start, end } = rangeOf(pods, '');
    source.page(start, end, 0, (row) => {
      if (filter.matches(row)) addPodReferences(decodeRow(pods, row, row.modRevision), found);
      return true;
    });
    for (const reference of [...found]) {
      const [kind = '', namespace = '', name = ''] = reference.split('/');
      if (kind === 'persistentvolumeclaims') this.#addVolume(namespace, name, found);
    }
    return found;
  }

  /** A claim leads to the volume that is bound to it, and on to the Secrets that it needs. */
  #addVolume(namespace: string, claimName: string, found: Set<string>): void {
    const claim = readStoredObject(this.#world, '', 'persistentvolumeclaims', namespace, claimName);
    const name = claim === null ? '' : stringAt(claim, 'spec', 'volumeName');
    if (name === '') return;
    const volume = readStoredObject(this.#world, '', 'persistentvolumes', '', name);
    const owner = objectAt(volume ?? {}, 'spec', 'claimRef');
    const isBound =
      stringAt(owner, 'namespace') === namespace && stringAt(owner, 'name') === claimName;
    if (volume === null || !isBound) return;
    found.add(referenceOf('persistentvolumes', '', name));
    for (const secret of volumeSecrets(volume, namespace)) {
      found.add(referenceOf('secrets', secret.namespace, secret.name));
    }
  }
}
