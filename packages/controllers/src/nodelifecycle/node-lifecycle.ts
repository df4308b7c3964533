// data plane
/**
 * The node lifecycle controller as a machine: signs of life and passes go in, effects come out.
 *
 * Nodes are judged by *observed* time, which does not run while this program was not looking: a
 * pass that comes late moves observed time on by one period only, and while the view of the
 * cluster is not trusted it stands still. So a stall of our own never makes a node look dead. And
 * before a node is marked, it is read once more from the server (`confirm`); if the server answers
 * none of these reads for a while, it stalls, and then all nodes get their whole grace again, as
 * with each later reading that fails: until one is answered, each pass asks for one. So it does,
 * too, where no node at all was heard from for a while, so that a stall is known before anybody's
 * grace is over.
 *
 * What remains is real: nodes that are silent while the server answers promptly. If that is all of
 * them, no taint NoExecute is set and those set before are taken away (full disruption).
 */
import { assert } from '@megaplane/base/assert';
import {
  conditionIn,
  EXISTS,
  KUBELET_CONDITIONS_MASK,
  LABELS_DIFFER,
  NO_EXECUTE_NOT_READY,
  NO_EXECUTE_UNREACHABLE,
  NO_SCHEDULE_MASK,
  SCANNED_MASK,
  UNSCHEDULABLE,
  TRUE,
  FALSE,
  UNKNOWN,
  wantedNoSchedule,
} from '../columns/node-flags.ts';
import type { NodeScan } from '../columns/node-scan.ts';
import type { NodeTable } from '../columns/node-table.ts';
import { evictionRateOf, Zone, zoneStateOf, type ZoneRules } from './zones.ts';

/** Work under way for a node; at most one of each kind. */
const CONFIRMING = 1 << 24;
const TAINTING = 1 << 25;
const QUEUED = 1 << 26;
const LABELLING = 1 << 27;
/** No pass has met the node yet. */
const UNMET = 1 << 28;

/** All four conditions of the kubelet are Unknown. */
const ALL_UNKNOWN = KUBELET_CONDITIONS_MASK;
/**
 * A node of which nothing is wanted: Ready is True, no other condition is True or Unknown (their
 * low bits), no taint of ours, nothing under way. Most nodes are so; a pass costs them one test.
 */
const QUIET_MASK: number =
  0b01_01_01_01_11 |
  NO_SCHEDULE_MASK |
  NO_EXECUTE_NOT_READY |
  NO_EXECUTE_UNREACHABLE |
  UNSCHEDULABLE |
  LABELS_DIFFER |
  QUEUED |
  UNMET;
const QUIET: number = TRUE;
/** A server that was asked by `confirm` and answered nothing for longer stalls. */
export const CONFIRM_MS_MAX = 2_000;
/** After so much of the grace without a sign of life of any node, a pass asks for one answer. */
const QUIET_SHARE_MAX = 0.25;
/** A pass may be late by this much before the delay counts as a stall. */
const LATENESS_MS_MAX = 1_000;
const ZONES_MAX = 65_536;

export interface LifecycleRules extends ZoneRules {
  readonly periodMs: number;
  readonly graceMs: number;
  readonly startupGraceMs: number;
}

/** What should happen; ids are rows of the node table. Each is answered by a call. */
export interface LifecycleEffects {
  /** Read the node and its lease from the server, then call `confirmed`. */
  confirm(id: number): void;
  /** Make the NoSchedule taints of conditions as wanted, then call `tainted`. */
  syncNoSchedule(id: number): void;
  /** Set the NoExecute taint of the node's state, or take both away, then call `tainted`. */
  syncNoExecute(id: number, taint: 'not-ready' | 'unreachable' | 'none'): void;
  /** Copy the labels of system and architecture to their beta names, then call `labelled`. */
  syncLabels(id: number): void;
  /** A pass met the node for the first time. */
  registered(id: number): void;
  /** All zones fell silent, or some came back. */
  disruption(isTotal: boolean): void;
}

export class NodeLifecycle {
  readonly #nodes: NodeTable;
  readonly #rules: LifecycleRules;
  readonly #effects: LifecycleEffects;
  readonly zones: Zone[] = [];
  readonly #zoneIndex: Map<string, number> = new Map();
  #observedMs = 0;
  #lastPassMs = -1;
  /** Nobody counts as silent for longer than since this observed time. */
  #floorMs = 0;
  #isTrusted = true;
  /** The server did not answer the last reading, or any before it for a while. */
  #isStalled = false;
  /** Observed time of the last sign of life of any node. */
  #heardMs = 0;
  #isTotal = false;
  /** Passes that came late, and how much observed time they left out. */
  stalls = 0;
  distrusts = 0;

  constructor(nodes: NodeTable, rules: LifecycleRules, effects: LifecycleEffects) {
    this.#nodes = nodes;
    this.#rules = rules;
    this.#effects = effects;
  }

  get isTotalDisruption(): boolean {
    return this.#isTotal;
  }

  /** Observed time, in milliseconds since the start. */
  get observedMs(): number {
    return this.#observedMs;
  }

  /** A Node is new or changed; `zone` is its region and zone. Returns its former bits. */
  upsert(id: number, scan: NodeScan, zone: string): number {
    const nodes = this.#nodes;
    const before = nodes.bits.get(id);
    const isNew = (before & EXISTS) === 0;
    const unmet = isNew ? UNMET : 0;
    nodes.bits.set(id, (before & ~SCANNED_MASK) | EXISTS | unmet | scan.bits);
    nodes.zone.set(id, this.#zoneOf(zone));
    if (isNew || nodes.heartbeat.get(id) !== scan.heartbeat) {
      nodes.heartbeat.set(id, scan.heartbeat);
      nodes.seenMs.set(id, this.seenMs);
    }
    // Before the first pass nothing is known of the zones.
    if (this.#lastPassMs >= 0) this.#judgeState(id);
    return before;
  }

  /**
   * The observed time that a sign of life gets: that of the next pass, as if it had come just
   * before it. Early would be wrong, late by a period is not.
   */
  get seenMs(): number {
    return this.#observedMs + this.#rules.periodMs;
  }

  /** The lease of a node, by the hash of its renewTime. */
  renewed(id: number, lease: number): void {
    if (this.#nodes.lease.get(id) === lease) return;
    this.#nodes.lease.set(id, lease);
    this.#nodes.seenMs.set(id, this.seenMs);
    this.#heardMs = this.#observedMs;
  }

  /** The lease of a silent node; no sign of life. */
  stoodStill(id: number, lease: number): void {
    this.#nodes.lease.set(id, lease);
  }

  /** The lease of a node was renewed at the observed time `seenMs` or before, whatever it says. */
  moved(id: number, seenMs: number): void {
    if (seenMs <= this.#nodes.seenMs.get(id)) return;
    this.#nodes.seenMs.set(id, seenMs);
    this.#heardMs = this.#observedMs;
  }

  /** Whether a pass has met the node. */
  isRegistered(id: number): boolean {
    return (this.#nodes.bits.get(id) & (EXISTS | UNMET)) === EXISTS;
  }

  /** Whether taints of the node are being written, or wait for it. */
  isTainting(id: number): boolean {
    return (this.#nodes.bits.get(id) & TAINTING) !== 0;
  }

  removed(id: number): void {
    this.#nodes.bits.set(id, 0);
    this.#nodes.heartbeat.set(id, 0);
    this.#nodes.lease.set(id, 0);
  }

  /** The view of the cluster is cut off: observed time stands still. */
  distrust(): void {
    if (this.#isTrusted) this.distrusts++;
    this.#isTrusted = false;
  }

  /** The view is whole again: every node gets its whole grace from now on. */
  trust(): void {
    if (this.#isTrusted) return;
    this.#isTrusted = true;
    this.#floorMs = this.#observedMs;
  }

  /** One pass over all nodes; `nowMs` is monotonic. Costs about 10 ns a node. */
  pass(nowMs: number): void {
    this.#advance(nowMs);
    this.#probe();
    for (const zone of this.zones) zone.ready = zone.notReady = 0;
    const nodes = this.#nodes;
    const end = nodes.keys.idEnd;
    const deadlineMs = this.#observedMs - this.#rules.graceMs;
    for (let id = 0; id < end; id++) {
      const bits = nodes.bits.get(id);
      if ((bits & EXISTS) === 0) continue;
      const zone = this.zones[nodes.zone.get(id)]!;
      const ready = conditionIn(bits, 0);
      if (ready === TRUE) zone.ready++;
      else zone.notReady++;
      if ((bits & QUIET_MASK) === QUIET && nodes.seenMs.get(id) >= deadlineMs) continue;
      this.#judgeSilence(id, bits, ready);
      if ((bits & UNMET) === 0) this.#judgeState(id);
      else this.#meet(id);
    }
    this.#disruption(nowMs);
  }

  #advance(nowMs: number): void {
    if (this.#lastPassMs < 0) this.#lastPassMs = nowMs;
    const passed = nowMs - this.#lastPassMs;
    this.#lastPassMs = nowMs;
    assert(this.#observedMs >= this.#floorMs, 'observed time never goes back');
    if (!this.#isTrusted) return;
    const most = this.#rules.periodMs + LATENESS_MS_MAX;
    if (passed > most) this.stalls++;
    this.#observedMs += passed > most ? this.#rules.periodMs : Math.max(0, passed);
  }

  /** Asks whether the server answers, by the reading of a node that is not given up yet. */
  #probe(): void {
    const isQuiet =
      this.#observedMs - this.#heardMs > this.#rules.graceMs * QUIET_SHARE_MAX && this.#isTrusted;
    if (!this.#isStalled && !isQuiet) return;
    const { bits, keys } = this.#nodes;
    for (let id = 0; id < keys.idEnd; id++) {
      const own = bits.get(id);
      if ((own & EXISTS) === 0 || (own & ALL_UNKNOWN) === ALL_UNKNOWN) continue;
      // Those that are under way tell the same.
      if ((own & CONFIRMING) !== 0) return;
      bits.set(id, own | CONFIRMING);
      this.#effects.confirm(id);
      return;
    }
  }

  #judgeSilence(id: number, bits: number, ready: number): void {
    if ((bits & ALL_UNKNOWN) === ALL_UNKNOWN || (bits & CONFIRMING) !== 0) return;
    const graceMs = ready === 0 ? this.#rules.startupGraceMs : this.#rules.graceMs;
    if (!this.#isTrusted || this.#silentMs(id) <= graceMs) return;
    this.#nodes.bits.set(id, bits | CONFIRMING);
    this.#effects.confirm(id);
  }

  /** Labels and taints as the node's conditions want them; also between passes. */
  #judgeState(id: number): void {
    const nodes = this.#nodes;
    let bits = nodes.bits.get(id);
    if ((bits & LABELS_DIFFER) !== 0 && (bits & LABELLING) === 0) {
      nodes.bits.set(id, (bits |= LABELLING));
      this.#effects.syncLabels(id);
    }
    if ((bits & TAINTING) !== 0) return;
    if ((bits & NO_SCHEDULE_MASK) !== wantedNoSchedule(bits)) {
      nodes.bits.set(id, bits | TAINTING);
      this.#effects.syncNoSchedule(id);
      return;
    }
    this.#judgeNoExecute(id, bits, conditionIn(bits, 0), this.zones[nodes.zone.get(id)]!);
  }

  /**
   * The first pass over a node takes its NoExecute taints away, whatever its conditions say, as
   * upstream's registration of nodes does: evictions that others began are called off, and the
   * zone's turn decides anew.
   */
  #meet(id: number): void {
    const bits = this.#nodes.bits.get(id);
    if ((bits & TAINTING) !== 0) return;
    this.#nodes.bits.set(id, bits & ~UNMET);
    this.#effects.registered(id);
    const isTainted = (bits & (NO_EXECUTE_NOT_READY | NO_EXECUTE_UNREACHABLE)) !== 0;
    if (isTainted) this.#startTainting(id, bits & ~UNMET, 'none');
    else this.#judgeState(id);
  }

  #judgeNoExecute(id: number, bits: number, ready: number, zone: Zone): void {
    if ((bits & UNMET) !== 0) return;
    const taints = bits & (NO_EXECUTE_NOT_READY | NO_EXECUTE_UNREACHABLE);
    if (ready === TRUE || this.#isTotal) {
      if ((bits & QUEUED) !== 0) this.#nodes.bits.set(id, (bits &= ~QUEUED));
      if (taints !== 0) this.#startTainting(id, bits, 'none');
      return;
    }
    if (ready !== FALSE && ready !== UNKNOWN) return;
    const wanted = ready === FALSE ? NO_EXECUTE_NOT_READY : NO_EXECUTE_UNREACHABLE;
    if (taints === wanted) return;
    if (taints !== 0) {
      // Already driven out of service: which of the two taints says so may change at once.
      this.#startTainting(id, bits, ready === FALSE ? 'not-ready' : 'unreachable');
    } else if ((bits & QUEUED) === 0) {
      this.#nodes.bits.set(id, bits | QUEUED);
      zone.queue.push(id);
    }
  }

  #startTainting(id: number, bits: number, taint: 'not-ready' | 'unreachable' | 'none'): void {
    assert((bits & TAINTING) === 0, 'taints of a node are written by one at a time');
    assert((bits & EXISTS) !== 0, 'a node that is tainted is there');
    this.#nodes.bits.set(id, bits | TAINTING);
    this.#effects.syncNoExecute(id, taint);
  }

  /** Silence by observed time. */
  #silentMs(id: number): number {
    return this.#observedMs - Math.max(this.#nodes.seenMs.get(id), this.#floorMs);
  }

  #disruption(nowMs: number): void {
    let populated = 0;
    let full = 0;
    for (const zone of this.zones) {
      const size = zone.ready + zone.notReady;
      if (size === 0) continue;
      populated++;
      zone.state = zoneStateOf(zone.ready, zone.notReady, this.#rules);
      zone.setRate(evictionRateOf(zone.state, size, this.#rules), nowMs);
      zone.release();
      if (zone.state === 'full') full++;
    }
    assert(full <= populated, 'no more zones are down than there are');
    const isTotal = populated > 0 && full === populated;
    if (isTotal === this.#isTotal) return;
    this.#isTotal = isTotal;
    if (!isTotal) this.#floorMs = this.#observedMs;
    this.#effects.disruption(isTotal);
  }

  /** Whether `drain` is to be called some times a second; a pass may change it. */
  get waits(): boolean {
    return !this.#isTotal && this.#isTrusted && this.zones.some((zone) => zone.waits);
  }

  /** Taints as many waiting nodes as the zones' rates allow now. */
  drain(nowMs: number): void {
    if (this.#isTotal || !this.#isTrusted) return;
    for (const zone of this.zones) {
      for (let id = zone.head(); id >= 0; id = zone.head()) {
        const bits = this.#nodes.bits.get(id);
        const ready = conditionIn(bits, 0);
        const isBad = (bits & QUEUED) !== 0 && (ready === FALSE || ready === UNKNOWN);
        if (isBad && ((bits & TAINTING) !== 0 || !zone.takeToken(nowMs))) break;
        zone.dropHead();
        if (!isBad) continue;
        const taint = ready === FALSE ? 'not-ready' : 'unreachable';
        zone.evictions++;
        this.#startTainting(id, bits & ~QUEUED, taint);
      }
    }
  }

  /**
   * What the reading of a silent node gave, for which the server answered no such reading for
   * `silentMs`. True where the node should be marked: both hashes are what was seen last.
   */
  confirmed(id: number, heartbeat: number, lease: number, silentMs: number): boolean {
    const nodes = this.#nodes;
    const bits = nodes.bits.get(id);
    nodes.bits.set(id, bits & ~CONFIRMING);
    if ((bits & EXISTS) === 0) return false;
    if (silentMs > CONFIRM_MS_MAX) {
      this.#stalled();
      return false;
    }
    this.#isStalled = false;
    const isFresh = nodes.heartbeat.get(id) !== heartbeat || nodes.lease.get(id) !== lease;
    if (isFresh) {
      nodes.heartbeat.set(id, heartbeat);
      nodes.lease.set(id, lease);
      nodes.seenMs.set(id, this.seenMs);
    }
    const ready = conditionIn(bits, 0);
    const graceMs = ready === 0 ? this.#rules.startupGraceMs : this.#rules.graceMs;
    return !isFresh && this.#isTrusted && this.#silentMs(id) > graceMs;
  }

  /**
   * The server did not answer `confirm`, nor any other for `silentMs`. While it answers others the
   * next pass asks again.
   */
  confirmFailed(id: number, silentMs: number): void {
    this.#nodes.bits.set(id, this.#nodes.bits.get(id) & ~CONFIRMING);
    if (silentMs > CONFIRM_MS_MAX) this.#stalled();
  }

  #stalled(): void {
    this.distrusts++;
    this.#isStalled = true;
    this.#floorMs = this.#observedMs;
  }

  tainted(id: number): void {
    this.#nodes.bits.set(id, this.#nodes.bits.get(id) & ~TAINTING);
  }

  labelled(id: number): void {
    this.#nodes.bits.set(id, this.#nodes.bits.get(id) & ~LABELLING);
  }

  #zoneOf(name: string): number {
    const known = this.#zoneIndex.get(name);
    if (known !== undefined) return known;
    // Beyond the limit zones share the last one: its state is then that of all of them.
    if (this.zones.length >= ZONES_MAX) return ZONES_MAX - 1;
    assert(this.#zoneIndex.size === this.zones.length, 'each zone has its number');
    this.#zoneIndex.set(name, this.zones.length);
    this.zones.push(new Zone(name, this.#rules.evictionRate));
    return this.zones.length - 1;
  }
}
