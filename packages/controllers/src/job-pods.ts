// data plane
/**
 * What Jobs need of their pods beyond the table of replicas, by row of the pods' informer.
 *
 *   uid        four words of its 32 hexadecimal digits
 *   index      completion index + 1, 0 = none
 *   failures   how often this index had failed before
 *   tracked    1 while the finalizer that keeps the pod until it is counted is on it
 */
import { Uint32Column, Uint8Column } from '@megaplane/base/column';
import { findPath, integerAt, matches, pathOf, skipValue } from '@megaplane/machinery/scan';
import { firstItem, nextItem } from './pod-scan.ts';

export const TRACKING = 'batch.kubernetes.io/job-tracking';
export const INDEX = 'batch.kubernetes.io/job-completion-index';
export const INDEX_FAILURES = 'batch.kubernetes.io/job-index-failure-count';

const UID = pathOf('metadata', 'uid');
const FINALIZERS = pathOf('metadata', 'finalizers');
const ANNOTATED_INDEX = pathOf('metadata', 'annotations', INDEX);
const ANNOTATED_FAILURES = pathOf('metadata', 'annotations', INDEX_FAILURES);
const QUOTED_TRACKING: Uint8Array = new TextEncoder().encode(`"${TRACKING}"`);
const DASH = 0x2d;

export class JobPods {
  readonly #words: readonly Uint32Column[] = [0, 1, 2, 3].map(() => new Uint32Column());
  readonly #index = new Uint32Column();
  readonly failures: Uint32Column = new Uint32Column();
  readonly tracked: Uint8Column = new Uint8Column();

  upsert(row: number, bytes: Uint8Array, start: number, end: number): void {
    const uid = findPath(bytes, start, end, UID);
    if (uid >= 0) this.#setUid(row, bytes, uid + 1);
    const index = findPath(bytes, start, end, ANNOTATED_INDEX);
    this.#index.set(row, index < 0 ? 0 : integerAt(bytes, index, end) + 1);
    const failures = findPath(bytes, start, end, ANNOTATED_FAILURES);
    this.failures.set(row, failures < 0 ? 0 : Math.max(0, integerAt(bytes, failures, end)));
    const finalizers = findPath(bytes, start, end, FINALIZERS);
    this.tracked.set(row, finalizers >= 0 && isTracked(bytes, finalizers, end) ? 1 : 0);
  }

  /** -1 where the pod has none. */
  indexOf(row: number): number {
    return this.#index.get(row) - 1;
  }

  uidOf(row: number): string {
    const digits = this.#words.map((column) => column.get(row).toString(16).padStart(8, '0'));
    const text = digits.join('');
    const cuts = [0, 8, 12, 16, 20, 32];
    return cuts
      .slice(1)
      .map((cut, i) => text.slice(cuts[i], cut))
      .join('-');
  }

  #setUid(row: number, bytes: Uint8Array, start: number): void {
    let at = start;
    for (let word = 0; word < 4; word++) {
      let value = 0;
      for (let digits = 0; digits < 8; at++) {
        const byte = bytes[at]!;
        if (byte === DASH) continue;
        value = value * 16 + (byte > 0x39 ? (byte | 0x20) - 0x57 : byte - 0x30);
        digits++;
      }
      this.#words[word]!.set(row, value);
    }
  }
}

function isTracked(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = firstItem(bytes, start, end); at >= 0; at = nextItem(bytes, at, end)) {
    if (matches(bytes, at, skipValue(bytes, at, end), QUOTED_TRACKING)) return true;
  }
  return false;
}
