/** Flags of a store that is one member of a group on a journal. */
import type { Command } from 'commander';
import type { JournalAccessFlags } from '@megaplane/etcd/journal';
import { durationFrom, oneOf, path, wholeNumber } from '../parsers/flag-parsers.ts';

export interface JournalFlags extends JournalAccessFlags {
  readonly memberName?: string;
  readonly leaderLease: number;
  readonly linearizableRead: string;
  readonly stateDir?: string;
  readonly stateEvery: number;
}

/** Less leaves no time for an engine to change its own leader. */
const LEASE_MS_MIN = 500;
const LEASE_MS = 3000;

export function addLeaderLease(command: Command): Command {
  return command.option(
    '--leader-lease <duration>',
    'so long a silent leader is waited for (default 3s)',
    durationFrom(LEASE_MS_MIN),
    LEASE_MS,
  );
}

/** What opens a journal. */
export function addJournalAccess(command: Command, note: string): Command {
  return command
    .option('--journal <url>', `nats://H:P,H:P/STREAM or etcd://H:P/NAME; ${note}`)
    .option('--journal-cacert <file>', "authority of the journal's certificate")
    .option('--journal-cert <file>', 'certificate to show it')
    .option('--journal-key <file>', 'its key')
    .option('--journal-credentials <file>', 'NATS: a .creds file')
    .option('--journal-nkey <file>', 'NATS: a seed of an nkey');
}

export function addJournalFlags(command: Command): Command {
  command.optionsGroup('Group on a journal (+):');
  return addLeaderLease(addJournalAccess(command, 'no data directory then'))
    .option('--member-name <name>', 'of this member, its own and lasting (default: --name)')
    .option(
      '--linearizable-read <way>',
      'lease, or journal: ask it at every read',
      oneOf(['lease', 'journal']),
      'lease',
    )
    .option(
      '--state-dir <dir>',
      'keeps a copy of the state, so that the journal can be trimmed',
      path,
    )
    .option(
      '--state-every <n>',
      'entries of the journal between copies',
      wholeNumber(100, 1e9),
      50_000,
    );
}

/** Throws where flags do not go together. */
export function assertJournalFlags(flags: JournalFlags, durability: string): void {
  if (flags.journal === undefined) {
    if (/(?:^|[=,])journal(?:,|$)/.test(durability)) {
      throw new Error('--durability journal: needs --journal, where the members write');
    }
    if (flags.memberName === undefined) return;
    throw new Error('--member-name: needs --journal, which the members of a group share');
  }
  const weaker = durability.split(',').find((mode) => !/(?:^|=)(?:fsync|journal)$/.test(mode));
  if (weaker === undefined) return;
  throw new Error(
    `--durability ${weaker}: with --journal everything is in the journal before it is answered; ` +
      'how safe that is, is up to its engine',
  );
}
