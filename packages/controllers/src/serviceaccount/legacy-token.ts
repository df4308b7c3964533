/** Tokens in Secrets, signed here as upstream's `LegacyClaims` has them: without an end. */
import { ownMember } from '@megaplane/base/members';
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';

const ISSUER = 'kubernetes/serviceaccount';
const CLAIM = 'kubernetes.io/serviceaccount';
const CURVES: Readonly<Record<string, readonly [algorithm: string, hash: string]>> = {
  prime256v1: ['ES256', 'sha256'],
  secp384r1: ['ES384', 'sha384'],
  secp521r1: ['ES512', 'sha512'],
};

/** Whose token it is, and of which Secret. */
export interface TokenSubject {
  readonly namespace: string;
  readonly account: string;
  readonly accountUid: string;
  readonly secret: string;
}

export type SignToken = (subject: TokenSubject) => string;

/** `pem` is a private key, RSA or on a curve; throws where it is none. */
export function tokenSigner(pem: string): SignToken {
  const key = createPrivateKey(pem);
  const der = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const isRsa = key.asymmetricKeyType === 'rsa';
  const curve = ownMember(CURVES, key.asymmetricKeyDetails?.namedCurve ?? '');
  const kind = isRsa ? (['RS256', 'sha256'] as const) : curve;
  if (kind === undefined) throw new Error('the key is neither RSA nor on a curve of NIST');
  const [algorithm, hash] = kind;
  const kid = createHash('sha256').update(der).digest('base64url');
  const head = encode({ alg: algorithm, kid });
  return ({ namespace, account, accountUid, secret }) => {
    const claims = {
      iss: ISSUER,
      [`${CLAIM}/namespace`]: namespace,
      [`${CLAIM}/secret.name`]: secret,
      [`${CLAIM}/service-account.name`]: account,
      [`${CLAIM}/service-account.uid`]: accountUid,
      sub: `system:serviceaccount:${namespace}:${account}`,
    };
    const body = `${head}.${encode(claims)}`;
    const signature = sign(hash, Buffer.from(body), { key, dsaEncoding: 'ieee-p1363' });
    return `${body}.${signature.toString('base64url')}`;
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
