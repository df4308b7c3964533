/**
 * Shards and relays without sockets, for tests: frames are delivered by a function of the test's
 * own, in the order of each link, as bytes. A link that is cut delivers nothing more.
 */
import type { Profile } from '../framework/runtime/profile.ts';
import { Gathering, type Child } from './gathering.ts';
import { LiveShare } from './live-share.ts';
import { decodeDown, type Hello } from './protocol/frames.ts';
import { decodeRound, encodeReply } from './protocol/round-codec.ts';
import { EMPTY_REPLY, type Reply } from './protocol/rounds.ts';
import { decodeState } from './protocol/state.ts';

/** Runs a delivery, at once or later; deliveries of the same link stay in order. */
export type Deliver = (link: string, run: () => void) => void;

const TERMS = { version: 'by hand', configHash: '' };

/** What stands at the lower end of a link. */
interface Lower {
  take(frame: Uint8Array, answer: (number: number, reply: Reply) => void): void;
}

/** One child, seen from its parent; gone for good once it is cut. */
class HandLink implements Child {
  readonly hello: Hello;
  isCut = false;
  /** Changes replies on their way, for shards that lie. */
  lie: (reply: Reply) => Reply = (reply) => reply;
  readonly #name: string;
  readonly #deliver: Deliver;
  readonly #parent: Gathering;
  readonly #lower: Lower;

  constructor(name: string, hello: Hello, parent: Gathering, lower: Lower, deliver: Deliver) {
    this.#name = name;
    this.hello = hello;
    this.#parent = parent;
    this.#lower = lower;
    this.#deliver = deliver;
  }

  send(frame: Uint8Array): void {
    const bytes = Buffer.from(frame);
    this.#deliver(`${this.#name} down`, () => {
      if (this.isCut) return;
      this.#lower.take(bytes, (number, reply) => {
        const answer = encodeReply(this.lie(reply));
        this.#deliver(`${this.#name} up`, () => {
          if (!this.isCut) this.#parent.answered(this, number, answer);
        });
      });
    });
  }
}

class HandShard implements Lower {
  readonly share: LiveShare;

  constructor(profiles: ReadonlyMap<string, Profile>) {
    this.share = new LiveShare(profiles);
  }

  take(frame: Uint8Array, answer: (number: number, reply: Reply) => void): void {
    const { state, round, number } = decodeDown(frame);
    if (state !== null) this.share.apply(decodeState(state));
    if (round !== null) answer(number, this.share.answer(decodeRound(round)));
  }
}

class HandRelay implements Lower {
  readonly gathering = new Gathering();

  take(bytes: Uint8Array, answer: (number: number, reply: Reply) => void): void {
    const frame = decodeDown(bytes);
    if (frame.round === null) return this.gathering.pass(frame, bytes);
    if (this.gathering.size === 0) return answer(frame.number, EMPTY_REPLY);
    this.gathering.ask(frame, (reply) => answer(frame.number, reply), bytes);
  }
}

interface Standing {
  readonly link: HandLink;
  readonly relay: string;
  readonly shard: HandShard;
}

export class HandTree {
  readonly gathering: Gathering = new Gathering();
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #deliver: Deliver;
  readonly #onChange: () => void;
  readonly #shards = new Map<string, Standing>();
  readonly #relays = new Map<string, { readonly link: HandLink; readonly relay: HandRelay }>();
  #serial = 0;

  constructor(
    profiles: ReadonlyMap<string, Profile>,
    deliver: Deliver,
    onChange: () => void = () => {},
  ) {
    this.#profiles = profiles;
    this.#deliver = deliver;
    this.#onChange = onChange;
  }

  get shards(): readonly string[] {
    return [...this.#shards.keys()];
  }

  get relays(): readonly string[] {
    return [...this.#relays.keys()];
  }

  shareOf(name: string): LiveShare | undefined {
    return this.#shards.get(name)?.shard.share;
  }

  addRelay(name: string): void {
    const relay = new HandRelay();
    const link = this.#link(name, { ...TERMS, members: [] }, this.gathering, relay);
    this.#relays.set(name, { link, relay });
    this.gathering.add(link);
    this.#onChange();
  }

  /** A shard joins, behind a relay or, where that is empty, at the root. */
  addShard(name: string, relay = ''): void {
    const shard = new HandShard(this.#profiles);
    const hello = { ...TERMS, members: [name], incarnations: [`${++this.#serial}`] };
    const parent = this.#relays.get(relay)?.relay.gathering ?? this.gathering;
    const link = this.#link(`${name}-${this.#serial}`, hello, parent, shard);
    this.#shards.set(name, { link, relay, shard });
    parent.add(link);
    this.#tellUp(relay);
  }

  #link(name: string, hello: Hello, parent: Gathering, lower: Lower): HandLink {
    return new HandLink(name, hello, parent, lower, this.#deliver);
  }

  /** A shard dies. */
  cut(name: string): void {
    const standing = this.#shards.get(name);
    if (standing === undefined) return;
    this.#shards.delete(name);
    standing.link.isCut = true;
    const parent = this.#relays.get(standing.relay)?.relay.gathering ?? this.gathering;
    parent.remove(standing.link);
    this.#tellUp(standing.relay);
  }

  /** A relay dies, and all behind it have to join anew. */
  cutRelay(name: string): void {
    const standing = this.#relays.get(name);
    if (standing === undefined) return;
    this.#relays.delete(name);
    standing.link.isCut = true;
    for (const [shard, { relay, link }] of this.#shards) {
      if (relay !== name) continue;
      link.isCut = true;
      this.#shards.delete(shard);
    }
    this.gathering.remove(standing.link);
    this.#onChange();
  }

  lie(name: string, change: (reply: Reply) => Reply): void {
    const standing = this.#shards.get(name);
    if (standing !== undefined) standing.link.lie = change;
  }

  /** A relay says who is behind it by now, on the way that its answers take. */
  #tellUp(name: string): void {
    const standing = this.#relays.get(name);
    if (standing === undefined) return this.#onChange();
    const { link, relay } = standing;
    const { members } = relay.gathering;
    const incarnations = members.map((member) => relay.gathering.incarnationOf(member));
    this.#deliver(`${name} up`, () => {
      if (link.isCut) return;
      this.gathering.update(link, { ...TERMS, members, incarnations });
      this.#onChange();
    });
  }
}
