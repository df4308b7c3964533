// shell: the TLS flags that all parts of the fleet share
import type { Command } from 'commander';
import { readNamed } from './named-file.ts';

/** Names of PEM files, as flags give them. */
export interface TlsFlags {
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
}

/** Adds the three flags; `own` has them, `peers` are vouched for. */
export function addTlsFlags(command: Command, own: string, peers: string): Command {
  return command
    .optionsGroup('TLS (all three or none):')
    .option('--tls-cert <file>', `certificate of ${own}`)
    .option('--tls-key <file>', 'its key')
    .option('--tls-ca <file>', `authorities of ${peers}`);
}

/** All three, or none: a part of them would be a mistake that nobody sees. */
export function tlsFilesOf(
  command: Command,
  { tlsCert: cert, tlsKey: key, tlsCa: ca }: TlsFlags,
): { readonly cert: string; readonly key: string; readonly ca: string } | undefined {
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  if (cert === undefined || key === undefined || ca === undefined) {
    command.error('error: --tls-cert, --tls-key and --tls-ca go together');
  }
  return { cert, key, ca };
}

/** The same, read. */
export function tlsBytesOf(
  command: Command,
  flags: TlsFlags,
): { readonly cert: Buffer; readonly key: Buffer; readonly ca: Buffer } | undefined {
  const files = tlsFilesOf(command, flags);
  if (files === undefined) return undefined;
  return {
    cert: readNamed('--tls-cert', files.cert),
    key: readNamed('--tls-key', files.key),
    ca: readNamed('--tls-ca', files.ca),
  };
}
