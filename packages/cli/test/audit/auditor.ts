/**
 * Looks at every change that is stored in a simulated cluster, and knows which ones must never be
 * seen: on a quiet day or a rough one, between two steps or in the midst of one. What holds only
 * once all has come to rest is in `cluster-invariants.ts`.
 */
import assert from 'node:assert/strict';
import type { Store } from '@megaplane/store/store';
import { ClusterRecord, type AuditClock, type Change, type Sight } from './cluster-record.ts';
import { budgetLaws } from './budget-laws.ts';
import { NodeLaws } from './node-laws.ts';
import { Past } from './past.ts';
import { podArrives, podChanges, podLeaves } from './pod-laws.ts';
import { jobLaws, replicaSetLaws } from './owner-laws.ts';
import { removalLaws } from './removal-laws.ts';

/** What a controller did not know yet may be this old. */
const QUIET_SLACK_MS = 3_000;
/** Where watches are cut, answers lost and requests refused for minutes. */
const ROUGH_SLACK_MS = 60_000;

const REMOVED = /\/namespaces\/([^/]+)\/([^/]+)\/([^/]+)$/;

/** What laws look at. */
export interface Audit {
  readonly record: ClusterRecord;
  readonly past: Past;
  readonly isQuiet: boolean;
  readonly nowMs: number;
  readonly awakeMs: number;
  /** What was so after this moment may be what a controller knew. */
  readonly sinceMs: number;
  /** Creations that were made and whose answer was lost, of late: who asked may ask again. */
  readonly lostCreations: number;
  readonly graceMs: number;
  /** How a user wanted it gone the last time, if one did. */
  policyOf(sight: Sight): string | undefined;
  check(isSo: boolean, what: () => string): void;
}

export class Auditor implements Audit {
  readonly record: ClusterRecord;
  readonly past: Past = new Past();
  readonly isQuiet: boolean;
  readonly graceMs: number;
  readonly #clock: AuditClock;
  readonly #nodes: NodeLaws = new NodeLaws();
  #lostMs: number[] = [];
  readonly #removed: Map<string, string> = new Map();
  /** Told later: who asks has nobody to tell it to. */
  #usurped: string | undefined;
  changes = 0;

  constructor(store: Store, clock: AuditClock, isQuiet: boolean, graceMs: number) {
    this.record = new ClusterRecord(store, clock);
    this.isQuiet = isQuiet;
    this.graceMs = graceMs;
    this.#clock = clock;
  }

  get nowMs(): number {
    return this.#clock.nowMs();
  }

  get awakeMs(): number {
    return this.#clock.awakeMs();
  }

  get sinceMs(): number {
    return this.nowMs - (this.isQuiet ? QUIET_SLACK_MS : ROUGH_SLACK_MS);
  }

  get lostCreations(): number {
    return this.#lostMs.length;
  }

  check(isSo: boolean, what: () => string): void {
    assert(isSo, isSo ? '' : `${new Date(this.nowMs).toISOString()}: ${what()}`);
  }

  /** A creation was made, and who asked for it does not know. */
  creationLost(): void {
    this.#lostMs.push(this.nowMs);
  }

  /** A user removes what is there by that path; '' for the policy: as the kind has it. */
  removed(path: string, policy: string): void {
    const [, namespace = '', resource = '', name = ''] = REMOVED.exec(path) ?? [];
    this.#removed.set(`${namespace}/${resource}/${name}`, policy);
  }

  policyOf({ namespace, name, kind }: Sight): string | undefined {
    return this.#removed.get(`${namespace}/${kind.toLowerCase()}s/${name}`);
  }

  /** Controllers began anew: what they had counted they count from the start. */
  controllersBegan(): void {
    this.#nodes.forget();
  }

  /** A process of controllers is about to change something: it holds the lease that is stored. */
  changedBy(identity: string, what: string): void {
    this.record.read((change) => this.#judge(change));
    const holder = this.record.leader;
    if (holder !== identity) this.#usurped ??= `${identity} asks for ${what}, and ${holder} leads`;
  }

  /** Judges all that was stored since the last time. */
  look(): void {
    this.check(this.#usurped === undefined, () => this.#usurped ?? '');
    if (this.#lostMs.length > 0) {
      this.#lostMs = this.#lostMs.filter((lostMs) => lostMs >= this.sinceMs);
    }
    this.record.read((change) => this.#judge(change));
  }

  #judge(change: Change): void {
    this.changes++;
    const { sight, before, isGone, wasGoing } = change;
    this.past.note(change, this.nowMs);
    removalLaws(this, change);
    switch (sight.kind) {
      case 'Pod':
        if (before === undefined) podArrives(this, sight);
        else if (!wasGoing && (isGone || sight.isGoing)) podLeaves(this, sight);
        if (!isGone && before !== undefined) podChanges(this, sight, before);
        break;
      case 'Node':
        this.#nodes.changed(this, change);
        break;
      case 'ReplicaSet':
        if (!isGone) replicaSetLaws(this, sight, before);
        break;
      case 'Job':
        if (!isGone && before !== undefined) jobLaws(this, sight, before);
        break;
      case 'PodDisruptionBudget':
        if (!isGone && before !== undefined) budgetLaws(this, sight, before);
        break;
      default:
    }
  }
}

export function allPods({ record }: Audit, owner: string): Sight[] {
  return [...record.ownedBy(owner)].filter(
    ({ kind, controller }) => kind === 'Pod' && controller === owner,
  );
}

/** Pods of an owner that are neither on their way out nor at their end. */
export function activePods(audit: Audit, owner: string): Sight[] {
  return allPods(audit, owner).filter(({ isGoing, hasEnded }) => !isGoing && !hasEnded);
}
