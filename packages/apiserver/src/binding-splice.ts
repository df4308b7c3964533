// data plane
/**
 * The stored form of a bound pod, made from that of the unbound one by inserting bytes: nodeName in
 * its spec, the PodScheduled condition in its status, and labels of the binding. The ordinary case
 * only; whatever is unusual about the pod is left to the way that parses it.
 */
import { MemberCursor } from '@megaplane/machinery/scan';
import type { Row } from './storage.ts';

const NAMES = {
  metadata: Buffer.from('metadata'),
  spec: Buffer.from('spec'),
  status: Buffer.from('status'),
  uid: Buffer.from('uid'),
  labels: Buffer.from('labels'),
  creationTimestamp: Buffer.from('creationTimestamp'),
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

const NOTHING = Buffer.alloc(0);

const top = new MemberCursor();
const inner = new MemberCursor();
const label = new MemberCursor();

/** Where the pieces go: after these offsets; -1 where the ordinary way does not hold. */
let nodeNameAt = -1;
let conditionsAt = -1;
let uidStart = -1;
let uidEnd = -1;
/** Before the end of the pod's labels; -1 where it has none, and then behind which field. */
let labelsAt = -1;
let hasLabels = false;
let createdAt = -1;

/** What a binding says of a pod. */
export interface SplicedBinding {
  readonly nodeName: string;
  /** That the pod must have; '': any. */
  readonly uid: string;
  /** Added to those of the pod; none of them may be there already. */
  readonly labels: Readonly<Record<string, string>>;
  /** Time of the condition. */
  readonly timestamp: string;
}

/** The bytes of the pod in `row`, bound; null where it must be parsed. */
export function spliceBinding(row: Row, binding: SplicedBinding): Buffer | null {
  const { nodeName, uid, labels, timestamp } = binding;
  const names = Object.keys(labels);
  if (!findPlaces(row, names)) return null;
  const { bytes, start, end } = row;
  if (uid !== '' && bytes.toString('latin1', uidStart, uidEnd) !== uid) return null;
  const name = Buffer.from(`,"nodeName":"${nodeName}"`, 'latin1');
  const condition = Buffer.from(
    ',"conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,' +
      `"lastTransitionTime":"${timestamp}"}]`,
    'latin1',
  );
  const added = names.length === 0 ? NOTHING : labelsText(labels);
  const out = Buffer.allocUnsafe(end - start + added.length + name.length + condition.length);
  const cut = names.length === 0 ? start : labelsAt < 0 ? createdAt : labelsAt;
  let length = bytes.copy(out, 0, start, cut);
  length += added.copy(out, length);
  length += bytes.copy(out, length, cut, nodeNameAt);
  length += name.copy(out, length);
  length += bytes.copy(out, length, nodeNameAt, conditionsAt);
  length += condition.copy(out, length);
  bytes.copy(out, length, conditionsAt, end);
  return out;
}

function labelsText(labels: Readonly<Record<string, string>>): Buffer {
  const members = JSON.stringify(labels).slice(1, -1);
  if (labelsAt < 0) return Buffer.from(`,"labels":{${members}}`);
  return Buffer.from(hasLabels ? `,${members}` : members);
}

/** `added`: names of labels that the pod must not have. */
function findPlaces(row: Row, added: readonly string[]): boolean {
  nodeNameAt = -1;
  labelsAt = -1;
  createdAt = -1;
  conditionsAt = -1;
  uidStart = -1;
  if (!top.open(row.bytes, row.start, row.end)) return false;
  while (top.next()) {
    if (top.is(NAMES.metadata)) {
      if (!isPlainMetadata(row.bytes, added)) return false;
    } else if (top.is(NAMES.spec)) {
      if (!findInSpec(row.bytes)) return false;
    } else if (top.is(NAMES.status)) {
      if (!findInStatus(row.bytes)) return false;
    }
  }
  const hasPlace =
    added.length === 0 || (Math.max(labelsAt, createdAt) > 0 && uidStart < nodeNameAt);
  return top.isClosed && hasPlace && nodeNameAt > 0 && conditionsAt > nodeNameAt && uidStart > 0;
}

function isPlainMetadata(bytes: Buffer, added: readonly string[]): boolean {
  if (!inner.open(bytes, top.valueStart, top.valueEnd)) return false;
  while (inner.next()) {
    if (inner.is(NAMES.deletionTimestamp)) return false;
    if (inner.is(NAMES.creationTimestamp)) createdAt = inner.valueEnd;
    if (added.length > 0 && inner.is(NAMES.labels) && !hasNone(bytes, added)) return false;
    if (inner.is(NAMES.uid)) {
      uidStart = inner.valueStart + 1;
      uidEnd = inner.valueEnd - 1;
    }
  }
  return inner.isClosed;
}

/** The labels that `inner` is at have none of these names. */
function hasNone(bytes: Buffer, names: readonly string[]): boolean {
  if (!label.open(bytes, inner.valueStart, inner.valueEnd)) return false;
  hasLabels = false;
  while (label.next()) {
    hasLabels = true;
    for (const name of names) {
      if (bytes.latin1Slice(label.keyStart, label.keyEnd) === name) return false;
    }
  }
  labelsAt = label.closeEnd - 1;
  return label.isClosed;
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
