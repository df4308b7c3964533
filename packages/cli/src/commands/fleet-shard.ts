// shell: `megaplane fleet shard`, which decides what machines exist
import { Command, InvalidArgumentError, Option } from 'commander';
import type { RunShardOptions } from '@megaplane/fleet/shard/run';
import { addLogOptions, logger } from '../service/logging.ts';
import type { LogFlags } from '../service/logging.ts';
import { serve } from '../service/service.ts';
import { addTlsFlags, tlsFilesOf } from '../flags/fleet-tls.ts';
import type { TlsFlags } from '../flags/fleet-tls.ts';
import {
  dialAddresses,
  durationOption,
  flagValue,
  hostPort,
  path,
  positive,
  wholeNumber,
} from '../parsers/flag-parsers.ts';
import type { DialAddress, HostPort } from '../parsers/flag-parsers.ts';

type Done = (exitCode: number) => void;

const LISTEN: HostPort = { host: '127.0.0.1', port: 7780 };
const METRICS = '127.0.0.1:8780';
const MINUTE_MS = 60_000;
const PROVIDERS = dialAddresses(1000);
const COORDINATORS = dialAddresses(16);

interface ShardFlags extends LogFlags, TlsFlags {
  readonly shardId: string;
  readonly dataDir: string;
  readonly providerAddr: readonly DialAddress[];
  readonly listen: HostPort;
  readonly metricsAddress: string;
  readonly cycleInterval: number;
  readonly joinTimeout: number;
  readonly incrementalList: boolean;
  readonly executeConcurrency: number;
  readonly onDemandHold: number;
  readonly spotHold: number;
  readonly checkEachCycles: number;
  readonly engine: 'better' | 'strict';
  readonly reclaimCapFraction: number;
  readonly emptyRollupGuard: boolean;
  readonly maxActionsPerCycle: number;
  readonly actuationPaused: boolean;
  readonly dryRun: boolean;
  readonly coordinatorAddr?: readonly DialAddress[];
  readonly reportInterval: number;
  readonly advertise?: string;
}

export function shardCommand(done: Done): Command {
  const command = new Command('shard')
    .summary('decides which machines exist, and for whom')
    .description(
      'Hears what clusters want from their operators, decides which machines to make, bind,\n' +
        'take away and give back, and has providers do it.\n\n' +
        'Example: megaplane fleet shard --shard-id s1 --provider-addr 127.0.0.1:7800',
    )
    .requiredOption('--shard-id <id>', 'name of the shard, the same for its whole life', name)
    .requiredOption('--provider-addr <host:port>', 'a provider; https:// in front: TLS', PROVIDERS)
    .option('--data-dir <dir>', 'where its epoch is kept', path, './megaplane-shard')
    .option('--listen <host:port>', 'where operators reach it', hostPort, LISTEN)
    .option('--metrics-address <host:port>', 'metrics and health', METRICS)
    .addOption(durationOption('--cycle-interval <duration>', 'between cycles', 1000))
    .option('--incremental-list', 'asks providers for changes only', false)
    .option('--execute-concurrency <n>', 'actions at once', wholeNumber(1, 10_000), 128)
    .addOption(
      durationOption('--join-timeout <duration>', 'joins that last longer count no more', 900_000),
    )
    .addOption(
      durationOption('--on-demand-hold <duration>', 'idle ones stay so long', 10 * MINUTE_MS),
    )
    .addOption(durationOption('--spot-hold <duration>', 'the same for spot', MINUTE_MS))
    .addOption(
      new Option('--check-each-cycles <n>', 'compares one cycle in so many with a full one')
        .argParser(wholeNumber(0, 1_000_000))
        .default(0),
    );
  command.addOption(
    new Option('--engine <which>', 'better, or the reference’s behaviour to the answer: strict')
      .choices(['better', 'strict'])
      .default('better'),
  );
  addRails(command);
  command
    .optionsGroup('Coordinators (the shard needs none):')
    .option('--coordinator-addr <host:port>', 'one of them; https:// in front: TLS', COORDINATORS)
    .addOption(durationOption('--report-interval <duration>', 'between reports', 30_000))
    .option('--advertise <host:port>', 'where operators reach it, if not where it listens');
  addTlsFlags(command, 'the shard', 'operators, readers, providers and coordinators');
  return addLogOptions(command).action(async (flags: ShardFlags) => {
    const tls = tlsFilesOf(command, flags);
    const dialled = [...flags.providerAddr, ...(flags.coordinatorAddr ?? [])];
    if (dialled.some((one) => one.isSecure) && tls === undefined) {
      command.error('error: https:// needs --tls-cert, --tls-key and --tls-ca');
    }
    done(
      await serve(async () => {
        const { runShard } = await import('@megaplane/fleet/shard/run');
        return runShard({ ...(await optionsOf(flags)), ...(tls === undefined ? {} : { tls }) });
      }),
    );
  });
}

function addRails(command: Command): void {
  command
    .optionsGroup('Rails:')
    .option(
      '--reclaim-cap-fraction <part>',
      'of the machines of a cluster, given up in one cycle; 0: no cap',
      positive,
      0.05,
    )
    .option(
      '--empty-rollup-guard <true|false>',
      'demand that is nearly all gone must be told three times',
      flagValue,
      true,
    )
    .option('--max-actions-per-cycle <n>', '0: no limit', wholeNumber(0, 1_000_000), 0)
    .option('--actuation-paused', 'decides, and carries nothing out', false)
    .option('--dry-run', 'the same, for those who only want to see', false);
}

async function optionsOf(flags: ShardFlags): Promise<RunShardOptions> {
  const { SHARD_DEFAULTS } = await import('@megaplane/fleet/engine/shard');
  const { BETTER, STRICT } = await import('@megaplane/fleet/engine/differences');
  return {
    ...{ shardId: flags.shardId, dataDir: flags.dataDir, ...flags.listen },
    ...{ metricsAddress: flags.metricsAddress, providers: flags.providerAddr },
    ...{ cycleMs: flags.cycleInterval, joinMs: flags.joinTimeout },
    ...{ concurrency: flags.executeConcurrency, isIncremental: flags.incrementalList },
    ...{ coordinators: flags.coordinatorAddr ?? [], reportMs: flags.reportInterval },
    ...(flags.advertise === undefined ? {} : { advertised: flags.advertise }),
    engine: {
      ...SHARD_DEFAULTS,
      differences: flags.engine === 'better' ? BETTER : STRICT,
      reclaimCapFraction: flags.reclaimCapFraction,
      emptyRollupGuard: flags.emptyRollupGuard,
      ...{ paused: flags.actuationPaused, dryRun: flags.dryRun },
      maxActionsPerCycle: flags.maxActionsPerCycle,
      onDemandHoldSeconds: flags.onDemandHold / 1000,
      spotHoldSeconds: flags.spotHold / 1000,
      checkEachCycles: flags.checkEachCycles,
    },
    log: logger(flags),
  };
}

/** Providers fence by this name, so that none is empty. */
function name(text: string): string {
  if (/^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError('letters, digits, and ".", "_", "-" between them are needed.');
}
