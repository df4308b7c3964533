/** Pods on nodes that name claims: whose volumes a node should have. */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { PodRows } from '../../framework/pod-rows.ts';
import { namesOfClaims } from '../claim-users.ts';

const WORDS = [Buffer.from('"claimName"'), Buffer.from('"volumeClaimTemplate"')] as const;

export interface PlacedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  /** Keys of its claims. */
  readonly claims: readonly string[];
}

export class PlacedClaims {
  /** By row of the pods' informer; only pods that have claims. */
  readonly #pods: Map<number, PlacedPod> = new Map();
  readonly #onNode: Map<string, Set<PlacedPod>> = new Map();
  readonly #ofClaim: Map<string, Set<PlacedPod>> = new Map();

  /** `changed` is told the node of a pod that came, went, or ended. */
  constructor(rows: PodRows, changed: (node: string) => void) {
    rows.listen({
      changed: (row, bytes, scan) => {
        const before = this.#pods.get(row);
        const isMeant = scan !== null && isPlacedWithClaims(bytes, scan);
        if (before === undefined && !isMeant) return;
        const after = isMeant ? placedPod(bytes, scan) : undefined;
        if (before !== undefined) this.#forget(row, before);
        if (after !== undefined) this.#keep(row, after);
        if (before?.uid === after?.uid) return;
        for (const one of [before, after]) if (one !== undefined) changed(one.node);
      },
    });
  }

  onNode(node: string): Iterable<PlacedPod> {
    return this.#onNode.get(node) ?? [];
  }

  nodesOf(claimKey: string): Iterable<string> {
    return [...(this.#ofClaim.get(claimKey) ?? [])].map((pod) => pod.node);
  }

  #keep(row: number, pod: PlacedPod): void {
    this.#pods.set(row, pod);
    addTo(this.#onNode, pod.node, pod);
    for (const claim of pod.claims) addTo(this.#ofClaim, claim, pod);
  }

  #forget(row: number, pod: PlacedPod): void {
    this.#pods.delete(row);
    removeFrom(this.#onNode, pod.node, pod);
    for (const claim of pod.claims) removeFrom(this.#ofClaim, claim, pod);
  }
}

function isPlacedWithClaims(bytes: Buffer, scan: ObjectScan): boolean {
  if (scan.nodeNameEnd <= scan.nodeNameStart || scan.specStart < 0) return false;
  const spec = bytes.subarray(scan.specStart, scan.specEnd);
  return WORDS.some((word) => spec.includes(word));
}

/** Undefined for a pod that has ended, or whose containers have while it is being deleted. */
function placedPod(bytes: Buffer, scan: ObjectScan): PlacedPod | undefined {
  const read = (start: number, end: number): JsonObject =>
    start < 0 ? {} : (parseJson(bytes.toString('utf8', start, end)) as JsonObject);
  const metadata = read(scan.metadataStart, scan.metadataEnd);
  const spec = read(scan.specStart, scan.specEnd);
  const status = read(scan.statusStart, scan.statusEnd);
  if (['Succeeded', 'Failed'].includes(stringAt(status, 'phase'))) return undefined;
  const isRunning = listAt(status, 'containerStatuses').some(
    (one) =>
      objectAt(one, 'state', 'terminated') === undefined &&
      objectAt(one, 'state', 'waiting') === undefined,
  );
  if (stringAt(metadata, 'deletionTimestamp') !== '' && !isRunning) return undefined;
  const namespace = stringAt(metadata, 'namespace');
  const name = stringAt(metadata, 'name');
  const claims = namesOfClaims(spec, name).map((claim) => `${namespace}/${claim}`);
  const node = stringAt(spec, 'nodeName');
  return { namespace, name, uid: stringAt(metadata, 'uid'), node, claims };
}

function addTo<T>(index: Map<string, Set<T>>, at: string, one: T): void {
  const found = index.get(at);
  if (found === undefined) index.set(at, new Set([one]));
  else found.add(one);
}

function removeFrom<T>(index: Map<string, Set<T>>, at: string, one: T): void {
  const found = index.get(at);
  if (found?.delete(one) === true && found.size === 0) index.delete(at);
}
