/**
 * One holder at a time, over a Lease of coordination.k8s.io/v1, by the rules of client-go.
 *
 * Clocks of candidates need not agree: a candidate looks how long it itself has seen no change of
 * the lease, and takes over only when that is longer than the lease lasts. It counts its own pauses
 * for that, which a clock that is set forward does not shorten. The holder gives up after the
 * (shorter) renew deadline, so that it has stopped before anybody else starts.
 */
import { assert } from '@megaplane/base/assert';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Client, ClientResponse } from '../rest/client.ts';

const LEASE_DURATION_MS = 15_000;
const RENEW_DEADLINE_MS = 10_000;
const RETRY_PERIOD_MS = 2000;
/** Candidates wait up to this much longer between tries, so that they do not try in step. */
const ACQUIRE_JITTER = 1.2;

export interface LeaderElectionOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
  /** Unique among the candidates, such as `<host>_<uuid>`. */
  readonly identity: string;
  /** How long others wait after the last renewal that they saw; default 15 s. */
  readonly leaseDurationMs?: number;
  /** How long the holder tries to renew before it gives up; default 10 s. */
  readonly renewDeadlineMs?: number;
  /** Pause between tries; default 2 s. */
  readonly retryPeriodMs?: number;
  /** Called each time that leadership is won. */
  onStartedLeading(): void;
  /**
   * Called each time that leadership is lost or given back: stop all work of a leader within this
   * call. The candidate then tries again, unless `stop` was called.
   */
  onStoppedLeading(): void;
  onNewLeader?(identity: string): void;
  /** A try failed for another reason than that somebody else leads; a text for people. */
  onTrouble?(message: string): void;
}

export interface LeaderElection {
  start(): void;
  /** Gives the lease back (so that the next one need not wait) and ends. */
  stop(): Promise<void>;
  /** False from the renew deadline on, also where the process slept and nobody was told yet. */
  readonly isLeader: boolean;
  /** Identity of the holder last seen, or empty. */
  readonly leader: string;
}

/** A candidate that is not started yet. */
export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  return new Candidate(options);
}

class Candidate implements LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #collection: string;
  /** The lease as last seen, and for how long at least it has not changed since. */
  #observed: JsonObject | null = null;
  #observedSpec = '';
  #silentMs = 0;
  #reportedLeader = '';
  #isLeading = false;
  #isStopped = false;
  #isStarted = false;
  #running: Promise<void> = Promise.resolve();
  /** When the last renewal that succeeded was begun. */
  #renewedMs = 0;
  #cancelRetry: () => void = () => {};
  #cancelDeadline: () => void = () => {};

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#leaseDurationMs = options.leaseDurationMs ?? LEASE_DURATION_MS;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? RENEW_DEADLINE_MS;
    this.#retryPeriodMs = options.retryPeriodMs ?? RETRY_PERIOD_MS;
    assert(this.#leaseDurationMs > this.#renewDeadlineMs, 'lease duration > renew deadline');
    assert(this.#renewDeadlineMs > ACQUIRE_JITTER * this.#retryPeriodMs, 'deadline > retry period');
    this.#collection = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
  }

  get isLeader(): boolean {
    const { timers } = this.#options.client;
    return this.#isLeading && timers.nowMs() < this.#renewedMs + this.#renewDeadlineMs;
  }

  get leader(): string {
    return stringAt(this.#observed ?? undefined, 'spec', 'holderIdentity');
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#running = this.#round();
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelRetry();
    if (!this.#isLeading) return;
    this.#stopLeading();
    // A renewal under way would come after the release and undo it.
    await this.#running;
    const spec = objectAt(this.#observed ?? undefined, 'spec') ?? {};
    const now = microTime(this.#options.client.timers.wallMs());
    // An empty holder and one second, as upstream's candidates release a lease.
    await this.#put({
      ...spec,
      holderIdentity: '',
      leaseDurationSeconds: 1,
      renewTime: now,
      acquireTime: now,
    });
  }

  /** One try, then the next after its pause. */
  async #round(): Promise<void> {
    const { client } = this.#options;
    const startMs = client.timers.nowMs();
    const holds = await this.#tryAcquireOrRenew();
    if (this.#isStopped) return;
    this.#reportLeader();
    if (holds) {
      this.#renewedMs = startMs;
      this.#armDeadline();
      if (!this.#isLeading) {
        this.#isLeading = true;
        this.#options.onStartedLeading();
      }
    } else if (this.#isLeading && this.#isHeldByOther()) {
      this.#stopLeading();
    }
    const jitter = this.#isLeading ? 1 : 1 + client.random() * ACQUIRE_JITTER;
    const pauseMs = this.#retryPeriodMs * jitter;
    this.#cancelRetry = client.timers.after(pauseMs, () => {
      this.#silentMs += pauseMs;
      this.#running = this.#round();
    });
  }

  #armDeadline(): void {
    const { timers } = this.#options.client;
    this.#cancelDeadline();
    const leftMs = this.#renewedMs + this.#renewDeadlineMs - timers.nowMs();
    this.#cancelDeadline = timers.after(leftMs, () => {
      if (!this.#isLeading) return;
      this.#options.onTrouble?.(`could not renew the lease for ${this.#renewDeadlineMs} ms`);
      this.#stopLeading();
    });
  }

  #stopLeading(): void {
    this.#isLeading = false;
    this.#cancelDeadline();
    this.#options.onStoppedLeading();
  }

  #reportLeader(): void {
    const { leader } = this;
    if (leader === this.#reportedLeader) return;
    this.#reportedLeader = leader;
    if (leader !== '') this.#options.onNewLeader?.(leader);
  }

  #isHeldByOther(): boolean {
    return this.leader !== '' && this.leader !== this.#options.identity;
  }

  /** Whether the lease is ours after this. */
  async #tryAcquireOrRenew(): Promise<boolean> {
    const { identity } = this.#options;
    // The holder writes without reading: nobody else writes while it renews in time.
    if (this.#isLeading && this.leader === identity && (await this.#put(this.#spec()))) {
      return true;
    }
    if (!(await this.#read())) return false;
    if (this.#observed === null) return this.#create();
    const lastsMs = 1000 * numberAt(this.#observed, 'spec', 'leaseDurationSeconds');
    if (this.#isHeldByOther() && this.#silentMs < lastsMs) return false;
    return this.#put(this.#spec());
  }

  /** The spec with us as holder now. */
  #spec(): JsonObject {
    const now = microTime(this.#options.client.timers.wallMs());
    const present = objectAt(this.#observed ?? undefined, 'spec') ?? {};
    const isOurs = present['holderIdentity'] === this.#options.identity;
    const transitions = numberAt(present, 'leaseTransitions');
    return {
      ...present,
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.round(this.#leaseDurationMs / 1000),
      acquireTime: isOurs ? (present['acquireTime'] ?? now) : now,
      renewTime: now,
      leaseTransitions: this.#observed === null || isOurs ? transitions : transitions + 1,
    };
  }

  #request(method: 'GET' | 'POST' | 'PUT', body?: JsonObject): Promise<ClientResponse> {
    const { client, name } = this.#options;
    const path = method === 'POST' ? this.#collection : `${this.#collection}/${name}`;
    // A try that takes longer than the deadline is of no use to anybody.
    const timeoutMs = this.#renewDeadlineMs;
    return client.request({ method, path, timeoutMs, ...(body === undefined ? {} : { body }) });
  }

  /** False when the lease could not be read; an absent one counts as read. */
  async #read(): Promise<boolean> {
    const response = await this.#request('GET');
    if (response.ok) {
      this.#observe(response.object);
      return true;
    }
    if (response.code !== 404) {
      this.#trouble(response);
      return false;
    }
    this.#observed = null;
    this.#observedSpec = '';
    return true;
  }

  #observe(lease: JsonObject): void {
    const spec = JSON.stringify(lease['spec'] ?? {});
    if (spec !== this.#observedSpec) {
      this.#observedSpec = spec;
      this.#silentMs = 0;
    }
    this.#observed = lease;
  }

  async #create(): Promise<boolean> {
    const { name, namespace } = this.#options;
    const response = await this.#request('POST', {
      kind: 'Lease',
      apiVersion: 'coordination.k8s.io/v1',
      metadata: { name, namespace },
      spec: this.#spec(),
    });
    return this.#isWritten(response);
  }

  async #put(spec: JsonObject): Promise<boolean> {
    const response = await this.#request('PUT', { ...this.#observed, spec });
    return this.#isWritten(response);
  }

  #isWritten(response: ClientResponse): boolean {
    if (response.ok) this.#observe(response.object);
    // Somebody was faster; the next try will see who.
    else if (response.code !== 409) this.#trouble(response);
    return response.ok;
  }

  #trouble(response: ClientResponse): void {
    if (response.ok) return;
    const { namespace, name } = this.#options;
    const why = response.status.message ?? `${response.code}`;
    this.#options.onTrouble?.(`leader election by lease ${namespace}/${name}: ${why}`);
  }
}

/** RFC 3339 with six digits, as MicroTime wants it. */
function microTime(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, -1)}000Z`;
}
