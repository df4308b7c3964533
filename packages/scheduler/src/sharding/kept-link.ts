// shell: a link that is made anew when it breaks
/** Joins one of several parents, and joins again whenever the link is lost. */
import { afterMs } from '@megaplane/base/deferred';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { JoinOptions, Link } from './links.ts';
import type { Hello } from './protocol/frames.ts';

export interface ParentAddress {
  readonly host: string;
  readonly port: number;
}

export interface KeptLinkOptions {
  /** Tried in turn: a root that does not lead sends its shards on. */
  readonly parents: readonly ParentAddress[];
  readonly tls?: ConnectTls;
  readonly hello: () => Hello;
  /** Makes the link: a shard's begins with nothing each time. */
  readonly open: (options: JoinOptions) => Link;
  /** After this without ever having joined it is given up. */
  readonly patienceMs: number;
  readonly onTrouble: (message: string) => void;
}

/** Between two tries, the second time and in the end. */
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 3000;

export class KeptLink {
  /** Resolves once the first parent has taken it in. */
  readonly joined: Promise<void>;
  /** Settles when it is of no use to go on. */
  readonly failure: Promise<Error>;
  readonly #options: KeptLinkOptions;
  readonly #resolve: () => void;
  readonly #fail: (error: Error) => void;
  readonly #startedMs = performance.now();
  #link: Link | null = null;
  #timer: NodeJS.Timeout | null = null;
  #at = 0;
  #waitMs = RETRY_MS_MIN;
  #hasJoined = false;
  #isClosed = false;
  #isIdle = false;
  #lastTrouble = '';

  constructor(options: KeptLinkOptions) {
    this.#options = options;
    const joined = Promise.withResolvers<void>();
    const failure = Promise.withResolvers<Error>();
    [this.joined, this.#resolve] = [joined.promise, joined.resolve];
    [this.failure, this.#fail] = [failure.promise, failure.resolve];
    this.#try();
  }

  /** Other shards are behind this child now. */
  update(): void {
    this.#link?.update(this.#options.hello());
    if (this.#isIdle) this.#try();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer ?? undefined);
    this.#link?.close();
  }

  #try(): void {
    const { parents, tls, hello, open } = this.#options;
    const parent = parents[this.#at % parents.length];
    if (parent === undefined || this.#isClosed) return;
    const own = hello();
    // nobody takes in a relay that leads to no shard; `update` tries again
    this.#isIdle = own.members.length === 0;
    if (this.#isIdle) return;
    this.#link = open({
      ...parent,
      ...(tls === undefined ? {} : { tls }),
      hello: own,
      onJoined: () => this.#joined(),
      onEnd: (why, isFinal) => this.#ended(`${parent.host}:${parent.port}`, why, isFinal),
    });
  }

  #joined(): void {
    this.#hasJoined = true;
    this.#waitMs = RETRY_MS_MIN;
    this.#lastTrouble = '';
    this.#resolve();
  }

  #ended(where: string, why: string, isFinal: boolean): void {
    const { patienceMs, onTrouble } = this.#options;
    this.#link = null;
    if (this.#isClosed) return;
    if (isFinal) return this.#fail(new Error(`--join ${where}: ${why}`));
    const waitedMs = performance.now() - this.#startedMs;
    if (!this.#hasJoined && waitedMs > patienceMs) {
      const hint = 'is a scheduler with --shards or --shards-address running there?';
      return this.#fail(new Error(`--join ${where}: ${why}; ${hint}`));
    }
    // one line for a parent that stays away
    if (why !== this.#lastTrouble) onTrouble(`${where}: ${why}`);
    this.#lastTrouble = why;
    this.#at++;
    this.#timer = afterMs(this.#waitMs, () => this.#try());
    this.#waitMs = Math.min(this.#waitMs * 2, RETRY_MS_MAX);
  }
}
