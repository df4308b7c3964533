/** `megaplane controllers`: the controllers that a cluster cannot live without. */
import { Command } from 'commander';
import { featureGatesOption, gatesWarning } from '../feature-gates-flag.ts';
import { addLogOptions, logger } from '../logging.ts';
import type { LogFlags } from '../logging.ts';
import { serve } from '../service.ts';
import { durationOption, flagValue, positive, wholeNumber, words } from '../usage.ts';

const YEAR_MS: number = 365 * 24 * 3_600_000;

interface Flags extends LogFlags {
  readonly kubeconfig: string;
  readonly controllers: readonly string[];
  readonly nodeMonitorPeriod: number;
  readonly nodeMonitorGracePeriod: number;
  readonly nodeStartupGracePeriod: number;
  readonly nodeEvictionRate: number;
  readonly secondaryNodeEvictionRate: number;
  readonly largeClusterSizeThreshold: number;
  readonly unhealthyZoneThreshold: number;
  readonly terminatedPodGcThreshold: number;
  readonly leaderElect?: boolean;
  readonly rootCaFile?: string;
  readonly allocateNodeCidrs?: boolean;
  readonly clusterCidr?: readonly string[];
  readonly serviceClusterIpRange?: readonly string[];
  readonly nodeCidrMaskSizeIpv4: number;
  readonly nodeCidrMaskSizeIpv6: number;
  readonly clusterSigningCertFile?: string;
  readonly clusterSigningKeyFile?: string;
  readonly clusterSigningDuration: number;
  readonly legacyServiceAccountTokenCleanUpPeriod: number;
  readonly metricsAddress: string;
  readonly featureGates: string;
}

export function controllersCommand(done: (exitCode: number) => void): Command {
  return addLogOptions(withRunOptions(withAddressOptions(described()))).action(
    async (flags: Flags) => done(await run(flags)),
  );
}

function described(): Command {
  return new Command('controllers')
    .summary('the controllers that a cluster cannot live without')
    .description(
      'Keeps namespaces, service accounts, node health and what owners leave behind in order.\n\n' +
        'Example: megaplane controllers --kubeconfig ./megaplane-data/kubeconfig',
    )
    .optionsGroup('Cluster:')
    .requiredOption('--kubeconfig <file>', 'how to reach the API server')
    .option('--root-ca-file <file>', 'for kube-root-ca.crt (default: the CA of the kubeconfig)')
    .option('--cluster-signing-cert-file <file>', 'PEM of who signs certificate requests')
    .option('--cluster-signing-key-file <file>', 'its key')
    .addOption(
      durationOption(
        '--cluster-signing-duration <duration>',
        'how long certificates live at most',
        YEAR_MS,
      ),
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
      wholeNumber(0, 1e9),
      50,
    )
    .option('--unhealthy-zone-threshold <share>', 'of nodes not ready', positive, 0.55)
    .option(
      '--terminated-pod-gc-threshold <pods>',
      'ended pods kept; 0 = all',
      wholeNumber(0, 1e9),
      12_500,
    )
    .addOption(
      durationOption(
        '--legacy-service-account-token-clean-up-period <duration>',
        'without use for so long legacy tokens go',
        YEAR_MS,
      ),
    );
}

function withAddressOptions(command: Command): Command {
  return command
    .optionsGroup('Addresses of nodes:')
    .option('--allocate-node-cidrs [bool]', 'give nodes blocks of --cluster-cidr', flagValue, false)
    .option('--cluster-cidr <blocks>', 'one block, or one of each family', words)
    .option('--service-cluster-ip-range <blocks>', 'of services: not given to nodes', words)
    .option('--node-cidr-mask-size-ipv4 <bits>', 'of a block of a node', wholeNumber(1, 32), 24)
    .option('--node-cidr-mask-size-ipv6 <bits>', 'of a block of a node', wholeNumber(1, 128), 64);
}

function withRunOptions(command: Command): Command {
  return command
    .optionsGroup('Run:')
    .option('--leader-elect [bool]', 'wait for the lease before doing anything', flagValue, true)
    .option(
      '--metrics-address <host:port>',
      'of /metrics and /healthz; port 0 = a free one',
      '127.0.0.1:0',
    );
}

function run(flags: Flags): Promise<number> {
  return serve(async () => {
    const { runControllers } = await import('@megaplane/controllers/run');
    const warning = gatesWarning(flags.featureGates);
    if (warning !== '') logger(flags)('warn', warning);
    return runControllers({
      kubeconfig: flags.kubeconfig,
      controllers: flags.controllers,
      nodeMonitorPeriodMs: flags.nodeMonitorPeriod,
      nodeMonitorGracePeriodMs: flags.nodeMonitorGracePeriod,
      nodeStartupGracePeriodMs: flags.nodeStartupGracePeriod,
      nodeEvictionRate: flags.nodeEvictionRate,
      secondaryNodeEvictionRate: flags.secondaryNodeEvictionRate,
      largeClusterSizeThreshold: flags.largeClusterSizeThreshold,
      unhealthyZoneThreshold: flags.unhealthyZoneThreshold,
      terminatedPodGcThreshold: flags.terminatedPodGcThreshold,
      leaderElect: flags.leaderElect ?? true,
      ...(flags.rootCaFile === undefined ? {} : { rootCaFile: flags.rootCaFile }),
      ...(flags.clusterSigningCertFile === undefined
        ? {}
        : { clusterSigningCertFile: flags.clusterSigningCertFile }),
      ...(flags.clusterSigningKeyFile === undefined
        ? {}
        : { clusterSigningKeyFile: flags.clusterSigningKeyFile }),
      clusterSigningDurationMs: flags.clusterSigningDuration,
      legacyTokenCleanUpPeriodMs: flags.legacyServiceAccountTokenCleanUpPeriod,
      allocateNodeCidrs: flags.allocateNodeCidrs ?? false,
      clusterCidr: flags.clusterCidr ?? [],
      serviceClusterIpRange: flags.serviceClusterIpRange ?? [],
      nodeCidrMaskSizeIpv4: flags.nodeCidrMaskSizeIpv4,
      nodeCidrMaskSizeIpv6: flags.nodeCidrMaskSizeIpv6,
      metricsAddress: flags.metricsAddress,
      log: logger(flags),
    });
  });
}
