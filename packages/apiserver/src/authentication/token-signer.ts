/** Service account tokens: JWTs (RFC 7519), made and read here. */
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { claimsFault } from './account-claims.ts';
import { isSignedBy, parseJwt } from './jwt.ts';
import { LEGACY_ISSUER } from './account-issuer.ts';

/** Who issues tokens and for whom they are by default. */
export const DEFAULT_ISSUER = 'https://kubernetes.default.svc.cluster.local';

interface PublicKey {
  readonly key: KeyObject;
  readonly id: string;
  readonly algorithm: 'RS256' | 'ES256';
}

/** `foreign`: somebody else may know it. */
export type Examined =
  | { readonly kind: 'foreign' }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'ours'; readonly claims: JsonObject };

const FORGED = 'go-jose/go-jose: error in cryptographic primitive';

function refused(why: string): Examined {
  return { kind: 'refused', why };
}

export interface SignerOptions {
  /** The first one issues; tokens of the others are taken too. */
  readonly issuers?: readonly string[];
  /** Whom a token must be for to be taken here; default: the issuers. */
  readonly audiences?: readonly string[];
  /** Further keys in PEM, public or private, whose tokens are taken: those of before. */
  readonly otherKeys?: readonly string[];
  /** Where verifiers are told to get the keys; default: at this server. */
  readonly keysUrl?: string;
  /** Longer lives are shortened; 0: none is. */
  readonly lifeSecondsMax?: number;
  /** Whether tokens that pods mount live longer than they say; default true. */
  readonly extendsLife?: boolean;
}

export class TokenSigner {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly lifeSecondsMax: number;
  readonly extendsLife: boolean;
  readonly #keysUrl: string;
  readonly #issuers: readonly string[];
  readonly #key: KeyObject;
  readonly #own: PublicKey;
  readonly #keys = new Map<string, PublicKey>();

  /** `pem` is a private key in PKCS#8: RSA, or on P-256. */
  constructor(pem: string, options: SignerOptions = {}) {
    const { issuers = [DEFAULT_ISSUER], otherKeys = [] } = options;
    this.#issuers = issuers;
    this.issuer = issuers[0] ?? DEFAULT_ISSUER;
    this.audiences = options.audiences ?? issuers;
    this.lifeSecondsMax = options.lifeSecondsMax ?? 0;
    this.extendsLife = options.extendsLife ?? true;
    this.#keysUrl = options.keysUrl ?? '';
    this.#key = createPrivateKey(pem);
    this.#own = publicKeyOf(this.#key);
    for (const one of [this.#own, ...otherKeys.map((text) => publicKeyOf(text))]) {
      this.#keys.set(one.id, one);
    }
  }

  /** How tokens are signed, which follows from the key. */
  get algorithm(): 'RS256' | 'ES256' {
    return this.#own.algorithm;
  }

  /** A token with these claims; `iss` is added. */
  sign(claims: JsonObject): string {
    const { algorithm, id } = this.#own;
    const header = { alg: algorithm, kid: id };
    const body = `${encode(header)}.${encode({ ...claims, iss: this.issuer })}`;
    const key = { key: this.#key, dsaEncoding: 'ieee-p1363' } as const;
    return `${body}.${sign('sha256', Buffer.from(body), key).toString('base64url')}`;
  }

  /** Whether a token is one of ours, whatever its time. */
  examine(token: string): Examined {
    const jwt = parseJwt(token);
    const issuer = jwt?.claims['iss'];
    const isKnown = issuer === LEGACY_ISSUER || this.#issuers.some((one) => one === issuer);
    if (jwt === null || !isKnown) return { kind: 'foreign' };
    const { kid, alg } = jwt.header;
    const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';
    if (!isText(kid) || !isText(alg)) return { kind: 'foreign' };
    const keys = [...this.#keys.values()].filter(({ id }) => !kid || id === kid);
    if (keys.length === 0) return refused('invalid signature, no keys found');
    const isOurs = keys.some(({ key }) => isSignedBy(jwt, key));
    if (!isOurs || jwt.header['crit'] !== undefined) return refused(FORGED);
    const { claims, claimsText } = jwt;
    const fault = claimsFault(claims, claimsText);
    return fault === '' ? { kind: 'ours', claims } : refused(fault);
  }

  /** What OpenID discovery says of the issuer; `address` is where this server is reached. */
  discovery(address: string): JsonObject {
    const algorithms = [...new Set([...this.#keys.values()].map(({ algorithm }) => algorithm))];
    return {
      issuer: this.issuer,
      jwks_uri: this.#keysUrl === '' ? `https://${address}/openid/v1/jwks` : this.#keysUrl,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: algorithms,
    };
  }

  /** The public keys as a JWK set. */
  keySet(): JsonObject {
    const keys = [...this.#keys.values()].map(({ key, id, algorithm }) => {
      const jwk = key.export({ format: 'jwk' }) as Record<string, string>;
      return { use: 'sig', kid: id, alg: algorithm, ...jwk };
    });
    return { keys };
  }
}

/** Throws an Error where the key is of another kind than tokens are signed with. */
function publicKeyOf(from: KeyObject | string): PublicKey {
  const key = createPublicKey(from);
  const der = key.export({ type: 'spki', format: 'der' });
  const type = key.asymmetricKeyType;
  if (type !== 'rsa' && key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Error(`tokens are signed by RSA keys and by keys on P-256, not by ${type}`);
  }
  return {
    key,
    id: createHash('sha256').update(der).digest('base64url'),
    algorithm: type === 'rsa' ? 'RS256' : 'ES256',
  };
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
