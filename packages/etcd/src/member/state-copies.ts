// shell: copies of the state on disks, and what the journal needs not hold any more
/**
 * Each member that has a directory keeps a copy of its leader's state there, made anew as the
 * journal grows, and tells the leader what entries it needs no more. The leader trims the journal
 * behind the oldest copy, once every member on the list has one.
 */
import { unawaited } from '@megaplane/base/deferred';
import type { Journal } from '@megaplane/store/journal';
import type { Member } from '@megaplane/store/journal/member';
import type { LeaderLink } from './leader-link.ts';
import { StateFile, type StateFileWriter } from './state-file.ts';
import { STATE, type StateServer } from './state-stream.ts';

/** Of all members, so that they do not copy at the same entry. */
const SPREAD = 0.2;

export interface CopyParts {
  readonly member: Member;
  readonly journal: Journal;
  readonly states: StateServer;
  readonly link: LeaderLink;
  /** Null: no copies, and the journal is never trimmed. */
  readonly dir: string | null;
  readonly every: number;
  readonly own: string;
  /** Members on the list. */
  readonly names: () => readonly string[];
  readonly log: (message: string) => void;
}

export class Copies {
  readonly #parts: CopyParts;
  readonly #file: StateFile | null;
  readonly #heard: Map<string, number> = new Map();
  #isCopying = false;
  /** The last copy was begun at this entry. */
  #begunAt = 0;
  #trimmed = 0;
  /** Entries up to here are in the copy on this disk. */
  kept = 0;

  constructor(parts: CopyParts) {
    this.#parts = parts;
    this.#file = parts.dir === null ? null : new StateFile(parts.dir);
    this.#begunAt = parts.member.position;
  }

  /** A member needs no entries up to `kept`; told at the leader. */
  heard(name: string, kept: number): void {
    this.#heard.set(name, kept);
  }

  /** Now and then: is a copy due, or something to trim? */
  look(): void {
    const { member, every, own } = this.#parts;
    const grown = member.position - this.#begunAt;
    const share = 1 + SPREAD * ((own.charCodeAt(0) % 8) / 8);
    if (this.#file !== null && !this.#isCopying && grown > every * share) this.#copy(this.#file);
    if (member.isLeader) this.#trim();
  }

  #copy(file: StateFile): void {
    const { member, states, link, log } = this.#parts;
    let writer: StateFileWriter;
    try {
      writer = file.write();
    } catch (error) {
      log(`no copy of the state is made: ${(error as Error).message}`);
      this.#begunAt = member.position;
      return;
    }
    this.#isCopying = true;
    const at = member.position;
    let failure: string | null = null;
    const take = (piece: Buffer): string | null => {
      try {
        if (failure === null) writer.take(piece);
      } catch (error) {
        // The disk is full, mostly: the older copy is still there.
        failure = (error as Error).message;
      }
      return failure;
    };
    const done = (why: string | null): void => {
      this.#isCopying = false;
      this.#begunAt = member.position;
      const wrong = failure ?? why ?? finished(writer);
      if (wrong === null) this.kept = at;
      else {
        writer.abandon();
        log(`no copy of the state was made: ${wrong}`);
      }
    };
    if (!member.isLeader) {
      unawaited(link.collect(STATE, take).then(done));
      return;
    }
    const taker = { hasRoom: true, take: (piece: Buffer) => void take(piece) };
    const isBegun = states.copy(taker, (isWhole) => done(isWhole ? null : 'it does not lead'));
    if (isBegun) return;
    this.#isCopying = false;
    writer.abandon();
  }

  #trim(): void {
    const { member, journal, names, own, log } = this.#parts;
    this.#heard.set(own, this.kept);
    const kept = names().map((name) => this.#heard.get(name) ?? 0);
    const least = Math.min(...kept, member.position - 1);
    if (kept.length === 0 || least <= this.#trimmed) return;
    this.#trimmed = least;
    const trim = async (): Promise<void> => {
      const outcome = await journal.trim(least);
      if (outcome.kind === 'trimmed') log(`the journal is trimmed up to entry ${least}`);
      else this.#trimmed = 0;
    };
    unawaited(trim());
  }
}

function finished(writer: StateFileWriter): string | null {
  try {
    writer.finish();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
