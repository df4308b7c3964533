// data plane
/**
 * What Jobs need of their pods beyond the table of replicas, by row of the pods' informer.
 *
 *   uid        four words of its 32 hexadecimal digits
 *   index      completion index + 1, 0 = none
 *   failures   how often this index had failed before
 *   ignored    how often it had failed besides, which did not count
 *   restarts   of all containers together
 *   finished   when its last container ended, seconds since 1970; 0 where one has not
 *   going      when it was told to go; 0 where it was not
 *   tracked    1 while the finalizer that keeps the pod until it is counted is on it
 */
import { Uint32Column, Uint8Column } from '@megaplane/base/column';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import {
  findPath,
  integerAt,
  matches,
  MemberCursor,
  pathOf,
  type ScanPath,
  skipValue,
} from '@megaplane/machinery/scan';
import { firstItem, nextItem, secondsAt } from '../columns/pod-scan.ts';

export const TRACKING = 'batch.kubernetes.io/job-tracking';
export const INDEX = 'batch.kubernetes.io/job-completion-index';
export const INDEX_FAILURES = 'batch.kubernetes.io/job-index-failure-count';
export const INDEX_IGNORED = 'batch.kubernetes.io/job-index-ignored-failure-count';

const ANNOTATED_INDEX = pathOf(INDEX);
const ANNOTATED_FAILURES = pathOf(INDEX_FAILURES);
const ANNOTATED_IGNORED = pathOf(INDEX_IGNORED);
const CONTAINERS = pathOf('containerStatuses');
const INIT_CONTAINERS = pathOf('initContainerStatuses');
const FINISHED = pathOf('terminated', 'finishedAt');
const RESTARTS: Uint8Array = new TextEncoder().encode('restartCount');
const STATE: Uint8Array = new TextEncoder().encode('state');
const QUOTED_TRACKING: Uint8Array = new TextEncoder().encode(`"${TRACKING}"`);
const DASH = 0x2d;

export class JobPods {
  readonly #words: readonly Uint32Column[] = [0, 1, 2, 3].map(() => new Uint32Column());
  readonly #index = new Uint32Column();
  readonly failures: Uint32Column = new Uint32Column();
  readonly ignored: Uint32Column = new Uint32Column();
  readonly restarts: Uint32Column = new Uint32Column();
  readonly finishedS: Uint32Column = new Uint32Column();
  readonly goingS: Uint32Column = new Uint32Column();
  readonly #member = new MemberCursor();
  #restarts = 0;
  #finishedS = 0;
  readonly tracked: Uint8Column = new Uint8Column();

  upsert(row: number, bytes: Uint8Array, scan: ObjectScan): void {
    if (scan.uidStart >= 0) this.#setUid(row, bytes, scan.uidStart);
    const index = annotation(bytes, scan, ANNOTATED_INDEX);
    this.#index.set(row, index < 0 ? 0 : integerAt(bytes, index, scan.annotationsEnd) + 1);
    put(this.failures, row, countAt(bytes, scan, ANNOTATED_FAILURES));
    put(this.ignored, row, countAt(bytes, scan, ANNOTATED_IGNORED));
    const { finalizersStart, finalizersEnd } = scan;
    const isKept = finalizersStart >= 0 && isTracked(bytes, finalizersStart, finalizersEnd);
    this.tracked.set(row, isKept ? 1 : 0);
    this.#restarts = this.#finishedS = 0;
    if (isKept && scan.statusStart >= 0) {
      this.#containers(bytes, scan, INIT_CONTAINERS);
      this.#finishedS = 0;
      this.#containers(bytes, scan, CONTAINERS);
    }
    put(this.restarts, row, this.#restarts);
    put(this.finishedS, row, Math.max(0, this.#finishedS));
    put(this.goingS, row, isKept ? goingS(bytes, scan) : 0);
  }

  /** Adds restarts up; tells when the last container ended, -1 where one has not. */
  #containers(bytes: Uint8Array, { statusStart, statusEnd: end }: ObjectScan, at: ScanPath): void {
    const member = this.#member;
    const start = findPath(bytes, statusStart, end, at);
    if (start < 0) return;
    for (let item = firstItem(bytes, start, end); item >= 0; item = nextItem(bytes, item, end)) {
      if (!member.open(bytes, item, end)) return;
      let finishedS = 0;
      while (member.next()) {
        const { valueStart, valueEnd } = member;
        if (member.is(RESTARTS)) this.#restarts += Math.max(0, integerAt(bytes, valueStart, end));
        if (!member.is(STATE)) continue;
        const finished = findPath(bytes, valueStart, valueEnd, FINISHED);
        if (finished >= 0) finishedS = secondsAt(bytes, finished + 1);
      }
      const isOver = finishedS > 0 && this.#finishedS >= 0;
      this.#finishedS = isOver ? Math.max(this.#finishedS, finishedS) : -1;
    }
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

/** Columns grow with what is in them: most pods are of no Job, and most Jobs fail seldom. */
function put(column: Uint32Column, row: number, value: number): void {
  if (value !== 0 || column.get(row) !== 0) column.set(row, value);
}

/** When the pod was told to go: its deadline less the grace; 0 where it was not. */
function goingS(bytes: Uint8Array, scan: ObjectScan): number {
  if (scan.deletionTimestampStart < 0) return 0;
  const graceS = Math.max(0, scan.deletionGracePeriodSeconds);
  return Math.max(0, secondsAt(bytes, scan.deletionTimestampStart) - graceS);
}

function countAt(bytes: Uint8Array, scan: ObjectScan, path: ScanPath): number {
  const at = annotation(bytes, scan, path);
  return at < 0 ? 0 : Math.max(0, integerAt(bytes, at, scan.annotationsEnd));
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
