/**
 * A client's watch and what it may be told: every event of its range, in order, once, no revision
 * in two messages, no progress ahead of events, and after a cut exactly what follows.
 */
import assert from 'node:assert/strict';
import type { Model, Version } from '@megaplane/store/model.sim';
import type { Shown } from '../watch/watch-peer.sim.ts';

/** As `showWatch` writes an event without its previous record. */
function text({ key, value, mod, create, version, lease }: Version): string {
  const type = value === null ? 'DELETE' : 'PUT';
  return `${type} ${key} ${mod} ${create}/${version}/${lease}=${value ?? ''}`;
}

export class Watcher {
  readonly start: string;
  readonly end: string;
  /** The next revision that it has not been told of; 0 until the server says from where. */
  next: number;
  readonly seen: Version[] = [];
  isCreated = false;
  isOver = false;

  constructor(start: string, end: string, next: number) {
    this.start = start;
    this.end = end;
    this.next = next;
  }

  /** What must come next, as the model has it. */
  #due(model: Model): Version[] {
    return model.events(this.start, this.end, this.next);
  }

  /** A response for this watch arrived. */
  take(shown: Shown, model: Model): void {
    if (shown.created) {
      this.isCreated = true;
      if (this.next === 0) this.next = shown.revision + 1;
      return;
    }
    if (shown.canceled) {
      this.isOver = true;
      return;
    }
    if (shown.events.length === 0) {
      this.progress(shown.revision, model);
      return;
    }
    const due = this.#due(model).slice(0, shown.events.length);
    assert.deepEqual(shown.events, due.map(text), 'events in order, once, without gaps');
    const last = due.at(-1)?.mod ?? 0;
    const isWhole = this.#due(model)[due.length]?.mod !== last;
    assert(isWhole, `revision ${last} is cut in two`);
    assert(shown.revision >= last, 'the header is behind its events');
    this.seen.push(...due);
    this.next = last + 1;
  }

  /** Everything up to the revision is said to have been told. */
  progress(revision: number, model: Model): void {
    const missing = this.#due(model).filter(({ mod }) => mod <= revision);
    assert.deepEqual(missing, [], `progress to ${revision} is ahead of events`);
    this.next = Math.max(this.next, revision + 1);
  }
}
