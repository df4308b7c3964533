// data plane: which domain a gang lives in, section 4.6
import type { ClusterDemand } from './clusters.ts';
import type { Differences } from '../differences.ts';
import type { AcquirableIndex } from './acquirable.ts';
import type { Tables } from './tables.ts';

/** What one domain could give to the gang at hand. */
interface Domain {
  value: number;
  count: number;
  /** Positions in `live`, or -1 - slot of a Creating machine; own ones apart. */
  readonly own: number[];
  readonly others: number[];
  readonly total: Float64Array<ArrayBuffer>;
  readonly creditable: Float64Array<ArrayBuffer>;
  readonly ownTotal: Float64Array<ArrayBuffer>;
}

interface Circumstances {
  readonly stamp: number;
  readonly isParked: boolean;
  readonly creating: readonly number[];
}

export interface ReportedDomain {
  readonly domain: string;
  readonly total: Float64Array<ArrayBuffer>;
}

export class DomainChooser {
  /** The choice: number of the value, what can be credited there in turn. */
  value = -1;
  isSatisfiable = false;
  creditable: readonly number[] = [];
  /** The choice depends on what is not the cluster's own. */
  isShared = false;
  readonly #tables: Tables;
  readonly #index: AcquirableIndex;
  readonly #isWhole: boolean;
  /** Told of all domains of each gang, where somebody wants to see them. */
  readonly #report:
    | ((demand: ClusterDemand, position: number, all: ReportedDomain[]) => void)
    | undefined;
  readonly #domains = new Map<number, Domain>();
  readonly #pool: Domain[] = [];

  constructor(
    tables: Tables,
    index: AcquirableIndex,
    { wholeGangs }: Differences,
    report?: (demand: ClusterDemand, position: number, all: ReportedDomain[]) => void,
  ) {
    this.#tables = tables;
    this.#index = index;
    this.#isWhole = wholeGangs;
    this.#report = report;
  }

  /** Chooses for one gang; false if no domain has anything. */
  choose(demand: ClusterDemand, position: number, circumstances: Circumstances): boolean {
    const { profiles } = this.#tables;
    const profileId = demand.normal.profile[position]!;
    const { sameKey = '' } = profiles.facts[profileId]!;
    const minUnit = demand.normal.minUnit[position]!;
    const wanted = demand.normal.aggregate[position]!;
    for (const domain of this.#domains.values()) this.#pool.push(domain);
    this.#domains.clear();
    const group = demand.normal.group[position]!;
    for (let at = 0; at < demand.liveCount; at++) {
      this.#credit(at, demand.live[at]!, { profileId, sameKey, minUnit, group, ...circumstances });
    }
    for (const slot of circumstances.creating) {
      this.#credit(-1 - slot, slot, { profileId, sameKey, minUnit, group, ...circumstances });
    }
    this.isShared = false;
    const head = this.#report === undefined ? this.#head(wanted) : undefined;
    const isSettled = head !== undefined && this.#covers(head.creditable, wanted);
    if (!isSettled && !circumstances.isParked) {
      this.isShared = true;
      const { value = -1 } = head ?? {};
      if (head !== undefined) this.#index.addTotal({ profileId, sameKey, minUnit }, value, head);
      // with what could be acquired there it is the best one, whatever the others have
      if (head === undefined || !this.#covers(head.total, wanted)) {
        const totalOf = (other: number): Domain | undefined =>
          other === value ? undefined : this.#domainOf(other);
        this.#index.addTotals({ profileId, sameKey, minUnit }, totalOf);
      }
    }
    this.#report?.(demand, position, this.#reported());
    return this.#pick(wanted);
  }

  /** Marks what the gang will take of its domain beyond its credits. */
  consume(demand: ClusterDemand, position: number, remaining: Float64Array): void {
    const { profiles } = this.#tables;
    const profileId = demand.normal.profile[position]!;
    const { sameKey = '' } = profiles.facts[profileId]!;
    const minUnit = demand.normal.minUnit[position]!;
    this.#index.consume(profileId, sameKey, this.value, minUnit, remaining);
  }

  #credit(
    place: number,
    slot: number,
    gang: Circumstances & {
      readonly profileId: number;
      readonly sameKey: string;
      readonly minUnit: number;
      readonly group: number;
    },
  ): void {
    const { machines, kinds, vectors, profiles } = this.#tables;
    const kind = machines.kind[slot]!;
    const { profile } = profiles.facts[gang.profileId]!;
    if (!kinds.matches(gang.profileId, profile, kind)) return;
    if (!vectors.covers(kinds.vector[kind]!, gang.minUnit)) return;
    const value = kinds.valueOf(gang.sameKey, kind);
    if (value < 0) return;
    const domain = this.#domainOf(value);
    domain.count++;
    const isOwn = machines.stamp[slot] === gang.stamp && machines.group[slot] === gang.group;
    (isOwn ? domain.own : domain.others).push(place);
    const from = kinds.vector[kind]! * vectors.stride;
    for (let at = 0; at < vectors.dimensions; at++) {
      const amount = vectors.values[from + at]!;
      domain.total[at]! += amount;
      domain.creditable[at]! += amount;
      if (isOwn) domain.ownTotal[at]! += amount;
    }
  }

  #domainOf(value: number): Domain {
    const known = this.#domains.get(value);
    if (known !== undefined) return known;
    const { stride } = this.#tables.vectors;
    const spare = this.#pool.pop();
    const isFit = spare?.total.length === stride;
    const domain: Domain = isFit
      ? spare
      : {
          ...{ value, count: 0, own: [], others: [] },
          total: new Float64Array(stride),
          creditable: new Float64Array(stride),
          ownTotal: new Float64Array(stride),
        };
    domain.value = value;
    domain.count = 0;
    domain.own.length = 0;
    domain.others.length = 0;
    domain.total.fill(0);
    domain.creditable.fill(0);
    domain.ownTotal.fill(0);
    this.#domains.set(value, domain);
    return domain;
  }

  /** The domain of which more is credited than of any other. */
  #head(wanted: number): Domain | undefined {
    let head: Domain | undefined;
    let best = 0;
    let bestOwn = 0;
    let isTied = false;
    for (const domain of this.#domains.values()) {
      const score = this.#coverage(domain.creditable, wanted, true);
      const own = this.#coverage(domain.ownTotal, wanted, true);
      if (score > best || (score === best && own > bestOwn)) {
        [head, best, bestOwn, isTied] = [domain, score, own, false];
      } else if (score === best && own === bestOwn) isTied = true;
    }
    return isTied ? undefined : head;
  }

  #pick(wanted: number): boolean {
    let best: Domain | undefined;
    for (const domain of this.#domains.values()) {
      if (domain.count > 0 && (best === undefined || this.#isBetter(domain, best, wanted))) {
        best = domain;
      }
    }
    if (best === undefined) return false;
    this.value = best.value;
    this.isSatisfiable = this.#covers(best.total, wanted);
    this.creditable = [...best.own, ...best.others];
    return true;
  }

  #isBetter(left: Domain, right: Domain, wanted: number): boolean {
    const satisfies = this.#covers(left.total, wanted);
    if (satisfies !== this.#covers(right.total, wanted)) return satisfies;
    const more = (a: Float64Array, b: Float64Array): number =>
      this.#coverage(a, wanted, true) - this.#coverage(b, wanted, true);
    const byRule = satisfies
      ? more(left.creditable, right.creditable) ||
        more(left.ownTotal, right.ownTotal) ||
        this.#coverage(right.total, wanted, false) - this.#coverage(left.total, wanted, false)
      : this.#stays(left, right, more) ||
        more(left.total, right.total) ||
        more(left.creditable, right.creditable);
    if (byRule !== 0) return byRule > 0;
    if (left.count !== right.count) return left.count > right.count;
    return this.#tables.kinds.compareValues(left.value, right.value) < 0;
  }

  /** A gang that takes no parts gains nothing where more could be acquired, if not all can. */
  #stays(left: Domain, right: Domain, more: (a: Float64Array, b: Float64Array) => number): number {
    return this.#isWhole ? more(left.creditable, right.creditable) : 0;
  }

  #covers(have: Float64Array, wanted: number): boolean {
    const { vectors } = this.#tables;
    const from = wanted * vectors.stride;
    for (let at = 0; at < vectors.dimensions; at++) {
      if (have[at]! < vectors.values[from + at]!) return false;
    }
    return true;
  }

  #coverage(have: Float64Array, wanted: number, isCapped: boolean): number {
    const { vectors } = this.#tables;
    const from = wanted * vectors.stride;
    let sum = 0;
    for (const at of vectors.byName) {
      const want = vectors.values[from + at]!;
      if (want <= 0) continue;
      const ratio = have[at]! / want;
      sum += isCapped && ratio > 1 ? 1 : ratio;
    }
    return sum;
  }

  #reported(): ReportedDomain[] {
    return [...this.#domains.values()].map(({ value, total }) => {
      return { domain: this.#tables.kinds.valueText(value), total: total.slice() };
    });
  }
}
