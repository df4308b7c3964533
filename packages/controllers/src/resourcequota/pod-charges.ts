/** What quotas charge a running pod by, where that can change: its scope, and resources it has. */
import { Uint32Column } from '@megaplane/base/column';
import { listAt, valueAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, pathOf, skipValue } from '@megaplane/machinery/scan';

const DEADLINE = pathOf('activeDeadlineSeconds');
const STATUSES = ['containerStatuses', 'initContainerStatuses'].map((name) => pathOf(name));
const RESOURCES = Buffer.from('"resources"');

/** By row of a pod, as it was seen last; 0: never. */
export class PodCharges {
  readonly #seen = new Uint32Column();

  /** Takes a pod over; true where it may be charged otherwise than before. */
  take(row: number, bytes: Buffer, scan: ObjectScan): boolean {
    const { specStart, specEnd, statusStart, statusEnd } = scan;
    let hash = 0x811c9dc5;
    const isTerminating = specStart >= 0 && findPath(bytes, specStart, specEnd, DEADLINE) >= 0;
    hash = Math.imul(hash ^ Number(isTerminating), 0x01000193);
    for (const path of STATUSES) {
      const from = statusStart < 0 ? -1 : findPath(bytes, statusStart, statusEnd, path);
      if (from >= 0) hash = hashOf(bytes.subarray(from, skipValue(bytes, from, statusEnd)), hash);
    }
    const now = hash >>> 0 || 1;
    const before = this.#seen.get(row);
    if (before !== now) this.#seen.set(row, now);
    return before !== 0 && before !== now;
  }

  /** The row is free, for another pod. */
  drop(row: number): void {
    if (this.#seen.get(row) !== 0) this.#seen.set(row, 0);
  }
}

/** Of the resources of each container; most have none. */
function hashOf(statuses: Buffer, from: number): number {
  if (!statuses.includes(RESOURCES)) return from;
  const read = parseJson(statuses.toString('utf8'));
  let hash = from;
  for (const one of listAt(read)) {
    const resources = [valueAt(one, 'name') ?? null, valueAt(one, 'resources') ?? null];
    for (const byte of Buffer.from(JSON.stringify(resources))) {
      hash = Math.imul(hash ^ byte, 0x01000193);
    }
  }
  return hash;
}
