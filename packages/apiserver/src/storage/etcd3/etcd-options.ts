// shell: reads the files that the flags name
/** The flags by which an API server finds its etcd, as kube-apiserver has them. */
import { readFileSync } from 'node:fs';
import { parseEndpoints, type Endpoint } from '@megaplane/etcd/client/endpoints';
import { findStorage } from '@megaplane/machinery/kinds';
import type { ConnectTls } from '@megaplane/wire/connect';
import { parseDuration as parseGoDuration } from '@megaplane/machinery/times';
import type { StorageMedia } from './stored-values.ts';

/** Upstream's time to live of events. */
export const EVENT_TTL_MS: number = 60 * 60_000;

/** Texts as given on the command line. */
export interface EtcdFlags {
  readonly etcdServers?: string;
  readonly etcdServersOverrides?: string;
  readonly etcdPrefix?: string;
  readonly etcdCafile?: string;
  readonly etcdCertfile?: string;
  readonly etcdKeyfile?: string;
  readonly etcdCompactionInterval?: string;
  readonly storageMediaType?: string;
  readonly eventTtl?: string;
}

/** Resources that are kept in a cluster of their own. */
export interface Override {
  readonly prefixes: readonly string[];
  readonly endpoints: readonly Endpoint[];
}

const SHAPE =
  '--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers ' +
  'are URLs, semicolon separated';

/** `/events#https://a:2379;https://b:2379,apps/deployments#...`; the core group is empty. */
export function parseOverrides(text: string): Override[] {
  const byServers = new Map<string, { prefixes: string[]; endpoints: Endpoint[] }>();
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const [name = '', servers, ...rest] = part.trim().split('#');
    const [group, resource, ...more] = name.split('/');
    const isShaped = resource !== undefined && resource !== '' && more.length === 0;
    if (!isShaped || group === undefined || servers === undefined || rest.length > 0) {
      throw new Error(`${SHAPE}: ${part.trim()}`);
    }
    const storage = findStorage(group === '' ? resource : `${resource}.${group}`);
    if (storage === undefined) {
      throw new Error(`--etcd-servers-overrides: ${name} is no resource of this server`);
    }
    const known = byServers.get(servers);
    if (known === undefined) {
      const endpoints = parseEndpoints('--etcd-servers-overrides', servers);
      byServers.set(servers, { prefixes: [storage.prefix], endpoints });
    } else known.prefixes.push(storage.prefix);
  }
  return [...byServers.values()];
}

/** `--storage-media-type`; protobuf unless said otherwise. */
export function parseMedia(text: string | undefined): StorageMedia {
  const media = text ?? 'application/vnd.kubernetes.protobuf';
  if (media === 'application/json' || media === 'application/vnd.kubernetes.protobuf') return media;
  throw new Error(
    `--storage-media-type: "${media}" invalid, allowed values: application/json, ` +
      'application/vnd.kubernetes.protobuf',
  );
}

/** A duration such as `5m0s`, in milliseconds. */
export function parseDuration(flag: string, text: string | undefined, fallbackMs: number): number {
  if (text === undefined) return fallbackMs;
  const nanos = text === '0' ? 0 : parseGoDuration(text);
  if (nanos === undefined || nanos < 0)
    throw new Error(`--${flag}: ${text} is no duration such as 5m0s`);
  return nanos / 1e6;
}

/** What makes TLS connections, read anew each time; checked once now. */
export function tlsReader(flags: EtcdFlags): () => ConnectTls {
  const { etcdCafile, etcdCertfile, etcdKeyfile } = flags;
  if ((etcdCertfile === undefined) !== (etcdKeyfile === undefined)) {
    const missing = etcdCertfile === undefined ? '--etcd-certfile' : '--etcd-keyfile';
    throw new Error(`${missing} is missing: a certificate and its key belong together`);
  }
  const read = (): ConnectTls => ({
    ...(etcdCafile === undefined ? {} : { ca: fileOf('--etcd-cafile', etcdCafile) }),
    ...(etcdCertfile === undefined ? {} : { cert: fileOf('--etcd-certfile', etcdCertfile) }),
    ...(etcdKeyfile === undefined ? {} : { key: fileOf('--etcd-keyfile', etcdKeyfile) }),
  });
  read();
  return read;
}

function fileOf(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${flag}: cannot be read (${why})`, { cause: error });
  }
}
