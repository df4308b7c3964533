/** `megaplane store snapshot|import|hash|verify|hand-over|reseed`: tools beside the server. */
import { Command } from 'commander';
import { addJournalAccess } from '../flags/journal-flags.ts';
import { oneOf, path, wholeNumber } from '../parsers/flag-parsers.ts';
import type { reseedGroup } from '../store/reseed.ts';

type Done = (exitCode: number) => void;

export function storeTools(done: Done): readonly Command[] {
  return [
    ...[snapshotCommand(done), importCommand(done), hashCommand(done), verifyCommand(done)],
    ...[handOverCommand(done), reseedCommand(done)],
  ];
}

function addRemoteFlags(command: Command): Command {
  return command
    .optionsGroup('Server:')
    .option('--endpoints <urls>', 'the server to ask; the first one is taken')
    .option('--cacert <file>', 'authority of its certificate')
    .option('--cert <file>', 'certificate to show')
    .option('--key <file>', 'its key')
    .option('--insecure-skip-tls-verify', 'take any certificate')
    .option('--user <name:password>', 'where users are enabled');
}

function addOutput(command: Command): Command {
  return command
    .optionsGroup('Output:')
    .option('--output <format>', 'text or json', oneOf(['text', 'json']), 'text');
}

function addRestoreFlags(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'the new data directory', path, 'default.etcd')
    .option(
      '--bump-revision <n>',
      'go on so many revisions later; needs --mark-compacted',
      wholeNumber(0, 1e15),
      0,
    )
    .option('--mark-compacted', 'revisions before the bumped one count as compacted')
    .option('--skip-hash-check', 'do not compare the checksum at the end of a snapshot');
}

function snapshotCommand(done: Done): Command {
  const snapshot = new Command('snapshot')
    .summary('backups: files that etcd reads too')
    .description(
      'Backups: files that etcd reads too.\n\n' +
        'Example: megaplane store snapshot save backup.db --endpoints http://127.0.0.1:2379',
    );
  const save = new Command('save')
    .summary('write a snapshot of a server or of a data directory')
    .description(
      'Writes what a server holds, of this program or etcd, or a directory nobody serves.\n\n' +
        'Example: megaplane store snapshot save backup.db --endpoints http://127.0.0.1:2379',
    )
    .argument('<file>', 'the file to write')
    .option('--data-dir <dir>', 'a data directory that no server has open', path);
  addOutput(addRemoteFlags(save)).action(async (file: string, flags: object) => {
    const { saveSnapshot } = await import('../store/store-tools.ts');
    done(await saveSnapshot(file, flags));
  });
  const status = new Command('status')
    .summary('check a snapshot file and show what is in it')
    .description(
      'Checks a snapshot file and shows what is in it.\n\n' +
        'Example: megaplane store snapshot status backup.db',
    )
    .argument('<file>', 'a snapshot or database of etcd');
  addOutput(status).action(async (file: string, flags: object) => {
    const { showSnapshot } = await import('../store/store-tools.ts');
    done(await showSnapshot(file, flags));
  });
  const restore = new Command('restore')
    .summary('make a data directory out of a snapshot file')
    .description(
      'Keeps revisions, versions and leases.\n\n' +
        'Example: megaplane store snapshot restore backup.db --data-dir ./restored',
    )
    .argument('<file>', 'the snapshot');
  addOutput(addRestoreFlags(restore)).action(async (file: string, flags: object) => {
    const { importSource } = await import('../store/store-tools.ts');
    done(await importSource(file, flags));
  });
  return snapshot.addCommand(save).addCommand(status).addCommand(restore);
}

function importCommand(done: Done): Command {
  const command = new Command('import')
    .summary("bring an etcd's data over, from a file, its directory, or while it runs")
    .description(
      'Keeps revisions, versions and leases. The source is a snapshot file, the data directory ' +
        'of an etcd that was stopped, or the address of one that runs: then its changes are ' +
        'followed until nothing is behind, and HashKV is compared.\n\n' +
        'Example: megaplane store import http://127.0.0.1:2379 --data-dir ./moved --follow',
    )
    .argument('<source>', 'file, directory or http(s) address');
  addRestoreFlags(command)
    .option('--ignore-wal', 'take a directory whose log is ahead of its database file')
    .option('--follow', 'go on with the changes of a running etcd until Ctrl-C');
  addOutput(addRemoteFlags(command)).action(async (source: string, flags: object) => {
    const { importSource } = await import('../store/store-tools.ts');
    done(await importSource(source, flags));
  });
  return command;
}

function hashCommand(done: Done): Command {
  const command = new Command('hash')
    .summary('HashKV of a server or of a data directory')
    .description(
      'Equal hashes at one revision mean equal data, here and in etcd.\n\n' +
        'Example: megaplane store hash --endpoints http://127.0.0.1:2379 --rev 1200',
    )
    .option('--data-dir <dir>', 'a data directory that no server has open', path)
    .option('--rev <revision>', 'of which revision; 0 = the newest', wholeNumber(0, 2 ** 53), 0);
  addOutput(addRemoteFlags(command)).action(async (flags: object) => {
    const { showHash } = await import('../store/store-tools.ts');
    done(await showHash(flags));
  });
  return command;
}

function handOverCommand(done: Done): Command {
  const command = new Command('hand-over')
    .summary('let another member of a group lead')
    .description(
      'Asks the leader of a group on a journal to let another member lead.\n\n' +
        'Example: megaplane store hand-over --endpoints http://10.0.0.1:2379,http://10.0.0.2:2379',
    )
    .option('--to <name>', 'the member that should lead (default: any other)');
  addOutput(addRemoteFlags(command)).action(async (flags: object) => {
    const { handOver } = await import('../store/hand-over.ts');
    done(await handOver(flags));
  });
  return command;
}

function reseedCommand(done: Done): Command {
  const command = new Command('reseed')
    .summary('begin a group anew, on a journal that is empty')
    .description(
      'For a journal that was deleted, emptied or damaged: a new group begins with the copy of ' +
        'the state that one member has. With --data-dir it begins with what a store on files ' +
        'has, which must be stopped. The members of the old group must be stopped, too.\n\n' +
        'Example: megaplane store reseed --journal nats://10.0.0.1:4222/group2 --state-dir ./a',
    );
  addJournalAccess(command, 'an empty one')
    .requiredOption('--state-dir <dir>', "a member's copy of the state", path)
    .option('--data-dir <dir>', 'makes that copy of the files of a store', path)
    .option('--accept-loss', 'go on without what was written after the copy');
  addOutput(command).action(async (flags: Parameters<typeof reseedGroup>[0]) => {
    const { reseedGroup: work } = await import('../store/reseed.ts');
    done(await work(flags));
  });
  return command;
}

function verifyCommand(done: Done): Command {
  const command = new Command('verify')
    .summary('check a data directory that no server has open')
    .description(
      'Reads every file, checksum and record. A torn end is what a crash leaves; the next start ' +
        'cuts it. Damage is cut with --repair, and what is cut is kept.\n\n' +
        'Example: megaplane store verify --data-dir ./default.etcd',
    )
    .option('--data-dir <dir>', 'log and snapshots', path, 'default.etcd')
    .option('--repair', 'cut what is damaged, keep a copy of it');
  addOutput(command).action(async (flags: object) => {
    const { verifyStore } = await import('../store/store-tools.ts');
    done(await verifyStore(flags));
  });
  return command;
}
