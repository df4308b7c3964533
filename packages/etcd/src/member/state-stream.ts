// shell: the state of a leader, for members that have none and for copies on disks
import { everyMs } from '@megaplane/base/deferred';
import type { Journal } from '@megaplane/store/journal';
import { type Leader, type Member, type Place, leaderIn } from '@megaplane/store/journal/member';
import { StateSource, isLastPiece } from '@megaplane/store/journal/state';
import type { Store } from '@megaplane/store/store';
import { GRPC_CODES, type GrpcCall, type GrpcCallHandler } from '@megaplane/wire/grpc';
import { ETCD } from '../codec/failures.ts';
import { SECRET } from './leader-link.ts';

export const STATE = '/megaplane.Group/State';
const STEP_MS = 1;
/** Of entries at the end of the journal that are looked through for one that names the leader. */
const LOOK_ENTRIES = 64;
const LOOKS_MAX = 400;
const WAIT_MS = 100;

/** Gives its state out, to one at a time. */
export class StateServer {
  readonly #store: Store;
  readonly #member: Member;
  #isBusy = false;

  constructor(store: Store, member: Member) {
    this.#store = store;
    this.#member = member;
  }

  /** Serves `STATE`. */
  factory(call: GrpcCall): GrpcCallHandler {
    return {
      onMessage: () => {},
      onHalfClose: () => this.#begin(call),
      onCancel: () => {},
    };
  }

  #begin(call: GrpcCall): void {
    if (!this.#member.isLeader || call.metadata(SECRET) !== this.#member.writer) {
      call.finish(ETCD.noLeader.code, ETCD.noLeader.text);
      return;
    }
    const taker = {
      get hasRoom() {
        return call.closed || call.writable() > 0;
      },
      take: (piece: Buffer) => call.send(piece),
    };
    const isBegun = this.copy(taker, (isWhole) => {
      if (isWhole) call.finish(GRPC_CODES.ok);
      else call.finish(ETCD.noLeader.code, ETCD.noLeader.text);
    });
    if (!isBegun) call.finish(GRPC_CODES.resourceExhausted, 'megaplane: another member is served');
  }

  /** False while another copy is made. */
  copy(
    taker: { readonly hasRoom: boolean; take(piece: Buffer): void },
    done: (isWhole: boolean) => void,
  ): boolean {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    const member = this.#member;
    const nowMs = (): number => performance.now();
    let begun: Place | null = null;
    let last: Buffer | null = null;
    const source = new StateSource(this.#store, member.epoch, nowMs, {
      get hasRoom() {
        return taker.hasRoom;
      },
      take: (piece) => {
        if (isLastPiece(piece)) last = piece;
        else taker.take(piece);
      },
    });
    member.whenPlaced((place: Place) => {
      begun = place;
      source.begin(place);
    });
    const timer = everyMs(STEP_MS, () => {
      if (begun !== null) source.step();
      const isLost = member.isEnded || (begun === null && !member.isLeader);
      // The group that it ends with may still be under way: until it stands, it is no state.
      const isWhole = source.isOver && begun !== null && member.position >= begun.position;
      if (!isWhole && !isLost) return;
      if (isLost) source.abandon();
      clearInterval(timer);
      this.#isBusy = false;
      if (!isLost && last !== null) taker.take(last);
      done(!isLost);
    });
    timer.unref();
    return true;
  }
}

/** Looks at the end of the journal for who leads; null when nobody says so. */
export async function findLeader(journal: Journal): Promise<Leader | null> {
  const end = await journal.end();
  if (end.kind !== 'end') return null;
  let from = Math.max(end.first, end.last - LOOK_ENTRIES);
  let found: Leader | null = null;
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const outcome = await journal.read(from, WAIT_MS);
    if (outcome.kind === 'trimmed') from = outcome.first;
    if (outcome.kind === 'gone') return null;
    if (outcome.kind !== 'entries') continue;
    for (const { bytes } of outcome.entries) found = leaderIn(bytes)?.leader ?? found;
    from += outcome.entries.length;
    if (found !== null && outcome.entries.length === 0) return found;
    if (found !== null && from > end.last) return found;
  }
  return found;
}
