// shell: files
/**
 * The flags of a secure port with delegated authentication and authorization, as k8s.io/apiserver
 * has them. The port is served where one of them is given, as manifests of kubeadm do.
 */
import { type Command, Option } from 'commander';
import type { SecureAddress } from '@megaplane/client/secure-endpoint';
import { readNamed } from './named-file.ts';
import { durationOption, flagValue, wholeNumber, words } from '../parsers/flag-parsers.ts';

export interface SecureFlags {
  readonly securePort?: number;
  readonly bindAddress?: string;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly clientCaFile?: string;
  readonly authenticationKubeconfig?: string;
  readonly authenticationSkipLookup?: boolean;
  readonly authorizationKubeconfig?: string;
  readonly authorizationAlwaysAllowPaths: readonly string[];
  readonly authenticationTokenWebhookCacheTtl: number;
  readonly authorizationWebhookCacheAuthorizedTtl: number;
  readonly authorizationWebhookCacheUnauthorizedTtl: number;
}

const TTL_MS = 10_000;
const OPEN_PATHS: readonly string[] = ['/healthz', '/readyz', '/livez'];

export function addSecureFlags(command: Command, port: number): Command {
  const ttl = (flag: string, description: string): Option =>
    durationOption(`--${flag} <duration>`, description, TTL_MS);
  return command
    .optionsGroup('Secure port (served if one of the first six is given):')
    .option('--secure-port <port>', `of HTTPS; 0 = none (default: ${port})`, wholeNumber(0, 65_535))
    .option('--bind-address <ip>', 'of HTTPS (default: all)')
    .option('--tls-cert-file <file>', 'its certificate (default: one signed by itself)')
    .option('--tls-private-key-file <file>', 'the key of its certificate')
    .option('--authentication-kubeconfig <file>', 'how to reach who knows tokens')
    .option('--authorization-kubeconfig <file>', 'how to reach who knows what is allowed')
    .option('--client-ca-file <file>', 'authorities of client certificates (default: looked up)')
    .option('--authentication-skip-lookup [bool]', 'do not look authorities up', flagValue)
    .addOption(
      new Option('--authorization-always-allow-paths <paths>', 'that all may see, with commas')
        .default(OPEN_PATHS)
        .argParser(words),
    )
    .addOption(ttl('authentication-token-webhook-cache-ttl', 'how long tokens are known'))
    .addOption(ttl('authorization-webhook-cache-authorized-ttl', 'how long permission lasts'))
    .addOption(ttl('authorization-webhook-cache-unauthorized-ttl', 'how long refusal lasts'));
}

/** What is to be served; undefined for no secure port. `usualPort` is the program's own. */
export async function secureAddressOf(
  flags: SecureFlags,
  usualPort: number,
): Promise<SecureAddress | undefined> {
  const { securePort, bindAddress, tlsCertFile, tlsPrivateKeyFile } = flags;
  const { authenticationKubeconfig, authorizationKubeconfig, clientCaFile = '' } = flags;
  const asks = [authenticationKubeconfig, authorizationKubeconfig];
  const isAsked = [securePort, bindAddress, tlsCertFile, tlsPrivateKeyFile, ...asks].some(
    (value) => value !== undefined,
  );
  const port = securePort ?? usualPort;
  if (!isAsked || port === 0) return undefined;
  const bound = bindAddress ?? '';
  const { certificate, key } = await identityOf(flags);
  return {
    host: bound === '0.0.0.0' || bound === '::' ? '' : bound,
    port,
    certificate,
    key,
    openPaths: flags.authorizationAlwaysAllowPaths,
    clientCa: clientCaFile === '' ? '' : readNamed('--client-ca-file', clientCaFile).toString(),
    looksUp: flags.authenticationSkipLookup !== true,
    authenticationKubeconfig: authenticationKubeconfig ?? '',
    authorizationKubeconfig: authorizationKubeconfig ?? '',
    tokenMs: flags.authenticationTokenWebhookCacheTtl,
    allowedMs: flags.authorizationWebhookCacheAuthorizedTtl,
    deniedMs: flags.authorizationWebhookCacheUnauthorizedTtl,
  };
}

async function identityOf({
  tlsCertFile = '',
  tlsPrivateKeyFile = '',
}: SecureFlags): Promise<{ readonly certificate: string; readonly key: string }> {
  if (tlsCertFile === '' && tlsPrivateKeyFile === '') {
    const { makeServingCertificate } = await import('../service/serving-certificate.ts');
    return makeServingCertificate([]);
  }
  return {
    certificate: readNamed('--tls-cert-file', tlsCertFile).toString(),
    key: readNamed('--tls-private-key-file', tlsPrivateKeyFile).toString(),
  };
}
