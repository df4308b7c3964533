import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfiguration } from '../../config/configuration.ts';
import { scoreEach, unschedulable } from '../plugin.ts';
import { SchedulerCore } from '../../core/scheduler-core.ts';
import type { PodInfo } from '../pod-info.ts';
import { createUserPlugin, userPluginError, type UserPlugin } from './user-plugin.ts';

/** Batch pods go to the node with the fewest pods, and to no node that is named `quiet`. */
const BATCH: UserPlugin = {
  name: 'Batch',
  points: ['filter', 'score'],
  appliesTo: ({ spec }) => (spec.priority ?? 0) < 0,
  create: (args) => {
    const { avoid = 'quiet' } = args as { avoid?: string };
    return {
      name: 'Batch',
      preFilter: () => ({
        kind: 'run',
        filter: {
          filter: ({ name }) => (name === avoid ? unschedulable('node(s) are to be quiet') : null),
        },
      }),
      preScore: () => scoreEach(({ pods }) => 100 - pods.length),
    };
  },
};

function configured(body: object): ReturnType<typeof parseConfiguration> {
  const head = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
  };
  return parseConfiguration({ ...head, ...body }, [BATCH]);
}

function core(): SchedulerCore {
  const plugins = { multiPoint: { enabled: [{ name: 'Batch', weight: 50 }] } };
  const parsed = configured({ profiles: [{ plugins }] });
  assert(parsed.ok, parsed.ok ? '' : parsed.errors.join());
  const { profiles } = parsed.configuration;
  const made = new SchedulerCore({ seed: 1, profiles, plugins: [BATCH], keyOf: (id) => `a/${id}` });
  for (const name of ['quiet', 'loud']) {
    const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
    made.nodeSeen({ metadata: { name }, status: { allocatable } }, 0);
  }
  return made;
}

function place(made: SchedulerCore, id: number, spec: object): string {
  const pod = { metadata: { name: `${id}`, namespace: 'a' }, spec };
  const bytes = Buffer.from(JSON.stringify(pod));
  assert(made.podSeen(id, true, bytes, 0, bytes.length, 0));
  const attempt = made.attempt(0);
  assert(attempt !== null);
  return attempt.kind === 'bind' ? made.nodes.nameOf(attempt.node) : attempt.failure.message;
}

test('a plugin of a user filters and scores the pods that it applies to', () => {
  const made = core();
  assert.equal(place(made, 0, { priority: -1 }), 'loud');
  const only = { priority: -1, nodeSelector: {} };
  made.nodeGone('loud', 0);
  assert.match(place(made, 1, only), /^0\/1 nodes are available: 1 node\(s\) are to be quiet\./);
});

test('pods that no plugin of a user applies to are placed by the fast ways', () => {
  const made = core();
  place(made, 0, { priority: 1 });
  place(made, 1, { priority: -1 });
  const { indexed, searched, scanned, evaluated } = made.placement.metrics;
  assert.deepEqual([indexed + searched + scanned, evaluated], [1, 1]);
});

test('a plugin is to be enabled at points that it has', () => {
  const at = (point: string, name: string): string => {
    const plugins = { [point]: { enabled: [{ name }] } };
    const parsed = configured({ profiles: [{ plugins }] });
    return parsed.ok ? '' : parsed.errors.join();
  };
  assert.equal(at('score', 'Batch'), '');
  assert.match(at('permit', 'Batch'), /plugin "Batch" does not extend PermitPlugin plugin$/);
  assert.match(at('score', 'Bach'), /ScorePlugin "Bach" does not exist$/);
});

test('what a module exports is checked before it is run', () => {
  assert.equal(userPluginError(BATCH), '');
  assert.equal(userPluginError(undefined), 'its default export is no plugin');
  assert.equal(userPluginError({}), 'the plugin has no name');
  assert.equal(userPluginError({ name: 'X' }), 'X: it has no points');
  assert.equal(userPluginError({ name: 'X', points: ['score'] }), 'X: it has no function create');
  const binding = { ...BATCH, points: ['bind'] };
  assert.equal(userPluginError(binding), 'Batch: plugins of users cannot take part at bind');
});

test('what a plugin of a user counts over nodes is passed on, with what others counted', () => {
  const handed: unknown[] = [];
  const counting: UserPlugin = {
    ...BATCH,
    create: () => ({
      name: 'Batch',
      tally: () => new Map([['pods', 3]]),
      preFilter: (_pod, _snapshot, tally) => {
        handed.push(tally?.get('pods'));
        return { kind: 'skip' };
      },
      candidatesWanted: () => 7,
    }),
  };
  const made = createUserPlugin(counting, {});
  const snapshot = {} as Parameters<NonNullable<typeof made.tally>>[1];
  const podOf = (priority: number): PodInfo => ({ pod: { spec: { priority } } }) as PodInfo;
  const failed = { cycle: { pod: podOf(-1) } } as Parameters<
    NonNullable<typeof made.candidatesWanted>
  >[0];
  assert.deepEqual(made.tally?.(podOf(-1), snapshot), new Map([['pods', 3]]));
  assert.equal(made.tally?.(podOf(0), snapshot), null);
  made.preFilter?.(podOf(-1), snapshot, new Map([['pods', 9]]));
  assert.deepEqual(handed, [9]);
  assert.equal(made.candidatesWanted?.(failed), 7);
  // without a method the plugin counts by itself, and is handed nothing
  assert.equal(Reflect.get(made, 'scoreTally'), undefined);
  assert.equal(Reflect.get(createUserPlugin(BATCH, {}), 'tally'), undefined);
});
