/** JSON Web Tokens (RFC 7519) in compact form with a signature (RFC 7515, 7518). */
import { constants, verify, type KeyObject } from 'node:crypto';
import { parseJson } from '@megaplane/machinery/json-text';
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
  /** The claims as JSON, as they came. */
  readonly claimsText: string;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** Null for any text that is no signed token. */
export function parseJwt(token: string): Jwt | null {
  const bodyAt = token.indexOf('.') + 1;
  const signatureAt = bodyAt === 0 ? 0 : token.indexOf('.', bodyAt) + 1;
  if (signatureAt === 0) return null;
  if (token.includes('.', signatureAt)) return null;
  const head = token.slice(0, bodyAt - 1);
  const body = token.slice(bodyAt, signatureAt - 1);
  const signature = token.slice(signatureAt);
  if (![head, body, signature].every((part) => isBase64Url(part))) return null;
  const claimsText = Buffer.from(body, 'base64url').toString();
  // a header that is empty names no algorithm, and nobody's signature fits that
  const header = head === '' ? {} : objectOf(Buffer.from(head, 'base64url').toString());
  const claims = objectOf(claimsText);
  if (header === null || claims === null) return null;
  return {
    header,
    claims,
    claimsText,
    signed: Buffer.from(`${head}.${body}`),
    signature: Buffer.from(signature, 'base64url'),
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

/** Without padding, and of no length that nothing is encoded to. */
function isBase64Url(text: string): boolean {
  return text.length % 4 !== 1 && /^[\w-]*$/.test(text);
}

function objectOf(text: string): JsonObject | null {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
