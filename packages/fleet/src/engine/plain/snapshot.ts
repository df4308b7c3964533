/** Machines as the plain phases look at them: lists by state, by cluster and by type. */
import { type Machine, type State, matches } from '../machine.ts';
import { type Profile, pinnedTypesOf } from '../profile.ts';
import { byUtf8 } from '../../contract/text-order.ts';

export class Snapshot {
  /** By id. */
  readonly machines: readonly Machine[];
  readonly #byState = new Map<State, Machine[]>();
  readonly #bound = new Map<string, Machine[]>();

  constructor(machines: Iterable<Machine>) {
    this.machines = [...machines].toSorted((left, right) => byUtf8(left.id, right.id));
    for (const machine of this.machines) {
      const { state, cluster } = machine;
      push(this.#byState, state, machine);
      const isBound = state === 'Configured' || state === 'Configuring';
      if (isBound && cluster !== '') push(this.#bound, cluster, machine);
    }
    for (const list of this.#bound.values()) list.sort(compareKeep);
  }

  /** By id. */
  inState(state: State): readonly Machine[] {
    return this.#byState.get(state) ?? [];
  }

  /** Configured ones before Configuring ones, in each of these what is kept first comes first. */
  boundTo(cluster: string): readonly Machine[] {
    return this.#bound.get(cluster) ?? [];
  }

  get clusters(): readonly string[] {
    return [...this.#bound.keys()].toSorted(byUtf8);
  }

  /**
   * Those that a profile's types select, unmatched: type after type, each by price and id, or all
   * of the state by id. A type that the profile lists twice comes twice.
   */
  selected(state: State, profile: Profile): readonly Machine[] {
    const types = pinnedTypesOf(profile);
    const all = this.inState(state);
    if (types === undefined) return all;
    return types.flatMap((type) => {
      return all
        .filter(({ instanceType }) => instanceType === type)
        .toSorted((left, right) => left.price - right.price);
    });
  }

  /** The same, of those that match. */
  matching(state: State, profile: Profile): readonly Machine[] {
    return this.selected(state, profile).filter((machine) => matches(profile, machine));
  }
}

function push<Key>(lists: Map<Key, Machine[]>, key: Key, machine: Machine): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [machine]);
  else list.push(machine);
}

/** Configured before Configuring; then cheap, dear to reclaim, by id. */
function compareKeep(left: Machine, right: Machine): number {
  return (
    Number(left.state === 'Configuring') - Number(right.state === 'Configuring') ||
    left.price - right.price ||
    descending(left.stamp.reclamationPenalty, right.stamp.reclamationPenalty) ||
    byUtf8(left.id, right.id)
  );
}

// not by subtraction: two pinned ones are infinitely dear
function descending(left: number, right: number): number {
  return left === right ? 0 : right > left ? 1 : -1;
}
