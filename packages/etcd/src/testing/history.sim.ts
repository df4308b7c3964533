/**
 * Concurrent histories by revision and real time. Every answer carries a revision, so the order is
 * known and checking is linear: what the store says happened, as one sequence of events, must hold
 * every acknowledged write where it was acknowledged, must explain every read, and must not
 * contradict the clock.
 */
import assert from 'node:assert/strict';

/** A change as a watch from the first revision tells it. */
export interface Event {
  readonly revision: number;
  readonly key: string;
  /** Unique per attempt; null for a delete. */
  readonly value: string | null;
}

export interface Write {
  readonly kind: 'write';
  readonly key: string;
  readonly value: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Null when the connection broke: it may have happened, or may yet. */
  readonly revision: number | null;
}

export interface Read {
  readonly kind: 'read';
  readonly key: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly revision: number;
  readonly value: string | null;
}

export type Operation = Write | Read;

/** Is the history that of one copy? `events` is the whole sequence, in order. */
export function assertLinearizable(
  operations: readonly Operation[],
  events: readonly Event[],
): void {
  assertWritesHappened(operations, events);
  assertReadsExplained(operations, events);
  assertRealTime(operations);
}

function assertWritesHappened(operations: readonly Operation[], events: readonly Event[]): void {
  const byValue = new Map<string, Event>();
  for (const event of events) {
    if (event.value === null) continue;
    assert(!byValue.has(event.value), `${event.value} was written twice`);
    byValue.set(event.value, event);
  }
  for (const one of operations) {
    if (one.kind !== 'write') continue;
    const event = byValue.get(one.value);
    byValue.delete(one.value);
    if (one.revision === null) continue;
    assert(event !== undefined, `${one.key}=${one.value} was acknowledged and is lost`);
    assert.deepEqual({ ...event }, { revision: one.revision, key: one.key, value: one.value });
  }
  assert.deepEqual([...byValue.values()], [], 'nobody wrote this');
}

function assertReadsExplained(operations: readonly Operation[], events: readonly Event[]): void {
  const byKey = new Map<string, Event[]>();
  for (const event of events) {
    const all = byKey.get(event.key);
    if (all === undefined) byKey.set(event.key, [event]);
    else all.push(event);
  }
  for (const one of operations) {
    if (one.kind !== 'read') continue;
    const last = byKey.get(one.key)?.findLast(({ revision }) => revision <= one.revision);
    assert.equal(one.value, last?.value ?? null, `${one.key} read at revision ${one.revision}`);
  }
}

/** What ended before another began has no higher revision than it. */
function assertRealTime(operations: readonly Operation[]): void {
  const known = operations.filter(({ revision }) => revision !== null);
  const byStart = [...known].sort((a, b) => a.startMs - b.startMs);
  const byEnd = [...known].sort((a, b) => a.endMs - b.endMs);
  let ended = 0;
  let highest = 0;
  for (const one of byStart) {
    for (let next = byEnd[ended]; next !== undefined && next.endMs < one.startMs;) {
      highest = Math.max(highest, next.revision ?? 0);
      next = byEnd[++ended];
    }
    const isLater =
      one.kind === 'write' ? (one.revision ?? 0) > highest : (one.revision ?? 0) >= highest;
    assert(isLater, `${one.kind} of ${one.key} at ${one.revision} after ${highest} was answered`);
  }
}

/** Did a watch with cuts see a part of the sequence from `from` on, whole and in order? */
export function assertWatched(
  seen: readonly Event[],
  events: readonly Event[],
  from: number,
): void {
  const expected = events.filter(({ revision }) => revision >= from).slice(0, seen.length);
  assert.deepEqual(seen, expected);
}
