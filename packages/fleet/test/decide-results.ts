/**
 * Results of decide questions in one form, so that equal answers are equal objects: amounts by
 * value, profiles by content, what is absent as its default, and lists sorted where their order
 * means nothing.
 */
import { parseQuantity } from '@megaplane/machinery/quantity';

type Json = Readonly<Record<string, unknown>>;

const OPERATORS = ['Unspecified', 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Same'];

function listOf(value: unknown): readonly Json[] {
  return (value ?? []) as readonly Json[];
}

function amounts(value: unknown, isKept = false): Json {
  const entries = Object.entries((value ?? {}) as Readonly<Record<string, string>>);
  const read = entries.map(([name, text]): [string, string] => {
    const quantity = parseQuantity(text);
    return [name, typeof quantity === 'string' ? text : String(quantity.scaled(-9))];
  });
  const kept = read.filter(([, nano]) => isKept || nano !== '0');
  return Object.fromEntries(kept.toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

/** Names of profiles to texts of what is in them. */
class Names {
  readonly #profiles: Json;

  constructor(profiles: Json) {
    this.#profiles = profiles;
  }

  textOf(value: unknown): string {
    const name = value as string | undefined;
    if (name === undefined || name === '') return '';
    const known = this.#profiles[name];
    if (known !== undefined) return this.#text(known as Json, false);
    const whole = this.#profiles[name.replace(/\/folded$/, '')];
    return whole === undefined ? `?${name}` : this.#text(whole as Json, true);
  }

  #text(profile: Json, isFolded: boolean): string {
    const requirements = listOf(profile['requirements'])
      .filter(({ operator }) => !isFolded || operator !== 'Same')
      .map(({ key, operator, values }) => [
        key,
        OPERATORS.indexOf(operator as string),
        ((values ?? []) as readonly string[]).toSorted(),
      ])
      .toSorted((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
    const spread = listOf(profile['spread'])
      .map((entry) => JSON.stringify(entry))
      .toSorted();
    const { priority, interruptionPenaltyBucket, reclamationPenaltyBucket } = profile;
    return JSON.stringify([
      ...[requirements, spread, priority ?? 0],
      ...[interruptionPenaltyBucket ?? 0, reclamationPenaltyBucket ?? 0],
    ]);
  }
}

/** One cycle's result in the common form; `inventory` is left out where `withInventory` is not. */
export function normalCycle(result: Json, profiles: Json, withInventory: boolean): object {
  const names = new Names(profiles);
  const actions = listOf(result['actions']).map((action) => normalAction(action, names));
  return {
    rollups: listOf(result['rollups']).map((rollup) => ({
      cluster: rollup['cluster'],
      outcome: [rollup['accepted'], rollup['held'], rollup['confirmed'], rollup['rejected']]
        .map(Number)
        .map((number) => number || 0),
    })),
    rejectedMachines: result['rejectedMachines'] ?? {},
    ...(withInventory ? { inventory: normalInventory(result['inventory'] as Json, names) } : {}),
    needs: sorted(listOf(result['needs']).map((need) => normalNeed(need, names))),
    actions: sorted(actions),
    sequences: ['Preempt', 'Reclaim', 'Delete'].map((kind) => {
      return actions.filter((action) => action.kind === kind).map(({ machine }) => machine);
    }),
    withheldReclaims: result['withheldReclaims'] ?? [],
    deferred: result['deferred'] ?? 0,
    suppressed: result['suppressed'] ?? '',
    shortfalls: sorted(
      listOf(result['shortfalls']).map(({ profile, deficit, age }) => {
        return { profile: names.textOf(profile), deficit: amounts(deficit), age };
      }),
    ),
    hints: sorted(
      listOf(result['hints']).map(({ cluster, profile, count, confidence, costPerHour }) => {
        return { cluster, profile: names.textOf(profile), count, confidence, costPerHour };
      }),
    ),
  };
}

interface NormalAction {
  readonly kind: unknown;
  readonly machine: unknown;
  readonly rest: readonly unknown[];
}

function normalAction(action: Json, names: Names): NormalAction {
  const { kind, machine, cluster, profile, group, graceSeconds, preemptorPriority } = action;
  const rest = [cluster ?? '', names.textOf(profile), group ?? '', graceSeconds ?? 0];
  return { kind, machine, rest: [...rest, preemptorPriority ?? null] };
}

function normalInventory(inventory: Json, names: Names): object {
  const entries = Object.entries(inventory).map(([id, value]) => {
    const { state, cluster, assigned } = value as Json;
    const stamp = (assigned ?? {}) as Json;
    const { group, priority, interruptionPenalty, reclamationPenalty } = stamp;
    const rest = [group ?? '', priority ?? 0, interruptionPenalty ?? 0, reclamationPenalty ?? 0];
    return [
      id,
      { state, cluster: cluster ?? '', stamp: [names.textOf(stamp['profile']), ...rest] },
    ];
  });
  return Object.fromEntries(entries) as object;
}

function normalNeed(need: Json, names: Names): object {
  const supply = need['matchingSupply'] as Json | undefined;
  const preemption = (need['preemption'] ?? {}) as Json;
  return {
    cluster: need['cluster'],
    profile: names.textOf(need['profile']),
    group: need['group'] ?? '',
    aggregate: amounts(need['aggregate'], true),
    minUnit: amounts(need['minUnit'], true),
    satisfied: need['satisfied'],
    claimed: ((need['claimed'] ?? []) as readonly string[]).toSorted(),
    deficit: amounts(need['deficit']),
    domain: need['domain'] ?? '',
    satisfiable: need['satisfiable'] ?? false,
    candidates: need['candidates'] ?? [],
    parked: need['parked'] ?? false,
    parkedAge: need['parkedAge'] ?? 0,
    reason: need['reason'] ?? '',
    age: need['age'] ?? 0,
    supply: supply === undefined ? null : { capped: false, ...supply },
    victims: preemption['victims'] ?? 0,
    freed: amounts(preemption['freed']),
  };
}

function sorted<Item>(items: readonly Item[]): readonly Item[] {
  return items
    .map((item) => ({ item, key: JSON.stringify(item) }))
    .toSorted((left, right) => (left.key < right.key ? -1 : 1))
    .map(({ item }) => item);
}
