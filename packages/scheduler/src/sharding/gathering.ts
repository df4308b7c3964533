/**
 * The children of the root or of a relay, and what is asked of them: rounds go to all, their
 * answers come back as one. Owns no socket: `send` puts a frame on a child's stream.
 */
import { encodeDown, type DownFrame, type Hello } from './protocol/frames.ts';
import { decodeReply } from './protocol/round-codec.ts';
import { EMPTY_REPLY, merged, type Reply } from './protocol/rounds.ts';

export interface Child {
  readonly hello: Hello;
  send(frame: Uint8Array): void;
}

/** Rounds under way at most; the root asks one after another, relays hold a few more. */
export const ROUNDS_MAX = 1024;

interface Waiting {
  readonly missing: Set<Child>;
  reply: Reply;
  readonly done: (reply: Reply) => void;
}

export class Gathering {
  readonly #children = new Set<Child>();
  readonly #byMember = new Map<string, Child>();
  readonly #rounds = new Map<number, Waiting>();

  /** Names of all shards below, sorted. */
  get members(): string[] {
    return [...this.#byMember.keys()].toSorted();
  }

  get size(): number {
    return this.#children.size;
  }

  /** Why a child cannot join; empty: it did. */
  add(child: Child): string {
    const known = child.hello.members.find((member) => this.#byMember.has(member));
    if (known !== undefined) return `a shard named ${known} is here already`;
    this.#children.add(child);
    for (const member of child.hello.members) this.#byMember.set(member, child);
    return '';
  }

  /** A child is gone: rounds that wait for it have failed. */
  remove(child: Child): void {
    if (!this.#children.delete(child)) return;
    for (const member of child.hello.members) this.#byMember.delete(member);
    for (const [number, waiting] of this.#rounds) {
      if (!waiting.missing.has(child)) continue;
      const trouble = `shard ${child.hello.members.join(', ')} is gone`;
      this.#take(number, child, { ...EMPTY_REPLY, trouble });
    }
  }

  /** Sends a frame where it belongs; `raw`: its bytes, where they are known. */
  pass(frame: DownFrame, raw: Uint8Array = encodeDown(frame)): void {
    if (frame.to !== '') this.#byMember.get(frame.to)?.send(raw);
    else for (const child of this.#children) child.send(raw);
  }

  /** Sends a round to all; `done` is called once, with the answers of all as one. */
  ask(frame: DownFrame, done: (reply: Reply) => void, raw?: Uint8Array): void {
    if (this.#rounds.size >= ROUNDS_MAX) {
      return done({ ...EMPTY_REPLY, trouble: `more than ${ROUNDS_MAX} rounds are under way` });
    }
    if (this.#children.size === 0) {
      return done({ ...EMPTY_REPLY, trouble: 'there are no shards' });
    }
    this.#rounds.set(frame.number, {
      missing: new Set(this.#children),
      reply: EMPTY_REPLY,
      done,
    });
    this.pass(frame, raw);
  }

  /** A child answered a round. */
  answered(child: Child, number: number, bytes: Uint8Array): void {
    let reply: Reply;
    try {
      reply = decodeReply(bytes);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      reply = { ...EMPTY_REPLY, trouble: `${child.hello.members.join(', ')}: ${why}` };
    }
    this.#take(number, child, reply);
  }

  #take(number: number, child: Child, reply: Reply): void {
    const waiting = this.#rounds.get(number);
    // an answer to nothing that was asked of this child, or a second one
    if (waiting === undefined || !waiting.missing.delete(child)) return;
    waiting.reply = merged(waiting.reply, reply);
    if (waiting.missing.size > 0) return;
    this.#rounds.delete(number);
    waiting.done(waiting.reply);
  }
}
