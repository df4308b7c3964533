/**
 * Bootstrap tokens and what is trusted by them: `id.secret`, the hash of the authority's key, and
 * the signature of what anybody may read (upstream's cluster-bootstrap).
 */
import { createHash, createHmac, timingSafeEqual, X509Certificate } from 'node:crypto';

export interface Token {
  readonly id: string;
  readonly secret: string;
}

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const HASH = /^sha256:([0-9a-f]{64})$/;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const ID_LENGTH = 6;
const SECRET_LENGTH = 16;
/** Bytes above it would make some letters likelier than others. */
const BYTE_MAX: number = 256 - (256 % LETTERS.length);

export function parseToken(text: string): Token | undefined {
  const match = TOKEN.exec(text);
  return match === null ? undefined : { id: match[1] ?? '', secret: match[2] ?? '' };
}

/** A token of random letters; `byte` gives the next random byte. */
export function newToken(byte: () => number): string {
  let letters = '';
  while (letters.length < ID_LENGTH + SECRET_LENGTH) {
    const value = byte();
    if (value < BYTE_MAX) letters += LETTERS.charAt(value % LETTERS.length);
  }
  return `${letters.slice(0, ID_LENGTH)}.${letters.slice(ID_LENGTH)}`;
}

/** Whether a text is a hash as `authorityHash` gives it. */
export function isHash(text: string): boolean {
  return HASH.test(text);
}

/** `sha256:` and the hash of the public key of a certificate, as kubeadm pins authorities. */
export function authorityHash(certificate: string): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** Whether a detached JWS (RFC 7515, appendix F) is one of `content` by a token. */
export function isSignedBy(signature: string, content: string, { id, secret }: Token): boolean {
  const [header = '', payload, own = ''] = signature.split('.');
  if (payload !== '') return false;
  const wanted = Buffer.from(JSON.stringify({ alg: 'HS256', kid: id })).toString('base64url');
  if (header !== wanted) return false;
  const body = Buffer.from(content).toString('base64url');
  const hash = createHmac('sha256', secret).update(`${header}.${body}`).digest();
  const given = Buffer.from(own, 'base64url');
  return given.length === hash.length && timingSafeEqual(given, hash);
}
