// data plane
/**
 * Tells changes of Nodes from heartbeats, which are most of what a watch of them brings: a million
 * kubelets tell their conditions each five minutes, and no plugin looks at those.
 *
 *   high, low   Uint32   by row: a hash of all that may matter; two changes in 2^64 are mistaken
 *
 * What may matter are labels, annotations, the spec, and the status without its conditions.
 */
import { Uint32Column } from '@megaplane/base/column';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { skipValue } from '@megaplane/machinery/scan';

const HIGH_FACTOR = 0x85ebca6b;
const LOW_FACTOR = 0xc2b2ae35;

export class NodeNews {
  readonly #high = new Uint32Column();
  readonly #low = new Uint32Column();
  readonly #scan = new ObjectScan();
  #a = 0;
  #b = 0;

  /** False where the node at this row is, for all that matters, what it was when last asked. */
  isNews(row: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): boolean {
    const scan = this.#scan;
    if (!scan.scan(bytes, start, end)) return true;
    this.#a = 1;
    this.#b = 2;
    this.#take(bytes, scan.uidStart, scan.uidEnd);
    this.#take(bytes, scan.labelsStart, scan.labelsEnd);
    this.#take(bytes, scan.annotationsStart, scan.annotationsEnd);
    this.#take(bytes, scan.specStart, scan.specEnd);
    const { statusStart, statusEnd, conditionsStart } = scan;
    if (conditionsStart < 0) this.#take(bytes, statusStart, statusEnd);
    else {
      this.#take(bytes, statusStart, conditionsStart);
      this.#take(bytes, skipValue(bytes, conditionsStart, statusEnd), statusEnd);
    }
    const high = this.#a >>> 0;
    const low = this.#b >>> 0;
    if (!isNew && this.#high.get(row) === high && this.#low.get(row) === low) return false;
    this.#high.set(row, high);
    this.#low.set(row, low);
    return true;
  }

  /** Takes a range into the hash, and where it ends. */
  #take(bytes: Uint8Array, start: number, end: number): void {
    let a = this.#a;
    let b = this.#b;
    let at = start;
    for (; at + 4 <= end; at += 4) {
      const word =
        bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
      a = Math.imul((a << 13) ^ (a >>> 19) ^ word, HIGH_FACTOR);
      b = (Math.imul(b ^ word, LOW_FACTOR) ^ (b >>> 15)) | 0;
    }
    let rest = end - start;
    for (; at < end; at++) rest = (rest << 8) ^ bytes[at]!;
    this.#a = Math.imul((a << 13) ^ (a >>> 19) ^ rest, HIGH_FACTOR);
    this.#b = (Math.imul(b ^ rest, LOW_FACTOR) ^ (b >>> 15)) | 0;
  }
}
