/** The write path: create, update and patch of objects and of their status. */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import { required } from '@megaplane/machinery/fielderrors';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import { emptyObject } from '@megaplane/machinery/normal-form';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { storageForm } from '@megaplane/machinery/empty-collections';
import {
  alreadyExists,
  conflict,
  failed,
  generateNameConflict,
  internalError,
  invalid,
  serviceUnavailable,
  success,
  unclassified,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import type { Admission } from '../admission/admission.ts';
import { answerForm } from '../serializer/answer-form.ts';
import { dropNamespace, isReplaced, keepField } from '../registry/rest/kept-parts.ts';
import {
  behaviourOf,
  claimFor,
  type Behaviour,
  type RuleContext,
} from '../registry/rest/behaviour.ts';
import type { Call } from '../request/call.ts';
import { fromStored } from '../storage/conversion.ts';
import { formStored, keptForm, markUnpruned } from '../apiextensions/schema/custom-objects.ts';
import { decodeRow } from '../serializer/encoder.ts';
import {
  assemble,
  checkNamespace,
  checkNewRevision,
  createMetadata,
  dedupeOwners,
  generatedName,
  isDeleting,
} from '../registry/rest/object-meta.ts';
import { dropGatedPodFields } from '../registry/rest/pod-gates.ts';
import { faultyKind, newFaults, typeOf, withDefaults } from '../registry/rest/schema-gate.ts';
import { whenMayCreate } from '../authorization/create-right.ts';
import { NOWHERE } from '../request/place-check.ts';
import { keyOf, type Served } from '../storage/served.ts';
import { trackNew } from '../fieldmanager/tracking.ts';
import { emptyRow, EXPECT_ABSENT, type Storage, type WriteOutcome } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import { encoderOf } from '../serializer/representation.ts';
import { Sink } from '../sink/sink.ts';
import type { Admitted } from '../registry/rest/admitted.ts';
import { shownObject } from '../managedfields/shown-fields.ts';

/** Names that are tried for one generateName before the client is told to try itself. */
const GENERATED_TRIES_MAX = 8;

/** Tries of a creation whose address or port somebody else was faster to claim. */
const CLAIM_TRIES_MAX = 100;

const row = emptyRow();
const sink = new Sink();

/** What the write path needs beside the world. */
export interface WriteContext extends RuleContext {
  readonly admission: Admission;
}

/**
 * Answers with an object that was just written (or would have been, in a dry run). `bytes` are its
 * stored form where the caller has it.
 */
export function sendWritten(
  context: WriteContext,
  code: number,
  stored: JsonObject,
  revision: number,
  bytes: Buffer | null = null,
): void {
  const { call, served } = context;
  const encoder = encoderOf(call, served, false);
  if (!encoder.ok) {
    call.fail(encoder.status);
    return;
  }
  if (revision === 0) {
    // a dry run has no revision of its own to show
    const { custom } = served;
    const formed = custom?.formedSince === Infinity ? formStored(custom, stored) : stored;
    const shown = shownObject(fromStored(formed, served.resource));
    const answer = answerForm(call, served, shown, false);
    if (answer.ok) call.sendObject(code, answer.value);
    else call.fail(answer.status);
    return;
  }
  const value = bytes ?? encodeCanonical(stored);
  row.bytes = value;
  row.start = 0;
  row.end = value.length;
  row.modRevision = revision;
  sink.length = 0;
  encoder.value.object(sink, row, revision);
  call.sendFrom(code, encoder.value.contentType, sink);
}

/** Answers with what would be written, as it would be shown. */
export function sendRehearsed(
  context: WriteContext,
  code: number,
  stored: JsonObject,
  name: string,
  bytes: Buffer,
): void {
  const { storage } = context.world;
  if (storage.rehearse === undefined) {
    sendWritten(context, code, stored, 0);
    return;
  }
  storage.rehearse(bytes, (outcome) => {
    if (outcome.kind !== 'done') {
      context.call.fail(refusedWrite(context.served, name, outcome));
      return;
    }
    const shown = parseJson((outcome.shown ?? bytes).toString('utf8')) as JsonObject;
    const resourceVersion = stringAt(stored, 'metadata', 'resourceVersion');
    const revised = resourceVersion === '' ? {} : { resourceVersion };
    const metadata = { ...objectAt(shown, 'metadata'), ...revised };
    sendWritten(context, code, { ...shown, metadata }, 0);
  });
}

/** Turns what a storage says of a write that was not done into a Status. */
export function refusedWrite(served: Served, name: string, outcome: WriteOutcome): Status {
  switch (outcome.kind) {
    case 'conflict':
      return conflict(served.plural, name);
    case 'full':
      return internalError(outcome.message);
    case 'unavailable':
      return serviceUnavailable(outcome.message);
    case 'failed':
      return unclassified(outcome.message);
    case 'done':
      return internalError('a write that was done was taken for one that was not');
  }
}

/** Creates the object; `object` is the decoded body in the served version. */
export function createObject(context: WriteContext, object: JsonObject): void {
  const { call, served } = context;
  const faults = served.resource.namespaced ? checkNamespace(object, call.info.namespace) : null;
  if (faults !== null) {
    call.fail(faults);
    return;
  }
  createTry(context, object, 1);
}

function createTry(context: WriteContext, sent: JsonObject, attempt: number): void {
  const { admission, call } = context;
  prepareNew(context, sent, (prepared) => {
    if (!prepared.ok) call.fail(prepared.status);
    else {
      const { value } = prepared;
      admission.pause(context, call.body.length, () => insertTry(context, sent, value, attempt));
    }
  });
}

function insertTry(
  context: WriteContext,
  sent: JsonObject,
  { object, isGenerated, write }: Prepared,
  attempt: number,
): void {
  const { call, served, world } = context;
  const name = stringAt(object, 'metadata', 'name');
  const namespace = stringAt(object, 'metadata', 'namespace');
  if (served.resource.namespaced && call.info.namespace === '') {
    call.fail(NOWHERE);
    return;
  }
  const key = keyOf(served, namespace, name);
  // storage looks for it first, and is not asked in a dry run
  const revised = context.isDryRun ? null : (checkNewRevision(sent) ?? checkNewRevision(object));
  if (revised !== null) {
    call.fail(context.admission.excess(write) ?? revised);
    return;
  }
  if (world.storage.get(key, row)) {
    if (isGenerated && attempt < GENERATED_TRIES_MAX) createTry(context, sent, attempt + 1);
    else call.fail(nameTaken(served, name, isGenerated, context.admission.excess(write)));
    return;
  }
  const refusal = behaviourOf(served).allocate?.(object, context) ?? null;
  if (refusal !== null) {
    call.fail(refusal);
    return;
  }
  context.admission.charge(write, (excess) => {
    if (excess !== null) {
      call.fail(excess);
      return;
    }
    const stored = keptForm(served, object, storageForm(object));
    const bytes = encodeCanonical(stored);
    if (context.isDryRun) {
      // a revision is refused by the storage only, and so stays here as it was sent
      const resourceVersion = stringAt(sent, 'metadata', 'resourceVersion');
      const revised = resourceVersion === '' ? {} : { resourceVersion };
      const metadata = { ...objectAt(stored, 'metadata'), ...revised };
      sendRehearsed(context, 201, { ...stored, metadata }, name, bytes);
      return;
    }
    claimFor(context, object, null, (claim) => {
      if (claim.kind === 'taken') {
        if (attempt < CLAIM_TRIES_MAX) createTry(context, sent, attempt + 1);
        else call.fail(claim.status);
        return;
      }
      const done = (outcome: WriteOutcome): void => {
        if (outcome.kind === 'done') {
          sendWritten(context, 201, stored, outcome.revision, outcome.shown ?? bytes);
          return;
        }
        claim.undo();
        if (outcome.kind === 'conflict') createTry(context, sent, attempt + 1);
        else call.fail(refusedWrite(served, name, outcome));
      };
      world.storage.put(key, bytes, EXPECT_ABSENT, call.timed('etcd', done));
    });
  });
}

/** Quotas are asked first upstream, whether the name is free or not. */
function nameTaken(
  served: Served,
  name: string,
  isGenerated: boolean,
  excess: Status | null,
): Status {
  if (excess !== null) return excess;
  if (isGenerated) return generateNameConflict(served.plural, name);
  return alreadyExists(served.plural, name, isDeleting(decodeRow(served, row, row.modRevision)));
}

interface Prepared {
  readonly object: JsonObject;
  readonly isGenerated: boolean;
  readonly write: Admitted;
}

/** Owners that are told twice are kept once, before and after others may add to them. */
export function warnOfOwners(call: Call, object: JsonObject, isAdmitted: boolean): void {
  const warning = dedupeOwners(object, isAdmitted);
  if (warning !== '') call.warn(warning);
}

/** Everything between the decoded body and the write of a new object. */
function prepareNew(
  context: WriteContext,
  sent: JsonObject,
  done: (prepared: Result<Prepared>) => void,
): void {
  const { call, served, world } = context;
  const behaviour = behaviourOf(served);
  const base = stringAt(sent, 'metadata', 'generateName');
  const isGenerated = stringAt(sent, 'metadata', 'name') === '' && base !== '';
  const named = createMetadata(sent, {
    namespace: call.info.namespace,
    namespaced: served.resource.namespaced,
    uid: world.edge.uuid(),
    nowMs: call.nowMs,
    counted: served.counted && behaviour.counting !== 'late',
  });
  let object = assemble(sent, named);
  warnOfOwners(call, object, false);
  if (served.hasStatus && behaviour.keepsStatusAtCreate !== true) startStatus(served, object);
  behaviour.startCreate?.(object, context);
  object = withDefaults(served, object);
  trackNew(context, object, sent);
  const operation = 'CREATE';
  const write = { ...context, operation, subresource: '', previous: null, object } as const;
  const { admission } = context;
  const { metadata, status } = object;
  admission.mutate(write, (refusal) => {
    if (refusal !== null) {
      done(failed(refusal));
      return;
    }
    const startsStatus = served.hasStatus && behaviour.keepsStatusAtCreate !== true;
    const isPatched = isReplaced(object, metadata);
    if (startsStatus && isPatched) keepField(object, 'status', status);
    if (isPatched && !served.resource.namespaced) dropNamespace(object);
    // a patch that makes an object is an apply
    if (isPatched || call.exchange.method === 'PATCH') markUnpruned(object);
    warnOfOwners(call, object, true);
    if (isGenerated) nameObject(object, world, behaviour);
    dropGatedPodFields(served, object, null);
    behaviour.prepareCreate?.(object, context);
    const early = behaviour.preflight?.(object, null, context) ?? null;
    if (early !== null) {
      done(failed(early));
      return;
    }
    const judge = (): void => judgeNew(write, object, isGenerated, done);
    const steps = behaviour.judge?.(object, null);
    if (steps === undefined) judge();
    else admission.walk(write, steps, judge);
  });
}

/** The last part of it: rules, and who only looks. */
function judgeNew(
  write: Admitted & WriteContext,
  object: JsonObject,
  isGenerated: boolean,
  done: (prepared: Result<Prepared>) => void,
): void {
  const { served, call, admission } = write;
  const name = stringAt(object, 'metadata', 'name');
  const faults: FieldError[] = [];
  faults.push(...newFaults(served, object, (text) => call.warn(text)));
  // kinds whose rules say nothing of names are asked for one when all else is right
  if (name === '' && faults.length === 0) {
    faults.push(required('metadata.name', 'name or generateName is required'));
  }
  if (faults.length > 0) {
    done(failed(invalid(faultyKind(served, object), name, faults)));
    return;
  }
  const judged = (denial: Status | null): void =>
    done(denial === null ? success({ object, isGenerated, write }) : failed(denial));
  whenMayCreate(write, (denial) => {
    if (denial === null) admission.validate(write, judged);
    else judged(denial);
  });
}

/**
 * Names an object after its generateName, once mutating admission is through: until then upstream's
 * objects have no name (rest.BeforeCreate).
 */
function nameObject(object: JsonObject, world: World, { isNamedAsPrefix }: Behaviour): void {
  const { managedFields, ...rest } = objectAt(object, 'metadata') ?? {};
  const base = stringAt(rest, 'generateName');
  if (base === '' || stringAt(rest, 'name') !== '') return;
  const below = (n: number): number => world.edge.below(n);
  const name = isNamedAsPrefix === true ? base : generatedName(base, below);
  const metadata: JsonObject = { name, ...rest };
  // who owns its fields comes first at rest
  object['metadata'] = managedFields === undefined ? metadata : { managedFields, ...metadata };
}

/** A status without anything in it; custom resources have none at first. */
function startStatus(served: Served, object: JsonObject): void {
  if (served.custom !== null) {
    delete object['status'];
    return;
  }
  const shape = typeOf(served)?.field('status')?.shape;
  object['status'] = shape?.kind === 'object' ? emptyObject(shape.type) : {};
}

/**
 * True where `bytes` say what the object says that `readStored` found: the same text, or the same
 * fields in another order. It is read once more, for whatever others were read since may lie where
 * it lay.
 */
export function isStoredAs(
  storage: Storage,
  key: Buffer,
  stored: Pick<StoredObject, 'bytes' | 'revision'>,
  bytes: Buffer,
): boolean {
  if (bytes.length !== stored.bytes) return false;
  if (!storage.get(key, row) || row.modRevision !== stored.revision) return false;
  if (row.bytes.compare(bytes, 0, bytes.length, row.start, row.end) === 0) return true;
  const present = parseJson(row.bytes.toString('utf8', row.start, row.end)) as JsonObject;
  return equals(parseJson(bytes.toString('utf8')), present);
}

/** An object as it is stored. */
export interface StoredObject {
  /** In the served version. */
  readonly object: JsonObject;
  readonly revision: number;
  /** Of its text. */
  readonly bytes: number;
}

/** The stored object that a request names; null where there is none. */
export function readStored(world: World, call: Call, served: Served): StoredObject | null {
  const { namespace, name } = call.info;
  if (!world.storage.get(keyOf(served, namespace, name), row)) return null;
  const { start, end, modRevision: revision } = row;
  return { object: decodeRow(served, row, revision), revision, bytes: end - start };
}

/** The revision of what `readStored` would give, without reading it; 0 where there is none. */
export function findStored(world: World, call: Call, served: Served): number {
  const { namespace, name } = call.info;
  return world.storage.get(keyOf(served, namespace, name), row) ? row.modRevision : 0;
}
