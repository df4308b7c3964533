/**
 * What has to happen between the choice of a node and the binding: writes to other objects, and
 * the wait for what they set off. Plugins say it as data; the shell does it (`pre-binder.ts`).
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { KubeObject } from '../api/objects.ts';
import type { Snapshot } from './snapshot.ts';

/** Objects as they are known, by kind. */
export type KnownObjects = Pick<Snapshot, 'object' | 'objects'>;

/** A change to an object as it is when it is written; repeated on conflicts. */
export interface ObjectWrite {
  /** As the store of small kinds names it. */
  readonly kind: string;
  /** `namespace/name`, or `name`. */
  readonly key: string;
  /** Of the object, without subresource. */
  readonly path: string;
  readonly subresource: '' | 'status';
  /** Default: the object is read, changed and put. */
  readonly action?: 'create' | 'delete';
  /** That there is no such object any more is as well. */
  readonly isOptional?: boolean;
  /** What a failure is called: `add reservation to claim default/c`. */
  readonly about: string;
  /** The object to write; null where it is as wanted already; a text says why it must not be. */
  change(object: JsonObject, nowMs: number): JsonObject | null | string;
}

export interface Reservation {
  readonly plugin: string;
  /** Put in place of what the API server says, until that is newer or the reservation ends. */
  readonly assumed: readonly KubeObject[];
  /** Given back when the writes are done, or the pod does not get the node. */
  readonly pending: readonly KubeObject[];
  /** In turn, before the pod is bound. */
  readonly writes: readonly ObjectWrite[];
  /** After the writes: true when the pod may be bound, a text when it must not be. */
  isReady(objects: KnownObjects, nowMs: number): boolean | string;
  readonly timeoutMs: number;
  /** What a wait that took too long is called. */
  readonly timeoutText: string;
  /** To be done when the pod is not bound after all. */
  readonly undo: readonly ObjectWrite[];
  /** The event that tells of a wait, if it is a long one. */
  readonly waitingText: string;
  /** Drivers of the devices that the pod gets, and of those that are made ready on demand. */
  readonly drivers?: { readonly all: readonly string[]; readonly slow: readonly string[] };
  /** Objects as they are in the end, for scenarios. */
  readonly outcome: readonly KubeObject[];
}

/** Kind under which claims are kept whose allocation is being written. */
export const ALLOCATING_CLAIM = 'AllocatingClaim';
/** Kind under which claims are kept that a write is taking something from. */
export const WITHHELD_CLAIM = 'WithheldClaim';
