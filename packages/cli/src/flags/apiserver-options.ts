/** From the flags of `megaplane apiserver` to what the server takes. */
import { join } from 'node:path';
import type { AuthenticationFlags } from '@megaplane/apiserver/access/authentication-flags';
import type { AuthorizationFlags } from '@megaplane/apiserver/access/access-flags';
import type { AuditFlags } from '@megaplane/apiserver/operations/audit-flags';
import type { JournalAccessFlags } from '@megaplane/etcd/journal';
import type { ApiserverOptions } from '@megaplane/apiserver/run';
import type { ServingFlags } from '@megaplane/apiserver/controlplane/serving-flags';
import { auditFlagsOf } from './audit-options.ts';
import type { KlogFlags, LogFlags } from '../service/logging.ts';
import { given } from '../parsers/flag-parsers.ts';

export const DATA_DIR = './megaplane-data';

/** What the command line comes to. */
export interface ApiserverFlags
  extends
    LogFlags,
    KlogFlags,
    AuthenticationFlags,
    AuthorizationFlags,
    AuditFlags,
    ServingFlags,
    JournalAccessFlags {
  readonly dataDir?: string;
  readonly bindAddress: string;
  readonly securePort: number;
  readonly threads?: number;
  readonly unixSocket?: string;
  readonly listenClientUrls?: string;
  readonly durability?: string;
  readonly historyLimit?: string;
  readonly memoryLimit?: number;
  readonly serviceNodePortRange?: string;
  readonly version?: string | true;
  readonly minRequestTimeout?: number;
  readonly allowPrivileged?: boolean;
  readonly serviceAccountLookup?: boolean;
  readonly clientCaFile?: string;
  readonly enableAdmissionPlugins?: string;
  readonly disableAdmissionPlugins?: string;
  readonly admissionControlConfigFile?: string;
  readonly defaultNotReadyTolerationSeconds?: number;
  readonly defaultUnreachableTolerationSeconds?: number;
  readonly serviceClusterIpRange?: string;
  readonly advertiseAddress?: string;
  readonly endpointReconcilerType?: string;
  readonly etcdServers?: string;
  readonly etcdServersOverrides?: string;
  readonly leaderLease?: number;
  readonly etcdPrefix?: string;
  readonly etcdCafile?: string;
  readonly etcdCertfile?: string;
  readonly etcdKeyfile?: string;
  readonly etcdCompactionInterval?: string;
  readonly storageMediaType?: string;
  readonly eventTtl?: string;
  readonly maxRequestsInflight?: number;
  readonly maxMutatingRequestsInflight?: number;
  readonly maxConnectionsPerSource?: number;
  readonly enablePriorityAndFairness?: string;
  readonly requestTimeout?: string;
  readonly goawayChance?: string;
  readonly shutdownDelayDuration?: string;
  readonly runtimeConfig?: string;
  readonly featureGates: string;
  readonly proxyClientCertFile?: string;
  readonly proxyClientKeyFile?: string;
  readonly kubeletClientCertificate?: string;
  readonly kubeletClientKey?: string;
  readonly kubeletCertificateAuthority?: string;
  readonly kubeletPreferredAddressTypes?: string;
  readonly kubeletPort?: number;
  readonly encryptionProviderConfig?: string;
  readonly encryptionProviderConfigAutomaticReload?: boolean;
}

const AUTHENTICATION_FLAGS = [
  'anonymousAuth',
  'tokenAuthFile',
  'enableBootstrapTokenAuth',
  'authenticationConfig',
  'oidcIssuerUrl',
  'oidcClientId',
  'oidcUsernameClaim',
  'oidcUsernamePrefix',
  'oidcGroupsClaim',
  'oidcGroupsPrefix',
  'oidcCaFile',
  'oidcSigningAlgs',
  'oidcRequiredClaim',
  'authenticationTokenWebhookConfigFile',
  'authenticationTokenWebhookVersion',
  'authenticationTokenWebhookCacheTtl',
  'serviceAccountIssuer',
  'serviceAccountSigningKeyFile',
  'serviceAccountKeyFile',
  'apiAudiences',
  'serviceAccountJwksUri',
  'serviceAccountMaxTokenExpiration',
  'serviceAccountExtendTokenExpiration',
  'requestheaderClientCaFile',
  'requestheaderAllowedNames',
  'requestheaderUsernameHeaders',
  'requestheaderUidHeaders',
  'requestheaderGroupHeaders',
  'requestheaderExtraHeadersPrefix',
] as const satisfies readonly (keyof AuthenticationFlags)[];

const SERVING_FLAGS = [
  'tlsCertFile',
  'tlsPrivateKeyFile',
  'certDir',
  'tlsMinVersion',
  'tlsCipherSuites',
  'tlsCurvePreferences',
  'tlsSniCertKey',
  'http2MaxStreamsPerConnection',
  'externalHostname',
  'profiling',
  'disableHttp2Serving',
  'corsAllowedOrigins',
  'strictTransportSecurityDirectives',
  'egressSelectorConfigFile',
] as const satisfies readonly (keyof ServingFlags)[];

const AUTHORIZATION_FLAGS = [
  'authorizationMode',
  'authorizationConfig',
  'authorizationWebhookConfigFile',
  'authorizationWebhookVersion',
  'authorizationWebhookCacheAuthorizedTtl',
  'authorizationWebhookCacheUnauthorizedTtl',
] as const satisfies readonly (keyof AuthorizationFlags)[];

/** Keys and data are private; a directory of certificates may be open to others. */
function dataDirOf({ dataDir, certDir }: ApiserverFlags): string {
  return dataDir ?? (certDir === undefined ? DATA_DIR : join(certDir, 'megaplane-data'));
}

/** All but who is told of what goes on. */
export function optionsOf(
  flags: ApiserverFlags,
): Omit<ApiserverOptions, 'log' | 'setVerbosity' | 'flags'> {
  const { bindAddress, securePort } = flags;
  return {
    ...{ dataDir: dataDirOf(flags), bindAddress, securePort },
    ...given(flags, ['unixSocket', 'durability', 'historyLimit', 'clientCaFile', 'threads']),
    ...given(flags, SERVING_FLAGS),
    ...given(flags, ['serviceClusterIpRange', 'listenClientUrls']),
    ...given(flags, ['advertiseAddress', 'endpointReconcilerType']),
    ...given(flags, ['enableAdmissionPlugins', 'disableAdmissionPlugins']),
    ...given(flags, ['admissionControlConfigFile', 'defaultNotReadyTolerationSeconds']),
    ...given(flags, ['defaultUnreachableTolerationSeconds']),
    ...given(flags, AUTHENTICATION_FLAGS),
    ...given(flags, AUTHORIZATION_FLAGS),
    ...given(flags, ['etcdServers', 'etcdServersOverrides', 'etcdPrefix', 'eventTtl']),
    ...given(flags, ['journal', 'leaderLease', 'journalCacert', 'journalCert', 'journalKey']),
    ...given(flags, ['journalCredentials', 'journalNkey']),
    ...given(flags, ['etcdCafile', 'etcdCertfile', 'etcdKeyfile', 'storageMediaType']),
    ...given(flags, ['etcdCompactionInterval', 'encryptionProviderConfig']),
    ...given(flags, ['encryptionProviderConfigAutomaticReload', 'kubeletPort']),
    ...given(flags, ['kubeletClientCertificate', 'kubeletClientKey']),
    ...given(flags, ['proxyClientCertFile', 'proxyClientKeyFile']),
    ...given(flags, ['maxRequestsInflight', 'maxMutatingRequestsInflight']),
    ...given(flags, ['requestTimeout', 'goawayChance', 'shutdownDelayDuration']),
    ...given(flags, ['enablePriorityAndFairness', 'maxConnectionsPerSource']),
    ...auditFlagsOf(flags),
    ...given(flags, ['kubeletCertificateAuthority', 'kubeletPreferredAddressTypes']),
    ...(flags.memoryLimit === undefined ? {} : { memoryLimitBytes: flags.memoryLimit }),
  };
}
