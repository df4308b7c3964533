/** What a shard remembers from cycle to cycle beside machines and demand. */
import { type Amounts, NO_AMOUNTS, add } from './amounts.ts';
import { type Profile, sameKeyOf } from './profile.ts';
import type { Row } from './row.ts';

const PARKED_FROM_AGE = 8;
const PROBED_EACH = 32;

/** Gangs that no domain can hold stop moving after a while: section 4.7. */
export class Parking {
  #ages = new Map<string, number>();

  /** True if no gang waits: then none is parked. */
  get isEmpty(): boolean {
    return this.#ages.size === 0;
  }

  isParked(row: Pick<Row, 'cluster' | 'group' | 'profile'>): boolean {
    const age = this.ageOf(row);
    return age >= PARKED_FROM_AGE && age % PROBED_EACH !== 0;
  }

  /** For how many cycles a gang could be satisfied nowhere, and took nothing. */
  ageOf(row: Pick<Row, 'cluster' | 'group' | 'profile'>): number {
    const { cluster, group, profile } = row;
    if (sameKeyOf(profile) === undefined) return 0;
    return this.#ages.get(gangKey(cluster, group, profile)) ?? 0;
  }

  /** Keys of gangs that are short, that no domain can hold, and that took nothing. */
  record(stuck: readonly string[]): void {
    this.#ages = new Map(stuck.map((key) => [key, (this.#ages.get(key) ?? 0) + 1]));
  }
}

/** What a gang is known by from cycle to cycle. */
export function gangKey(cluster: string, group: string, profile: Profile): string {
  return `${cluster}\0${group}\0${profile.fingerprint}`;
}

export const SHORTFALLS_MAX = 100;

/** What rows of a profile lack. */
export interface Missing {
  readonly profile: Profile;
  readonly deficit: Amounts;
}

export interface Shortfall extends Missing {
  /** In cycles, this one counted. */
  readonly age: number;
}

/** What remains uncovered, by profile: section 4.12. */
export class Shortfalls {
  #current = new Map<string, Shortfall>();

  /** By priority, the older first; at most `SHORTFALLS_MAX`. */
  record(missing: readonly Missing[]): readonly Shortfall[] {
    const sums = new Map<string, Missing>();
    for (const { profile, deficit } of missing) {
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
