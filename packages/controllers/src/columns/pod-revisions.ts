/** The revision of each pod's template, by row of the pods' informer: id of its label + 1. */
import { Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, pathOf, stringValue } from '@megaplane/machinery/scan';

export const HASH_LABEL = 'controller-revision-hash';
const HASH = pathOf(HASH_LABEL);

export class PodRevisions {
  readonly #hashes: KeyTable;
  readonly #revision = new Uint32Column();

  constructor(random: Random) {
    this.#hashes = new KeyTable({ random });
  }

  read(row: number, bytes: Buffer, scan: ObjectScan): void {
    const at = scan.labelsStart < 0 ? -1 : findPath(bytes, scan.labelsStart, scan.labelsEnd, HASH);
    const hash = Buffer.from(stringValue(bytes, at, scan.labelsEnd));
    this.#revision.set(row, hash.length === 0 ? 0 : this.#hashes.insert(hash, 0, hash.length) + 1);
  }

  /** Id of a hash, or -1 where no pod has had it: one comparison then tells each pod of it. */
  find(hash: string): number {
    const key = Buffer.from(hash);
    return this.#hashes.find(key, 0, key.length);
  }

  /** Id of the pod's hash, or -1 for a pod without the label. */
  idOf(row: number): number {
    return this.#revision.get(row) - 1;
  }

  /** '' for a pod without the label. */
  of(row: number): string {
    const id = this.#revision.get(row) - 1;
    return id < 0 ? '' : this.#hashes.keyText(id);
  }
}
