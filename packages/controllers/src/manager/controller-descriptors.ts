/** Controllers that need no more than informers and the pods: one row each. */
import type { Announce } from '../framework/event-recorder.ts';
import { AttachController } from '../volume/attachdetach/controller.ts';
import { AutoscalerController } from '../podautoscaler/controller.ts';
import { DeviceEvictionController } from '../resourceclaim/device-taint-eviction-controller.ts';
import { ResourceClaimsController } from '../resourceclaim/controller.ts';
import { BootstrapSignerController } from '../bootstrap/bootstrap-signer-controller.ts';
import { ServiceCidrsController } from '../servicecidrs/controller.ts';
import {
  ApprovingController,
  CleanerController,
  SigningController,
} from '../certificates/controller.ts';
import { LegacyTokensController } from '../serviceaccount/legacy-tokens-controller.ts';
import { MirroringController } from '../endpointslicemirroring/controller.ts';
import {
  CONTROLLER_NAMES,
  type ControllerName,
  type ControllersOptions,
} from '../framework/options.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { NodeCidrsController, poolsOf } from '../nodeipam/controller.ts';
import { TokenCleanerController } from '../bootstrap/token-cleaner-controller.ts';
import { BinderController } from '../volume/persistent-volume-controller.ts';
import { ClassProtectionController } from '../volume/class-protection-controller.ts';
import { EphemeralController } from '../volume/ephemeral-volume-controller.ts';
import { ExpanderController } from '../volume/expand-controller.ts';
import type { Random } from '@megaplane/base/random';
import type { ControllerContext } from '../framework/controller-context.ts';
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
  readonly make: (context: PartContext) => WorkloadController | undefined;
}

const SIGNING_MS: number = 365 * 24 * 3_600_000;
const LEGACY_TOKEN_MS: number = 365 * 24 * 3_600_000;

const ROWS: Readonly<Partial<Record<ControllerName, Row>>> = {
  'persistentvolume-binder-controller': {
    component: 'persistentvolume-controller',
    make: (context) => {
      const resyncMs = context.options.claimSyncMs;
      return new BinderController({ ...context, pods: context.pods(), resyncMs });
    },
  },
  'persistentvolume-attach-detach-controller': {
    component: 'attachdetach-controller',
    make: (context) => {
      const { neverForcesDetach } = context.options;
      return new AttachController({ ...context, pods: context.pods(), neverForcesDetach });
    },
  },
  'persistentvolume-expander-controller': {
    component: 'volume_expand',
    make: (context) => new ExpanderController(context),
  },
  'volumeattributesclass-protection-controller': {
    component: 'volumeattributesclass-protection-controller',
    make: (context) => new ClassProtectionController(context),
  },
  'legacy-serviceaccount-token-cleaner-controller': {
    component: 'legacy-serviceaccount-token-cleaner-controller',
    make: (context) => {
      const cleanUpPeriodMs = context.options.legacyTokenCleanUpPeriodMs ?? LEGACY_TOKEN_MS;
      return new LegacyTokensController({ ...context, cleanUpPeriodMs });
    },
  },
  'device-taint-eviction-controller': {
    component: 'device-taint-eviction-controller',
    make: (context) => new DeviceEvictionController({ ...context, pods: context.pods() }),
  },
  'ephemeral-volume-controller': {
    component: 'ephemeral_volume',
    make: (context) => new EphemeralController({ ...context, pods: context.pods() }),
  },
  'resourceclaim-controller': {
    component: 'resource_claim',
    make: (context) => new ResourceClaimsController({ ...context, pods: context.pods() }),
  },
  'endpointslice-mirroring-controller': {
    component: 'endpoint-slice-mirroring-controller',
    make: (context) => {
      const addressesMax = context.options.slices?.mirroredMax;
      return new MirroringController({ ...context, addressesMax });
    },
  },
  'horizontal-pod-autoscaler-controller': {
    component: 'horizontal-pod-autoscaler',
    make: (context) => new AutoscalerController({ ...context, rules: context.options.autoscaler }),
  },
  'certificatesigningrequest-signing-controller': {
    component: 'certificate-controller',
    make: (context) => {
      const { authorities = new Map(), options } = context;
      if (authorities.size === 0) return undefined;
      const usualLifeMs = options.clusterSigningDurationMs ?? SIGNING_MS;
      const random = context.random.fork('serials');
      return new SigningController({ ...context, authorities, usualLifeMs, random });
    },
  },
  'node-ipam-controller': {
    component: 'cidrAllocator',
    make: (context) => {
      const pools = poolsOf(context.options);
      if (typeof pools === 'string') throw new Error(pools);
      const isPlanned = context.options.nodeCidrAllocator === 'plan';
      return pools.length === 0
        ? undefined
        : new NodeCidrsController({ ...context, pools, isPlanned });
    },
  },
  'service-cidr-controller': {
    component: 'service-cidr-controller',
    make: (context) => new ServiceCidrsController(context),
  },
  'bootstrap-signer-controller': {
    component: 'bootstrap-signer',
    make: (context) => new BootstrapSignerController(context),
  },
  'token-cleaner-controller': {
    component: 'token-cleaner',
    make: (context) => new TokenCleanerController(context),
  },
  'certificatesigningrequest-approving-controller': {
    component: 'certificate-controller',
    make: (context) => {
      const approvesServing = context.options.approveKubeletServing === true;
      return new ApprovingController({ ...context, approvesServing });
    },
  },
  'certificatesigningrequest-cleaner-controller': {
    component: 'certificate-controller',
    make: (context) => new CleanerController(context),
  },
};

export function simpleControllers(
  options: WorkloadsOptions,
  forPart: ForController,
  pods: () => PodRows,
): WorkloadController[] {
  const parts: WorkloadController[] = [];
  for (const name of CONTROLLER_NAMES) {
    const row = ROWS[name];
    if (row === undefined || !options.chosen.has(name)) continue;
    const part = row.make({ ...forPart(name), pods, announce: options.announce(row.component) });
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

/** The options as a controller is given them: with its own client and number of workers. */
export type ForController = (...names: readonly ControllerName[]) => WorkloadsOptions;

export interface WorkloadController {
  start(): void;
  stop(): void;
}

export interface WorkloadsOptions extends ControllerContext {
  readonly chosen: ReadonlySet<ControllerName>;
  readonly random: Random;
  readonly options: ControllersOptions;
  readonly authorities?: ReadonlyMap<string, Authority> | undefined;
  readonly announce: (component: string) => Announce;
  readonly now: () => string;
}
