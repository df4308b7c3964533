/**
 * The sessions of clusters with a shard: who may speak for which cluster, and who is heard.
 *
 *     greeting   the stream is open, Hello has not come
 *     serving    it speaks for a cluster; a newer session for the cluster takes its place
 *     gone       closed by us or by the peer; what still comes counts for nothing
 */
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCode } from '@megaplane/wire/grpc';
import type { Identity } from '../contract/identity.ts';
import type { Hello } from '../contract/tables/shard.ts';
import type { Counts } from './counts.ts';
import type { Effects, ShardPayload } from './effects.ts';

export const SESSIONS_MAX = 10_000;
/** A stream that says nothing for so long is closed. */
export const HELLO_MS_MAX = 30_000;
export const CLUSTER_ID_BYTES_MAX = 253;

interface Greeting {
  readonly kind: 'greeting';
  readonly identity: Identity;
  readonly deadlineMs: number;
}

type Session =
  | Greeting
  | { readonly kind: 'serving'; readonly identity: Identity; cluster: string };

export class Sessions {
  readonly #effects: Effects;
  readonly #counts: Counts;
  readonly #all = new Map<number, Session>();
  readonly #byCluster = new Map<string, number>();

  constructor(effects: Effects, counts: Counts) {
    this.#effects = effects;
    this.#counts = counts;
  }

  /** Clusters that have a session. */
  get clusters(): number {
    return this.#byCluster.size;
  }

  /** When `tick` has something to do; Infinity for never. */
  get wakeMs(): number {
    let wakeMs = Infinity;
    for (const session of this.#all.values()) {
      if (session.kind === 'greeting') wakeMs = Math.min(wakeMs, session.deadlineMs);
    }
    return wakeMs;
  }

  opened(number: number, identity: Identity, nowMs: number): void {
    this.#all.set(number, { kind: 'greeting', identity, deadlineMs: nowMs + HELLO_MS_MAX });
    if (this.#all.size > SESSIONS_MAX) {
      this.close(number, GRPC_CODES.resourceExhausted, `there are ${SESSIONS_MAX} sessions`);
    }
  }

  /** The cluster that a session speaks for; undefined if it speaks for none any more. */
  clusterOf(number: number): string | undefined {
    const session = this.#all.get(number);
    return session?.kind === 'serving' ? session.cluster : undefined;
  }

  isThere(number: number): boolean {
    return this.#all.has(number);
  }

  has(cluster: string): boolean {
    return this.#byCluster.has(cluster);
  }

  /** True if the session speaks for the cluster from now on, where it did not before. */
  hello(number: number, { clusterId }: Hello): 'begun' | 'again' | 'refused' {
    const session = this.#all.get(number);
    if (session === undefined) return 'refused';
    const refusal = this.#refusal(session, clusterId);
    if (refusal !== undefined) {
      this.close(number, refusal[0], refusal[1]);
      return 'refused';
    }
    if (session.kind === 'serving') return 'again';
    const older = this.#byCluster.get(clusterId);
    if (older !== undefined) {
      this.#counts.sessions.add(1, 'replaced');
      this.#effects.log(
        'warn',
        `cluster ${clusterId} has a newer session: are there two operators?`,
      );
      this.close(older, GRPC_CODES.aborted, 'a newer session speaks for this cluster');
    }
    this.#all.set(number, { kind: 'serving', identity: session.identity, cluster: clusterId });
    this.#byCluster.set(clusterId, number);
    this.#counts.sessions.add(1, 'opened');
    return 'begun';
  }

  #refusal(session: Session, clusterId: string): readonly [GrpcCode, string] | undefined {
    const { invalidArgument, permissionDenied } = GRPC_CODES;
    if (clusterId === '') return [invalidArgument, 'cluster_id is empty'];
    if (Buffer.byteLength(clusterId) > CLUSTER_ID_BYTES_MAX) {
      return [invalidArgument, `cluster_id is longer than ${CLUSTER_ID_BYTES_MAX} bytes`];
    }
    if (session.kind === 'serving' && session.cluster !== clusterId) {
      return [invalidArgument, 'a session speaks for one cluster'];
    }
    const { identity } = session;
    if (identity === undefined || identity === `bigfleet://cluster/${clusterId}`) return undefined;
    this.#counts.identityRejected++;
    return [permissionDenied, 'the certificate is not of this cluster'];
  }

  /** Ends a session from our side. */
  close(number: number, code: GrpcCode, message: string): void {
    if (this.#forget(number)) this.#effects.push({ kind: 'close', session: number, code, message });
  }

  /** The peer is gone. Answers the cluster that has no session now, if it had one. */
  closed(number: number): string | undefined {
    const cluster = this.clusterOf(number);
    if (this.#forget(number) && cluster !== undefined) this.#counts.sessions.add(1, 'closed');
    return cluster;
  }

  /** A successor is never taken for the one that it replaced. */
  #forget(number: number): boolean {
    const cluster = this.clusterOf(number);
    if (cluster !== undefined && this.#byCluster.get(cluster) === number) {
      this.#byCluster.delete(cluster);
    }
    return this.#all.delete(number);
  }

  /** False if nobody is there to hear it. */
  send(cluster: string, payload: ShardPayload): boolean {
    const session = this.#byCluster.get(cluster);
    if (session === undefined) return false;
    this.#effects.push({ kind: 'send', session, payload });
    return true;
  }

  tick(nowMs: number): void {
    for (const [number, session] of this.#all) {
      if (session.kind !== 'greeting' || session.deadlineMs > nowMs) continue;
      this.close(number, GRPC_CODES.deadlineExceeded, 'no Hello came');
    }
  }
}
