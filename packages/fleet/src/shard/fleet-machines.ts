/**
 * The machines of a shard in their eight states, as actions and providers change them: who provides
 * each, which words about it are too old to count, and what its cluster is told.
 *
 * Three things keep old words from counting. A machine with an action under way is not looked at
 * in Lists. A List that was asked for before the last change of a machine is older than that
 * change. And a machine that failed here stays so until its hold is over: then a List tells anew
 * what it is.
 */
import type { Inventory, MachineRecord } from '../engine/inventory.ts';
import { NO_STAMP } from '../engine/machine.ts';
import type { Machine, Stamp, State } from '../engine/machine.ts';
import type { Counts } from './counts.ts';
import type { ShardPayload } from './effects.ts';
import { nodeState } from './machine-words.ts';

/** Why a machine is not looked at, and until when. */
export interface Hold {
  /** Infinity: until somebody has looked at it, and the shard starts anew. */
  readonly untilMs: number;
  /** The provider must have gone on from this state. */
  readonly past?: State;
}

export interface FleetMachinesOptions {
  readonly inventory: Inventory;
  /** Says something to a cluster; false if it has no session. */
  readonly tell: (cluster: string, payload: ShardPayload) => boolean;
  readonly counts: Counts;
}

export class FleetMachines {
  readonly inventory: Inventory;
  readonly #tell: FleetMachinesOptions['tell'];
  readonly #counted: Counts;
  readonly #providers = new Map<string, number>();
  /** By number of a provider. */
  readonly #counts: number[] = [];
  /** Machine -> number of its last change: what was asked for before is older. */
  readonly #changes = new Map<string, number>();
  readonly #holds = new Map<string, Hold>();
  readonly #errors = new Map<string, string>();
  readonly #hosts = new Map<string, string>();
  /** Machines that are joining -> since when. */
  readonly #joining = new Map<string, number>();
  #clock = 0;

  constructor({ inventory, tell, counts }: FleetMachinesOptions) {
    this.inventory = inventory;
    this.#counted = counts;
    this.#tell = tell;
  }

  /** Number of an event: a List carries the one of when it was asked for. */
  stamp(): number {
    return ++this.#clock;
  }

  providerOf(id: string): number | undefined {
    return this.#providers.get(id);
  }

  /** How many machines a provider has told of. */
  countOf(provider: number): number {
    return this.#counts[provider] ?? 0;
  }

  /** Machines that are provided by `provider`. */
  *idsOf(provider: number): Generator<string> {
    for (const [id, owner] of this.#providers) if (owner === provider) yield id;
  }

  /** True if the machine was changed after `asked`; what is as new is forgotten. */
  isNewerThan(id: string, asked: number): boolean {
    const change = this.#changes.get(id);
    if (change === undefined) return false;
    if (change > asked) return true;
    this.#changes.delete(id);
    return false;
  }

  /** The hold that keeps words about a machine from counting now. */
  holdOn(record: MachineRecord, nowMs: number): Hold | undefined {
    const hold = this.#holds.get(record.id);
    const isOn = hold !== undefined && (nowMs < hold.untilMs || record.state === hold.past);
    return isOn ? hold : undefined;
  }

  /** Takes a machine as a provider tells it, over whatever was known. */
  learn(
    record: MachineRecord,
    provider: number,
    nowMs: number,
  ): ReturnType<Inventory['mergeRecord']> {
    const before = this.inventory.get(record.id);
    const isHeld = this.#holds.has(record.id);
    if (isHeld) this.inventory.remove(record.id);
    let merged = this.inventory.mergeRecord(record, nowMs / 1000);
    if (merged === 'illegal' && before !== undefined) {
      if (before.state === 'Failed') return merged;
      if (before.state === 'Configured' && record.cluster === '') {
        // it went by itself between two Lists; its cluster hears of both steps
        this.move(before, { state: 'Draining' }, nowMs);
        return 'taken';
      }
      this.inventory.remove(record.id);
      merged = this.inventory.mergeRecord(record, nowMs / 1000);
    }
    if (merged === 'same' && this.inventory.refresh(record, nowMs / 1000)) merged = 'taken';
    if (merged !== 'taken') {
      if (isHeld && before !== undefined) this.inventory.put(before, nowMs / 1000);
      return merged;
    }
    if (!this.#providers.has(record.id)) {
      this.#providers.set(record.id, provider);
      this.#counts[provider] = this.countOf(provider) + 1;
    }
    this.#holds.delete(record.id);
    this.#errors.set(record.id, record.lastError);
    this.#told(record.id, before, nowMs);
    return merged;
  }

  /** A machine is not reported any more. */
  forget(id: string): void {
    const before = this.inventory.get(id);
    if (before !== undefined && before.cluster !== '') {
      this.#errors.set(id, 'its provider does not report it any more');
      this.#say({ ...before, state: 'Failed' }, before.cluster);
    }
    this.inventory.remove(id);
    const provider = this.#providers.get(id);
    if (provider !== undefined) this.#counts[provider] = this.countOf(provider) - 1;
    for (const map of [this.#providers, this.#changes, this.#holds, this.#hosts]) map.delete(id);
    this.#errors.delete(id);
    this.#joining.delete(id);
  }

  /** Changes a machine by an action of ours. */
  move(
    machine: Machine,
    to: { readonly state: State; readonly cluster?: string; readonly stamp?: Stamp },
    nowMs: number,
    isTold = true,
  ): void {
    const before = this.inventory.get(machine.id);
    this.#changes.set(machine.id, this.stamp());
    this.inventory.put({ ...machine, ...to }, nowMs / 1000);
    if (isTold) this.#told(machine.id, before, nowMs);
  }

  /** Takes an acknowledged machine, with the stamp that is ours to set. */
  acknowledged(record: Omit<Machine, 'idleSince'>, before: Machine, nowMs: number): void {
    this.#changes.set(record.id, this.stamp());
    const isBound = record.cluster !== '' || record.state === 'Creating';
    this.inventory.put(isBound ? record : { ...record, stamp: NO_STAMP }, nowMs / 1000);
    // that it is joining was not told before its provider had taken it on
    this.#told(record.id, record.state === 'Configuring' ? undefined : before, nowMs);
  }

  /** A machine is out of use until its hold is over and its provider tells what it is. */
  fail(id: string, why: string, hold: Hold, nowMs: number): void {
    const machine = this.inventory.get(id);
    if (machine === undefined) return;
    this.#errors.set(id, why);
    this.#holds.set(id, hold);
    this.move(machine, { state: 'Failed' }, nowMs);
  }

  /** Machines that have been joining since `sinceMs` or longer. */
  joiningSince(sinceMs: number): string[] {
    return [...this.#joining].filter(([, atMs]) => atMs <= sinceMs).map(([id]) => id);
  }

  /** Remembers the host of a machine that is bound: its node will name it. */
  hosted(id: string, host: { readonly provider: string; readonly ref: string } | undefined): void {
    if (host === undefined) this.#hosts.delete(id);
    else this.#hosts.set(id, `${host.provider}://${host.ref}`);
  }

  /** Says how each machine of a cluster is, but those that may still be taken back. */
  replay(cluster: string, isUntold: (id: string) => boolean): void {
    for (const machine of this.inventory.of(cluster)) {
      if (!isUntold(machine.id)) this.#say(machine, cluster);
    }
  }

  #told(id: string, before: Machine | undefined, nowMs: number): void {
    const machine = this.inventory.get(id);
    if (machine === undefined) return;
    const sinceMs = this.#joining.get(id);
    if (machine.state !== 'Configuring') this.#joining.delete(id);
    if (machine.state === 'Configured' && sinceMs !== undefined) {
      this.#counted.configureSeconds.record((nowMs - sinceMs) / 1000);
    }
    if (machine.state === 'Configuring' && sinceMs === undefined) this.#joining.set(id, nowMs);
    // the cluster that it leaves hears the last word
    const cluster = before?.cluster || machine.cluster;
    if (cluster !== '' && machine.state !== before?.state) {
      const isGone = machine.cluster === '' && machine.state !== 'Failed';
      this.#say(isGone ? { ...machine, state: 'Idle' } : machine, cluster);
    }
    if (machine.cluster === '') this.#hosts.delete(id);
    if (machine.state !== 'Failed') this.#errors.delete(id);
  }

  #say(machine: Machine, cluster: string): void {
    const providerId = this.#hosts.get(machine.id) ?? '';
    const lastError = this.#errors.get(machine.id) || 'no reason given';
    const value = nodeState(machine, cluster, { providerId, lastError });
    this.#tell(cluster, { case: 'nodeStateUpdate', value });
  }
}
