/** What clusters are told of capacity they might get: section 4.13. */
import { type Profile, pinnedTypesOf } from './profile.ts';

export const CONFIDENCES = ['NONE', 'MEDIUM', 'HIGH'] as const;

export interface HintValue {
  readonly count: number;
  readonly confidence: (typeof CONFIDENCES)[number];
  /** Dollars. */
  readonly costPerHour: number;
}

export interface Hint extends HintValue {
  readonly cluster: string;
  readonly profile: Profile;
}

interface Sent extends HintValue {
  readonly atSeconds: number;
}

/** Remembers what was told, so that nothing is told twice or too often. */
export class Hints {
  readonly #intervalSeconds: number;
  readonly #sent = new Map<string, Map<string, Sent>>();

  constructor(intervalSeconds: number) {
    this.#intervalSeconds = intervalSeconds;
  }

  /** Clusters that have something to hear even if nothing changes. */
  readonly #waiting = new Set<string>();

  /** The session of a cluster begins; nothing changes if it has one. */
  begin(cluster: string): void {
    if (this.#sent.has(cluster)) return;
    this.#sent.set(cluster, new Map());
    this.#waiting.add(cluster);
  }

  isWaiting(cluster: string): boolean {
    return this.#waiting.has(cluster);
  }

  /** The session of a cluster ends; the next one hears everything again. */
  end(cluster: string): void {
    this.#sent.delete(cluster);
  }

  /** What is to be sent now: of each cluster with a session, each profile that it asks for. */
  due(
    asked: Iterable<{ readonly cluster: string; readonly profile: Profile }>,
    offers: Offers,
    nowSeconds: number,
  ): readonly Hint[] {
    const due: Hint[] = [];
    const early = new Set<string>();
    for (const { cluster, profile } of asked) {
      const sent = this.#sent.get(cluster);
      if (sent === undefined) continue;
      const value = offers.to(profile);
      const last = sent.get(profile.fingerprint);
      const isSame =
        last?.count === value.count &&
        last.confidence === value.confidence &&
        last.costPerHour === value.costPerHour;
      if (isSame) continue;
      if (last !== undefined && nowSeconds - last.atSeconds < this.#intervalSeconds) {
        early.add(cluster);
        continue;
      }
      sent.set(profile.fingerprint, { ...value, atSeconds: nowSeconds });
      due.push({ cluster, profile, ...value });
    }
    this.#waiting.clear();
    for (const cluster of early) this.#waiting.add(cluster);
    return due;
  }
}

interface Offer {
  idle: number;
  speculative: number;
  cheapest: number;
}

/** Counts by type. What else a profile requires is not looked at, nor is what is claimed. */
export class Offers {
  readonly #byType = new Map<string, Offer>();
  readonly #all: Offer = { idle: 0, speculative: 0, cheapest: Infinity };
  readonly #values = new Map<string, HintValue>();

  /** So many machines of a type are there; `cheapest` is the price of an idle one. */
  add(instanceType: string, { idle, speculative, cheapest }: Readonly<Offer>): void {
    const offer = this.#byType.get(instanceType) ?? { idle: 0, speculative: 0, cheapest: Infinity };
    this.#byType.set(instanceType, offer);
    for (const counted of [offer, this.#all]) {
      counted.idle += idle;
      counted.speculative += speculative;
      counted.cheapest = Math.min(counted.cheapest, cheapest);
    }
  }

  to(profile: Profile): HintValue {
    const known = this.#values.get(profile.fingerprint);
    if (known !== undefined) return known;
    const value = this.#valueFor(profile);
    this.#values.set(profile.fingerprint, value);
    return value;
  }

  #valueFor(profile: Profile): HintValue {
    const types = pinnedTypesOf(profile);
    const pinned = (types ?? []).map((type) => this.#byType.get(type));
    const offers = types === undefined ? [this.#all] : pinned;
    let [idle, speculative, costPerHour] = [0, 0, 0];
    for (const offer of offers) {
      idle += offer?.idle ?? 0;
      speculative += offer?.speculative ?? 0;
      // zero stands for a price that is not known yet, also where it is a price
      const isTyped = types !== undefined && offer !== undefined && offer.idle > 0;
      const isCheaper = isTyped && (costPerHour === 0 || offer.cheapest < costPerHour);
      if (isCheaper) costPerHour = offer.cheapest;
    }
    const confidence = idle > 0 ? 'HIGH' : speculative > 0 ? 'MEDIUM' : 'NONE';
    return { count: idle + speculative, confidence, costPerHour };
  }
}
