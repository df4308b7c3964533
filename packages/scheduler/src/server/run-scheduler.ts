// shell: the scheduler's clocks, timers and sockets
/** `megaplane scheduler`: finds nodes for pods on any Kubernetes API server. */
import { everyMs, nextTurn } from '@megaplane/base/deferred';
import { hostname } from 'node:os';
import type { Client } from '@megaplane/client/client';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import { processMetrics } from '@megaplane/client/process-metrics';
import { createEventRecorder } from '@megaplane/client/event-recorder';
import { createLeaderElection, type LeaderElection } from '@megaplane/client/leader-election';
import { serveSecurely, type SecureAddress } from '@megaplane/client/secure-endpoint';
import { systemClock } from '@megaplane/base/system-clock';
import { ApiWriter, type Log } from '../binding/api-writer.ts';
import { ClusterFeeds } from './cluster-feeds.ts';
import { PreBinder } from '../binding/pre-binder.ts';
import { DEFAULT_CONFIGURATION, type SchedulerConfiguration } from '../config/configuration.ts';
import { DEFAULT_SCHEDULER_NAME } from '../framework/runtime/profile.ts';
import { EventWriter } from '../binding/event-writer.ts';
import { Extender, type ExtenderCall, type Question } from '../extenders/extender.ts';
import { ExtenderCaller } from '../extenders/extender-caller.ts';
import type { GateStates } from '../config/schema/feature-gates.ts';
import { configz } from '../config/schema/configz.ts';
import { HealthCounts } from '@megaplane/client/health-counts';
import { healthPage, type HealthChecks } from '@megaplane/client/health-pages';
import { schedulerChecks } from './health-checks.ts';
import {
  answerPage,
  serveHttp,
  type Page,
  type PageRequest,
} from '@megaplane/client/http-endpoint';
import { podResourcesPage } from './pod-resources.ts';
import { flagzPage, statuszPage, type ProcessFacts } from '@megaplane/client/zpages';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { SchedulerMetrics } from '../metrics/text/scheduler-metrics.ts';
import type { Tie } from '../collections/tie-walk.ts';
import type { UserPlugin } from '../framework/runtime/user-plugin.ts';
import { SchedulingLoop } from './scheduling-loop.ts';
import { openLiveRoot, type LiveRoot, type LiveRootOptions } from '../sharding/live-root.ts';
import { rootText } from '../sharding/root-text.ts';
import { COMPATIBILITY, type Compatibility } from '../framework/compatibility.ts';
import type { Answer } from '../extenders/extender-answer.ts';

export interface SchedulerOptions {
  readonly kubeconfig: string;
  readonly configuration?: SchedulerConfiguration;
  /** Whether to wait to be elected; false for a scheduler that is alone. */
  readonly leaderElect: boolean;
  /** Decides ties; the same seed on the same events gives the same nodes. */
  readonly seed: number;
  readonly tie?: Tie;
  readonly connections: number;
  /** `host:port` of /metrics, /configz and health. */
  readonly metricsAddress: string;
  /** Events posted per second at most; 0: none. */
  readonly eventsPerSecondMax: number;
  readonly podMaxInUnschedulableMs: number;
  /** Every so many indexed decisions one is compared with full evaluation; default 0, none. */
  readonly checkedEvery?: number;
  /** Plugins of users that profiles may enable. */
  readonly plugins?: readonly UserPlugin[];
  /** Whose decisions are made where versions of kube-scheduler differ. */
  readonly compatibility?: Compatibility;
  /** Feature gates, for the metric that tells of them. */
  readonly gates?: GateStates;
  /** HTTPS beside the plain pages. */
  readonly secure?: SecureAddress | undefined;
  /** Values of the flags by name, for `/flagz`. */
  readonly flags?: ReadonlyMap<string, string>;
  /** Where shards join that look at the nodes; none: all is done here. */
  readonly shards?: LiveRootOptions;
  readonly log: Log;
}

export interface SchedulerService {
  readonly listens: string;
  /** Null without shards. */
  readonly shards: Pick<LiveRoot, 'address' | 'joined'> | null;
  stop(): Promise<void>;
  readonly failure: Promise<Error>;
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** As kube-scheduler tells of them. */
const PATHS: readonly string[] = [
  '/configz',
  '/flagz',
  '/healthz',
  '/livez',
  '/metrics',
  '/readyz',
];
const TICK_MS = 1000;
const FLUSH_MS = 30_000;
/** Bindings under way at most. More do not make the API server faster, but failures worse. */
const BINDINGS_MAX = 4000;

/** Starts the scheduler. Resolves when its endpoint listens; informers go on filling after that. */
export async function runScheduler(options: SchedulerOptions): Promise<SchedulerService> {
  const client = await createKubeClient({
    kubeconfig: options.kubeconfig,
    userAgent: 'megaplane-scheduler',
    limits: { connections: options.connections, inFlightMax: BINDINGS_MAX, queueMax: BINDINGS_MAX },
  });
  const program = new SchedulerProgram(client, options);
  const endpoint = await serveHttp(options.metricsAddress, (request) => program.pageAt(request));
  const { secure } = options;
  const secured =
    secure === undefined
      ? undefined
      : await serveSecurely(secure, client, (request, response) =>
          answerPage(request, response, (asked) => program.pageAt(asked)),
        );
  const shards = await program.openShards();
  program.start();
  const shown = secured === undefined ? '' : `; secure ${secured.url}`;
  return {
    listens: `${client.server}; metrics ${endpoint.url}/metrics${shown}`,
    failure: program.failure,
    shards,
    stop: async () => {
      await program.stop();
      client.close();
      await endpoint.close();
      await secured?.close();
    },
  };
}

class SchedulerProgram {
  readonly failure: Promise<Error>;
  readonly #client: KubeClient;
  readonly #options: SchedulerOptions;
  readonly #facts: ProcessFacts;
  readonly #health = new HealthCounts();
  readonly #checks: HealthChecks;
  readonly #core: SchedulerCore;
  readonly #metrics = new SchedulerMetrics(() => systemClock.monotonicMs() / 1000);
  readonly #feeds: ClusterFeeds;
  readonly #loop: SchedulingLoop;
  readonly #preBinder: PreBinder;
  readonly #election: LeaderElection | null;
  readonly #caller: ExtenderCaller;
  readonly #events: EventWriter;
  readonly #fail: (error: Error) => void;
  readonly #nowMs: () => number;
  #timers: NodeJS.Timeout[] = [];
  #isStopping = false;
  #shards: LiveRoot | null = null;

  constructor(client: KubeClient, options: SchedulerOptions) {
    this.#client = client;
    this.#facts = factsOf(options);
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<Error>();
    this.failure = promise;
    this.#fail = resolve;
    const configuration = options.configuration ?? DEFAULT_CONFIGURATION;
    const { extenders } = configuration;
    // Never back, whatever happens to the wall clock: pods that rest must not rest for an hour.
    const nowMs = (): number => client.timers.nowMs();
    this.#nowMs = nowMs;
    this.#caller = new ExtenderCaller(extenders);
    this.#core = createCore(configuration, options, (id) => this.#feeds.keyOfPod(id));
    if (options.gates !== undefined) this.#metrics.gates = options.gates;
    const { eventsPerSecondMax } = options;
    this.#events = new EventWriter({ client, host: hostname(), eventsPerSecondMax });
    const mayDecide = (): boolean => this.#election?.isLeader !== false;
    const writer = new ApiWriter({
      client,
      core: this.#core,
      metrics: this.#metrics,
      keyOf: (id) => this.#feeds.keyOfPod(id),
      events: this.#events,
      monotonicMs: () => systemClock.monotonicMs(),
      onProgress: () => this.#loop.wake(),
      undo: (writes) => this.#preBinder.write(writes),
      mayDecide,
      bindElsewhere: (call) => this.#bindElsewhere(call),
      log: options.log,
    });
    this.#preBinder = new PreBinder({
      client,
      core: this.#core,
      metrics: this.#metrics.work,
      onReady: (tag) => writer.bindDelayed(tag),
      onFailure: (tag, message) => writer.fail(tag, message),
      onWaiting: (tag, text) => writer.note(tag, 'BindingConditionsPending', text),
      onTrouble: (message) => options.log('warn', message),
      mayDecide,
    });
    this.#loop = new SchedulingLoop({
      core: this.#core,
      writer,
      preBinder: this.#preBinder,
      metrics: this.#metrics,
      clock: { nowMs, monotonicMs: () => systemClock.monotonicMs() },
      mayDecide,
      ask: (question) => this.#ask(client, question),
      onMismatch: (text) => options.log('error', text),
      defer: nextTurn,
    });
    this.#feeds = new ClusterFeeds({
      client,
      core: this.#core,
      keepsNodes: extenders.some(({ nodeCacheCapable: isShort }) => isShort !== true),
      nowMs,
      meter: this.#metrics.plugins,
      onChange: () => this.#loop.wake(),
      onPodGone: (id, undone) => {
        writer.forget(id);
        this.#preBinder.write(undone);
      },
      onSynced: () => this.#loop.setSynced(),
      onTrouble: (message) => options.log('warn', message),
    });
    this.#election = options.leaderElect ? this.#electionOn(client, configuration) : null;
    if (this.#election !== null) this.#metrics.leads = false;
    this.#checks = schedulerChecks(this.#election !== null, () => this.#feeds.isSynced);
  }

  /** Takes shards in from now on; null where none are wanted. */
  async openShards(): Promise<LiveRoot | null> {
    const { shards, log } = this.#options;
    if (shards === undefined) return null;
    const mayLead = (): boolean => this.#election?.isLeader !== false;
    const onTrouble = (message: string): void => log('warn', message);
    this.#shards = await openLiveRoot(shards, this.#core, mayLead, onTrouble);
    return this.#shards;
  }

  /** Why an extender did not bind a pod; empty when it did. */
  async #bindElsewhere(call: ExtenderCall): Promise<string> {
    const answer = await this.#caller.call(call);
    return answer.ok ? Extender.bindError(answer.value) : answer.text;
  }

  start(): void {
    this.#core.placement.meter = this.#metrics.plugins;
    this.#core.bell.meter = this.#metrics.plugins;
    this.#core.gatekeeper.meter = this.#metrics.plugins;
    this.#feeds.start();
    if (this.#election === null) this.#lead();
    else this.#election.start();
    const every = (periodMs: number, run: (nowMs: number) => void): void => {
      const timer = everyMs(periodMs, () => {
        run(this.#nowMs());
        this.#loop.wake();
      });
      this.#timers.push(timer);
    };
    every(TICK_MS, (nowMs) => this.#core.tick(nowMs));
    every(FLUSH_MS, (nowMs) => this.#core.flush(nowMs));
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    this.#isStopping = true;
    this.#loop.setLeading(false);
    await this.#election?.stop();
    this.#feeds.stop();
    this.#preBinder.stop();
    this.#caller.close();
    await this.#shards?.close();
  }

  pageAt({ path, query, accept }: PageRequest): Page | null {
    const facts = this.#facts;
    switch (path) {
      case '/metrics':
        return { contentType: METRICS_TYPE, text: this.#metricsText() + processMetrics() };
      case '/metrics/slis':
        return { contentType: METRICS_TYPE, text: this.#health.text(facts.startedMs / 1000) };
      case '/metrics/resources':
        return { contentType: METRICS_TYPE, text: '', pieces: podResourcesPage(this.#client) };
      case '/configz':
        return { contentType: 'application/json', text: this.#configz() };
      case '/statusz':
        return statuszPage(facts, accept, systemClock.nowMs());
      case '/flagz':
        return flagzPage(facts, accept);
      default:
        return healthPage(path, query, this.#checks, this.#health);
    }
  }

  #metricsText(): string {
    const own = this.#metrics.text(this.#core, this.#events.dropped);
    const host = this.#client.server.replace(/^[a-z]+:\/\//, '').replace(/\/.*$/, '');
    const shards = this.#shards === null ? '' : rootText(this.#shards.host);
    return own + shards + this.#client.metrics.requests.text(host);
  }

  #configz(): string {
    const { configuration = DEFAULT_CONFIGURATION, kubeconfig } = this.#options;
    return JSON.stringify(configz(configuration.complete, kubeconfig));
  }

  async #ask(client: Client, question: Question): Promise<readonly Answer[]> {
    if (question.kind === 'calls') {
      return Promise.all(question.calls.map((call) => this.#caller.call(call)));
    }
    if (question.kind === 'shards') {
      const none: Answer = { ok: false, text: 'there are no shards' };
      return this.#shards?.host.ask(question.round) ?? [none];
    }
    const slash = question.key.indexOf('/');
    const [namespace, name] = [question.key.slice(0, slash), question.key.slice(slash + 1)];
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const found = await client.request({ method: 'GET', path });
    if (found.ok) return [{ ok: true, value: found.object }];
    return [{ ok: false, text: found.status.message ?? `no answer: ${found.code}` }];
  }

  #lead(): void {
    if (this.#election !== null) this.#metrics.leads = true;
    this.#loop.setLeading(true);
  }

  #electionOn(client: Client, { leaderElection }: SchedulerConfiguration): LeaderElection {
    const { namespace, name, leaseDurationMs, renewDeadlineMs, retryPeriodMs } = leaderElection;
    const identity = `${hostname()}_${process.pid}_${this.#options.seed}`;
    const [component = DEFAULT_SCHEDULER_NAME] = this.#core.profiles.keys();
    const recorder = createEventRecorder({ client, component });
    const lease = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', namespace, name };
    return createLeaderElection({
      client,
      namespace,
      name,
      identity,
      leaseDurationMs,
      renewDeadlineMs,
      retryPeriodMs,
      onStartedLeading: () => {
        this.#options.log('info', `${identity} became leader`);
        recorder.event(lease, 'Normal', 'LeaderElection', `${identity} became leader`);
        this.#lead();
      },
      onStoppedLeading: () => {
        this.#metrics.leads = false;
        this.#loop.setLeading(false);
        // a stop gives the lease back, and has lost nothing
        if (this.#isStopping) return;
        // As upstream: what was assumed under the old term must not be acted on.
        this.#fail(new Error(`leader election lost: Lease ${namespace}/${name}`));
      },
    });
  }
}

function factsOf({ flags = new Map() }: SchedulerOptions): ProcessFacts {
  const startedMs = systemClock.nowMs() - process.uptime() * 1000;
  return {
    component: 'kube-scheduler',
    flags,
    startedMs,
    runtime: `node ${process.version}`,
    paths: PATHS,
  };
}

function createCore(
  configuration: SchedulerConfiguration,
  options: SchedulerOptions,
  keyOf: (id: number) => string,
): SchedulerCore {
  const { initialBackoffMs, maxBackoffMs } = configuration;
  return new SchedulerCore({
    extenders: configuration.extenders,
    plugins: options.plugins ?? [],
    profiles: configuration.profiles,
    compatibility: options.compatibility ?? COMPATIBILITY['1.36'],
    percentageOfNodesToScore: configuration.percentageOfNodesToScore,
    queueLimits: {
      initialBackoffMs,
      maxBackoffMs,
      unschedulableMs: options.podMaxInUnschedulableMs,
    },
    seed: options.seed,
    tie: options.tie ?? 'random',
    checkedEvery: options.checkedEvery ?? 0,
    keyOf,
  });
}
