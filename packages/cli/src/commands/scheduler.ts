/** `megaplane scheduler`: finds nodes for pods on any Kubernetes API server. */
import { putMember } from '@megaplane/base/members';
import { Command, Option } from 'commander';
import { addElectionFlags, type ElectionFlags } from '../flags/election-flags.ts';
import { addForeignFlags, foreignFlags, foreignWarning } from '../flags/foreign-flags.ts';
import { addKlogFlags, addLogOptions, logger, withKlogFlags } from '../service/logging.ts';
import type { Tie } from '@megaplane/scheduler/tie-walk';
import type { KlogFlags, Log, LogFlags } from '../service/logging.ts';
import { electionMembers, SCHEDULER_FOREIGN } from '../flags/scheduler-flags.ts';
import { addSecureFlags, secureAddressOf, type SecureFlags } from '../flags/secure-flags.ts';
import { serve, type Service } from '../service/service.ts';
import { addMembers } from './scheduler-members.ts';
import { addMemberTls, FAN_OUT, memberTlsOf, SHARDS_MAX, termsOf } from '../flags/shard-flags.ts';
import type { MemberFlags } from '../flags/shard-flags.ts';
import { durationOption, flagValues, hostPort, oneOf } from '../parsers/flag-parsers.ts';
import { wholeNumber, type HostPort } from '../parsers/flag-parsers.ts';
import { ownVersion } from '../service/self.ts';
import type { ExplainFlags } from '../flags/scheduler-files.ts';
import type { EmulatedVersion } from '@megaplane/scheduler/compatibility';
import type { SchedulerConfiguration } from '@megaplane/scheduler/configuration/configuration';
import type { SchedulerService } from '@megaplane/scheduler/run-scheduler';

/** kube-scheduler's. */
const SECURE_PORT = 10_259;
/** Somebody sits before it, and an API server without its etcd says nothing for a minute. */
const EXPLAIN_TIMEOUT_MS = 15_000;
/** In one process, so that a scenario can be tried. */
const EXPLAIN_SHARDS_MAX = 64;
const EXPLAIN_LEVELS_MAX = 3;
const ROUND_MS_MAX = 5000;
const KUBECONFIG_MISSING = "error: required option '--kubeconfig <file>' not specified";

interface Flags extends LogFlags, KlogFlags, ElectionFlags, SecureFlags, MemberFlags {
  readonly shards?: number;
  readonly shardsAddress?: HostPort;
  readonly relayFanOut: number;
  readonly shardsRoundTimeout: number;
  readonly kubeconfig?: string;
  readonly config?: string;
  readonly writeConfigTo?: string;
  readonly plugin: readonly string[];
  readonly featureGates: string;
  readonly emulatedVersion: EmulatedVersion;
  readonly seed: number;
  readonly tie: Tie;
  readonly checkEvery: number;
  readonly connections: number;
  readonly metricsAddress: string;
  readonly eventsPerSecond: number;
  readonly podMaxInUnschedulablePodsDuration: number;
}

interface ScenarioFlags {
  readonly filename?: string;
  readonly shards: number;
  readonly relayLevels: number;
  readonly relayFanOut: number;
}

export function schedulerCommand(done: (exitCode: number) => void): Command {
  const command = addKlogFlags(addLogOptions(withRunOptions(described())));
  addForeignFlags(command, SCHEDULER_FOREIGN).action(async (flags: Flags, own: Command) =>
    done(await run(flags, own)),
  );
  // What follows `explain` is its own, and what it does not know is refused.
  command.enablePositionalOptions();
  addMembers(command, done);
  return withExplain(command, done);
}

function withExplain(command: Command, done: (exitCode: number) => void): Command {
  command
    .command('explain')
    .summary('why a pod goes where it goes, or nowhere')
    .description(
      'For a pod of a cluster: node by node why not, and what would have to change. Or reads a\n' +
        'scenario (nodes, pods and steps as JSON) and prints the decision about each step.\n\n' +
        'Example: megaplane scheduler explain my-pod -n my-namespace --kubeconfig ./kubeconfig',
    )
    .argument('[pod]', 'its name; without one a scenario is read')
    .option('-n, --namespace <name>', 'of the pod', 'default')
    .option('--kubeconfig <file>', 'how to reach the API server')
    .option('--config <file>', 'the KubeSchedulerConfiguration to decide by')
    .option(
      '--plugin <file>',
      'a module with plugins that it names; may be repeated',
      collected,
      [],
    )
    .option('--nodes <count>', 'nodes shown of each sort', wholeNumber(1, 1e6), 10)
    .option('-o, --output <format>', 'table or json', oneOf(['table', 'json']), 'table')
    .addOption(
      durationOption(
        '--request-timeout <duration>',
        'how long to wait for each answer of the API server',
        EXPLAIN_TIMEOUT_MS,
      ),
    )
    .option('-f, --filename <file>', 'the scenario (default: stdin)')
    .option(
      '--shards <count>',
      'of a scenario: so many shards look at the nodes; 0 = none',
      wholeNumber(0, EXPLAIN_SHARDS_MAX),
      0,
    )
    .option(
      '--relay-levels <count>',
      'of a scenario: levels of relays between the shards and the root',
      wholeNumber(0, EXPLAIN_LEVELS_MAX),
      0,
    )
    .option(
      '--relay-fan-out <count>',
      'of a scenario: relays below each relay',
      wholeNumber(1, EXPLAIN_SHARDS_MAX),
      10,
    )
    .addOption(
      emulatedVersionOption().default(undefined, '1.36; of scenarios 1.35, as they were recorded'),
    )
    .action(async (pod: string | undefined, _flags: unknown, own: Command) => {
      const { explainFile, explainPod } = await import('../flags/scheduler-files.ts');
      const flags = explainFlags(command, own);
      if (pod === undefined) return done(await explainFile(flags));
      if (flags.kubeconfig === undefined) own.error(KUBECONFIG_MISSING);
      done(await explainPod(pod, flags));
    });
  return command;
}

/** The flags of `explain`; those that stand before its name count where it has them, too. */
function explainFlags(command: Command, own: Command): ExplainFlags & ScenarioFlags {
  const flags = own.opts<Record<string, unknown>>();
  for (const option of command.options) {
    const name = option.attributeName();
    if (command.getOptionValueSource(name) !== 'cli') continue;
    if (!own.options.some((known) => known.attributeName() === name)) {
      own.error(`error: option '${option.flags}' is not for explain`);
    }
    if (own.getOptionValueSource(name) !== 'cli')
      putMember(flags, name, command.getOptionValue(name));
  }
  return flags as unknown as ExplainFlags & ScenarioFlags;
}

function emulatedVersionOption(): Option {
  const text = 'of kube-scheduler, where scores differ: 1.35 or 1.36';
  return new Option('--emulated-version <version>', text).argParser(oneOf(['1.35', '1.36']));
}

function described(): Command {
  return new Command('scheduler')
    .summary('finds nodes for pods on any Kubernetes API server')
    .description(
      'Finds the node that full evaluation would find, for each pod that has none.\n\n' +
        'Example: megaplane scheduler --kubeconfig ./megaplane-data/scheduler.kubeconfig',
    )
    .optionsGroup('Cluster:')
    .option('--kubeconfig <file>', 'how to reach the API server')
    .option('--connections <count>', 'connections to the server', wholeNumber(1, 1000), 1)
    .optionsGroup('Scheduling:')
    .option('--config <file>', 'a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)')
    .option('--write-config-to <file>', 'write the configuration with all defaults there, and end')
    .option('--plugin <file>', 'a module with plugins of your own; may be repeated', collected, [])
    .option(
      '--feature-gates <gates>',
      "kube-scheduler's, as Name=true,...; checked, and without effect here",
      joined,
      '',
    )
    .addOption(emulatedVersionOption().default('1.36'))
    .option(
      '--tie <rule>',
      "of equally good nodes: random, rotate, or upstream (kube-scheduler's, slow)",
      oneOf(['random', 'rotate', 'upstream']),
      'random',
    )
    .option('--seed <number>', 'what random ties come from', wholeNumber(0, 2 ** 48), 1)
    .option(
      '--check-every <count>',
      'compare one decision in so many with full evaluation; 0 = none',
      wholeNumber(0, 1e9),
      0,
    )
    .option(
      '--events-per-second <count>',
      'events posted at most; 0 = none',
      wholeNumber(0, 1e6),
      50,
    )
    .addOption(
      durationOption(
        '--pod-max-in-unschedulable-pods-duration <duration>',
        'after this a pod is tried again without a reason',
        300_000,
      ),
    );
}

function withShardOptions(command: Command): Command {
  const own = command
    .optionsGroup('Shards:')
    .option(
      '--shards <count>',
      'processes beside this one that look at nodes where no index can tell',
      wholeNumber(1, SHARDS_MAX),
    )
    .option(
      '--shards-address <host:port>',
      'where shards join; port 0 = a free one (default: with --shards, on loopback)',
      hostPort,
    )
    .option(
      '--relay-fan-out <count>',
      'children of this process and of each relay; relays are started where there are more',
      wholeNumber(2, SHARDS_MAX),
      FAN_OUT,
    )
    .addOption(
      durationOption(
        '--shards-round-timeout <duration>',
        'shards that answer later are done without',
        ROUND_MS_MAX,
      ),
    );
  return addMemberTls(own);
}

function withRunOptions(command: Command): Command {
  const own = addElectionFlags(
    withShardOptions(command).optionsGroup('Run:'),
    'kube-scheduler',
  ).option(
    '--metrics-address <host:port>',
    'of /metrics and health by plain HTTP; port 0 = a free one',
    '127.0.0.1:0',
  );
  return addSecureFlags(own, SECURE_PORT);
}

function collected(file: string, before: readonly string[]): readonly string[] {
  return [...before, file];
}

/** Repeated flags add up. */
function joined(gates: string, before: string): string {
  return `${before},${gates}`;
}

async function run(flags: Flags, own: Command): Promise<number> {
  const { configurationOf, readPlugins, writeConfiguration } =
    await import('../flags/scheduler-files.ts');
  const { changedGates, parseFeatureGates } =
    await import('@megaplane/scheduler/configuration/feature-gates');
  const gates = parseFeatureGates(flags.featureGates);
  if ('error' in gates) throw new Error(`--feature-gates: ${gates.error}`);
  if (flags.writeConfigTo !== undefined) {
    const plugins = await readPlugins(flags.plugin);
    writeConfiguration(
      flags.writeConfigTo,
      configurationOf(flags.config, plugins, electionMembers(flags)),
    );
    return 0;
  }
  // A file may name it, too.
  if (flags.kubeconfig === undefined && flags.config === undefined) own.error(KUBECONFIG_MISSING);
  return serve(async () => {
    const { runScheduler } = await import('@megaplane/scheduler/run-scheduler');
    const { COMPATIBILITY } = await import('@megaplane/scheduler/compatibility');
    const plugins = await readPlugins(flags.plugin);
    const configuration = configurationOf(flags.config, plugins, electionMembers(flags));
    const kubeconfig = flags.kubeconfig ?? configuration.kubeconfig;
    if (kubeconfig === '') throw new Error('--kubeconfig: a file is needed');
    const log = logger(withKlogFlags(flags));
    const what = 'flags without effect here';
    const warning = foreignWarning(what, foreignFlags(own, SCHEDULER_FOREIGN));
    if (warning !== '') log('warn', warning);
    const changed = changedGates(gates.value);
    if (changed.length > 0) log('warn', `--feature-gates: no effect here: ${changed.join(', ')}`);
    const secure = await secureAddressOf(flags, SECURE_PORT);
    const service = await runScheduler({
      ...shardsOf(flags, own, configuration),
      secure,
      gates: gates.value,
      flags: flagValues(own),
      compatibility: COMPATIBILITY[flags.emulatedVersion],
      kubeconfig,
      plugins,
      configuration,
      leaderElect: configuration.leaderElection.leaderElect,
      seed: flags.seed,
      tie: flags.tie,
      checkedEvery: flags.checkEvery,
      connections: flags.connections,
      metricsAddress: flags.metricsAddress,
      eventsPerSecondMax: flags.eventsPerSecond,
      podMaxInUnschedulableMs: flags.podMaxInUnschedulablePodsDuration,
      log,
    });
    return withShards(service, flags, log);
  });
}

function shardsOf(flags: Flags, own: Command, configuration: SchedulerConfiguration) {
  if (flags.shards === undefined && flags.shardsAddress === undefined) return {};
  const { host, port } = flags.shardsAddress ?? { host: '127.0.0.1', port: 0 };
  const terms = termsOf(ownVersion(), configuration, flags.plugin, flags.emulatedVersion);
  const tls = memberTlsOf(own, flags);
  return { shards: { host, port, terms, tls, roundMsMax: flags.shardsRoundTimeout } };
}

/** The service with the shards that it starts beside itself, which end with it. */
async function withShards(service: SchedulerService, flags: Flags, log: Log): Promise<Service> {
  const { shards } = service;
  if (shards === null) return service;
  const { host, port } = shards.address;
  const listens = `${service.listens}; shards join ${host}:${port}`;
  if (flags.shards === undefined) return { ...service, listens };
  const { startShards } = await import('../up/shard-children.ts');
  try {
    const children = await startShards({
      ...{ root: { host, port }, shards: flags.shards, fanOut: flags.relayFanOut },
      decisive: [
        ...(flags.config === undefined ? [] : ['--config', flags.config]),
        ...flags.plugin.flatMap((file) => ['--plugin', file]),
        ...['--emulated-version', flags.emulatedVersion],
      ],
      common: [
        ...['--log-level', flags.logLevel, '--log-format', flags.logFormat],
        ...tlsFlagsOf(flags),
      ],
      say: (text) => log('info', text),
    });
    await shards.joined(flags.shards);
    const stop = async (): Promise<void> => {
      await service.stop();
      await children.stop();
    };
    return { ...service, listens, stop };
  } catch (error) {
    await service.stop();
    throw error;
  }
}

function tlsFlagsOf({ shardCertFile, shardKeyFile, shardCaFile }: Flags): readonly string[] {
  if (shardCertFile === undefined) return [];
  return [
    ...['--shard-cert-file', shardCertFile, '--shard-key-file', shardKeyFile ?? ''],
    ...['--shard-ca-file', shardCaFile ?? ''],
  ];
}
