// shell: files and sockets of a store
/** The process around `megaplane store`. */
import { readFileSync } from 'node:fs';
import { runStore } from '@megaplane/etcd/run-store';
import type { EtcdAddress } from '@megaplane/etcd/run-store';
import type { Durability, PrefixPolicy } from '@megaplane/store/contract';
import type { Service } from './service.ts';

const CLIENT_PORT = 2379;
const DRAIN_MS = 3000;

export interface StoreProgramOptions {
  readonly dataDir: string;
  readonly name: string;
  readonly listenClientUrls: string;
  readonly advertiseClientUrls?: string;
  readonly listenMetricsUrls?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly trustedCaFile?: string;
  readonly clientCertAuth?: true;
  readonly quotaBackendBytes: number;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  readonly watchProgressNotifyInterval: number;
  readonly memoryLimit?: number;
  /** Of keys under no listed prefix. */
  readonly base: Durability;
  readonly prefixes: readonly PrefixPolicy[];
}

export async function startStore(options: StoreProgramOptions): Promise<Service> {
  const urls = parseUrls('--listen-client-urls', options.listenClientUrls);
  const { promise: failure, resolve: fail } = Promise.withResolvers<Error>();
  const store = await runStore({
    storage: {
      dataDir: options.dataDir,
      durability: options.base,
      prefixes: options.prefixes,
      ...(options.memoryLimit === undefined ? {} : { memoryBytesMax: options.memoryLimit }),
    },
    name: options.name,
    listen: urls.map((url) => addressOf(url, options)),
    listenMetrics: parseUrls('--listen-metrics-urls', options.listenMetricsUrls ?? '').map((url) =>
      addressOf(url, options),
    ),
    advertiseClientUrls: (options.advertiseClientUrls ?? options.listenClientUrls).split(','),
    limits: {
      txnOpsMax: options.maxTxnOps,
      requestBytesMax: options.maxRequestBytes,
      quotaBytes: options.quotaBackendBytes,
    },
    progressNotifyMs: options.watchProgressNotifyInterval,
    onFailure: (message) => fail(new Error(message)),
  });
  const shown = store.addresses.map(({ host, port }, index) => {
    const name = host.includes(':') ? `[${host}]` : host;
    return `${urls[index]?.protocol ?? 'http:'}//${name}:${port}`;
  });
  return { listens: shown.join(', '), failure, stop: () => store.close(DRAIN_MS) };
}

function parseUrls(flag: string, text: string): URL[] {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  return parts.map((part) => {
    const url = URL.parse(part.trim());
    if (url === null || !['http:', 'https:', 'unix:'].includes(url.protocol)) {
      throw new Error(`${flag}: ${part} is no URL such as http://127.0.0.1:${CLIENT_PORT}`);
    }
    return url;
  });
}

function addressOf(url: URL, options: StoreProgramOptions): EtcdAddress {
  if (url.protocol === 'unix:') return { unixPath: url.pathname };
  const host = url.hostname.replaceAll(/[[\]]/g, '');
  const address = { host, port: Number(url.port === '' ? CLIENT_PORT : url.port) };
  if (url.protocol === 'http:') {
    assertLoopback(host, url);
    return address;
  }
  const { certFile, keyFile, trustedCaFile } = options;
  if (certFile === undefined || keyFile === undefined) {
    throw new Error(`${url.href}: https needs --cert-file and --key-file`);
  }
  const tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
  if (trustedCaFile === undefined) return { ...address, tls };
  const clientCa = readFileSync(trustedCaFile, 'utf8');
  const requiresClientCert = options.clientCertAuth ?? false;
  return { ...address, tls: { ...tls, clientCa, requiresClientCert } };
}

/** Whoever reaches a plain port owns the data, so it must not be reached from elsewhere. */
function assertLoopback(host: string, url: URL): void {
  if (host === 'localhost' || host === '::1' || host.startsWith('127.')) return;
  throw new Error(
    `${url.origin}: a plain port is open to everybody who reaches it; listen on 127.0.0.1, ` +
      'or use https with --cert-file, --key-file, --trusted-ca-file and --client-cert-auth',
  );
}
