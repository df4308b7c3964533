/**
 * What the node controllers keep of a Node: 32 bits, so that a pass over a million nodes reads
 * numbers only.
 *
 *   bits 0-9    conditions Ready, MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable,
 *               two bits each: 0 absent, 1 True, 2 False, 3 Unknown
 *   bits 10-16  taints NoSchedule: not-ready, unreachable, memory-, disk-, pid-pressure,
 *               network-unavailable, unschedulable
 *   bits 17-19  taints NoExecute: not-ready, unreachable, any
 *   bit 20      taint out-of-service (any effect)
 *   bit 21      spec.unschedulable
 *   bit 22      labels of system and architecture differ from their beta twins
 *   bit 23      the node exists
 *   bits 24-30  work under way, see node-lifecycle.ts
 */
export const CONDITION_TYPES = [
  'Ready',
  'MemoryPressure',
  'DiskPressure',
  'PIDPressure',
  'NetworkUnavailable',
] as const;

export const ABSENT = 0;
export const TRUE = 1;
export const FALSE = 2;
export const UNKNOWN = 3;

const CONDITION_MASK = 3;
/** The bits of the conditions that a kubelet owns: the first four. */
export const KUBELET_CONDITIONS_MASK = 0xff;

/** Status of a condition, by its place in CONDITION_TYPES. */
export function conditionIn(bits: number, index: number): number {
  return (bits >>> (index * 2)) & CONDITION_MASK;
}

/** Taints of effect NoSchedule that mirror conditions, in the order of their bits. */
export const NO_SCHEDULE_TAINTS = [
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/memory-pressure',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/pid-pressure',
  'node.kubernetes.io/network-unavailable',
  'node.kubernetes.io/unschedulable',
] as const;

export const TAINT_NOT_READY = 'node.kubernetes.io/not-ready';
export const TAINT_UNREACHABLE = 'node.kubernetes.io/unreachable';
export const TAINT_OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

export const NO_SCHEDULE_SHIFT = 10;
export const NO_SCHEDULE_MASK: number = 0x7f << NO_SCHEDULE_SHIFT;
export const NO_EXECUTE_NOT_READY: number = 1 << 17;
export const NO_EXECUTE_UNREACHABLE: number = 1 << 18;
export const NO_EXECUTE_ANY: number = 1 << 19;
export const OUT_OF_SERVICE: number = 1 << 20;
export const UNSCHEDULABLE: number = 1 << 21;
export const LABELS_DIFFER: number = 1 << 22;
export const EXISTS: number = 1 << 23;
/** What `NodeScan` finds; the bits above belong to the machine. */
export const SCANNED_MASK: number = (1 << 23) - 1;

/** The NoSchedule taints that a node should have, as their bits. */
export function wantedNoSchedule(bits: number): number {
  const ready = conditionIn(bits, 0);
  let wanted = ready === FALSE ? 1 : ready === UNKNOWN ? 2 : 0;
  if (conditionIn(bits, 1) === TRUE) wanted |= 4;
  if (conditionIn(bits, 2) === TRUE) wanted |= 8;
  if (conditionIn(bits, 3) === TRUE) wanted |= 16;
  if (conditionIn(bits, 4) === TRUE) wanted |= 32;
  if ((bits & UNSCHEDULABLE) !== 0) wanted |= 64;
  return wanted << NO_SCHEDULE_SHIFT;
}
