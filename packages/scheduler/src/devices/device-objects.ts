/** Objects of `resource.k8s.io/v1`, as far as allocation looks at them. */
import type { KubeObject, NodeSelectorObject } from '../api/objects.ts';

export interface DeviceSelector {
  readonly cel?: { readonly expression: string };
}

export interface DeviceToleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

export interface CapacityRequirements {
  readonly requests?: Readonly<Record<string, string | number>>;
}

/** What `exactly` and each of `firstAvailable` have in common. */
export interface DeviceDemand {
  readonly deviceClassName?: string;
  readonly allocationMode?: string;
  readonly count?: number;
  readonly adminAccess?: boolean;
  readonly selectors?: readonly DeviceSelector[];
  readonly tolerations?: readonly DeviceToleration[];
  readonly capacity?: CapacityRequirements;
}

export interface DeviceRequest {
  readonly name: string;
  readonly exactly?: DeviceDemand;
  readonly firstAvailable?: readonly (DeviceDemand & { readonly name: string })[];
}

export interface DeviceConstraint {
  readonly requests?: readonly string[];
  readonly matchAttribute?: string;
  readonly distinctAttribute?: string;
}

/** Parameters for a driver, passed through as they are. */
export interface DeviceConfiguration {
  readonly requests?: readonly string[];
  readonly opaque?: object;
}

export interface AllocatedDevice {
  readonly request: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly adminAccess?: boolean;
  readonly tolerations?: readonly DeviceToleration[];
  readonly bindingConditions?: readonly string[];
  readonly bindingFailureConditions?: readonly string[];
  readonly shareID?: string;
  readonly consumedCapacity?: Readonly<Record<string, string>>;
}

export interface AllocationResult {
  readonly devices: {
    readonly results: readonly AllocatedDevice[];
    readonly config?: readonly (DeviceConfiguration & { readonly source: string })[];
  };
  readonly nodeSelector?: NodeSelectorObject;
  readonly allocationTimestamp?: string;
}

export interface ClaimConsumer {
  readonly resource: string;
  readonly name: string;
  readonly uid?: string;
}

export interface ResourceClaimObject extends KubeObject {
  readonly spec?: {
    readonly devices?: {
      readonly requests?: readonly DeviceRequest[];
      readonly constraints?: readonly DeviceConstraint[];
      readonly config?: readonly DeviceConfiguration[];
    };
  };
  readonly status?: {
    readonly allocation?: AllocationResult;
    readonly reservedFor?: readonly ClaimConsumer[];
    readonly devices?: readonly {
      readonly driver: string;
      readonly pool: string;
      readonly device: string;
      readonly conditions?: readonly {
        readonly type: string;
        readonly status: string;
        readonly reason?: string;
        readonly message?: string;
      }[];
    }[];
  };
}

export interface DeviceClassObject extends KubeObject {
  readonly spec?: {
    readonly selectors?: readonly DeviceSelector[];
    readonly config?: readonly DeviceConfiguration[];
    readonly extendedResourceName?: string;
  };
}

/** One of string, int, bool and version. */
export interface DeviceAttribute {
  readonly string?: string;
  readonly int?: number;
  readonly bool?: boolean;
  readonly version?: string;
}

export interface CapacityPolicy {
  readonly default?: string | number;
  readonly validValues?: readonly (string | number)[];
  readonly validRange?: {
    readonly min?: string | number;
    readonly max?: string | number;
    readonly step?: string | number;
  };
}

export interface DeviceCapacity {
  readonly value: string | number;
  readonly requestPolicy?: CapacityPolicy;
}

export type Counters = Readonly<Record<string, { readonly value: string | number }>>;

export interface DeviceTaint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Device {
  readonly name: string;
  readonly attributes?: Readonly<Record<string, DeviceAttribute>>;
  readonly capacity?: Readonly<Record<string, DeviceCapacity>>;
  readonly consumesCounters?: readonly {
    readonly counterSet: string;
    readonly counters?: Counters;
  }[];
  readonly nodeName?: string;
  readonly nodeSelector?: NodeSelectorObject;
  readonly allNodes?: boolean;
  readonly taints?: readonly DeviceTaint[];
  readonly bindsToNode?: boolean;
  readonly bindingConditions?: readonly string[];
  readonly bindingFailureConditions?: readonly string[];
  readonly allowMultipleAllocations?: boolean;
}

export interface ResourceSliceObject extends KubeObject {
  readonly spec?: {
    readonly driver: string;
    readonly pool: {
      readonly name: string;
      readonly generation?: number;
      readonly resourceSliceCount?: number;
    };
    readonly nodeName?: string;
    readonly nodeSelector?: NodeSelectorObject;
    readonly allNodes?: boolean;
    readonly perDeviceNodeSelection?: boolean;
    readonly devices?: readonly Device[];
    readonly sharedCounters?: readonly { readonly name: string; readonly counters?: Counters }[];
  };
}

/** `driver/pool/device`: names a device in the whole cluster. */
export function deviceId(driver: string, pool: string, device: string): string {
  return `${driver}/${pool}/${device}`;
}

/** As messages name a claim. */
export function claimText({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}
