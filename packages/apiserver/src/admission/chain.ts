/** The plugins of this server in upstream's order, and which of them are on. */
import { Admission, type AdmissionPlugin } from './admission.ts';
import type { Metrics } from '../metrics.ts';
import { namespaceLifecycle } from '../namespaces.ts';
import { nodeRestriction } from './node-restriction.ts';
import { defaultTolerations, priority, serviceAccounts } from './pod-plugins.ts';
import type { World } from '../world.ts';
import { deviceTolerations } from './device-tolerations.ts';
import { externalAddresses } from './external-addresses.ts';
import { limitRanger } from './limit-ranger.ts';
import { mutatingPolicies } from './mutating-policies.ts';
import {
  certificateApproval,
  certificateSigning,
  certificateSubjectRestriction,
} from './certificates.ts';
import { claimResize } from './claim-resize.ts';
import { defaultIngressClass, defaultStorageClass } from './defaults.ts';
import { ownerReferences } from './owner-references.ts';
import { podSecurity } from './pod-security.ts';
import { podTopologyLabels } from './pod-topology-labels.ts';
import { roleEscalation } from './role-escalation.ts';
import { runtimeClass } from './runtime-class.ts';
import { followPolicies } from './policy-status.ts';
import { resourceQuota } from './resource-quota.ts';
import { validatingPolicies } from './validating-policies.ts';
import type { WebhookCaller } from './webhook-call.ts';
import { WebhookMetrics } from './webhook-metrics.ts';
import { mutatingWebhooks, validatingWebhooks } from './webhooks.ts';

export interface ChainOptions {
  /** Reaches webhooks; null: every call of one fails. */
  readonly caller: WebhookCaller | null;
  readonly metrics: Metrics;
  /** Names of plugins as in `--enable-admission-plugins` and `--disable-admission-plugins`. */
  readonly enabled?: readonly string[] | undefined;
  readonly disabled?: readonly string[] | undefined;
  /** Plugins of a test, asked after the built-in ones. */
  readonly more?: readonly AdmissionPlugin[] | undefined;
}

const QUOTA = 'ResourceQuota';

/** Plugins that are off unless they are enabled. */
const OFF: ReadonlySet<string> = new Set([
  'DenyServiceExternalIPs',
  'ExtendedResourceToleration',
  'OwnerReferencesPermissionEnforcement',
]);

/** All plugins by the order in which upstream asks them. */
function allPlugins(world: World, { caller, metrics }: ChainOptions): AdmissionPlugin[] {
  const hooks = { caller, metrics: new WebhookMetrics() };
  metrics.addSource((lines) => hooks.metrics.render(lines));
  return [
    namespaceLifecycle,
    limitRanger,
    serviceAccounts,
    nodeRestriction,
    podSecurity,
    priority,
    defaultTolerations,
    deviceTolerations,
    defaultStorageClass(world),
    ownerReferences,
    claimResize,
    runtimeClass,
    certificateApproval,
    certificateSigning,
    certificateSubjectRestriction,
    defaultIngressClass(world),
    externalAddresses,
    podTopologyLabels,
    mutatingPolicies(world),
    mutatingWebhooks(world, hooks),
    validatingPolicies(world),
    validatingWebhooks(world, hooks),
  ];
}

/**
 * Puts the chain together. Throws an Error for people when a name is of no plugin, or is both
 * enabled and disabled.
 */
export function admissionChain(world: World, options: ChainOptions): Admission {
  const { enabled = [], disabled = [], more = [] } = options;
  const all = allPlugins(world, options);
  const names = new Set([...all.map(({ name }) => name), QUOTA, ...ALWAYS_ALLOWED]);
  for (const [flag, list] of [
    ['enable', enabled],
    ['disable', disabled],
  ] as const) {
    const unknown = list.find((name) => !names.has(name));
    if (unknown === undefined) continue;
    const known = Array.from(names).toSorted().join(', ');
    throw new Error(
      `--${flag}-admission-plugins: there is no plugin ${unknown}; there are ${known}`,
    );
  }
  const both = enabled.find((name) => disabled.includes(name));
  if (both !== undefined) {
    throw new Error(`--enable-admission-plugins: ${both} is disabled by the other flag`);
  }
  followPolicies(world);
  const isOn = (name: string): boolean =>
    enabled.includes(name) || (!OFF.has(name) && !disabled.includes(name));
  const plugins = [...all.filter(({ name }) => isOn(name)), roleEscalation];
  return new Admission([...plugins, ...more], isOn(QUOTA) ? resourceQuota : null);
}

/** Names that upstream knows and whose rules hold here whether they are named or not. */
const ALWAYS_ALLOWED: readonly string[] = ['StorageObjectInUseProtection', 'TaintNodesByCondition'];
