/** Updates: PUT and PATCH of an object or of one of its subresources. */
import { ownMember } from '@megaplane/base/members';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { invalidValue, printed } from '@megaplane/machinery/fielderrors';
import { equals, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import {
  conflict,
  failed,
  invalid,
  notFound,
  storageUidConflict,
  success,
  unclassified,
  type Result,
} from '@megaplane/machinery/status';
import {
  keepsEmptyCollections,
  markEmptyCollections,
  storageForm,
} from '@megaplane/machinery/empty-collections';
import { PAUSED_BYTES_MIN } from '../admission/admission.ts';
import {
  dropNamespace,
  isReplaced,
  keepAllButStatus,
  keepField,
} from '../registry/rest/kept-parts.ts';
import { behaviourOf, claimFor } from '../registry/rest/behaviour.ts';
import { keptForm, markUnpruned } from '../apiextensions/schema/custom-objects.ts';
import { endsObject, withMetadata } from '../registry/rest/deletion.ts';
import { assemble, sentUid, updateMetadata } from '../registry/rest/object-meta.ts';
import { parseRevision, revisionFault } from '../request/query.ts';
import { dropGatedPodFields } from '../registry/rest/pod-gates.ts';
import {
  changeFaults,
  faultyKind,
  withDefaults,
  withStatusDefaults,
} from '../registry/rest/schema-gate.ts';
import { keepsMetadata } from '../fieldmanager/reset-fields.ts';
import { settleTimes, trackChange } from '../fieldmanager/tracking.ts';
import { awaitConversions } from '../fieldmanager/version-conversions.ts';
import { keyOf, keyText, type Served } from '../storage/served.ts';
import type { WriteOutcome } from '../storage/storage.ts';
import {
  createObject,
  findStored,
  isStoredAs,
  readStored,
  refusedWrite,
  sendRehearsed,
  sendWritten,
  type StoredObject,
  type WriteContext,
  warnOfOwners,
} from './writing.ts';
import type { Admitted } from '../registry/rest/admitted.ts';

/** Tries of an update that names no revision, when others write in between. */
const UPDATE_TRIES_MAX = 5;

/** Makes the new object from the stored one; called again when somebody else was faster. */
export type Change = (previous: JsonObject) => Result<JsonObject>;

/** One update. */
export interface Update {
  /** `''`, `status`, or another subresource that shows the whole object. */
  readonly subresource: string;
  readonly change: Change;
  /** PUT: a missing name may create, and a foreign uid is a conflict of storage. */
  readonly isPut: boolean;
  /** Apply: a missing name creates, and `change` says itself who owns what. */
  readonly isApply?: boolean;
}

/** Runs the update and answers. */
export function updateObject(context: WriteContext, update: Update): void {
  updateTry(context, update, 1);
}

function updateTry(context: WriteContext, update: Update, attempt: number): void {
  const { admission, call, served, world } = context;
  const stored = readStored(world, call, served);
  if (stored === null) {
    updateMissing(context, update);
    return;
  }
  const bytes = Math.max(stored.bytes, call.body.length);
  const change: Step = { context, update, attempt, stored, bytes };
  admission.pause(context, bytes, () => changeStored(change));
}

/** One try of an update, of the object as it was found. */
interface Step {
  readonly context: WriteContext;
  readonly update: Update;
  readonly attempt: number;
  readonly stored: StoredObject;
  /** Of the larger one of what is stored and what was sent. */
  readonly bytes: number;
}

function changeStored(step: Step): void {
  const { context, update, attempt, stored, bytes } = step;
  const { call } = context;
  const previous = stored.object;
  const changed = update.change(previous);
  if (awaitConversions(context, () => updateTry(context, update, attempt))) {
    return;
  }
  if (!changed.ok) {
    call.fail(changed.status);
    return;
  }
  const { value } = changed;
  const checked = checkRevision(context, update, value, stored.revision, previous);
  if (!checked.ok) {
    call.fail(checked.status);
    return;
  }
  let isLate = bytes >= PAUSED_BYTES_MIN;
  const done = (next: Result<JsonObject>): void => {
    if (next.ok) storeNext(step, next.value, isLate, checked.value);
    else call.fail(next.status);
  };
  context.admission.pause(context, bytes, () => {
    nextObject(context, update, value, previous, done);
    isLate = true;
  });
}

/** Stores what an update came to; `isNamed`: the client said which revision it changes. */
function storeNext(step: Step, next: JsonObject, isLate: boolean, isNamed: boolean): void {
  const { context, update, stored, attempt } = step;
  const { call, served, world } = context;
  const isApply = update.isApply === true;
  settleTimes(stored.object, next, isApply);
  if (isApply) markUnpruned(next);
  const value = keptForm(served, next, storageForm(next));
  const bytes = encodeCanonical(value);
  const retry = (): boolean => {
    if (isNamed || attempt >= UPDATE_TRIES_MAX) return false;
    updateTry(context, update, attempt + 1);
    return true;
  };
  context.admission.pause(context, bytes.length, () => {
    // others may have written since, and what was read is no longer at hand
    const isPaused = isLate || bytes.length >= PAUSED_BYTES_MIN;
    if (isPaused && findStored(world, call, served) !== stored.revision) {
      if (!retry()) call.fail(conflict(served.plural, call.info.name));
      return;
    }
    putNext(step, { next, value, bytes }, retry);
  });
}

/** What an update came to, as it is kept, and its text. */
interface Settled {
  readonly next: JsonObject;
  readonly value: JsonObject;
  readonly bytes: Buffer;
}

function putNext(
  { context, stored }: Step,
  { next, value, bytes }: Settled,
  retry: () => boolean,
): void {
  const { call, served, world } = context;
  const { name, namespace } = call.info;
  const previous = stored.object;
  const key = keyOf(served, namespace, name);
  const ends = behaviourOf(served).endsAfterUpdate ?? endsObject;
  const isEnd = ends(previous, next);
  // what is marked, and has nothing left to wait for, goes with whatever write comes next
  if (!isEnd && isStoredAs(world.storage, key, stored, bytes) && !world.storage.isStale(key)) {
    sendWritten(context, 200, value, stored.revision, bytes);
    return;
  }
  if (context.isDryRun) {
    const revision = { ...objectAt(value, 'metadata'), resourceVersion: String(stored.revision) };
    sendRehearsed(context, 200, { ...value, metadata: revision }, name, bytes);
    return;
  }
  claimFor(context, isEnd ? previous : next, previous, (claim) => {
    if (claim.kind === 'taken') {
      if (!retry()) call.fail(claim.status);
      return;
    }
    const done = call.timed('etcd', (outcome: WriteOutcome): void => {
      if (outcome.kind === 'done') {
        if (isEnd) behaviourOf(served).release?.(value, world);
        claim.settle();
        // upstream shows an object that ends so as it was kept last
        const shown = isEnd ? stored.revision : outcome.revision;
        sendWritten(context, 200, value, shown, outcome.shown ?? bytes);
        return;
      }
      claim.undo();
      if (outcome.kind !== 'conflict' || !retry()) call.fail(refusedWrite(served, name, outcome));
    });
    if (isEnd) world.storage.delete(key, stored.revision, done);
    else world.storage.put(key, bytes, stored.revision, done);
  });
}

function updateMissing(context: WriteContext, update: Update): void {
  const { call, served } = context;
  const { name } = call.info;
  const mayCreate = update.isApply === true || (update.isPut && served.resource.createdByPut);
  if (!mayCreate || update.subresource !== '') {
    call.fail(notFound(served.plural, name));
    return;
  }
  const sent = update.change({});
  if (!sent.ok) {
    call.fail(sent.status);
    return;
  }
  const uid = sentUid(sent.value);
  if (uid !== '') {
    const key = shownKey(context);
    call.fail(storageUidConflict(served.plural, name, key, uid, ''));
    return;
  }
  const metadata = { ...objectAt(sent.value, 'metadata') };
  delete metadata['resourceVersion'];
  createObject(context, { ...sent.value, metadata });
}

/** The key as refusals of the storage show it, which a dry run never gets to. */
function shownKey({ call, served, isDryRun }: WriteContext): string {
  const key = keyText(served, call.info.namespace, call.info.name);
  return isDryRun ? key.replace(/^\/registry/, '') : key;
}

/**
 * Compares the revision and uid that the client sent with what is stored. Success says whether the
 * client named a revision, in which case it hears of conflicts instead of the server trying again.
 */
function checkRevision(
  context: WriteContext,
  update: Update,
  sent: JsonObject,
  revision: number,
  previous: JsonObject,
): Result<boolean> {
  const { call, served } = context;
  const { name } = call.info;
  const uid = sentUid(sent);
  const ownUid = stringAt(previous, 'metadata', 'uid');
  if (uid !== '' && uid !== ownUid) {
    const key = shownKey(context);
    // of a patch, validation says that the field is immutable
    if (update.isPut) return failed(storageUidConflict(served.plural, name, key, uid, ownUid));
  }
  const text = stringAt(sent, 'metadata', 'resourceVersion');
  const wanted = parseRevision(text);
  if (wanted === null) return failed(unclassified(revisionFault(text)));
  if (wanted === 0) {
    if (!served.resource.conditionalUpdate) return success(false);
    const fault = invalidValue(
      'metadata.resourceVersion',
      printed('0'),
      'must be specified for an update',
    );
    return failed(invalid(served.plural, name, [fault]));
  }
  if (wanted !== revision) return failed(conflict(served.plural, name));
  // a patch carries the stored revision by itself: only one that the client wrote is a condition
  return success(update.isPut);
}

function nextObject(
  context: WriteContext,
  { subresource, isPut }: Update,
  sent: JsonObject,
  previous: JsonObject,
  done: (next: Result<JsonObject>) => void,
): void {
  const { served } = context;
  const behaviour = behaviourOf(served);
  const isBare = subresource === 'status' && keepsMetadata(served);
  const metadata = updateMetadata(isBare ? bareMetadata(served, sent, previous) : sent, previous);
  let next: JsonObject;
  if (subresource === 'status') {
    next = statusUpdate(metadata, sent['status'], previous);
    if (keepsEmptyCollections(sent)) markEmptyCollections(next);
    behaviour.startUpdate?.(next);
    withStatusDefaults(served, next);
  } else {
    next = assemble(sent, metadata);
    if (subresource === '' && served.hasStatus) keepStatus(next, previous);
    if (subresource === '') behaviour.startUpdate?.(next);
    if (served.custom?.formedSince === Infinity) next = unshared(next);
    next = withDefaults(served, next);
  }
  if (isPut) warnOfOwners(context.call, next, false);
  const track = (): void => {
    trackChange(context, subresource, previous, next, sent);
    if (awaitConversions(context, track)) return;
    // what is not taken over is owned all the same, but for status
    ownMember(behaviour.keepRest, subresource)?.(next, previous, context);
    const operation = 'UPDATE';
    const write: Admitted = { ...context, operation, subresource, previous, object: next, sent };
    admitNext(context, write, next, previous, done);
  };
  track();
}

const FLOWS = 'flowcontrol.apiserver.k8s.io';

/** Upstream's reset of metadata forgets one field of it, which validation then refuses. */
function bareMetadata(served: Served, sent: JsonObject, previous: JsonObject): JsonObject {
  const seconds = objectAt(sent, 'metadata')?.['deletionGracePeriodSeconds'];
  const isWhole = served.custom !== null || served.resource.group === FLOWS;
  if (isWhole || seconds === undefined) return previous;
  return withMetadata(previous, { deletionGracePeriodSeconds: seconds });
}

/** What a patch left alone is shared with the stored object, which may not have all defaults. */
function unshared(object: JsonObject): JsonObject {
  const own = { ...object };
  for (const name of Object.keys(own)) {
    if (name !== 'metadata') own[name] = structuredClone(own[name] ?? null);
  }
  return own;
}

/** Admission and validation of the object as it is to be. */
function admitNext(
  context: WriteContext,
  write: Admitted,
  next: JsonObject,
  previous: JsonObject,
  done: (next: Result<JsonObject>) => void,
): void {
  const { admission, served } = context;
  const { subresource } = write;
  const { metadata } = next;
  admission.mutate(write, (refusal) => {
    if (refusal !== null) {
      done(failed(refusal));
      return;
    }
    if (isReplaced(next, metadata)) {
      keepParts(context, subresource, next, previous, metadata);
      if (!served.resource.namespaced) dropNamespace(next);
      markUnpruned(next);
    }
    warnOfOwners(context.call, next, true);
    prepareNext(context, subresource, next, previous);
    const { preflight, preflightStatus } = behaviourOf(served);
    const early =
      (subresource === '' ? preflight?.(next, previous, context) : null) ??
      (subresource === 'status' ? preflightStatus?.(next, previous, context) : null) ??
      null;
    if (early !== null) {
      done(failed(early));
      return;
    }
    const steps = subresource === '' ? behaviourOf(served).judge?.(next, previous) : undefined;
    const judgeIt = (): void => judgeNext(context, write, next, previous, done);
    if (steps === undefined) judgeIt();
    else admission.walk(write, steps, judgeIt);
  });
}

/** What is not to be changed by this write is as it was before admission changed the object. */
function keepParts(
  context: WriteContext,
  subresource: string,
  next: JsonObject,
  previous: JsonObject,
  metadata: JsonValue | undefined,
): void {
  const { served } = context;
  if (subresource === 'status') {
    keepAllButStatus(next, previous);
    if (keepsMetadata(served)) keepField(next, 'metadata', metadata);
  } else if (subresource === '') {
    if (served.hasStatus) keepStatus(next, previous);
  } else ownMember(behaviourOf(served).keepRest, subresource)?.(next, previous, context);
}

/** The last part of it: rules, who only looks, and quotas. */
function judgeNext(
  context: WriteContext,
  write: Admitted,
  next: JsonObject,
  previous: JsonObject,
  done: (next: Result<JsonObject>) => void,
): void {
  const { admission, served, call } = context;
  const { subresource } = write;
  const warn = (text: string): void => call.warn(text);
  const faults = changeFaults(served, next, previous, subresource, warn);
  if (faults.length > 0) {
    done(failed(invalid(faultyKind(served, next), call.info.name, faults)));
    return;
  }
  admission.validate(write, (denied) => {
    const allocate = subresource === '' ? behaviourOf(served).allocate : undefined;
    const denial = denied ?? allocate?.(next, context) ?? null;
    if (denial !== null) {
      done(failed(denial));
      return;
    }
    admission.charge(write, (excess) => {
      done(excess === null ? success(next) : failed(excess));
    });
  });
}

/** What the server adds or drops by itself, which is nobody's; admission has seen it as it came. */
function prepareNext(
  context: WriteContext,
  subresource: string,
  next: JsonObject,
  previous: JsonObject,
): void {
  const { served } = context;
  const behaviour = behaviourOf(served);
  if (subresource === 'status') {
    behaviour.prepareStatus?.(next, previous, context);
    return;
  }
  const isEarly = behaviour.counting === 'early';
  if (isEarly) countGeneration(served, next, previous);
  dropGatedPodFields(served, next, previous);
  if (subresource === '') behaviour.prepareUpdate?.(next, previous, context);
  ownMember(behaviour.prepareParts, subresource)?.(next, previous, context);
  if (!isEarly) countGeneration(served, next, previous);
}

function keepStatus(next: JsonObject, previous: JsonObject): void {
  keepField(next, 'status', previous['status']);
}

/** The stored object with the status, labels and annotations that were sent. */
function statusUpdate(
  metadata: JsonObject,
  status: JsonValue | undefined,
  previous: JsonObject,
): JsonObject {
  const kept: JsonObject = { ...previous, metadata };
  if (status === undefined) delete kept['status'];
  else kept['status'] = status;
  return kept;
}

function countGeneration(served: Served, next: JsonObject, previous: JsonObject): void {
  const { custom, hasStatus, counted } = served;
  if (!counted) return;
  const metadata = objectAt(next, 'metadata');
  if (metadata === undefined) return;
  const generation = numberAt(previous, 'metadata', 'generation');
  const isWhole = custom !== null && !hasStatus;
  const after = behaviourOf(served).counting === 'exact' ? next : storageForm(next);
  const isChanged =
    !equals(countedPart(after, isWhole), countedPart(previous, isWhole)) ||
    (after['kind'] === 'Deployment' && !equals(annotationsOf(after), annotationsOf(previous))) ||
    (after['kind'] === 'EndpointSlice' && !equals(labelsOf(after), labelsOf(previous)));
  const value = isChanged ? generation + 1 : generation;
  if (value > 0) metadata['generation'] = value;
  else delete metadata['generation'];
}

/** Those of an EndpointSlice say whose it is. */
function labelsOf(object: JsonObject): JsonObject {
  return objectAt(object, 'metadata', 'labels') ?? {};
}

/** Those of a Deployment count as part of its spec: they go on to its ReplicaSets. */
function annotationsOf(object: JsonObject): JsonObject {
  return objectAt(object, 'metadata', 'annotations') ?? {};
}

/** All but metadata; the status counts where it is no subresource. */
function countedPart(object: JsonObject, hasStatus: boolean): JsonObject {
  const { metadata: _, status, ...rest } = object;
  return hasStatus && status !== undefined ? { ...rest, status } : rest;
}
