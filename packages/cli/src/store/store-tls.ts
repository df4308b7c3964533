// shell: certificates of a store
/** From etcd's TLS flags to what listeners take, certificates of our own making included. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { makePrivateDirectory, replacePrivately } from '@megaplane/base/private-file';
import { issueCertificate } from '@megaplane/apiserver/certificates';
import { type TlsFlags, type TlsVersion, cipherList, openTls } from '@megaplane/etcd/tls-files';
import type { ListenTls } from '@megaplane/wire/listener';
import type { ServingFlags } from '../flags/store-flags.ts';

const YEAR_MS = 365 * 24 * 3_600_000;
/** A certificate of ours that ends within this is made anew at the start. */
const RENEW_MS = 24 * 3_600_000;

export interface TlsOptions extends ServingFlags {
  readonly dataDir: string;
  readonly warn: (message: string) => void;
}

/** What https addresses are served with; null when there is none. Throws what is missing. */
export function storeTls(options: TlsOptions, urls: readonly URL[]): (() => ListenTls) | null {
  const secure = urls.find((url) => url.protocol === 'https:');
  assertComplete(options);
  if (secure === undefined) return null;
  const files = servingFiles(options, urls);
  if (files === null) {
    throw new Error(`${secure.href}: https needs --cert-file and --key-file, or --auto-tls`);
  }
  const flags: TlsFlags = {
    ...files,
    ...(options.trustedCaFile === undefined ? {} : { trustedCaFile: options.trustedCaFile }),
    ...(options.clientCrlFile === undefined ? {} : { clientCrlFile: options.clientCrlFile }),
    allowedNames: options.clientCertAllowedCn ?? [],
    allowedHosts: options.clientCertAllowedHostname ?? [],
    ...(options.tlsMinVersion === undefined
      ? {}
      : { minVersion: options.tlsMinVersion as TlsVersion }),
    ...(options.tlsMaxVersion === undefined
      ? {}
      : { maxVersion: options.tlsMaxVersion as TlsVersion }),
    ...(options.cipherSuites === undefined ? {} : { ciphers: cipherList(options.cipherSuites) }),
  };
  const source = openTls(flags, options.warn);
  return () => source.current();
}

function assertComplete(options: TlsOptions): void {
  const { clientCertAuth, trustedCaFile, tlsMinVersion, tlsMaxVersion } = options;
  if (clientCertAuth === true && trustedCaFile === undefined) {
    throw new Error('--client-cert-auth: needs --trusted-ca-file, the authority of the clients');
  }
  const needsCa = [
    ['--client-crl-file', options.clientCrlFile],
    ['--client-cert-allowed-cn', options.clientCertAllowedCn],
    ['--client-cert-allowed-hostname', options.clientCertAllowedHostname],
  ].find(([, value]) => value !== undefined);
  if (needsCa !== undefined && trustedCaFile === undefined) {
    throw new Error(`${String(needsCa[0])}: needs --trusted-ca-file, the authority of the clients`);
  }
  if (tlsMinVersion === 'TLSv1.3' && tlsMaxVersion === 'TLSv1.2') {
    throw new Error('--tls-min-version: TLS1.3 is above --tls-max-version TLS1.2');
  }
  if (tlsMinVersion === 'TLSv1.3' && options.cipherSuites !== undefined) {
    throw new Error('--cipher-suites: has no meaning with --tls-min-version TLS1.3');
  }
}

type ServingFiles = Pick<TlsFlags, 'certFile' | 'keyFile'>;

function servingFiles(options: TlsOptions, urls: readonly URL[]): ServingFiles | null {
  const { certFile, keyFile, autoTls } = options;
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile };
  if (certFile !== undefined || keyFile !== undefined) {
    throw new Error('--cert-file and --key-file: both are needed, or none');
  }
  return autoTls === true ? ownFiles(options, urls) : null;
}

/** Where etcd keeps its own, too: made once, kept until it is about to end. */
function ownFiles(options: TlsOptions, urls: readonly URL[]): ServingFiles {
  const dir = join(options.dataDir, 'fixtures', 'client');
  const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
  if (existsSync(files.certFile) && existsSync(files.keyFile)) {
    const { validTo } = new X509Certificate(readFileSync(files.certFile));
    if (Date.parse(validTo) > Date.now() + RENEW_MS) return files;
  }
  makePrivateDirectory(dir);
  const nowMs = Date.now();
  const made = issueCertificate(
    {
      commonName: 'megaplane-store',
      organizations: ['megaplane'],
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + options.selfSignedCertValidity * YEAR_MS,
      serial: randomBytes(16),
      use: 'server',
      names: namesOf(urls),
    },
    null,
  );
  replacePrivately(files.keyFile, made.key);
  replacePrivately(files.certFile, made.certificate);
  return files;
}

function namesOf(urls: readonly URL[]): string[] {
  const hosts = urls.map((url) => url.hostname.replaceAll(/[[\]]/g, ''));
  const isAny = hosts.some((host) => host === '0.0.0.0' || host === '::');
  const own = Object.values(networkInterfaces()).flatMap((rows) => rows ?? []);
  const all = isAny ? own.map(({ address }) => address) : [];
  return [...new Set(['localhost', '127.0.0.1', '::1', ...hosts, ...all])];
}
