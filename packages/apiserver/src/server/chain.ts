/** The plugins of this server in upstream's order, and which of them are on. */
import { aggregate } from '@megaplane/machinery/fielderrors';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { Admission } from '../admission/admission.ts';
import type { Metrics } from './metrics.ts';
import { namespaceLifecycle } from '../registry/core/namespaces.ts';
import { nodeRestriction } from '../admission/plugin/node-restriction.ts';
import {
  defaultTolerations,
  priority,
  serviceAccounts,
  type TolerationSeconds,
} from '../admission/plugin/pod-plugins.ts';
import type { World } from '../lister/world.ts';
import { AdmissionTimings } from '../admission/admission-timings.ts';
import { alwaysAdmit, alwaysDeny } from '../admission/plugin/always.ts';
import { CheckMetrics } from '../admission/webhook/check-metrics.ts';
import { alwaysPullImages } from '../admission/plugin/always-pull.ts';
import { hardAntiAffinity } from '../admission/plugin/anti-affinity.ts';
import { eventRateLimit } from '../admission/plugin/event-rate-limit.ts';
import { imagePolicy } from '../admission/plugin/image-policy.ts';
import { namespaceAutoProvision, namespaceExists } from '../admission/plugin/namespace-plugins.ts';
import { NO_CONFIGURATIONS, type PluginConfigurations } from '../admission/plugin-configuration.ts';
import { podNodeSelector } from '../admission/plugin/pod-node-selector.ts';
import { declaredFeatures, podResize } from '../admission/plugin/pod-resize.ts';
import { podTolerationRestriction } from '../admission/plugin/pod-tolerations.ts';
import { deviceTolerations } from '../admission/plugin/device-tolerations.ts';
import { externalAddresses } from '../admission/plugin/external-addresses.ts';
import { limitRanger } from '../admission/plugin/limit-ranger.ts';
import { mutatingPolicies } from '../admission/policy/mutating-policies.ts';
import {
  certificateApproval,
  certificateSigning,
  certificateSubjectRestriction,
} from '../admission/plugin/certificates.ts';
import { claimResize } from '../admission/plugin/claim-resize.ts';
import { defaultIngressClass, defaultStorageClass } from '../admission/plugin/defaults.ts';
import { storageProtection, taintNodes } from '../admission/new-objects.ts';
import { ownerReferences } from '../admission/plugin/owner-references.ts';
import { PodSecurityCounts } from '../admission/podsecurity/pod-security-counts.ts';
import { podSecurity } from '../admission/podsecurity/pod-security.ts';
import {
  readPodSecuritySettings,
  type PodSecuritySettings,
} from '../admission/podsecurity/pod-security-policy.ts';
import { podTopologyLabels } from '../admission/plugin/pod-topology-labels.ts';
import { roleEscalation } from '../admission/plugin/role-escalation.ts';
import { runtimeClass } from '../admission/plugin/runtime-class.ts';
import { followPolicies } from '../admission/policy/policy-status.ts';
import { resourceQuota } from '../admission/plugin/resource-quota.ts';
import { validatingPolicies } from '../admission/policy/validating-policies.ts';
import type { WebhookCaller } from '../webhook/webhook-call.ts';
import { WebhookMetrics } from '../admission/webhook/webhook-metrics.ts';
import { mutatingWebhooks, validatingWebhooks } from '../admission/webhook/webhooks.ts';
import type { AdmissionPlugin } from '../admission/admission-plugin.ts';

export interface ChainOptions {
  /** Reaches webhooks; null: every call of one fails. */
  readonly caller: WebhookCaller | null;
  readonly metrics: Metrics;
  /** Measures how long plugins take; null: nobody does. */
  readonly clockMs?: (() => number) | null | undefined;
  /** Names of plugins as in `--enable-admission-plugins` and `--disable-admission-plugins`. */
  readonly enabled?: readonly string[] | undefined;
  readonly disabled?: readonly string[] | undefined;
  /** What `--admission-control-config-file` says. */
  readonly configurations?: PluginConfigurations | undefined;
  readonly tolerationSeconds?: TolerationSeconds | undefined;
  /** Plugins of a test, asked after the built-in ones. */
  readonly more?: readonly AdmissionPlugin[] | undefined;
}

const QUOTA = 'ResourceQuota';

/** Plugins that are off unless they are enabled. */
const OFF: ReadonlySet<string> = new Set([
  'AlwaysAdmit',
  'AlwaysDeny',
  'AlwaysPullImages',
  'DenyServiceExternalIPs',
  'EventRateLimit',
  'ExtendedResourceToleration',
  'ImagePolicyWebhook',
  'LimitPodHardAntiAffinityTopology',
  'NamespaceAutoProvision',
  'NamespaceExists',
  'OwnerReferencesPermissionEnforcement',
  'PodNodeSelector',
  'PodTolerationRestriction',
]);

/** Makes a plugin, when it is on. Throws an Error where its configuration is wrong. */
type Make = () => AdmissionPlugin;

/** All plugins by the order in which upstream asks them. */
function allPlugins(world: World, options: ChainOptions): ReadonlyMap<string, Make> {
  const { caller, metrics, configurations = NO_CONFIGURATIONS } = options;
  const checks = new CheckMetrics(options.clockMs ?? ((): number => world.edge.nowMs()));
  const hooks = { caller, metrics: new WebhookMetrics(), checks };
  metrics.addSource((lines) => hooks.metrics.render(lines));
  metrics.addSource((lines) => checks.print(lines));
  const security = new PodSecurityCounts();
  metrics.addSource((lines) => security.print(lines));
  const told = (name: string): JsonValue => configurations.of.get(name) ?? null;
  const policyOfImages = (): AdmissionPlugin =>
    imagePolicy(told('ImagePolicyWebhook'), configurations.readFile, caller);
  const securitySettings = (): PodSecuritySettings => readPodSecuritySettings(told('PodSecurity'));
  return new Map<string, Make>([
    ['AlwaysAdmit', () => alwaysAdmit],
    ['NamespaceAutoProvision', () => namespaceAutoProvision],
    ['NamespaceLifecycle', () => namespaceLifecycle],
    ['NamespaceExists', () => namespaceExists],
    ['LimitPodHardAntiAffinityTopology', () => hardAntiAffinity],
    ['LimitRanger', () => limitRanger],
    ['ServiceAccount', () => serviceAccounts],
    ['NodeRestriction', () => nodeRestriction],
    ['TaintNodesByCondition', () => taintNodes],
    ['AlwaysPullImages', () => alwaysPullImages],
    ['ImagePolicyWebhook', policyOfImages],
    ['PodSecurity', () => podSecurity(securitySettings(), security)],
    ['PodNodeSelector', () => podNodeSelector(told('PodNodeSelector'))],
    ['Priority', () => priority],
    ['DefaultTolerationSeconds', () => defaultTolerations(options.tolerationSeconds)],
    ['PodTolerationRestriction', () => podTolerationRestriction(told('PodTolerationRestriction'))],
    ['EventRateLimit', () => eventRateLimit(told('EventRateLimit'))],
    ['ExtendedResourceToleration', () => deviceTolerations],
    ['DefaultStorageClass', () => defaultStorageClass(world)],
    ['StorageObjectInUseProtection', () => storageProtection],
    ['OwnerReferencesPermissionEnforcement', () => ownerReferences],
    ['PersistentVolumeClaimResize', () => claimResize],
    ['RuntimeClass', () => runtimeClass],
    ['CertificateApproval', () => certificateApproval],
    ['CertificateSigning', () => certificateSigning],
    ['CertificateSubjectRestriction', () => certificateSubjectRestriction],
    ['DefaultIngressClass', () => defaultIngressClass(world)],
    ['DenyServiceExternalIPs', () => externalAddresses],
    ['PodTopologyLabels', () => podTopologyLabels],
    ['NodeDeclaredFeatureValidator', () => declaredFeatures],
    ['PodResizeValidator', () => podResize],
    ['MutatingAdmissionPolicy', () => mutatingPolicies(world, checks)],
    ['MutatingAdmissionWebhook', () => mutatingWebhooks(world, hooks)],
    ['ValidatingAdmissionPolicy', () => validatingPolicies(world, checks)],
    ['ValidatingAdmissionWebhook', () => validatingWebhooks(world, hooks)],
    ['AlwaysDeny', () => alwaysDeny],
  ]);
}

/** What is wrong with the names that were given, in kube-apiserver's words. */
function nameFaults(
  names: ReadonlySet<string>,
  enabled: readonly string[],
  disabled: readonly string[],
): string[] {
  const unknown = (flag: string, list: readonly string[]): string[] =>
    list
      .filter((name) => !names.has(name))
      .map((name) => `${flag}-admission-plugins plugin ${JSON.stringify(name)} is unknown`);
  const both = [...new Set(enabled)].filter((name) => disabled.includes(name)).toSorted();
  const flags = 'enable-admission-plugins and disable-admission-plugins';
  const overlap = `[${both.join(' ')}] in ${flags} overlapped`;
  return [
    ...unknown('enable', enabled),
    ...unknown('disable', disabled),
    ...(both.length === 0 ? [] : [overlap]),
  ];
}

function made(name: string, make: Make): AdmissionPlugin {
  try {
    return make();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = `couldn't init admission plugin ${JSON.stringify(name)}: ${why}`;
    throw new Error(`failed to initialize admission: ${text}`, { cause: error });
  }
}

/**
 * Puts the chain together. Throws an Error for people when a name is of no plugin, or is both
 * enabled and disabled.
 */
export function admissionChain(world: World, options: ChainOptions): Admission {
  const { enabled = [], disabled = [], more = [], clockMs = null, metrics } = options;
  const all = allPlugins(world, options);
  const names = new Set([...all.keys(), QUOTA, ...ALWAYS_ALLOWED]);
  const faults = nameFaults(names, enabled, disabled);
  if (faults.length > 0) throw new Error(aggregate(faults));
  followPolicies(world);
  const isOn = (name: string): boolean =>
    enabled.includes(name) || (!OFF.has(name) && !disabled.includes(name));
  const on = [...all].filter(([name]) => isOn(name));
  const plugins = [...on.map(([name, make]) => made(name, make)), roleEscalation];
  const timings = clockMs === null ? null : new AdmissionTimings(clockMs);
  if (timings !== null) metrics.addSource((lines) => timings.print(lines));
  return new Admission([...plugins, ...more], isOn(QUOTA) ? resourceQuota : null, timings);
}

/** Names that upstream knows, of rules about kinds which are not served. */
const ALWAYS_ALLOWED: readonly string[] = [
  'ClusterTrustBundleAttest',
  'JobValidation',
  'PodGroupProtection',
  'PodGroupWorkloadExists',
];
