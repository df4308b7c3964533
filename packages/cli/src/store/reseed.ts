// shell: the work behind `megaplane store reseed`
/** Begins a group anew on an empty journal, with the state of one member or of a store on files. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type JournalAccessFlags, journalAccess, openJournal } from '@megaplane/etcd/journal';
import { copyOf, readCopy, reseed } from '@megaplane/etcd/reseed';
import { print } from './store-tools.ts';

interface ReseedFlags extends JournalAccessFlags {
  readonly stateDir: string;
  readonly dataDir?: string;
  readonly acceptLoss?: true;
  readonly output?: 'text' | 'json';
}

const STORAGE = { dataDir: 'journal', durability: 'fsync', prefixes: [] } as const;

/** Throws what is wrong, before anything is written. */
export async function reseedGroup(flags: ReseedFlags): Promise<number> {
  const { journal: url, stateDir, dataDir } = flags;
  if (url === undefined) throw new Error('--journal: name the empty journal of the new group');
  const say = (message: string): void => void process.stderr.write(`${message}\n`);
  if (dataDir !== undefined) await copyFiles(dataDir, stateDir);
  const copy = readCopy(stateDir, STORAGE);
  const { place, revision, madeAt } = copy;
  if (dataDir === undefined && flags.acceptLoss !== true) {
    throw new Error(
      `the copy in ${stateDir} is of ${madeAt.toISOString()}: entry ${place.position} of epoch ` +
        `${place.epoch}, revision ${revision}. All that was written since is lost, and revisions ` +
        `from ${revision + 1} on will be of other changes: who has seen some must start anew. ` +
        'Take the newest copy of all members, and add --accept-loss',
    );
  }
  const journal = await openJournal(url, journalAccess(flags), say);
  try {
    const begun = await reseed({ journal, stateDir, copy, log: say });
    print(flags, {
      journal: journal.name,
      group: begun.group.toString('hex'),
      epoch: begun.epoch,
      position: begun.position,
      revision,
      next: `start a member with --state-dir ${stateDir} first`,
    });
  } finally {
    await journal.close();
  }
  return 0;
}

async function copyFiles(dataDir: string, stateDir: string): Promise<void> {
  if (!existsSync(dataDir)) throw new Error(`--data-dir: there is no directory ${dataDir}`);
  if (existsSync(join(stateDir, 'state.mpj'))) {
    throw new Error(`--state-dir: ${stateDir} has a copy already; name a new directory`);
  }
  await copyOf(dataDir, stateDir, STORAGE);
}
