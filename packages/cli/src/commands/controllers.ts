/** `megaplane controllers`: the controllers that a cluster cannot live without. */
import { Command } from 'commander';
import type { ControllersOptions } from '@megaplane/controllers/options';
import {
  addSigningFlags,
  addTuningFlags,
  CONTROLLER_FOREIGN,
  refusalOf,
  tuningOf,
} from '../flags/controller-flags.ts';
import { addElectionFlags, type ElectionFlags } from '../flags/election-flags.ts';
import { featureGatesOption, gatesWarning } from '../flags/feature-gates-flag.ts';
import { addForeignFlags, foreignFlags, foreignWarning } from '../flags/foreign-flags.ts';
import { addKlogFlags, addLogOptions, logger, withKlogFlags } from '../service/logging.ts';
import type { KlogFlags, LogFlags } from '../service/logging.ts';
import { addSecureFlags, secureAddressOf, type SecureFlags } from '../flags/secure-flags.ts';
import { serve } from '../service/service.ts';
import { durationOption, flagValue, flagValues, given, positive } from '../parsers/flag-parsers.ts';
import { oneOf, wholeNumber, words } from '../parsers/flag-parsers.ts';

/** kube-controller-manager's. */
const PORT = 10_257;
const YEAR_MS: number = 365 * 24 * 3_600_000;

interface Flags extends LogFlags, KlogFlags, ElectionFlags, SecureFlags {
  readonly kubeconfig: string;
  readonly nodeMonitorPeriod: number;
  readonly nodeMonitorGracePeriod: number;
  readonly nodeStartupGracePeriod: number;
  readonly nodeEvictionRate: number;
  readonly secondaryNodeEvictionRate: number;
  readonly largeClusterSizeThreshold: number;
  readonly unhealthyZoneThreshold: number;
  readonly terminatedPodGcThreshold: number;
  readonly rootCaFile?: string;
  readonly approveKubeletServing?: true;
  readonly nodeCidrAllocator: 'range' | 'plan';
  readonly allocateNodeCidrs?: boolean;
  readonly clusterCidr?: readonly string[];
  readonly serviceClusterIpRange?: readonly string[];
  readonly nodeCidrMaskSize?: number;
  readonly nodeCidrMaskSizeIpv4?: number;
  readonly nodeCidrMaskSizeIpv6?: number;
  readonly legacyServiceAccountTokenCleanUpPeriod: number;
  readonly metricsAddress: string;
  readonly featureGates: string;
}

export function controllersCommand(done: (exitCode: number) => void): Command {
  const command = addKlogFlags(addLogOptions(withRunOptions(withAddressOptions(described()))));
  addForeignFlags(command, CONTROLLER_FOREIGN);
  return command.action(async (flags: Flags, own: Command) => done(await run(flags, own)));
}

function described(): Command {
  const command = new Command('controllers')
    .summary('the controllers that a cluster cannot live without')
    .description(
      'Keeps namespaces, service accounts, node health and what owners leave behind in order.\n\n' +
        'Example: megaplane controllers --kubeconfig ./megaplane-data/kubeconfig',
    )
    .optionsGroup('Cluster:')
    .requiredOption('--kubeconfig <file>', 'how to reach the API server')
    .option('--root-ca-file <file>', 'for kube-root-ca.crt (default: the CA of the kubeconfig)');
  const controllers = addSigningFlags(command)
    .option(
      '--approve-kubelet-serving',
      'approve requests of kubelets for serving certificates with the names of their nodes',
    )
    .optionsGroup('Controllers:')
    .addOption(featureGatesOption('kube-controller-manager'))
    .option('--controllers <list>', 'which ones: *, name, or -name', words, ['*'])
    .addOption(
      durationOption('--node-monitor-period <duration>', 'how often nodes are looked at', 5000),
    )
    .addOption(
      durationOption(
        '--node-monitor-grace-period <duration>',
        'silence that makes a node Unknown',
        50_000,
      ),
    )
    .addOption(
      durationOption(
        '--node-startup-grace-period <duration>',
        'the same for a node that never spoke',
        60_000,
      ),
    )
    .option('--node-eviction-rate <rate>', 'nodes per second and zone', positive, 0.1)
    .option(
      '--secondary-node-eviction-rate <rate>',
      'the same in a large unhealthy zone',
      positive,
      0.01,
    )
    .option(
      '--large-cluster-size-threshold <nodes>',
      'zones above it are large',
      wholeNumber(-1e9, 1e9),
      50,
    )
    .option('--unhealthy-zone-threshold <share>', 'of nodes not ready', positive, 0.55)
    .option(
      '--terminated-pod-gc-threshold <pods>',
      'ended pods kept; 0 = all',
      wholeNumber(-1e9, 1e9),
      12_500,
    )
    .addOption(
      durationOption(
        '--legacy-service-account-token-clean-up-period <duration>',
        'without use for so long legacy tokens go',
        YEAR_MS,
      ),
    );
  return addTuningFlags(controllers);
}

function withAddressOptions(command: Command): Command {
  return command
    .optionsGroup('Addresses of nodes:')
    .option('--allocate-node-cidrs [bool]', 'give nodes blocks of --cluster-cidr', flagValue, false)
    .option('--cluster-cidr <blocks>', 'one block, or one of each family', words)
    .option(
      '--node-cidr-allocator <how>',
      'range: the next free block; plan: that of the number of the node (see docs/network.md)',
      oneOf(['range', 'plan']),
      'range',
    )
    .option('--service-cluster-ip-range <blocks>', 'of services: not given to nodes', words)
    .option('--node-cidr-mask-size <bits>', 'of a block of a node (24, 64)', wholeNumber(0, 128))
    .option('--node-cidr-mask-size-ipv4 <bits>', 'where there are two families', wholeNumber(0, 32))
    .option('--node-cidr-mask-size-ipv6 <bits>', 'likewise', wholeNumber(0, 128));
}

function withRunOptions(command: Command): Command {
  return addSecureFlags(
    addElectionFlags(command.optionsGroup('Run:'), 'kube-controller-manager').option(
      '--metrics-address <host:port>',
      'of /metrics and /healthz; port 0 = a free one',
      '127.0.0.1:0',
    ),
    PORT,
  );
}

function run(flags: Flags, command: Command): Promise<number> {
  const refusal = refusalOf(command);
  if (refusal !== '') throw new Error(refusal);
  return serve(async () => {
    const { runControllers } = await import('@megaplane/controllers/run');
    const log = logger(withKlogFlags(flags));
    const what = 'flags without effect here';
    const unused = foreignWarning(what, foreignFlags(command, CONTROLLER_FOREIGN));
    for (const warning of [gatesWarning(flags.featureGates), unused]) {
      if (warning !== '') log('warn', warning);
    }
    const secure = await secureAddressOf(flags, PORT);
    return runControllers({
      ...optionsOf(flags),
      ...tuningOf(command),
      flags: flagValues(command),
      secure,
      log,
    });
  });
}

function optionsOf(flags: Flags): Omit<ControllersOptions, 'log'> {
  return {
    kubeconfig: flags.kubeconfig,
    nodeMonitorPeriodMs: flags.nodeMonitorPeriod,
    nodeMonitorGracePeriodMs: flags.nodeMonitorGracePeriod,
    nodeStartupGracePeriodMs: flags.nodeStartupGracePeriod,
    nodeEvictionRate: flags.nodeEvictionRate,
    secondaryNodeEvictionRate: flags.secondaryNodeEvictionRate,
    largeClusterSizeThreshold: flags.largeClusterSizeThreshold,
    unhealthyZoneThreshold: flags.unhealthyZoneThreshold,
    terminatedPodGcThreshold: Math.max(0, flags.terminatedPodGcThreshold),
    leaderElect: flags.leaderElect ?? true,
    election: electionOf(flags),
    ...given(flags, ['rootCaFile', 'clusterCidr', 'serviceClusterIpRange', 'allocateNodeCidrs']),
    ...given(flags, ['approveKubeletServing', 'nodeCidrAllocator']),
    ...given(flags, ['nodeCidrMaskSize', 'nodeCidrMaskSizeIpv4', 'nodeCidrMaskSizeIpv6']),
    legacyTokenCleanUpPeriodMs: flags.legacyServiceAccountTokenCleanUpPeriod,
    metricsAddress: flags.metricsAddress,
  };
}

function electionOf(flags: ElectionFlags): NonNullable<ControllersOptions['election']> {
  const terms = {
    leaseDurationMs: flags.leaderElectLeaseDuration,
    renewDeadlineMs: flags.leaderElectRenewDeadline,
    retryPeriodMs: flags.leaderElectRetryPeriod,
    name: flags.leaderElectResourceName,
    namespace: flags.leaderElectResourceNamespace,
  };
  return Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== undefined));
}
