/** Pods: their start, their binding to a node, and what may change of them. */
import { putMember } from '@megaplane/base/members';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import {
  badRequest,
  conflict,
  failed,
  storageUidConflict,
  success,
  successStatus,
  unclassified,
  type Result,
} from '@megaplane/machinery/status';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { qosClassOf } from '@megaplane/machinery/quota/pod-resources';
import { notFound } from '@megaplane/machinery/status';
import { AFTER_NODE_NAME } from './pod-spec-order.ts';
import { spliceBinding } from './binding-splice.ts';
import { defineBehaviour, POD_DELETION } from '../rest/behaviour.ts';
import type { Call } from '../../request/call.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { JSON_TYPE } from '../../request/negotiation.ts';
import { keepAllButEphemeral, keepAllButSizes, keepReported } from './pod-parts.ts';
import { fillAppArmor, fillLabelKeys } from './pod-start.ts';
import { findServed, keyOf, keyText } from '../../storage/served.ts';
import { emptyRow } from '../../storage/storage.ts';
import { defineSubresource, type SubresourceContext } from '../../handlers/subresource.ts';
import { refusedWrite } from '../../handlers/writing.ts';
import { timestamp } from '../../timestamp.ts';

const BIND_TRIES_MAX = 5;
const BINDING_RESOURCE = { group: '', name: 'pods/binding' } as const;
const PODS = { group: '', name: 'pods' } as const;

/** Of bindings that were made. */
const BOUND = successStatus(201) as unknown as JsonObject;
const BOUND_TEXT = Buffer.from(`${JSON.stringify(BOUND)}\n`);

export const NO_LABELS: Readonly<Record<string, string>> = {};

const row = emptyRow();

/** Registers the rules of pods. */
export function definePods(): void {
  defineBehaviour('pods', {
    returnsDeleted: true,
    deletion: POD_DELETION,
    prepareCreate: (object, { call }) => {
      object['status'] = {
        phase: 'Pending',
        ...gateStatus(object, call.nowMs),
        qosClass: qosClassOf(object),
      };
      fillLabelKeys(object);
      fillAppArmor(object, (text) => call.warn(text));
    },
    prepareStatus: (next, previous) => {
      const metadata = objectAt(next, 'metadata');
      const owners = valueAt(previous, 'metadata', 'ownerReferences');
      keepQosClass(next, previous);
      if (metadata === undefined) return;
      if (owners === undefined) delete metadata['ownerReferences'];
      else metadata['ownerReferences'] = owners;
      // a status that says so ends nothing
      const deletedAt = valueAt(previous, 'metadata', 'deletionTimestamp');
      if (deletedAt === undefined) delete metadata['deletionTimestamp'];
      else metadata['deletionTimestamp'] = deletedAt;
      keepReported(next, previous);
    },
    keepRest: { ephemeralcontainers: keepAllButEphemeral, resize: keepAllButSizes },
  });
  defineSubresource('pods/binding', 'create', (context) =>
    bind(context, context.call.info.name, 1),
  );
  defineSubresource('bindings', 'create', (context) =>
    bind(context, stringAt(context.body, 'metadata', 'name'), 1),
  );
}

/** The class is decided when a pod is made, and kept where a status comes without one. */
function keepQosClass(next: JsonObject, previous: JsonObject): void {
  const qosClass = stringAt(previous, 'status', 'qosClass');
  if (qosClass === '' || stringAt(next, 'status', 'qosClass') !== '') return;
  next['status'] = { ...objectAt(next, 'status'), qosClass };
}

/** A gated pod says so from its first moment. */
function gateStatus(pod: JsonObject, nowMs: number): JsonObject {
  if (listAt(pod, 'spec', 'schedulingGates').length === 0) return {};
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: timestamp(nowMs),
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  };
  return { conditions: [condition] };
}

function bind(context: SubresourceContext, name: string, attempt: number): void {
  const { call, world, body } = context;
  const served = findServed('', 'v1', 'pods');
  if (served === undefined) return;
  const { namespace } = call.info;
  if (stringAt(body, 'metadata', 'name') !== name) {
    call.fail(badRequest('name in URL does not match name in Binding object'));
    return;
  }
  const target = checkTarget(body);
  if (!target.ok) {
    call.fail(target.status);
    return;
  }
  const key = keyOf(served, namespace, name);
  if (!world.storage.get(key, row)) {
    call.fail(notFound(PODS, name));
    return;
  }
  const revision = row.modRevision;
  const uid = stringAt(body, 'metadata', 'uid');
  const labels = plainLabels(body, target.value);
  const spliced =
    labels === null
      ? null
      : spliceBinding(row, {
          ...{ nodeName: target.value, uid, labels },
          timestamp: timestamp(call.nowMs),
        });
  if (spliced !== null) {
    const kept = world.storage.isShared ? Buffer.from(spliced) : spliced;
    writeBound(context, name, key, kept, revision, attempt);
    return;
  }
  const pod = decodeRow(served, row, revision);
  const ownUid = stringAt(pod, 'metadata', 'uid');
  if (uid !== '' && uid !== ownUid) {
    const text = keyText(served, namespace, name);
    call.fail(storageUidConflict(PODS, name, text, uid, ownUid));
    return;
  }
  const bound = boundPod(pod, body, target.value, name, call.nowMs);
  if (!bound.ok) {
    call.fail(bound.status);
    return;
  }
  writeBound(context, name, key, encodeCanonical(bound.value), revision, attempt);
}

/**
 * The labels of a binding that has nothing else to merge into the pod; null where it has, or where
 * names need escapes.
 */
function plainLabels(body: JsonObject, node: string): Readonly<Record<string, string>> | null {
  const metadata = objectAt(body, 'metadata');
  if (metadata?.['annotations'] !== undefined || !/^[a-z0-9.-]+$/.test(node)) return null;
  const labels = objectAt(metadata, 'labels');
  if (labels === undefined) return metadata?.['labels'] === undefined ? NO_LABELS : null;
  for (const name in labels) {
    if (typeof labels[name] !== 'string' || !/^[\w./-]+$/.test(name)) return null;
  }
  return labels as Readonly<Record<string, string>>;
}

function writeBound(
  context: SubresourceContext,
  name: string,
  key: Buffer,
  bytes: Buffer,
  revision: number,
  attempt: number,
): void {
  const { call, world, served } = context;
  if (context.isDryRun) {
    sendBound(call);
    return;
  }
  world.storage.put(key, bytes, revision, (outcome) => {
    if (outcome.kind === 'done') sendBound(call);
    else if (outcome.kind === 'conflict' && attempt < BIND_TRIES_MAX) {
      bind(context, name, attempt + 1);
    } else call.fail(refusedWrite(served, name, outcome));
  });
}

/** What every binding is answered with, written once. */
export function sendBound(call: Call): void {
  const { encoding, pretty } = call.media;
  if (encoding === 'json' && !pretty && call.record === null) call.send(201, JSON_TYPE, BOUND_TEXT);
  else call.sendObject(201, BOUND);
}

/** Upstream checks these after decoding, outside of validation: a bare 500 (as recorded). */
function checkTarget(body: JsonObject): Result<string> {
  const kind = stringAt(body, 'target', 'kind');
  const name = stringAt(body, 'target', 'name');
  if (kind !== '' && kind !== 'Node') {
    const text = `target.kind: Unsupported value: ${JSON.stringify(kind)}`;
    return failed(unclassified(`${text}: supported values: "Node", "<empty>"`));
  }
  if (name === '') return failed(unclassified('target.name: Required value'));
  return success(name);
}

function boundPod(
  pod: JsonObject,
  binding: JsonObject,
  node: string,
  name: string,
  nowMs: number,
): Result<JsonObject> {
  const refuse = (why: string) => failed(conflict(BINDING_RESOURCE, name, why));
  if (stringAt(pod, 'metadata', 'deletionTimestamp') !== '') {
    return refuse(`pod ${name} is being deleted, cannot be assigned to a host`);
  }
  const current = stringAt(pod, 'spec', 'nodeName');
  if (current !== '') return refuse(`pod ${name} is already assigned to node "${current}"`);
  if (listAt(pod, 'spec', 'schedulingGates').length > 0) {
    return refuse(`pod ${name} has non-empty .spec.schedulingGates`);
  }
  const metadata = { ...objectAt(pod, 'metadata') };
  const annotations = {
    ...objectAt(metadata, 'annotations'),
    ...objectAt(binding, 'metadata', 'annotations'),
  };
  if (Object.keys(annotations).length > 0) metadata['annotations'] = annotations;
  const labels = { ...objectAt(metadata, 'labels'), ...objectAt(binding, 'metadata', 'labels') };
  if (Object.keys(labels).length > 0) metadata['labels'] = labels;
  const scheduled: JsonObject = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timestamp(nowMs),
  };
  const generation = numberAt(metadata, 'observedGeneration');
  if (generation > 0) scheduled['observedGeneration'] = generation;
  const conditions: JsonValue[] = listAt(pod, 'status', 'conditions').filter(
    (one) => stringAt(one, 'type') !== 'PodScheduled',
  );
  return success({
    ...pod,
    metadata,
    spec: withNodeName(objectAt(pod, 'spec') ?? {}, node),
    status: boundStatus(objectAt(pod, 'status') ?? {}, [...conditions, scheduled]),
  });
}

/** A bound pod is nominated for no node any more. */
function boundStatus(status: JsonObject, conditions: JsonValue[]): JsonObject {
  const { nominatedNodeName: _, ...rest } = status;
  return { ...rest, conditions };
}

/** `nodeName` where upstream's struct has it: after serviceAccount, before hostNetwork. */
function withNodeName(spec: JsonObject, node: string): JsonObject {
  const next: JsonObject = {};
  let isPlaced = false;
  for (const [field, value] of Object.entries(spec)) {
    if (!isPlaced && AFTER_NODE_NAME.has(field)) {
      next['nodeName'] = node;
      isPlaced = true;
    }
    putMember(next, field, value);
  }
  if (!isPlaced) next['nodeName'] = node;
  return next;
}
