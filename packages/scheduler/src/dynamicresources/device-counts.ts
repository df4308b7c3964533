/**
 * Devices by number: how many a class has on a node, and how many of them are taken. Scores look at
 * that for extended resources which a class stands for and the node has none of its own of.
 */
import type { NodeInfo } from '../framework/node-info.ts';
import { ALLOCATING_CLAIM } from '../framework/reservation.ts';
import type { KnownDevices, Snapshot } from '../framework/snapshot.ts';
import { allocatedBy } from '../devices/allocated-devices.ts';
import type { Device, DeviceClassObject } from '../devices/device-objects.ts';
import {
  deviceId,
  type ResourceClaimObject,
  type ResourceSliceObject,
} from '../devices/device-objects.ts';
import { isForNode, SliceIndex } from '../devices/device-pools.ts';
import { matchesDevice } from './device-selectors.ts';
import { classBehind } from './extended-resources.ts';

export interface DeviceCount {
  readonly capacity: number;
  readonly taken: number;
}

const NONE: DeviceCount = { capacity: 0, taken: 0 };

/** All devices, and what of them is taken. */
export function devicesOf(snapshot: Snapshot): KnownDevices {
  if (snapshot.devices !== undefined) return snapshot.devices;
  const slices = new SliceIndex();
  for (const { metadata, spec } of snapshot.objects(
    'ResourceSlice',
  ) as Iterable<ResourceSliceObject>) {
    slices.set(metadata.name, spec);
  }
  const claims = [
    ...(snapshot.objects('ResourceClaim') as Iterable<ResourceClaimObject>),
    ...(snapshot.objects(ALLOCATING_CLAIM) as Iterable<ResourceClaimObject>),
  ];
  return { slices, allocated: allocatedBy(claims) };
}

/** Devices behind some resources; null where no class stands for any of them. */
export function deviceCounts(
  resources: readonly string[],
  snapshot: Snapshot,
): ((resource: string, node: NodeInfo) => DeviceCount) | null {
  const classes = new Map<string, DeviceClassObject>();
  for (const resource of resources) {
    const found = classBehind(resource, snapshot);
    if (found !== undefined) classes.set(resource, found);
  }
  if (classes.size === 0) return null;
  const devices = devicesOf(snapshot);
  return (resource, node) => {
    const found = classes.get(resource);
    const isOwn = (node.allocatable.scalars.get(resource) ?? 0) > 0;
    return found === undefined || isOwn ? NONE : countOf(found, node, devices);
  };
}

/** Upstream looks at every slice, of pools that are incomplete or being replaced, too. */
function countOf(
  { spec }: DeviceClassObject,
  node: NodeInfo,
  { slices, allocated }: KnownDevices,
): DeviceCount {
  let capacity = 0;
  let taken = 0;
  for (const slice of slices.targeting(node)) {
    for (const device of slice.devices ?? []) {
      if (slice.perDeviceNodeSelection === true && !isForNode(device, node)) continue;
      const isWanted = matchesAll(spec?.selectors ?? [], slice.driver, device);
      // An expression that fails leaves the resource out on this node.
      if (isWanted === null) return NONE;
      if (!isWanted) continue;
      capacity++;
      const id = deviceId(slice.driver, slice.pool.name, device.name);
      if (allocated.whole.has(id) || allocated.shared.has(id)) taken++;
    }
  }
  return { capacity, taken };
}

/** Null: an expression failed. */
function matchesAll(
  selectors: NonNullable<DeviceClassObject['spec']>['selectors'] & object,
  driver: string,
  device: Device,
): boolean | null {
  for (const { cel } of selectors) {
    const answer = cel === undefined ? true : matchesDevice(cel.expression, driver, device);
    if (answer !== true) return answer === false ? false : null;
  }
  return true;
}
