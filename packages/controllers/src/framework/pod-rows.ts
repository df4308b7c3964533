/** The table of replicas, kept by the pods' informer, and those who want to hear of changes. */
import type { Random } from '@megaplane/base/random';
import type { Informer } from '@megaplane/client/informer';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { REPLICA_DELETING, REPLICA_EXISTS, ReplicaPods } from '../columns/replica-pods.ts';
import type { SharedInformers } from './shared-informers.ts';

export interface PodListener {
  /** A pod is new, changed, or gone (null); what it was before is in `pods.…Before`. */
  changed(row: number, bytes: Buffer, scan: ObjectScan | null): void;
  synced?(): void;
}

export class PodRows {
  readonly pods: ReplicaPods;
  readonly informer: Informer;
  readonly #listeners: PodListener[] = [];

  constructor(informers: SharedInformers, random: Random) {
    this.pods = new ReplicaPods(random);
    this.informer = informers.subscribe(
      { path: '/api/v1/pods' },
      {
        onUpsert: (row, isNew, bytes, _start, _end, scan) => {
          const buffer = bufferOf(bytes);
          this.pods.upsert(row, isNew, buffer, scan);
          for (const one of this.#listeners) one.changed(row, buffer, scan);
        },
        onDelete: (row, bytes) => {
          this.pods.remove(row);
          const buffer = bufferOf(bytes);
          for (const one of this.#listeners) one.changed(row, buffer, null);
        },
        onSynced: () => {
          for (const one of this.#listeners) one.synced?.();
        },
      },
    );
  }

  listen(listener: PodListener): void {
    this.#listeners.push(listener);
  }

  /** Whether the pod `namespace/name` is being deleted or gone. */
  readonly isGoing = (pod: string): boolean => {
    const slash = pod.indexOf('/');
    const row = this.informer.find(pod.slice(0, slash), pod.slice(slash + 1));
    if (row < 0) return true;
    // While it is told that a pod is gone its row is there, and empty.
    return (this.pods.flags.get(row) & (REPLICA_EXISTS | REPLICA_DELETING)) !== REPLICA_EXISTS;
  };
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
