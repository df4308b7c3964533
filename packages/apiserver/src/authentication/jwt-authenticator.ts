/**
 * Tokens of OpenID Connect providers: verified by the keys that the issuer publishes, turned into
 * users by claims or expressions (`jwt` of an AuthenticationConfiguration, KEP-3331).
 */
import { ownMember, putMember } from '@megaplane/base/members';
import type { KeyObject } from 'node:crypto';
import { CALL_COST_MAX, type Program } from '@megaplane/machinery/cel/program';
import { fromJson, toJson } from '@megaplane/machinery/cel/json-values';
import { CelError } from '@megaplane/machinery/cel/values';
import {
  isNumber,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@megaplane/machinery/json-value';
import type { TokenReader, Unknown } from './authentication.ts';
import { CREDENTIAL_ID_KEY, identityOf, type Identity } from '../request/identity.ts';
import { isSignedBy, parseJwt, textsOf, type Jwt } from './jwt.ts';
import { CLAIMS_TYPE, USER_TYPE } from './jwt-environment.ts';

/** A value that comes from a claim, with something before it, or from an expression. */
export type ClaimSource =
  | { readonly kind: 'claim'; readonly claim: string; readonly prefix: string }
  | { readonly kind: 'expression'; readonly program: Program }
  | { readonly kind: 'none' };

/** One condition; `claims` or `user` must satisfy it. */
export type ClaimRule =
  | { readonly kind: 'claim'; readonly claim: string; readonly value: string }
  | { readonly kind: 'expression'; readonly program: Program; readonly message: string };

/** One issuer whose tokens are taken. */
export interface JwtIssuer {
  readonly url: string;
  /** Where its discovery document is. */
  readonly discoveryUrl: string;
  readonly audiences: readonly string[];
  /** PEM; '' takes the system's authorities. */
  readonly certificateAuthority: string;
  /** Names of RFC 7518 that its signatures may have. */
  readonly algorithms: readonly string[];
  readonly username: ClaimSource;
  readonly groups: ClaimSource;
  readonly uid: ClaimSource;
  readonly extra: readonly { readonly key: string; readonly program: Program }[];
  readonly claimRules: readonly ClaimRule[];
  readonly userRules: readonly { readonly program: Program; readonly message: string }[];
}

/** The keys of an issuer, as far as they are known. */
export interface IssuerKeys {
  /** Keys that may have made a signature: that of the id, or all where none is named. */
  find(keyId: string | undefined): readonly KeyObject[];
  /** Reads them anew; null where that was tried a moment ago. */
  refresh(): Unknown | null;
}

/** Tokens may be this far ahead of our clock. */
const SKEW_MS = 60_000;

/** Why a token is not taken; for the log, since clients learn nothing. */
export class TokenRefused extends Error {}

/** Reads the tokens of one issuer; those of others are nobody's. */
export function jwtReader(
  issuer: JwtIssuer,
  keys: IssuerKeys,
  nowMs: () => number,
  log: (message: string) => void,
): TokenReader {
  return (token) => {
    const jwt = parseJwt(token);
    if (jwt === null || jwt.claims['iss'] !== issuer.url) return null;
    try {
      const unknown = verify(jwt, issuer, keys, nowMs());
      return unknown ?? identify(jwt.claims, issuer);
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      log(`a token of ${issuer.url} was refused: ${error.message}`);
      return null;
    }
  };
}

const isText = (claim: JsonValue): boolean => claim === null || typeof claim === 'string';
const isTexts = (claim: JsonValue): boolean =>
  Array.isArray(claim) ? claim.every((one) => typeof one === 'string') : isText(claim);

/** What a token must have as upstream's library (go-oidc) reads it, where it has it at all. */
const FORMS: readonly (readonly [claim: string, isFit: (value: JsonValue) => boolean])[] = [
  ['sub', isText],
  ['aud', isTexts],
  ['exp', isNumber],
  ['iat', isNumber],
  ['nbf', (claim) => claim === null || isNumber(claim)],
];

function verify(jwt: Jwt, issuer: JwtIssuer, keys: IssuerKeys, nowMs: number): Unknown | null {
  const { header, claims } = jwt;
  const algorithm = typeof header['alg'] === 'string' ? header['alg'] : '';
  if (!issuer.algorithms.includes(algorithm)) {
    throw new TokenRefused(`it is signed by ${JSON.stringify(algorithm)}`);
  }
  if (!textsOf(claims['aud']).some((one) => issuer.audiences.includes(one))) {
    throw new TokenRefused('it is for another audience');
  }
  const { exp: expires, nbf: starts } = claims;
  for (const [name, isFit] of FORMS) {
    const claim = ownMember(claims, name);
    if (claim !== undefined && !isFit(claim)) {
      throw new TokenRefused(`claim ${name} is ${JSON.stringify(claim)}`);
    }
  }
  // parts of a second do not count
  if (!isNumber(expires) || Math.trunc(Number(expires)) * 1000 <= nowMs) {
    throw new TokenRefused('its time is over');
  }
  if (isNumber(starts) && Number(starts) * 1000 > nowMs + SKEW_MS) {
    throw new TokenRefused('its time has not come');
  }
  const keyId = typeof header['kid'] === 'string' ? header['kid'] : undefined;
  if (keys.find(keyId).some((key) => isSignedBy(jwt, key))) return null;
  const unknown = keys.refresh();
  if (unknown === null) throw new TokenRefused('no key of the issuer made its signature');
  return unknown;
}

function identify(claims: JsonObject, issuer: JwtIssuer): Identity {
  const bindings = { claims: fromJson(claims, CLAIMS_TYPE) };
  const valueOf = (program: Program): JsonValue => evaluate(program, bindings);
  for (const rule of issuer.claimRules) {
    if (rule.kind === 'claim') checkClaim(claims, rule.claim, rule.value);
    else if (valueOf(rule.program) !== true) {
      throw new TokenRefused(rule.message === '' ? `not ${rule.program.source}` : rule.message);
    }
  }
  const user = usernameOf(claims, issuer.username, valueOf);
  const groups = groupsOf(claims, issuer.groups, valueOf);
  const uid = uidOf(claims, issuer.uid, valueOf);
  const { jti } = claims;
  const shown: Record<string, readonly string[]> =
    typeof jti === 'string' && jti !== '' ? { [CREDENTIAL_ID_KEY]: [`JTI=${jti}`] } : {};
  for (const { key, program } of issuer.extra) {
    const list = listOf(valueOf(program), `extra ${key}`);
    if (list.length > 0) putMember(shown, key, list);
  }
  if (issuer.userRules.length > 0) {
    const info = { username: user, uid, groups: [...groups], extra: shown as JsonObject };
    const facts = { user: fromJson(info, USER_TYPE) };
    for (const { program, message } of issuer.userRules) {
      if (evaluate(program, facts) === true) continue;
      throw new TokenRefused(message === '' ? `not ${program.source}` : message);
    }
  }
  return identityOf(user, groups, uid, shown);
}

function evaluate(program: Program, bindings: Parameters<Program['evaluate']>[0]): JsonValue {
  const { value } = program.evaluate(bindings, CALL_COST_MAX);
  const json = value instanceof CelError ? value : toJson(value);
  if (json instanceof CelError) throw new TokenRefused(`${program.source}: ${json.message}`);
  return json;
}

function checkClaim(claims: JsonObject, name: string, wanted: string): void {
  const found = ownMember(claims, name);
  if (found === wanted) return;
  const text = found === undefined ? 'is missing' : `is ${JSON.stringify(found)}`;
  throw new TokenRefused(`required claim ${name} ${text}`);
}

function usernameOf(
  claims: JsonObject,
  source: ClaimSource,
  valueOf: (program: Program) => JsonValue,
): string {
  const found = textOf(claims, source, valueOf);
  if (found === '') throw new TokenRefused('it names no user');
  // an address that the provider has not seen an answer from proves nothing
  const isAddress = source.kind === 'claim' && source.claim === 'email';
  if (isAddress && claims['email_verified'] !== undefined && claims['email_verified'] !== true) {
    throw new TokenRefused('its email is not verified');
  }
  return source.kind === 'claim' ? source.prefix + found : found;
}

function uidOf(
  claims: JsonObject,
  source: ClaimSource,
  valueOf: (program: Program) => JsonValue,
): string {
  return source.kind === 'none' ? '' : textOf(claims, source, valueOf);
}

function textOf(
  claims: JsonObject,
  source: ClaimSource,
  valueOf: (program: Program) => JsonValue,
): string {
  if (source.kind === 'none') return '';
  const found = source.kind === 'claim' ? ownMember(claims, source.claim) : valueOf(source.program);
  const what = source.kind === 'claim' ? `claim ${source.claim}` : source.program.source;
  if (typeof found !== 'string') throw new TokenRefused(`${what} is no text`);
  return found;
}

function groupsOf(
  claims: JsonObject,
  source: ClaimSource,
  valueOf: (program: Program) => JsonValue,
): readonly string[] {
  if (source.kind === 'none') return [];
  if (source.kind === 'expression') return listOf(valueOf(source.program), 'groups');
  const found = ownMember(claims, source.claim);
  if (found === undefined || found === null) return [];
  const list = Array.isArray(found) ? found : [found];
  return list.map((group) => {
    if (typeof group === 'string') return source.prefix + group;
    throw new TokenRefused(`claim ${source.claim} holds something else than texts`);
  });
}

/** A text or a list of texts; empty ones and null count for nothing. */
function listOf(value: JsonValue, what: string): readonly string[] {
  if (value === null) return [];
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((one) => {
    if (typeof one !== 'string' || isObject(one)) {
      throw new TokenRefused(`${what} holds something else than texts`);
    }
    return one === '' ? [] : [one];
  });
}
