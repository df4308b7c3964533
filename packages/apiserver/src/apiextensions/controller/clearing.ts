/**
 * The end of a definition: its objects are deleted, what finalizers hold is waited for, and then
 * the definition may go. Upstream's finalizer controller, without its polling.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { decodeStoredValue } from '@megaplane/machinery/stored-value';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  decideDeletion,
  finalizersOf,
  withMetadata,
  type DeletionRules,
} from '../../registry/rest/deletion.ts';
import { followUntil } from '../../storage/follow.ts';
import type { KeyRange } from '../../storage/served.ts';
import { EXPECT_ANY, type Storage, type WriteDone } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import type { CustomKind } from '../schema/custom-kind.ts';
import { CLEANUP_FINALIZER } from '../definition/definition-facts.ts';
import { withCondition } from '../definition/definition-status.ts';
import { withSchemas } from '../definition/schema-spans.ts';
import type { DeleteOptions } from '../../request/options/delete-options.ts';

/** Objects that are deleted before others get their turn. */
const DELETIONS_PER_TURN = 200;

const RULES: DeletionRules = { graceSeconds: null, orphansByDefault: false };
const OPTIONS: DeleteOptions = {
  gracePeriodSeconds: null,
  uid: null,
  resourceVersion: null,
  orphanDependents: null,
  propagationPolicy: '',
  dryRun: false,
};

/** A stored definition and where it is. */
export interface Stored {
  /** Without its schemas, which are nearly all of it and say nothing of its end. */
  readonly object: JsonObject;
  readonly revision: number;
  readonly schemas: readonly Buffer[];
}

/** The bytes of what became of a stored definition. */
export function encodeStored(next: JsonObject, { schemas }: Stored): Buffer {
  return withSchemas(encodeCanonical(next), schemas);
}

export interface Clearing {
  readonly world: World;
  readonly kind: CustomKind;
  /** Of the definition, and what keeps it. */
  readonly key: Buffer;
  readonly home: Storage;
  /** The definition as it is now; null where it is gone. */
  readonly read: () => Stored | null;
  /** Called when there is nothing left to do, or somebody else wrote: look again then. */
  readonly done: () => void;
}

type Reason = 'InstanceDeletionInProgress' | 'InstanceDeletionCompleted' | 'NeverEstablished';

const MESSAGES: Readonly<Record<Reason, string>> = {
  InstanceDeletionInProgress: 'CustomResource deletion is in progress',
  InstanceDeletionCompleted: 'removed all instances',
  NeverEstablished: 'resource was never established',
};

/** Removes all objects of a definition that ends, and then its finalizer. */
export function clearInstances(clearing: Clearing): void {
  const { world, kind } = clearing;
  if (!kind.facts.state.isEstablished) {
    finish(clearing, 'NeverEstablished');
    return;
  }
  const range = {
    start: Buffer.from(kind.prefix),
    end: Buffer.from(`${kind.prefix.slice(0, -1)}0`),
  };
  say(clearing, 'InstanceDeletionInProgress', () => {
    deleteFrom(clearing, range, range.start, () => {
      const storage = world.storageOf(kind.prefix);
      const isEmpty = (): boolean => storage.count(range.start, range.end) === 0;
      followUntil(storage, range, isEmpty, () => finish(clearing, 'InstanceDeletionCompleted'));
    });
  });
}

/** Writes where the deletion stands into the definition's status. */
function say(clearing: Clearing, reason: Reason, then: () => void): void {
  const { world, key, home } = clearing;
  const stored = clearing.read();
  if (stored === null) {
    clearing.done();
    return;
  }
  const next = withReason(stored.object, reason, world.edge.nowMs());
  home.put(key, encodeStored(next, stored), stored.revision, (outcome) => {
    if (outcome.kind === 'conflict') say(clearing, reason, then);
    else if (outcome.kind === 'done') then();
    else clearing.done();
  });
}

function withReason(definition: JsonObject, reason: Reason, nowMs: number): JsonObject {
  const status = reason === 'InstanceDeletionInProgress' ? 'True' : 'False';
  const message = MESSAGES[reason];
  return withCondition(definition, { type: 'Terminating', status, reason, message }, nowMs);
}

function deleteFrom(clearing: Clearing, range: KeyRange, from: Buffer, then: () => void): void {
  const { world, kind } = clearing;
  const storage = world.storageOf(kind.prefix);
  const nowMs = world.edge.nowMs();
  const found: { readonly key: Buffer; readonly next: Buffer | null }[] = [];
  storage.page(from, range.end, 0, (one) => {
    const key = Buffer.from(one.key.subarray(one.keyStart, one.keyEnd));
    const read = decodeStoredValue(one.bytes, one.start, one.end);
    const object = read.ok ? read.object : {};
    const decision = decideDeletion(object, OPTIONS, RULES, nowMs);
    const isMarked = decision.kind === 'mark';
    const next = isMarked ? encodeCanonical(decision.object) : null;
    if (!isMarked || decision.object !== object) found.push({ key, next });
    return found.length < DELETIONS_PER_TURN;
  });
  const last = found.at(-1)?.key;
  if (last === undefined) {
    then();
    return;
  }
  let left = found.length;
  const settle = (): void => {
    left--;
    const after = Buffer.concat([last, Buffer.alloc(1)]);
    if (left === 0) world.edge.defer(() => deleteFrom(clearing, range, after, then));
  };
  for (const { key, next } of found) {
    if (next === null) storage.delete(key, EXPECT_ANY, settle);
    else storage.put(key, next, EXPECT_ANY, settle);
  }
}

/** Takes the finalizer away; where that was the last one, the definition goes with it. */
function finish(clearing: Clearing, reason: Reason): void {
  const { world, key, home } = clearing;
  const stored = clearing.read();
  if (stored === null || stringAt(stored.object, 'metadata', 'deletionTimestamp') === '') {
    clearing.done();
    return;
  }
  const finalizers = finalizersOf(stored.object).filter((one) => one !== CLEANUP_FINALIZER);
  const settle: WriteDone = (outcome) => {
    if (outcome.kind === 'conflict') finish(clearing, reason);
    else clearing.done();
  };
  if (finalizers.length === 0) {
    home.delete(key, stored.revision, settle);
    return;
  }
  const said = withReason(stored.object, reason, world.edge.nowMs());
  const next = encodeStored(withMetadata(said, { finalizers }), stored);
  home.put(key, next, stored.revision, settle);
}
