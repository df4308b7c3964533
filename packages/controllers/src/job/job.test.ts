import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import fc from 'fast-check';
import { formatIndexes, parseIndexes } from '../columns/index-set.ts';
import { isFinished, planJob, type JobPod } from './job.ts';
import type { JobBackoff } from './job-backoff.ts';
import { judgeFailure, metSuccessRule } from './job-policy.ts';

const START_MS: number = Date.UTC(2026, 0, 1);

function jobOf(spec: JsonObject): JsonObject {
  const template = { spec: { restartPolicy: 'Never' } };
  const all = { parallelism: 1, completions: 1, backoffLimit: 6, template, ...spec };
  return { metadata: { name: 'j', namespace: 'default', generation: 1 }, spec: all };
}

/** Carries plans out as a server and kubelets would, with time of its own. */
class Cluster {
  readonly pods: Map<string, JobPod> = new Map();
  readonly events: string[] = [];
  readonly backoff: JobBackoff = { failures: 0, lastFailureMs: 0 };
  job: JsonObject;
  nowMs: number = START_MS;
  made = 0;

  constructor(spec: JsonObject) {
    this.job = jobOf(spec);
  }

  set(name: string, change: Partial<JobPod>): void {
    const pod = this.pods.get(name);
    if (pod !== undefined) this.pods.set(name, { ...pod, ...change });
  }

  /** One round; with `isCut` only the status is written before the controller dies. */
  round(isCut = false): number {
    if (isFinished(this.job)) return Infinity;
    const plan = planJob(this.job, [...this.pods.values()], this.backoff, this.nowMs);
    this.job = { ...this.job, status: plan.status };
    const [active, ready] = [numberAt(plan.status, 'active'), numberAt(plan.status, 'ready')];
    assert.ok(ready <= active, `${ready} pods are ready of ${active} that are active`);
    this.events.push(...plan.events.map((event) => `${event.reason}: ${event.message}`));
    if (isCut) return 0;
    for (const name of [...plan.untrack, ...plan.drop]) this.set(name, { isTracked: false });
    for (const name of [...plan.drop, ...plan.fail]) this.set(name, { isDeleting: true });
    for (const made of plan.create) {
      const name = `p${this.made++}`;
      const uid = `uid-${name}`;
      const fresh = { phase: 'active', isDeleting: false, isReady: true, isTracked: true } as const;
      const createdS = this.nowMs / 1000;
      const bound = { isBound: true, isRunning: true, readyS: createdS, createdS };
      this.pods.set(name, {
        name,
        uid,
        ...made,
        restarts: 0,
        endedS: createdS,
        ...fresh,
        ...bound,
      });
    }
    for (const [name, pod] of this.pods) {
      if (pod.isDeleting && !pod.isTracked) this.pods.delete(name);
    }
    return plan.againMs;
  }

  /** Rounds until nothing happens; ends pods as `end` says; lets back-offs pass. */
  run(end: (pod: JobPod) => JobPod['phase'], isCut: () => boolean = () => false): void {
    for (let i = 0; i < 500 && !isFinished(this.job); i++) {
      const againMs = this.round(isCut());
      for (const pod of this.pods.values()) {
        if (pod.phase !== 'active') continue;
        const phase = pod.isDeleting ? 'failed' : end(pod);
        const endedS = phase === 'active' ? pod.endedS : this.nowMs / 1000;
        this.set(pod.name, { phase, endedS });
      }
      this.nowMs += againMs === Infinity ? 1_000 : Math.max(1_000, againMs);
    }
  }

  reason(type: string): string {
    const found = listAt(this.job, 'status', 'conditions').find(
      (one) => stringAt(one, 'type') === type && stringAt(one, 'status') === 'True',
    );
    return stringAt(found, 'reason');
  }
}

test('sets of indexes are written as ranges and read back', () => {
  assert.equal(formatIndexes(new Set([4, 0, 2, 3, 7])), '0,2-4,7');
  assert.equal(formatIndexes(new Set([0, 1])), '0,1');
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat({ max: 60 })), (indexes) => {
      const set = new Set(indexes);
      assert.deepEqual(
        parseIndexes(formatIndexes(set), 100),
        new Set(indexes.toSorted((a, b) => a - b)),
      );
    }),
  );
});

test('every completion counts once, whatever fails and wherever the controller dies', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 9 }),
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      fc.infiniteStream(fc.nat({ max: 9 })),
      (completions, parallelism, isIndexed, stream) => {
        const draw = (): number => stream.next().value as number;
        const mode = isIndexed ? 'Indexed' : 'NonIndexed';
        const spec = { completions, parallelism, completionMode: mode, backoffLimit: 10_000 };
        const cluster = new Cluster(spec);
        let failures = 0;
        cluster.run(
          () => {
            const chance = draw();
            if (chance < 2) failures++;
            return chance < 2 ? 'failed' : chance < 6 ? 'succeeded' : 'active';
          },
          () => draw() < 3,
        );
        assert.equal(cluster.reason('Complete'), 'CompletionsReached');
        const status = objectAt(cluster.job, 'status');
        assert.equal(numberAt(status, 'succeeded'), completions);
        assert(numberAt(status, 'failed') >= failures - parallelism);
        assert.deepEqual(objectAt(status, 'uncountedTerminatedPods'), {});
        assert.equal([...cluster.pods.values()].filter((pod) => pod.isTracked).length, 0);
        const running = [...cluster.pods.values()].filter((pod) => pod.phase === 'active');
        assert.equal(running.length, 0);
        if (isIndexed && completions > 0) {
          const indexes = parseIndexes(stringAt(status, 'completedIndexes'), completions);
          assert.equal(indexes.size, completions);
        }
        assert.deepEqual(cluster.events, ['Completed: Job completed']);
      },
    ),
    { numRuns: 100 },
  );
});

test('pods are made again after 10 s, 20 s, 40 s, until the limit is exceeded', () => {
  const cluster = new Cluster({ backoffLimit: 3 });
  const made: number[] = [];
  cluster.run((pod) => {
    if (made.length < cluster.made) made.push((cluster.nowMs - START_MS) / 1000);
    return pod.phase === 'active' ? 'failed' : pod.phase;
  });
  assert.equal(cluster.reason('Failed'), 'BackoffLimitExceeded');
  const gaps = made.slice(1).map((at, i) => at - (made[i] ?? 0));
  assert.deepEqual(gaps, [10, 20, 40]);
  assert.equal(numberAt(cluster.job, 'status', 'failed'), 4);
});

test('a suspended Job gives its pods up without counting them, and goes on later', () => {
  const cluster = new Cluster({ parallelism: 2, completions: 2 });
  cluster.round();
  assert.equal(cluster.pods.size, 2);
  const spec = objectAt(cluster.job, 'spec');
  cluster.job = { ...cluster.job, spec: { ...spec, suspend: true } };
  cluster.round();
  cluster.round();
  assert.equal(cluster.pods.size, 0);
  assert.equal(cluster.reason('Suspended'), 'JobSuspended');
  cluster.job = { ...cluster.job, spec: { ...spec } };
  cluster.run(() => 'succeeded');
  assert.equal(cluster.reason('Complete'), 'CompletionsReached');
  assert.equal(numberAt(cluster.job, 'status', 'failed'), 0);
  const told = ['Suspended: Job suspended', 'Resumed: Job resumed', 'Completed: Job completed'];
  assert.deepEqual(cluster.events, told);
});

test('a Job on its way out holds no pod, and counts none that runs as failed', () => {
  for (const podReplacementPolicy of ['TerminatingOrFailed', 'Failed']) {
    const cluster = new Cluster({ parallelism: 3, completions: 3, podReplacementPolicy });
    cluster.round();
    cluster.set('p1', { phase: 'failed' });
    if (podReplacementPolicy === 'Failed') cluster.set('p2', { isDeleting: true });
    const metadata = { ...objectAt(cluster.job, 'metadata'), deletionTimestamp: 'now' };
    cluster.job = { ...cluster.job, metadata };
    cluster.round();
    cluster.round();
    assert([...cluster.pods.values()].every((pod) => !pod.isTracked || pod.name > 'p2'));
    assert.equal(numberAt(cluster.job, 'status', 'failed'), 1);
    const running = podReplacementPolicy === 'Failed' ? 1 : 2;
    assert.equal(numberAt(cluster.job, 'status', 'active'), running, 'none is made anew');
  }
});

test('a Job that was held for longer than its deadline starts anew', () => {
  const cluster = new Cluster({ parallelism: 1, completions: 1, activeDeadlineSeconds: 5 });
  cluster.round();
  const spec = objectAt(cluster.job, 'spec');
  cluster.job = { ...cluster.job, spec: { ...spec, suspend: true } };
  cluster.round();
  cluster.nowMs += 60_000;
  cluster.job = { ...cluster.job, spec: { ...spec } };
  assert.equal(cluster.round(), 5_000);
  assert.equal(numberAt(cluster.job, 'status', 'active'), 1);
  cluster.run(() => 'active');
  assert.equal(cluster.reason('Failed'), 'DeadlineExceeded');
});

test('a policy judges a failed pod by its first rule that matches', () => {
  const job = {
    spec: {
      podFailurePolicy: {
        rules: [
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
          { action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } },
          { action: 'FailIndex', onExitCodes: { operator: 'NotIn', values: [1] } },
        ],
      },
    },
  };
  const pod = (exitCode: number, conditions: JsonObject[] = []): JsonObject => ({
    metadata: { namespace: 'n', name: 'p' },
    status: {
      conditions,
      containerStatuses: [{ name: 'c', state: { terminated: { exitCode } } }],
    },
  });
  const failed = judgeFailure(job, pod(42));
  assert.equal(failed.action, 'FailJob');
  assert.equal(
    failed.message,
    'Container c for pod n/p failed with exit code 42 matching FailJob rule at index 1',
  );
  const disrupted = pod(42, [{ type: 'DisruptionTarget', status: 'True' }]);
  assert.equal(judgeFailure(job, disrupted).action, 'Ignore');
  assert.equal(judgeFailure(job, pod(3)).action, 'FailIndex');
  assert.equal(judgeFailure(job, pod(1)).action, 'Count');
});

test('a success policy ends a Job when its indexes are there, and its other pods with it', () => {
  const rules = [{ succeededIndexes: '0,2-3', succeededCount: 2 }, { succeededCount: 4 }];
  const cluster = new Cluster({
    ...{ completionMode: 'Indexed', completions: 5, parallelism: 5 },
    successPolicy: { rules },
  });
  cluster.run(({ index }) => (index === 0 || index === 3 ? 'succeeded' : 'active'));
  const conditions = listAt(cluster.job, 'status', 'conditions');
  assert.deepEqual(
    conditions.map((one) => [stringAt(one, 'type'), stringAt(one, 'reason')]),
    [
      ['SuccessCriteriaMet', 'SuccessPolicy'],
      ['Complete', 'SuccessPolicy'],
    ],
  );
  assert.equal(stringAt(conditions[1], 'message'), 'Matched rules at index 0');
  assert.equal(stringAt(cluster.job, 'status', 'completedIndexes'), '0,3');
  assert(![...cluster.pods.values()].some((pod) => pod.phase === 'active'));
});

test('rules of a success policy are met by indexes, by numbers, or by both', () => {
  const met = (succeeded: readonly number[], ...rules: JsonObject[]): number =>
    metSuccessRule(jobOf({ successPolicy: { rules } }), new Set(succeeded), 10);
  assert.equal(met([1, 2], { succeededIndexes: '1-3' }), -1);
  assert.equal(met([1, 2, 3], { succeededIndexes: '1-3' }), 0);
  assert.equal(met([4, 5], { succeededIndexes: '1-3', succeededCount: 2 }), -1);
  assert.equal(met([1, 5, 3], { succeededIndexes: '1-3', succeededCount: 2 }), 0);
  assert.equal(met([4, 5], { succeededIndexes: '1' }, { succeededCount: 2 }), 1);
  assert.equal(met([0, 1, 2]), -1);
});

test('pods that run when the success policy is met are let go and have not failed', () => {
  const successPolicy = { rules: [{ succeededIndexes: '0' }] };
  const cluster = new Cluster({
    ...{ completionMode: 'Indexed', completions: 3, parallelism: 3, successPolicy },
  });
  cluster.run((pod) => (pod.index === 0 ? 'succeeded' : 'active'));
  assert(isFinished(cluster.job));
  const status = objectAt(cluster.job, 'status');
  assert.equal(numberAt(status, 'succeeded'), 1);
  assert.equal(numberAt(status, 'failed'), 0);
  assert.equal(stringAt(status, 'completedIndexes'), '0');
});

test('an index whose pod goes when the policy is met has not failed', () => {
  const successPolicy = { rules: [{ succeededIndexes: '0' }] };
  const cluster = new Cluster({
    ...{ completionMode: 'Indexed', completions: 3, parallelism: 3, successPolicy },
    backoffLimitPerIndex: 0,
  });
  cluster.run((pod) => (pod.index === 0 ? 'succeeded' : 'active'));
  assert(isFinished(cluster.job));
  const status = objectAt(cluster.job, 'status');
  assert.equal(numberAt(status, 'failed'), 0);
  assert.equal(stringAt(status, 'failedIndexes'), '');
});

test('a Job that is suspended in the middle still tells when it began', () => {
  const cluster = new Cluster({});
  cluster.round();
  cluster.round();
  const began = stringAt(cluster.job, 'status', 'startTime');
  assert.notEqual(began, '');
  const spec = { ...objectAt(cluster.job, 'spec'), suspend: true };
  cluster.job = { ...cluster.job, spec };
  cluster.nowMs += 60_000;
  cluster.round();
  assert.equal(stringAt(cluster.job, 'status', 'startTime'), began);
});

test('what a policy ignores holds the next pod back as any failure does', () => {
  const cluster = new Cluster({ podFailurePolicy: {}, parallelism: 1, completions: 1 });
  const made: number[] = [];
  for (let at = 0; at < 5; at++) {
    made.push((cluster.nowMs - START_MS) / 1000);
    cluster.round();
    const endedS = cluster.nowMs / 1000;
    const verdict = { action: 'Ignore', message: '' } as const;
    cluster.set(`p${at}`, { phase: 'failed', isReady: false, endedS, verdict });
    cluster.nowMs += cluster.round();
  }
  assert.deepEqual(made, [0, 10, 30, 70, 150]);
  assert.equal(numberAt(cluster.job, 'status', 'failed'), 0);
});

test('a failed pod of an index is kept until the next knows of its failures', () => {
  const spec = { completionMode: 'Indexed', completions: 2, parallelism: 1 };
  const cluster = new Cluster({ ...spec, backoffLimitPerIndex: 3 });
  cluster.round();
  cluster.set('p0', { phase: 'failed', isReady: false, endedS: cluster.nowMs / 1000 });
  assert.equal(cluster.round(), 10_000);
  assert.equal(numberAt(cluster.job, 'status', 'failed'), 0, 'not counted yet');
  assert.equal(cluster.pods.size, 1, 'the other index waits for its turn');
  cluster.set('p0', { isDeleting: true });
  cluster.nowMs += 10_000;
  cluster.round();
  assert.equal(cluster.pods.get('p1')?.failures, 1);
  for (let i = 0; i < 2; i++) cluster.round();
  assert.equal(numberAt(cluster.job, 'status', 'failed'), 1);
  assert.equal(cluster.pods.has('p0'), false);
  const verdict = { action: 'Ignore', message: '' } as const;
  cluster.set('p1', { phase: 'failed', isReady: false, endedS: cluster.nowMs / 1000, verdict });
  assert.equal(cluster.round(), 20_000);
  cluster.nowMs += 20_000;
  cluster.round();
  const { failures, ignored } = cluster.pods.get('p2') ?? {};
  assert.deepEqual({ failures, ignored }, { failures: 1, ignored: 1 });
});

test('pods that have ended in a crowd are not made again while they wait to be counted', () => {
  const cluster = new Cluster({ parallelism: 1200, completions: 1200 });
  for (let i = 0; i < 3; i++) cluster.round();
  assert.equal(cluster.pods.size, 1200);
  for (const name of cluster.pods.keys()) cluster.set(name, { phase: 'succeeded', isReady: false });
  for (let i = 0; i < 6; i++) cluster.round();
  assert.equal(cluster.made, 1200);
  assert.equal(cluster.reason('Complete'), 'CompletionsReached');
});

test('pods that nobody misses go first; those of a queue that has succeeded stay', () => {
  const cluster = new Cluster({ parallelism: 3, completions: 3 });
  cluster.round();
  cluster.set('p0', { isReady: false });
  cluster.set('p2', { isReady: false, isBound: false });
  const spec = objectAt(cluster.job, 'spec') ?? {};
  cluster.job = { ...cluster.job, spec: { ...spec, parallelism: 2 } };
  cluster.round();
  assert.deepEqual([...cluster.pods.keys()], ['p0', 'p1']);
  const queue = new Cluster({ parallelism: 3, completions: null });
  queue.round();
  queue.set('p0', { phase: 'succeeded', isReady: false });
  queue.job = { ...queue.job, spec: { ...objectAt(queue.job, 'spec'), parallelism: 1 } };
  queue.round();
  assert.equal(numberAt(queue.job, 'status', 'active'), 2);
});

test('a suspended Job that needs no more is complete', () => {
  const empty = new Cluster({ suspend: true, completions: 0 });
  empty.round();
  empty.round();
  assert.deepEqual(empty.events, ['Completed: Job completed']);
  const queue = new Cluster({ parallelism: 2, completions: null });
  queue.round();
  queue.set('p0', { phase: 'succeeded', isReady: false });
  queue.job = { ...queue.job, spec: { ...objectAt(queue.job, 'spec'), suspend: true } };
  for (let i = 0; i < 3; i++) queue.round();
  assert.deepEqual(queue.events, ['Completed: Job completed']);
});
