/** What a shard remembers from cycle to cycle beside machines and demand. */
import { type Amounts, NO_AMOUNTS, add, isZero } from './amounts.ts';
import type { Unresolved } from './plain/preempt.ts';
import { type Profile, sameKeyOf } from './profile.ts';
import type { Row, Verdict } from './row.ts';

const PARKED_FROM_AGE = 8;
const PROBED_EACH = 32;

/** Gangs that no domain can hold stop moving after a while: section 4.7. */
export class Parking {
  #ages = new Map<string, number>();

  /** True if no gang waits: then none is parked. */
  get isEmpty(): boolean {
    return this.#ages.size === 0;
  }

  isParked(row: Row): boolean {
    const age = this.ageOf(row);
    return age >= PARKED_FROM_AGE && age % PROBED_EACH !== 0;
  }

  /** For how many cycles a gang could be satisfied nowhere, and took nothing. */
  ageOf(row: Row): number {
    return sameKeyOf(row.profile) === undefined ? 0 : (this.#ages.get(keyOf(row)) ?? 0);
  }

  record(verdicts: readonly Verdict[]): void {
    const ages = new Map<string, number>();
    for (const { row, deficit, satisfiable, claimed } of verdicts) {
      if (sameKeyOf(row.profile) === undefined || satisfiable || isZero(deficit)) continue;
      const hasTaken = claimed.some(({ state }) => state === 'Idle' || state === 'Speculative');
      if (!hasTaken) ages.set(keyOf(row), this.ageOf(row) + 1);
    }
    this.#ages = ages;
  }
}

function keyOf({ cluster, group, profile }: Row): string {
  return `${cluster}\0${group}\0${profile.fingerprint}`;
}

export const SHORTFALLS_MAX = 100;

export interface Shortfall {
  readonly profile: Profile;
  readonly deficit: Amounts;
  /** In cycles, this one counted. */
  readonly age: number;
}

/** What remains uncovered, by profile: section 4.12. */
export class Shortfalls {
  #current = new Map<string, Shortfall>();

  /** By priority, the older first; at most `SHORTFALLS_MAX`. */
  record(unresolved: readonly Unresolved[]): readonly Shortfall[] {
    const sums = new Map<string, { readonly profile: Profile; deficit: Amounts }>();
    for (const { verdict, deficit } of unresolved) {
      const { profile } = verdict.row;
      const sum = sums.get(profile.fingerprint) ?? { profile, deficit: NO_AMOUNTS };
      sums.set(profile.fingerprint, { profile, deficit: add(sum.deficit, deficit) });
    }
    const all = [...sums].map(([fingerprint, sum]) => {
      return { ...sum, age: this.ageOf(fingerprint) + 1 };
    });
    all.sort((left, right) => {
      return right.profile.priority - left.profile.priority || right.age - left.age;
    });
    this.#current = new Map(all.map((entry) => [entry.profile.fingerprint, entry]));
    return all.slice(0, SHORTFALLS_MAX);
  }

  ageOf(fingerprint: string): number {
    return this.#current.get(fingerprint)?.age ?? 0;
  }
}
