/**
 * One member of a group: follows the journal, or leads it. docs/journal-protocol.md has the rules.
 *
 * It knows no sockets. What it cannot go on with it says once, by `onEnd`: whoever holds it then
 * begins anew with an empty store, or gives up.
 */
import { parseNested } from '@megaplane/base/nested-json';
import type { Store } from '../mvcc/store.ts';
import { Appender } from './appender.ts';
import {
  ENTRY_BEAT,
  ENTRY_CHANGES,
  ENTRY_LEAD,
  ENTRY_OVER,
  type Entry,
  decodeEntry,
} from './entry.ts';
import { GroupMemory } from './group-memory.ts';
import type { Journal, ReadOutcome } from './journal.ts';
import { Replayer } from './replayer.ts';

/** How long a read waits for something to come. */
const READ_WAIT_MS = 150;
const PAUSE_MS = 50;
/** Standbys that see a lease end do not all append at once. */
const STAGGER_MS = 100;
/** Where a leader that hands over has named another one, that one goes first. */
const NAMED_WAIT_MS = 400;
/**
 * The leader's lease is shorter by this share than what a standby waits: so much may the clocks of
 * two members differ in speed, which is far more than any two do.
 */
const DRIFT = 0.1;
/** Parts of one group together: what may wait for the log, and some. */
const GROUP_BYTES_MAX: number = 320 * 1024 * 1024;

/** The world that a member lives in. */
export interface MemberWorld {
  /** Monotonic; stands still only while the process is not looked at by anybody. */
  nowMs(): number;
  pause(ms: number): Promise<void>;
  /** Evenly in [0, 1). */
  random(): number;
  drawId(): Buffer;
  log(message: string): void;
}

export interface MemberOptions {
  readonly store: Store;
  readonly journal: Journal;
  readonly world: MemberWorld;
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly leaseMs: number;
  /** Reads ask the journal each time, for those who trust no clock. */
  readonly readsByJournal: boolean;
  /** Never leads: an API server that only reads. */
  readonly isReader?: boolean;
  /** Where a state was taken from, when the store has one. */
  readonly from?: Place;
}

/** A place in the journal, and what must be known to go on from there. */
export interface Place {
  readonly position: number;
  readonly epoch: number;
  /** Of the last entry in its epoch. */
  readonly number: number;
  readonly group: Buffer;
  readonly leader: Leader | null;
}

export interface Leader {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly writer: string;
}

export type MemberEnd =
  /** Changes were applied here that the journal does not hold: another store must be begun. */
  | { readonly kind: 'deposed'; readonly why: string }
  /** What comes next was trimmed: another member's state is needed. */
  | { readonly kind: 'behind'; readonly first: number }
  | { readonly kind: 'failed'; readonly why: string };

type OwnEntry = Omit<Entry, 'group' | 'writer' | 'clockMs' | 'lastRevision'>;

const NOBODY = Buffer.alloc(8);

export class Member {
  readonly #options: MemberOptions;
  readonly #store: Store;
  readonly #replayer: Replayer;
  readonly #writer: Buffer;
  readonly #appender: Appender;
  role: 'standby' | 'leader' = 'standby';
  position = 0;
  epoch = 0;
  leader: Leader | null = null;
  group: Buffer = NOBODY;
  #number = 0;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #controlBytes = 0;
  /** When the last entry was read. */
  #seenMs = 0;
  /** When somebody may lead without waiting for the lease; Infinity: not before it ends. */
  #openMs = Infinity;
  #leaseUntilMs = -Infinity;
  #lastSentMs = -Infinity;
  /** When the last beat was made; a busy leader makes some, too, as they tell where it is. */
  #beatMs = -Infinity;
  #isTouched = false;
  readonly #memory = new GroupMemory();
  #wake: (() => void) | null = null;
  #isEnded = false;
  #isLeaving = false;
  #mayLead: boolean;
  #wantsToHandOverTo: string | null = null;
  /** Told of a place that the whole store belongs to, at the next one. */
  #onPlace: ((place: Place) => void)[] = [];
  /** The end of the journal as it was at the start, -1 before it is known. */
  #readyAt = -1;
  #isReady = false;
  readonly #ready = Promise.withResolvers<void>();
  /** Called when it leads, or follows another one; and once when it can do neither. */
  onRole: () => void = () => {};
  onEnd: (end: MemberEnd) => void = () => {};
  leaderChanges = 0;
  /** Why the journal does not answer, '' while it does. */
  fault = '';

  constructor(options: MemberOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#store.isStandby = true;
    this.#replayer = new Replayer(options.store);
    this.#writer = options.world.drawId();
    this.#mayLead = options.isReader !== true;
    this.#appender = new Appender(options.journal, options.world, () => this.#isEnded);
    const { from } = options;
    if (from === undefined) return;
    this.position = from.position;
    this.epoch = from.epoch;
    this.#number = from.number;
    this.group = from.group;
    this.leader = from.leader;
  }

  /** Where the store stands; only while nothing is pending. */
  get place(): Place {
    const { position, epoch, group, leader } = this;
    return { position, epoch, group, leader, number: this.#number };
  }

  /**
   * Calls back when everything that the store holds belongs to one place in the journal: now, or
   * when the next group is on its way. Should that not be written, this member ends.
   */
  whenPlaced(callback: (place: Place) => void): void {
    if (!this.#store.isPending && this.#store.batch.isDrained) callback(this.place);
    else this.#onPlace.push(callback);
  }

  /** Settles when it has the state of the journal's end, and somebody has led the group. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get writer(): string {
    return this.#writer.toString('hex');
  }

  get isLeader(): boolean {
    return this.role === 'leader';
  }

  /** Is a leader known, and was it heard of lately? */
  get hasLeader(): boolean {
    if (this.isLeader) return true;
    if (this.leader === null || this.#openMs !== Infinity) return false;
    return this.#options.world.nowMs() - this.#seenMs < this.#options.leaseMs * 2;
  }

  /** May the leader show what it holds, without asking the journal first? */
  get hasLease(): boolean {
    if (this.#options.readsByJournal) return false;
    return this.isLeader && this.#options.world.nowMs() < this.#leaseUntilMs;
  }

  /** What is seen from here on is shown only when the journal has answered; for reads. */
  confirm(): void {
    if (this.hasLease) return;
    this.#isTouched = true;
    this.#store.touch();
    this.submit();
  }

  async run(): Promise<void> {
    this.#seenMs = this.#options.world.nowMs();
    while (!this.#isEnded) {
      if (this.isLeader) await this.#lead();
      else await this.#follow();
    }
  }

  #end(end: MemberEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.role = 'standby';
    this.#leaseUntilMs = -Infinity;
    this.#wake?.();
    this.onEnd(end);
  }

  /** No more of it; whatever is under way counts for others only. */
  stop(): void {
    this.#isEnded = true;
    this.role = 'standby';
    this.#leaseUntilMs = -Infinity;
    this.#wake?.();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  async #follow(): Promise<void> {
    const { journal, world } = this.#options;
    const openInMs = Math.max(0, this.#openMs - world.nowMs());
    const outcome = await journal.read(this.position + 1, Math.min(READ_WAIT_MS, openInMs));
    if (this.#isEnded) return;
    this.fault = outcome.kind === 'unavailable' ? outcome.why : '';
    switch (outcome.kind) {
      case 'unavailable':
        // The leader could not write either: it has a whole lease once the engine is back.
        this.#seenMs = world.nowMs();
        await world.pause(PAUSE_MS);
        return;
      case 'gone':
        this.#end({ kind: 'failed', why: outcome.why });
        return;
      case 'trimmed':
        this.#end({ kind: 'behind', first: outcome.first });
        return;
      case 'entries':
        await this.#took(outcome);
    }
  }

  async #took(outcome: ReadOutcome & { readonly kind: 'entries' }): Promise<void> {
    const { world } = this.#options;
    for (const { position, bytes } of outcome.entries) {
      const wrong = this.#take(position, bytes);
      if (wrong !== null) {
        const { name } = this.#options.journal;
        this.#end({ kind: 'failed', why: `entry ${position} of the ${name}: ${wrong}` });
        return;
      }
    }
    if (outcome.entries.length > 0) {
      this.#seenMs = world.nowMs();
      await this.#lookWhetherReady();
      return;
    }
    await this.#idle();
  }

  /** Ready is who has what was there at the start: nobody gets to the end of a busy journal. */
  async #lookWhetherReady(): Promise<void> {
    if (this.#isReady) return;
    if (this.#readyAt < 0) {
      const end = await this.#options.journal.end();
      if (end.kind === 'end') this.#readyAt = end.last;
    }
    if (this.#readyAt >= 0 && this.position >= this.#readyAt && this.epoch > 0) this.#becomeReady();
  }

  #becomeReady(): void {
    this.#isReady = true;
    this.#ready.resolve();
  }

  /** Nothing came: is this the end, and does nobody lead? */
  async #idle(): Promise<void> {
    const { journal, world, leaseMs } = this.#options;
    const end = await journal.end();
    if (this.#isEnded || end.kind !== 'end') return;
    if (end.last > this.position) return;
    if (end.last < this.position) {
      const why = `the ${journal.name} ends at ${end.last}, and had ${this.position} entries`;
      this.#end({ kind: 'failed', why: `${why}: somebody has set it back` });
      return;
    }
    if (this.epoch > 0) this.#becomeReady();
    if (!this.#mayLead || this.#isLeaving) return;
    const nowMs = world.nowMs();
    const isNew = this.position === 0;
    const isOver = nowMs - this.#seenMs > leaseMs + world.random() * STAGGER_MS;
    if (isNew || isOver || nowMs >= this.#openMs) await this.#takeOver();
  }

  /** Applies an entry; says what is wrong with it, or null. */
  #take(position: number, bytes: Buffer): string | null {
    const entry = decodeEntry(bytes);
    if (typeof entry === 'string') return entry;
    if (this.epoch === 0) this.group = Buffer.from(entry.group);
    if (!entry.group.equals(this.group))
      return 'it is of another group, which uses this journal too';
    const wrong = entry.kind === ENTRY_LEAD ? this.#takeLead(entry) : this.#takeOther(entry);
    if (wrong !== null) return wrong;
    this.position = position;
    this.#number = entry.number;
    return null;
  }

  #takeLead(entry: Entry): string | null {
    if (entry.epoch !== this.epoch + 1) return `epoch ${entry.epoch} would follow ${this.epoch}`;
    this.epoch = entry.epoch;
    this.#dropParts();
    this.#openMs = Infinity;
    this.leader = leaderOf(entry);
    this.leaderChanges++;
    this.onRole();
    return null;
  }

  #takeOther(entry: Entry): string | null {
    if (entry.epoch !== this.epoch) return `it is of epoch ${entry.epoch}, and ${this.epoch} leads`;
    if (entry.number !== this.#number + 1) {
      return `it is number ${entry.number} of its epoch, and follows ${this.#number}`;
    }
    if (entry.kind === ENTRY_CHANGES) return this.#takeChanges(entry);
    if (entry.kind === ENTRY_OVER) {
      const { world, name } = this.#options;
      const named = entry.payload.toString('utf8');
      const share = world.random();
      const othersMs = named === '' ? STAGGER_MS * share : NAMED_WAIT_MS * (1 + share);
      this.#openMs = world.nowMs() + (named === name ? 0 : othersMs);
      this.leader = null;
      this.onRole();
    }
    return null;
  }

  #takeChanges(entry: Entry): string | null {
    if (this.#parts.length === 0) this.#controlBytes = entry.controlBytes;
    this.#partsBytes += entry.payload.length;
    if (this.#partsBytes > GROUP_BYTES_MAX) return 'its group is larger than any leader writes';
    this.#parts.push(entry.payload);
    if (entry.goesOn) return null;
    const parts = this.#parts;
    this.#dropParts();
    const wrong = this.#replayer.apply(parts, this.#controlBytes, this.#options.world.nowMs());
    if (wrong !== null) return `${wrong}; this member differs from its leader`;
    const { appliedRevision } = this.#store;
    if (appliedRevision !== entry.lastRevision) {
      return `it ends at revision ${entry.lastRevision}, and this member at ${appliedRevision}`;
    }
    return null;
  }

  #dropParts(): void {
    this.#parts = [];
    this.#partsBytes = 0;
  }

  /**
   * Appends an entry of this member; false when somebody else has written in its place.
   * `lastRevision` is the one that a group ends at, not what was applied meanwhile.
   */
  async #append(entry: OwnEntry, lastRevision: number): Promise<boolean> {
    const { world, leaseMs } = this.#options;
    // Before the first attempt: a standby may see any of them, and counts from there.
    const sentMs = world.nowMs();
    const ids = { group: this.group, writer: this.#writer };
    const settled = await this.#appender.append(
      { ...entry, ...ids, clockMs: sentMs, lastRevision },
      this.position,
      () => (this.#store.isLogFull = this.isLeader),
    );
    if (this.#isEnded) return false;
    if (settled.kind === 'gone') this.#end({ kind: 'failed', why: settled.why });
    if (settled.kind !== 'written') return false;
    this.#store.isLogFull = false;
    this.position++;
    this.#number = entry.number;
    this.#lastSentMs = sentMs;
    this.#leaseUntilMs = sentMs + leaseMs * (1 - DRIFT);
    return true;
  }

  /** Where it is, for those who begin to read behind its leadership record. */
  get #told(): Buffer {
    const { name, clientUrls } = this.#options;
    return Buffer.from(JSON.stringify({ name, clientUrls }));
  }

  async #takeOver(): Promise<void> {
    const { name, clientUrls, world, journal } = this.#options;
    const epoch = this.epoch + 1;
    const isFirst = this.epoch === 0;
    if (isFirst) this.group = world.drawId();
    const payload = this.#told;
    const number = 1;
    const lead = { kind: ENTRY_LEAD, goesOn: false, epoch, number, controlBytes: 0, payload };
    if (!(await this.#append(lead, this.#store.appliedRevision))) {
      this.#seenMs = world.nowMs();
      return;
    }
    this.epoch = epoch;
    this.leader = { name, clientUrls, writer: this.writer };
    this.leaderChanges++;
    this.#dropParts();
    this.#openMs = Infinity;
    this.role = 'leader';
    this.#store.isStandby = false;
    this.#store.leases.takeOver(world.nowMs());
    world.log(
      `${name} leads in epoch ${epoch}, from entry ${this.position} of the ${journal.name}`,
    );
    this.onRole();
    this.#becomeReady();
  }

  /** There may be something to write. */
  submit(): void {
    this.#wake?.();
  }

  async #lead(): Promise<void> {
    const { world, leaseMs } = this.#options;
    const { batch } = this.#store;
    const isBeatLate = world.nowMs() - this.#beatMs > leaseMs;
    if (isBeatLate) {
      await this.#beat();
      return;
    }
    if (!batch.isDrained || this.#isTouched || batch.isPending) {
      await this.#writeGroup();
      return;
    }
    if (this.#wantsToHandOverTo !== null) {
      await this.#writeOver(this.#wantsToHandOverTo);
      return;
    }
    const dueMs = this.#lastSentMs + leaseMs / 4 - world.nowMs();
    if (dueMs <= 0) {
      await this.#beat();
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await Promise.race([promise, world.pause(dueMs)]);
    this.#wake = null;
  }

  async #beat(): Promise<void> {
    this.#beatMs = this.#options.world.nowMs();
    if (!(await this.#write(ENTRY_BEAT, this.#told))) this.#lost();
  }

  /** An entry without changes. */
  #write(kind: number, payload: Buffer): Promise<boolean> {
    const [epoch, controlBytes, goesOn] = [this.epoch, 0, false] as const;
    const number = this.#number + 1;
    const entry = { kind, goesOn, epoch, number, controlBytes, payload };
    return this.#append(entry, this.#store.appliedRevision);
  }

  /** Everything that was applied up to now, as one group. */
  async #writeGroup(): Promise<void> {
    const store = this.#store;
    const { batch } = store;
    this.#isTouched = false;
    const revision = store.appliedRevision;
    const change = store.appliedChange;
    const memory = this.#memory.take(batch.controlSize + batch.recordBytes);
    const controlBytes = batch.takeControl(memory, 0);
    const size = batch.takeRecords(memory, controlBytes);
    const parts = this.#appender.pieces(memory.subarray(0, size));
    const place = { ...this.place, position: this.position + parts.length };
    for (const tell of this.#onPlace.splice(0)) {
      tell({ ...place, number: this.#number + parts.length });
    }
    const settled = await this.#writeParts(parts, controlBytes, revision);
    if (!settled) {
      this.#lost();
      return;
    }
    store.settle(size);
    if (batch.isDrained && !this.#isTouched) {
      batch.isPending = false;
      store.publish(store.appliedRevision);
      for (const tell of this.#onPlace.splice(0)) tell(this.place);
    } else store.publish(revision, change);
  }

  async #writeParts(
    parts: readonly Buffer[],
    controlBytes: number,
    revision: number,
  ): Promise<boolean> {
    for (const [index, part] of parts.entries()) {
      const entry = {
        kind: ENTRY_CHANGES,
        goesOn: index < parts.length - 1,
        epoch: this.epoch,
        number: this.#number + 1,
        controlBytes,
        payload: part,
        hasRoomBefore: parts.length === 1,
      };
      if (!(await this.#append(entry, revision))) return false;
    }
    return true;
  }

  /** Somebody else leads. */
  #lost(): void {
    if (this.#isEnded) return;
    const { world, name } = this.#options;
    this.#leaseUntilMs = -Infinity;
    this.role = 'standby';
    const why = `${name} leads no more: another member has written behind entry ${this.position}`;
    world.log(why);
    if (this.#store.isPending || !this.#store.batch.isDrained) {
      this.#end({ kind: 'deposed', why });
      return;
    }
    this.#standBy();
  }

  #standBy(): void {
    this.role = 'standby';
    this.#leaseUntilMs = -Infinity;
    this.#store.isStandby = true;
    this.#seenMs = this.#options.world.nowMs();
    this.#wantsToHandOverTo = null;
    this.leader = null;
    this.onRole();
  }

  /**
   * Leads no more once everything is written that was applied; `to` names who should lead then, ''
   * anybody. `leaves`: and never again.
   */
  handOver(to: string, leaves: boolean): void {
    if (leaves) this.#isLeaving = true;
    if (!this.isLeader) return;
    this.#wantsToHandOverTo = to;
    this.submit();
  }

  /** It was asked to hand over, and the journal does not say so yet. */
  get isHandingOver(): boolean {
    return !this.#isEnded && this.#wantsToHandOverTo !== null;
  }

  async #writeOver(to: string): Promise<void> {
    // Nobody reads by its lease any more before anybody can know.
    this.#leaseUntilMs = -Infinity;
    this.role = 'standby';
    this.#store.isStandby = true;
    const isWritten = await this.#write(ENTRY_OVER, Buffer.from(to));
    if (this.#isEnded) return;
    this.#standBy();
    this.#openMs = Infinity;
    if (!isWritten) return;
    const { world } = this.#options;
    if (to !== '') world.log(`${this.#options.name} hands over to ${to}`);
  }
}

/** The leader that an entry tells of, of those that do; a later version may say more. */
export function leaderIn(
  bytes: Buffer,
): { readonly epoch: number; readonly leader: Leader } | null {
  const entry = decodeEntry(bytes);
  if (typeof entry === 'string') return null;
  if (entry.kind !== ENTRY_LEAD && entry.kind !== ENTRY_BEAT) return null;
  return { epoch: entry.epoch, leader: leaderOf(entry) };
}

function leaderOf(entry: Entry): Leader {
  const writer = entry.writer.toString('hex');
  try {
    const told = parseNested(entry.payload.toString('utf8')) as Partial<Leader> | null;
    const { name, clientUrls } = told ?? {};
    const urls = Array.isArray(clientUrls)
      ? clientUrls.filter((url) => typeof url === 'string')
      : [];
    return { name: typeof name === 'string' ? name : '', clientUrls: urls, writer };
  } catch {
    return { name: '', clientUrls: [], writer };
  }
}
