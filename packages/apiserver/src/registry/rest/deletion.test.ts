import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decideDeletion, endsObject, podGraceSeconds, type DeletionRules } from './deletion.ts';
import type { DeleteOptions } from '../../request/options/delete-options.ts';

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const PLAIN: DeletionRules = { graceSeconds: null, orphansByDefault: false };
const POD: DeletionRules = { graceSeconds: podGraceSeconds, orphansByDefault: false };
const OPTIONS: DeleteOptions = {
  gracePeriodSeconds: null,
  uid: null,
  resourceVersion: null,
  orphanDependents: null,
  propagationPolicy: '',
  dryRun: false,
};

function object(metadata: JsonObject, spec: JsonObject = {}): JsonObject {
  return { kind: 'X', apiVersion: 'v1', metadata: { name: 'x', ...metadata }, spec };
}

test('an object without finalizers is removed as it is', () => {
  const target = object({});
  const decision = decideDeletion(target, OPTIONS, PLAIN, NOW_MS);
  assert.deepEqual(decision, { kind: 'remove', object: target, isStored: false });
});

test('finalizers keep the object, marked once with its generation counted up', () => {
  const target = object({ finalizers: ['a/b'], generation: 1 });
  const marked = decideDeletion(target, OPTIONS, PLAIN, NOW_MS);
  assert.equal(marked.kind, 'mark');
  assert.ok(marked.kind === 'mark');
  assert.deepEqual(marked.object['metadata'], {
    name: 'x',
    finalizers: ['a/b'],
    generation: 2,
    deletionTimestamp: '2026-01-02T03:04:05Z',
    deletionGracePeriodSeconds: 0,
  });
  const again = decideDeletion(marked.object, OPTIONS, PLAIN, NOW_MS + 9000);
  assert.deepEqual(again, { kind: 'mark', object: marked.object });
  assert.equal(endsObject(marked.object, object({})), true);
  assert.equal(endsObject(target, object({})), false);
});

test('propagation adds its finalizer and takes the other away', () => {
  const finalizers = (policy: DeleteOptions['propagationPolicy'], before: string[]): unknown => {
    const target = object(before.length === 0 ? {} : { finalizers: before });
    const decision = decideDeletion(
      target,
      { ...OPTIONS, propagationPolicy: policy },
      PLAIN,
      NOW_MS,
    );
    if (decision.kind === 'pending') return 'pending';
    return (decision.object['metadata'] as JsonObject)['finalizers'];
  };
  assert.deepEqual(finalizers('Foreground', []), ['foregroundDeletion']);
  assert.deepEqual(finalizers('Orphan', ['foregroundDeletion', 'a/b']), ['a/b', 'orphan']);
  assert.deepEqual(finalizers('', ['orphan']), ['orphan']);
});

test('a bound pod gets its grace, later deletes may only shorten it', () => {
  const pod = object({ generation: 1 }, { nodeName: 'n', terminationGracePeriodSeconds: 30 });
  const first = decideDeletion(pod, OPTIONS, POD, NOW_MS);
  assert.ok(first.kind === 'mark');
  const metadata = first.object['metadata'] as JsonObject;
  assert.equal(metadata['deletionTimestamp'], '2026-01-02T03:04:35Z');
  assert.equal(metadata['deletionGracePeriodSeconds'], 30);
  assert.equal(metadata['generation'], 2);
  assert.deepEqual(decideDeletion(first.object, OPTIONS, POD, NOW_MS), { kind: 'pending' });
  const shorter = decideDeletion(
    first.object,
    { ...OPTIONS, gracePeriodSeconds: 5 },
    POD,
    NOW_MS + 4000,
  );
  assert.ok(shorter.kind === 'mark');
  const after = shorter.object['metadata'] as JsonObject;
  assert.equal(after['deletionTimestamp'], '2026-01-02T03:04:10Z');
  assert.equal(after['generation'], 2);
  const now = decideDeletion(first.object, { ...OPTIONS, gracePeriodSeconds: 0 }, POD, NOW_MS);
  assert.equal(now.kind, 'remove');
});

test('a negative grace is a second, and an end is not moved into the past', () => {
  const pod = object({}, { nodeName: 'n', terminationGracePeriodSeconds: 30 });
  const metadataAfter = (seconds: number, nowMs: number): JsonObject => {
    const first = decideDeletion(pod, OPTIONS, POD, NOW_MS);
    assert.ok(first.kind === 'mark');
    const options = { ...OPTIONS, gracePeriodSeconds: seconds };
    const next = decideDeletion(first.object, options, POD, nowMs);
    assert.ok(next.kind === 'mark');
    return next.object['metadata'] as JsonObject;
  };
  assert.equal(metadataAfter(-5, NOW_MS)['deletionGracePeriodSeconds'], 1);
  const late = metadataAfter(5, NOW_MS + 20_000);
  assert.equal(late['deletionTimestamp'], '2026-01-02T03:04:25Z');
  assert.equal(late['deletionGracePeriodSeconds'], 1);
});

test('finalizers keep their order where the same ones stay, and go with what is removed', () => {
  const both = object({ finalizers: ['orphan', 'a/b'] });
  const kept = decideDeletion(both, OPTIONS, PLAIN, NOW_MS);
  assert.ok(kept.kind === 'mark');
  assert.deepEqual((kept.object['metadata'] as JsonObject)['finalizers'], ['orphan', 'a/b']);
  const orphaning = object({ finalizers: ['orphan'] });
  const options: DeleteOptions = { ...OPTIONS, propagationPolicy: 'Background' };
  const removed = decideDeletion(orphaning, options, PLAIN, NOW_MS);
  assert.deepEqual(removed, { kind: 'remove', object: orphaning, isStored: false });
});

test('a kind that no collector knows gets no finalizers of one', () => {
  const rules: DeletionRules = { ...PLAIN, isUncollected: true };
  const options: DeleteOptions = { ...OPTIONS, propagationPolicy: 'Foreground' };
  assert.equal(decideDeletion(object({}), options, rules, NOW_MS).kind, 'remove');
});

test('an unbound or finished pod goes at once', () => {
  const unbound = decideDeletion(object({}, {}), OPTIONS, POD, NOW_MS);
  assert.ok(unbound.kind === 'remove');
  assert.equal((unbound.object['metadata'] as JsonObject)['deletionGracePeriodSeconds'], 0);
  const done = { ...object({}, { nodeName: 'n' }), status: { phase: 'Succeeded' } };
  assert.equal(decideDeletion(done, OPTIONS, POD, NOW_MS).kind, 'remove');
});

test('a grace of any 64 bits is kept, and its end goes round as Go counts nanoseconds', () => {
  const pod = object({}, { nodeName: 'n', terminationGracePeriodSeconds: 2n ** 63n - 1n });
  const marked = decideDeletion(pod, OPTIONS, POD, NOW_MS);
  assert.ok(marked.kind === 'mark');
  assert.deepEqual(marked.object['metadata'], {
    name: 'x',
    deletionTimestamp: '2026-01-02T03:04:04Z',
    deletionGracePeriodSeconds: 2n ** 63n - 1n,
  });
  const wish = { ...OPTIONS, gracePeriodSeconds: 9007199254740991 };
  const asked = decideDeletion(object({}, { nodeName: 'n' }), wish, POD, NOW_MS);
  assert.ok(asked.kind === 'mark');
  assert.equal(stringAt(asked.object, 'metadata', 'deletionTimestamp').length, 20);
  const sooner = decideDeletion(marked.object, wish, POD, NOW_MS);
  assert.equal(sooner.kind, 'mark');
});
