// shell: what a member begins with
/**
 * In this order: its own copy, where the journal has all that follows it; the journal from its
 * first entry; the state of the leader, where the journal was trimmed.
 */
import { randomInt } from 'node:crypto';
import { pauseMs } from '@megaplane/base/deferred';
import type { Journal } from '@megaplane/store/journal';
import type { Place } from '@megaplane/store/journal/member';
import { StateTaker } from '@megaplane/store/journal/state';
import { Store } from '@megaplane/store/store';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { StorageOptions } from '@megaplane/store/contract';
import { LeaderLink } from './leader-link.ts';
import { StateFile } from './state-file.ts';
import { STATE, findLeader } from './state-stream.ts';

/** So often a leader is looked for that gives its state; each takes some seconds. */
const TRIES = 20;
const PAUSE_MS = 500;

export interface FirstStateOptions {
  readonly storage: StorageOptions;
  readonly journal: Journal;
  readonly stateDir?: string;
  readonly tls: () => ConnectTls | null;
  readonly log: (message: string) => void;
}

export interface FirstState {
  readonly store: Store;
  /** Null: at the very beginning. */
  readonly place: Place | null;
}

/** Resolves with a store and the place that it belongs to. Throws what to do without one. */
export async function firstState(options: FirstStateOptions): Promise<FirstState> {
  const { journal, stateDir, log } = options;
  for (let tries = 1; ; tries++) {
    const end = await journal.end();
    if (end.kind === 'gone') throw new Error(end.why);
    const wait = tries < TRIES;
    if (end.kind === 'end') {
      const copy = stateDir === undefined ? null : fromFile(options, stateDir, end.first);
      if (copy !== null) return copy;
      if (end.first <= 1) return { store: emptyStore(options), place: null };
      const given = await fromLeader(options);
      if (typeof given !== 'string') return given;
      log(`no state yet: ${given}`);
      if (!wait) {
        throw new Error(
          `the ${journal.name} begins at entry ${end.first}, and there is no state that belongs ` +
            `before it: ${given}; start a member that has a copy of it (--state-dir) first`,
        );
      }
    } else if (!wait) throw new Error(`the ${journal.name} cannot be read: ${end.why}`);
    await pauseMs(PAUSE_MS);
  }
}

function emptyStore({ storage }: FirstStateOptions): Store {
  return new Store({ ...storage, dataDir: 'journal' }, randomInt(2 ** 48 - 1));
}

function fromFile(options: FirstStateOptions, dir: string, first: number): FirstState | null {
  const store = emptyStore(options);
  const place = new StateFile(dir).read(store, performance.now());
  if (place === null || place.position + 1 < first) return null;
  return { store, place };
}

async function fromLeader(options: FirstStateOptions): Promise<FirstState | string> {
  const leader = await findLeader(options.journal);
  if (leader === null) return 'nobody leads';
  const { tls, log } = options;
  const link = new LeaderLink({ tls, log, leadsHere: () => false, isOver: () => false });
  link.turnTo({ clientUrls: leader.clientUrls, secret: leader.writer });
  const store = emptyStore(options);
  const taker = new StateTaker(store, performance.now());
  const failure = await link.collect(STATE, (piece) => taker.take(piece));
  link.close();
  if (failure !== null) return `${leader.name} gave none: ${failure}`;
  if (taker.place === null) return `${leader.name} gave less than all of it`;
  log(`the state of ${leader.name} is here: ${taker.bytes} bytes, entry ${taker.place.position}`);
  return { store, place: taker.place };
}
