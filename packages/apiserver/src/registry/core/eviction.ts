/** pods/eviction: a deletion that disruption budgets may refuse. */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';
import {
  badRequest,
  conflict,
  failed,
  invalid,
  notFound,
  preconditionFailed,
  success,
  successStatus,
  timeout,
  unclassified,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { checkedDeleteOptions, type DeleteOptions } from '../../request/options/delete-options.ts';
import { charged, letsUnreadyGo, stillProcessed } from './disruption-budgets.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { trackOwnStatus } from '../../fieldmanager/tracking.ts';
import { removeObject } from '../../handlers/removing.ts';
import { findServed, keyOf, rangeOf, type Served } from '../../storage/served.ts';
import { defineSubresource, type SubresourceContext } from '../../handlers/subresource.ts';
import type { World } from '../../lister/world.ts';
import { readStored, refusedWrite } from '../../handlers/writing.ts';
import { timestamp } from '../../timestamp.ts';

/** Tries of a write that somebody else was faster with, as upstream's EvictionsRetry. */
const TRIES_MAX = 20;
const EVICTION = { group: 'policy', name: 'Eviction' } as const;
const MANY_BUDGETS =
  'This pod has more than one PodDisruptionBudget, which the eviction subresource ' +
  'does not support.';

/** One eviction under way. `fields` are the DeleteOptions as sent, checked when it is deleted. */
interface Eviction {
  readonly context: SubresourceContext;
  readonly fields: JsonObject;
  readonly isDryRun: boolean;
}

/** Registers the subresource. */
export function defineEviction(): void {
  defineSubresource('pods/eviction', 'create', evict);
}

function evict(context: SubresourceContext): void {
  const { call, world, served, body } = context;
  const { name } = call.info;
  if (stringAt(body, 'metadata', 'name') !== name) {
    call.fail(badRequest('name in URL does not match name in Eviction object'));
    return;
  }
  const fields = optionFields(context);
  if (!fields.ok) {
    call.fail(fields.status);
    return;
  }
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const isDryRun = listAt(fields.value, 'dryRun').length > 0;
  const eviction = { context, fields: fields.value, isDryRun };
  if (skipsBudgets(stored.object)) remove(eviction, null);
  else askBudget(eviction, stored.object, stored.revision, 1);
}

/** The DeleteOptions of the eviction; it runs dry where the request or they say so. */
function optionFields({ body, call }: SubresourceContext): Result<JsonObject> {
  const fields = objectAt(body, 'deleteOptions') ?? {};
  const option = 'ignoreStoreReadErrorWithClusterBreakingPotential';
  if (fields[option] === true) {
    const why = 'can not be set for pod eviction, try after removing the option';
    const error = invalidValue(`deleteOptions.${option}`, true, why);
    return failed(invalid(EVICTION, call.info.name, [error]));
  }
  const asked = [...call.query.all('dryRun')];
  const own = listAt(fields, 'dryRun');
  if (own.length === 0) return success(asked.length === 0 ? fields : { ...fields, dryRun: asked });
  if (asked.length === 0 || equals(asked, [...own])) return success(fields);
  const shown = own.filter((one) => typeof one === 'string').join(' ');
  const texts = `[${asked.join(' ')}] and [${shown}]`;
  return failed(unclassified(`Non-matching dry-run options in request and content: ${texts}`));
}

/** Pods that run nothing (any more) cost no budget. */
function skipsBudgets(pod: JsonObject): boolean {
  const phase = stringAt(pod, 'status', 'phase');
  if (phase === 'Succeeded' || phase === 'Failed' || phase === 'Pending') return true;
  return stringAt(pod, 'metadata', 'deletionTimestamp') !== '';
}

function askBudget(eviction: Eviction, pod: JsonObject, revision: number, attempt: number): void {
  const { call, world } = eviction.context;
  const [budget, second] = budgetsOf(world, pod);
  if (second !== undefined) {
    call.fail(unclassified(MANY_BUDGETS));
    return;
  }
  if (budget === undefined) {
    remove(eviction, null);
    return;
  }
  const name = stringAt(budget.object, 'metadata', 'name');
  if (!isReady(pod) && letsUnreadyGo(budget.object)) {
    remove(eviction, { revision, budget: name });
    return;
  }
  const after = charged(budget.object, stringAt(pod, 'metadata', 'name'), call.nowMs);
  if ('refusal' in after) {
    call.fail(after.refusal);
    return;
  }
  if (eviction.isDryRun) {
    remove(eviction, null);
    return;
  }
  trackOwnStatus(budget.served, budget.object, after.budget, call.nowMs);
  const key = keyOf(budget.served, stringAt(pod, 'metadata', 'namespace'), name);
  world.storage.put(key, encodeCanonical(after.budget), budget.revision, (outcome) => {
    if (outcome.kind === 'done') remove(eviction, null);
    else if (outcome.kind !== 'conflict') call.fail(refusedWrite(budget.served, name, outcome));
    else if (attempt < TRIES_MAX) askBudget(eviction, pod, revision, attempt + 1);
    else call.fail(timeout(`couldn't update PodDisruptionBudget "${name}" due to conflicts`));
  });
}

interface Budget {
  readonly served: Served;
  readonly object: JsonObject;
  readonly revision: number;
}

function budgetsOf(world: World, pod: JsonObject): Budget[] {
  const served = findServed('policy', 'v1', 'poddisruptionbudgets');
  if (served === undefined) return [];
  const { start, end } = rangeOf(served, stringAt(pod, 'metadata', 'namespace'));
  const labels = objectAt(pod, 'metadata', 'labels');
  const found: Budget[] = [];
  world.storage.page(start, end, 0, (row) => {
    const revision = row.modRevision;
    const object = decodeRow(served, row, revision);
    const selector = labelSelectorOf(objectAt(object, 'spec', 'selector'));
    if (!('error' in selector) && matchesLabels(selector.value, labels)) {
      found.push({ served, object, revision });
    }
    return true;
  });
  return found;
}

function isReady(pod: JsonObject): boolean {
  return listAt(pod, 'status', 'conditions').some(
    (one) => stringAt(one, 'type') === 'Ready' && stringAt(one, 'status') === 'True',
  );
}

/** Says in the pod why it goes, and deletes it. `held` is the pod that must not have changed. */
function remove(eviction: Eviction, held: Held | null): void {
  const { call } = eviction.context;
  const wanted = wantedState(eviction.fields);
  const isOwn = held !== null && wanted.resourceVersion === null;
  const state = isOwn ? { ...wanted, resourceVersion: String(held.revision) } : wanted;
  const settle = (result: Result<true>): void => {
    if (result.ok) call.sendObject(201, successStatus(201) as unknown as JsonObject);
    else if (isOwn && result.status.reason === 'Conflict') call.fail(stillProcessed(held.budget));
    else call.fail(result.status);
  };
  if (eviction.isDryRun) {
    removeChecked(eviction, state, settle);
    return;
  }
  markDisrupted(eviction, state, 1, (result) => {
    if (!result.ok) settle(result);
    else removeChecked(eviction, { ...state, ...result.value }, settle);
  });
}

interface Held {
  readonly revision: number;
  readonly budget: string;
}

/** The state that the pod must be in, null where it does not matter. */
type WantedState = Pick<DeleteOptions, 'uid' | 'resourceVersion'>;

function wantedState(fields: JsonObject): WantedState {
  const text = (value: JsonValue | undefined): string | null =>
    typeof value === 'string' ? value : null;
  const preconditions = objectAt(fields, 'preconditions');
  return {
    uid: text(preconditions?.['uid']),
    resourceVersion: text(preconditions?.['resourceVersion']),
  };
}

function removeChecked(
  eviction: Eviction,
  state: WantedState,
  settle: (result: Result<true>) => void,
): void {
  const checked = checkedDeleteOptions(eviction.fields);
  if (!checked.ok) {
    settle(checked);
    return;
  }
  const { context, isDryRun } = eviction;
  removeObject({ ...context, isDryRun }, { ...checked.value, ...state }, settle);
}

/** The condition that tells controllers why the pod goes; then the state it is left in. */
function markDisrupted(
  eviction: Eviction,
  state: WantedState,
  attempt: number,
  then: (result: Result<Partial<WantedState>>) => void,
): void {
  const { world, served, call } = eviction.context;
  const { namespace, name } = call.info;
  const stored = readStored(world, call, served);
  if (stored === null) {
    then(failed(notFound(served.plural, name)));
    return;
  }
  const broken = brokenState(eviction.context, stored.object, stored.revision, state);
  if (broken !== null) {
    then(failed(broken));
    return;
  }
  const marked = withDisruption(stored.object, call.nowMs);
  if (equals(marked, stored.object)) {
    then(success({}));
    return;
  }
  const key = keyOf(served, namespace, name);
  world.storage.put(key, encodeCanonical(marked), stored.revision, (outcome) => {
    if (outcome.kind === 'done') {
      const isHeld = state.resourceVersion !== null;
      then(success(isHeld ? { resourceVersion: String(outcome.revision) } : {}));
    } else if (outcome.kind !== 'conflict') {
      then(failed(refusedWrite(served, name, outcome)));
    } else if (attempt < TRIES_MAX) markDisrupted(eviction, state, attempt + 1, then);
    else then(failed(conflict(served.plural, name)));
  });
}

function brokenState(
  { served, call }: SubresourceContext,
  pod: JsonObject,
  revision: number,
  state: WantedState,
): Status | null {
  const { name } = call.info;
  const found = { uid: stringAt(pod, 'metadata', 'uid'), resourceVersion: String(revision) };
  for (const which of ['uid', 'resourceVersion'] as const) {
    const wanted = state[which];
    if (wanted === null || wanted === '' || wanted === found[which]) continue;
    const word = which === 'uid' ? 'UID' : 'ResourceVersion';
    return preconditionFailed(served.kind, name, word, wanted, found[which]);
  }
  return null;
}

/** The pod with the condition in the place of an older one; its time is that of its status. */
function withDisruption(pod: JsonObject, nowMs: number): JsonObject {
  const conditions = [...listAt(pod, 'status', 'conditions')];
  const index = conditions.findIndex((one) => stringAt(one, 'type') === 'DisruptionTarget');
  const before = conditions[index];
  const isSame = stringAt(before, 'status') === 'True';
  const condition: JsonObject = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: isSame ? stringAt(before, 'lastTransitionTime') : timestamp(nowMs),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  if (index < 0) conditions.push(condition);
  else conditions[index] = isObject(before) ? { ...before, ...condition } : condition;
  return { ...pod, status: { ...objectAt(pod, 'status'), conditions } };
}
