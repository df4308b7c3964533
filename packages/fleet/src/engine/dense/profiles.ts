// data plane: profiles as small numbers, with what the phases ask of them worked out once
import { bucketDollars } from '../cost.ts';
import { type Profile, pinnedTypesOf, sameKeyOf, strictSpreadOf, withoutSame } from '../profile.ts';
import type { Spread } from '../profile.ts';

/** One profile, and what follows from it. */
export interface ProfileFacts {
  readonly id: number;
  readonly profile: Profile;
  readonly sameKey: string | undefined;
  /** Of a profile without Same. */
  readonly spread: Spread | undefined;
  /** Sorted, each once. */
  readonly types: readonly string[] | undefined;
  /** It names a type twice: the reference then counts machines twice. */
  readonly isOdd: boolean;
  readonly penalty: number;
  /** The number of the same profile without Same; itself if it has none. */
  foldedId: number;
}

export class Profiles {
  readonly #ids = new Map<string, number>();
  readonly facts: ProfileFacts[] = [];

  idOf(profile: Profile): number {
    const known = this.#ids.get(profile.fingerprint);
    if (known !== undefined) return known;
    const id = this.facts.length;
    this.#ids.set(profile.fingerprint, id);
    const sameKey = sameKeyOf(profile);
    const pinned = pinnedTypesOf(profile);
    const types = pinned === undefined ? undefined : [...new Set(pinned)];
    const facts: ProfileFacts = {
      ...{ id, profile, sameKey, types, foldedId: id },
      spread: sameKey === undefined ? strictSpreadOf(profile) : undefined,
      isOdd: types?.length !== pinned?.length,
      penalty: bucketDollars(profile.interruptionBucket),
    };
    this.facts.push(facts);
    if (sameKey !== undefined) facts.foldedId = this.idOf(withoutSame(profile));
    return id;
  }

  find(fingerprint: string): number {
    return this.#ids.get(fingerprint) ?? -1;
  }
}
