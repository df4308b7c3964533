// shell: files
/** The flags of the port over TLS that each of Kubernetes' components has. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { SecureAddress } from '@megaplane/client/secure-endpoint';
import { wholeNumber, words } from './usage.ts';

export interface SecureFlags {
  readonly bindAddress?: string;
  readonly securePort?: number;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly authorizationAlwaysAllowPaths: readonly string[];
}

/** Adds them; `port` is the program's own. */
export function addSecureFlags(command: Command, port: number): Command {
  return command
    .option('--bind-address <address>', `of /metrics and health over TLS (default: all)`)
    .option(
      '--secure-port <port>',
      `of the same; 0 = not at all (default: ${port} with --bind-address, else 0)`,
      wholeNumber(0, 65_535),
    )
    .option('--tls-cert-file <file>', 'of that port (default: one made at the start)')
    .option('--tls-private-key-file <file>', 'its key')
    .option(
      '--authorization-always-allow-paths <paths>',
      'for all; others for whom the API server allows them',
      words,
      ['/healthz', '/readyz', '/livez'],
    );
}

/** Where to serve; undefined for nowhere. `port` is the program's own. */
export async function secureAddressOf(
  flags: SecureFlags,
  port: number,
): Promise<SecureAddress | undefined> {
  const usual = flags.bindAddress === undefined ? 0 : port;
  const securePort = flags.securePort ?? usual;
  if (securePort === 0) return undefined;
  const bound = flags.bindAddress ?? '';
  const { certificate, key } = await certificateOf(flags);
  return {
    host: bound === '' || bound === '0.0.0.0' ? '::' : bound,
    port: securePort,
    certificate,
    key,
    openPaths: flags.authorizationAlwaysAllowPaths,
  };
}

async function certificateOf(
  flags: SecureFlags,
): Promise<{ readonly certificate: string; readonly key: string }> {
  const { tlsCertFile = '', tlsPrivateKeyFile = '' } = flags;
  if (tlsCertFile === '' && tlsPrivateKeyFile === '') {
    const { makeServingCertificate } = await import('./serving-certificate.ts');
    return makeServingCertificate('');
  }
  return {
    certificate: fileOf('--tls-cert-file', tlsCertFile),
    key: fileOf('--tls-private-key-file', tlsPrivateKeyFile),
  };
}

function fileOf(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${flag}: cannot read "${file}": ${(error as Error).message}`, {
      cause: error,
    });
  }
}
