/**
 * What the scheduler writes to the API server: bindings by pipelined requests, and for pods that
 * found no node the condition, the event and the evictions.
 */
import { CONTENT, STATUS_NONE, type Client, type SendDone } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { EventText, EventWriter, Subject } from './event-writer.ts';
import type { ExtenderCall } from '../extenders/extender.ts';
import type { Failure } from '../placement/topology/failure.ts';
import type { PodObject } from '../api/objects.ts';
import { PLACE } from '../cache/pod-table.ts';
import { uidText } from '../api/pod-uid.ts';
import { DEFAULT_SCHEDULER_NAME } from '../framework/runtime/profile.ts';
import type { ObjectWrite } from '../framework/reservation.ts';
import type { SchedulerCore } from '../core/scheduler-core.ts';
import type { SchedulerMetrics } from '../metrics/text/scheduler-metrics.ts';

export type Log = (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;

export interface ApiWriterOptions {
  readonly client: Client;
  readonly core: SchedulerCore;
  readonly metrics: SchedulerMetrics;
  /** `namespace/name` of a pod's row. */
  readonly keyOf: (id: number) => string;
  readonly events: EventWriter;
  /** Milliseconds since any fixed moment, finely. */
  readonly monotonicMs: () => number;
  /** Something changed: there may be pods to try. */
  readonly onProgress: () => void;
  /** Has an extender bind a pod; resolves with why not, or empty. */
  readonly bindElsewhere: (call: ExtenderCall) => Promise<string>;
  /** Writes that take back what was done for a pod. */
  readonly undo: (writes: readonly ObjectWrite[]) => void;
  /** Whether this process leads: what was decided before it slept is another's to decide now. */
  readonly mayDecide: () => boolean;
  readonly log: Log;
}

const TOO_MANY = 429;
/** Between two questions to a server that does not answer. */
const FIND_OUT_MS = 1000;

interface Report {
  readonly tag: number;
  readonly reason: 'Unschedulable' | 'SchedulerError';
  readonly message: string;
  readonly nominated: string | null;
}

export class ApiWriter {
  readonly #options: ApiWriterOptions;
  /** What is to be told about pods, the last word of each only. */
  readonly #reports = new Map<number, Report>();
  /** What was told last, so that the same is not told again. */
  readonly #told = new Map<number, { readonly tag: number; readonly text: string }>();
  readonly #startedMs = new Map<number, number>();
  /** By tag: when that began which comes before some bindings, and when the binding itself did. */
  readonly #preparedMs = new Map<number, number>();
  readonly #bindingMs = new Map<number, number>();
  /** By tag: writes of status without an answer. */
  readonly #telling = new Map<number, number>();
  /** Bindings that wait for those: what is told late would undo what a binding makes of a pod. */
  readonly #held = new Set<number>();
  /** Tags of victims, by row: they may be chosen again before the watch shows that they leave. */
  readonly #evicted = new Map<number, number>();

  constructor(options: ApiWriterOptions) {
    this.#options = options;
    options.client.onRoom(() => {
      this.flush();
      options.onProgress();
    });
  }

  /** Whether bindings can be sent now. */
  get hasRoom(): boolean {
    return this.#options.client.room() > 0;
  }

  /** Bindings without an answer, and reports that wait for room. */
  get pending(): number {
    return this.#startedMs.size + this.#reports.size;
  }

  /** A pod has a node but is not to be bound yet; that it is on its way is told. */
  delay(id: number, startedMs: number): void {
    const { core, keyOf } = this.#options;
    const tag = core.pods.tagOf(id);
    this.#startedMs.set(tag, startedMs);
    this.#preparedMs.set(tag, this.#options.monotonicMs());
    const nominatedNodeName = core.nodes.nameOf(core.pods.node.get(id));
    const body = JSON.stringify({ status: { nominatedNodeName } });
    const path = `${podPath(keyOf(id))}/status`;
    // The node is known to us anyhow: it does not matter when this is lost.
    this.#patchStatus(tag, path, CONTENT.mergePatch, body, () => {});
  }

  /** What was to be done before is done. */
  bindDelayed(tag: number): void {
    const id = this.#options.core.pods.rowOf(tag);
    const startedMs = this.#startedMs.get(tag) ?? 0;
    if (id < 0) return void this.#ended(tag);
    // Somebody else may have bound it while this process slept.
    const isOurs = this.#options.core.pods.place.get(id) === PLACE.assumed;
    if (isOurs) this.bind(id, startedMs);
    else this.#isBound(tag);
  }

  /** Nothing is under way for a pod any more; when it was tried. */
  #ended(tag: number): number {
    const startedMs = this.#startedMs.get(tag) ?? 0;
    for (const times of [this.#startedMs, this.#preparedMs, this.#bindingMs]) times.delete(tag);
    return startedMs;
  }

  /** Tells of something that pods wait for. */
  note(tag: number, reason: string, message: string): void {
    const id = this.#options.core.pods.rowOf(tag);
    if (id >= 0) this.#event(id, { type: 'Normal', reason, action: 'Scheduling', note: message });
  }

  /** Asks for a pod to be bound to the node that it is assumed to be on. */
  bind(id: number, startedMs: number): void {
    const { core } = this.#options;
    const tag = core.pods.tagOf(id);
    this.#startedMs.set(tag, startedMs);
    this.#reports.delete(id);
    if (this.#telling.has(tag)) this.#held.add(tag);
    else this.#bindNow(id, tag);
  }

  #bindNow(id: number, tag: number): void {
    const { core, bindElsewhere, monotonicMs } = this.#options;
    this.#bindingMs.set(tag, monotonicMs());
    const { template } = core.identities.classes.get(core.pods.podClass.get(id));
    const extender = core.extenders.find((one) => one.binds && one.isInterested(template));
    if (extender === undefined) return this.#bindHere(id);
    const { namespace, name } = namesOf(this.#options.keyOf(id));
    const node = core.nodes.nameOf(core.pods.node.get(id));
    const call = extender.bindCall(namespace, name, uidText(core.pods, id), node);
    void bindElsewhere(call).then((error) => {
      if (error === '') return this.#isBound(tag);
      if (!extender.isIgnorable) return this.fail(tag, error);
      if (core.pods.rowOf(tag) >= 0) this.#bindHere(id);
    });
  }

  #bindHere(id: number): void {
    const { client, core, keyOf } = this.#options;
    const { namespace, name } = namesOf(keyOf(id));
    const node = core.nodes.nameOf(core.pods.node.get(id));
    const uid = uidText(core.pods, id);
    const about = uid === '' ? '' : `,"uid":"${uid}"`;
    const tag = core.pods.tagOf(id);
    const body =
      `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"${name}",` +
      `"namespace":"${namespace}"${about}},"target":{"kind":"Node","name":"${node}"}}`;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/binding`;
    const isTaken = client.send('POST', path, CONTENT.json, body, this.#bound, tag);
    if (!isTaken) this.fail(tag, 'the client has no room');
  }

  /** Tells of a pod that found no node, and evicts those that it may push aside. */
  report(id: number, failure: Failure, displaced: readonly number[]): void {
    const { core, metrics } = this.#options;
    const tag = core.pods.tagOf(id);
    const { nomination, message } = failure;
    const nominated = nomination === null ? null : core.nodes.nameOf(nomination.node);
    const reason = failure.isError ? 'SchedulerError' : 'Unschedulable';
    this.#tell({
      tag,
      reason,
      message,
      nominated: nominated ?? (failure.clearsNomination ? '' : null),
    });
    this.#event(id, failed(message));
    for (const other of displaced) this.#clearNomination(other);
    if (nomination === null) return;
    metrics.preempted(nomination.victims.length);
    this.#evictAll(nomination.victims, id, nominated ?? '');
  }

  /** Asks victims to go; measures until all were asked. */
  #evictAll(victims: readonly number[], preemptor: number, node: string): void {
    const { metrics, monotonicMs } = this.#options;
    const sinceMs = monotonicMs();
    let left = 1;
    let areAsked = true;
    const asked = (isAsked: boolean): void => {
      areAsked &&= isAsked;
      if (--left === 0) metrics.work.evicted(areAsked, (monotonicMs() - sinceMs) / 1000);
    };
    let evicts = false;
    for (const victim of victims) {
      left++;
      if (this.#evict(victim, preemptor, node, asked)) evicts = true;
      else left--;
    }
    if (evicts) asked(true);
  }

  /** A pod is gone: nothing more is to be told about it. */
  forget(id: number): void {
    this.#told.delete(id);
    this.#reports.delete(id);
    this.#evicted.delete(id);
  }

  /** Sends reports as long as there is room. */
  flush(): void {
    for (const [id, report] of this.#reports) {
      if (this.#options.client.room() === 0) return;
      this.#reports.delete(id);
      if (this.#options.core.pods.rowOf(report.tag) !== id) continue;
      this.#patch(id, report);
    }
  }

  readonly #bound = (
    status: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    tag: number,
  ): void => {
    if (status >= 200 && status <= 299) return this.#isBound(tag);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
    const message = failureText(status, text);
    if (isUnsure(status)) void this.#findOut(tag, message);
    else this.fail(tag, bindError(message));
  };

  /** An answer that was lost may have been a yes: the room is kept until that is known. */
  async #findOut(tag: number, message: string): Promise<void> {
    const { client, core, keyOf } = this.#options;
    for (let id = core.pods.rowOf(tag); id >= 0; id = core.pods.rowOf(tag)) {
      // The watch may have told by now.
      if (core.pods.place.get(id) !== PLACE.assumed) return this.#isBound(tag);
      const node = core.nodes.nameOf(core.pods.node.get(id));
      const found = await client.request({ method: 'GET', path: podPath(keyOf(id)) });
      if (found.ok) {
        const { spec } = found.object as unknown as PodObject;
        if ((spec.nodeName ?? '') === node) return this.#isBound(tag);
        return this.fail(tag, bindError(message));
      }
      if (!isUnsure(found.code) && found.code !== TOO_MANY) {
        return this.fail(tag, bindError(message));
      }
      await new Promise<void>((resolve) => void client.timers.after(FIND_OUT_MS, resolve));
    }
    this.#ended(tag);
  }

  #isBound(tag: number): void {
    const { core, metrics, monotonicMs } = this.#options;
    const bindingMs = this.#bindingMs.get(tag) ?? 0;
    const preparedMs = this.#preparedMs.get(tag) ?? bindingMs;
    const startedMs = this.#ended(tag);
    const id = core.pods.rowOf(tag);
    core.reservations.keep(tag);
    const nowMs = this.#options.client.timers.nowMs();
    if (id >= 0) {
      const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(id));
      const endedMs = monotonicMs();
      metrics.attempted('scheduled', schedulerName, (endedMs - startedMs) / 1000);
      const { plugins } = metrics;
      plugins.recordPoint('PreBind', 'Success', schedulerName, (bindingMs - preparedMs) / 1000);
      plugins.recordPoint('Bind', 'Success', schedulerName, (endedMs - bindingMs) / 1000);
      const tries = core.pods.rejections.get(id) + core.pods.errors.get(id) + 1;
      if (core.queue.flushed.delete(id)) metrics.boundAfterFlush++;
      metrics.scheduled(tries, Math.max(0, nowMs - core.pods.firstMs.get(id)) / 1000);
      this.forget(id);
      const node = core.pods.node.get(id);
      // Most of them are lost where pods are bound by the thousand.
      if (node >= 0 && !this.#options.events.drops()) {
        const key = this.#options.keyOf(id);
        const note = `Successfully assigned ${key} to ${core.nodes.nameOf(node)}`;
        this.#event(id, { type: 'Normal', reason: 'Scheduled', action: 'Binding', note });
      }
      const toldMs = monotonicMs();
      plugins.recordPoint('PostBind', 'Success', schedulerName, (toldMs - endedMs) / 1000);
    }
    this.#options.onProgress();
  }

  /** A pod does not get its node after all: it gives everything back and is tried again. */
  fail(tag: number, message: string): void {
    const { core, metrics, log, client, monotonicMs } = this.#options;
    const startedMs = this.#ended(tag);
    metrics.bindFailures++;
    const id = core.pods.rowOf(tag);
    if (id >= 0) {
      const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(id));
      metrics.attempted('error', schedulerName, (monotonicMs() - startedMs) / 1000);
      log('warn', `binding ${this.#options.keyOf(id)} failed, it will be tried again: ${message}`);
      const wasDelayed = core.reservations.of(tag).length > 0;
      this.#options.undo(core.bindFailed(tag, client.timers.nowMs()));
      const nominated = wasDelayed ? '' : null;
      this.#tell({ tag, reason: 'SchedulerError', message, nominated });
      this.#event(id, failed(message));
    }
    this.#options.onProgress();
  }

  #tell(report: Report): void {
    const id = this.#options.core.pods.rowOf(report.tag);
    const text = `${report.reason} ${report.message} ${report.nominated ?? ''}`;
    if (id < 0 || this.#toldOf(id)?.text === text) return;
    this.#reports.set(id, report);
    this.flush();
  }

  /** Null for a row that has gone to another pod since. */
  #toldOf(id: number): { readonly text: string } | null {
    const told = this.#told.get(id);
    return told?.tag === this.#options.core.pods.tagOf(id) ? told : null;
  }

  #patchStatus(tag: number, path: string, type: string, body: string, done: SendDone): void {
    this.#telling.set(tag, (this.#telling.get(tag) ?? 0) + 1);
    const { client } = this.#options;
    const answered: SendDone = (...answer) => {
      done(...answer);
      this.#answered(tag);
    };
    if (!client.send('PATCH', path, type, body, answered)) this.#answered(tag);
  }

  #answered(tag: number): void {
    const left = (this.#telling.get(tag) ?? 0) - 1;
    if (left > 0) return void this.#telling.set(tag, left);
    this.#telling.delete(tag);
    if (this.#held.delete(tag)) this.#bindHeld(tag);
  }

  #bindHeld(tag: number): void {
    const { client, core, mayDecide } = this.#options;
    const id = core.pods.rowOf(tag);
    if (id < 0) this.#ended(tag);
    else if (mayDecide()) this.bindDelayed(tag);
    else client.timers.after(FIND_OUT_MS, () => this.#bindHeld(tag));
  }

  #patch(id: number, { tag, reason, message, nominated }: Report): void {
    const { client, core, keyOf } = this.#options;
    const isFirst = this.#toldOf(id) === null;
    this.#told.set(id, { tag, text: `${reason} ${message} ${nominated ?? ''}` });
    const condition: JsonObject = { type: 'PodScheduled', status: 'False', reason, message };
    const observedGeneration = core.pods.specGeneration.get(id);
    if (observedGeneration > 0) condition['observedGeneration'] = observedGeneration;
    // The moment of transition is that of the first report; later ones leave it as it is.
    if (isFirst) condition['lastTransitionTime'] = timeText(client.timers.wallMs());
    const status: JsonObject = { conditions: [condition] };
    if (nominated !== null) status['nominatedNodeName'] = nominated === '' ? null : nominated;
    const body = JSON.stringify({ status });
    const path = `${podPath(keyOf(id))}/status`;
    this.#patchStatus(tag, path, CONTENT.strategicPatch, body, (code, bytes, start, end) => {
      // A pod that is gone needs no report; anything else is told again with the next failure.
      if (code >= 200 && code < 300) return;
      this.#told.delete(id);
      if (code === 404) return;
      const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
      this.#options.log('warn', `status of ${keyOf(id)}: ${failureText(code, text)}`);
    });
  }

  #clearNomination(id: number): void {
    const { client, keyOf } = this.#options;
    const body = '{"status":{"nominatedNodeName":null}}';
    const path = `${podPath(keyOf(id))}/status`;
    client.send('PATCH', path, CONTENT.mergePatch, body, () => {});
  }

  /** First says why, then deletes; a victim that leaves already needs neither, and is none. */
  #evict(
    victim: number,
    preemptor: number,
    node: string,
    asked: (isAsked: boolean) => void,
  ): boolean {
    const { client, core, keyOf, log, mayDecide, onProgress } = this.#options;
    if (victim < 0 || core.pods.isTerminating.get(victim) !== 0) return false;
    const tag = core.pods.tagOf(victim);
    if (this.#evicted.get(victim) === tag) return false;
    this.#evicted.set(victim, tag);
    const key = keyOf(victim);
    const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(preemptor));
    const observedGeneration = core.pods.specGeneration.get(victim);
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: `${schedulerName}: preempting to accommodate a higher priority pod`,
      lastTransitionTime: timeText(client.timers.wallMs()),
      ...(observedGeneration > 0 ? { observedGeneration } : {}),
    };
    // Another pod may have come by the same name: it is not to go.
    const uid = uidText(core.pods, victim);
    const who = uid === '' ? {} : { uid };
    const body = JSON.stringify({ metadata: who, status: { conditions: [condition] } });
    const options = JSON.stringify({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: who,
    });
    const note = `Preempted by pod ${uidText(core.pods, preemptor)} on node ${node}`;
    const event = { type: 'Normal', reason: 'Preempted', action: 'Preempting', note } as const;
    this.#event(victim, event, preemptor);
    const waiting = core.pods.tagOf(preemptor);
    const mayComeAgain = (): void => {
      if (this.#evicted.get(victim) === tag) this.#evicted.delete(victim);
      asked(false);
      // No event follows: whom the victim was to make room for has to ask again.
      if (core.pods.rowOf(waiting) !== preemptor) return;
      core.queue.wake(preemptor, 'ForceActivate', client.timers.nowMs());
      onProgress();
    };
    const deleted: SendDone = (code, bytes, start, end) => {
      if ((code >= 200 && code < 300) || isGone(code)) return asked(true);
      mayComeAgain();
      const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
      log('warn', `eviction of ${key}: ${failureText(code, text)}`);
    };
    const remove = (): void => {
      if (!client.send('DELETE', podPath(key), CONTENT.json, options, deleted)) mayComeAgain();
    };
    const told: SendDone = (code) => {
      if (isGone(code)) asked(true);
      else if (mayDecide()) remove();
      else mayComeAgain();
    };
    const path = `${podPath(key)}/status`;
    if (!client.send('PATCH', path, CONTENT.strategicPatch, body, told)) remove();
    return true;
  }

  /** `preemptor`: on whose account the pod is told of; its scheduler tells then. */
  #event(id: number, event: EventText, preemptor?: number): void {
    const { core, events } = this.#options;
    const teller = core.pods.podClass.get(preemptor ?? id);
    const { schedulerName } = core.identities.classes.get(teller);
    const controller = schedulerName === '' ? DEFAULT_SCHEDULER_NAME : schedulerName;
    const related = preemptor === undefined ? undefined : this.#subjectOf(preemptor);
    events.write(controller, this.#subjectOf(id), event, related);
  }

  #subjectOf(id: number): Subject {
    const { core, keyOf } = this.#options;
    const uid = uidText(core.pods, id);
    const version = core.pods.version.get(id);
    const names = namesOf(keyOf(id));
    return {
      kind: 'Pod',
      apiVersion: 'v1',
      ...names,
      ...(uid === '' ? {} : { uid }),
      ...(version === 0 ? {} : { resourceVersion: String(version) }),
    };
  }
}

/** The request may have been carried out, as far as its answer tells. */
function isUnsure(code: number): boolean {
  return code === STATUS_NONE || code >= 500;
}

/** The pod that was meant is not there any more. */
function isGone(code: number): boolean {
  return code === 404 || code === 409;
}

/** As upstream's plugin that binds words it. */
function bindError(message: string): string {
  return `running Bind plugin "DefaultBinder": ${message}`;
}

function failed(note: string): EventText {
  return { type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', note };
}

function namesOf(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

function podPath(key: string): string {
  const slash = key.indexOf('/');
  return `/api/v1/namespaces/${key.slice(0, slash)}/pods/${key.slice(slash + 1)}`;
}

function timeText(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

/** The message of a Status, or what came in its place. */
function failureText(status: number, body: string): string {
  if (status === STATUS_NONE) return `no answer: ${body}`;
  const message = /"message":"((?:[^"\\]|\\.)*)"/.exec(body)?.[1];
  return message === undefined ? `${status} ${body.trim()}` : message.replaceAll('\\"', '"');
}
