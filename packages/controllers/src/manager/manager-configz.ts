/**
 * `/configz`: what the controllers go by, as kube-controller-manager 1.36 shows it
 * (KubeControllerManagerConfiguration, v1alpha1). Members that have no meaning here keep upstream's
 * defaults.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { formatDuration } from '@megaplane/machinery/times';
import type { ControllerName, ControllersOptions, SigningPurpose } from '../framework/options.ts';
import { rulesOf } from './manager.ts';

const YEAR_MS: number = 365 * 24 * 3_600_000;

export function managerConfigz(options: ControllersOptions): JsonObject {
  return {
    'kubecontrollermanager.config.k8s.io': {
      kind: 'KubeControllerManagerConfiguration',
      apiVersion: 'kubecontrollermanager.config.k8s.io/v1alpha1',
      Generic: generic(options),
      KubeCloudShared: shared(options),
      AttachDetachController: {
        DisableAttachDetachReconcilerSync: false,
        ReconcilerSyncLoopPeriod: '1m0s',
        disableForceDetachOnTimeout: options.neverForcesDetach ?? false,
      },
      CSRSigningController: signing(options),
      ...workloads(options),
      ...services(options),
      ...housekeeping(options),
      ...nodes(options),
      ...volumes(options),
    },
  };
}

const duration = (ms: number): string => formatDuration(Math.round(ms * 1e6));

function syncs(options: ControllersOptions, name: ControllerName, usual = 5): number {
  return options.concurrentSyncs?.[name] ?? usual;
}

function generic(options: ControllersOptions): JsonObject {
  const { election = {}, requestRate, kubeconfig } = options;
  return {
    Port: 0,
    Address: '0.0.0.0',
    MinResyncPeriod: '12h0m0s',
    ClientConnection: {
      kubeconfig,
      acceptContentTypes: '',
      contentType: 'application/json',
      qps: requestRate?.perSecond ?? 0,
      burst: requestRate?.burst ?? 0,
    },
    ControllerStartInterval: '0s',
    LeaderElection: {
      leaderElect: options.leaderElect ?? true,
      leaseDuration: duration(election.leaseDurationMs ?? 15_000),
      renewDeadline: duration(election.renewDeadlineMs ?? 10_000),
      retryPeriod: duration(election.retryPeriodMs ?? 2_000),
      resourceLock: 'leases',
      resourceName: election.name ?? 'kube-controller-manager',
      resourceNamespace: election.namespace ?? 'kube-system',
    },
    Controllers: [...(options.controllers ?? ['*'])],
    Debugging: { enableProfiling: false, enableContentionProfiling: false },
    LeaderMigrationEnabled: false,
    LeaderMigration: { leaderName: '', resourceLock: '', controllerLeaders: null },
  };
}

function shared(options: ControllersOptions): JsonObject {
  return {
    CloudProvider: { Name: '', CloudConfigFile: '' },
    ExternalCloudVolumePlugin: '',
    UseServiceAccountCredentials: false,
    AllowUntaggedCloud: false,
    RouteReconciliationPeriod: '10s',
    NodeMonitorPeriod: duration(rulesOf(options).periodMs),
    ClusterName: 'kubernetes',
    ClusterCIDR: (options.clusterCidr ?? []).join(','),
    AllocateNodeCIDRs: options.allocateNodeCidrs ?? false,
    CIDRAllocatorType: 'RangeAllocator',
    ConfigureCloudRoutes: true,
    NodeSyncPeriod: '0s',
  };
}

function signing(options: ControllersOptions): JsonObject {
  const of = (purpose: SigningPurpose): JsonObject => {
    const files = options.clusterSigning?.[purpose];
    return { CertFile: files?.certificateFile ?? '', KeyFile: files?.keyFile ?? '' };
  };
  const all = options.clusterSigning?.all;
  return {
    ClusterSigningCertFile: all?.certificateFile ?? '',
    ClusterSigningKeyFile: all?.keyFile ?? '',
    KubeletServingSignerConfiguration: of('kubelet-serving'),
    KubeletClientSignerConfiguration: of('kubelet-client'),
    KubeAPIServerClientSignerConfiguration: of('kube-apiserver-client'),
    LegacyUnknownSignerConfiguration: of('legacy-unknown'),
    ClusterSigningDuration: duration(options.clusterSigningDurationMs ?? YEAR_MS),
  };
}

function workloads(options: ControllersOptions): JsonObject {
  const rules = options.autoscaler;
  const count = (name: ControllerName, usual?: number): number => syncs(options, name, usual);
  return {
    DaemonSetController: { ConcurrentDaemonSetSyncs: count('daemonset-controller', 2) },
    DeploymentController: { ConcurrentDeploymentSyncs: count('deployment-controller') },
    StatefulSetController: { ConcurrentStatefulSetSyncs: count('statefulset-controller') },
    ReplicaSetController: { ConcurrentRSSyncs: count('replicaset-controller') },
    ReplicationController: { ConcurrentRCSyncs: count('replicationcontroller-controller') },
    JobController: { ConcurrentJobSyncs: count('job-controller') },
    CronJobController: { ConcurrentCronJobSyncs: count('cronjob-controller') },
    TTLAfterFinishedController: { ConcurrentTTLSyncs: count('ttl-after-finished-controller') },
    HPAController: {
      ConcurrentHorizontalPodAutoscalerSyncs: count('horizontal-pod-autoscaler-controller'),
      HorizontalPodAutoscalerSyncPeriod: duration(rules?.syncMs ?? 15_000),
      HorizontalPodAutoscalerDownscaleStabilizationWindow: duration(
        rules?.downscaleWindowMs ?? 300_000,
      ),
      HorizontalPodAutoscalerTolerance: rules?.tolerance ?? 0.1,
      HorizontalPodAutoscalerCPUInitializationPeriod: duration(
        rules?.cpuInitializationMs ?? 300_000,
      ),
      HorizontalPodAutoscalerInitialReadinessDelay: duration(rules?.initialReadinessMs ?? 30_000),
    },
  };
}

function services(options: ControllersOptions): JsonObject {
  const { slices = {} } = options;
  const batch = duration(slices.batchMs ?? 0);
  return {
    DeprecatedController: {},
    EndpointController: {
      ConcurrentEndpointSyncs: syncs(options, 'endpoints-controller'),
      EndpointUpdatesBatchPeriod: batch,
    },
    EndpointSliceController: {
      ConcurrentServiceEndpointSyncs: syncs(options, 'endpointslice-controller'),
      MaxEndpointsPerSlice: slices.endpointsMax ?? 100,
      EndpointUpdatesBatchPeriod: batch,
    },
    EndpointSliceMirroringController: {
      MirroringConcurrentServiceEndpointSyncs: syncs(options, 'endpointslice-mirroring-controller'),
      MirroringMaxEndpointsPerSubset: slices.mirroredMax ?? 1_000,
      MirroringEndpointUpdatesBatchPeriod: '0s',
    },
    ServiceController: { ConcurrentServiceSyncs: 1 },
  };
}

function housekeeping(options: ControllersOptions): JsonObject {
  const gc: ControllerName = 'garbage-collector-controller';
  const tokens: ControllerName = 'serviceaccount-token-controller';
  return {
    GarbageCollectorController: {
      EnableGarbageCollector: !(options.controllers ?? []).includes(`-${gc}`),
      ConcurrentGCSyncs: syncs(options, gc, 64),
      GCIgnoredResources: ['', 'events.k8s.io'].map((Group) => ({ Group, Resource: 'events' })),
    },
    LegacySATokenCleaner: {
      CleanUpPeriod: duration(options.legacyTokenCleanUpPeriodMs ?? YEAR_MS),
    },
    NamespaceController: {
      NamespaceSyncPeriod: '5m0s',
      ConcurrentNamespaceSyncs: syncs(options, 'namespace-controller', 10),
    },
    PodGCController: { TerminatedPodGCThreshold: options.terminatedPodGcThreshold ?? 12_500 },
    ResourceQuotaController: {
      ResourceQuotaSyncPeriod: duration(options.quotaSyncMs ?? 300_000),
      ConcurrentResourceQuotaSyncs: syncs(options, 'resourcequota-controller'),
    },
    SAController: {
      ServiceAccountKeyFile: options.tokenKeyFile ?? '',
      ConcurrentSATokenSyncs: syncs(options, tokens),
      RootCAFile: options.rootCaFile ?? '',
    },
    ValidatingAdmissionPolicyStatusController: { ConcurrentPolicySyncs: 5 },
    DeviceTaintEvictionController: {
      ConcurrentSyncs: syncs(options, 'device-taint-eviction-controller', 10),
    },
    ResourceClaimController: { ConcurrentSyncs: syncs(options, 'resourceclaim-controller', 10) },
  };
}

function nodes(options: ControllersOptions): JsonObject {
  const rules = rulesOf(options);
  const [serviceCidr = '', secondary = ''] = options.serviceClusterIpRange ?? [];
  return {
    NodeIPAMController: {
      ServiceCIDR: serviceCidr,
      SecondaryServiceCIDR: secondary,
      NodeCIDRMaskSize: options.nodeCidrMaskSize ?? 0,
      NodeCIDRMaskSizeIPv4: options.nodeCidrMaskSizeIpv4 ?? 0,
      NodeCIDRMaskSizeIPv6: options.nodeCidrMaskSizeIpv6 ?? 0,
    },
    NodeLifecycleController: {
      NodeEvictionRate: rules.evictionRate,
      SecondaryNodeEvictionRate: rules.secondaryEvictionRate,
      NodeStartupGracePeriod: duration(rules.startupGraceMs),
      NodeMonitorGracePeriod: duration(rules.graceMs),
      PodEvictionTimeout: '0s',
      LargeClusterSizeThreshold: rules.largeClusterSize,
      UnhealthyZoneThreshold: rules.unhealthyThreshold,
    },
  };
}

function volumes(options: ControllersOptions): JsonObject {
  return {
    EphemeralVolumeController: {
      ConcurrentEphemeralVolumeSyncs: syncs(options, 'ephemeral-volume-controller', 10),
    },
    PersistentVolumeBinderController: {
      PVClaimBinderSyncPeriod: duration(options.claimSyncMs ?? 15_000),
      VolumeConfiguration: {
        EnableHostPathProvisioning: false,
        EnableDynamicProvisioning: true,
        PersistentVolumeRecyclerConfiguration: {
          MaximumRetry: 3,
          MinimumTimeoutNFS: 300,
          PodTemplateFilePathNFS: '',
          IncrementTimeoutNFS: 30,
          PodTemplateFilePathHostPath: '',
          MinimumTimeoutHostPath: 60,
          IncrementTimeoutHostPath: 30,
        },
        FlexVolumePluginDir: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
      },
    },
  };
}
