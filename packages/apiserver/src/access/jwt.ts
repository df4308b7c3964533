/** JSON Web Tokens (RFC 7519) in compact form with a signature (RFC 7515, 7518). */
import { constants, verify, type KeyObject } from 'node:crypto';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

interface Algorithm {
  readonly hash: string;
  readonly keyType: 'rsa' | 'ec';
  readonly isPss: boolean;
  /** Of elliptic keys, as Node names it. */
  readonly curve: string;
}

const rsa = (hash: string, isPss = false): Algorithm => ({
  hash,
  keyType: 'rsa',
  isPss,
  curve: '',
});
const elliptic = (hash: string, curve: string): Algorithm => ({
  hash,
  keyType: 'ec',
  isPss: false,
  curve,
});

/** Signatures that are taken from others; the names are those of RFC 7518. */
const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map([
  ['RS256', rsa('sha256')],
  ['RS384', rsa('sha384')],
  ['RS512', rsa('sha512')],
  ['PS256', rsa('sha256', true)],
  ['PS384', rsa('sha384', true)],
  ['PS512', rsa('sha512', true)],
  ['ES256', elliptic('sha256', 'prime256v1')],
  ['ES384', elliptic('sha384', 'secp384r1')],
  ['ES512', elliptic('sha512', 'secp521r1')],
]);

export const SIGNING_ALGORITHMS: readonly string[] = [...ALGORITHMS.keys()];

/** A token that was taken apart; nothing of it is proven yet. */
export interface Jwt {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** Null for any text that is no signed token. */
export function parseJwt(token: string): Jwt | null {
  const bodyAt = token.indexOf('.') + 1;
  const signatureAt = bodyAt === 0 ? 0 : token.indexOf('.', bodyAt) + 1;
  if (signatureAt === 0 || signatureAt === token.length) return null;
  if (token.includes('.', signatureAt)) return null;
  const head = token.slice(0, bodyAt - 1);
  const body = token.slice(bodyAt, signatureAt - 1);
  const header = decode(head);
  const claims = decode(body);
  if (header === null || claims === null) return null;
  return {
    header,
    claims,
    signed: Buffer.from(`${head}.${body}`),
    signature: Buffer.from(token.slice(signatureAt), 'base64url'),
  };
}

/** True where `key` made the signature, by the algorithm that the header names. */
export function isSignedBy({ header, signed, signature }: Jwt, key: KeyObject): boolean {
  const algorithm = ALGORITHMS.get(typeof header['alg'] === 'string' ? header['alg'] : '');
  if (algorithm === undefined || key.asymmetricKeyType !== algorithm.keyType) return false;
  if (algorithm.curve !== '' && key.asymmetricKeyDetails?.namedCurve !== algorithm.curve) {
    return false;
  }
  const { RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST } = constants;
  const pss = { padding: RSA_PKCS1_PSS_PADDING, saltLength: RSA_PSS_SALTLEN_DIGEST };
  const how = { key, dsaEncoding: 'ieee-p1363', ...(algorithm.isPss ? pss : {}) } as const;
  return verify(algorithm.hash, signed, how, signature);
}

/** Texts of a claim that is one or a list of them. */
export function textsOf(claim: JsonValue | undefined): readonly string[] {
  if (typeof claim === 'string') return [claim];
  return Array.isArray(claim) ? claim.filter((one) => typeof one === 'string') : [];
}

function decode(text: string): JsonObject | null {
  try {
    const value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as JsonValue;
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
