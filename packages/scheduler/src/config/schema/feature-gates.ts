/**
 * `--feature-gates`: the gates that kube-scheduler 1.36 knows, with their stages and defaults, and
 * what it says of values that it does not take. None changes what this scheduler does.
 */

export interface Gate {
  readonly name: string;
  /** Empty: generally available. */
  readonly stage: 'ALPHA' | 'BETA' | 'DEPRECATED' | '';
  readonly isOn: boolean;
  /** It cannot be set to anything else. */
  readonly isLocked: boolean;
}

function gates(stage: Gate['stage'], isOn: boolean, isLocked: boolean, names: string): Gate[] {
  return names
    .trim()
    .split(/\s+/)
    .map((name) => ({ name, stage, isOn, isLocked }));
}

const GATES: readonly Gate[] = [
  ...gates(
    'ALPHA',
    false,
    false,
    `
    APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
    CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
    CloudControllerManagerWebhook ContainerStopSignals CrossNamespaceVolumeDataSource
    DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
    ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
    ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
    PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling
    WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob
  `,
  ),
  ...gates(
    'BETA',
    true,
    false,
    `
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions
    CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation
    ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
    DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
    InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
    InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
    PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
    PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences
    RelaxedServiceNameValidation ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
    RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
    UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
    UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList WatchListClient
    WindowsGracefulNodeShutdown
  `,
  ),
  ...gates(
    'BETA',
    false,
    false,
    `
    AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
    CoordinatedLeaderElection DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring
    MaxUnavailableStatefulSet PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls
    StorageVersionMigrator
  `,
  ),
  ...gates(
    '',
    true,
    false,
    `
    AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
    MutatingAdmissionPolicy
  `,
  ),
  ...gates(
    '',
    true,
    true,
    `
    APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions
    CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache
    CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
    DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge
    ImageVolume InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy
    JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz
    KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
    LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
    MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread
    NodeLogQuery NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
    PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
    RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
    ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy
    SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController
    ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo SidecarContainers StreamingCollectionEncodingToJSON
    StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport
    VolumeAttributesClass WinDSR WinOverlay
  `,
  ),
  ...gates(
    'DEPRECATED',
    false,
    false,
    `
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover KMSv1
    KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
  `,
  ),
  ...gates(
    'DEPRECATED',
    false,
    true,
    `
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
  `,
  ),
  ...gates(
    'DEPRECATED',
    true,
    false,
    `
    DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods
    ServiceCIDRStatusFieldWiping StorageNamespaceIndex
  `,
  ),
  ...gates(
    'DEPRECATED',
    true,
    true,
    `
    AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
  `,
  ),
];

const BY_NAME: ReadonlyMap<string, Gate> = new Map(GATES.map((gate) => [gate.name, gate]));
/** Gates that stand for all of a stage that are not named themselves. */
const WHOLE_STAGES: Readonly<Record<string, Gate['stage']>> = {
  AllAlpha: 'ALPHA',
  AllBeta: 'BETA',
};
const COMPONENT = 'kube';
const NONE: ReadonlySet<string> = new Set();
const YES = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const NO = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/** How each gate stands. */
export type GateStates = readonly { readonly gate: Gate; readonly isOn: boolean }[];

/**
 * A list of `Name=true`, each with `kube:` before it or not; an error is in upstream's words.
 * `further`: gates that other programs know, off by default.
 */
export function parseFeatureGates(
  text: string,
  further: ReadonlySet<string> = NONE,
): { readonly value: GateStates } | { readonly error: string } {
  const given = new Map<string, boolean>();
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const colon = part.indexOf(':');
    const component = colon === -1 ? COMPONENT : part.slice(0, colon).trim();
    if (component !== COMPONENT) return { error: `component not registered: ${component}` };
    const pair = part.slice(colon + 1);
    const equals = pair.indexOf('=');
    const name = (equals === -1 ? pair : pair.slice(0, equals)).trim();
    if (equals === -1) return { error: `missing bool value for ${name}` };
    const value = pair.slice(equals + 1).trim();
    if (!YES.has(value) && !NO.has(value)) {
      const why = `strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`;
      return { error: `invalid value of ${name}=${value}, err: ${why}` };
    }
    given.set(name, YES.has(value));
  }
  for (const [name, isOn] of given) {
    if (further.has(name)) continue;
    const gate = BY_NAME.get(name);
    if (gate === undefined) return { error: `unrecognized feature gate: ${name}` };
    if (!gate.isLocked || gate.isOn === isOn) continue;
    const wrong = `cannot set feature gate ${name} to ${isOn}`;
    return { error: `${wrong}, feature is locked to ${gate.isOn}` };
  }
  return { value: statesOf(given) };
}

function statesOf(given: ReadonlyMap<string, boolean>): GateStates {
  const byStage = new Map<string, boolean>();
  for (const [name, stage] of Object.entries(WHOLE_STAGES)) {
    const isOn = given.get(name);
    if (isOn !== undefined) byStage.set(stage, isOn);
  }
  return GATES.map((gate) => ({
    gate,
    isOn:
      given.get(gate.name) ?? (gate.isLocked ? undefined : byStage.get(gate.stage)) ?? gate.isOn,
  }));
}

/** Gates that stand otherwise than by default, for a warning that they change nothing here. */
export function changedGates(states: GateStates): string[] {
  return states
    .filter(({ gate, isOn }) => gate.isOn !== isOn)
    .map(({ gate, isOn }) => `${gate.name}=${isOn}`);
}

/** As kube-scheduler without the flag. */
export const DEFAULT_GATES: GateStates = statesOf(new Map());
