/**
 * What a controller has done and not yet seen: until the informer shows it, counting pods would
 * count them wrong. Creations are seen when the informer has come to the revision that the server
 * answered; deletions when the pod is being deleted or gone. Time is an argument.
 */
import { assert } from '@megaplane/base/assert';

/** After so long the controller acts all the same: something was lost. */
const EXPECTATION_MS_MAX = 300_000;

interface Expected {
  revision: number;
  deletions: Set<string>;
  deadlineMs: number;
}

export class Expectations {
  readonly #expected: Map<string, Expected> = new Map();

  /** The owner `key` wrote something that the informer shows at `revision`. */
  expectRevision(key: string, revision: number, nowMs: number): void {
    assert(!Number.isNaN(revision), 'a write has a revision');
    const expected = this.#of(key, nowMs);
    expected.revision = Math.max(expected.revision, revision);
  }

  /** The owner `key` deletes a pod. */
  expectDeletion(key: string, pod: string, nowMs: number): void {
    this.#of(key, nowMs).deletions.add(pod);
  }

  /** The deletion failed. */
  unexpectDeletion(key: string, pod: string): void {
    this.#expected.get(key)?.deletions.delete(pod);
  }

  /** True when all is seen: `seen` is the informer's revision, `isGone` looks for a pod. */
  isMet(key: string, seen: number, isGone: (pod: string) => boolean, nowMs: number): boolean {
    const expected = this.#expected.get(key);
    if (expected === undefined) return true;
    // further ahead than any: the clock was set back
    const leftMs = expected.deadlineMs - nowMs;
    if (leftMs > 0 && leftMs <= EXPECTATION_MS_MAX) {
      for (const pod of expected.deletions) if (isGone(pod)) expected.deletions.delete(pod);
      if (seen < expected.revision || expected.deletions.size > 0) return false;
    }
    this.#expected.delete(key);
    return true;
  }

  forget(key: string): void {
    this.#expected.delete(key);
  }

  /** Owners that wait for something. */
  keys(): Iterable<string> {
    return this.#expected.keys();
  }

  #of(key: string, nowMs: number): Expected {
    let expected = this.#expected.get(key);
    if (expected === undefined) {
      expected = { revision: 0, deletions: new Set(), deadlineMs: 0 };
      this.#expected.set(key, expected);
    }
    assert(Number.isFinite(nowMs), 'an expectation has a deadline');
    expected.deadlineMs = nowMs + EXPECTATION_MS_MAX;
    return expected;
  }
}
