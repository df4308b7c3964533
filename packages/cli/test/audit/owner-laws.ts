/** What rollouts and Jobs never do on their way. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Audit } from './auditor.ts';
import type { Sight } from './cluster-record.ts';

/** All sets of a Deployment together want no more than its strategy allows. */
export function replicaSetLaws(audit: Audit, set: Sight, was: JsonObject | undefined): void {
  const [wanted, wantedBefore] = [set.object, was].map((one) => numberAt(one, 'spec', 'replicas'));
  if ((wanted ?? 0) <= (wantedBefore ?? 0)) return;
  const deployment = audit.record.withUid(set.controller);
  if (deployment?.kind !== 'Deployment' || deployment.isGoing || set.isGoing) return;
  let total = 0;
  for (const one of audit.record.ownedBy(deployment.uid)) {
    if (!one.isGoing) total += one.wanted.at(-1)?.count ?? 0;
  }
  const strategy = objectAt(deployment.object, 'spec', 'strategy', 'rollingUpdate');
  const most = deployment.wantedMost(audit.sinceMs) + numberAt(strategy, 'maxSurge');
  audit.check(
    total <= most,
    () => `${total} pods are wanted for ${deployment.title}, ${most} may be: ${set.name}`,
  );
}

const COUNTERS = ['succeeded', 'failed'] as const;

export function jobLaws(audit: Audit, job: Sight, before: JsonObject): void {
  for (const counter of COUNTERS) {
    const [was, is] = [before, job.object].map((one) => numberAt(one, 'status', counter));
    audit.check((is ?? 0) >= (was ?? 0), () => `${job.title}: ${counter} goes back to ${is}`);
  }
  const isOver = (one: JsonObject): boolean =>
    listAt(one, 'status', 'conditions').some(
      (condition) =>
        ['Complete', 'Failed'].includes(stringAt(condition, 'type')) &&
        stringAt(condition, 'status') === 'True',
    );
  if (isOver(before) || !isOver(job.object)) return;
  const { object } = job;
  const uncounted = COUNTERS.flatMap((one) =>
    listAt(object, 'status', 'uncountedTerminatedPods', one),
  );
  audit.check(uncounted.length === 0, () => `${job.title} ends with pods that are not counted`);
  if (!job.is('Complete') || objectAt(object, 'spec', 'successPolicy') !== undefined) return;
  const [done, wanted] = [
    numberAt(object, 'status', 'succeeded'),
    numberAt(object, 'spec', 'completions'),
  ];
  audit.check(done === wanted, () => `${job.title} is complete with ${done} of ${wanted}`);
}
