/**
 * Does what has to be done before pods may be bound: writes claims and volumes, and waits until
 * what that set off is there. One pod waiting holds nobody else up.
 */
import { STATUS_NONE, type Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { KubeObject } from '../api/objects.ts';
import type { ObjectWrite, Reservation } from '../framework/reservation.ts';
import type { SchedulerCore } from '../core/scheduler-core.ts';
import type { DeviceWait, WorkMetrics } from '../metrics/work-metrics.ts';

export interface PreBinderOptions {
  readonly client: Client;
  readonly core: SchedulerCore;
  readonly metrics: WorkMetrics;
  /** Everything is done: the pod can be bound. */
  onReady(tag: number): void;
  /** It could not be done, or not in time. */
  onFailure(tag: number, message: string): void;
  /** The pod will wait: a text for people. */
  onWaiting(tag: number, text: string): void;
  onTrouble(message: string): void;
  /** Whether this process leads; absent: it always does. */
  mayDecide?(): boolean;
}

/** Between two looks at what a pod waits for. */
const LOOK_MS = 1000;
/** Tries of one write that meets newer versions of its object. */
const CONFLICTS_MAX = 5;

export class PreBinder {
  readonly #options: PreBinderOptions;
  /** Pods under way. */
  pending = 0;
  #isStopped = false;

  constructor(options: PreBinderOptions) {
    this.#options = options;
  }

  /** Begins; `onReady` or `onFailure` follows, unless the pod goes away. */
  start(tag: number, reservations: readonly Reservation[]): void {
    this.pending++;
    void this.#run(tag, reservations).then((message) => {
      this.pending--;
      if (this.#isStopped || message === null) return;
      if (message === '') this.#options.onReady(tag);
      else this.#options.onFailure(tag, message);
    });
  }

  /** Writes that nobody waits for. */
  write(writes: readonly ObjectWrite[]): void {
    const { core } = this.#options;
    for (const write of writes) {
      core.reservations.withhold(write);
      void this.#write(write).then((message) => {
        this.#release(write);
        if (message !== '') this.#options.onTrouble(message);
      });
    }
  }

  /** Who was told meanwhile that the claim is under way may try again: no event need follow. */
  #release(write: ObjectWrite): void {
    const { core, client } = this.#options;
    if (!core.reservations.release(write)) return;
    const nowMs = client.timers.nowMs();
    for (const id of core.gatekeeper.claimants.on(write.key)) {
      core.queue.wake(id, 'ResourceClaimUpdate', nowMs);
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Empty when everything is done, null when the pod is gone, else why not. */
  async #run(tag: number, reservations: readonly Reservation[]): Promise<string | null> {
    const { core } = this.#options;
    for (const reservation of reservations) {
      const prefix = `running PreBind plugin "${reservation.plugin}": `;
      for (const write of reservation.writes) {
        await this.#untilLeading();
        if (core.pods.rowOf(tag) < 0 || this.#isStopped) return null;
        const message = await this.#write(write);
        if (message !== '') return prefix + message;
      }
      core.reservations.written(reservation);
      const sinceMs = this.#options.client.timers.nowMs();
      const waited = await this.#wait(tag, reservation);
      if (waited !== null) this.#awaited(tag, reservation, waited, sinceMs);
      if (waited !== '') return waited === null ? null : prefix + waited;
    }
    await this.#untilLeading();
    return core.pods.rowOf(tag) < 0 ? null : '';
  }

  /** Who slept past its lease writes nothing before it leads again, if it ever does. */
  async #untilLeading(): Promise<void> {
    const { timers } = this.#options.client;
    while (!this.#isStopped && this.#options.mayDecide?.() === false) {
      await new Promise<void>((resolve) => void timers.after(LOOK_MS, resolve));
    }
  }

  /** Devices that are made ready on demand are, or never will be. */
  #awaited(tag: number, { drivers }: Reservation, outcome: string, sinceMs: number): void {
    const { core, metrics, client } = this.#options;
    if (drivers === undefined || drivers.slow.length === 0) return;
    const { podClass } = core.pods;
    const { schedulerName } = core.identities.classes.get(podClass.get(core.pods.rowOf(tag)));
    const seconds = (client.timers.nowMs() - sinceMs) / 1000;
    metrics.devicesAwaited(schedulerName, drivers, endOf(outcome), seconds);
  }

  async #wait(tag: number, reservation: Reservation): Promise<string | null> {
    const { core, client } = this.#options;
    const endMs = client.timers.nowMs() + reservation.timeoutMs;
    for (let looks = 0; ; looks++) {
      if (core.pods.rowOf(tag) < 0 || this.#isStopped) return null;
      const nowMs = client.timers.nowMs();
      const ready = reservation.isReady(core.objects, nowMs);
      if (ready === true) return '';
      if (typeof ready === 'string') return ready;
      if (nowMs >= endMs) return reservation.timeoutText;
      if (looks === 0 && reservation.waitingText !== '') {
        this.#options.onWaiting(tag, reservation.waitingText);
      }
      await new Promise<void>((resolve) => void client.timers.after(LOOK_MS, resolve));
    }
  }

  /** One request, for what need not be read before. */
  async #act(write: ObjectWrite, action: 'create' | 'delete'): Promise<string> {
    const { core, client } = this.#options;
    const collection = write.path.slice(0, write.path.lastIndexOf('/'));
    const made = { ...typeOf(write), ...(write.change({}, client.timers.wallMs()) as JsonObject) };
    const answer = await client.request(
      action === 'create'
        ? { method: 'POST', path: collection, body: made }
        : { method: 'DELETE', path: write.path },
    );
    if (action === 'create') this.#options.metrics.claimMade(answer.ok);
    if (answer.ok && action === 'create') {
      core.objectWritten(write.kind, answer.object as unknown as KubeObject);
    }
    if (answer.ok || (write.isOptional === true && answer.code === 404)) return '';
    return failureOf(write, answer.status.message ?? String(answer.code));
  }

  /** Empty when the object is as wanted. */
  async #write(write: ObjectWrite): Promise<string> {
    const { core, client } = this.#options;
    if (write.action !== undefined) return this.#act(write, write.action);
    let object = core.objects.told(write.kind, write.key) as JsonObject | undefined;
    for (let tries = 0; tries < CONFLICTS_MAX; tries++) {
      if (object === undefined) {
        const found = await client.request({ method: 'GET', path: write.path });
        if (!found.ok && found.code === 404 && write.isOptional === true) return '';
        if (!found.ok) return failureOf(write, found.status.message ?? String(found.code));
        ({ object } = found);
        // Our own write may be in it, whose answer was lost: nobody else may take what it says.
        core.objectWritten(write.kind, object as unknown as KubeObject);
      }
      const changed = write.change(object, client.timers.wallMs());
      if (changed === null) return '';
      if (typeof changed === 'string') return changed;
      const path = write.subresource === '' ? write.path : `${write.path}/${write.subresource}`;
      const body = { ...typeOf(write), ...changed };
      const answer = await client.request({ method: 'PUT', path, body });
      if (answer.ok) {
        core.objectWritten(write.kind, answer.object as unknown as KubeObject);
        return '';
      }
      // An answer that was lost may have been a yes: look at the object again.
      if (answer.code !== 409 && answer.code !== STATUS_NONE) {
        return failureOf(write, answer.status.message ?? String(answer.code));
      }
      object = undefined;
    }
    return failureOf(write, `${write.kind} ${write.key} was changed by others again and again`);
  }
}

/** What the metrics call the end of a wait. */
function endOf(outcome: string): DeviceWait {
  if (outcome === '') return 'success';
  if (outcome.endsWith('binding timeout')) return 'timeout';
  return outcome.includes(' binding failed: ') ? 'failure' : 'error';
}

function failureOf({ about }: ObjectWrite, message: string): string {
  return about === '' ? message : `${about}: ${message}`;
}

/** Objects of lists do not say of which type they are. */
function typeOf({ kind, path }: ObjectWrite): JsonObject {
  const [, root, group = '', version = ''] = path.split('/');
  return { apiVersion: root === 'api' ? group : `${group}/${version}`, kind };
}
