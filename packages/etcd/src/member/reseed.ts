// shell: begins a group anew, on a journal that is empty
/**
 * A journal that was deleted, emptied or damaged is not written on by its group any more. A new
 * group then begins with the state that one member has. Two entries open it, and the first is
 * trimmed: so whoever has no state knows that the journal does not reach back to the beginning.
 *
 * The copy of the state is given its new place before the journal is written. Should this be cut
 * off in between, it is done again and goes on where it was.
 */
import { randomBytes } from 'node:crypto';
import { nextTurn, pauseMs } from '@megaplane/base/deferred';
import type { StorageOptions } from '@megaplane/store/contract';
import type { Journal } from '@megaplane/store/journal';
import { Appender } from '@megaplane/store/journal/appender';
import { ENTRY_LEAD, ENTRY_OVER, decodeEntry } from '@megaplane/store/journal/entry';
import type { Place } from '@megaplane/store/journal/member';
import { StateSource } from '@megaplane/store/journal/state';
import { openStore } from '@megaplane/store/open';
import { Store } from '@megaplane/store/store';
import { SHELL_WORLD } from './shell-world.ts';
import { StateFile } from './state-file.ts';

const WAIT_MS_MAX = 30_000;
const OPENING_ENTRIES = 2;

export interface Copy {
  readonly place: Place;
  readonly revision: number;
  readonly madeAt: Date;
}

/** Reads the copy in a directory, whole. Throws where there is none, or where it is damaged. */
export function readCopy(stateDir: string, storage: StorageOptions): Copy {
  const file = new StateFile(stateDir);
  const store = new Store({ ...storage, dataDir: 'journal' }, 1);
  const place = file.read(store, performance.now());
  if (place === null) {
    throw new Error(`--state-dir: ${stateDir} has no copy of a state; name that of a member`);
  }
  return { place, revision: store.appliedRevision, madeAt: file.madeAt };
}

/** Makes a copy out of a data directory that nobody serves. Nothing of it is lost. */
export async function copyOf(
  dataDir: string,
  stateDir: string,
  storage: StorageOptions,
): Promise<void> {
  const opened = openStore({ ...storage, dataDir });
  try {
    const writer = new StateFile(stateDir).write();
    const taker = { hasRoom: true, take: (piece: Buffer) => writer.take(piece) };
    const source = new StateSource(opened.store, 0, () => performance.now(), taker);
    const nowhere = { position: 0, epoch: 0, number: 0, group: Buffer.alloc(8), leader: null };
    source.begin(nowhere);
    // what the start of the store wrote must be in its log first
    while (!source.isOver) {
      await new Promise<void>((resolve) => nextTurn(resolve));
      source.step();
    }
    writer.finish();
  } finally {
    await opened.close();
  }
}

export interface ReseedOptions {
  readonly journal: Journal;
  readonly stateDir: string;
  readonly copy: Copy;
  readonly log: (message: string) => void;
}

/**
 * Opens the journal with a new group, to which the copy belongs. Throws where the journal holds
 * entries of others.
 */
export async function reseed(options: ReseedOptions): Promise<Place> {
  const { journal, stateDir, copy } = options;
  const { first, last } = await endOf(journal);
  const isBegun = await holdsOpening(journal, copy.place, first, last);
  if (last >= first && !isBegun) {
    throw new Error(
      `the ${journal.name} holds the entries ${first} to ${last} of a group; reseed takes an ` +
        'empty journal: empty that one, or name another',
    );
  }
  const place = isBegun ? copy.place : newPlace(copy.place, last);
  if (!isBegun) new StateFile(stateDir).move(place);
  await writeOpening(options, place);
  return place;
}

async function endOf(journal: Journal): Promise<{ readonly first: number; readonly last: number }> {
  const endMs = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const end = await journal.end();
    if (end.kind === 'end') return end;
    if (end.kind === 'gone' || performance.now() > endMs) throw new Error(end.why);
    await pauseMs(100);
  }
}

/** An earlier try was cut off: what is there are the first entries of this copy's group. */
async function holdsOpening(
  journal: Journal,
  { position, group }: Place,
  first: number,
  last: number,
): Promise<boolean> {
  if (last < first || last > position || last < position - 1) return false;
  const read = await journal.read(last, WAIT_MS_MAX);
  const [found] = read.kind === 'entries' ? read.entries : [];
  const entry = found === undefined ? 'none' : decodeEntry(found.bytes);
  return typeof entry !== 'string' && entry.group.equals(group);
}

function newPlace({ epoch }: Place, last: number): Place {
  const place = { position: last + OPENING_ENTRIES, number: OPENING_ENTRIES, leader: null };
  return { ...place, epoch: epoch + 1, group: randomBytes(8) };
}

async function writeOpening({ journal, copy, log }: ReseedOptions, place: Place): Promise<void> {
  const { group, epoch, position } = place;
  const appender = new Appender(journal, { pause: pauseMs, log }, () => false);
  const told = Buffer.from(JSON.stringify({ name: '', clientUrls: [] }));
  const common = { group, epoch, goesOn: false, writer: SHELL_WORLD.drawId(), controlBytes: 0 };
  const state = { lastRevision: copy.revision, clockMs: 0 };
  const kinds = [
    { kind: ENTRY_LEAD, number: 1, payload: told },
    { kind: ENTRY_OVER, number: 2, payload: Buffer.alloc(0) },
  ] as const;
  const { last } = await endOf(journal);
  for (const entry of kinds) {
    const expected = position - OPENING_ENTRIES + entry.number - 1;
    // written before this was done again
    if (expected < last) continue;
    const settled = await appender.append({ ...common, ...state, ...entry }, expected);
    if (settled.kind === 'gone') throw new Error(settled.why);
    if (settled.kind === 'lost') throw new Error(`somebody else writes to the ${journal.name}`);
  }
  const trimmed = await journal.trim(position - 1);
  if (trimmed.kind !== 'trimmed') throw new Error(trimmed.why);
}
