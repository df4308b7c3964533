/** Pods that wait for a node and name claims: whom a claim of a waiting class waits for. */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { PodRows } from '../framework/pod-rows.ts';

const VOLUME_WORDS = [Buffer.from('"claimName"'), Buffer.from('"volumeClaimTemplate"')] as const;

export class ClaimUsers {
  /** Keys of claims by row of the pod. */
  readonly #claims: Map<number, readonly string[]> = new Map();
  readonly #pods: Map<string, Set<string>> = new Map();

  constructor(rows: PodRows) {
    rows.listen({
      changed: (row, bytes, scan) => {
        const isWaiting = scan !== null && scan.nodeNameEnd <= scan.nodeNameStart;
        if (!isWaiting && !this.#claims.has(row)) return;
        this.#set(row, rows.informer.keyOf(row), isWaiting ? claimsOf(bytes, scan) : []);
      },
    });
  }

  /** Names of the pods without a node that name a claim, in order. */
  waitingFor(claimKey: string): string[] {
    return [...(this.#pods.get(claimKey) ?? [])]
      .map((key) => key.slice(key.indexOf('/') + 1))
      .toSorted();
  }

  #set(row: number, pod: string, claims: readonly string[]): void {
    const namespace = pod.slice(0, pod.indexOf('/') + 1);
    for (const claim of this.#claims.get(row) ?? []) {
      const pods = this.#pods.get(claim);
      if (pods?.delete(pod) === true && pods.size === 0) this.#pods.delete(claim);
    }
    const keys = claims.map((claim) => namespace + claim);
    if (keys.length === 0) this.#claims.delete(row);
    else this.#claims.set(row, keys);
    for (const key of keys) {
      const pods = this.#pods.get(key);
      if (pods === undefined) this.#pods.set(key, new Set([pod]));
      else pods.add(pod);
    }
  }
}

/** Names of the claims of a pod; none for one that has ended. */
function claimsOf(bytes: Buffer, scan: ObjectScan): string[] {
  const spec = bytes.subarray(Math.max(0, scan.specStart), Math.max(0, scan.specEnd));
  if (!VOLUME_WORDS.some((word) => spec.includes(word))) return [];
  const phase = bytes.toString('utf8', Math.max(0, scan.phaseStart), Math.max(0, scan.phaseEnd));
  if (/^"?(Succeeded|Failed)"?$/.test(phase)) return [];
  const object = parseJson(spec.toString('utf8')) as JsonObject;
  const name = bytes.toString('utf8', scan.nameStart, scan.nameEnd).replaceAll('"', '');
  return namesOfClaims(object, name);
}

/** The claims that a pod's spec names, and those that are made for the pod. */
export function namesOfClaims(spec: JsonObject, podName: string): string[] {
  return listAt(spec, 'volumes')
    .map((volume) =>
      objectAt(volume, 'ephemeral') === undefined
        ? stringAt(volume, 'persistentVolumeClaim', 'claimName')
        : `${podName}-${stringAt(volume, 'name')}`,
    )
    .filter((name) => name !== '');
}
