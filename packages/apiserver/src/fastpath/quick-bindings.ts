/**
 * Bindings of pods, by the short way: a scheduler sends the same few members each time, so that
 * they are read where they stand, and the pod is bound by inserting bytes. Whatever is unusual (a
 * body with other members, a webhook that wants to see it, a pod that is bound or ends) is left to
 * the ordinary way, which has the words for it.
 */
import { BodyText } from '@megaplane/machinery/body-text';
import type { Admission } from '../admission/admission.ts';
import { podTopologyLabels, topologyLabelsOf } from '../admission/plugin/pod-topology-labels.ts';
import { spliceBinding } from '../registry/core/binding-splice.ts';
import type { Call } from '../request/call.ts';
import { isNamespaceOpen } from '../registry/core/namespaces.ts';
import { JSON_TYPE, PROTOBUF_TYPE } from '../request/negotiation.ts';
import { NO_LABELS, sendBound } from '../registry/core/pods.ts';
import { keyOf, type Served } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import { readBinding, type BindingBody } from './binding-body.ts';
import { timestamp } from '../timestamp.ts';
import type { Request } from '../admission/admission-plugin.ts';

/** Names of 253 characters each, and what stands around them. */
const BODY_BYTES_MAX = 2048;

const row = emptyRow();

/** See the head of the file. */
export class QuickBindings {
  readonly #world: World;
  readonly #admission: Admission;
  readonly #text = new BodyText('v1', 'Binding');
  /** Of this namespace it is known that pods may be bound in it, until the epoch ends. */
  #namespace = '';
  #epoch = -1;
  /** Bindings that were made so. */
  uses = 0;

  constructor(world: World, admission: Admission) {
    this.#world = world;
    this.#admission = admission;
  }

  /** Makes the binding if it is an ordinary one; false leaves it untouched. */
  answer(call: Call, served: Served, epoch: number): boolean {
    const { exchange, info } = call;
    const world = this.#world;
    if (exchange.method !== 'POST' || !call.query.isEmpty) return false;
    if (served.isConverted || world.storage.isShared) return false;
    const request: Request = { world, call, served };
    const body = this.#admission.repeats(request) ? this.#bodyOf(call) : null;
    if (body === null) return false;
    const { name, namespace, uid, target } = body;
    const isOwn = name === info.name && (namespace === '' || namespace === info.namespace);
    if (!isOwn || !this.#isOpen(info.namespace, epoch)) return false;
    const admission = this.#admission;
    const isLabelled = admission.asks(podTopologyLabels, request);
    const labels = isLabelled ? topologyLabelsOf(world, target) : null;
    const key = keyOf(served, info.namespace, name);
    if (!world.storage.get(key, row)) return false;
    const binding = { nodeName: target, uid, labels: labels ?? NO_LABELS };
    const bound = spliceBinding(row, { ...binding, timestamp: timestamp(call.nowMs) });
    if (bound === null) return false;
    let isDone = true;
    world.storage.put(key, bound, row.modRevision, (outcome) => {
      isDone = outcome.kind === 'done';
      if (isDone) sendBound(call);
    });
    if (!isDone) return false;
    this.uses++;
    admission.noteRepeated(request);
    return true;
  }

  #isOpen(asked: string, epoch: number): boolean {
    if (asked === this.#namespace && epoch === this.#epoch) return true;
    if (!isNamespaceOpen(this.#world, asked)) return false;
    this.#namespace = asked;
    this.#epoch = epoch;
    return true;
  }

  #bodyOf({ exchange, body }: Call): BindingBody | null {
    if (body.length === 0 || body.length > BODY_BYTES_MAX) return null;
    const type = exchange.header('content-type') ?? '';
    if (type === PROTOBUF_TYPE) {
      const text = this.#text.read(body);
      return text === null ? null : readBinding(text);
    }
    return type === '' || type === JSON_TYPE ? readBinding(body) : null;
  }
}
