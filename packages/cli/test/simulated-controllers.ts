/**
 * A process of controllers in a simulated cluster, with the clock of its machine: it stands for the
 * lease of the controllers, and works while it holds it. It can sleep, and what waits for it
 * happens when it wakes; it can be killed, and says nothing more.
 */
import assert from 'node:assert/strict';
import type { Random } from '@megaplane/base/random';
import type {
  Client,
  ClientRequest,
  ClientResponse,
  SendDone,
  StreamHandle,
  StreamSink,
  Timers,
} from '@megaplane/client/client';
import { createLeaderElection, type LeaderElection } from '@megaplane/client/leader-election';
import { LeadingClient } from '@megaplane/controllers/leading-client';
import { Manager } from '@megaplane/controllers/manager';
import { chosenControllers, type ControllersOptions } from '@megaplane/controllers/options';
import type { ClusterSimulation } from './cluster-simulation.ts';
import type { SimulatedClock } from './simulated-timers.ts';

export const LEADERS = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';

export interface ProcessPlan {
  readonly cluster: ClusterSimulation;
  readonly clock: SimulatedClock;
  readonly random: Random;
  readonly identity: string;
  /** How often nodes renew their leases. */
  readonly renewMs: number;
  /** How often the process renews its own. */
  readonly retryMs: number;
  /** Told when it begins to lead. */
  readonly began: () => void;
  /** Told when its lease is over: it has ended. */
  readonly ended: () => void;
  /** Told of each change that it is about to ask for, beside those of its lease. */
  readonly changes: (identity: string, what: string) => void;
}

export class ControllersProcess {
  readonly #plan: ProcessPlan;
  readonly #manager: Manager;
  readonly #election: LeaderElection;
  readonly #streams: Set<StreamHandle> = new Set();
  /** What waits until it wakes; null while it is awake. */
  #waiting: (() => void)[] | null = null;
  #isStopping = false;
  #isDead = false;

  constructor(plan: ProcessPlan) {
    this.#plan = plan;
    const client = this.#client();
    this.#manager = this.#newManager(client);
    this.#election = createLeaderElection({
      client,
      namespace: 'kube-system',
      name: 'kube-controller-manager',
      identity: plan.identity,
      leaseDurationMs: 7.5 * plan.retryMs,
      renewDeadlineMs: 5 * plan.retryMs,
      retryPeriodMs: plan.retryMs,
      onStartedLeading: () => {
        plan.began();
        this.#manager.start();
      },
      onStoppedLeading: () => {
        if (!this.#isStopping) this.#end(plan.ended);
      },
    });
    this.#election.start();
  }

  #newManager(client: Client): Manager {
    const { renewMs, random, clock } = this.#plan;
    const chosen = chosenControllers(['*', 'tokencleaner']);
    assert(typeof chosen !== 'string');
    const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
    const options: ControllersOptions = {
      kubeconfig: '',
      nodeMonitorGracePeriodMs: 5 * renewMs,
      nodeStartupGracePeriodMs: 6 * renewMs,
      log,
    };
    return new Manager({
      client: new LeadingClient(client, () => this.#election.isLeader),
      ...{ chosen, options, rootCa: 'PEM', random, log },
      monotonicMs: () => clock.monotonicMs(),
    });
  }

  get isLeader(): boolean {
    return !this.#isDead && this.#election.isLeader;
  }

  get isEnding(): boolean {
    return this.#isDead || this.#isStopping;
  }

  /** It does not run for a while, and does not notice. */
  sleep(byMs: number): void {
    if (this.#isDead || this.#waiting !== null) return;
    this.#waiting = [];
    const { timers } = this.#plan.cluster;
    timers.after(byMs, () => {
      const held = this.#waiting ?? [];
      this.#waiting = null;
      for (const action of held) timers.after(0, () => this.#whenRunning(action));
    });
  }

  /** It ends in the midst of whatever it does. */
  kill(): void {
    this.#end(() => {});
  }

  /** It ends as it is asked to, and gives its lease back. */
  async stop(): Promise<void> {
    if (this.#isDead || this.#waiting !== null) return this.kill();
    this.#isStopping = true;
    this.#manager.stop();
    await this.#election.stop();
    this.kill();
  }

  #end(told: () => void): void {
    if (this.#isDead) return;
    this.#manager.stop();
    this.#isDead = true;
    this.#waiting = null;
    for (const stream of this.#streams) stream.cancel();
    this.#streams.clear();
    told();
  }

  #whenRunning(action: () => void): void {
    if (this.#isDead) return;
    if (this.#waiting === null) action();
    else this.#waiting.push(action);
  }

  #client(): Client {
    const { cluster, clock } = this.#plan;
    const timers: Timers = {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      after: (delayMs, fire) => this.#after(delayMs, fire),
    };
    return {
      timers,
      metrics: cluster.metrics,
      retryAfterSeconds: 0,
      request: (request) => this.#request(request),
      send: (method, path, contentType, body, done, tag) => {
        this.#tell(method, path);
        const told: SendDone = (code, bytes, start, end, ofTag) =>
          this.#whenRunning(() => done(code, bytes, start, end, ofTag));
        return this.#isDead || cluster.send(method, path, contentType, body, told, tag);
      },
      stream: (path, sink) => this.#stream(path, sink),
      room: () => cluster.room(),
      random: () => cluster.random(),
      onRoom: () => {},
      close: () => {},
    };
  }

  #after(delayMs: number, fire: () => void): () => void {
    let isCancelled = false;
    const cancel = this.#plan.cluster.timers.after(delayMs, () =>
      this.#whenRunning(() => {
        if (!isCancelled) fire();
      }),
    );
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  #tell(method: string, path: string): void {
    if (this.#isDead || method === 'GET' || path.startsWith(LEADERS)) return;
    this.#plan.changes(this.#plan.identity, `${method} ${path}`);
  }

  #request(request: ClientRequest): Promise<ClientResponse> {
    this.#tell(request.method, request.path);
    return new Promise((resolve) => {
      if (this.#isDead) return;
      void this.#plan.cluster.request(request).then((answer) => {
        this.#whenRunning(() => resolve(answer));
      });
    });
  }

  #stream(path: string, sink: StreamSink): StreamHandle {
    const handle = this.#plan.cluster.stream(path, {
      onHead: (code, retryAfterSeconds) =>
        this.#whenRunning(() => sink.onHead(code, retryAfterSeconds)),
      onData: (bytes, start, end) => {
        if (this.#waiting === null) return this.#whenRunning(() => sink.onData(bytes, start, end));
        const copy = bytes.slice(start, end);
        return this.#whenRunning(() => sink.onData(copy, 0, copy.length));
      },
      onEnd: (error) => {
        this.#streams.delete(handle);
        this.#whenRunning(() => sink.onEnd(error));
      },
    });
    let isCancelled = false;
    this.#streams.add(handle);
    return {
      cancel: () => {
        if (isCancelled) return;
        isCancelled = true;
        this.#streams.delete(handle);
        handle.cancel();
      },
      pause: () => handle.pause(),
      resume: () => handle.resume(),
    };
  }
}
