/**
 * From the credentials of a request to an identity: Unix socket, front proxy, client
 * certificate, bearer token, in this order; without any, anonymous.
 */
import { createHash, X509Certificate } from 'node:crypto';
import type { Connection, Exchange, PeerCertificate } from '@megaplane/wire/exchange';
import type { FrontProxy } from './front-proxy.ts';
import {
  ANONYMOUS,
  CREDENTIAL_ID_KEY,
  identityOf,
  LOCAL_ADMIN,
  type Identity,
} from '../request/identity.ts';

/** Somebody else has to be asked first: calls back once when it is worth looking again. */
export interface Unknown {
  readonly pending: (then: () => void) => void;
}

/** Finds whom a bearer token stands for; null where it stands for nobody (any more). */
export type TokenReader = (token: string) => Identity | Unknown | null;

export function isUnknown<T extends object>(found: T | Unknown | null): found is Unknown {
  return found !== null && 'pending' in found;
}

const KEPT = Symbol('identity of the connection');

/** What a connection proves: who its peer is, that it is a proxy, nothing, or something invalid. */
type ConnectionProof = Identity | 'none' | 'refused';

interface KeptProof {
  readonly [KEPT]: ConnectionProof;
  /** Its peer is a proxy, whose users come first. */
  readonly isProxy: boolean;
  /** When the certificate that it rests on expires; 0: on none. */
  readonly untilMs: number;
  /** When the first of its chain does: from then on it proves nothing. */
  readonly chainUntilMs: number;
  /** The authorities that it was judged by. */
  readonly generation: number;
  /** The Authorization header that came last, and its bearer token. */
  authorization: string;
  token: string;
}

/** When the certificate that tells who a connection is expires; 0 where none does. */
export function certifiedUntil(connection: Connection): number {
  const kept = connection.slot as KeptProof | undefined;
  return kept !== undefined && typeof kept[KEPT] === 'object' ? kept.untilMs : 0;
}

/**
 * The identity of a request, or null where a credential was presented that is not valid (401).
 * What the connection itself proves is read once and kept in its slot, until a certificate of its
 * chain expires or the authorities change: upstream verifies the chain with every request.
 */
export function authenticate(
  exchange: Exchange,
  readToken: TokenReader,
  proxy: FrontProxy | null,
  nowMs: () => number,
): Identity | Unknown | null {
  const kept = keptProof(exchange.connection, proxy);
  const isExpired = kept.chainUntilMs !== 0 && nowMs() > kept.chainUntilMs;
  const own = isExpired ? 'refused' : kept[KEPT];
  const isProxy = kept.isProxy && !isExpired;
  const named = isProxy ? (proxy?.identify(exchange) ?? null) : null;
  if (named !== null) return named;
  if (typeof own === 'object') return own;
  const authorization = exchange.header('authorization');
  if (authorization === undefined) return own === 'refused' ? null : ANONYMOUS;
  if (kept.authorization !== authorization) {
    kept.authorization = authorization;
    kept.token = bearerToken(authorization);
  }
  if (kept.token !== '') return readToken(kept.token);
  return own === 'refused' ? null : ANONYMOUS;
}

/** The token of an Authorization header; '' where it has none that upstream would look at. */
function bearerToken(authorization: string): string {
  const [scheme = '', token = ''] = authorization.trim().split(' ');
  return scheme.toLowerCase() === 'bearer' ? token : '';
}

/** What to tell a client whose token was not looked at; '' where there is nothing to tell. */
export function ignoredTokenWarning(exchange: Exchange): string {
  const authorization = exchange.header('authorization') ?? '';
  if (!/^bearer  /i.test(authorization.trim())) return '';
  const header = 'the provided Authorization header';
  return `${header} contains extra space before the bearer token, and is ignored`;
}

function keptProof(connection: Connection, proxy: FrontProxy | null): KeptProof {
  const kept = connection.slot as KeptProof | undefined;
  const generation = proxy?.generation ?? 0;
  if (kept?.generation === generation) return kept;
  const { proof, isProxy } = readConnection(connection, proxy, kept !== undefined);
  const certificate = connection.unix ? null : connection.peerCertificate();
  const fresh: KeptProof = {
    [KEPT]: proof,
    isProxy,
    generation,
    untilMs: certificate?.validToMs ?? 0,
    chainUntilMs: certificate === null ? 0 : chainUntil(certificate),
    authorization: '',
    token: '',
  };
  connection.slot = fresh;
  return fresh;
}

/** When the first certificate of a chain expires. */
function chainUntil({ validToMs, issuers }: PeerCertificate): number {
  const above = (issuers?.() ?? []).map((raw) => Date.parse(new X509Certificate(raw).validTo));
  return Math.min(validToMs, ...above);
}

interface Proof {
  readonly proof: ConnectionProof;
  readonly isProxy: boolean;
}

function readConnection(connection: Connection, proxy: FrontProxy | null, isAgain: boolean): Proof {
  if (connection.unix) return { proof: LOCAL_ADMIN, isProxy: false };
  const certificate = connection.peerCertificate();
  if (certificate === null) return { proof: 'none', isProxy: false };
  const isUser = certificate.trusted;
  const owner = proxy?.judge(certificate, isAgain) ?? { isProxy: false, isUser };
  const proof = owner.isUser ? userOf(certificate) : 'refused';
  return { proof, isProxy: owner.isProxy };
}

/** Whom a certificate names. */
function userOf(certificate: PeerCertificate): ConnectionProof {
  const { commonName, organizations, uids } = certificate;
  if (commonName === '') return 'refused';
  const [uid = '', ...others] = uids;
  // to name no uid is fine; to name an empty one, or several, is not
  if (others.length > 0 || (uids.length > 0 && uid === '')) return 'refused';
  const hash = createHash('sha256').update(certificate.raw).digest('hex');
  return identityOf(commonName, organizations, uid, {
    [CREDENTIAL_ID_KEY]: [`X509SHA256=${hash}`],
  });
}

/**
 * Reads a static token file: a line of CSV per token, `token,user,uid,"group1,group2"`. Throws
 * with the line's number where a line has fewer than three columns.
 */
export function parseTokenFile(text: string): Map<string, Identity> {
  const tokens = new Map<string, Identity>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const columns = csvColumns(line);
    const [token = '', user = '', uid, groups = ''] = columns;
    if (uid === undefined) {
      throw new Error(
        `--token-auth-file: line ${index + 1} has ${columns.length} columns; ` +
          'each needs at least token,user,uid',
      );
    }
    tokens.set(token, identityOf(user, groups === '' ? [] : groups.split(','), uid));
  }
  return tokens;
}

/** Columns of one line; a quoted one may hold commas. */
function csvColumns(line: string): string[] {
  const columns: string[] = [];
  for (const [, quotedText, plain = ''] of line.matchAll(/(?:^|,)(?:"([^"]*)"|([^,]*))/g)) {
    columns.push(quotedText ?? plain.trim());
  }
  return columns;
}
