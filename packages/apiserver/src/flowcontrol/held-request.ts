/** A request on its way through priority and fairness, and where it goes. */
import type { Owner } from '@megaplane/base/deferred';
import { shareOfPeer } from '@megaplane/wire/body-budget';
import type { BodyShare, Exchange } from '@megaplane/wire/exchange';
import { ANONYMOUS, type Identity } from '../request/identity.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { FlowSeries } from './flow-metrics.ts';
import type { FlowSchema } from './flow-table.ts';
import type { PriorityLevel } from './priority-level.ts';

/** Where the requests of one schema go. */
export interface Route {
  readonly schema: FlowSchema;
  readonly level: PriorityLevel<Held>;
  readonly series: FlowSeries;
  /** Header fields that tell clients which schema and level that is. */
  readonly fields: readonly string[];
}

/** Who waits for a turn: a `Call`, or a renewal of a lease, of which less is known. */
export interface Waiter extends Owner {
  readonly exchange: Exchange;
  readonly identity: Identity;
  readonly info: RequestInfo;
  /** When it came, in milliseconds since 1970. */
  readonly nowMs: number;
  /** How long its client waits, in milliseconds; 0 where it does not say. */
  readonly timeoutMs: number;
  /** Code of its answer, 0 until it is given. */
  readonly code: number;
  /** Told how long it has waited where it has. */
  noteOthers?(name: string, ms: number, isShared: boolean): void;
  /** Told once, when it needs the server no longer. */
  onDone: (() => void) | null;
  /** Ends it, if nothing has yet. */
  done(): void;
  keepBody(): void;
  sendText(code: number, text: string, fields?: readonly string[]): void;
}

/** What it asks, and what to do when its time has come. */
export interface Held {
  readonly waiter: Waiter;
  /** As authorizers see it. */
  readonly verb: string;
  readonly route: Route;
  readonly distinguisher: string;
  /** What it costs while it waits. */
  readonly bytes: number;
  readonly run: () => void;
  /** Whose share of the memory of what waits it holds; null: it has not waited. */
  share: BodyShare | null;
  /** Its run has returned to us, and the answer goes on. */
  isLingering: boolean;
  isOver: boolean;
}

/** Accounts of a namespace are made by who may make them there: they share. */
const ACCOUNTS = /^system:serviceaccount:[^:]*:/;

/** Whose memory the body of a request is, and what it holds while it waits. */
export function shareOf(exchange: Exchange, identity: Identity): BodyShare {
  if (identity === ANONYMOUS) return shareOfPeer(exchange.connection, true);
  return { name: ACCOUNTS.exec(identity.user)?.[0] ?? identity.user, isStranger: false };
}
