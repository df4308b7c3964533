// shell: certificates that flags name
/** The flags by which kube-apiserver serves, from texts to what listeners take. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { cipherList } from '@megaplane/etcd/tls-files';
import type { WebFlags } from './web-fields.ts';
import type { ListenTls, NamedCertificate } from '@megaplane/wire/listener';

/** Flags as given on the command line; the names are kube-apiserver's. */
export interface ServingFlags extends WebFlags {
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  /** Its `apiserver.crt` and `apiserver.key` are used where no others are named. */
  readonly certDir?: string;
  readonly tlsMinVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** By Go's names. */
  readonly tlsCipherSuites?: readonly string[];
  /** By OpenSSL's names. */
  readonly tlsCurvePreferences?: readonly string[];
  /** `certificate,key[:host,host]`. */
  readonly tlsSniCertKey?: readonly string[];
  readonly http2MaxStreamsPerConnection?: number;
  readonly externalHostname?: string;
  readonly profiling?: boolean;
  readonly disableHttp2Serving?: boolean;
  readonly egressSelectorConfigFile?: string;
}

/** The files that are read; empty where the server's own pair is to be shown. */
export interface ServingFiles {
  readonly certificate?: string;
  readonly key?: string;
}

export function servingFiles({
  certDir,
  tlsCertFile,
  tlsPrivateKeyFile,
}: ServingFlags): ServingFiles {
  if (tlsCertFile !== undefined || tlsPrivateKeyFile !== undefined || certDir === undefined) {
    return {
      ...(tlsCertFile === undefined ? {} : { certificate: tlsCertFile }),
      ...(tlsPrivateKeyFile === undefined ? {} : { key: tlsPrivateKeyFile }),
    };
  }
  const certificate = join(certDir, 'apiserver.crt');
  const key = join(certDir, 'apiserver.key');
  return existsSync(certificate) && existsSync(key) ? { certificate, key } : {};
}

type Rules = Pick<ListenTls, 'minVersion' | 'ciphers' | 'curves' | 'named'>;

/** Throws an Error that names the flag where one makes no sense. */
export function tlsRules(flags: ServingFlags): Rules {
  const { tlsMinVersion, tlsCipherSuites = [], tlsCurvePreferences = [] } = flags;
  const named = (flags.tlsSniCertKey ?? []).map(namedCertificate);
  const rules = {
    ...(tlsMinVersion === undefined ? {} : { minVersion: tlsMinVersion }),
    ...(tlsCipherSuites.length === 0
      ? {}
      : { ciphers: cipherList(tlsCipherSuites, '--tls-cipher-suites') }),
    ...(tlsCurvePreferences.length === 0 ? {} : { curves: tlsCurvePreferences.join(':') }),
  };
  try {
    createSecureContext({ ...rules, ecdhCurve: rules.curves });
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`--tls-cipher-suites, --tls-curve-preferences: ${why}`, { cause: error });
  }
  return named.length === 0 ? rules : { ...rules, named };
}

/** `certificate,key:host,host`; without hosts those of the certificate. */
function namedCertificate(text: string): NamedCertificate {
  const flag = `--tls-sni-cert-key: ${text}`;
  const [files = '', hosts = ''] = text.split(':');
  const [certFile = '', keyFile = ''] = files.split(',');
  try {
    const cert = readFileSync(certFile, 'utf8');
    const key = readFileSync(keyFile, 'utf8');
    const parsed = new X509Certificate(cert);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) {
      throw new Error(`${keyFile} is not the key of ${certFile}`);
    }
    const asked = hosts.split(',').filter((host) => host !== '');
    const names = asked.length > 0 ? asked : namesOf(parsed);
    return { hosts: names.map((name) => name.toLowerCase()), key, cert };
  } catch (error) {
    throw new Error(`${flag}: ${(error as Error).message}`, { cause: error });
  }
}

function namesOf(certificate: X509Certificate): string[] {
  const names = (certificate.subjectAltName ?? '').split(', ');
  return names.filter((name) => name.startsWith('DNS:')).map((name) => name.slice(4));
}
