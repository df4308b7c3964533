/** Who may speak with whom where shards are on other machines. */
import type { X509Certificate } from 'node:crypto';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { ListenTls } from '@megaplane/wire/listener';

/** PEM. One certificate serves for both ends. */
export interface MemberTls {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Of the cluster's authority. */
  readonly ca: Buffer;
}

/**
 * Whose certificate a member must have. A cluster's authority signs those of kubelets, too, which
 * have no business here.
 */
export const MEMBER_NAME = 'system:kube-scheduler';

export function isMember({ subject }: Pick<X509Certificate, 'subject'>): boolean {
  return subject.split('\n').includes(`CN=${MEMBER_NAME}`);
}

export function listenTlsOf({ cert, key, ca }: MemberTls): ListenTls {
  return { cert, key, clientCa: ca, requiresClientCert: true, accepts: isMember };
}

export function connectTlsOf({ cert, key, ca }: MemberTls): ConnectTls {
  return { cert, key, ca };
}

/** What is wrong with such a way between members; empty: nothing. */
export function unsafeWay(flag: string, host: string, tls: MemberTls | undefined): string {
  if (tls !== undefined || isLoopback(host)) return '';
  const flags = '--shard-cert-file, --shard-key-file and --shard-ca-file';
  return `${flag} ${host}: over machines shards speak with certificates only; give ${flags}`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host);
}
