/** What `/healthz`, `/livez` and `/readyz` of the scheduler look at. */
import type { HealthCheck, HealthChecks } from '@megaplane/client/health-pages';

/** What kube-scheduler looks at. */
export function schedulerChecks(isElected: boolean, isSynced: () => boolean): HealthChecks {
  const fine = (name: string): HealthCheck => ({ name, problem: () => '' });
  const synced: HealthCheck = {
    name: 'sched-handler-sync',
    problem: () => (isSynced() ? '' : 'handlers are not fully synchronized'),
  };
  const ping = fine('ping');
  // A lease that is lost ends the program, so that no check can see it.
  const election = isElected ? [fine('leaderElection')] : [];
  const healthz = isElected ? election : [ping];
  return { healthz, livez: [ping], readyz: [...election, fine('shutdown'), synced] };
}
