// shell: files and sockets of a store
/** The process around `megaplane store`. */
import { isLoopback } from '@megaplane/base/loopback';
import { type EtcdAddress, type RunStoreOptions, runStore } from '@megaplane/etcd/run-store';
import type { Durability, PrefixPolicy } from '@megaplane/store/contract';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { ListenTls } from '@megaplane/wire/listener';
import { compactionPolicy } from '../flags/compaction-flags.ts';
import type { JournalFlags } from '../flags/journal-flags.ts';
import { readNamed } from '../flags/named-file.ts';
import type { Service } from '../service/service.ts';
import type { ServingFlags } from '../flags/store-flags.ts';
import { storeTls } from './store-tls.ts';

const CLIENT_PORT = 2379;
const DRAIN_MS = 3000;

export interface StoreProgramOptions extends ServingFlags, JournalFlags {
  readonly dataDir: string;
  readonly name: string;
  readonly listenClientUrls: string;
  readonly advertiseClientUrls?: string;
  readonly initialAdvertisePeerUrls?: string;
  readonly listenMetricsUrls?: string;
  readonly quotaBackendBytes: number;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  readonly threads: number;
  readonly watchProgressNotifyInterval: number;
  readonly autoCompactionMode: string;
  readonly autoCompactionRetention: string;
  readonly memoryLimit?: number;
  /** Of keys under no listed prefix. */
  readonly base: Durability;
  readonly prefixes: readonly PrefixPolicy[];
  /** Superseded versions kept of keys under no listed prefix. */
  readonly historyBytesMax: number;
  /** Tells the operator. */
  readonly warn: (message: string) => void;
}

export async function startStore(options: StoreProgramOptions): Promise<Service> {
  const urls = parseUrls('--listen-client-urls', options.listenClientUrls);
  const metricsUrls = parseUrls('--listen-metrics-urls', options.listenMetricsUrls ?? '');
  const httpUrls = parseUrls('--listen-client-http-urls', options.listenClientHttpUrls ?? '');
  const currentTls = storeTls(options, [...urls, ...httpUrls, ...metricsUrls]);
  for (const url of metricsUrls) warnOfMetrics(url, options);
  const { autoCompactionMode, autoCompactionRetention } = options;
  const autoCompaction = compactionPolicy(autoCompactionMode, autoCompactionRetention);
  const { promise: failure, resolve: fail } = Promise.withResolvers<Error>();
  const settings: RunStoreOptions = {
    storage: {
      dataDir: options.dataDir,
      durability: options.base,
      prefixes: options.prefixes,
      historyBytesMax: options.historyBytesMax,
      ...(options.memoryLimit === undefined ? {} : { memoryBytesMax: options.memoryLimit }),
    },
    name: options.name,
    threads: options.threads,
    listen: addressesOf(urls, currentTls),
    listenHttp: addressesOf(httpUrls, currentTls),
    listenMetrics: addressesOf(metricsUrls, currentTls),
    hosts: options.hostWhitelist,
    hasGateway: options.enableGrpcGateway !== false,
    timesCalls: options.metrics === 'extensive',
    origins: options.cors,
    beforeListening: (hasUsers) => {
      for (const url of [...urls, ...httpUrls]) assertGuarded(url, currentTls, hasUsers);
    },
    auth: {
      token: options.authToken,
      tokenTtlMs: options.authTokenTtl * 1000,
      bcryptCost: options.bcryptCost,
      usesCertificates: options.trustedCaFile !== undefined,
    },
    wire: {
      streamsMax: options.maxConcurrentStreams,
      connectionsMax: options.maxConnections,
      keepaliveMs: options.grpcKeepaliveInterval,
      keepaliveTimeoutMs: options.grpcKeepaliveTimeout,
    },
    ...(options.initialAdvertisePeerUrls === undefined
      ? {}
      : { advertisePeerUrls: options.initialAdvertisePeerUrls.split(',') }),
    advertiseClientUrls: (options.advertiseClientUrls ?? options.listenClientUrls).split(','),
    limits: {
      txnOpsMax: options.maxTxnOps,
      requestBytesMax: options.maxRequestBytes,
      quotaBytes: options.quotaBackendBytes,
    },
    progressNotifyMs: options.watchProgressNotifyInterval,
    ...(autoCompaction === null ? {} : { autoCompaction }),
    onFailure: (message) => fail(new Error(message)),
  };
  const { journal } = options;
  const store =
    journal === undefined ? await runStore(settings) : await onJournal(journal, settings, options);
  const groups = placesOf(urls);
  const shown = store.addresses.flatMap(({ host, port }, index) => {
    const name = host.includes(':') ? `[${host}]` : host;
    return (groups[index] ?? []).map(({ protocol }) => `${protocol}//${name}:${port}`);
  });
  return { listens: shown.join(', '), failure, stop: () => store.close(DRAIN_MS) };
}

/** A member of a group: calls to the leader show the certificate that this one serves with. */
async function onJournal(
  url: string,
  settings: RunStoreOptions,
  options: StoreProgramOptions,
): Promise<Pick<Awaited<ReturnType<typeof runStore>>, 'addresses' | 'close'>> {
  // A store on a file pays nothing for clients of engines that it does not use.
  const { journalAccess, openJournal } = await import('@megaplane/etcd/journal');
  const { runMember } = await import('@megaplane/etcd/run-member');
  const log = (message: string): void => options.warn(message);
  const journal = await openJournal(url, journalAccess(options), log);
  try {
    const member = await runMember({
      ...settings,
      journal,
      memberName: options.memberName ?? options.name,
      leaseMs: options.leaderLease,
      readsByJournal: options.linearizableRead === 'journal',
      ...(options.stateDir === undefined ? {} : { stateDir: options.stateDir }),
      stateEvery: options.stateEvery,
      tls: () => leaderTls(options),
      log,
    });
    const close = async (graceMs?: number): Promise<void> => {
      await member.close(graceMs);
      await journal.close();
    };
    return { addresses: member.addresses, close };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

function leaderTls({ trustedCaFile, certFile, keyFile }: StoreProgramOptions): ConnectTls {
  return {
    ...(trustedCaFile === undefined ? {} : { ca: readNamed('--trusted-ca-file', trustedCaFile) }),
    ...(certFile === undefined ? {} : { cert: readNamed('--cert-file', certFile) }),
    ...(keyFile === undefined ? {} : { key: readNamed('--key-file', keyFile) }),
  };
}

/** Ports as written: a URL does not tell that of its scheme, on which etcd listens then. */
const ports = new WeakMap<URL, string>();
const WRITTEN_PORT = /^[a-z]+:\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^/?#:]*):(\d+)/i;

function portOf(url: URL): string {
  return ports.get(url) ?? url.port;
}

function parseUrls(flag: string, text: string): URL[] {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  return parts.map((part) => {
    const url = URL.parse(part.trim());
    if (url === null || !['http:', 'https:', 'unix:'].includes(url.protocol)) {
      throw new Error(`${flag}: ${part} is no URL such as http://127.0.0.1:${CLIENT_PORT}`);
    }
    const port = WRITTEN_PORT.exec(part.trim())?.[1];
    if (port !== undefined) ports.set(url, String(Number(port)));
    return url;
  });
}

function hostOf(url: URL): string {
  return url.hostname.replaceAll(/[[\]]/g, '');
}

/** Addresses by where they listen: as with etcd, one port may be of plain HTTP and TLS. */
function placesOf(urls: readonly URL[]): URL[][] {
  const places = new Map<string, URL[]>();
  for (const [index, url] of urls.entries()) {
    // Free ports are different ones.
    const port = portOf(url);
    const place = port === '0' ? `free ${index}` : `${url.hostname}:${port}${url.pathname}`;
    const found = places.get(place) ?? [];
    if (!found.some(({ protocol }) => protocol === url.protocol)) found.push(url);
    places.set(place, found);
  }
  return [...places.values()];
}

function addressesOf(
  urls: readonly URL[],
  currentTls: (() => ListenTls) | null,
): readonly EtcdAddress[] {
  return placesOf(urls).map((place) => {
    const secure = place.find(({ protocol }) => protocol === 'https:');
    const [first] = place;
    const alsoPlain = secure !== undefined && place.length > 1;
    return { ...addressOf(secure ?? (first as URL), currentTls), alsoPlain };
  });
}

function addressOf(url: URL, currentTls: (() => ListenTls) | null): EtcdAddress {
  if (url.protocol === 'unix:') return { unixPath: url.pathname };
  const port = Number(portOf(url) || CLIENT_PORT);
  const address = { host: hostOf(url), port };
  if (url.protocol === 'http:' || currentTls === null) return address;
  return { ...address, tls: currentTls(), currentTls };
}

/** Whoever reaches an unguarded port owns the data, so it must not be reached from elsewhere. */
function assertGuarded(url: URL, currentTls: (() => ListenTls) | null, hasUsers: boolean): void {
  if (url.protocol === 'unix:' || isLoopback(url.hostname)) return;
  const asksForCertificates = currentTls?.().requiresClientCert === true;
  if (url.protocol === 'https:' && (asksForCertificates || hasUsers)) return;
  const what = url.protocol === 'https:' ? 'https without client certificates' : 'a plain port';
  throw new Error(
    `${url.origin}: ${what} is open to everybody who reaches it; listen on 127.0.0.1, or use ` +
      'https with --cert-file, --key-file, --trusted-ca-file and --client-cert-auth, or https ' +
      'once users are enabled (etcdctl auth enable)',
  );
}

function warnOfMetrics(url: URL, { warn }: StoreProgramOptions): void {
  if (url.protocol === 'unix:' || isLoopback(url.hostname)) return;
  warn(`${url.origin}: everybody who reaches it may read metrics and health, but no data`);
}
