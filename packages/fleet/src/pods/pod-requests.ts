/**
 * Which pods lack their request, and which requests outlive their pods: the controller without a
 * world. It is told what is there, and asked what to do next.
 *
 *     unknown   nobody has looked yet whether there is a request
 *     wanting   there is none: one is to be made, in turn
 *     making    it is being made
 *     held      there is one
 *     ending    the pod runs no more: its requests are to be deleted, in turn
 *     removing  they are being deleted
 *     ended     the pod runs no more, and nothing is known of a request
 *
 * A pod that is deleted takes its requests with it, by their owner references. A pod costs 21 bytes
 * here, beside its row of the informer.
 */
import { assert } from '@megaplane/base/assert';
import { Int32Column, Uint32Column, Uint8Column } from '@megaplane/base/column';

const ABSENT = 0;
const UNKNOWN = 1;
const WANTING = 2;
const MAKING = 3;
const HELD = 4;
const ENDING = 5;
const REMOVING = 6;
const ENDED = 7;
const NAMES = ['absent', 'unknown', 'wanting', 'making', 'held', 'ending', 'removing', 'ended'];

const UID_WORDS = 4;

/** Something to be done for the pod of a row. */
export interface Task {
  readonly kind: 'make' | 'remove';
  readonly row: number;
  /** Whose pod it was when the task was given: the words of its UID. */
  readonly uid: readonly number[];
}

/** How a task went; `later` and `refused` are tried again after their pauses. */
export type Outcome = 'done' | 'later' | 'refused' | 'gone';

/** After what may go well soon, and after an answer that says that the request is wrong. */
export const LATER_MS = 5000;
export const REFUSED_MS = 60_000;

export class PodRequests {
  readonly #state = new Uint8Column();
  readonly #uid = new Int32Column();
  /** The round of the last list that showed the request. */
  readonly #round = new Uint32Column();
  readonly #tasks: number[] = [];
  #taskAt = 0;
  readonly #later: Waiting[] = [];
  readonly #refused: Waiting[] = [];
  #rowEnd = 0;
  #roundNow = 0;
  #isAdopted = false;

  /** Pods that have a request, and those that lack one. */
  held = 0;
  wanting = 0;

  /** The pod of `row` is there; `uid` as the server writes it. */
  podSeen(row: number, uid: string, isTerminal: boolean): void {
    const state = this.#state.get(row);
    this.#rowEnd = Math.max(this.#rowEnd, row + 1);
    if (state === ABSENT || !this.#isUid(row, uid)) {
      this.#setUid(row, uid);
      this.#become(row, isTerminal ? ENDED : UNKNOWN);
      if (!isTerminal && this.#isAdopted) this.#want(row);
      return;
    }
    if (!isTerminal) return;
    if (state === HELD) this.#end(row);
    else if (state === WANTING || state === UNKNOWN) this.#become(row, ENDED);
    // one that is being made is removed when it is there
    else if (state === MAKING) this.#become(row, ENDED);
  }

  podGone(row: number): void {
    this.#become(row, ABSENT);
  }

  /** A request of `row` is there, made for the pod of this uid. */
  requestSeen(row: number, uid: string): void {
    const state = this.#state.get(row);
    if (state === ABSENT || !this.#isUid(row, uid)) return;
    this.#round.set(row, this.#roundNow);
    if (state === ENDED) this.#end(row);
    else if (state === UNKNOWN || state === WANTING) this.#become(row, HELD);
  }

  requestGone(row: number, uid: string): void {
    const state = this.#state.get(row);
    if (state === ABSENT || !this.#isUid(row, uid)) return;
    if (state === HELD) this.#want(row);
    else if (state === ENDING || state === REMOVING) this.#become(row, ENDED);
  }

  /** Requests are listed from the beginning. */
  listBegan(): void {
    this.#roundNow++;
  }

  /** All requests were seen: pods without one lack it. */
  listEnded(): void {
    this.#isAdopted = true;
    for (let row = 0; row < this.#rowEnd; row++) {
      const state = this.#state.get(row);
      if (state === UNKNOWN) this.#want(row);
      else if (state === HELD && this.#round.get(row) !== this.#roundNow) this.#want(row);
    }
  }

  /** What is to be done next, or undefined. The caller does it, and tells by `ended`. */
  next(nowMs: number): Task | undefined {
    this.#due(this.#later, nowMs);
    this.#due(this.#refused, nowMs);
    while (this.#taskAt < this.#tasks.length) {
      const row = this.#tasks[this.#taskAt++] ?? 0;
      this.#compact();
      const state = this.#state.get(row);
      if (state === WANTING) {
        this.#become(row, MAKING);
        return this.#task('make', row);
      }
      if (state === ENDING) {
        this.#become(row, REMOVING);
        return this.#task('remove', row);
      }
    }
    return undefined;
  }

  /** When a task that was put off is due; Infinity for none. */
  get wakeMs(): number {
    return Math.min(this.#later[0]?.atMs ?? Infinity, this.#refused[0]?.atMs ?? Infinity);
  }

  /** Whether this UID is that of the pod for which the task was given. */
  isPodOf(task: Task, uid: string): boolean {
    return task.uid.every((part, word) => part === uidWord(uid, word));
  }

  /** `task` came to its end. */
  ended({ kind, row, uid }: Task, outcome: Outcome, nowMs: number): void {
    const state = this.#state.get(row);
    const isSame = uid.every((part, word) => part === this.#uid.get(row * UID_WORDS + word));
    if (state === ABSENT || !isSame) return;
    if (kind === 'make') {
      if (state === ENDED && outcome === 'done') return this.#end(row);
      if (state !== MAKING) return;
      if (outcome === 'done') {
        this.#round.set(row, this.#roundNow);
        return this.#become(row, HELD);
      }
      this.#become(row, WANTING);
    } else {
      if (state !== REMOVING) return;
      if (outcome === 'done' || outcome === 'gone') return this.#become(row, ENDED);
      this.#become(row, ENDING);
    }
    if (outcome === 'refused') this.#refused.push({ row, atMs: nowMs + REFUSED_MS });
    else this.#later.push({ row, atMs: nowMs + LATER_MS });
  }

  /** For messages and tests. */
  stateOf(row: number): string {
    return NAMES[this.#state.get(row)] ?? '';
  }

  #task(kind: Task['kind'], row: number): Task {
    const uid: number[] = [];
    for (let word = 0; word < UID_WORDS; word++) uid.push(this.#uid.get(row * UID_WORDS + word));
    return { kind, row, uid };
  }

  #want(row: number): void {
    this.#become(row, WANTING);
    this.#tasks.push(row);
  }

  #end(row: number): void {
    this.#become(row, ENDING);
    this.#tasks.push(row);
  }

  #become(row: number, state: number): void {
    const before = this.#state.get(row);
    if (before === HELD) this.held--;
    else if (before === WANTING || before === MAKING) this.wanting--;
    if (state === HELD) this.held++;
    else if (state === WANTING || state === MAKING) this.wanting++;
    assert(this.held >= 0 && this.wanting >= 0, 'pods are counted once');
    this.#state.set(row, state);
  }

  #due(waiting: Waiting[], nowMs: number): void {
    let count = 0;
    for (const { row, atMs } of waiting) {
      if (atMs > nowMs) break;
      this.#tasks.push(row);
      count++;
    }
    if (count > 0) waiting.splice(0, count);
  }

  /** The rows that were taken leave when they are half of the list. */
  #compact(): void {
    if (this.#taskAt < 1024 || this.#taskAt * 2 < this.#tasks.length) return;
    this.#tasks.splice(0, this.#taskAt);
    this.#taskAt = 0;
  }

  #isUid(row: number, uid: string): boolean {
    for (let word = 0; word < UID_WORDS; word++) {
      if (this.#uid.get(row * UID_WORDS + word) !== uidWord(uid, word)) return false;
    }
    return true;
  }

  #setUid(row: number, uid: string): void {
    for (let word = 0; word < UID_WORDS; word++) {
      this.#uid.set(row * UID_WORDS + word, uidWord(uid, word));
    }
  }
}

interface Waiting {
  readonly row: number;
  readonly atMs: number;
}

/** A quarter of a UUID; of any other text a hash. */
function uidWord(uid: string, word: number): number {
  if (uid.length === 36) {
    const at = [0, 9, 19, 28][word] ?? 0;
    const digits = word === 0 || word === 3 ? 8 : 9;
    const parsed = Number.parseInt(uid.slice(at, at + digits).replace('-', ''), 16);
    if (!Number.isNaN(parsed)) return parsed | 0;
  }
  let hash = word;
  for (let at = 0; at < uid.length; at++) hash = (Math.imul(hash, 31) + uid.charCodeAt(at)) | 0;
  return hash;
}
