/** Where calls are worked on: at this member, or at the one that leads its group. */
import type { GrpcCallFactory, InPlaceCall, InPlaceHandler } from '@megaplane/wire/grpc';

export interface Router {
  /** Serves a unary call: by `here`, now or later, or by another member. */
  unary(
    path: string,
    here: InPlaceHandler,
    bytes: Buffer,
    start: number,
    end: number,
    out: Buffer,
    offset: number,
    call: InPlaceCall,
  ): number;
  /** Serves a call of any other shape. */
  stream(path: string, here: GrpcCallFactory): GrpcCallFactory;
}

/** A member of a group, as clients are told of it. */
export interface MemberInfo {
  /** Eight bytes. */
  readonly id: Buffer;
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly peerUrls: readonly string[];
}

/** What a member knows of its group. */
export interface GroupView {
  readonly isLeader: boolean;
  readonly hasLeader: boolean;
  readonly leaderChanges: number;
  /** Entries of the journal that this member has applied. */
  readonly position: number;
  /** Null without one. */
  leaderId(): Buffer | null;
  members(): readonly MemberInfo[];
  /** Takes a member off the list; false when it is not there. */
  remove(id: Buffer): boolean;
  /** Hands over; false when there is no such member. `done` is told whether somebody else leads. */
  moveTo(id: Buffer, done: (isMoved: boolean) => void): boolean;
}
