/** What Go's `tls.X509KeyPair` says of a certificate and a key that do not belong together. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

const BLOCK = /-----BEGIN ([^\n]*?)-----\n([\s\S]*?)-----END \1-----/g;

interface Block {
  readonly type: string;
  readonly text: string;
}

function blocksOf(text: string): Block[] {
  return Array.from(text.matchAll(BLOCK), ([whole, type = '']) => ({ type, text: whole }));
}

/** The error, or '' for a pair that is one. Both are PEM. */
export function keyPairFault(certificate: string, key: string): string {
  const found = blocksOf(certificate);
  const leaf = found.find(({ type }) => type === 'CERTIFICATE');
  if (leaf === undefined) return missingCertificate(found.map(({ type }) => type));
  const keys = blocksOf(key);
  const own = keys.find(({ type }) => /(^| )PRIVATE KEY$/.test(type));
  if (own === undefined) return missingKey(keys.map(({ type }) => type));
  const parsed = parsedCertificate(leaf.text);
  if (parsed === null) return 'x509: malformed certificate';
  const secret = parsedKey(own.text);
  if (secret === null) return 'tls: failed to parse private key';
  if (parsed.publicKey.asymmetricKeyType !== secret.asymmetricKeyType) {
    return 'tls: private key type does not match public key type';
  }
  return parsed.checkPrivateKey(secret) ? '' : 'tls: private key does not match public key';
}

function missingCertificate(types: readonly string[]): string {
  if (types.length === 0) return 'tls: failed to find any PEM data in certificate input';
  if (types.length === 1 && types[0]?.endsWith('PRIVATE KEY') === true) {
    return (
      'tls: failed to find certificate PEM data in certificate input, but did find a private ' +
      'key; PEM inputs may have been switched'
    );
  }
  const skipped = `after skipping PEM blocks of the following types: [${types.join(' ')}]`;
  return `tls: failed to find "CERTIFICATE" PEM block in certificate input ${skipped}`;
}

function missingKey(types: readonly string[]): string {
  if (types.length === 0) return 'tls: failed to find any PEM data in key input';
  if (types.length === 1 && types[0] === 'CERTIFICATE') {
    return 'tls: found a certificate rather than a key in the PEM for the private key';
  }
  const skipped = `after skipping PEM blocks of the following types: [${types.join(' ')}]`;
  return `tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input ${skipped}`;
}

function parsedCertificate(text: string): X509Certificate | null {
  try {
    return new X509Certificate(text);
  } catch {
    return null; // the caller says so
  }
}

function parsedKey(text: string): KeyObject | null {
  try {
    return createPrivateKey(text);
  } catch {
    return null; // the caller says so
  }
}
