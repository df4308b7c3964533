/** What a PodDisruptionBudget says to one more eviction. Pure: the caller reads and writes. */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { forbidden, tooManyRequests, type Status } from '@megaplane/machinery/status';
import { timestamp } from '../../timestamp.ts';

const REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget.";
/** Evicted pods that a budget remembers while they go. */
const DISRUPTED_MAX = 2000;
const BUDGET = { group: 'policy', name: 'poddisruptionbudget' } as const;
const CONDITION = 'DisruptionAllowed';

/** The budget's controller has to look first, or a write was in the way. */
export function stillProcessed(name: string): Status {
  return refusal(`The disruption budget ${name} is still being processed by the server.`, 10);
}

function refusal(message: string, retryAfterSeconds: number): Status {
  return tooManyRequests(REFUSAL, retryAfterSeconds, [{ reason: 'DisruptionBudget', message }]);
}

/** Whether a pod that is not ready may go whatever the budget allows. */
export function letsUnreadyGo(budget: JsonObject): boolean {
  if (stringAt(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow') return true;
  const desired = numberAt(budget, 'status', 'desiredHealthy');
  return desired > 0 && numberAt(budget, 'status', 'currentHealthy') >= desired;
}

/** The budget after one more eviction, or why it does not allow it. */
export function charged(
  budget: JsonObject,
  podName: string,
  nowMs: number,
): { readonly refusal: Status } | { readonly budget: JsonObject } {
  const name = stringAt(budget, 'metadata', 'name');
  const observed = numberAt(budget, 'status', 'observedGeneration');
  if (observed < numberAt(budget, 'metadata', 'generation')) {
    return { refusal: stillProcessed(name) };
  }
  const allowed = numberAt(budget, 'status', 'disruptionsAllowed');
  if (allowed < 0) {
    return { refusal: forbidden(BUDGET, name, 'pdb disruptions allowed is negative') };
  }
  const disrupted = objectAt(budget, 'status', 'disruptedPods') ?? {};
  if (Object.keys(disrupted).length > DISRUPTED_MAX) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    return { refusal: forbidden(BUDGET, name, why) };
  }
  if (allowed === 0) return { refusal: refusal(exhausted(budget, name), 0) };
  const status: JsonObject = {
    ...objectAt(budget, 'status'),
    disruptionsAllowed: allowed - 1,
    disruptedPods: { ...disrupted, [podName]: timestamp(nowMs) },
  };
  if (allowed === 1) status['conditions'] = withExhaustion(budget, nowMs);
  return { budget: { ...budget, status } };
}

/** Upstream's words, by what is known of the reason. */
function exhausted(budget: JsonObject, name: string): string {
  const condition = listAt(budget, 'status', 'conditions').find(isAllowance);
  const message = stringAt(condition, 'status') === 'False' ? stringAt(condition, 'message') : '';
  const reason = stringAt(condition, 'reason');
  const head = `The disruption budget ${name}`;
  if (message !== '' && reason === 'SyncFailed') {
    return `${head} does not allow evicting pods currently because it failed sync: ${message}`;
  }
  const healthy = numberAt(budget, 'status', 'currentHealthy');
  const desired = numberAt(budget, 'status', 'desiredHealthy');
  if (healthy <= desired) {
    return `${head} needs ${desired} healthy pods and has ${healthy} currently`;
  }
  const plain = `${head} does not allow evicting pods currently`;
  return message === '' ? plain : `${plain} (${reason}): ${message}`;
}

function isAllowance(condition: JsonValue): boolean {
  return stringAt(condition, 'type') === CONDITION;
}

/** The conditions of a budget whose last disruption was just given away. */
function withExhaustion(budget: JsonObject, nowMs: number): JsonValue[] {
  const conditions = [...listAt(budget, 'status', 'conditions')];
  const index = conditions.findIndex(isAllowance);
  const before = conditions[index];
  const isSame = stringAt(before, 'status') === 'False';
  const next: JsonObject = {
    ...(isObject(before) ? before : {}),
    type: CONDITION,
    status: 'False',
    observedGeneration: numberAt(budget, 'status', 'observedGeneration'),
    lastTransitionTime: isSame ? stringAt(before, 'lastTransitionTime') : timestamp(nowMs),
    reason: 'InsufficientPods',
    message: '',
  };
  if (index < 0) conditions.push(next);
  else conditions[index] = next;
  return conditions;
}
