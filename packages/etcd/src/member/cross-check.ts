// shell: now and then, whether a standby holds what its leader holds
/**
 * Standbys apply what the leader has applied, and hold each record against what they make of it.
 * What neither shows (a bit that flipped in memory, a mistake in how values are kept) is found by
 * HashKV: both hash what they hold up to one revision. A standby that differs leaves.
 */
import { nextTurn } from '@megaplane/base/deferred';
import type { Member } from '@megaplane/store/journal/member';
import type { Store } from '@megaplane/store/store';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { writeInt64Field } from '@megaplane/wire/protobuf-write';
import { KvHash } from '../kv/hash-kv.ts';
import type { LeaderLink } from './leader-link.ts';

const HASH_KV = '/etcdserverpb.Maintenance/HashKV';
/** A leader with much to hash takes seconds. */
const ANSWER_MS_MAX = 60_000;

export interface CrossCheckParts {
  readonly member: Member;
  readonly store: Store;
  readonly link: LeaderLink;
  /** Between two looks; 0: never. */
  readonly everyMs: number;
  readonly nowMs: () => number;
  readonly onDifferent: (why: string) => void;
}

interface Hashed {
  readonly hash: number;
  readonly compactRevision: number;
}

export class CrossCheck {
  readonly #parts: CrossCheckParts;
  #isBusy = false;
  #lastMs: number;
  /** Looks that found both the same. */
  same = 0;

  constructor(parts: CrossCheckParts) {
    this.#parts = parts;
    this.#lastMs = parts.nowMs();
  }

  /** About once a second. */
  look(): void {
    const { member, everyMs, nowMs } = this.#parts;
    if (everyMs === 0 || this.#isBusy || member.isLeader || member.leader === null) return;
    if (nowMs() - this.#lastMs < everyMs) return;
    this.#isBusy = true;
    void this.#compare().finally(() => {
      this.#isBusy = false;
      this.#lastMs = nowMs();
    });
  }

  async #compare(): Promise<void> {
    const { member, store, link, onDifferent } = this.#parts;
    const { epoch } = member;
    const revision = store.publishedRevision;
    const own = await this.#hash(revision);
    const message = Buffer.alloc(16);
    const size = writeInt64Field(message, 0, 1, revision);
    const answer = await link.ask(HASH_KV, message.subarray(0, size), [], ANSWER_MS_MAX);
    // a leader that compacts meanwhile hashes other records; so does one that is none any more
    if (own === null || !Buffer.isBuffer(answer) || member.epoch !== epoch) return;
    const theirs = hashedIn(answer);
    if (theirs.compactRevision !== own.compactRevision) return;
    if (theirs.hash === own.hash) this.same++;
    else {
      onDifferent(
        `this member differs from its leader ${member.leader?.name ?? ''}: HashKV at revision ` +
          `${revision} is ${own.hash} here and ${theirs.hash} there; compare the ` +
          'hashes of all members (store hash) before it starts again',
      );
    }
  }

  async #hash(revision: number): Promise<Hashed | null> {
    const { member, store } = this.#parts;
    const hash = new KvHash(store, revision);
    while (!hash.step()) {
      await new Promise<void>((resolve) => nextTurn(resolve));
      if (!member.isEnded) continue;
      hash.end();
      return null;
    }
    return { hash: hash.hash, compactRevision: Math.max(0, hash.compactRevision) };
  }
}

function hashedIn(answer: Buffer): Hashed {
  const reader = new ProtobufReader().reset(answer, 0, answer.length);
  let hash = 0;
  let compactRevision = 0;
  while (reader.next()) {
    if (reader.field === 2 && reader.wireType === 0) hash = reader.int64();
    else if (reader.field === 3 && reader.wireType === 0) compactRevision = reader.int64();
    else reader.skip();
  }
  return { hash, compactRevision: Math.max(0, compactRevision) };
}
