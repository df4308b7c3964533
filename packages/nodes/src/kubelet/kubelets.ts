/**
 * A million kubelets as rows: each registers (somebody or `--create` made its Node), keeps its
 * Lease, and says that it is healthy when its Node does not say so yet.
 *
 * A row is a row of the informer over Nodes. What a kubelet needs to remember hangs on the row in
 * columns: the Lease's resourceVersion, the Node's uid, when the next renewal is planned, and which
 * request is under way. Timers are entries of one wheel. Nothing here is an object per node.
 *
 * A renewal that is late stays late: it is sent when its turn comes, its lateness is recorded, and
 * the next one is planned from now. After a pause of this process the renewals that came due are
 * paced at `CATCH_UP_FACTOR` times the usual rate, so that a stall here is no storm elsewhere.
 * Otherwise each node keeps its turn within the period, whatever the jitter: a day later renewals
 * are as evenly spread, and in the same order, as in the first minute.
 * Intervals are measured by a clock that nobody sets; stamps are told by that of the machine.
 */
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { resourceVersionOf } from '@megaplane/machinery/scan';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { TimerWheel } from '@megaplane/base/wheel';
import {
  CHANGED,
  KubeletColumns,
  LOOK,
  NO_ADDRESS,
  NO_CAPACITY,
  NO_PORT,
  READY,
} from './kubelet-columns.ts';
import { LeaseWriter } from '../lease/lease-bytes.ts';
import { LeaseContention } from '../lease/lease-contention.ts';
import { LeaseExtras } from '../lease/lease-extras.ts';
import { holderOf, LEASE_PATH, leaseBody, microTime, secondTime } from '../lease/lease-object.ts';
import { RenewTimes } from '../lease/renew-times.ts';
import { isUp, turnMs } from '../chaos/fault.ts';
import { statusPatch } from './node-status.ts';
import type { PodNetwork } from '../pod/pod-addresses.ts';
import * as nodeScan from './node-scan.ts';
import type { KubeletsOptions } from './kubelets-options.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

/** A renewal every quarter of the lease's duration, as kubelets do. */
export const RENEWALS_PER_DURATION = 4;
/** Each period is longer or shorter by a random part of up to this, so that nothing is in step. */
export const JITTER_FACTOR = 0.02;
/**
 * Nodes whose rows follow each other renew one after the other; so many of them fill a period. What
 * a renewal touches then lies beside what the one before has touched, here and in the server, which
 * keeps leases in the order in which they come.
 */
const TURN_ROWS = 4096;
/** After a stall renewals go out at most so many times as fast as in steady state. */
export const CATCH_UP_FACTOR = 2;
/** A longer pause counts as one of so long: what came due in it goes out over time. */
const STALL_MS = 1000;
/** Leases that nobody has renewed in time go out within this part of a period, if paces allow. */
const OVERDUE_SPREAD = 0.25;
/** What is late by more than this part of a period was kept back by an outage. */
const OUTAGE = 0.25;
/** In the column of turns: the lease was somebody else's, its turn is drawn after a renewal. */
const NO_TURN = -1;
/** Requests in flight while nodes are registered. */
const WHILE_REGISTERING_MAX = 1000;
/** First and longest pause after a request about a lease that failed. */
export const RETRY_MS_MIN = 200;
export const RETRY_MS_MAX = 7000;
/** Nodes whose port is another one (of a start before this) are told within this time. */
export const STALE_SPREAD_MS = 30_000;
/** Of so many nodes one each millisecond at most is told. */
const STALE_SPREAD_ROWS = 1;
/** Conditions are sent again at this period although nothing changed, stretched by a sixtieth. */
export const STATUS_PERIOD_MS = 600_000;
/** The same for a real kubelet (nodeStatusReportFrequency). */
export const KUBELET_STATUS_MS = 300_000;

/** Renewals that go out together when answers made room for them: fewer writes, fewer turns. */
const REFILL_MIN = 500;

/** See the head of the file. Give `handler` to the informer over Nodes, call `tick` often. */
export class Kubelets {
  readonly handler: InformerHandler;
  readonly #client: Client;
  readonly #options: KubeletsOptions;
  readonly #columns: KubeletColumns = new KubeletColumns();
  readonly #leases: TimerWheel;
  readonly #heartbeats: TimerWheel;
  readonly #scan: ObjectScan = new ObjectScan();
  readonly #status = new nodeScan.StatusScan();
  readonly #writer: LeaseWriter;
  readonly #times: RenewTimes;
  readonly #contention: LeaseContention;
  readonly #extras = new LeaseExtras();
  /** With a common holder: rows whose lease was found to be free, until it is written. */
  readonly #claimed: Set<number> = new Set();
  /** Rows whose lease somebody else renews: left alone until that lease runs out. */
  readonly #left: Set<number> = new Set();
  readonly #periodMs: number;
  #lastTickMs: number;
  #rows = 0;
  #isRenewing = false;
  /** What this tick may still send, and whether more was due than had room. */
  #renewalsAllowed = 0;
  #isBehind = false;
  /** Time of the renewals that go out now; '' while none do. */
  #stamp = '';
  /** Others say what there is to say of nodes; only leases are kept. */
  #isRetired = false;
  #isStopped = false;

  constructor(options: KubeletsOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#writer = new LeaseWriter(options.leaseDurationSeconds, options.holder);
    this.#periodMs = (options.leaseDurationSeconds * 1000) / RENEWALS_PER_DURATION;
    this.#times = new RenewTimes(options.clock);
    this.#contention = new LeaseContention(Math.max(1000, this.#periodMs), (conflicts) =>
      options.onTrouble?.(
        `${conflicts} of ${this.#rows} leases are renewed by somebody else, too: ` +
          'is there another simulator of these nodes, or with this --shard?',
      ),
    );
    const nowMs = options.clock.steadyMs();
    this.#lastTickMs = nowMs;
    this.#leases = new TimerWheel({ startMs: nowMs });
    this.#heartbeats = new TimerWheel({ startMs: nowMs });
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => this.#onNode(id, isNew, bytes, start, end),
      onDelete: (id) => this.#onGone(id),
    };
  }

  /**
   * Of all leases that exist from before: renewals are later than each of them. When this one is to
   * be renewed, by its own time.
   */
  observe(bytes: Uint8Array, start: number, end: number): number {
    const renewedMs = this.#times.observe(bytes, start, end);
    const agoMs = Number.isNaN(renewedMs) ? Infinity : this.#options.clock.wallMs() - renewedMs;
    return this.#nowMs() + Math.min(this.#periodMs, this.#periodMs - agoMs);
  }

  /**
   * Tells the version of a lease that exists from before, so that it can be renewed when it is due,
   * at once if its simulator is gone; with a common holder it is looked at first, for another one
   * may hold it. Without `dueMs` it gets a turn somewhere in the period.
   */
  adopt(id: number, resourceVersion: number, dueMs: number = NaN, isHeld = false): void {
    const isDue = !Number.isNaN(dueMs);
    this.#columns.leaseVersion.set(id, resourceVersion);
    this.#columns.plannedMs.set(id, isDue ? dueMs : 0);
    this.#columns.turnMs.set(id, isDue ? NO_TURN : 0);
    if (this.#options.holder !== '') this.#columns.mark(id, LOOK, !isHeld);
  }

  /** A lease that exists from before, as the server has it: what others wrote into it stays. */
  keep(id: number, bytes: Uint8Array, start: number, end: number): void {
    this.#extras.note(id, bytes, start, end);
  }

  /**
   * Whether the node is ours to play. With a common holder only while its lease is, as with kwok:
   * of several simulators one plays it.
   */
  isHeld(id: number): boolean {
    if (this.#left.has(id)) return false;
    if (this.#options.holder === '' || this.#periodMs === 0) return true;
    const isKnown = this.#columns.leaseVersion.get(id) > 0 && !this.#columns.has(id, LOOK);
    return isKnown && !this.#claimed.has(id);
  }

  #onTaken(id: number): void {
    if (this.#options.keepsStatus()) this.#heartbeats.arm(id, this.#nowMs());
    this.#options.onHeld?.(id);
  }

  /** How long somebody else still holds the lease; 0: it is ours, or may be taken. */
  #heldForMs(id: number, bytes: Uint8Array, start: number, end: number): number {
    const own = this.#options.holder;
    const isLeft = this.#left.has(id);
    if (own === '' && !isLeft) return 0;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
    const { holder, transitions, untilMs } = holderOf(parseJson(text) as JsonObject);
    const isOther = isLeft || (holder !== '' && holder !== own);
    if (own === '') return Math.max(0, untilMs - this.#options.clock.wallMs());
    // as kwok: from nobody to us is a transition, too
    const isNew = holder !== own;
    this.#columns.transitions.set(id, Math.min(65_535, transitions + (isNew ? 1 : 0)));
    return isOther ? Math.max(0, untilMs - this.#options.clock.wallMs()) : 0;
  }

  /** Uid of the Node at a row. */
  uidOf(id: number): string {
    return this.#columns.uid.text(id);
  }

  /** Addresses of the node at a row: the first one, and the first of the other family. */
  addressesOf(id: number): readonly string[] {
    return this.#columns.hosts.get(id);
  }

  /** Networks of the pods of the node at a row. */
  networksOf(id: number): readonly PodNetwork[] {
    return this.#columns.networksOf(id);
  }

  /** Begins to renew: rows seen so far are spread over one period, later ones come as they come. */
  start(idLimit: number, has: (id: number) => boolean): void {
    this.#isRenewing = this.#periodMs > 0;
    if (!this.#isRenewing) return;
    const nowMs = this.#nowMs();
    for (let id = 0; id < idLimit; id++) if (has(id)) this.#planFirst(id, nowMs);
  }

  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** The version of the lease that was written last; 0: none is known. */
  leaseVersionOf(id: number): number {
    return this.#columns.leaseVersion.get(id);
  }

  /** The Node's condition Ready was True when it was seen last. */
  isReady(id: number): boolean {
    return this.#columns.has(id, READY);
  }

  /** When its next renewal is planned. */
  leaseDueMs(id: number): number {
    return this.#columns.plannedMs.get(id);
  }

  /** The nodes of these rows are somebody else's from now on. */
  leave(idLimit: number, isLeft: (id: number) => boolean): void {
    for (let id = 0; id < idLimit; id++) {
      if (!isLeft(id)) continue;
      this.#leases.cancel(id);
      this.#heartbeats.cancel(id);
      // an answer that is under way plans nothing
      this.#columns.retire(id);
    }
  }

  /** Keeps leases and does nothing else, until those who come next have read what there is. */
  retire(): void {
    this.#isRetired = true;
  }

  /** The fault of a row has begun, or is over. */
  onFault(id: number): void {
    if (this.#columns.idOf(this.#columns.tagOf(id)) < 0) return;
    const fault = this.#options.faultOf(id);
    const nowMs = this.#nowMs();
    if (fault?.kind === 'down') {
      this.#leases.cancel(id);
      this.#heartbeats.cancel(id);
      return;
    }
    // machines that come back do so within the next period, not in one moment
    if (this.#isRenewing) this.#planAnywhere(id, nowMs);
    const isStaged = !this.#options.keepsStatus();
    if (!isStaged) this.#heartbeats.arm(id, nowMs + this.#client.random() * this.#periodMs);
  }

  #isDown(id: number): boolean {
    return this.#options.faultOf(id)?.kind === 'down';
  }

  /** Sends nothing any more; answers that are under way change nothing. */
  stop(): void {
    this.#isRenewing = false;
    this.#isStopped = true;
  }

  /** Sends what is due. Call it every few milliseconds. */
  tick(): void {
    if (this.#isStopped) return;
    const nowMs = this.#nowMs();
    const elapsedMs = Math.max(0, nowMs - this.#lastTickMs);
    this.#lastTickMs = nowMs;
    const usual = (this.#rows * Math.min(elapsedMs, STALL_MS)) / Math.max(STALL_MS, this.#periodMs);
    const paced = Math.ceil(usual * CATCH_UP_FACTOR) + 1;
    this.#renewalsAllowed = paced;
    this.#renewDue(nowMs);
    this.#contention.tick(nowMs, this.#rows);
    const room = this.#isRetired ? 0 : Math.min(this.#client.room(), paced);
    if (room > 0) this.#heartbeats.advance(nowMs, (id) => this.#heartbeat(id), room);
  }

  /** Renews what is due, as far as there is room for it and this tick may. */
  #renewDue(nowMs: number): void {
    const renewalsMax = Math.min(this.#renewalRoom(), this.#renewalsAllowed);
    if (renewalsMax <= 0) return;
    this.#stamp = microTime(this.#times.next());
    const renewed = this.#leases.advance(nowMs, (id) => this.#renew(id), renewalsMax);
    this.#stamp = '';
    this.#renewalsAllowed -= renewed;
    this.#isBehind = renewed === renewalsMax;
  }

  /**
   * While nodes are registered that comes first: renewals, if all may be in flight, leave a server
   * that is full no time for it.
   */
  #renewalRoom(): number {
    const room = this.#client.room();
    if (!this.#options.isRegistering()) return room;
    const { requestsInFlight, requestsQueued } = this.#client.metrics;
    return Math.min(room, WHILE_REGISTERING_MAX - requestsInFlight - requestsQueued);
  }

  #nowMs(): number {
    return this.#options.clock.steadyMs();
  }

  #onNode(id: number, isNew: boolean, bytes: Uint8Array, start: number, end: number): void {
    const columns = this.#columns;
    if (this.#isRetired) return;
    if (isNew) {
      columns.reset(id);
      this.#extras.forget(id);
      this.#claimed.delete(id);
      this.#left.delete(id);
      this.#contention.forget(id);
      this.#options.metrics.nodes = ++this.#rows;
    }
    this.#scan.scan(bytes, start, end);
    columns.uid.set(id, bytes, this.#scan.uidStart, this.#scan.uidEnd);
    const { statusStart, statusEnd } = this.#scan;
    const status = this.#status;
    status.scan(bytes, statusStart, statusEnd);
    columns.hosts.set(id, nodeScan.hostAddresses(bytes, status.addresses, statusEnd));
    columns.setNetworks(id, nodeScan.podCidrs(bytes, this.#scan.specStart, this.#scan.specEnd));
    const nowReady = nodeScan.isReady(bytes, status.conditions, statusEnd);
    const { metrics } = this.#options;
    if (nowReady !== columns.has(id, READY)) {
      columns.mark(id, READY, nowReady);
      metrics.nodesReady += nowReady ? 1 : -1;
    }
    const { port } = this.#options.endpoint;
    const isStale = port > 0 && status.port !== port;
    const hasAddress = nodeScan.hasInternalAddress(bytes, status.addresses, statusEnd);
    columns.mark(id, NO_PORT, isStale);
    columns.mark(id, NO_ADDRESS, !hasAddress);
    columns.mark(id, NO_CAPACITY, !status.hasAllocatable);
    this.#planStatus(id, isNew, nowReady, isStale);
    if (!isNew) return;
    if (this.#isRenewing) this.#planFirst(id, this.#nowMs());
    this.#options.onNode(id);
  }

  #planStatus(id: number, isNew: boolean, nowReady: boolean, isStale: boolean): void {
    const isLeaving = this.#scan.deletionTimestampStart >= 0;
    if (!this.#options.keepsStatus()) this.#heartbeats.cancel(id);
    else if (this.#options.faultOf(id) !== null) {
      if (isNew) this.#heartbeats.arm(id, this.#nowMs());
    } else if (!nowReady && !isLeaving) this.#heartbeats.arm(id, this.#nowMs());
    else if (isNew && isStale && !isLeaving) {
      // so many are stale at once only after a restart: then there is time
      const spreadMs = Math.min(STALE_SPREAD_MS, this.#rows * STALE_SPREAD_ROWS);
      this.#heartbeats.arm(id, this.#nowMs() + this.#client.random() * spreadMs);
    } else if (isNew) this.#planHeartbeat(id, true);
  }

  #onGone(id: number): void {
    if (this.#isRetired) return this.leave(id + 1, (row) => row === id);
    if (this.#columns.has(id, READY)) this.#options.metrics.nodesReady--;
    this.#columns.retire(id);
    this.#leases.cancel(id);
    this.#heartbeats.cancel(id);
    this.#rows--;
    this.#options.metrics.nodes = this.#rows;
  }

  /** A lease that is not there yet is made at once; one from before waits for its turn. */
  #planFirst(id: number, nowMs: number): void {
    const { leaseVersion, plannedMs, turnMs } = this.#columns;
    const soonMs = nowMs + this.#client.random() * OVERDUE_SPREAD * this.#periodMs;
    if (turnMs.get(id) === NO_TURN) this.#arm(id, Math.max(plannedMs.get(id), soonMs));
    else if (leaseVersion.get(id) > 0) this.#planAnywhere(id, nowMs);
    else if (this.#client.room() > 0) this.#renew(id);
    else this.#plan(id, nowMs, 0);
  }

  /** Somewhere in the next period: what came up together must not renew together. */
  #planAnywhere(id: number, nowMs: number): void {
    const periodMs = this.#periodMs;
    const isInTurn = id >= TURN_ROWS;
    const turn = isInTurn ? (id % TURN_ROWS) / TURN_ROWS : this.#client.random();
    const aheadMs = (turn * periodMs - (nowMs % periodMs) + periodMs) % periodMs;
    this.#plan(id, nowMs + aheadMs, 0);
  }

  #plan(id: number, turnMs: number, jitterMs: number): void {
    this.#columns.turnMs.set(id, turnMs);
    this.#arm(id, turnMs + jitterMs);
  }

  #arm(id: number, dueMs: number): void {
    this.#columns.plannedMs.set(id, dueMs);
    this.#leases.arm(id, dueMs);
  }

  /**
   * A period after the last turn; what was late rests as long as the shortest period. After an
   * outage all are late by much: they get turns anew, or they would renew in step for ever.
   */
  #planNext(id: number, nowMs: number): void {
    const periodMs = this.#periodMs;
    if (this.#columns.turnMs.get(id) === NO_TURN) return this.#planAnywhere(id, nowMs);
    const lateMs = nowMs - this.#columns.plannedMs.get(id);
    if (lateMs > OUTAGE * periodMs) return this.#planAnywhere(id, nowMs + periodMs / 2);
    const soonestMs = nowMs + periodMs * (1 - JITTER_FACTOR);
    const turnMs = Math.max(this.#columns.turnMs.get(id) + periodMs, soonestMs);
    this.#plan(id, turnMs, this.#client.random() * JITTER_FACTOR * periodMs);
  }

  /**
   * When the status is told next though nothing has changed. After a change that is half a period
   * sooner or later, as kubelets have it: what changed together must not tell it together for ever.
   */
  #planHeartbeat(id: number, isChange: boolean): void {
    const random = this.#client.random();
    const factor = isChange ? 0.5 + random : 1 + random / 60;
    this.#heartbeats.arm(id, this.#nowMs() + this.#options.statusPeriodMs * factor);
  }

  #heartbeat(id: number): void {
    if (this.#isDown(id) || !this.isHeld(id)) return;
    if (!this.#options.readsStatus) return this.#tellStatus(id);
    const path = `/api/v1/nodes/${this.#options.nameOf(id)}?resourceVersion=0`;
    this.#options.metrics.called('status');
    if (this.#client.send('GET', path, '', null, this.#onRead, this.#columns.tagOf(id))) return;
    this.#heartbeats.arm(id, this.#nowMs() + RETRY_MS_MIN);
  }

  readonly #onRead = (_s: number, _b: Uint8Array, _f: number, _e: number, tag: number): void => {
    const id = this.#columns.idOf(tag);
    // whatever was read: the status is told, and a failure of that is seen then
    if (id >= 0) this.#tellStatus(id);
  };

  #tellStatus(id: number): void {
    const columns = this.#columns;
    const name = this.#options.nameOf(id);
    const lacks = {
      address: columns.has(id, NO_ADDRESS),
      capacity: columns.has(id, NO_CAPACITY),
      port: columns.has(id, NO_PORT),
    };
    const wallMs = this.#options.clock.wallMs();
    const now = secondTime(wallMs);
    const fault = this.#options.faultOf(id);
    const isReady = fault === null || isUp(fault, name, wallMs);
    const isChange = fault !== null || lacks.port || !columns.has(id, READY);
    columns.mark(id, CHANGED, isChange);
    const patch = statusPatch(name, now, lacks, this.#options.endpoint, isReady);
    const body = JSON.stringify(patch);
    const path = `/api/v1/nodes/${name}/status`;
    const tag = columns.tagOf(id);
    const isTaken = this.#client.send(
      'PATCH',
      path,
      CONTENT.strategicPatch,
      body,
      this.#onBeat,
      tag,
    );
    if (!isTaken) this.#heartbeats.arm(id, this.#nowMs() + RETRY_MS_MIN);
  }

  readonly #onBeat = (
    status: number,
    _b: Uint8Array,
    _s: number,
    _e: number,
    tag: number,
  ): void => {
    const id = this.#columns.idOf(tag);
    if (id < 0) return;
    const fault = this.#options.faultOf(id);
    const nowMs = this.#nowMs();
    if (status === 200) {
      if (fault === null) this.#planHeartbeat(id, this.#columns.has(id, CHANGED));
      else {
        const wallMs = this.#options.clock.wallMs();
        this.#heartbeats.arm(id, nowMs + turnMs(fault, this.#options.nameOf(id), wallMs));
      }
    } else {
      this.#options.metrics.errors++;
      this.#heartbeats.arm(id, this.#nowMs() + RETRY_MS_MAX * (1 + this.#client.random()));
    }
  };

  /** Sends the request that the lease of a row needs next: a creation, a look, or a renewal. */
  #renew(id: number): void {
    if (this.#isDown(id)) return;
    const columns = this.#columns;
    const name = this.#options.nameOf(id);
    const tag = columns.tagOf(id);
    let isTaken: boolean;
    if (columns.has(id, LOOK)) {
      isTaken = this.#client.send('GET', `${LEASE_PATH}/${name}`, '', null, this.#onLease, tag);
    } else {
      const version = columns.leaseVersion.get(id);
      const body = this.#leaseOf(id, name, version);
      const method = version === 0 ? 'POST' : 'PUT';
      const path = version === 0 ? LEASE_PATH : `${LEASE_PATH}/${name}`;
      isTaken = this.#client.send(method, path, CONTENT.json, body, this.#onLease, tag);
    }
    if (!isTaken) this.#leases.arm(id, this.#nowMs() + 1);
  }

  /** The Lease as it is sent: bytes in a template where that can hold it, else a text. */
  #leaseOf(id: number, name: string, version: number): Uint8Array | string {
    const columns = this.#columns;
    const { leaseDurationSeconds, holder } = this.#options;
    const time = this.#stamp || microTime(this.#times.next());
    const transitions = columns.transitions.get(id);
    const isPlain = version > 0 && transitions === 0 && !this.#extras.has(id);
    const bytes = isPlain ? this.#writer.write(name, columns.uid, id, version, time) : null;
    if (bytes !== null) return bytes;
    const uid = columns.uid.text(id);
    const own = holder === '' ? name : holder;
    const body = leaseBody(name, uid, version, leaseDurationSeconds, time, own, transitions);
    return version > 0 ? this.#extras.merged(id, body) : body;
  }

  readonly #onLease = (
    status: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    tag: number,
  ): void => {
    const columns = this.#columns;
    const id = columns.idOf(tag);
    if (id < 0) return;
    const nowMs = this.#nowMs();
    if (status !== 200 && status !== 201) {
      this.#onLeaseFailure(id, status, nowMs);
      return;
    }
    columns.leaseVersion.set(id, resourceVersionOf(bytes, start, end));
    if (columns.has(id, LOOK)) {
      this.#times.observe(bytes, start, end);
      this.#extras.note(id, bytes, start, end);
      const heldMs = this.#heldForMs(id, bytes, start, end);
      columns.mark(id, LOOK, heldMs > 0);
      const isOwn = this.#options.holder !== '' || this.#left.has(id);
      if (heldMs === 0 && isOwn) this.#claimed.add(id);
      this.#leases.arm(id, nowMs + heldMs);
      return;
    }
    columns.failures.set(id, 0);
    const isTaken = this.#left.delete(id) || this.#options.holder !== '';
    if (isTaken && (this.#claimed.delete(id) || status === 201)) this.#onTaken(id);
    if (status === 201) {
      this.#options.metrics.leasesCreated++;
      this.#planAnywhere(id, nowMs);
    } else {
      this.#options.metrics.renewed(nowMs - columns.plannedMs.get(id));
      this.#planNext(id, nowMs);
      if (this.#isBehind && this.#renewalRoom() >= REFILL_MIN) this.#renewDue(nowMs);
    }
  };

  /** 404: gone, make it anew; 409: changed or there already, look and repeat at once. */
  #onLeaseFailure(id: number, status: number, nowMs: number): void {
    const columns = this.#columns;
    if (status === 404) {
      columns.leaseVersion.set(id, 0);
      columns.mark(id, LOOK, false);
      this.#extras.forget(id);
      this.#claimed.delete(id);
    } else if (status === 409) {
      this.#options.metrics.conflicts++;
      this.#claimed.delete(id);
      // somebody else renews it, so he keeps the node, as another holder does
      if (this.#contention.conflict(id, nowMs)) {
        if (!this.#left.has(id)) this.#options.onLeft?.(id);
        this.#left.add(id);
      }
      columns.mark(id, LOOK, true);
    } else {
      this.#options.metrics.errors++;
    }
    const failures = columns.failures.get(id);
    columns.failures.set(id, Math.min(failures + 1, 250));
    const isFirst = failures === 0 && (status === 404 || status === 409);
    const random = this.#client.random();
    const grownMs = RETRY_MS_MIN * 2 ** Math.min(failures, 10) * (0.5 + random);
    // what the server wishes, as far as a lease can wait
    const wishedMs = this.#client.retryAfterSeconds * 1000 * (1 + random);
    const pauseMs = Math.min(RETRY_MS_MAX * (0.5 + random), Math.max(grownMs, wishedMs));
    this.#leases.arm(id, isFirst ? nowMs : nowMs + pauseMs);
  }
}
