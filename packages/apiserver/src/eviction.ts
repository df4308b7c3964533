/** pods/eviction: a deletion that disruption budgets may refuse. */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';
import {
  badRequest,
  notFound,
  successStatus,
  tooManyRequests,
  unclassified,
  type Status,
} from '@megaplane/machinery/status';
import type { DeleteOptions } from './deletion.ts';
import { timestamp } from './deletion.ts';
import { decodeRow } from './encoder.ts';
import { removeObject } from './removing.ts';
import { findServed, keyOf, rangeOf } from './served.ts';
import { defineSubresource, type SubresourceContext } from './subresource.ts';
import type { World } from './world.ts';
import { readStored, refusedWrite } from './writing.ts';

const REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget.";
/** Evicted pods that a budget remembers while they go. */
const DISRUPTED_MAX = 2000;

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
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const options = optionsOf(body, context.isDryRun);
  const refusal = skipsBudgets(stored.object)
    ? null
    : charge(world, stored.object, options, call.nowMs);
  if (refusal !== null) {
    call.fail(refusal);
    return;
  }
  if (!options.dryRun) markDisrupted(context, stored.object, stored.revision);
  removeObject({ ...context, isDryRun: options.dryRun }, options, (result) => {
    if (result.ok) call.sendObject(201, successStatus(201) as unknown as JsonObject);
    else call.fail(result.status);
  });
}

function optionsOf(body: JsonObject, isDryRun: boolean): DeleteOptions {
  const sent = objectAt(body, 'deleteOptions') ?? {};
  const grace = sent['gracePeriodSeconds'];
  const policy = stringAt(sent, 'propagationPolicy');
  const preconditions = objectAt(sent, 'preconditions');
  const uid = preconditions?.['uid'];
  const resourceVersion = preconditions?.['resourceVersion'];
  return {
    gracePeriodSeconds: typeof grace === 'number' ? grace : null,
    uid: typeof uid === 'string' ? uid : null,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : null,
    orphanDependents: null,
    propagationPolicy: policy as DeleteOptions['propagationPolicy'],
    dryRun: isDryRun || listAt(sent, 'dryRun').length > 0,
  };
}

/** Pods that run nothing (any more) cost no budget. */
function skipsBudgets(pod: JsonObject): boolean {
  const phase = stringAt(pod, 'status', 'phase');
  if (phase === 'Succeeded' || phase === 'Failed' || phase === 'Pending') return true;
  return stringAt(pod, 'metadata', 'deletionTimestamp') !== '';
}

function charge(
  world: World,
  pod: JsonObject,
  options: DeleteOptions,
  nowMs: number,
): Status | null {
  const budgets = budgetsOf(world, pod);
  const [budget, second] = budgets;
  if (budget === undefined) return null;
  if (second !== undefined) {
    return unclassified(
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does ' +
        'not support.',
    );
  }
  const { object, revision } = budget;
  const name = stringAt(object, 'metadata', 'name');
  const refuse = (message: string, retry: number): Status =>
    tooManyRequests(REFUSAL, retry, [{ reason: 'DisruptionBudget', message }]);
  const observed = numberAt(object, 'status', 'observedGeneration');
  if (observed < numberAt(object, 'metadata', 'generation')) {
    return refuse(`The disruption budget ${name} is still being processed by the server.`, 10);
  }
  const healthy = numberAt(object, 'status', 'currentHealthy');
  const desired = numberAt(object, 'status', 'desiredHealthy');
  if (!isReady(pod)) {
    const policy = stringAt(object, 'spec', 'unhealthyPodEvictionPolicy');
    if (policy === 'AlwaysAllow' || (healthy >= desired && desired > 0)) return null;
  }
  const allowed = numberAt(object, 'status', 'disruptionsAllowed');
  const disrupted = { ...objectAt(object, 'status', 'disruptedPods') };
  if (Object.keys(disrupted).length > DISRUPTED_MAX) {
    return refuse(
      `DisruptedPods map too big - too many evictions not confirmed by PDB controller`,
      0,
    );
  }
  if (allowed <= 0) {
    const text =
      `The disruption budget ${name} needs ${desired} healthy pods ` +
      `and has ${healthy} currently`;
    return refuse(text, 0);
  }
  if (options.dryRun) return null;
  disrupted[stringAt(pod, 'metadata', 'name')] = timestamp(nowMs);
  const status = {
    ...objectAt(object, 'status'),
    disruptionsAllowed: allowed - 1,
    disruptedPods: disrupted,
  };
  let refusal: Status | null = null;
  const key = keyOf(budget.served, stringAt(object, 'metadata', 'namespace'), name);
  world.storage.put(key, encodeCanonical({ ...object, status }), revision, (outcome) => {
    if (outcome.kind !== 'done') refusal = refusedWrite(budget.served, name, outcome);
  });
  return refusal;
}

interface Budget {
  readonly served: NonNullable<ReturnType<typeof findServed>>;
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

/** The condition that tells controllers why the pod goes. */
function markDisrupted(context: SubresourceContext, pod: JsonObject, revision: number): void {
  const { world, served, call } = context;
  const others = listAt(pod, 'status', 'conditions').filter(
    (one) => stringAt(one, 'type') !== 'DisruptionTarget',
  );
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timestamp(call.nowMs),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const status = { ...objectAt(pod, 'status'), conditions: [...others, condition] };
  const key = keyOf(served, call.info.namespace, call.info.name);
  world.storage.put(key, encodeCanonical({ ...pod, status }), revision, () => {
    // somebody was faster: the deletion that follows reads the object anew
  });
}
