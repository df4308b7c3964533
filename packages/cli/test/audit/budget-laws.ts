/** Budgets are kept whenever a pod is evicted, and not only by what they say of themselves. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Audit } from './auditor.ts';
import type { Sight } from './cluster-record.ts';

/** An eviction takes one from what its budget allows, and leaves what the budget wants. */
export function budgetLaws(audit: Audit, budget: Sight, before: JsonObject): void {
  const allowed = numberAt(budget.object, 'status', 'disruptionsAllowed');
  audit.check(allowed >= 0, () => `${budget.title} allows ${allowed}`);
  const [was, is] = [before, budget.object].map((one) =>
    Object.keys(objectAt(one, 'status', 'disruptedPods') ?? {}),
  );
  const evicted = (is ?? []).filter((one) => !(was ?? []).includes(one));
  if (evicted.length === 0) return;
  const had = numberAt(before, 'status', 'disruptionsAllowed');
  audit.check(
    evicted.length === 1 && had > 0 && allowed === had - 1,
    () => `${evicted.join(', ')}: ${budget.title} allowed ${had}, and then ${allowed}`,
  );
  const app = stringAt(budget.object, 'spec', 'selector', 'matchLabels', 'app');
  const owners = new Set<Sight>();
  let healthy = 0;
  for (const pod of audit.record.inNamespace(budget.namespace)) {
    if (pod.kind !== 'Pod' || pod.label('app') !== app || pod.isGoing) continue;
    const set = audit.record.withUid(pod.controller);
    const owner = set === undefined ? undefined : audit.record.withUid(set.controller);
    if (owner !== undefined) owners.add(owner);
    if (pod.wasReady(audit.sinceMs) && !evicted.includes(pod.name)) healthy++;
  }
  let wanted = 0;
  for (const owner of owners) wanted += owner.wantedLeast(audit.sinceMs);
  const least = wanted - numberAt(budget.object, 'spec', 'maxUnavailable');
  audit.check(
    healthy >= least,
    () => `${evicted.join(', ')} leaves ${healthy} of ${least} for ${budget.title}`,
  );
}

/** Who is evicted was counted by each budget of its. */
export function evictionLaw(audit: Audit, pod: Sight): void {
  if (!pod.isReady || pod.phase !== 'Running') return;
  for (const budget of audit.record.inNamespace(pod.namespace)) {
    if (budget.kind !== 'PodDisruptionBudget') continue;
    const app = stringAt(budget.object, 'spec', 'selector', 'matchLabels', 'app');
    if (app !== pod.label('app')) continue;
    const counted = objectAt(budget.object, 'status', 'disruptedPods') ?? {};
    audit.check(pod.name in counted, () => `${pod.title} is evicted past ${budget.title}`);
  }
}
