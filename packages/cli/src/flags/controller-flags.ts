/**
 * kube-controller-manager's flags, so that its manifests work with another program in their place.
 * What upstream finds wrong with them is said in its words; what has no effect here is taken all
 * the same, and named in one warning.
 */
import { ownMember } from '@megaplane/base/members';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  SIGNING_PURPOSES,
  unknownControllers,
  type ControllerName,
  type ControllersOptions,
  type KeyPairFiles,
  type SigningPurpose,
} from '@megaplane/controllers/options';
import type { ElectionFlags } from './election-flags.ts';
import { flagNames, foreignValue } from './foreign-flags.ts';
import { durationOption, flagValue, wholeNumber } from '../parsers/flag-parsers.ts';

/** Those without effect here. */
export const CONTROLLER_FOREIGN: readonly string[] = flagNames(`
  allow-metric-labels allow-metric-labels-manifest authentication-tolerate-lookup-failure
  cert-dir cloud-config cluster-name concurrent-service-syncs
  concurrent-validating-admission-policy-status-syncs configure-cloud-routes
  contention-profiling controller-shutdown-timeout controller-start-interval
  disable-attach-detach-reconcile-sync disable-http2-serving disabled-metrics
  emulated-version enable-dynamic-provisioning enable-hostpath-provisioner
  enable-leader-migration endpoint-updates-batch-period external-cloud-volume-plugin
  flex-volume-plugin-dir http2-max-streams-per-connection kube-api-content-type
  leader-migration-config log-flush-frequency log-json-info-buffer-size
  log-json-split-stream log-text-info-buffer-size log-text-split-stream master
  min-compatibility-version min-resync-period mirroring-endpointslice-updates-batch-period
  namespace-sync-period permit-address-sharing permit-port-sharing profiling
  pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath
  pv-recycler-minimum-timeout-nfs pv-recycler-pod-template-filepath-hostpath
  pv-recycler-pod-template-filepath-nfs pv-recycler-timeout-increment-hostpath
  requestheader-allowed-names requestheader-client-ca-file
  requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
  requestheader-username-headers route-reconciliation-period show-hidden-metrics-for-version
  tls-cipher-suites tls-curve-preferences tls-min-version tls-sni-cert-key
  use-service-account-credentials vmodule
`);

/** How many keys of a controller are worked on at a time; upstream refuses some that are not. */
const SYNCS: readonly (readonly [flag: string, ControllerName, refusal?: string])[] = [
  ['concurrent-daemonset-syncs', 'daemonset-controller', 'must be greater than 0, but got'],
  [
    'concurrent-device-taint-eviction-syncs',
    'device-taint-eviction-controller',
    'must be greater than zero, got',
  ],
  ['concurrent-resourceclaim-syncs', 'resourceclaim-controller', 'must be larger than 0, got'],
  ['concurrent-statefulset-syncs', 'statefulset-controller', 'must be greater than 0, but got'],
  ['concurrent-deployment-syncs', 'deployment-controller'],
  ['concurrent-endpoint-syncs', 'endpoints-controller'],
  [
    'concurrent-service-endpoint-syncs',
    'endpointslice-controller',
    'must not be less than 1, but got',
  ],
  [
    'mirroring-concurrent-service-endpoint-syncs',
    'endpointslice-mirroring-controller',
    'must not be less than 1, but got',
  ],
  [
    'concurrent-ephemeralvolume-syncs',
    'ephemeral-volume-controller',
    'must be greater than 0, but got',
  ],
  ['concurrent-gc-syncs', 'garbage-collector-controller'],
  [
    'concurrent-horizontal-pod-autoscaler-syncs',
    'horizontal-pod-autoscaler-controller',
    'must be greater than 0, but got',
  ],
  ['concurrent-job-syncs', 'job-controller', 'must be greater than 0, but got'],
  ['concurrent-cron-job-syncs', 'cronjob-controller', 'must be greater than 0, but got'],
  ['concurrent-namespace-syncs', 'namespace-controller'],
  ['concurrent-replicaset-syncs', 'replicaset-controller'],
  ['concurrent-rc-syncs', 'replicationcontroller-controller'],
  ['concurrent-resource-quota-syncs', 'resourcequota-controller'],
  ['concurrent-serviceaccount-token-syncs', 'serviceaccount-token-controller'],
  ['concurrent-ttl-after-finished-syncs', 'ttl-after-finished-controller'],
];

const INT32: [number, number] = [-(2 ** 31), 2 ** 31 - 1];
const YEAR_MS: number = 365 * 24 * 3_600_000;
/** client-go's `JitterFactor`. */
const ELECTION_JITTER = 1.2;
/** As upstream, of EndpointSlices and of subsets. */
const ENDPOINTS_MAX = 1_000;

/** What these flags come to; those of `SYNCS` and of the signers' files are read by name. */
export interface ControllerFlags {
  readonly controllers: readonly string[];
  readonly enableGarbageCollector?: boolean;
  readonly clusterSigningDuration: number;
  readonly serviceAccountPrivateKeyFile?: string;
  readonly horizontalPodAutoscalerSyncPeriod: number;
  readonly horizontalPodAutoscalerTolerance: number;
  readonly horizontalPodAutoscalerDownscaleStabilization: number;
  readonly horizontalPodAutoscalerCpuInitializationPeriod: number;
  readonly horizontalPodAutoscalerInitialReadinessDelay: number;
  readonly maxEndpointsPerSlice: number;
  readonly mirroringMaxEndpointsPerSubset: number;
  readonly endpointsliceUpdatesBatchPeriod: number;
  readonly resourceQuotaSyncPeriod: number;
  readonly pvclaimbinderSyncPeriod: number;
  readonly attachDetachReconcileSyncPeriod: number;
  readonly disableForceDetachOnTimeout?: boolean;
  readonly kubeApiQps?: number;
  readonly kubeApiBurst?: number;
  readonly cloudProvider: string;
  readonly cidrAllocatorType: string;
}

/** Adds who signs: certificates, and tokens in Secrets. */
export function addSigningFlags(command: Command): Command {
  const of = (purpose: SigningPurpose): string =>
    purpose === 'all' ? 'certificate requests' : `those of the signer ${purpose} alone`;
  for (const purpose of SIGNING_PURPOSES) {
    const file = fileFlag(purpose, 'cert');
    command.option(`--${file} <file>`, `PEM of who signs ${of(purpose)}`);
    command.option(`--${fileFlag(purpose, 'key')} <file>`, 'its key');
  }
  return command
    .addOption(
      durationOption(
        '--cluster-signing-duration <duration>',
        'how long certificates live at most',
        YEAR_MS,
      ),
    )
    .option(
      '--service-account-private-key-file <file>',
      'signs tokens in Secrets (default: the API server makes them)',
    );
}

function fileFlag(purpose: SigningPurpose, what: 'cert' | 'key'): string {
  return `cluster-signing-${purpose === 'all' ? '' : `${purpose}-`}${what}-file`;
}

/** Adds the flags of single controllers that have no group of their own. */
export function addTuningFlags(command: Command): Command {
  const period = (flag: string, text: string, usualMs: number): Command =>
    command.addOption(durationOption(`--${flag} <duration>`, text, usualMs));
  const autoscaler = 'horizontal-pod-autoscaler';
  command
    .option('--enable-garbage-collector [bool]', 'false: nothing is collected', flagValue)
    .option(`--${autoscaler}-tolerance <share>`, 'no change for less', signed, 0.1)
    .option('--max-endpoints-per-slice <count>', 'of an EndpointSlice', int32, 100)
    .option('--mirroring-max-endpoints-per-subset <count>', 'that are copied', int32, 1_000)
    .option('--disable-force-detach-on-timeout [bool]', 'time detaches no volume', flagValue)
    .option('--kube-api-qps <rate>', 'requests of each controller (default: no limit)', signed)
    .option('--kube-api-burst <count>', 'of these at once (default: 30)', int32);
  period(`${autoscaler}-sync-period`, 'how often autoscalers are looked at', 15_000);
  period(`${autoscaler}-downscale-stabilization`, 'nothing shrinks below what it asked', 300_000);
  period(`${autoscaler}-cpu-initialization-period`, "a new pod's use does not count", 300_000);
  period(`${autoscaler}-initial-readiness-delay`, 'a new pod may become ready', 30_000);
  period('endpointslice-updates-batch-period', 'changes of pods wait for others', 0);
  period('resource-quota-sync-period', 'how often quotas are counted', 300_000);
  period('pvclaimbinder-sync-period', 'how often waiting claims are looked at', 15_000);
  for (const [flag] of SYNCS) {
    command.addOption(new Option(`--${flag} <count>`).argParser(int32).hideHelp());
  }
  const hidden = [
    new Option('--cloud-provider <name>').default(''),
    new Option('--cidr-allocator-type <name>').default('RangeAllocator'),
    durationOption('--attach-detach-reconcile-sync-period <duration>', '', 60_000),
  ];
  for (const option of hidden) command.addOption(option.hideHelp());
  return command;
}

function int32(text: string): number {
  return wholeNumber(...INT32)(text);
}

/** A number as Go's flags read it, with a sign and an exponent where it has them. */
function signed(text: string): number {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value)) throw new InvalidArgumentError('a number such as 0.1 is needed.');
  return value;
}

/** What upstream would refuse to start with, in its words and order; '' for nothing. */
export function refusalOf(command: Command): string {
  const flags = command.opts<ControllerFlags & ElectionFlags>();
  const wrong = unknownControllers(flags.controllers);
  if ((flags.leaderElectResourceLock ?? 'leases') !== 'leases') {
    wrong.push('resourceLock value must be "leases"');
  }
  if (!['', 'external'].includes(flags.cloudProvider)) {
    wrong.push(
      `cloud provider ${JSON.stringify(flags.cloudProvider)} was specified, but built-in cloud ` +
        'providers are disabled. Please set --cloud-provider=external and migrate to an external ' +
        'cloud provider',
    );
  }
  if (flags.cidrAllocatorType !== 'RangeAllocator') {
    const type = flags.cidrAllocatorType;
    wrong.push(`built-in cloud providers are disabled. The ipam ${type} is not available`);
  }
  if (flags.attachDetachReconcileSyncPeriod < 1_000) {
    const flag = 'reconcile-sync-loop-period';
    wrong.push(
      `duration time must be greater than one second as set via command line option ${flag}`,
    );
  }
  wrong.push(...wrongSigners(command), ...wrongCounts(command));
  if (wrong.length === 0) wrong.push(...wrongElection(command.opts<ElectionFlags>()));
  return wrong.length > 1 ? `[${wrong.join(', ')}]` : (wrong[0] ?? '');
}

/** Upstream says the first of these as it panics. */
function wrongElection(flags: ElectionFlags): string[] {
  const { leaderElectLeaseDuration: lease = 15_000, leaderElectRetryPeriod: retry = 2_000 } = flags;
  const { leaderElectRenewDeadline: renew = 10_000 } = flags;
  if (flags.leaderElect === false) return [];
  if (lease <= renew) return ['leaseDuration must be greater than renewDeadline'];
  if (renew <= ELECTION_JITTER * retry) {
    return ['renewDeadline must be greater than retryPeriod*JitterFactor'];
  }
  return retry < 1 ? ['retryPeriod must be greater than zero'] : [];
}

function wrongSigners(command: Command): string[] {
  const wrong: string[] = [];
  let hasOwn = false;
  for (const purpose of SIGNING_PURPOSES) {
    const [certificate, key] = filesOf(command, purpose);
    if (purpose === 'all' || (certificate === '' && key === '')) continue;
    hasOwn = true;
    if (certificate !== '' && key !== '') continue;
    // Upstream's words name two of the signers as if they were others.
    const called =
      ownMember({ 'kubelet-client': 'kube-apiserver-client' }, purpose as string) ?? purpose;
    const short = purpose === 'kube-apiserver-client' ? 'kube-apiserver' : called;
    const what = key === '' ? 'cert without key' : 'key without cert';
    wrong.push(`"cluster-signing-${short}": cannot specify ${what}`);
  }
  if (hasOwn && filesOf(command, 'all').some((one) => one !== '')) {
    wrong.push(
      'cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags ' +
        'at the same time',
    );
  }
  return wrong;
}

function filesOf(command: Command, purpose: SigningPurpose): [certificate: string, key: string] {
  const of = (what: 'cert' | 'key'): string => {
    const value = foreignValue(command, fileFlag(purpose, what));
    return typeof value === 'string' ? value : '';
  };
  return [of('cert'), of('key')];
}

function wrongCounts(command: Command): string[] {
  const { maxEndpointsPerSlice, mirroringMaxEndpointsPerSubset } = command.opts<ControllerFlags>();
  const wrong: string[] = [];
  const addMost = (flag: string, value: number): void => {
    if (value < 1) wrong.push(`${flag} must not be less than 1, but got ${value}`);
    if (value <= ENDPOINTS_MAX) return;
    wrong.push(`${flag} must not be more than ${ENDPOINTS_MAX}, but got ${value}`);
  };
  for (const [flag, name, refusal] of SYNCS) {
    const value = foreignValue(command, flag);
    if (refusal !== undefined && typeof value === 'number' && value < 1) {
      wrong.push(`${flag} ${refusal} ${value}`);
    }
    if (name === 'endpointslice-controller') {
      addMost('max-endpoints-per-slice', maxEndpointsPerSlice);
    }
    if (name === 'endpointslice-mirroring-controller') {
      addMost('mirroring-max-endpoints-per-subset', mirroringMaxEndpointsPerSubset);
    }
  }
  return wrong;
}

/** What the controllers are told of these flags. */
export function tuningOf(command: Command): Partial<ControllersOptions> {
  const flags = command.opts<ControllerFlags>();
  const counts = SYNCS.map(([flag, name]) => [name, foreignValue(command, flag)] as const);
  const { serviceAccountPrivateKeyFile: tokenKeyFile, kubeApiQps = 0 } = flags;
  const burst = flags.kubeApiBurst ?? 30;
  return {
    controllers:
      flags.enableGarbageCollector === false
        ? ['-garbage-collector-controller', ...flags.controllers]
        : flags.controllers,
    concurrentSyncs: Object.fromEntries(counts.filter(([, count]) => typeof count === 'number')),
    // Below zero means no limit to upstream's clients.
    requestRate: kubeApiQps > 0 && burst > 0 ? { perSecond: kubeApiQps, burst } : undefined,
    autoscaler: {
      syncMs: flags.horizontalPodAutoscalerSyncPeriod,
      tolerance: flags.horizontalPodAutoscalerTolerance,
      downscaleWindowMs: flags.horizontalPodAutoscalerDownscaleStabilization,
      cpuInitializationMs: flags.horizontalPodAutoscalerCpuInitializationPeriod,
      initialReadinessMs: flags.horizontalPodAutoscalerInitialReadinessDelay,
    },
    slices: {
      endpointsMax: flags.maxEndpointsPerSlice,
      batchMs: flags.endpointsliceUpdatesBatchPeriod,
      mirroredMax: flags.mirroringMaxEndpointsPerSubset,
    },
    quotaSyncMs: flags.resourceQuotaSyncPeriod,
    claimSyncMs: flags.pvclaimbinderSyncPeriod,
    neverForcesDetach: flags.disableForceDetachOnTimeout ?? false,
    clusterSigning: signersOf(command),
    clusterSigningDurationMs: flags.clusterSigningDuration,
    ...(tokenKeyFile === undefined ? {} : { tokenKeyFile }),
  };
}

/** As upstream, half a pair for all signers is none. */
function signersOf(command: Command): Partial<Record<SigningPurpose, KeyPairFiles>> {
  const found: Partial<Record<SigningPurpose, KeyPairFiles>> = {};
  for (const purpose of SIGNING_PURPOSES) {
    const [certificateFile, keyFile] = filesOf(command, purpose);
    if (certificateFile !== '' && keyFile !== '') found[purpose] = { certificateFile, keyFile };
  }
  return found;
}
