// shell: reads certificates from the disk, again when they have changed
/**
 * etcd reads its certificates anew at each handshake. Here the files are looked at (three calls of
 * stat) as a connection comes in, and read when one of them is another than before. Files that are
 * half written or wrong at that moment change nothing: the old ones stay and the reason is told.
 */
import { ownMember } from '@megaplane/base/members';
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { ListenTls } from '@megaplane/wire/listener';
import { comparableSerial, revokedSerials } from './revoked.ts';

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

/** Names of files and rules as etcd's flags give them. */
export interface TlsFlags {
  readonly certFile: string;
  readonly keyFile: string;
  /** With it clients must show a certificate of this authority. */
  readonly trustedCaFile?: string;
  readonly clientCrlFile?: string;
  /** The common name of a client's certificate must be one of these. */
  readonly allowedNames?: readonly string[];
  /** The certificate must be valid for one of these hosts. */
  readonly allowedHosts?: readonly string[];
  readonly minVersion?: TlsVersion;
  readonly maxVersion?: TlsVersion;
  readonly ciphers?: string;
}

export interface TlsSource {
  /** What counts at this moment; the same object until a file changes. */
  current(): ListenTls;
}

/**
 * Reads the files. Throws an Error for people when one of them is missing or wrong; later
 * problems go to `warn`.
 */
export function openTls(flags: TlsFlags, warn: (message: string) => void): TlsSource {
  let stamp = stampOf(flags);
  let loaded = load(flags);
  return {
    current: () => {
      const now = stampOf(flags);
      if (now === stamp) return loaded;
      stamp = now;
      try {
        loaded = load(flags);
      } catch (error) {
        warn(`certificates stay as they were: ${(error as Error).message}`);
      }
      return loaded;
    },
  };
}

function filesOf({ certFile, keyFile, trustedCaFile, clientCrlFile }: TlsFlags): string[] {
  return [certFile, keyFile, trustedCaFile, clientCrlFile].filter((file) => file !== undefined);
}

function stampOf(flags: TlsFlags): string {
  return filesOf(flags)
    .map((file) => {
      const found = statSync(file, { throwIfNoEntry: false, bigint: true });
      return found === undefined ? '-' : `${found.ino}:${found.mtimeNs}:${found.size}`;
    })
    .join(' ');
}

function read(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${flag}: ${(error as Error).message}`, { cause: error });
  }
}

function load(flags: TlsFlags): ListenTls {
  const cert = read('--cert-file', flags.certFile);
  const key = read('--key-file', flags.keyFile);
  const { trustedCaFile, clientCrlFile, minVersion, maxVersion, ciphers } = flags;
  const clientCa = trustedCaFile === undefined ? null : read('--trusted-ca-file', trustedCaFile);
  check(flags, cert, key, clientCa);
  const crl = clientCrlFile === undefined ? null : read('--client-crl-file', clientCrlFile);
  const revoked = crl === null ? new Set<string>() : revokedSerials(crl);
  if (revoked === null) {
    throw new Error(`--client-crl-file: ${clientCrlFile} is no certificate revocation list`);
  }
  return {
    cert,
    key,
    ...(clientCa === null ? {} : { clientCa, requiresClientCert: true }),
    ...(minVersion === undefined ? {} : { minVersion }),
    ...(maxVersion === undefined ? {} : { maxVersion }),
    ...(ciphers === undefined ? {} : { ciphers }),
    accepts: (certificate) => isAccepted(certificate, flags, revoked),
  };
}

function check(flags: TlsFlags, cert: Buffer, key: Buffer, clientCa: Buffer | null): void {
  const parsed = attempt('--cert-file', flags.certFile, () => new X509Certificate(cert));
  const secret = attempt('--key-file', flags.keyFile, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(secret)) {
    throw new Error(`--key-file: ${flags.keyFile} is not the key of ${flags.certFile}`);
  }
  if (clientCa !== null) {
    const path = flags.trustedCaFile ?? '';
    attempt('--trusted-ca-file', path, () => new X509Certificate(clientCa));
  }
  const { minVersion = 'TLSv1.2', maxVersion = 'TLSv1.3', ciphers } = flags;
  attempt('--cipher-suites', ciphers ?? '', () =>
    createSecureContext({ minVersion, maxVersion, ...(ciphers === undefined ? {} : { ciphers }) }),
  );
}

function attempt<T>(flag: string, path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new Error(`${flag}: ${path} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function isAccepted(
  certificate: X509Certificate,
  { allowedNames = [], allowedHosts = [] }: TlsFlags,
  revoked: ReadonlySet<string>,
): boolean {
  if (revoked.has(comparableSerial(certificate.serialNumber))) return false;
  if (allowedNames.length > 0) {
    const { CN: name } = certificate.toLegacyObject().subject;
    if (typeof name !== 'string' || !allowedNames.includes(name)) return false;
  }
  if (allowedHosts.length === 0) return true;
  return allowedHosts.some((host) =>
    isIP(host) === 0
      ? certificate.checkHost(host) !== undefined
      : certificate.checkIP(host) !== undefined,
  );
}

/** OpenSSL's names of the cipher suites that Go, and so etcd's flag, knows by these. */
const SUITES: Readonly<Record<string, string>> = {
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_AES_128_GCM_SHA256: 'TLS_AES_128_GCM_SHA256',
  TLS_AES_256_GCM_SHA384: 'TLS_AES_256_GCM_SHA384',
  TLS_CHACHA20_POLY1305_SHA256: 'TLS_CHACHA20_POLY1305_SHA256',
};

/** Of TLS 1.3, which Go's lists do not choose among: without them OpenSSL would leave 1.3 out. */
const SUITES_OF_13: readonly string[] = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
];

/**
 * A list of Go's names as OpenSSL takes it. Throws an Error that names the flag and the unknown
 * name.
 */
export function cipherList(names: readonly string[], flag = '--cipher-suites'): string {
  const known = names
    .map((name) => {
      const found = ownMember(SUITES, name.trim());
      if (found !== undefined) return found;
      const all = Object.keys(SUITES).join(', ');
      throw new Error(`${flag}: ${name} is not known; there are ${all}`);
    })
    .filter((name) => !SUITES_OF_13.includes(name));
  return [...known, ...SUITES_OF_13].join(':');
}
