// shell: `megaplane store`: opens a store and serves it as etcd
import { afterMs, everyMs } from '@megaplane/base/deferred';
import { randomBytes } from 'node:crypto';
import type { StorageOptions } from '@megaplane/store/contract';
import { type OpenStore, openStore } from '@megaplane/store/open';
import type { Store } from '@megaplane/store/store';
import type { Connection } from '@megaplane/wire/exchange';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import {
  type ListenOptions,
  type ListenTls,
  type Listener,
  listen,
} from '@megaplane/wire/listener';
import { listenOnThreads } from '@megaplane/wire/thread-listener';
import { type Auth, type AuthOptions, makeAuth } from '../auth/service/auth.ts';
import { alarmName, unlessCorrupt } from '../call/alarms.ts';
import { AutoCompaction, type AutoCompactionPolicy } from '../kv/auto-compaction.ts';
import { Compactor, compactHandler } from '../kv/compaction.ts';
import type { WireLimits } from '@megaplane/wire/limits';
import { EtcdContext, type EtcdLimits, MESSAGE_OVERHEAD_BYTES } from '../call/context.ts';
import { Gateway, streamsBody } from '../gateway/gateway.ts';
import { grpcOnly, httpHandler } from '../http/http.ts';
import { Health } from '../http/health.ts';
import { metricsText } from '../http/metrics.ts';
import { Origins } from '../http/origins.ts';
import { processSizes, processStats } from '../http/process-stats.ts';
import { Scrapes } from '../http/scrapes.ts';
import { varsText } from '../http/vars.ts';
import { registerLease } from '../lease/lease.ts';
import { registerMaintenance } from '../maintenance/maintenance.ts';
import { registerMembers } from '../maintenance/members.ts';
import { deleteHandler, putHandler } from '../kv/put.ts';
import { rangeHandler } from '../kv/range.ts';
import { rangeStreamFactory } from '../kv/range-stream.ts';
import { registerRecipes } from '../concurrency/recipes.ts';
import { registerHealth } from '../maintenance/grpc-health.ts';
import type { GroupView, Router } from '../call/router.ts';
import { ServedMethods } from '../call/served-methods.ts';
import { txnHandler } from '../kv/txn.ts';
import { WatchService } from '../watch/watch.ts';

const PROGRESS_RETRY_MS = 20;
/** Of one round of the event loop; what it reads is worked off in it, so others wait as long. */
const READ_MS_MAX = 4;
export const ETCD_LIMITS: EtcdLimits = {
  txnOpsMax: 128,
  requestBytesMax: 1_572_864,
  quotaBytes: 0,
};

/** One place to listen. */
export interface EtcdAddress {
  readonly host?: string;
  readonly port?: number;
  readonly unixPath?: string;
  readonly tls?: ListenTls;
  /** With `tls`: plain connections, too. */
  readonly alsoPlain?: boolean;
  /** See ListenOptions: certificates that change without a restart. */
  readonly currentTls?: () => ListenTls;
}

export interface EtcdServerOptions {
  readonly listen: readonly EtcdAddress[];
  /** Threads that own the sockets of each port of `listen`; 0, the default: the one that serves. */
  readonly threads?: number;
  /** Extra plain addresses for /metrics and /health, etcd's --listen-metrics-urls. */
  readonly listenMetrics?: readonly EtcdAddress[];
  /**
   * Addresses of the JSON gateway, probes, version and metrics, etcd's --listen-client-http-urls:
   * when there are any, `listen` serves gRPC alone.
   */
  readonly listenHttp?: readonly EtcdAddress[];
  /** Hosts that plain HTTP may be asked for, etcd's --host-whitelist; default all. */
  readonly hosts?: readonly string[];
  /** etcd's --enable-grpc-gateway: JSON below /v3/. Default true. */
  readonly hasGateway?: boolean;
  readonly advertiseClientUrls?: readonly string[];
  /** Shown in the list of members; nobody listens there. Default etcd's own. */
  readonly advertisePeerUrls?: readonly string[];
  readonly name?: string;
  readonly limits?: Partial<EtcdLimits>;
  /** etcd's --watch-progress-notify-interval. */
  readonly progressNotifyMs?: number;
  /** etcd's --auto-compaction-mode and -retention; default off. */
  readonly autoCompaction?: AutoCompactionPolicy;
  /** etcd's --metrics=extensive: the time of every call as a histogram. */
  readonly timesCalls?: boolean;
  readonly auth?: AuthOptions;
  /** Told before the first address listens whether users are enabled; throws to refuse. */
  readonly beforeListening?: (hasUsers: boolean) => void;
  /** Limits of connections that differ from the wire's own. */
  readonly wire?: Partial<WireLimits>;
  /** Origins of web pages that may use the JSON gateway, etcd's --cors; default none. */
  readonly origins?: readonly string[];
  /** Where this is one member of a group. */
  readonly member?: ServedMember;
}

/** What a member of a group puts in place of what a single one has. */
export interface ServedMember {
  readonly group: GroupView;
  /** Given once the context is made, which it needs. */
  router(context: EtcdContext, auth: Auth): Router;
  /** Methods of members among each other. */
  register(routes: GrpcRoutes, context: EtcdContext): void;
}

export interface RunStoreOptions extends EtcdServerOptions {
  readonly storage: StorageOptions;
  /** Called once when the log cannot go on: say so and end the process. */
  readonly onFailure: (message: string) => void;
}

export interface EtcdServer {
  readonly store: Store;
  /** In the order of `listen`. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** In the order of `listenHttp`. */
  readonly httpAddresses: readonly { readonly host: string; readonly port: number }[];
  /** In the order of `listenMetrics`. */
  readonly metricsAddresses: readonly { readonly host: string; readonly port: number }[];
  /** Lets calls in flight finish for `graceMs`, then closes; flushes the log. */
  close(graceMs?: number): Promise<void>;
}

export interface RunningStore extends EtcdServer {
  readonly opened: OpenStore;
}

/** Serves an open store as etcd; the store stays open when the server closes. */
export async function serveEtcd(
  opened: OpenStore,
  options: EtcdServerOptions,
): Promise<EtcdServer> {
  const { store } = opened;
  const limits = { ...ETCD_LIMITS, ...options.limits };
  const { member } = options;
  const nowMs = (): number => performance.now();
  const context = new EtcdContext(store, limits, opened, nowMs, member?.group ?? null);
  const auth = makeAuth(context, options.auth ?? {});
  options.beforeListening?.(auth.state.enabled);
  const watches = new WatchService(context, auth.guard);
  const compactor = new Compactor(context);
  const { routes, methods } = makeRoutes(context, auth, watches, compactor, options, () =>
    opened.defragment(),
  );
  const { health, metrics } = probes(opened, auth, watches, methods, context);
  const messageBytesMax = limits.requestBytesMax + MESSAGE_OVERHEAD_BYTES;
  const gateway =
    options.hasGateway === false ? null : new Gateway({ methods, messageBytesMax, later });
  const origins = new Origins(options.origins ?? []);
  const hosts = options.hosts ?? ['*'];
  const vars = (): string => varsText(context, processSizes(), process.argv);
  const handler = httpHandler({ health, metrics, gateway, hosts, origins, vars });
  const listeners: Listener[] = [];
  const close = async (asked = 0): Promise<void> => {
    // Nobody gets an answer any more from a store that has failed.
    const graceMs = store.hasFailed ? 0 : asked;
    clearInterval(progress);
    clearInterval(retry);
    stopCompaction();
    await Promise.all(listeners.map((listener) => listener.close(graceMs)));
  };
  const progress = everyMs(options.progressNotifyMs ?? 600_000, () => watches.notifyProgress());
  const retry = everyMs(PROGRESS_RETRY_MS, () => watches.retryProgress());
  const stopCompaction = startCompaction(compactor, store, options.autoCompaction ?? null);
  progress.unref();
  retry.unref();
  try {
    const wire = { readMsMax: READ_MS_MAX, ...options.wire };
    const isSilent = true;
    const https = options.listenHttp ?? [];
    const beside = https.length === 0 ? handler : grpcOnly;
    for (const address of options.listen) {
      const shared = { handler: beside, grpc: routes, streamsBody, limits: wire, isSilent };
      listeners.push(await listenFor(address, shared, options.threads ?? 0));
    }
    for (const address of https) {
      listeners.push(await listen({ ...address, handler, streamsBody, limits: wire, isSilent }));
    }
    // As with etcd, neither hosts nor origins are looked at there.
    const only = { gateway: null, hosts: ['*'], origins: null, vars: null };
    const probesOnly = httpHandler({ health, metrics, ...only });
    for (const address of options.listenMetrics ?? []) {
      listeners.push(await listen({ ...address, handler: probesOnly, isSilent }));
    }
  } catch (error) {
    await close();
    throw error;
  }
  const addresses = listeners.slice(0, options.listen.length).map(({ address }) => address);
  const others = listeners.slice(options.listen.length).map(({ address }) => address);
  const httpCount = options.listenHttp?.length ?? 0;
  const httpAddresses = others.slice(0, httpCount);
  return { store, addresses, httpAddresses, metricsAddresses: others.slice(httpCount), close };
}

/** Unix sockets stay with the thread that serves. */
function listenFor(
  { unixPath, ...address }: EtcdAddress,
  shared: Omit<ListenOptions, keyof EtcdAddress>,
  threads: number,
): Promise<Listener> {
  if (unixPath !== undefined) return listen({ ...address, unixPath, ...shared });
  return listenOnThreads({ ...address, ...shared, threads });
}

function makeRoutes(
  context: EtcdContext,
  auth: Auth,
  watches: WatchService,
  compactor: Compactor,
  options: EtcdServerOptions,
  defragment: () => Promise<void>,
): { readonly routes: GrpcRoutes; readonly methods: ServedMethods } {
  const routes = new GrpcRoutes({
    messageBytesMax: context.limits.requestBytesMax + MESSAGE_OVERHEAD_BYTES,
    messageTooLargeText: (bytes, bytesMax) =>
      `grpc: received message larger than max (${bytes} vs. ${bytesMax})`,
  });
  const nowMs = options.timesCalls === true ? context.nowMs : null;
  const gate = (connection: Connection): void => context.guard(connection);
  const { member } = options;
  const router = member?.router(context, auth) ?? null;
  const methods = new ServedMethods(routes, { guard: auth.guard, gate, nowMs, router });
  member?.register(routes, context);
  auth.register(methods);
  methods.unary('/etcdserverpb.KV/Range', rangeHandler(context));
  methods.call('/etcdserverpb.KV/RangeStream', rangeStreamFactory(context));
  methods.unary('/etcdserverpb.KV/Put', putHandler(context));
  methods.unary('/etcdserverpb.KV/DeleteRange', deleteHandler(context));
  methods.unary('/etcdserverpb.KV/Txn', txnHandler(context));
  methods.unary(
    '/etcdserverpb.KV/Compact',
    unlessCorrupt(context, compactHandler(context, compactor)),
  );
  methods.call('/etcdserverpb.Watch/Watch', watches.factory);
  registerLease(methods, context, drawLeaseId);
  const clientUrls = options.advertiseClientUrls ?? [];
  const peerUrls = options.advertisePeerUrls ?? ['http://localhost:2380'];
  const name = options.name ?? 'default';
  registerMaintenance(methods, context, compactor, defragment);
  registerMembers(methods, context, { name, clientUrls, peerUrls });
  registerRecipes(methods, context);
  registerHealth(methods, context.store);
  return { routes, methods };
}

function probes(
  opened: OpenStore,
  { state }: Auth,
  watches: WatchService,
  methods: ServedMethods,
  context: EtcdContext,
): { readonly health: Health; readonly metrics: Scrapes } {
  const { alarms } = opened.store;
  const raised = (): readonly string[] => alarms.list().map(({ kind }) => alarmName(kind));
  const health = new Health(opened.store, raised, () => context.group?.hasLeader !== false);
  const disk = opened.log?.times ?? null;
  const sources = { context, watches, methods, health, disk, process: processStats };
  let scrapes = 0;
  const authRevision = (): number => state.revision;
  const begin = () => metricsText({ ...sources, authRevision, scrapes: scrapes++ });
  return { health, metrics: new Scrapes(begin) };
}

/** Compacts by the clock; returns how to end it. */
function startCompaction(
  compactor: Compactor,
  store: Store,
  policy: AutoCompactionPolicy | null,
): () => void {
  if (policy === null) return () => {};
  const automatic = new AutoCompaction(policy, performance.now(), store.publishedRevision);
  const look = (): void => {
    if (store.isStandby) return;
    const revision = automatic.look(performance.now(), store.publishedRevision);
    if (revision === 0) return;
    compactor.compact(revision);
    automatic.done(performance.now(), revision);
  };
  const timer = everyMs(automatic.lookMs, look);
  timer.unref();
  return () => clearInterval(timer);
}

/** Calls back once after so many milliseconds; returns how to prevent it. */
function later(ms: number, callback: () => void): () => void {
  const timer = afterMs(ms, callback);
  timer.unref();
  return () => clearTimeout(timer);
}

function drawLeaseId(): { readonly high: number; readonly low: number } {
  const bytes = randomBytes(8);
  return { high: bytes.readUInt32LE(0) >>> 1, low: bytes.readUInt32LE(4) };
}

/** Opens a data directory and serves it: all of `megaplane store`. */
export async function runStore(options: RunStoreOptions): Promise<RunningStore> {
  const opened = openStore(options.storage);
  opened.store.onLogFailure(options.onFailure);
  try {
    const server = await serveEtcd(opened, options);
    return {
      ...server,
      opened,
      close: async (graceMs) => {
        await server.close(graceMs);
        await opened.close();
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
