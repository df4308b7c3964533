// shell: files, sockets and randomness of the page's process
/** Starts the page's server. */
import { setPriority } from 'node:os';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isLoopback } from '@megaplane/base/loopback';
import { replacePrivately } from '@megaplane/base/private-file';
import { createKubeClient } from '@megaplane/client/kube-client';
import { readNamed } from '../flags/named-file.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';
import { readProcesses } from '../observe/sources.ts';
import type { Source } from '../observe/sources.ts';
import type { Service } from '../service/service.ts';
import { loadPageFiles } from './files.ts';
import { PageData } from './page-data.ts';
import { openPageServer, type PageIdentity } from './page-server.ts';

const TOKEN_BYTES = 24;
const TOKEN = /^[A-Za-z0-9_-]{16,256}$/;
/** Whoever looks does not hold up what is looked at. */
const NICENESS = 10;
/** A server that says nothing for so long is away, and whoever looks is told. */
const ANSWER_MS_MAX = 10_000;
const ANSWER_BYTES_MAX = 16 * 2 ** 20;
/** The file is read again at most so often. */
const PROCESSES_MS = 1000;

export interface PageOptions {
  readonly kubeconfig: string;
  readonly listenAddress: HostPort;
  readonly allowedHost?: readonly string[];
  readonly tokenFile?: string;
  readonly processes?: string;
  readonly metrics: readonly Source[];
  readonly readOnly?: true;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
}

/** Resolves when it listens; rejects with a text for people. */
export async function startPage(options: PageOptions): Promise<Service> {
  const client = await createKubeClient({
    kubeconfig: options.kubeconfig,
    userAgent: 'megaplane-page',
    limits: { answerBytesMax: ANSWER_BYTES_MAX, requestTimeoutMs: ANSWER_MS_MAX },
  });
  setPriority(NICENESS);
  const files = loadPageFiles();
  // who asks before it is there waits for it, and is told
  files.catch((error: unknown) => {
    process.stderr.write(`megaplane: ${(error as Error).message}\n`);
  });
  const data = new PageData({
    client,
    kubeconfig: options.kubeconfig,
    sources: sourcesOf(options),
    isReadOnly: options.readOnly ?? false,
  });
  const { host, port } = options.listenAddress;
  const server = await openPageServer({
    host,
    port,
    identity: await identityOf(options),
    allowedHosts: options.allowedHost ?? [],
    token: tokenOf(options.tokenFile),
    files,
    data,
  });
  await data.start();
  return {
    listens: server.link,
    stop: async () => {
      data.stop();
      await server.close();
      client.close();
    },
  };
}

/** The token crosses no network in the clear: beyond the loopback the page has a certificate. */
async function identityOf(options: PageOptions): Promise<PageIdentity | undefined> {
  const { tlsCertFile = '', tlsPrivateKeyFile = '', listenAddress } = options;
  if ((tlsCertFile === '') !== (tlsPrivateKeyFile === '')) {
    throw new Error(
      '--tls-cert-file and --tls-private-key-file: one is of no use without the other',
    );
  }
  if (tlsCertFile !== '') {
    return {
      certificate: readNamed('--tls-cert-file', tlsCertFile).toString(),
      key: readNamed('--tls-private-key-file', tlsPrivateKeyFile).toString(),
    };
  }
  if (isLoopback(listenAddress.host)) return undefined;
  const { makeServingCertificate } = await import('../service/serving-certificate.ts');
  return makeServingCertificate([listenAddress.host, ...(options.allowedHost ?? [])]);
}

/** The token of a file, or a new one that the file holds from then on. */
function tokenOf(file: string | undefined): string {
  const made = randomBytes(TOKEN_BYTES).toString('base64url');
  if (file === undefined) return made;
  if (existsSync(file)) {
    const token = readFileSync(file, 'utf8').trim();
    if (TOKEN.test(token)) return token;
    throw new Error(
      `--token-file: ${file} holds no token (16 to 256 letters, digits, - and _); ` +
        'remove it, and one is made',
    );
  }
  replacePrivately(file, `${made}\n`);
  return made;
}

/** The programs of this machine, those that are named, and the API server in any case. */
function sourcesOf({ processes, metrics }: PageOptions): () => readonly Source[] {
  let kept: readonly Source[] = [];
  let readMs = -Infinity;
  return () => {
    if (performance.now() - readMs < PROCESSES_MS) return kept;
    readMs = performance.now();
    const local = processes === undefined ? [] : readProcesses(processes);
    const names = new Set(metrics.map(({ name }) => name));
    const all = [...metrics, ...local.filter(({ name }) => !names.has(name))];
    const hasServer = all.some(({ name }) => name === 'apiserver');
    const server = { name: 'apiserver', pid: 0, metrics: '' };
    kept = [
      ...(hasServer ? [] : [server]),
      ...all,
      { name: 'page', pid: process.pid, metrics: '' },
    ];
    return kept;
  };
}
