// shell: reads configuration files
/** `--authentication-*`, `--oidc-*` and tokens: from flags and files to who is who. */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseTokenFile, type TokenReader } from './authentication.ts';
import { parseDuration } from '../storage/etcd3/etcd-options.ts';
import { DEFAULT_ISSUER, type SignerOptions } from './token-signer.ts';
import type { World } from '../lister/world.ts';
import {
  readAuthenticationConfiguration,
  type AnonymousRule,
  type AuthenticationConfiguration,
} from './authentication-configuration.ts';
import { bootstrapTokens } from './bootstrap-tokens.ts';
import { followConfiguration, LOOK_MS } from '../webhook/followed-file.ts';
import { FrontProxy } from './front-proxy.ts';
import { PublishedKeys } from './issuer-keys.ts';
import { SIGNING_ALGORITHMS } from './jwt.ts';
import { jwtReader, type ClaimRule, type JwtIssuer } from './jwt-authenticator.ts';
import { ReloadMetrics } from '../request/reload-metrics.ts';
import type { ReviewEdge } from '../webhook/review-client.ts';
import { webhookReader } from './token-webhook.ts';
import { readWebhookKubeconfig } from '../webhook/webhook-kubeconfig.ts';

/** Flags as they are given; the names are kube-apiserver's. Lists are by commas. */
export interface AuthenticationFlags {
  readonly anonymousAuth?: boolean;
  /** See `AccessFlags`: where everybody may do everything, nobody comes without a name. */
  readonly authorizationMode?: string;
  readonly tokenAuthFile?: string;
  readonly enableBootstrapTokenAuth?: boolean;
  /** Path of an AuthenticationConfiguration; excludes `--oidc-*`. */
  readonly authenticationConfig?: string;
  readonly oidcIssuerUrl?: string;
  readonly oidcClientId?: string;
  readonly oidcUsernameClaim?: string;
  readonly oidcUsernamePrefix?: string;
  readonly oidcGroupsClaim?: string;
  readonly oidcGroupsPrefix?: string;
  readonly oidcCaFile?: string;
  readonly oidcSigningAlgs?: string;
  /** `key=value`, by commas. */
  readonly oidcRequiredClaim?: string;
  readonly authenticationTokenWebhookConfigFile?: string;
  readonly authenticationTokenWebhookVersion?: string;
  readonly authenticationTokenWebhookCacheTtl?: string;
  /** The first issues tokens of service accounts; those of the others are taken, too. */
  readonly serviceAccountIssuer?: string;
  readonly serviceAccountKeyFile?: string;
  readonly serviceAccountSigningKeyFile?: string;
  readonly apiAudiences?: string;
  readonly serviceAccountJwksUri?: string;
  /** Milliseconds; 0: any. */
  readonly serviceAccountMaxTokenExpiration?: number;
  readonly serviceAccountExtendTokenExpiration?: boolean;
  readonly requestheaderClientCaFile?: string;
  readonly requestheaderAllowedNames?: string;
  readonly requestheaderUsernameHeaders?: string;
  readonly requestheaderUidHeaders?: string;
  readonly requestheaderGroupHeaders?: string;
  readonly requestheaderExtraHeadersPrefix?: string;
}

const WEBHOOK_KEPT_MS = 2 * 60_000;

export interface OpenAuthentication {
  readonly readers: (world: World) => readonly TokenReader[];
  readonly anonymous: AnonymousRule;
  readonly frontProxy: FrontProxy | null;
  readonly reloads: ReloadMetrics;
  /** Follows the file of the configuration no longer. */
  readonly stop: () => void;
}

/**
 * Throws an Error whose message names the flag. `userAuthorities` are the PEM texts of those who
 * sign for users, which a front proxy is told from.
 */
export function openAuthentication(
  flags: AuthenticationFlags,
  edge: ReviewEdge,
  userAuthorities: readonly string[] = [],
  audiences: readonly string[] = [],
  lookMs: number = LOOK_MS,
): OpenAuthentication {
  const reloads = new ReloadMetrics('authentication');
  const { issuers, anonymous, stop } = openIssuers(flags, edge, reloads, lookMs);
  const { tokenAuthFile } = flags;
  const tokens = tokenAuthFile === undefined ? null : parseTokenFile(read(tokenAuthFile));
  const webhook = webhookOf(flags, edge, audiences);
  return {
    reloads,
    stop,
    anonymous,
    frontProxy: frontProxyOf(flags, userAuthorities),
    readers: (world) => [
      ...(tokens === null ? [] : [(token: string) => tokens.get(token) ?? null]),
      ...(flags.enableBootstrapTokenAuth === true ? [bootstrapTokens(world)] : []),
      issuers,
      ...(webhook === null ? [] : [webhook]),
    ],
  };
}

/** How tokens of service accounts are signed and read; `ownKey` is what signs without flags. */
export function signerOptions(
  flags: AuthenticationFlags,
  ownKey: string,
): { readonly key: string; readonly options: SignerOptions } {
  const { serviceAccountSigningKeyFile: file, apiAudiences } = flags;
  const { serviceAccountJwksUri, serviceAccountMaxTokenExpiration = 0 } = flags;
  const issuers = issuersOf(flags);
  const others = namesIn(flags.serviceAccountKeyFile).map(read);
  return {
    key: file === undefined ? ownKey : read(file),
    options: {
      issuers,
      otherKeys: others,
      lifeSecondsMax: Math.floor(serviceAccountMaxTokenExpiration / 1000),
      extendsLife: flags.serviceAccountExtendTokenExpiration ?? true,
      ...(serviceAccountJwksUri === undefined ? {} : { keysUrl: keysUrl(serviceAccountJwksUri) }),
      ...(apiAudiences === undefined ? {} : { audiences: namesIn(apiAudiences) }),
    },
  };
}

function keysUrl(text: string): string {
  if (text === '' || URL.parse(text)?.protocol === 'https:') return text;
  throw new Error(`--service-account-jwks-uri: ${text} is no URL that begins with https://`);
}

function issuersOf({ serviceAccountIssuer }: AuthenticationFlags): string[] {
  return serviceAccountIssuer === undefined ? [DEFAULT_ISSUER] : namesIn(serviceAccountIssuer);
}

interface OpenIssuers {
  /** Of all issuers that count now. */
  readonly issuers: TokenReader;
  readonly anonymous: AnonymousRule;
  readonly stop: () => void;
}

/** Issuers of tokens by the file of the configuration, which is followed, or by flags. */
function openIssuers(
  flags: AuthenticationFlags,
  edge: ReviewEdge,
  metrics: ReloadMetrics,
  lookMs: number,
): OpenIssuers {
  const { authenticationConfig: file, oidcIssuerUrl, oidcClientId } = flags;
  let readers: readonly TokenReader[] = [];
  const setIssuers = (all: readonly JwtIssuer[]): void => {
    readers = all.map((issuer) =>
      jwtReader(issuer, new PublishedKeys(issuer, edge.log), edge.nowMs, edge.log),
    );
  };
  const issuers: TokenReader = (token) => {
    for (const read of readers) {
      const found = read(token);
      if (found !== null) return found;
    }
    return null;
  };
  if (file === undefined) {
    if ((oidcIssuerUrl === undefined) !== (oidcClientId === undefined)) {
      throw new Error('--oidc-issuer-url and --oidc-client-id must be specified together');
    }
    setIssuers(oidcIssuerUrl === undefined ? [] : [issuerOfFlags(flags, oidcIssuerUrl)]);
    return { issuers, anonymous: anonymousOf(flags, null, edge), stop: () => {} };
  }
  if (oidcIssuerUrl !== undefined || oidcClientId !== undefined) {
    throw new Error('--authentication-config and --oidc-* flags are mutually exclusive');
  }
  let first: AuthenticationConfiguration | undefined;
  const take = (value: JsonValue): void => {
    const configuration = readAuthenticationConfiguration(value, issuersOf(flags));
    first ??= configuration;
    // who may ask without a name is settled when the server starts, as upstream
    if (!isDeepStrictEqual(configuration.anonymous, first.anonymous)) {
      throw new Error('anonymous: Forbidden: changed from initial configuration file');
    }
    setIssuers(configuration.issuers);
  };
  const flag = 'authentication-config';
  const stop = followConfiguration({ flag, file, lookMs, metrics, edge, take });
  return { issuers, anonymous: anonymousOf(flags, first?.anonymous ?? null, edge), stop };
}

const NOT_ANONYMOUS =
  'requests without a credential are refused: the mode AlwaysAllow would let them do everything';

/** The flag's rule is off with the mode AlwaysAllow, as upstream; a configuration's is not. */
function anonymousOf(
  { anonymousAuth, authorizationMode = '' }: AuthenticationFlags,
  anonymous: AnonymousRule | null,
  { log }: ReviewEdge,
): AnonymousRule {
  if (anonymous === null) {
    const isOpen = namesIn(authorizationMode).includes('AlwaysAllow');
    const isAsked = anonymousAuth ?? true;
    if (isOpen && isAsked) log(NOT_ANONYMOUS);
    return { isEnabled: isAsked && !isOpen, paths: [] };
  }
  if (anonymousAuth !== undefined) {
    throw new Error(
      '--anonymous-auth flag cannot be set when anonymous field is configured in ' +
        'authentication configuration file',
    );
  }
  return anonymous;
}

function issuerOfFlags(flags: AuthenticationFlags, url: string): JwtIssuer {
  const claim = flags.oidcUsernameClaim ?? 'sub';
  const { oidcUsernamePrefix: prefix, oidcGroupsClaim, oidcCaFile } = flags;
  // names of others must not look like those of this cluster; an address says whose it is
  const standard = claim === 'email' ? '' : `${url}#`;
  const algorithms = namesIn(flags.oidcSigningAlgs ?? 'RS256');
  const wrong = algorithms.find((name) => !SIGNING_ALGORITHMS.includes(name));
  if (wrong !== undefined) {
    throw new Error(`--oidc-signing-algs: ${wrong} is not one of ${SIGNING_ALGORITHMS.join(', ')}`);
  }
  if (!url.startsWith('https://')) {
    throw new Error(`--oidc-issuer-url: ${url}: URL scheme must be https`);
  }
  return {
    url,
    discoveryUrl: `${url.replace(/\/+$/, '')}/.well-known/openid-configuration`,
    audiences: [flags.oidcClientId ?? ''],
    certificateAuthority: oidcCaFile === undefined ? '' : read(oidcCaFile),
    algorithms,
    username: {
      kind: 'claim',
      claim,
      prefix: prefix === undefined ? standard : prefix === '-' ? '' : prefix,
    },
    groups:
      oidcGroupsClaim === undefined
        ? { kind: 'none' }
        : { kind: 'claim', claim: oidcGroupsClaim, prefix: flags.oidcGroupsPrefix ?? '' },
    uid: { kind: 'none' },
    extra: [],
    claimRules: namesIn(flags.oidcRequiredClaim).map(requiredClaim),
    userRules: [],
  };
}

function requiredClaim(text: string): ClaimRule {
  const at = text.indexOf('=');
  if (at < 1) throw new Error(`--oidc-required-claim: ${text} is not of the form key=value`);
  return { kind: 'claim', claim: text.slice(0, at), value: text.slice(at + 1) };
}

function frontProxyOf(
  flags: AuthenticationFlags,
  userAuthorities: readonly string[],
): FrontProxy | null {
  const file = flags.requestheaderClientCaFile;
  const fields = (list: string | undefined): string[] =>
    namesIn(list).map((name) => name.toLowerCase());
  const userFields = fields(flags.requestheaderUsernameHeaders);
  if (file === undefined) {
    if (userFields.length === 0) return withoutProxies(userAuthorities);
    throw new Error('--requestheader-username-headers needs --requestheader-client-ca-file');
  }
  if (userFields.length === 0) {
    throw new Error(
      '--requestheader-client-ca-file needs --requestheader-username-headers, such as ' +
        'X-Remote-User: nobody would be named otherwise',
    );
  }
  try {
    return new FrontProxy({
      authorities: certificatesIn(read(file)),
      userAuthorities: userAuthorities.flatMap(certificatesIn),
      names: namesIn(flags.requestheaderAllowedNames),
      userFields,
      uidFields: fields(flags.requestheaderUidHeaders),
      groupFields: fields(flags.requestheaderGroupHeaders),
      extraPrefixes: fields(flags.requestheaderExtraHeadersPrefix),
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--requestheader-client-ca-file ${file}: ${why}`, { cause: error });
  }
}

function withoutProxies(userAuthorities: readonly string[]): FrontProxy | null {
  if (userAuthorities.length === 0) return null;
  const fields = { userFields: [], uidFields: [], groupFields: [], extraPrefixes: [] };
  const users = userAuthorities.flatMap(certificatesIn);
  return new FrontProxy({ authorities: [], userAuthorities: users, names: [], ...fields });
}

/** Certificates of a PEM file, one by one. */
export function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

function webhookOf(
  flags: AuthenticationFlags,
  edge: ReviewEdge,
  audiences: readonly string[],
): TokenReader | null {
  const file = flags.authenticationTokenWebhookConfigFile;
  if (file === undefined) return null;
  const version = flags.authenticationTokenWebhookVersion ?? 'v1beta1';
  if (version !== 'v1' && version !== 'v1beta1') {
    throw new Error(`--authentication-token-webhook-version: ${version} is not v1 or v1beta1`);
  }
  const keptMs = parseDuration(
    'authentication-token-webhook-cache-ttl',
    flags.authenticationTokenWebhookCacheTtl,
    WEBHOOK_KEPT_MS,
  );
  try {
    const target = readWebhookKubeconfig(parse(read(file)) as JsonValue, read);
    return webhookReader({ target, version, keptMs, audiences }, edge);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--authentication-token-webhook-config-file ${file}: ${why}`, {
      cause: error,
    });
  }
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}

function namesIn(list: string | undefined): string[] {
  return (list ?? '').split(',').filter((name) => name !== '');
}
