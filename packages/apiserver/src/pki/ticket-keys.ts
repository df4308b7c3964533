/**
 * What seals the session tickets of the API server.
 *
 * After a restart, or when a server is lost, all its clients come at once. Those that were here
 * before, at this server or at another one of the cluster, go on with their sessions: the keys
 * follow from the key of the cluster's authority, which all its servers have. They follow from the
 * authorities of clients, too: a session that began with a certificate of one that is no longer
 * trusted is not gone on with.
 */
import { createHash, createPrivateKey, hkdfSync } from 'node:crypto';
import type { KeyAndCertificate } from './certificates.ts';

/** As `node:tls` takes them: a name, a key of HMAC and one of AES, 16 bytes each. */
const KEYS_BYTES = 48;
/** Of a crowd that comes back after an outage some were gone for long. */
export const SESSION_SECONDS = 3600;

export function ticketKeysOf(
  authority: KeyAndCertificate,
  clientAuthorities: readonly string[],
): Buffer {
  const secret = createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' });
  const trusted = createHash('sha256');
  for (const one of clientAuthorities) trusted.update(`${one.length} ${one}`);
  const info = Buffer.concat([Buffer.from('megaplane session tickets 1'), trusted.digest()]);
  return Buffer.from(hkdfSync('sha256', secret, '', info, KEYS_BYTES));
}
