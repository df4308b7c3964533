// shell: sockets, files, clocks and the process around an API server
/** `megaplane apiserver`: store and API server in one process, over TLS and a Unix socket. */
import { afterMs, everyMs, guarded, nextTurn, pauseMs, tellErrors } from '@megaplane/base/deferred';
import { randomInt, randomUUID } from 'node:crypto';
import { accessSync, constants, readFileSync } from 'node:fs';
import { availableParallelism, hostname } from 'node:os';
import { isLoopback } from '@megaplane/base/loopback';
import { makePrivateDirectory } from '@megaplane/base/private-file';
import { LocalServices } from '../aggregator/local-services.ts';
import { publishProxyAuthority } from '../aggregator/proxy-authority.ts';
import { openAdmission, type AdmissionFlags } from '../admission/admission-flags.ts';
import { PatientCalls } from '../webhook/patient-calls.ts';
import { WebhookPool } from '../webhook/webhook-pool.ts';
import { createApiServer, type ServerOptions } from './assembly.ts';
import { openAuthorizers, type AuthorizationFlags } from '../authorization/access-flags.ts';
import {
  openAuthentication,
  signerOptions,
  type AuthenticationFlags,
  certificatesIn,
} from '../authentication/authentication-flags.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import { parseDuration } from '../storage/etcd3/etcd-options.ts';
import { probeLocally } from './local-probe.ts';
import { V8Profiler } from '../debug/v8-profiler.ts';
import { openStorage, type OpenStorage, type StorageFlags } from '../storage/open/open-storage.ts';
import { openAudit, type AuditFlags, type AuditService } from '../audit/audit-flags.ts';
import { readLimits, readsFairness, type LimitFlags } from './limits.ts';
import { processMetrics } from '../metrics/process-metrics.ts';
import { reloadCertificates } from '../pki/reload.ts';
import { Pieces } from './pieces.ts';
import {
  FRONT_PROXY_NAME,
  openPki,
  openStorePki,
  writeKubeconfigs,
  type Pki,
  type StorePki,
} from '../pki/pki-files.ts';
import { openRelay, type KubeletOptions } from '../kubelet/relay-options.ts';
import { checkEgressFile } from '../controlplane/egress-file.ts';
import { checkWebFlags, withWebFields } from '../controlplane/web-fields.ts';
import { servingFiles, tlsRules, type ServingFlags } from '../controlplane/serving-flags.ts';
import type { ApiServer } from './server.ts';
import { repairServices } from '../registry/service/services.ts';
import {
  localAddress,
  servingNames,
  shownEndpoint,
  type EndpointFlags,
  type ShownEndpoint,
} from '../controlplane/advertised-address.ts';
import { SESSION_SECONDS, ticketKeysOf } from '../pki/ticket-keys.ts';
import { EndpointLeases } from '../controlplane/endpoint-leases.ts';
import { firstAddressOf, serviceRangesOf } from '../controlplane/service-ranges.ts';
import { upkeepPolicy } from '../controlplane/bootstrap-policy.ts';
import { keepRequestsYoung } from './collector.ts';
import { upkeepSelf, UPKEEP_MS } from '../controlplane/self-upkeep.ts';
import { identityOfHost } from '../controlplane/server-identity.ts';
import type { BootstrapFacts } from '../controlplane/server-objects.ts';
import type { Storage } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import { TokenSigner } from '../authentication/token-signer.ts';
import { upkeepFlows } from '../flowcontrol/flow-upkeep.ts';
import type { EtcdServer } from '@megaplane/etcd/run-store';
import type { OpenStore } from '@megaplane/store/open';
import { listen, type Listener, type ListenTls } from '@megaplane/wire/listener';
import { listenOnThreads, type ThreadedListener } from '@megaplane/wire/thread-listener';
import { YamlThread } from '../request/yaml/yaml-thread.ts';

const TICK_MS = 1000;
/** History that is older is forgotten, as kube-apiserver has etcd do it. */
const COMPACT_MS = 5 * 60_000;
/** How often the standard flow schemas and priority levels are looked after. */
const FLOWS_MS = 60_000;
/** Connections get this long to finish when the server stops. */
const DRAIN_MS = 3000;
const BODY_BYTES_MAX: number = 4 * 1024 * 1024;
/** Of connections that renew leases; fairness weighs all else after it was read. */
const READ_MS_MAX = 6;
/** Connections without a request are ended after this time, as by kube-apiserver. */
const IDLE_MS_MAX = 90_000;
/** Of one server; `megaplane doctor network` says how many servers a crowd needs. */
const CONNECTIONS_MAX = 1_000_000;

/** Flags of the command; texts are as given on the command line. */
export interface ApiserverOptions
  extends
    StorageFlags,
    KubeletOptions,
    AuditFlags,
    LimitFlags,
    AdmissionFlags,
    AuthenticationFlags,
    AuthorizationFlags,
    ServingFlags,
    EndpointFlags {
  /** How often certificates are looked at; tests are impatient. */
  readonly tlsReloadMs?: number;
  readonly bindAddress: string;
  /** 0: a free one. */
  readonly securePort: number;
  /** Threads that own the sockets of the secure port; 0, the default: the one that serves. */
  readonly threads?: number;
  readonly unixSocket?: string;
  readonly durability?: string;
  readonly historyLimit?: string;
  /** Also serve the store as etcd there: `http://127.0.0.1:2379`, several by commas. */
  readonly listenClientUrls?: string;
  readonly clientCaFile?: string;
  readonly serviceClusterIpRange?: string;
  readonly memoryLimitBytes?: number;
  /** All flags of the command line by name, as `/flagz` tells them. */
  readonly flags?: ReadonlyMap<string, string>;
  /** Sets how much `log` writes, by klog's levels. */
  readonly setVerbosity?: (level: number) => void;
  readonly log: (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;
}

export interface ApiserverService {
  /** `https://127.0.0.1:6443` and the socket, for the ready line. */
  readonly listens: string;
  readonly url: string;
  readonly server: ApiServer;
  /** Ends watches, drains connections, flushes the store. */
  stop(): Promise<void>;
  /** Settles only when the store cannot go on. */
  readonly failure: Promise<Error>;
}

/** Starts the server. Rejects with an Error whose message says what is wrong and what to do. */
export async function runApiserver(options: ApiserverOptions): Promise<ApiserverService> {
  keepRequestsYoung();
  checkWebFlags(options);
  checkEgressFile(options.egressSelectorConfigFile);
  assertWritable(options.dataDir);
  // The store's lock first: of two that start on one new directory only one may make keys in it.
  const opened = await openStorage(options, options.log);
  try {
    return await serve(options, opened);
  } catch (error) {
    await opened.storage.close();
    throw error;
  }
}

async function serve(options: ApiserverOptions, opened: OpenStorage): Promise<ApiserverService> {
  const { storage, embedded, failure } = opened;
  const address = localAddress(options.bindAddress);
  const shown = shownEndpoint(options, options.bindAddress, storage.isShared);
  const serviceRanges = serviceRangesOf(options.serviceClusterIpRange, shown.address);
  const names = servingNames(options, shown.address, serviceRanges.map(firstAddressOf));
  const signsItself = options.serviceAccountSigningKeyFile === undefined;
  const pki = openPki(options.dataDir, names, Date.now(), signsItself);
  const { server, audit, webhooks, stopFollowing } = await makeServer(
    options,
    pki,
    storage,
    address,
  );
  const listeners = await openListeners(options, pki, server);
  const [secure] = listeners;
  const port = secure?.address.port ?? options.securePort;
  const url = `https://${address.includes(':') ? `[${address}]` : address}:${port}`;
  server.parts.services.serviceRanges = serviceRanges;
  const facts = factsOf(serviceRanges, shown, port);
  await new Promise((done) => {
    bootstrap(server.parts.world, facts, done);
  });
  upkeepPolicy(server.parts.world);
  repairServices(server.parts.world);
  openAggregation(server.parts.world, pki, options);
  writeKubeconfigs(options.dataDir, url, pki.authority, Date.now());
  const etcd = embedded === null ? null : await serveClients(options, embedded);
  server.parts.metrics.addSource(processMetrics);
  const { world } = server.parts;
  const warn = (message: string): void => options.log('warn', message);
  const own = { address: shown.address, port };
  const leases = shown.isLeased ? new EndpointLeases(world, own, warn) : null;
  await leases?.look();
  const timers = startTimers(server, storage, facts, leases);
  const stopReload =
    secure === undefined
      ? (): void => {}
      : reloadCertificates(
          secure,
          () => servingTls(options, pki),
          options.log,
          options.tlsReloadMs,
          () => trustAnew(server, options, pki),
        );
  const socket = options.unixSocket === undefined ? '' : `, unix:${options.unixSocket}`;
  return {
    listens: url + socket,
    url,
    server,
    failure,
    stop: async () => {
      server.announceStop();
      await leases?.leave();
      const graceMs = await beforeStop(options, embedded);
      timers.stop();
      stopReload();
      stopFollowing();
      server.drain();
      await Promise.all([
        ...listeners.map((listener) => listener.close(graceMs)),
        etcd?.close(graceMs),
      ]);
      await audit?.close();
      webhooks.close();
      await storage.close();
    },
  };
}

/** Waits as it is told to; resolves with what connections get to finish. */
async function beforeStop(options: LimitFlags, embedded: OpenStore | null): Promise<number> {
  // Of a store that has failed nobody gets an answer any more.
  if (embedded?.store.hasFailed === true) return 0;
  await pause(delayOf(options));
  return DRAIN_MS;
}

/** `--shutdown-delay-duration`: not ready any more, but serving as before. */
function delayOf({ shutdownDelayDuration }: LimitFlags): number {
  return parseDuration('shutdown-delay-duration', shutdownDelayDuration, 0);
}

function pause(ms: number): Promise<void> {
  return ms === 0 ? Promise.resolve() : pauseMs(ms);
}

/** Read at the start, and again whenever a file has changed. */
function servingTls(options: ApiserverOptions, pki: Pki): ListenTls {
  const files = servingFiles(options);
  const clientCa = [
    ...userAuthorities(options, pki),
    ...otherAuthorities(options.requestheaderClientCaFile),
  ];
  return {
    ...tlsRules(options),
    key: readOr(files.key, pki.serving.key),
    cert: readOr(files.certificate, pki.serving.certificate),
    clientCa,
    ticketKeys: ticketKeysOf(pki.authority, clientCa),
    sessionSeconds: SESSION_SECONDS,
  };
}

/** Authorities of clients may be others than at the start. */
function trustAnew(server: ApiServer, options: ApiserverOptions, pki: Pki): void {
  const users = userAuthorities(options, pki);
  const proxies = otherAuthorities(options.requestheaderClientCaFile);
  const { frontProxy } = server.parts;
  frontProxy?.trust(proxies.flatMap(certificatesIn), users.flatMap(certificatesIn));
  tellOfProxies(server.parts.world, pki, options);
}

/** Tells API servers behind this one whom to believe, and registers what is served here. */
function openAggregation(world: World, pki: Pki, options: ApiserverOptions): void {
  tellOfProxies(world, pki, options);
  new LocalServices(world).start();
}

function tellOfProxies(world: World, pki: Pki, options: ApiserverOptions): void {
  const files = options.requestheaderClientCaFile;
  publishProxyAuthority(world, {
    clientCa: userAuthorities(options, pki).join(''),
    proxyCa: readOr(files, pki.frontProxyAuthority),
    names: files === undefined ? [FRONT_PROXY_NAME] : namesIn(options.requestheaderAllowedNames),
  });
}

interface Made {
  readonly server: ApiServer;
  readonly audit: AuditService | null;
  readonly webhooks: WebhookPool;
  /** Files are followed no longer. */
  readonly stopFollowing: () => void;
}

/** The server as its flags want it, without a socket. */
async function makeServer(
  options: ApiserverOptions,
  pki: Pki,
  storage: Storage,
  address: string,
): Promise<Made> {
  const signing = signerOptions(options, await pki.tokenKey);
  const signer = new TokenSigner(signing.key, signing.options);
  const pool = new WebhookPool();
  const yaml = new YamlThread();
  const webhooks = new PatientCalls(pool);
  const audit = openAudit(options, { caller: webhooks, log: options.log });
  const edge = {
    caller: webhooks,
    nowMs: () => Date.now(),
    log: (message: string) => options.log('warn', message),
    later: (ms: number, work: () => void) => void afterMs(ms, work),
  };
  const authorizers = openAuthorizers(options, edge);
  const authentication = openAuthentication(
    options,
    edge,
    userAuthorities(options, pki),
    signer.audiences,
  );
  tellErrors((error) => options.log('error', errorText(error)));
  const server = createApiServer({
    storage,
    authorizers: authorizers.links,
    edge: serverEdge(yaml),
    address: `${options.externalHostname ?? address}:${options.securePort}`,
    process: processParts(options),
    signer,
    stopwatchMs: () => performance.now(),
    clockMs: readsFairness(options) ? (): number => performance.now() : null,
    tracking: {
      ...readLimits(options),
      auditor: audit?.auditor ?? null,
      log: (message) => options.log('warn', message),
    },
    relay: openRelay(options, pki.kubeletClient, pki.frontProxy),
    tokenReaders: authentication.readers,
    anonymous: authentication.anonymous,
    frontProxy: authentication.frontProxy,
    webhooks,
    ...openAdmission(options),
  });
  server.parts.metrics.addSource((lines) => {
    authorizers.metrics.print(lines);
    authentication.reloads.print(lines);
    pool.requests.print(lines);
  });
  audit?.addTo(server.parts.metrics);
  const stopFollowing = (): void => {
    authorizers.stop();
    authentication.stop();
    yaml.close();
  };
  return { server, audit, webhooks: pool, stopFollowing };
}

/** With the place where it was thrown: all that is left of it. */
function errorText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Time, chance and turns of the event loop. */
function serverEdge(yaml: YamlThread): ServerOptions['edge'] {
  const pieces = new Pieces(
    (work) => nextTurn(work),
    () => performance.now(),
  );
  return {
    nowMs: () => Date.now(),
    below: (n) => randomInt(n),
    uuid: () => randomUUID(),
    defer: (work) => nextTurn(guarded(work)),
    deferPiece: (work) => pieces.add(guarded(work)),
    runPiece: (work, waits) => pieces.run(guarded(work), waits),
    walk: (steps, waits, done) => pieces.walk(steps, waits, done),
    readYaml: (body, sender, done) => yaml.read(body, sender, guarded(done)),
  };
}

function processParts(options: ApiserverOptions): NonNullable<ServerOptions['process']> {
  return {
    flags: options.flags ?? new Map<string, string>(),
    startedMs: Date.now() - process.uptime() * 1000,
    runtime: `node ${process.version}`,
    probe: probeLocally,
    profiler: options.profiling === false ? null : new V8Profiler(),
    setVerbosity: options.setVerbosity ?? null,
  };
}

async function openListeners(
  options: ApiserverOptions,
  pki: Pki,
  server: ApiServer,
): Promise<Listener[]> {
  const { handle, ownerOfBody } = server;
  const doors = { handler: handle, bodyOwner: ownerOfBody };
  const { handler, bodyOwner } = withWebFields(options, doors);
  const bounds = {
    ...{ bodyBytesMax: BODY_BYTES_MAX, readMsMax: READ_MS_MAX },
    connectionsMax: CONNECTIONS_MAX,
  };
  const streamsMax = options.http2MaxStreamsPerConnection ?? 0;
  const perSource = options.maxConnectionsPerSource ?? 0;
  const limits = {
    ...bounds,
    idleMsMax: IDLE_MS_MAX,
    ...(streamsMax === 0 ? {} : { streamsMax }),
    ...(perSource === 0 ? {} : { connectionsPerSourceMax: perSource }),
  };
  const onError = (error: unknown): void => {
    options.log('error', errorText(error));
  };
  const threads = options.threads ?? 0;
  warnOfThreads(threads, options.log);
  let secure: ThreadedListener | null = null;
  // clients that ask while it starts are told by no check
  if (threads > 0) server.parts.health.addQuiet('threads', () => secure?.fault() ?? null);
  secure = await listenOnThreads({
    threads,
    host: options.bindAddress,
    port: options.securePort,
    tls: servingTls(options, pki),
    ...(options.disableHttp2Serving === true ? { speaksHttp2: false } : {}),
    handler,
    bodyOwner,
    limits,
    onError,
  }).catch((error: unknown) => {
    throw new Error(listenFault(error), { cause: error });
  });
  if (options.unixSocket === undefined) return [secure];
  try {
    const unixPath = options.unixSocket;
    return [secure, await listen({ unixPath, handler, bodyOwner, limits, onError })];
  } catch (error) {
    await secure.close();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--unix-socket: ${why}`, { cause: error });
  }
}

/** More threads than cores cost memory and turns, and win nothing. */
function warnOfThreads(threads: number, log: ApiserverOptions['log']): void {
  const cores = availableParallelism();
  if (threads < cores) return;
  log(
    'warn',
    `--threads ${threads}: this machine has ${cores} cores, of which one serves; ` +
      `more than ${Math.max(1, cores - 1)} threads wait for one another`,
  );
}

/** Says which flag is at fault: a port can be changed, an address must be the machine's. */
function listenFault(error: unknown): string {
  const { message, cause } = error as Error;
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  return code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN'
    ? `--bind-address: ${message}`
    : `--secure-port: ${message} (--secure-port 0 takes a free one)`;
}

/** The etcd side of the store, where it is asked for; its code is loaded only then. */
async function serveClients(
  options: ApiserverOptions,
  opened: OpenStore,
): Promise<EtcdServer | null> {
  const text = options.listenClientUrls ?? '';
  if (text === '') return null;
  const urls = text.split(',').map((url) => clientUrl(url.trim()));
  const { serveEtcd } = await import('@megaplane/etcd/run-store');
  const names = urls.map(hostOf).filter((name) => !isAnyAddress(name));
  const isSecure = urls.some(({ protocol }) => protocol === 'https:');
  const tls = isSecure ? storeTls(openStorePki(options.dataDir, names, Date.now())) : null;
  const serving = serveEtcd(opened, {
    listen: urls.map((url) => ({
      host: hostOf(url),
      port: Number(url.port === '' ? '2379' : url.port),
      ...(url.protocol === 'https:' && tls !== null ? { tls } : {}),
    })),
    advertiseClientUrls: urls.map((url) => url.origin),
  });
  return serving.catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--listen-client-urls: ${why}`, { cause: error });
  });
}

function storeTls({ authority, serving }: StorePki): ListenTls {
  const clientCa = [authority.certificate];
  return { key: serving.key, cert: serving.certificate, clientCa, requiresClientCert: true };
}

function hostOf({ hostname }: URL): string {
  return hostname.replaceAll(/[[\]]/g, '');
}

function isAnyAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

function clientUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error(`--listen-client-urls: ${text} is no URL such as http://127.0.0.1:2379`);
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new Error(
      `--listen-client-urls: ${text}: a plain port is open to everybody who reaches it; ` +
        'use 127.0.0.1, or https, where clients show a certificate of the authority in ' +
        'pki/store-ca.crt',
    );
  }
  return url;
}

function startTimers(
  server: ApiServer,
  storage: Storage,
  facts: BootstrapFacts,
  leases: EndpointLeases | null,
): { stop(): void } {
  let compactTo = 0;
  const identity = identityOfHost(hostname(), randomUUID());
  const keepUp = (): void => {
    upkeepSelf(server.parts.world, facts, identity);
    void leases?.look();
  };
  upkeepSelf(server.parts.world, facts, identity);
  const self = everyMs(UPKEEP_MS, keepUp);
  const tick = everyMs(TICK_MS, () => server.tick(Date.now()));
  upkeepFlows(server.parts.world);
  const upkeep = everyMs(FLOWS_MS, () => upkeepFlows(server.parts.world));
  const compact = everyMs(COMPACT_MS, () => {
    if (compactTo > 0) storage.compact(compactTo);
    compactTo = storage.publishedRevision;
  });
  return {
    stop: () => {
      clearInterval(tick);
      clearInterval(compact);
      clearInterval(upkeep);
      clearInterval(self);
    },
  };
}

function factsOf(
  serviceRanges: readonly string[],
  { address, leavesEndpoints }: ShownEndpoint,
  port: number,
): BootstrapFacts {
  return {
    leavesEndpoints,
    serviceAddress: firstAddressOf(serviceRanges[0] ?? ''),
    serviceRanges,
    address,
    port,
    startedAt: `${new Date().toISOString().slice(0, 19)}Z`,
  };
}

function assertWritable(dataDir: string): void {
  try {
    makePrivateDirectory(dataDir);
    accessSync(dataDir, constants.W_OK);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--data-dir: ${dataDir} cannot be written (${why}); choose another directory`, {
      cause: error,
    });
  }
}

function namesIn(list = ''): string[] {
  return list.split(',').filter((name) => name !== '');
}

function readOr(file: string | undefined, text: string): string {
  return file === undefined ? text : readFileSync(file, 'utf8');
}

/** PEM of those whose client certificates are users. */
function userAuthorities(options: ApiserverOptions, pki: Pki): string[] {
  return [pki.authority.certificate, ...otherAuthorities(options.clientCaFile)];
}

function otherAuthorities(file: string | undefined): string[] {
  return file === undefined ? [] : [readFileSync(file, 'utf8')];
}
