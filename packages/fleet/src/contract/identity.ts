/** Who a client is, by the one `bigfleet:` URI among the names of its certificate. */
import { X509Certificate } from 'node:crypto';
import type { Connection } from '@megaplane/wire/exchange';

/** Who a client's certificate says it is; undefined where no certificates are asked for. */
export type Identity = string | undefined;

const URI = /^URI:(bigfleet:\/\/[^\s"]+)$/;

/** Undefined on a plain connection, where nobody is asked; '' where a certificate names nobody. */
export function identityOf(connection: Connection): Identity {
  if (!connection.secure) return undefined;
  const certificate = connection.peerCertificate();
  if (certificate?.trusted !== true) return '';
  const names = new X509Certificate(certificate.raw).subjectAltName ?? '';
  return uriIdentity(names);
}

/** The only URI of ours among names as OpenSSL writes them; '' if there is none, or are two. */
export function uriIdentity(names: string): string {
  const found = names.split(', ').flatMap((name) => URI.exec(name)?.[1] ?? []);
  return found.length === 1 ? (found[0] ?? '') : '';
}

/** Whether a client may look at all that a shard knows. */
export function mayRead(identity: Identity): boolean {
  return (
    identity === undefined || identity === 'bigfleet://readonly' || identity === 'bigfleet://admin'
  );
}
