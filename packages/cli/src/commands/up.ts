// shell: standard error
/** `megaplane up`: a whole cluster on this machine. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { COMPONENTS, chosenComponents } from '../up/plan.ts';
import { SHARDS_MAX } from '../flags/shard-flags.ts';
import { chosenPort, SECURE_PORT, usualPorts } from '../up/ports.ts';
import type { OutsideFlags } from '../up/outside.ts';
import type { Component, OutsideOptions } from '../up/plan.ts';
import {
  durabilityModes,
  flagValue,
  list,
  oneOf,
  path,
  urls,
  wholeNumber,
} from '../parsers/flag-parsers.ts';

const EXIT_USAGE = 2;
export const NODES_MAX = 100_000_000;
export const PODS_MAX = 100_000_000;

interface Flags extends OutsideFlags {
  readonly nodes: number;
  readonly pods: number;
  readonly dataDir: string;
  readonly ephemeral?: true;
  readonly securePort: number;
  readonly threads?: number;
  readonly kubeletPort?: number;
  readonly kubeconfig?: string;
  readonly mergeKubeconfig?: true;
  readonly listenClientUrls?: string;
  readonly durability?: string;
  readonly etcdServers?: string;
  readonly journal?: string;
  readonly stages?: readonly string[];
  readonly components?: readonly Component[];
  readonly pagePort: number;
  readonly schedulerShards: number;
  readonly exitWhen?: 'ready' | 'bound';
  readonly dryRun?: true;
  readonly output: 'text' | 'json';
  readonly logFormat: string;
  readonly logLevel: string;
}

function components(text: string): readonly Component[] {
  const chosen = chosenComponents(list(text, undefined));
  if (typeof chosen === 'string') throw new InvalidArgumentError(chosen);
  return chosen;
}

export function upCommand(done: (exitCode: number) => void): Command {
  const command = new Command('up');
  command
    .summary('a whole cluster on this machine')
    .description(
      'Starts a whole cluster on this machine: store, API server, controllers, scheduler and ' +
        'simulated nodes, each as the command that an operator would start.\n\n' +
        'Example: megaplane up --nodes 1000 --data-dir ./cluster',
    )
    .optionsGroup('Size:')
    .option('--nodes <count>', 'simulated nodes', wholeNumber(0, NODES_MAX), 10_000)
    .option('--pods <count>', 'pods created once the nodes are ready', wholeNumber(0, PODS_MAX), 0)
    .option(
      '--stages <files...>',
      "kwok's files for the simulated nodes, or sets: fast, general, jobs, chaos, volume, metrics",
    )
    .optionsGroup('Data:')
    .option('--data-dir <dir>', 'where the cluster lives', path, './megaplane-data')
    .addOption(
      new Option(
        '--ephemeral',
        'use a temporary data directory and delete it at the end',
      ).conflicts('dataDir'),
    )
    .option(
      '--durability <modes>',
      'none, buffered or fsync, or by resource: leases.coordination.k8s.io=none,fsync',
      durabilityModes,
    )
    .option('--threads <count>', "of the API server's connections (0)", wholeNumber(0, 256))
    .option('--etcd-servers <urls>', 'keep objects in this etcd, not in the embedded store')
    .option('--journal <url>', 'keep objects in the group of stores on this journal (+)')
    .optionsGroup('Access:')
    .option('--join', 'other machines may join: all that their kubelets need (see docs/up.md)')
    .option('--bind-address <ip>', 'where to listen (127.0.0.1; with --join all interfaces)')
    .option('--advertise-address <ip>', 'where other machines and pods reach the API server')
    .option('--service-cluster-ip-range <networks>', 'of services: one, or one of each family')
    .option('--enable-bootstrap-token-auth [bool]', 'take tokens of Secrets', flagValue)
    .option(
      '--secure-port <port>',
      'of the API server; 0 = a free one; left alone: 6443, or the next one that is free',
      wholeNumber(0, 65_535),
      SECURE_PORT,
    )
    .option(
      '--kubelet-port <port>',
      'of all simulated kubelets (default: 10250, or a free one)',
      wholeNumber(0, 65_535),
    )
    .option('--kubeconfig <file>', 'where to write it (default: DATA-DIR/kubeconfig)', path)
    .option('--merge-kubeconfig', 'also add the context "megaplane" to ~/.kube/config')
    .option('--listen-client-urls <urls>', 'also serve the embedded store as etcd there', urls)
    .option(
      '--page-port <port>',
      'of the live page; 0 = off, as is the default with --exit-when',
      wholeNumber(0, 65_535),
      8080,
    );
  return addRunOptions(command).action(async (flags: Flags) => {
    const fault = missingComponent(flags) ?? (await wrongOutside(flags));
    if (fault !== undefined) command.error(`error: ${fault}`, { exitCode: EXIT_USAGE });
    const isDefault = (name: string): boolean => command.getOptionValueSource(name) === 'default';
    // nobody looks at what ends by itself, unless it is asked for
    const isLookedAt = flags.exitWhen === undefined || !isDefault('pagePort');
    const pagePort = isLookedAt ? flags.pagePort : 0;
    done(await run({ ...flags, pagePort }, isDefault));
  });
}

function addRunOptions(command: Command): Command {
  return command
    .optionsGroup('Run:')
    .option(
      '--scheduler-shards <count>',
      'processes that look at nodes for the scheduler; 0 = none',
      wholeNumber(0, SHARDS_MAX),
      0,
    )
    .option('--components <list>', `of ${COMPONENTS.join(', ')}; -name leaves one out`, components)
    .addOption(
      new Option(
        '--exit-when <state>',
        'stop once all nodes are ready, or all pods are bound',
      ).argParser(oneOf(['ready', 'bound'])),
    )
    .option('--dry-run', 'say what would be started, and start nothing')
    .option('--output <format>', 'of the timings: text or json', oneOf(['text', 'json']), 'text')
    .option('--log-format <format>', 'text or json', oneOf(['text', 'json']), 'text')
    .option(
      '--log-level <level>',
      'error, warn, info, debug',
      oneOf(['error', 'warn', 'info', 'debug']),
      'info',
    );
}

/** What would be waited for although nobody is there who does it. */
function missingComponent(flags: Flags): string | undefined {
  const { pods, exitWhen, nodes, schedulerShards, components = COMPONENTS } = flags;
  const missing = (what: string, needed: readonly Component[]): string | undefined => {
    const absent = needed.filter((name) => !components.includes(name));
    const verb = absent.length === 1 ? 'is' : 'are';
    if (absent.length === 0) return undefined;
    return `${what} needs ${absent.join(' and ')}, which ${verb} left out by --components`;
  };
  const ofShards = schedulerShards === 0 ? undefined : missing('--scheduler-shards', ['scheduler']);
  if (ofShards !== undefined) return ofShards;
  if (nodes === 0 && pods > 0) return '--pods needs --nodes above 0: nobody else says they run';
  if (nodes === 0) return undefined;
  const ofPods = pods === 0 ? undefined : missing('--pods', ['scheduler', 'nodes']);
  return ofPods ?? (exitWhen === undefined ? undefined : missing('--exit-when', ['nodes']));
}

/** Code of the API server is read only where somebody comes from outside. */
async function outside(flags: Flags): Promise<OutsideOptions | undefined | string> {
  const { join, bindAddress, advertiseAddress, serviceClusterIpRange } = flags;
  const asked = [join, bindAddress, advertiseAddress, serviceClusterIpRange];
  const { enableBootstrapTokenAuth } = flags;
  if ([...asked, enableBootstrapTokenAuth].every((one) => one === undefined)) return undefined;
  const { outsideOf } = await import('../up/outside.ts');
  return outsideOf(flags);
}

async function wrongOutside(flags: Flags): Promise<string | undefined> {
  const found = await outside(flags);
  return typeof found === 'string' ? found : undefined;
}

async function run(flags: Flags, isDefault: (name: string) => boolean): Promise<number> {
  if (flags.stages !== undefined) {
    // nothing is begun with files that the simulator would refuse
    const files = await import('@megaplane/nodes/stages/kwok-files');
    files.judgeKwokFiles(files.readKwokFiles('--stages', flags.stages));
  }
  const say = (text: string): void => void process.stderr.write(`megaplane: ${text}\n`);
  const asked = flags.securePort;
  const securePort = await chosenPort('--secure-port', asked, isDefault('securePort'), say);
  const pagePort = await chosenPort('--page-port', flags.pagePort, isDefault('pagePort'), say);
  const ports = await usualPorts(securePort);
  const found = await outside(flags);
  // who asks for no nodes starts no simulator: nodes of others would have one beside their kubelet
  const wanted = flags.components ?? COMPONENTS;
  const components = flags.nodes === 0 ? wanted.filter((name) => name !== 'nodes') : wanted;
  const options = {
    ...flags,
    securePort,
    pagePort,
    ephemeral: flags.ephemeral ?? false,
    mergeKubeconfig: flags.mergeKubeconfig ?? false,
    ...ports,
    kubeletPort: flags.kubeletPort ?? ports.kubeletPort,
    kubeconfig: flags.kubeconfig,
    listenClientUrls: flags.listenClientUrls,
    durability: flags.durability,
    etcdServers: flags.etcdServers,
    ...(flags.journal === undefined ? {} : { journal: flags.journal }),
    stages: flags.stages ?? [],
    components,
    exitWhen: flags.exitWhen,
    ...(found === undefined || typeof found === 'string' ? {} : { outside: found }),
  };
  const { runDry, runUp } = await import('../up/run.ts');
  return flags.dryRun === true ? runDry(options) : runUp(options);
}
