/** DELETE of one object. */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  conflict,
  deletedStatus,
  failed,
  httpCode,
  notFound,
  preconditionFailed,
  success,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { behaviourOf, PLAIN_DELETION } from '../registry/rest/behaviour.ts';
import { keptForm } from '../apiextensions/schema/custom-objects.ts';
import { shownOptions, type DeleteOptions } from '../request/options/delete-options.ts';
import { decideDeletion, type Deletion } from '../registry/rest/deletion.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { keyOf } from '../storage/served.ts';
import { emptyRow, type WriteOutcome } from '../storage/storage.ts';
import { refusedWrite, sendWritten, type WriteContext } from './writing.ts';
import type { Admitted } from '../registry/rest/admitted.ts';
import type { Admit } from '../admission/admission-plugin.ts';

const DELETE_TRIES_MAX = 5;

const row = emptyRow();

/** How one deletion ended. `object` is the last state, `revision` the one to show it at. */
interface Removed {
  readonly object: JsonObject;
  readonly revision: number;
  readonly isGone: boolean;
  /** Nothing was written: the object is on its way already. */
  readonly isPending: boolean;
}

type RemoveDone = (result: Result<Removed>) => void;

/** Answers DELETE of one object. */
export function deleteObject(context: WriteContext, options: DeleteOptions): void {
  const { call, served } = context;
  const { namespace, name } = call.info;
  warnOfDefault(context, options);
  removeOne(context, namespace, name, options, (result) => {
    if (!result.ok) {
      call.fail(result.status);
      return;
    }
    const { object, revision, isGone, isPending } = result.value;
    const showsObject = behaviourOf(served).returnsDeleted === true;
    if (showsObject || (!isGone && !isPending)) {
      // whoever asks that dependents go first learns that it is not over yet
      const code = !isGone && options.orphanDependents === false ? 202 : 200;
      sendWritten(context, code, keptForm(served, object), revision);
      return;
    }
    const uid = stringAt(object, 'metadata', 'uid');
    const status = deletedStatus(served.plural, name, uid);
    call.media = { ...call.media, transform: 'none' };
    call.sendObject(httpCode(status), status as unknown as JsonObject);
  });
}

/** Some kinds leave their dependents where nothing is said of them, which not everybody expects. */
export function warnOfDefault({ call, served }: WriteContext, options: DeleteOptions): void {
  const warning = behaviourOf(served).deleteWarning ?? '';
  const isDefault = options.propagationPolicy === '' && options.orphanDependents === null;
  if (warning !== '' && isDefault) call.warn(warning);
}

/** Deletes the object that the request names and reports instead of answering. */
export function removeObject(
  context: WriteContext,
  options: DeleteOptions,
  done: (result: Result<true>) => void,
): void {
  const { namespace, name } = context.call.info;
  removeOne(context, namespace, name, options, (result) => {
    done(result.ok ? success(true) : result);
  });
}

/** `judged` is told when admission has looked at it, or has nothing to look at. */
export function removeOne(
  context: WriteContext,
  namespace: string,
  name: string,
  options: DeleteOptions,
  done: RemoveDone,
  judged: () => void = () => {},
  attempt = 1,
): void {
  const { served, world } = context;
  const key = keyOf(served, namespace, name);
  if (!world.storage.get(key, row)) {
    done(failed(notFound(served.plural, name)));
    return;
  }
  const revision = row.modRevision;
  const bytes = row.end - row.start;
  const object = decodeRow(served, row, revision);
  const retry = (): void => {
    if (attempt >= DELETE_TRIES_MAX) done(failed(conflict(served.plural, name)));
    else removeOne(context, namespace, name, options, done, judged, attempt + 1);
  };
  admitDeletion(context, object, name, revision, options, (refusal) => {
    judged();
    if (refusal !== null) {
      done(failed(refusal));
      return;
    }
    context.admission.pause(context, bytes, () => {
      removeAdmitted(context, object, key, revision, options, done, retry);
    });
  });
}

function removeAdmitted(
  context: WriteContext,
  object: JsonObject,
  key: Buffer,
  revision: number,
  options: DeleteOptions,
  done: RemoveDone,
  retry: () => void,
): void {
  const { served, call } = context;
  const behaviour = behaviourOf(served);
  const rules = behaviour.deletion ?? PLAIN_DELETION;
  const decision =
    behaviour.terminate === undefined
      ? decideDeletion(object, options, rules, call.nowMs)
      : termination(object, behaviour.terminate(object, options, call.nowMs));
  if (decision.kind === 'pending') {
    done(success({ object, revision, isGone: false, isPending: true }));
    return;
  }
  if (context.isDryRun) {
    const isGone = decision.kind === 'remove';
    done(success({ object: decision.object, revision, isGone, isPending: false }));
    return;
  }
  if (decision.kind === 'mark') markOne(context, key, revision, object, decision, done, retry);
  else takeOne(context, key, revision, decision, options, done, retry);
}

function termination(object: JsonObject, staying: JsonObject | null): Deletion {
  if (staying === null) return { kind: 'remove', object, isStored: false };
  return { kind: 'mark', object: staying };
}

function admitDeletion(
  context: WriteContext,
  object: JsonObject,
  name: string,
  revision: number,
  options: DeleteOptions,
  then: Admit,
): void {
  const { served, admission } = context;
  const broken = brokenPrecondition(served, object, name, revision, options);
  if (broken !== null) {
    then(broken);
    return;
  }
  const own = behaviourOf(served).admitDelete?.(object, context) ?? null;
  if (own !== null) {
    then(own);
    return;
  }
  // an eviction was admitted as such
  if (context.call.info.subresource !== '') {
    then(null);
    return;
  }
  admission.admit(deletionOf(context, object, options), then);
}

/** Namespaces, whose deletion is code of their own upstream, say it in other words. */
function brokenPrecondition(
  served: WriteContext['served'],
  object: JsonObject,
  name: string,
  revision: number,
  options: DeleteOptions,
): Status | null {
  const isOwn = behaviourOf(served).terminate !== undefined;
  const found = { UID: stringAt(object, 'metadata', 'uid'), ResourceVersion: String(revision) };
  const wanted = { UID: options.uid, ResourceVersion: options.resourceVersion };
  for (const which of ['UID', 'ResourceVersion'] as const) {
    const text = wanted[which];
    if (text === null || text === found[which]) continue;
    if (!isOwn) return preconditionFailed(served.kind, name, which, text, found[which]);
    const pair = `${which} in precondition: ${text}, ${which} in object meta: ${found[which]}`;
    return conflict(served.plural, name, `Precondition failed: ${pair}`);
  }
  return null;
}

function markOne(
  context: WriteContext,
  key: Buffer,
  revision: number,
  previous: JsonObject,
  decision: Deletion & { readonly kind: 'mark' },
  done: RemoveDone,
  retry: () => void,
): void {
  const { object } = decision;
  if (object === previous) {
    done(success({ object, revision, isGone: false, isPending: false }));
    return;
  }
  putMarked(context, key, revision, object, done, retry, (marked) => {
    done(success({ object, revision: marked, isGone: false, isPending: false }));
  });
}

/** Stores an object that is on its way out; `onStored` gets its revision. */
function putMarked(
  context: WriteContext,
  key: Buffer,
  revision: number,
  object: JsonObject,
  done: RemoveDone,
  retry: () => void,
  onStored: (revision: number) => void,
): void {
  const { served, world } = context;
  world.storage.put(
    key,
    encodeCanonical(keptForm(served, object)),
    revision,
    context.call.timed('etcd', (outcome: WriteOutcome) => {
      if (outcome.kind === 'conflict') retry();
      else if (outcome.kind === 'done') onStored(outcome.revision);
      else done(failed(refusedWrite(served, key.toString(), outcome)));
    }),
  );
}

function takeOne(
  context: WriteContext,
  key: Buffer,
  revision: number,
  decision: Deletion & { readonly kind: 'remove' },
  options: DeleteOptions,
  done: RemoveDone,
  retry: () => void,
): void {
  const { served, world } = context;
  const { object } = decision;
  const take = (expected: number): void => {
    world.storage.delete(
      key,
      expected,
      context.call.timed('etcd', (outcome: WriteOutcome) => {
        if (outcome.kind === 'conflict') retry();
        else if (outcome.kind === 'done') {
          behaviourOf(served).release?.(object, world);
          done(success({ object, revision: outcome.revision, isGone: true, isPending: false }));
        } else {
          done(failed(refusedWrite(served, key.toString(), outcome)));
        }
      }),
    );
  };
  if (!decision.isStored) {
    take(revision);
    return;
  }
  // watchers of graceful kinds see the mark before the end
  putMarked(context, key, revision, object, done, retry, (marked) => {
    askAgain(context, object, options, (refusal) => {
      if (refusal === null) take(marked);
      else done(failed(refusal));
    });
  });
}

/** What is marked and then taken in one request is asked about twice, by its second state too. */
function askAgain(
  context: WriteContext,
  object: JsonObject,
  options: DeleteOptions,
  then: Admit,
): void {
  if (context.call.info.subresource !== '') then(null);
  else context.admission.admit(deletionOf(context, object, options), then);
}

function deletionOf(context: WriteContext, previous: JsonObject, options: DeleteOptions): Admitted {
  return {
    ...context,
    operation: 'DELETE',
    subresource: '',
    object: null,
    previous,
    deleteOptions: shownOptions(options),
  };
}
