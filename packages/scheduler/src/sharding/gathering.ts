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
  /** Ends its stream, for this reason. */
  drop?(why: string): void;
}

/** Rounds under way at most; the root asks one after another, relays hold a few more. */
export const ROUNDS_MAX = 1024;

export interface GatheringCounts {
  /** Octets sent to children and had from them. */
  sentBytes: number;
  readBytes: number;
  /** Rounds that all have answered, and how long that took in all. */
  rounds: number;
  seconds: number;
}

interface Waiting {
  readonly sinceMs: number;
  readonly missing: Set<Child>;
  reply: Reply;
  readonly done: (reply: Reply) => void;
}

export class Gathering {
  /** With what each says of itself now. */
  readonly #children = new Map<Child, Hello>();
  readonly #byMember = new Map<string, Child>();
  readonly #incarnations = new Map<string, string>();
  readonly #rounds = new Map<number, Waiting>();
  readonly counts: GatheringCounts = { sentBytes: 0, readBytes: 0, rounds: 0, seconds: 0 };
  readonly #nowMs: () => number;

  /** `nowMs`: milliseconds since any moment. */
  constructor(nowMs: () => number = () => 0) {
    this.#nowMs = nowMs;
  }

  /** Names of all shards below, sorted. */
  get members(): string[] {
    return [...this.#byMember.keys()].toSorted();
  }

  /** Of a shard; empty: it has none, or is not there. */
  incarnationOf(member: string): string {
    return this.#incarnations.get(member) ?? '';
  }

  get size(): number {
    return this.#children.size;
  }

  /** What any of the children says of itself; undefined: there are none. */
  get anyHello(): Hello | undefined {
    return this.#children.values().next().value;
  }

  /** Why a child cannot join; empty: it did. */
  add(child: Child): string {
    const why = this.#conflict(child, child.hello);
    if (why !== '') return why;
    this.#children.set(child, child.hello);
    this.#enlist(child, child.hello);
    return '';
  }

  /** Other shards are behind a child. Why they cannot join; empty: they did. */
  update(child: Child, hello: Hello): string {
    const before = this.#children.get(child);
    if (before === undefined) return 'it has not joined';
    const why = this.#conflict(child, hello);
    if (why !== '') return why;
    this.#strike(before);
    this.#children.set(child, hello);
    this.#enlist(child, hello);
    return '';
  }

  #conflict(child: Child, { members }: Hello): string {
    const known = members.find((member) => (this.#byMember.get(member) ?? child) !== child);
    return known === undefined ? '' : `a shard named ${known} is here already`;
  }

  #enlist(child: Child, { members, incarnations = [] }: Hello): void {
    for (const [index, member] of members.entries()) {
      this.#byMember.set(member, child);
      this.#incarnations.set(member, incarnations[index] ?? '');
    }
  }

  #strike({ members }: Hello): void {
    for (const member of members) {
      this.#byMember.delete(member);
      this.#incarnations.delete(member);
    }
  }

  /** A child is gone: rounds that wait for it have failed. */
  remove(child: Child): void {
    const hello = this.#children.get(child);
    if (hello === undefined) return;
    this.#children.delete(child);
    this.#strike(hello);
    for (const [number, waiting] of this.#rounds) {
      if (!waiting.missing.has(child)) continue;
      const trouble = `shard ${hello.members.join(', ')} is gone`;
      this.#take(number, child, { ...EMPTY_REPLY, trouble });
    }
  }

  /** Sends a frame where it belongs; `raw`: its bytes, where they are known. */
  pass(frame: DownFrame, raw: Uint8Array = encodeDown(frame)): void {
    const child = frame.to === '' ? undefined : this.#byMember.get(frame.to);
    if (frame.to !== '' && child === undefined) return;
    for (const one of child === undefined ? this.#children.keys() : [child]) {
      this.counts.sentBytes += raw.length;
      one.send(raw);
    }
  }

  /** Sends a round to all; `done` is called once, with what those who lead to shards answered. */
  ask(frame: DownFrame, done: (reply: Reply) => void, raw?: Uint8Array): void {
    if (this.#rounds.size >= ROUNDS_MAX) {
      return done({ ...EMPTY_REPLY, trouble: `more than ${ROUNDS_MAX} rounds are under way` });
    }
    // a relay whose shards have all gone has nothing to say, and keeps nobody waiting
    const asked = [...this.#children].filter(([, { members }]) => members.length > 0);
    if (asked.length === 0) {
      return done({ ...EMPTY_REPLY, trouble: 'there are no shards' });
    }
    this.#rounds.set(frame.number, {
      sinceMs: this.#nowMs(),
      missing: new Set(asked.map(([child]) => child)),
      reply: EMPTY_REPLY,
      done,
    });
    this.pass(frame, raw);
  }

  /** Waits no longer for a round. Returns the children that have not answered it. */
  giveUp(number: number, why: string): readonly Child[] {
    const waiting = this.#rounds.get(number);
    if (waiting === undefined) return [];
    this.#rounds.delete(number);
    const late = [...waiting.missing];
    waiting.done({ ...waiting.reply, trouble: waiting.reply.trouble || why });
    return late;
  }

  /** A child answered a round. */
  answered(child: Child, number: number, bytes: Uint8Array): void {
    this.counts.readBytes += bytes.length;
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
    this.counts.rounds++;
    this.counts.seconds += (this.#nowMs() - waiting.sinceMs) / 1000;
    waiting.done(waiting.reply);
  }
}
