/**
 * A journal in memory whose calls are answered when the world says so: late, never, or with an
 * outcome that is not known. Each member holds a `SimulatedClient` of one `SimulatedJournal`.
 */
import type { Random } from '@megaplane/base/random';
import type { AppendOutcome, EndOutcome, Journal, ReadOutcome, TrimOutcome } from './journal.ts';

interface Pending {
  /** Takes effect and answers; twice is once too often for nobody. */
  readonly land: () => void;
  /** The engine never hears of it. */
  readonly lose: () => void;
}

const UNKNOWN: AppendOutcome = { kind: 'unknown', why: 'simulated: no answer came' };
const AWAY = { kind: 'unavailable', why: 'simulated: the engine is away' } as const;

export class SimulatedJournal {
  readonly #random: Random;
  readonly entries: Map<number, Buffer> = new Map();
  first = 1;
  last = 0;
  /** Room left, Infinity for no limit. */
  bytesMax: number = Infinity;
  bytes = 0;
  isAway = false;
  isGone = false;
  /** Appends that are under way, also those whose senders gave up. */
  readonly #appends: Pending[] = [];
  /** Answers on their way back. */
  readonly #answers: { readonly isHeldUp: () => boolean; readonly arrive: () => void }[] = [];
  readonly #waiting: { readonly look: () => boolean }[] = [];
  readonly entryBytesMax: number;

  constructor(random: Random, entryBytesMax = 4096) {
    this.#random = random;
    this.entryBytesMax = entryBytesMax;
  }

  client(): SimulatedClient {
    return new SimulatedClient(this);
  }

  /** One call that is under way moves on, whichever. */
  step(): void {
    const index = this.#random.below(this.#appends.length + 1);
    const append = this.#appends[index];
    if (append !== undefined) {
      this.#appends.splice(index, 1);
      append.land();
    }
    const free = this.#answers.findIndex(({ isHeldUp }) => !isHeldUp());
    if (free >= 0 && this.#random.below(3) > 0) this.#answers.splice(free, 1)[0]?.arrive();
    this.#wake();
  }

  /** An append's sender hears nothing; it is written later, or never. */
  doubt(): void {
    const index = this.#random.below(this.#appends.length + 1);
    const append = this.#appends[index];
    if (append === undefined) return;
    if (this.#random.below(2) === 0) this.#appends.splice(index, 1);
    append.lose();
  }

  #wake(): void {
    for (const waiting of this.#waiting.splice(0)) {
      if (!waiting.look()) this.#waiting.push(waiting);
    }
  }

  /** Time goes by for those who wait. */
  tick(): void {
    this.#wake();
  }

  write(entry: Buffer, expected: number): AppendOutcome {
    if (this.isGone) return { kind: 'gone', why: 'simulated: somebody deleted it' };
    if (expected !== this.last) return { kind: 'moved' };
    if (this.bytes + entry.length > this.bytesMax) return { kind: 'full', why: 'simulated: full' };
    this.last++;
    this.bytes += entry.length;
    this.entries.set(this.last, Buffer.from(entry));
    return { kind: 'appended' };
  }

  submit(
    entry: Buffer,
    expected: number,
    isDead: () => boolean,
    isHeldUp: () => boolean,
  ): Promise<AppendOutcome> {
    if (this.isAway) return Promise.resolve(AWAY);
    const copy = Buffer.from(entry);
    return new Promise((resolve) => {
      this.#appends.push({
        land: () => {
          const outcome = this.write(copy, expected);
          const arrive = (): void => {
            if (!isDead()) resolve(outcome);
          };
          this.#answers.push({ isHeldUp, arrive });
        },
        lose: () => {
          if (!isDead()) resolve(UNKNOWN);
        },
      });
    });
  }

  look(from: number): ReadOutcome | null {
    if (this.isGone) return { kind: 'gone', why: 'simulated: somebody deleted it' };
    if (this.isAway) return AWAY;
    if (from < this.first) return { kind: 'trimmed', first: this.first };
    const entries = [];
    const count = 1 + this.#random.below(4);
    for (let position = from; position <= this.last && entries.length < count; position++) {
      const bytes = this.entries.get(position);
      if (bytes !== undefined) entries.push({ position, bytes });
    }
    return entries.length === 0 ? null : { kind: 'entries', entries };
  }

  wait(look: () => boolean): void {
    this.#waiting.push({ look });
  }

  trim(position: number): void {
    for (; this.first <= Math.min(position, this.last - 1); this.first++) {
      this.bytes -= this.entries.get(this.first)?.length ?? 0;
      this.entries.delete(this.first);
    }
  }
}

/** One member's way to it. */
export class SimulatedClient implements Journal {
  readonly name = 'simulated';
  readonly #journal: SimulatedJournal;
  #isDead = false;
  /** The engine is there for others, not for this one. */
  isCut = false;

  constructor(journal: SimulatedJournal) {
    this.#journal = journal;
  }

  get entryBytesMax(): number {
    return this.#journal.entryBytesMax;
  }

  append(entry: Buffer, expected: number): Promise<AppendOutcome> {
    if (this.isCut) return Promise.resolve(AWAY);
    const isDead = (): boolean => this.#isDead;
    return this.#journal.submit(entry, expected, isDead, () => this.isCut && !this.#isDead);
  }

  read(from: number): Promise<ReadOutcome> {
    return new Promise((resolve) => {
      let looks = 0;
      this.#journal.wait(() => {
        if (this.#isDead) return true;
        const found = this.isCut ? AWAY : this.#journal.look(from);
        if (found === null && looks++ < 8) return false;
        resolve(found ?? { kind: 'entries', entries: [] });
        return true;
      });
    });
  }

  end(): Promise<EndOutcome> {
    const { first, last, bytes, bytesMax, isAway } = this.#journal;
    return Promise.resolve(
      isAway || this.isCut ? AWAY : { kind: 'end', first, last, bytes, bytesMax },
    );
  }

  trim(position: number): Promise<TrimOutcome> {
    if (this.#journal.isAway) return Promise.resolve(AWAY);
    this.#journal.trim(position);
    return Promise.resolve({ kind: 'trimmed' });
  }

  /** The member is dead: it hears nothing any more. */
  close(): Promise<void> {
    this.#isDead = true;
    return Promise.resolve();
  }
}
