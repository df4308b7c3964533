/** `megaplane scheduler shard` and `megaplane scheduler relay`: who looks at nodes for a root. */
import { hostname } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import type { EmulatedVersion } from '@megaplane/scheduler/compatibility';
import { addMemberTls, memberTlsOf, termsOf, type MemberFlags } from '../flags/shard-flags.ts';
import { durationOption, hostPort, oneOf, type HostPort } from '../parsers/flag-parsers.ts';
import { addLogOptions, logger, type LogFlags } from '../service/logging.ts';
import { ownVersion } from '../service/self.ts';
import { serve } from '../service/service.ts';

/** Parents that are tried in turn. */
const PARENTS_MAX = 16;
const JOIN_MS_MAX = 30_000;

interface CommonFlags extends LogFlags, MemberFlags {
  readonly join: readonly HostPort[];
  readonly name: string;
  readonly metricsAddress: string;
  readonly joinTimeout: number;
}

interface ShardFlags extends CommonFlags {
  readonly config?: string;
  readonly plugin: readonly string[];
  readonly emulatedVersion: EmulatedVersion;
}

interface RelayFlags extends CommonFlags {
  readonly listenAddress: HostPort;
}

export function addMembers(command: Command, done: (exitCode: number) => void): void {
  const shard = common(command.command('shard'), 'a relay or the root')
    .summary('looks at its share of the nodes for a scheduler')
    .description(
      'Joins a scheduler, is told of its share of the nodes, and says what they come to for a\n' +
        'pod. It decides nothing, and needs no API server.\n\n' +
        'Example: megaplane scheduler shard --join 127.0.0.1:7900',
    )
    .optionsGroup('Scheduling (as the root has it):')
    .option('--config <file>', 'the KubeSchedulerConfiguration')
    .option('--plugin <file>', 'a module with plugins; may be repeated', collected, [])
    .option('--emulated-version <version>', 'of kube-scheduler', oneOf(['1.35', '1.36']), '1.36');
  addLogOptions(addMemberTls(shard)).action(async (flags: ShardFlags, own: Command) => {
    refuseOthers(command, own);
    done(await runShard(flags, own));
  });
  const relay = common(command.command('relay'), 'the root, or another relay')
    .summary('passes on what a scheduler and its shards say')
    .description(
      'Passes what the root says on to shards, and adds their answers up. Where there are more\n' +
        'shards than one process should talk to, relays stand between.\n\n' +
        'Example: megaplane scheduler relay --join 127.0.0.1:7900 --listen-address 127.0.0.1:7901',
    )
    .option(
      '--listen-address <host:port>',
      'where shards join; port 0 = a free one',
      hostPort,
      hostPort('127.0.0.1:0'),
    );
  addLogOptions(addMemberTls(relay)).action(async (flags: RelayFlags, own: Command) => {
    refuseOthers(command, own);
    done(await runRelay(flags, own));
  });
}

function common(command: Command, parents: string): Command {
  return command
    .requiredOption('--join <host:port>', `${parents}; may be repeated, tried in turn`, parentOf)
    .option('--name <name>', 'the same for its whole life, and nobody else’s', name, hostname())
    .option('--metrics-address <host:port>', 'of /metrics; port 0 = a free one', '127.0.0.1:0')
    .addOption(
      durationOption('--join-timeout <duration>', 'for a parent that never answers', JOIN_MS_MAX),
    );
}

function parentOf(text: string, before: readonly HostPort[] | undefined): readonly HostPort[] {
  const all = [...(before ?? []), hostPort(text)];
  if (all.length > PARENTS_MAX) throw new InvalidArgumentError(`at most ${PARENTS_MAX}.`);
  if (all.at(-1)?.port === 0) throw new InvalidArgumentError('a port other than 0 is needed.');
  return all;
}

/** Frames are sent to members by this. */
function name(text: string): string {
  if (/^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError('letters, digits, and ".", "_", "-" between them are needed.');
}

function collected(file: string, before: readonly string[]): readonly string[] {
  return [...before, file];
}

/** Flags before the name of the command are the root's. */
function refuseOthers(command: Command, own: Command): void {
  for (const option of command.options) {
    if (command.getOptionValueSource(option.attributeName()) !== 'cli') continue;
    own.error(`error: option '${option.flags}' goes behind "${own.name()}", or is not for it`);
  }
}

async function runShard(flags: ShardFlags, own: Command): Promise<number> {
  return serve(async () => {
    const { configurationOf, readPlugins } = await import('../flags/scheduler-files.ts');
    const { COMPATIBILITY } = await import('@megaplane/scheduler/compatibility');
    const { createProfile } = await import('@megaplane/scheduler/profile');
    const { runShard: run } = await import('@megaplane/scheduler/run-shard');
    const plugins = await readPlugins(flags.plugin);
    const configuration = configurationOf(flags.config, plugins);
    const { emulatedVersion } = flags;
    const compatibility = COMPATIBILITY[emulatedVersion];
    const profiles = configuration.profiles.map((one) =>
      createProfile(one, compatibility, plugins),
    );
    return run({
      ...commonOptions(flags, own),
      profiles: new Map(profiles.map((profile) => [profile.schedulerName, profile])),
      terms: termsOf(ownVersion(), configuration, flags.plugin, emulatedVersion),
    });
  });
}

async function runRelay(flags: RelayFlags, own: Command): Promise<number> {
  return serve(async () => {
    const { runRelay: run } = await import('@megaplane/scheduler/run-shard');
    return run({ ...commonOptions(flags, own), listen: flags.listenAddress });
  });
}

function commonOptions(flags: CommonFlags, own: Command) {
  const tls = memberTlsOf(own, flags);
  const log = logger(flags);
  return {
    ...{ name: flags.name, parents: flags.join, version: ownVersion() },
    ...(tls === undefined ? {} : { tls }),
    metricsAddress: flags.metricsAddress,
    joinMsMax: flags.joinTimeout,
    onTrouble: (message: string) => log('warn', message),
  };
}
