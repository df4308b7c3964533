/** Controllers that need no more than informers and the pods: one row each. */
import type { Announce } from '../framework/announce.ts';
import { AttachPart } from '../volume/attachdetach/attach-part.ts';
import { AutoscalerPart } from '../podautoscaler/autoscaler-part.ts';
import { DeviceEvictionPart } from '../resourceclaim/device-eviction-part.ts';
import { ResourceClaimsPart } from '../resourceclaim/resource-claims-part.ts';
import { BootstrapSignerPart } from '../bootstrap/bootstrap-signer-part.ts';
import { ServiceCidrsPart } from '../servicecidrs/service-cidrs-part.ts';
import { ApprovingPart, CleanerPart, SigningPart } from '../certificates/certificate-parts.ts';
import { LegacyTokensPart } from '../serviceaccount/legacy-tokens-part.ts';
import { MirroringPart } from '../endpointslicemirroring/mirroring-part.ts';
import {
  CONTROLLER_NAMES,
  type ControllerName,
  type ControllersOptions,
} from '../framework/options.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { NodeCidrsPart, poolsOf } from '../nodeipam/node-cidrs-part.ts';
import { TokenCleanerPart } from '../bootstrap/token-cleaner-part.ts';
import { BinderPart } from '../volume/binder-part.ts';
import { ClassProtectionPart } from '../volume/class-protection-part.ts';
import { EphemeralPart } from '../volume/ephemeral-part.ts';
import { ExpanderPart } from '../volume/expander-part.ts';
import type { Random } from '@megaplane/base/random';
import type { PartOptions } from '../framework/part-options.ts';
import type { Authority } from '../certificates/signing.ts';

/** What a row is given. `announce` is that of its component; `pods` makes the table of pods. */
interface PartContext extends Omit<WorkloadsOptions, 'announce'> {
  readonly announce: Announce;
  readonly pods: () => PodRows;
}

interface Row {
  /** Who the events come from. */
  readonly component: string;
  /** Undefined where something is not given that it cannot work without. */
  readonly make: (context: PartContext) => WorkloadPart | undefined;
}

const SIGNING_MS: number = 365 * 24 * 3_600_000;
const LEGACY_TOKEN_MS: number = 365 * 24 * 3_600_000;

const ROWS: Readonly<Partial<Record<ControllerName, Row>>> = {
  'persistentvolume-binder-controller': {
    component: 'persistentvolume-controller',
    make: (context) => {
      const resyncMs = context.options.claimSyncMs;
      return new BinderPart({ ...context, pods: context.pods(), resyncMs });
    },
  },
  'persistentvolume-attach-detach-controller': {
    component: 'attachdetach-controller',
    make: (context) => {
      const { neverForcesDetach } = context.options;
      return new AttachPart({ ...context, pods: context.pods(), neverForcesDetach });
    },
  },
  'persistentvolume-expander-controller': {
    component: 'volume_expand',
    make: (context) => new ExpanderPart(context),
  },
  'volumeattributesclass-protection-controller': {
    component: 'volumeattributesclass-protection-controller',
    make: (context) => new ClassProtectionPart(context),
  },
  'legacy-serviceaccount-token-cleaner-controller': {
    component: 'legacy-serviceaccount-token-cleaner-controller',
    make: (context) => {
      const cleanUpPeriodMs = context.options.legacyTokenCleanUpPeriodMs ?? LEGACY_TOKEN_MS;
      return new LegacyTokensPart({ ...context, cleanUpPeriodMs });
    },
  },
  'device-taint-eviction-controller': {
    component: 'device-taint-eviction-controller',
    make: (context) => new DeviceEvictionPart({ ...context, pods: context.pods() }),
  },
  'ephemeral-volume-controller': {
    component: 'ephemeral_volume',
    make: (context) => new EphemeralPart({ ...context, pods: context.pods() }),
  },
  'resourceclaim-controller': {
    component: 'resource_claim',
    make: (context) => new ResourceClaimsPart({ ...context, pods: context.pods() }),
  },
  'endpointslice-mirroring-controller': {
    component: 'endpoint-slice-mirroring-controller',
    make: (context) => {
      const addressesMax = context.options.slices?.mirroredMax;
      return new MirroringPart({ ...context, addressesMax });
    },
  },
  'horizontal-pod-autoscaler-controller': {
    component: 'horizontal-pod-autoscaler',
    make: (context) => new AutoscalerPart({ ...context, rules: context.options.autoscaler }),
  },
  'certificatesigningrequest-signing-controller': {
    component: 'certificate-controller',
    make: (context) => {
      const { authorities = new Map(), options } = context;
      if (authorities.size === 0) return undefined;
      const usualLifeMs = options.clusterSigningDurationMs ?? SIGNING_MS;
      const random = context.random.fork('serials');
      return new SigningPart({ ...context, authorities, usualLifeMs, random });
    },
  },
  'node-ipam-controller': {
    component: 'cidrAllocator',
    make: (context) => {
      const pools = poolsOf(context.options);
      if (typeof pools === 'string') throw new Error(pools);
      const isPlanned = context.options.nodeCidrAllocator === 'plan';
      return pools.length === 0 ? undefined : new NodeCidrsPart({ ...context, pools, isPlanned });
    },
  },
  'service-cidr-controller': {
    component: 'service-cidr-controller',
    make: (context) => new ServiceCidrsPart(context),
  },
  'bootstrap-signer-controller': {
    component: 'bootstrap-signer',
    make: (context) => new BootstrapSignerPart(context),
  },
  'token-cleaner-controller': {
    component: 'token-cleaner',
    make: (context) => new TokenCleanerPart(context),
  },
  'certificatesigningrequest-approving-controller': {
    component: 'certificate-controller',
    make: (context) => {
      const approvesServing = context.options.approveKubeletServing === true;
      return new ApprovingPart({ ...context, approvesServing });
    },
  },
  'certificatesigningrequest-cleaner-controller': {
    component: 'certificate-controller',
    make: (context) => new CleanerPart(context),
  },
};

export function simpleParts(
  options: WorkloadsOptions,
  forPart: ForPart,
  pods: () => PodRows,
): WorkloadPart[] {
  const parts: WorkloadPart[] = [];
  for (const name of CONTROLLER_NAMES) {
    const row = ROWS[name];
    if (row === undefined || !options.chosen.has(name)) continue;
    const part = row.make({ ...forPart(name), pods, announce: options.announce(row.component) });
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

/** The options as a controller is given them: with its own client and number of workers. */
export type ForPart = (...names: readonly ControllerName[]) => WorkloadsOptions;

export interface WorkloadPart {
  start(): void;
  stop(): void;
}

export interface WorkloadsOptions extends PartOptions {
  readonly chosen: ReadonlySet<ControllerName>;
  readonly random: Random;
  readonly options: ControllersOptions;
  readonly authorities?: ReadonlyMap<string, Authority> | undefined;
  readonly announce: (component: string) => Announce;
  readonly now: () => string;
}
