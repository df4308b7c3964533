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
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import {
  findPath,
  integerAt,
  matches,
  pathOf,
  type ScanPath,
  skipValue,
} from '@megaplane/machinery/scan';
import { firstItem, nextItem } from './pod-scan.ts';

export const TRACKING = 'batch.kubernetes.io/job-tracking';
export const INDEX = 'batch.kubernetes.io/job-completion-index';
export const INDEX_FAILURES = 'batch.kubernetes.io/job-index-failure-count';

const ANNOTATED_INDEX = pathOf(INDEX);
const ANNOTATED_FAILURES = pathOf(INDEX_FAILURES);
const QUOTED_TRACKING: Uint8Array = new TextEncoder().encode(`"${TRACKING}"`);
const DASH = 0x2d;

export class JobPods {
  readonly #words: readonly Uint32Column[] = [0, 1, 2, 3].map(() => new Uint32Column());
  readonly #index = new Uint32Column();
  readonly failures: Uint32Column = new Uint32Column();
  readonly tracked: Uint8Column = new Uint8Column();

  upsert(row: number, bytes: Uint8Array, scan: ObjectScan): void {
    if (scan.uidStart >= 0) this.#setUid(row, bytes, scan.uidStart);
    const index = annotation(bytes, scan, ANNOTATED_INDEX);
    this.#index.set(row, index < 0 ? 0 : integerAt(bytes, index, scan.annotationsEnd) + 1);
    const failures = annotation(bytes, scan, ANNOTATED_FAILURES);
    const count = failures < 0 ? 0 : integerAt(bytes, failures, scan.annotationsEnd);
    this.failures.set(row, Math.max(0, count));
    const { finalizersStart, finalizersEnd } = scan;
    const isKept = finalizersStart >= 0 && isTracked(bytes, finalizersStart, finalizersEnd);
    this.tracked.set(row, isKept ? 1 : 0);
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

/** Where the value of an annotation stands, or -1. */
function annotation(bytes: Uint8Array, scan: ObjectScan, path: ScanPath): number {
  const { annotationsStart, annotationsEnd } = scan;
  return annotationsStart < 0 ? -1 : findPath(bytes, annotationsStart, annotationsEnd, path);
}

function isTracked(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = firstItem(bytes, start, end); at >= 0; at = nextItem(bytes, at, end)) {
    if (matches(bytes, at, skipValue(bytes, at, end), QUOTED_TRACKING)) return true;
  }
  return false;
}
