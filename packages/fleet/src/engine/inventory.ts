/** The machines of a shard, and what providers tell of them: section 5.3. */
import { amountsOf } from './amounts.ts';
import { IDLE, type Machines } from './dense/machines.ts';
import { type CapacityType, EDGES, type Machine, NO_STAMP, STATES } from './machine.ts';
import type { Stamp, State } from './machine.ts';

/** One machine in a provider's List. */
export interface MachineRecord {
  readonly id: string;
  /** A word of `STATES`; others are refused. */
  readonly state: string;
  readonly cluster: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly capacityType: CapacityType;
  readonly labels: Readonly<Record<string, string>>;
  /** What the node offers; empty if the provider does not tell it apart from `resources`. */
  readonly allocatable: Readonly<Record<string, string>>;
  readonly resources: Readonly<Record<string, string>>;
  readonly price: number;
  readonly interruptionProbability: number;
  readonly lastError: string;
  readonly hasHost: boolean;
  readonly shardMetadata: Readonly<Record<string, string>>;
}

export const REJECTIONS = ['price', 'interruption_probability', 'structural'] as const;
export type Rejection = (typeof REJECTIONS)[number];

/** What became of one record: `illegal` is a state that no edge leads to from the known one. */
export type Merged = Rejection | 'same' | 'taken' | 'illegal';

const BOUND: ReadonlySet<State> = new Set(['Configuring', 'Configured', 'Draining']);

export interface Tally {
  readonly state: State;
  readonly capacityType: CapacityType;
  /** Dollars; may be Infinity. */
  readonly penalty: number;
  count: number;
}

/** Machines of one state, type and zone. */
export interface Place {
  readonly state: State;
  readonly instanceType: string;
  readonly zone: string;
  readonly count: number;
}

/** What a List says of a machine that may change while its state does not. */
interface Told extends Pick<MachineRecord, 'id' | 'cluster' | 'price' | 'interruptionProbability'> {
  readonly state: State;
}

export class Inventory {
  readonly #table: Machines;

  constructor(table: Machines) {
    this.#table = table;
  }

  get machines(): Iterable<Machine> {
    const { slots } = this.#table;
    return slots.values().map((slot) => this.#table.machineAt(slot));
  }

  get(id: string): Machine | undefined {
    const slot = this.#table.slots.get(id);
    return slot === undefined ? undefined : this.#table.machineAt(slot);
  }

  /** Puts a machine as it is now; `nowSeconds` is when it became Idle, if it did. */
  put(machine: Omit<Machine, 'idleSince'>, nowSeconds: number): void {
    const slot = this.#table.slots.get(machine.id);
    const wasIdle = slot !== undefined && this.#table.state[slot] === IDLE;
    const isStill = wasIdle && machine.state === 'Idle';
    const idleSince = isStill ? (this.#table.idleSince[slot] ?? nowSeconds) : nowSeconds;
    this.#table.put({ ...machine, idleSince });
  }

  remove(id: string): void {
    this.#table.remove(id);
  }

  get ids(): Iterable<string> {
    return this.#table.slots.keys();
  }

  stateOf(id: string): State | undefined {
    const slot = this.#table.slots.get(id);
    return slot === undefined ? undefined : STATES[this.#table.state[slot] ?? -1];
  }

  /** True if a machine is known in the state and of the cluster and price that are told. */
  isAs(told: Told): boolean {
    const slot = this.#table.slots.get(told.id);
    if (slot === undefined) return false;
    const { state, kind, kinds, cluster, clusterNames } = this.#table;
    if (STATES[state[slot] ?? -1] !== told.state) return false;
    const number = kind[slot] ?? -1;
    const isPriced = kinds.price[number] === told.price;
    if (!isPriced || kinds.probability[number] !== told.interruptionProbability) return false;
    const own = clusterNames[cluster[slot] ?? -1] ?? '';
    return own === told.cluster || !BOUND.has(told.state);
  }

  /**
   * Takes what a record says of a machine in the state that it is known in: another cluster or
   * another price. Who has the machine knows. The reference passes over both. Answers whether
   * something was another.
   */
  refresh(record: MachineRecord, nowSeconds: number): boolean {
    const known = this.get(record.id);
    if (known === undefined || known.state !== record.state) return false;
    if (rejectionOf(record) !== undefined || this.isAs({ ...record, state: known.state })) {
      return false;
    }
    const isMoved = BOUND.has(known.state) && known.cluster !== record.cluster;
    const stamp = isMoved ? stampOf(record.shardMetadata) : known.stamp;
    const cluster = isMoved ? record.cluster : known.cluster;
    this.put({ ...machineOf(record, known.state, stamp), cluster }, nowSeconds);
    return true;
  }

  /** How many machines there are of each state, capacity type and interruption penalty. */
  tally(): Tally[] {
    const { state, kind, interruptionPenalty, kinds, end } = this.#table;
    const counts = new Map<string, Map<number, Tally>>();
    for (let slot = 0; slot < end; slot++) {
      const word = STATES[state[slot] ?? -1];
      const type = kinds.fields[kind[slot] ?? -1]?.capacityType;
      if (word === undefined || type === undefined) continue;
      const key = `${word}/${type}`;
      let byPenalty = counts.get(key);
      if (byPenalty === undefined) counts.set(key, (byPenalty = new Map<number, Tally>()));
      const penalty = interruptionPenalty[slot] ?? 0;
      const tally = byPenalty.get(penalty);
      if (tally !== undefined) tally.count++;
      else byPenalty.set(penalty, { state: word, capacityType: type, penalty, count: 1 });
    }
    return [...counts.values()].flatMap((byPenalty) => [...byPenalty.values()]);
  }

  /** How many machines there are of each state, type and zone. */
  places(): Iterable<Place> {
    const { state, kind, kinds, end } = this.#table;
    const places = new Map<number, { -readonly [Field in keyof Place]: Place[Field] }>();
    for (let slot = 0; slot < end; slot++) {
      const word = STATES[state[slot] ?? -1];
      const number = kind[slot] ?? -1;
      const fields = kinds.fields[number];
      if (word === undefined || fields === undefined) continue;
      const key = number * STATES.length + (state[slot] ?? 0);
      const place = places.get(key);
      if (place !== undefined) place.count++;
      else {
        const { instanceType, zone } = fields;
        places.set(key, { state: word, instanceType, zone, count: 1 });
      }
    }
    return places.values();
  }

  /** All that name a cluster, in whatever state. */
  *of(cluster: string): Generator<Machine> {
    const id = this.#table.clusterNames.indexOf(cluster);
    if (id < 0) return;
    for (let slot = 0; slot < this.#table.end; slot++) {
      if (this.#table.cluster[slot] === id) yield this.#table.machineAt(slot);
    }
  }

  /**
   * Merges a full List. Machines with an action under way are left as they are, unless they are
   * missing; what is told of a machine in a state it already has is not looked at. Answers the
   * refused records.
   */
  merge(
    records: readonly MachineRecord[],
    isBusy: (id: string) => boolean,
    nowSeconds: number,
  ): ReadonlyMap<string, Rejection> {
    const refused = new Map<string, Rejection>();
    const seen = new Set<string>();
    for (const record of records) {
      seen.add(record.id);
      if (isBusy(record.id)) continue;
      const merged = this.mergeRecord(record, nowSeconds);
      const rejection = REJECTIONS.find((word) => word === merged);
      if (rejection !== undefined) refused.set(record.id, rejection);
    }
    const gone = [...this.#table.slots.keys()].filter((id) => !seen.has(id));
    for (const id of gone) this.#table.remove(id);
    return refused;
  }

  /** Merges one record; a machine in the state that is told of stays as it is. */
  mergeRecord(record: MachineRecord, nowSeconds: number): Merged {
    if (this.stateOf(record.id) === record.state) return 'same';
    const rejection = rejectionOf(record);
    if (rejection !== undefined) return rejection;
    const known = this.get(record.id);
    const state = stateOf(record.state);
    if (state === undefined) return 'structural';
    if (known !== undefined && !EDGES[known.state].includes(state)) return 'illegal';
    const kept = known === undefined ? stampOf(record.shardMetadata) : known.stamp;
    const stamp = known === undefined || BOUND.has(state) ? kept : NO_STAMP;
    this.put(machineOf(record, state, stamp), nowSeconds);
    return 'taken';
  }
}

/** A record as the shard keeps it. */
export function machineOf(
  record: MachineRecord,
  state: State,
  stamp: Stamp,
): Omit<Machine, 'idleSince'> {
  const { id, cluster, instanceType, zone, capacityType, price, interruptionProbability } = record;
  const labels = new Map(Object.entries(record.labels));
  const isTold = Object.keys(record.allocatable).length > 0;
  const allocatable = amountsOf(isTold ? record.allocatable : record.resources);
  const base = { id, state, cluster, instanceType, zone, capacityType, labels, allocatable };
  return { ...base, price, interruptionProbability, stamp };
}

export function stateOf(word: string): State | undefined {
  return STATES.find((state) => state === word);
}

/** What is wrong with a record, if anything; a probability is judged before a price. */
export function rejectionOf(record: MachineRecord): Rejection | undefined {
  const { price, interruptionProbability: probability } = record;
  if (!(probability >= 0 && probability <= 1)) return 'interruption_probability';
  if (!(price >= 0)) return 'price';
  return isWhole(record) ? undefined : 'structural';
}

/** Whether host, cluster and error stand where a state wants them, section 4.15. */
function isWhole({ state, hasHost, cluster, lastError }: MachineRecord): boolean {
  switch (stateOf(state)) {
    case 'Speculative':
    case 'Creating':
      return !hasHost && cluster === '';
    case 'Idle':
    case 'Configuring':
    case 'Deleting':
      return hasHost;
    case 'Configured':
    case 'Draining':
      return hasHost && cluster !== '';
    case 'Failed':
      return lastError !== '' && (hasHost || cluster === '');
    case undefined:
      return false;
  }
}

const METADATA = 'bigfleet.lucy.sh/assigned-';
const INT32_MAX = 2 ** 31 - 1;

/** Reads what a provider echoes; a value that cannot be read is as good as none. */
export function stampOf(metadata: Readonly<Record<string, string>>): Stamp {
  const text = (name: string): string => {
    const key = `${METADATA}${name}`;
    return Object.hasOwn(metadata, key) ? (metadata[key] ?? '') : '';
  };
  return {
    fingerprint: text('need-fingerprint'),
    group: text('group'),
    priority: wholeNumber(text('priority')),
    interruptionPenalty: dollars(text('interruption-penalty-dollars')),
    reclamationPenalty: dollars(text('reclamation-penalty-dollars')),
  };
}

function wholeNumber(text: string): number {
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
  return value >= -INT32_MAX - 1 && value <= INT32_MAX ? value : 0;
}

/** Decimal or exponent form, or one of Go's spellings of infinity. */
function dollars(text: string): number {
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : 0;
}
