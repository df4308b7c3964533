/** Service account tokens: JWTs (RFC 7515, 7518), made and read here. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

/** Who issues tokens and for whom they are by default. */
export const DEFAULT_ISSUER = 'https://kubernetes.default.svc.cluster.local';

export class TokenSigner {
  readonly issuer: string;
  /** How tokens are signed, which follows from the key. */
  readonly algorithm: 'RS256' | 'ES256';
  readonly #key: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #keyId: string;

  /** `pem` is a private key in PKCS#8: RSA, or on P-256. */
  constructor(pem: string, issuer: string = DEFAULT_ISSUER) {
    this.issuer = issuer;
    this.#key = createPrivateKey(pem);
    this.algorithm = this.#key.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256';
    this.#publicKey = createPublicKey(this.#key);
    const der = this.#publicKey.export({ type: 'spki', format: 'der' });
    this.#keyId = createHash('sha256').update(der).digest('base64url');
  }

  /** A token with these claims; `iss` is added. */
  sign(claims: JsonObject): string {
    const header = { alg: this.algorithm, kid: this.#keyId };
    const body = `${encode(header)}.${encode({ ...claims, iss: this.issuer })}`;
    const key = { key: this.#key, dsaEncoding: 'ieee-p1363' } as const;
    return `${body}.${sign('sha256', Buffer.from(body), key).toString('base64url')}`;
  }

  /** The claims of a token of ours whose time is not over; null for any other text. */
  read(token: string, nowMs: number): JsonObject | null {
    const [head = '', body = '', signature = '', ...rest] = token.split('.');
    if (signature === '' || rest.length > 0) return null;
    const header = decode(head);
    if (header?.['alg'] !== this.algorithm || header['kid'] !== this.#keyId) return null;
    const key = { key: this.#publicKey, dsaEncoding: 'ieee-p1363' } as const;
    const signed = Buffer.from(`${head}.${body}`);
    if (!verify('sha256', signed, key, Buffer.from(signature, 'base64url'))) return null;
    const claims = decode(body);
    if (claims === null || claims['iss'] !== this.issuer) return null;
    const expires = claims['exp'];
    const starts = claims['nbf'];
    if (typeof expires !== 'number' || expires * 1000 <= nowMs) return null;
    return typeof starts === 'number' && starts * 1000 > nowMs + 60_000 ? null : claims;
  }

  /** What OpenID discovery says of the issuer; `address` is where this server is reached. */
  discovery(address: string): JsonObject {
    return {
      issuer: this.issuer,
      jwks_uri: `https://${address}/openid/v1/jwks`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [this.algorithm],
    };
  }

  /** The public key as a JWK set. */
  keySet(): JsonObject {
    const jwk = this.#publicKey.export({ format: 'jwk' }) as Record<string, string>;
    return { keys: [{ use: 'sig', kid: this.#keyId, alg: this.algorithm, ...jwk }] };
  }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
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
