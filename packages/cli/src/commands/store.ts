// shell: standard output
/** `megaplane store`: etcd v3, in memory and logged. */
import { Command, Option } from 'commander';
import type { Durability, PrefixPolicy } from '@megaplane/store/contract';
import { foreignWarning } from '../flags/foreign-flags.ts';
import { type LogFlags, addLogOptions, logger } from '../service/logging.ts';
import { type JournalFlags, addJournalFlags, assertJournalFlags } from '../flags/journal-flags.ts';
import { serve } from '../service/service.ts';
import {
  type ServingFlags,
  addServingFlags,
  environmentFaults,
  readEnvironment,
} from '../flags/store-flags.ts';
import { addUnusedFlags, refusedFlag, unusedFlags } from '../flags/unused-flags.ts';
import {
  durabilityModes,
  DURABILITIES,
  durationMs,
  durationOption,
  flagValue,
  historySizes,
  oneOf,
  path,
  sizeBytes,
  wholeNumber,
} from '../parsers/flag-parsers.ts';
import { storeTools } from './store-tools.ts';

const threadsMeaning = 'that own connections and their TLS, beside the one that serves';

interface Flags extends ServingFlags, LogFlags, JournalFlags {
  readonly dataDir: string;
  readonly name: string;
  readonly listenClientUrls: string;
  readonly advertiseClientUrls?: string;
  /** Shown in the list of members. */
  readonly initialAdvertisePeerUrls?: string;
  readonly listenMetricsUrls?: string;
  readonly quotaBackendBytes: number;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  readonly threads: number;
  readonly watchProgressNotifyInterval: number;
  readonly durability: string;
  readonly historyLimit?: string;
  readonly configFile?: string;
  readonly version?: true;
  readonly unsafeNoFsync?: boolean;
  readonly experimentalWatchProgressNotifyInterval?: number;
  readonly memoryLimit?: number;
  readonly autoCompactionMode: string;
  readonly autoCompactionRetention: string;
}

export function storeCommand(done: (exitCode: number) => void): Command {
  const command = readEnvironment(flagged(), process.env);
  // The subcommands have flags of the same names.
  command.enablePositionalOptions();
  for (const tool of storeTools(done)) command.addCommand(tool);
  return serving(command, done);
}

function flagged(): Command {
  return addLogOptions(addUnusedFlags(addServingFlags(addJournalFlags(described()))));
}

function serving(command: Command, done: (exitCode: number) => void): Command {
  return command.action(async (flags: Flags) => {
    if (flags.version === true) {
      done(await printVersion());
      return;
    }
    if (flags.configFile !== undefined) {
      // As in etcd, the file counts alone: no other flag, nothing from the environment.
      const { configArguments } = await import('../flags/store-config.ts');
      const again = serving(flagged().exitOverride(), done);
      await again.parseAsync(configArguments(flags.configFile), { from: 'user' });
      return;
    }
    const { conflict, unknown } = environmentFaults(command, process.env);
    const refused = conflict ?? refusedFlag(command);
    if (refused !== null) throw new Error(refused);
    const log = logger(flags);
    if (unknown.length > 0) log('warn', `no flag has these variables: ${unknown.join(', ')}`);
    const what = 'a store of one member has no use for these flags';
    const warning = foreignWarning(what, unusedFlags(command));
    if (warning !== '') log('warn', warning);
    done(await run(flags, (message) => log('warn', message)));
  });
}

/** The first line is what scripts look for. */
async function printVersion(): Promise<number> {
  const { ETCD_VERSION } = await import('@megaplane/etcd/maintenance');
  const lines = [`etcd Version: ${ETCD_VERSION}`, 'Git SHA: none', 'Go Version: none'];
  process.stdout.write(`${[...lines, 'Go OS/Arch: none'].join('\n')}\n`);
  return 0;
}

function described(): Command {
  return new Command('store')
    .summary('etcd v3, in memory and logged')
    .description(
      'Serves the etcd v3 API; every flag has its ETCD_* environment variable.\n\n' +
        'Example: megaplane store --data-dir ./etcd --listen-client-urls http://127.0.0.1:2379',
    )
    .option('--config-file <file>', "etcd's YAML, in place of all other flags")
    .option('--version', 'prints the version of etcd that it stands in for')
    .addOption(
      new Option('--experimental-watch-progress-notify-interval <duration>')
        .argParser(durationMs)
        .hideHelp(),
    )
    .optionsGroup('Data:')
    .option('--unsafe-no-fsync [on]', 'fsync is buffered, as --durability has it', flagValue)
    .option('--data-dir <dir>', 'log and snapshots', path, 'default.etcd')
    .option(
      '--durability <modes>',
      'none, buffered or fsync, or by prefix: /a/=none,fsync',
      durabilityModes,
      'fsync',
    )
    .option(
      '--history-limit <sizes>',
      'bytes of old versions kept, or by prefix: /a/=64MiB',
      historySizes,
    )
    .option('--memory-limit <size>', 'above it, writes that grow the store are refused', sizeBytes)
    .option('--quota-backend-bytes <size>', 'space quota; 0 = none', quotaBytes, 0)
    .option('--auto-compaction-mode <mode>', 'periodic or revision', 'periodic')
    .option('--auto-compaction-retention <n>', '12 (hours), 30m, or revisions; 0 = off', '0')
    .optionsGroup('Serving:')
    .option('--name <name>', 'of this member', 'default')
    .option('--listen-client-urls <urls>', 'where clients connect', 'http://127.0.0.1:2379')
    .option('--advertise-client-urls <urls>', 'what clients are told (default: the same)')
    .addOption(new Option('--initial-advertise-peer-urls <urls>').hideHelp())
    .option('--listen-metrics-urls <urls>', 'further addresses of /metrics and /health')
    .option('--max-request-bytes <size>', 'largest request', sizeBytes, 1_572_864)
    .option('--threads <count>', threadsMeaning, wholeNumber(0, 256), 0)
    .option('--max-txn-ops <count>', 'operations in a transaction', wholeNumber(1, 1e6), 128)
    .addOption(
      durationOption('--watch-progress-notify-interval <duration>', 'of idle watches', 600_000),
    );
}

function run(flags: Flags, warn: (message: string) => void): Promise<number> {
  return serve(async () => {
    const { startStore } = await import('../store/store-program.ts');
    assertJournalFlags(flags, flags.durability);
    const mode = base(flags.durability);
    const isUnsafe = flags.unsafeNoFsync === true && mode === 'fsync';
    const policies = {
      prefixes: prefixes(flags),
      base: isUnsafe ? 'buffered' : mode,
      historyBytesMax: baseHistory(flags.historyLimit ?? ''),
    } as const;
    const { experimentalWatchProgressNotifyInterval: older } = flags;
    const watchProgressNotifyInterval = older ?? flags.watchProgressNotifyInterval;
    return startStore({ ...flags, ...policies, watchProgressNotifyInterval, warn });
  });
}

/** etcd takes a negative quota for none, as this program takes 0. */
function quotaBytes(text: string): number {
  return /^-\d+$/.test(text) ? 0 : sizeBytes(text);
}

/** The part of a list of modes that names no prefix. */
function base(durability: string): Durability {
  const bare = durability.split(',').find((part) => !part.includes('=')) ?? 'fsync';
  return durabilityOf(bare);
}

/** The flag's parser has seen it. */
function durabilityOf(text: string): Durability {
  if (text === 'journal') return 'fsync';
  return oneOf(DURABILITIES)(text);
}

/** Both lists of `prefix=value`, merged by prefix. */
function prefixes({ durability, historyLimit }: Flags): readonly PrefixPolicy[] {
  const policies = new Map<string, PrefixPolicy>();
  const add = (prefix: string, policy: Omit<PrefixPolicy, 'prefix'>): void => {
    policies.set(prefix, { prefix, ...policies.get(prefix), ...policy });
  };
  for (const [prefix, value] of pairs(durability)) add(prefix, { durability: durabilityOf(value) });
  for (const [prefix, value] of pairs(historyLimit ?? '')) {
    add(prefix, { historyBytesMax: sizeBytes(value) });
  }
  return [...policies.values()];
}

/** The part of a list of sizes that names no prefix; without one there is no limit. */
function baseHistory(sizes: string): number {
  const bare = sizes.split(',').find((part) => part !== '' && !part.includes('='));
  return bare === undefined ? Infinity : sizeBytes(bare.trim());
}

function pairs(text: string): [string, string][] {
  const parts = text.split(',').filter((part) => part.includes('='));
  return parts.map((part) => [
    part.slice(0, part.lastIndexOf('=')).trim(),
    part.slice(part.lastIndexOf('=') + 1).trim(),
  ]);
}
