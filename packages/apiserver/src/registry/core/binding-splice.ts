// data plane
/**
 * The stored form of a bound pod, made from that of the unbound one by inserting bytes: nodeName in
 * its spec, the PodScheduled condition in its status, and labels of the binding. The ordinary case
 * only; whatever is unusual about the pod is left to the way that parses it.
 */
import { ownMember } from '@megaplane/base/members';
import { MemberCursor } from '@megaplane/machinery/scan';
import { BEFORE_NODE_NAME } from './pod-spec-order.ts';
import { Sink } from '../../sink/sink.ts';
import type { Row } from '../../storage/storage.ts';

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

const FIELDS_BEFORE: readonly Buffer[] = BEFORE_NODE_NAME.map((name) => Buffer.from(name));

/** In memory that stays: each pod's own would make the collector hurry. */
const out = new Sink();

const top = new MemberCursor();
const inner = new MemberCursor();
const label = new MemberCursor();

/** Where the pieces go: after these offsets; -1 where the ordinary way does not hold. */
let nodeNameAt = -1;
let conditionsAt = -1;
let uidStart = -1;
let uidEnd = -1;
/** Where labels go among those of the pod; -1 where it has none, and then behind which field. */
let labelsAt = -1;
/** Labels of the pod stand right before, or right behind. */
let isBehind = false;
let isBefore = false;
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

/** The bytes of the pod in `row`, bound, good until the next call; null where it must be parsed. */
export function spliceBinding(row: Row, binding: SplicedBinding): Buffer | null {
  const { nodeName, uid, labels, timestamp } = binding;
  const names = Object.keys(labels).toSorted();
  if (!findPlaces(row, names)) return null;
  const { bytes, start, end } = row;
  if (uid !== '' && bytes.toString('utf8', uidStart, uidEnd) !== uid) return null;
  const cut = names.length === 0 ? start : labelsAt < 0 ? createdAt : labelsAt;
  out.length = 0;
  out.append(bytes, start, cut);
  if (names.length > 0) out.utf8(labelsText(labels, names));
  out.append(bytes, cut, nodeNameAt);
  out.ascii(`,"nodeName":"${nodeName}"`);
  out.append(bytes, nodeNameAt, conditionsAt);
  out.ascii(
    ',"conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,' +
      `"lastTransitionTime":"${timestamp}"}]`,
  );
  out.append(bytes, conditionsAt, end);
  return out.bytes.subarray(0, out.length);
}

function labelsText(labels: Readonly<Record<string, string>>, names: readonly string[]): string {
  let members = '';
  for (const name of names) {
    members += `${members === '' ? '' : ','}"${name}":${JSON.stringify(ownMember(labels, name))}`;
  }
  if (labelsAt < 0) return `,"labels":{${members}}`;
  return `${isBehind ? ',' : ''}${members}${isBefore ? ',' : ''}`;
}

/** `added`: names of labels that the pod must not have, in order. */
function findPlaces(row: Row, added: readonly string[]): boolean {
  nodeNameAt = -1;
  labelsAt = -1;
  createdAt = -1;
  conditionsAt = -1;
  uidStart = -1;
  if (!top.open(row.bytes, row.start, row.end)) return false;
  const { bytes, end } = row;
  while (top.nextKey()) {
    if (top.is(NAMES.metadata)) {
      if (!isPlainMetadata(bytes, end, added)) return false;
    } else if (top.is(NAMES.spec)) {
      if (!findInSpec(bytes, end)) return false;
    } else if (top.is(NAMES.status)) {
      if (!findInStatus(bytes, end)) return false;
    } else {
      if (!top.skip()) return false;
      continue;
    }
    top.resume(inner.closeEnd);
  }
  const hasPlace =
    added.length === 0 || (Math.max(labelsAt, createdAt) > 0 && uidStart < nodeNameAt);
  return top.isClosed && hasPlace && nodeNameAt > 0 && conditionsAt > nodeNameAt && uidStart > 0;
}

function isPlainMetadata(bytes: Buffer, end: number, added: readonly string[]): boolean {
  if (!inner.open(bytes, top.valueStart, end)) return false;
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

/**
 * The labels that `inner` is at have none of these names, nor any between them: maps are stored in
 * the order of their keys, as Go writes them.
 */
function hasNone(bytes: Buffer, names: readonly string[]): boolean {
  if (!label.open(bytes, inner.valueStart, inner.valueEnd)) return false;
  isBehind = isBefore = false;
  const first = names[0]!;
  const last = names[names.length - 1]!;
  while (label.next()) {
    const name = bytes.utf8Slice(label.keyStart, label.keyEnd);
    if (name < first) {
      isBehind = true;
      continue;
    }
    if (name <= last) return false;
    if (isBefore) continue;
    // at its key's opening quote, behind the comma of the one before
    labelsAt = label.keyStart - 1;
    isBefore = true;
  }
  if (isBefore) isBehind = false;
  else labelsAt = label.closeEnd - 1;
  return label.isClosed;
}

function findInSpec(bytes: Buffer, end: number): boolean {
  if (!inner.open(bytes, top.valueStart, end)) return false;
  let isBefore = true;
  while (inner.next()) {
    if (inner.is(NAMES.nodeName) || inner.is(NAMES.schedulingGates)) return false;
    isBefore = isBefore && comesBefore();
    if (isBefore) nodeNameAt = inner.valueEnd;
  }
  return inner.isClosed;
}

function comesBefore(): boolean {
  for (let index = 0; index < FIELDS_BEFORE.length; index++) {
    if (inner.is(FIELDS_BEFORE[index]!)) return true;
  }
  return false;
}

function findInStatus(bytes: Buffer, end: number): boolean {
  if (!inner.open(bytes, top.valueStart, end)) return false;
  while (inner.next()) {
    if (inner.is(NAMES.conditions) || inner.is(NAMES.nominatedNodeName)) return false;
    if (inner.is(NAMES.phase)) conditionsAt = inner.valueEnd;
  }
  return inner.isClosed;
}
