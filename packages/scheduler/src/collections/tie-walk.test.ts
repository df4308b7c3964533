import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { TieWalk, type Tie } from './tie-walk.ts';

/** Where five equal pods go on five equal nodes. */
function places(tie: Tie, seed: number): string[] {
  const core = new SchedulerCore({ seed, tie, keyOf: (id) => `default/p${id}` });
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    const allocatable = { cpu: '4', memory: '8Gi', pods: '9' };
    core.nodeSeen({ metadata: { name }, status: { allocatable } }, 0);
  }
  const resources = { requests: { cpu: '1' } };
  const spec = { schedulerName: 'default-scheduler', containers: [{ name: 'c', resources }] };
  return Array.from({ length: 5 }, (_, id) => {
    const metadata = { name: `p${id}`, namespace: 'default' };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec }));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
    const attempt = core.attempt(0);
    return attempt?.kind === 'bind' ? core.nodes.nameOf(attempt.node) : '';
  });
}

test('equal nodes are taken as from the heap of kube-scheduler, whatever the seed', () => {
  const heap = ['a', 'b', 'd', 'e', 'c'];
  assert.deepEqual(places('upstream', 1), heap);
  assert.deepEqual(places('upstream', 2), heap);
  assert.notDeepEqual(places('random', 1), heap);
});

test('a walk that rotates never starts anew', () => {
  const walk = new TieWalk(new Random(1), 'rotate');
  const drawn = Array.from({ length: 5000 }, () => walk.below(3));
  assert(drawn.every((one, index) => one === (index + 1) % 3));
  const decision = { best: ['x', 'y'], chosen: 'y' };
  assert.equal(new TieWalk(new Random(1), 'upstream').pick(decision), 'y');
  assert.equal(new Set([walk.pick(decision), walk.pick(decision)]).size, 2);
});
