import assert from 'node:assert/strict';
import { test } from 'node:test';
import { schedulerChecks } from './health-checks.ts';

test('the election is a matter of /healthz and /readyz, not of /livez', () => {
  const names = (isElected: boolean): string[] =>
    Object.entries(schedulerChecks(isElected, () => true)).map(
      ([page, checks]) => `${page}: ${checks.map(({ name }) => name).join(' ')}`,
    );
  assert.deepEqual(names(true), [
    'healthz: leaderElection',
    'livez: ping',
    'readyz: leaderElection shutdown sched-handler-sync',
  ]);
  assert.deepEqual(names(false), [
    'healthz: ping',
    'livez: ping',
    'readyz: shutdown sched-handler-sync',
  ]);
});
