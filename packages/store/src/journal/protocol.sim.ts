/**
 * The protocol of docs/journal-protocol.md as a state machine, small enough to visit every state.
 *
 * A state is a journal, messages under way to it, and members. `steps` lists all states that may
 * follow; `violation` says which promise a state breaks. `broken` names a rule to leave out, so
 * that a test sees that the search finds what the rule prevents.
 */

/** One entry of the journal. `by` and `life` name the process that wrote it. */
interface Entry {
  readonly kind: 'lead' | 'data' | 'beat' | 'over';
  readonly epoch: number;
  readonly by: number;
  readonly life: number;
  /** Of data: its revision and what was written; 0 for the others. */
  readonly revision: number;
  readonly value: number;
  /** The group's next part follows. */
  readonly goesOn: boolean;
}

interface Message {
  readonly entry: Entry;
  readonly expected: number;
}

/** An append whose outcome is not known. */
interface Flight {
  readonly entry: Entry;
  readonly expected: number;
  readonly sentAt: number;
  readonly copies: number;
}

interface Member {
  readonly isUp: boolean;
  readonly life: number;
  readonly role: 'standby' | 'leader';
  readonly epoch: number;
  /** Entries read, or written as the leader. */
  readonly position: number;
  readonly seenAt: number;
  readonly mayTakeOver: boolean;
  readonly leaseUntil: number;
  /** Values in the order of revisions. */
  readonly published: readonly number[];
  readonly hasPart: boolean;
  readonly flight: Flight | null;
}

export interface ProtocolState {
  readonly now: number;
  readonly journal: readonly Entry[];
  readonly network: readonly Message[];
  readonly members: readonly Member[];
  /** Values whose writers were told that they are written. */
  readonly acknowledged: readonly number[];
  readonly writes: number;
  readonly crashes: number;
  readonly takeOvers: number;
  readonly beats: number;
  readonly handOvers: number;
  /** What a read said that it must not have said. */
  readonly wrongRead: boolean;
}

export interface Bounds {
  readonly members: number;
  readonly ticks: number;
  readonly writes: number;
  readonly crashes: number;
  readonly takeOvers: number;
  readonly beats: number;
  readonly handOvers: number;
  readonly copies: number;
}

/** A rule that is left out. */
export type Broken =
  | 'none'
  /** A leader whose append has no outcome takes it for refused, and writes on as the leader. */
  | 'forgets-unknown'
  /** A write is acknowledged when it is sent. */
  | 'acknowledges-early'
  /** A standby takes over without waiting for the lease. */
  | 'takes-over-early'
  /** The lease counts from the answer. */
  | 'leases-from-answer'
  /** The first part of a group counts without the last. */
  | 'counts-parts'
  /** The journal takes entries wherever they are meant to stand. */
  | 'appends-anywhere';

const LEASE = 2;

const FRESH: Member = {
  isUp: true,
  life: 0,
  role: 'standby',
  epoch: 0,
  position: 0,
  seenAt: 0,
  mayTakeOver: false,
  leaseUntil: 0,
  published: [],
  hasPart: false,
  flight: null,
};

export function firstState({ members }: Bounds): ProtocolState {
  return {
    now: 0,
    journal: [],
    network: [],
    // Nobody has led yet, so nobody's lease is waited for.
    members: Array.from({ length: members }, () => ({ ...FRESH, mayTakeOver: true })),
    acknowledged: [],
    writes: 0,
    crashes: 0,
    takeOvers: 0,
    beats: 0,
    handOvers: 0,
    wrongRead: false,
  };
}

function withMember(state: ProtocolState, index: number, change: Partial<Member>): ProtocolState {
  const members = state.members.map((member, at) =>
    at === index ? { ...member, ...change } : member,
  );
  return { ...state, members };
}

/** Is it the same append, and not one that only looks like it? */
function isSame(a: Entry, b: Entry): boolean {
  return a.by === b.by && a.life === b.life && a.epoch === b.epoch && a.kind === b.kind
    ? a.value === b.value && a.goesOn === b.goesOn
    : false;
}

/** What a reader of the journal holds after its first `count` entries. */
function effect(journal: readonly Entry[], count: number): number[] {
  const values: number[] = [];
  for (const { kind, goesOn, value } of journal.slice(0, count)) {
    if (kind === 'data' && !goesOn) values.push(value);
  }
  return values;
}

export function violation(state: ProtocolState): string | null {
  const all = effect(state.journal, state.journal.length);
  let epoch = 0;
  let part = 0;
  let revision = 0;
  for (const entry of state.journal) {
    if (entry.kind === 'lead') {
      if (entry.epoch <= epoch) return 'two leaders in one epoch';
      ({ epoch } = entry);
      part = 0;
      continue;
    }
    if (entry.epoch !== epoch) return 'an entry of a leader that was replaced';
    if (entry.kind !== 'data') continue;
    if (entry.goesOn) part = entry.value;
    else {
      if (part !== 0 && part !== entry.value) return 'a group is made of parts of two';
      part = 0;
      if (entry.revision !== ++revision) return 'a revision is used twice, or left out';
    }
  }
  for (const value of state.acknowledged) if (!all.includes(value)) return 'a write is lost';
  for (const { isUp, published } of state.members) {
    if (isUp && published.some((value, index) => value !== all[index])) {
      return 'something is published that is not in the journal';
    }
  }
  return state.wrongRead ? 'a read by lease misses an acknowledged write' : null;
}

class Search {
  readonly #bounds: Bounds;
  readonly #broken: Broken;
  next: ProtocolState[] = [];

  constructor(bounds: Bounds, broken: Broken) {
    this.#bounds = bounds;
    this.#broken = broken;
  }

  #send(state: ProtocolState, index: number, entry: Entry, change: Partial<Member>): ProtocolState {
    const expected = (state.members[index] as Member).position;
    const flight: Flight = { entry, expected, sentAt: state.now, copies: 1 };
    const sent = withMember(state, index, { ...change, flight });
    return { ...sent, network: [...state.network, { entry, expected }] };
  }

  run(state: ProtocolState): ProtocolState[] {
    this.next = [];
    if (state.now < this.#bounds.ticks) this.next.push({ ...state, now: state.now + 1 });
    for (const [at] of state.network.entries()) this.#deliver(state, at);
    for (const [index, member] of state.members.entries()) {
      if (!member.isUp) {
        const back = { ...FRESH, life: member.life + 1, seenAt: state.now };
        this.next.push(withMember(state, index, back));
        continue;
      }
      this.#crash(state, index);
      if (member.flight !== null) this.#doubt(state, index, member.flight);
      else if (member.role === 'standby') this.#standby(state, index, member);
      else this.#lead(state, index, member);
      if (member.role === 'leader' && state.now < member.leaseUntil) this.#read(state, member);
    }
    return this.next;
  }

  /** A message arrives; its sender hears of it, or does not. */
  #deliver(state: ProtocolState, at: number): void {
    const { entry, expected } = state.network[at] as Message;
    const network = state.network.filter((_, index) => index !== at);
    const isNext = state.journal.length === expected || this.#broken === 'appends-anywhere';
    const journal = isNext ? [...state.journal, entry] : state.journal;
    const after = { ...state, network, journal };
    this.next.push(after);
    const sender = after.members[entry.by] as Member;
    const { flight } = sender;
    if (flight === null || sender.life !== entry.life || !isSame(flight.entry, entry)) return;
    // Refused: what stands in its place may be an earlier copy of the same append.
    const standing = journal[flight.expected];
    const isMine = isNext || (standing !== undefined && isSame(standing, entry));
    this.next.push(isMine ? this.#won(after, entry.by, flight) : this.#lost(after, entry.by));
  }

  /** Nothing was heard: the same append again, as often as it takes. */
  #doubt(state: ProtocolState, index: number, flight: Flight): void {
    if (this.#broken === 'forgets-unknown' && flight.entry.kind === 'data') {
      this.next.push(withMember(state, index, { flight: null, position: flight.expected + 1 }));
    }
    if (flight.copies >= this.#bounds.copies) return;
    const { entry, expected } = flight;
    const again = withMember(state, index, { flight: { ...flight, copies: flight.copies + 1 } });
    this.next.push({ ...again, network: [...state.network, { entry, expected }] });
  }

  #won(state: ProtocolState, index: number, { entry, expected, sentAt }: Flight): ProtocolState {
    const member = state.members[index] as Member;
    const from = this.#broken === 'leases-from-answer' ? state.now : sentAt;
    const leaseUntil = entry.kind === 'over' ? 0 : from + LEASE;
    const position = expected + 1;
    const change = { flight: null, position, leaseUntil, seenAt: state.now };
    switch (entry.kind) {
      case 'lead': {
        const { epoch } = entry;
        return withMember(state, index, { ...change, role: 'leader', epoch, hasPart: false });
      }
      case 'over':
        return withMember(state, index, { ...change, role: 'standby', mayTakeOver: false });
      case 'beat':
        return withMember(state, index, change);
      case 'data': {
        const counts = !entry.goesOn || this.#broken === 'counts-parts';
        if (!counts) return withMember(state, index, { ...change, hasPart: true });
        const published = [...member.published, entry.value];
        const { acknowledged } = state;
        const told = acknowledged.includes(entry.value)
          ? acknowledged
          : [...acknowledged, entry.value];
        const next = withMember(state, index, { ...change, published, hasPart: false });
        return { ...next, acknowledged: told };
      }
    }
  }

  #lost(state: ProtocolState, index: number): ProtocolState {
    const change = { flight: null, role: 'standby', leaseUntil: 0, hasPart: false } as const;
    return withMember(state, index, { ...change, mayTakeOver: false, seenAt: state.now });
  }

  #crash(state: ProtocolState, index: number): void {
    if (state.crashes >= this.#bounds.crashes) return;
    const { life } = state.members[index] as Member;
    const down = withMember(state, index, { ...FRESH, isUp: false, life });
    this.next.push({ ...down, crashes: state.crashes + 1 });
  }

  #standby(state: ProtocolState, index: number, member: Member): void {
    const entry = state.journal[member.position];
    if (entry !== undefined) {
      const counts = entry.kind === 'data' && !entry.goesOn;
      this.next.push(
        withMember(state, index, {
          position: member.position + 1,
          seenAt: state.now,
          mayTakeOver: entry.kind === 'over',
          epoch: entry.kind === 'lead' ? entry.epoch : member.epoch,
          published: counts ? [...member.published, entry.value] : member.published,
        }),
      );
    }
    const isOver = member.mayTakeOver || this.#broken === 'takes-over-early';
    if (!isOver && state.now - member.seenAt < LEASE) return;
    if (state.takeOvers >= this.#bounds.takeOvers) return;
    const lead = this.#entry(index, member, 'lead', member.epoch + 1);
    const taking = { ...state, takeOvers: state.takeOvers + 1 };
    this.next.push(this.#send(taking, index, lead, {}));
  }

  #entry(by: number, { life }: Member, kind: Entry['kind'], epoch: number): Entry {
    return { kind, epoch, by, life, revision: 0, value: 0, goesOn: false };
  }

  #lead(state: ProtocolState, index: number, member: Member): void {
    const { epoch } = member;
    const revision = member.published.length + 1;
    if (member.hasPart) {
      const last = { ...this.#entry(index, member, 'data', epoch), revision, value: state.writes };
      // Nobody else writes between the parts: the value is the one that was begun.
      const begun = state.journal[member.position - 1];
      const value = begun?.value ?? last.value;
      this.next.push(this.#send(state, index, { ...last, value }, {}));
      return;
    }
    if (state.writes < this.#bounds.writes) {
      const value = state.writes + 1;
      const data = { ...this.#entry(index, member, 'data', epoch), revision, value };
      const early = this.#broken === 'acknowledges-early';
      const acknowledged = early ? [...state.acknowledged, value] : state.acknowledged;
      const writing = { ...state, writes: value, acknowledged };
      this.next.push(this.#send(writing, index, data, {}));
      this.next.push(this.#send(writing, index, { ...data, goesOn: true }, {}));
    }
    if (state.beats < this.#bounds.beats) {
      const beat = this.#entry(index, member, 'beat', epoch);
      this.next.push(this.#send({ ...state, beats: state.beats + 1 }, index, beat, {}));
    }
    if (state.handOvers < this.#bounds.handOvers) {
      const over = this.#entry(index, member, 'over', epoch);
      const handing = { ...state, handOvers: state.handOvers + 1 };
      // It reads by its lease no more before anybody can know.
      this.next.push(this.#send(handing, index, over, { leaseUntil: 0 }));
    }
  }

  #read(state: ProtocolState, { published }: Member): void {
    if (state.acknowledged.every((value) => published.includes(value))) return;
    this.next.push({ ...state, wrongRead: true });
  }
}

/** Without messages that will be refused, and whose senders do not wait for them. */
function pruned(state: ProtocolState): ProtocolState {
  const { journal, members } = state;
  const network = state.network.filter(({ entry, expected }) => {
    if (expected >= journal.length) return true;
    const { flight, life } = members[entry.by] as Member;
    return flight !== null && life === entry.life && isSame(flight.entry, entry);
  });
  return network.length === state.network.length ? state : { ...state, network };
}

export interface Found {
  readonly states: number;
  /** What is broken in some state, null when nothing ever is. */
  readonly violation: string | null;
}

/** Members are alike: states that differ only in their names count once. */
function keyOf(state: ProtocolState): string {
  const orders = permutations(state.members.length);
  let best = '';
  for (const order of orders) {
    const place = order.map((_, index) => order.indexOf(index));
    const entry = ({ kind, epoch, by, life, revision, value, goesOn }: Entry): string =>
      [kind[0], epoch, place[by], life, revision, value, goesOn].join('.');
    const member = (index: number): string => {
      const { isUp, life, role, epoch, position, seenAt, mayTakeOver, leaseUntil, ...rest } = state
        .members[index] as Member;
      const age = Math.min(LEASE, state.now - seenAt);
      const left = Math.max(0, leaseUntil - state.now);
      const { flight, published, hasPart } = rest;
      const sent =
        flight === null
          ? ''
          : [
              entry(flight.entry),
              flight.expected,
              Math.max(-LEASE, flight.sentAt - state.now),
              flight.copies,
            ].join('*');
      const parts = [isUp, life, role, epoch, position, age, mayTakeOver, left];
      return [...parts, published.join(), hasPart, sent].join(':');
    };
    const text = [
      state.now,
      state.journal.map(entry).join(' '),
      state.network
        .map((message) => `${entry(message.entry)}@${message.expected}`)
        .sort()
        .join(' '),
      order.map(member).join(' '),
      state.acknowledged.join(),
      [state.writes, state.crashes, state.takeOvers, state.beats, state.handOvers].join(),
      state.wrongRead,
    ].join('|');
    if (best === '' || text < best) best = text;
  }
  return best;
}

function permutations(count: number): number[][] {
  if (count === 1) return [[0]];
  return permutations(count - 1).flatMap((shorter) =>
    Array.from({ length: count }, (_, at) => shorter.toSpliced(at, 0, count - 1)),
  );
}

/** Visits every state within the bounds, nearest first; ends at the first violation. */
export function searchAll(bounds: Bounds, broken: Broken = 'none'): Found {
  const search = new Search(bounds, broken);
  const first = firstState(bounds);
  const seen = new Set([keyOf(first)]);
  let edge = [first];
  while (edge.length > 0) {
    const following: ProtocolState[] = [];
    for (const state of edge) {
      for (const made of search.run(state)) {
        const next = broken === 'appends-anywhere' ? made : pruned(made);
        const key = keyOf(next);
        if (seen.has(key)) continue;
        seen.add(key);
        const wrong = violation(next);
        if (wrong !== null) return { states: seen.size, violation: wrong };
        following.push(next);
      }
    }
    edge = following;
  }
  return { states: seen.size, violation: null };
}
