// data plane: gangs that fit one machine become plain demand, section 4.4
import { assert } from '@megaplane/base/assert';
import { byUtf8 } from '../../contract/text-order.ts';
import { type ClusterDemand, type NormalRows, rowsOf } from './clusters.ts';
import type { Differences } from '../differences.ts';
import { CREATING, DRAINING, IDLE, SPECULATIVE } from './machines.ts';
import type { Tables } from './tables.ts';

/** More classes of gangs than this are not remembered. */
export const CLASSES_MAX = 100_000;
const CLASS_FACTOR = 2 ** 26;

/** What gangs of one profile and size share. */
export function classKey(profileId: number, aggregate: number): number {
  assert(aggregate < CLASS_FACTOR, 'numbers of vectors have room in the number of a class');
  return profileId * CLASS_FACTOR + aggregate;
}

interface GangClass {
  readonly profileId: number;
  readonly aggregate: number;
  /** A kind that fits and of which some machine is Idle or Speculative; -1 if there is none. */
  witness: number;
}

/** Knows of which kinds the shard has machines that could be acquired, and which gangs fit one. */
export class Folding {
  readonly #tables: Tables;
  /** Idle and Speculative machines of each kind. */
  readonly #counts: number[] = [];
  /** Kinds that came since classes were looked at. */
  readonly #come = new Set<number>();
  readonly #classes = new Map<number, GangClass>();
  readonly #isSteady: boolean;

  constructor(tables: Tables, { steadyFolds }: Differences) {
    this.#tables = tables;
    this.#isSteady = steadyFolds;
  }

  /** A machine comes into a state, or leaves it. */
  changed(kind: number, state: number, change: 1 | -1): void {
    const isOnItsWay = this.#isSteady && (state === CREATING || state === DRAINING);
    if (state === IDLE || state === SPECULATIVE || isOnItsWay) this.#count(kind, change);
  }

  #count(kind: number, change: 1 | -1): void {
    const before = this.#counts[kind] ?? 0;
    this.#counts[kind] = before + change;
    if (before === 0) this.#come.add(kind);
  }

  /** Looks at all classes again; true if some fit now and did not, or the other way round. */
  update(): boolean {
    let hasFlipped = false;
    if (this.#classes.size > CLASSES_MAX) {
      this.#classes.clear();
      hasFlipped = true;
    }
    for (const gang of this.#classes.values()) {
      if (gang.witness >= 0 && (this.#counts[gang.witness] ?? 0) > 0) continue;
      const had = gang.witness >= 0;
      gang.witness = this.#find(gang, had ? undefined : this.#come);
      if (had !== gang.witness >= 0) hasFlipped = true;
    }
    this.#come.clear();
    return hasFlipped;
  }

  /** True if some gang of a cluster fits one machine and did not, or the other way round. */
  isStale(demand: ClusterDemand): boolean {
    if (demand.isRaw) return true;
    const fits = this.#fitsIn(demand, new Map());
    for (const [key, was] of demand.classes) {
      if (fits(Math.floor(key / CLASS_FACTOR), key % CLASS_FACTOR) !== was) return true;
    }
    return false;
  }

  /** Makes the rows of a cluster what the phases take. */
  normalize(demand: ClusterDemand): void {
    const { vectors, profiles } = this.#tables;
    const { rows } = demand;
    const kept: number[] = [];
    const folded = new Map<number, { readonly row: number; count: number }>();
    const classes = new Map<number, boolean>();
    const fits = this.#fitsIn(demand, classes);
    demand.classes = classes;
    assert(rows.count < CLASS_FACTOR, 'so have numbers of groups');
    const before = demand.spans;
    const spans = new Map<number, Set<number>>();
    let holding: ReadonlySet<number> | undefined;
    for (let row = 0; row < rows.count; row++) {
      const profileId = rows.profile[row]!;
      const facts = profiles.facts[profileId]!;
      const isGang = facts.sameKey !== undefined;
      if (!isGang || !fits(profileId, rows.aggregate[row]!)) {
        kept.push(row);
        continue;
      }
      const group = rows.group[row]!;
      const gangs = classKey(profileId, rows.aggregate[row]!);
      holding ??= this.#holding(demand);
      if (before.get(gangs)?.has(group) === true || holding.has(profileId * CLASS_FACTOR + group)) {
        // it stays as it is: spread out
        const groups = spans.get(gangs);
        if (groups === undefined) spans.set(gangs, new Set([group]));
        else groups.add(group);
        kept.push(row);
        continue;
      }
      const key = facts.foldedId * CLASS_FACTOR + rows.aggregate[row]!;
      const known = folded.get(key);
      if (known === undefined) folded.set(key, { row, count: 1 });
      else known.count++;
    }
    const fingerprint = (row: number): string => {
      return profiles.facts[profiles.facts[rows.profile[row]!]!.foldedId]!.profile.fingerprint;
    };
    const size = (row: number): string => vectors.sizeText(rows.aggregate[row]!);
    const sums = [...folded.values()].sort((left, right) => {
      return (
        byUtf8(fingerprint(left.row), fingerprint(right.row)) ||
        byUtf8(size(left.row), size(right.row))
      );
    });
    const normal = this.#rowsOf(demand, kept, sums);
    this.#release(demand.normal);
    demand.normal = normal;
    demand.spans = spans;
    demand.isRaw = false;
  }

  /** Gangs that have machines though no machine held them whole, by profile and group. */
  #holding({ normal, starts, ends }: ClusterDemand): ReadonlySet<number> {
    const { profiles } = this.#tables;
    const holding = new Set<number>();
    const count = this.#isSteady ? normal.keptCount : 0;
    for (let at = 0; at < count; at++) {
      const profileId = normal.profile[at]!;
      if (profiles.facts[profileId]!.sameKey === undefined) continue;
      const isHolding = (ends[at] ?? 0) > (starts[at] ?? 0);
      if (isHolding) holding.add(profileId * CLASS_FACTOR + normal.group[at]!);
    }
    return holding;
  }

  #rowsOf(
    demand: ClusterDemand,
    kept: readonly number[],
    sums: readonly { readonly row: number; readonly count: number }[],
  ): NormalRows {
    const { vectors, profiles } = this.#tables;
    const { rows } = demand;
    const normal = rowsOf(kept.length + sums.length);
    for (const [at, row] of kept.entries()) {
      normal.profile[at] = rows.profile[row]!;
      normal.group[at] = rows.group[row]!;
      normal.aggregate[at] = rows.aggregate[row]!;
      normal.minUnit[at] = rows.minUnit[row]!;
    }
    for (const [index, { row, count }] of sums.entries()) {
      const at = kept.length + index;
      normal.profile[at] = profiles.facts[rows.profile[row]!]!.foldedId;
      normal.group[at] = 0;
      normal.aggregate[at] = vectors.holdTimes(rows.aggregate[row]!, count);
      normal.minUnit[at] = rows.aggregate[row]!;
    }
    const priority = (at: number): number => profiles.facts[normal.profile[at]!]!.profile.priority;
    const order = Int32Array.from({ length: normal.count }, (_, at) => at);
    order.sort((left, right) => priority(right) - priority(left) || left - right);
    const hasGangs = kept.some((row) => profiles.facts[rows.profile[row]!]!.sameKey !== undefined);
    return { ...normal, keptCount: kept.length, order, hasGangs };
  }

  #release(normal: NormalRows): void {
    for (let at = normal.keptCount; at < normal.count; at++) {
      this.#tables.vectors.release(normal.aggregate[at]!);
    }
  }

  #fitsIn(
    demand: ClusterDemand,
    known: Map<number, boolean>,
  ): (profileId: number, aggregate: number) => boolean {
    const { machines } = this.#tables;
    let own: Set<number> | undefined;
    return (profileId, aggregate) => {
      const key = classKey(profileId, aggregate);
      const answer = known.get(key);
      if (answer !== undefined) return answer;
      let fits = this.#fitsShard(profileId, aggregate);
      if (!fits && own === undefined) {
        const bound = machines.bound[demand.id]!;
        const count = bound.refresh();
        own = new Set<number>();
        for (let at = 0; at < count; at++) own.add(machines.kind[bound.items[at]!]!);
      }
      for (const kind of own ?? []) {
        if (fits) break;
        fits = this.#fitsKind(profileId, aggregate, kind);
      }
      known.set(key, fits);
      return fits;
    };
  }

  #fitsShard(profileId: number, aggregate: number): boolean {
    const key = classKey(profileId, aggregate);
    let gang = this.#classes.get(key);
    if (gang === undefined) {
      gang = { profileId, aggregate, witness: -1 };
      gang.witness = this.#find(gang, undefined);
      this.#classes.set(key, gang);
    }
    return gang.witness >= 0;
  }

  #find(gang: GangClass, among: Iterable<number> | undefined): number {
    const { profiles, kinds } = this.#tables;
    const { types } = profiles.facts[gang.profileId]!;
    const isFit = (kind: number): boolean => {
      if ((this.#counts[kind] ?? 0) === 0) return false;
      if (types !== undefined && !types.includes(kinds.fields[kind]!.instanceType)) return false;
      return this.#fitsKind(gang.profileId, gang.aggregate, kind);
    };
    if (among !== undefined) {
      for (const kind of among) if (isFit(kind)) return kind;
      return -1;
    }
    for (let kind = 0; kind < this.#counts.length; kind++) if (isFit(kind)) return kind;
    return -1;
  }

  #fitsKind(profileId: number, aggregate: number, kind: number): boolean {
    const { profiles, kinds, vectors } = this.#tables;
    const { profile } = profiles.facts[profileId]!;
    if (!kinds.matches(profileId, profile, kind)) return false;
    return vectors.covers(kinds.vector[kind]!, aggregate);
  }
}
