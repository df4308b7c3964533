// data plane
/**
 * The stored form of a bound pod, made from that of the unbound one by inserting bytes: nodeName in
 * its spec and the PodScheduled condition in its status. The ordinary case only; whatever is
 * unusual about the pod is left to the way that parses it.
 */
import { MemberCursor } from '@megaplane/machinery/scan';
import type { Row } from './storage.ts';

const NAMES = {
  metadata: Buffer.from('metadata'),
  spec: Buffer.from('spec'),
  status: Buffer.from('status'),
  uid: Buffer.from('uid'),
  phase: Buffer.from('phase'),
  nodeName: Buffer.from('nodeName'),
  conditions: Buffer.from('conditions'),
  schedulingGates: Buffer.from('schedulingGates'),
  deletionTimestamp: Buffer.from('deletionTimestamp'),
  nominatedNodeName: Buffer.from('nominatedNodeName'),
} as const;

/** Fields of a pod's spec that stand before nodeName in upstream's struct. */
const BEFORE_NODE_NAME: readonly Buffer[] = [
  'volumes',
  'initContainers',
  'containers',
  'ephemeralContainers',
  'restartPolicy',
  'terminationGracePeriodSeconds',
  'activeDeadlineSeconds',
  'dnsPolicy',
  'nodeSelector',
  'serviceAccountName',
  'serviceAccount',
  'automountServiceAccountToken',
].map((name) => Buffer.from(name));

const top = new MemberCursor();
const inner = new MemberCursor();

/** Where the pieces go: after these offsets; -1 where the ordinary way does not hold. */
let nodeNameAt = -1;
let conditionsAt = -1;
let uidStart = -1;
let uidEnd = -1;

/**
 * The bytes of the pod in `row` bound to `nodeName`, or null where it must be parsed. `uid` is that
 * of the binding, '' for none. `timestamp` is the time of the condition.
 */
export function spliceBinding(
  row: Row,
  nodeName: string,
  uid: string,
  timestamp: string,
): Buffer | null {
  if (!findPlaces(row)) return null;
  const { bytes, start, end } = row;
  if (uid !== '' && bytes.toString('latin1', uidStart, uidEnd) !== uid) return null;
  const name = Buffer.from(`,"nodeName":"${nodeName}"`, 'latin1');
  const condition = Buffer.from(
    ',"conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,' +
      `"lastTransitionTime":"${timestamp}"}]`,
    'latin1',
  );
  const out = Buffer.allocUnsafe(end - start + name.length + condition.length);
  let length = bytes.copy(out, 0, start, nodeNameAt);
  length += name.copy(out, length);
  length += bytes.copy(out, length, nodeNameAt, conditionsAt);
  length += condition.copy(out, length);
  bytes.copy(out, length, conditionsAt, end);
  return out;
}

function findPlaces(row: Row): boolean {
  nodeNameAt = -1;
  conditionsAt = -1;
  uidStart = -1;
  if (!top.open(row.bytes, row.start, row.end)) return false;
  while (top.next()) {
    if (top.is(NAMES.metadata)) {
      if (!isPlainMetadata(row.bytes)) return false;
    } else if (top.is(NAMES.spec)) {
      if (!findInSpec(row.bytes)) return false;
    } else if (top.is(NAMES.status)) {
      if (!findInStatus(row.bytes)) return false;
    }
  }
  return top.isClosed && nodeNameAt > 0 && conditionsAt > nodeNameAt && uidStart > 0;
}

function isPlainMetadata(bytes: Buffer): boolean {
  if (!inner.open(bytes, top.valueStart, top.valueEnd)) return false;
  while (inner.next()) {
    if (inner.is(NAMES.deletionTimestamp)) return false;
    if (inner.is(NAMES.uid)) {
      uidStart = inner.valueStart + 1;
      uidEnd = inner.valueEnd - 1;
    }
  }
  return inner.isClosed;
}

function findInSpec(bytes: Buffer): boolean {
  if (!inner.open(bytes, top.valueStart, top.valueEnd)) return false;
  let isBefore = true;
  while (inner.next()) {
    if (inner.is(NAMES.nodeName) || inner.is(NAMES.schedulingGates)) return false;
    isBefore = isBefore && comesBefore();
    if (isBefore) nodeNameAt = inner.valueEnd;
  }
  return inner.isClosed;
}

function comesBefore(): boolean {
  for (let index = 0; index < BEFORE_NODE_NAME.length; index++) {
    if (inner.is(BEFORE_NODE_NAME[index]!)) return true;
  }
  return false;
}

function findInStatus(bytes: Buffer): boolean {
  if (!inner.open(bytes, top.valueStart, top.valueEnd)) return false;
  while (inner.next()) {
    if (inner.is(NAMES.conditions) || inner.is(NAMES.nominatedNodeName)) return false;
    if (inner.is(NAMES.phase)) conditionsAt = inner.valueEnd;
  }
  return inner.isClosed;
}
