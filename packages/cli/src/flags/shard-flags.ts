// shell: reads files
/** Flags of the scheduler's root, shards and relays, and what they mean together. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { SchedulerConfiguration } from '@megaplane/scheduler/configuration/configuration';
import type { EmulatedVersion } from '@megaplane/scheduler/compatibility';
import type { MemberTls } from '@megaplane/scheduler/shards/member-tls';
import { readNamed } from './named-file.ts';

export interface MemberFlags {
  readonly shardCertFile?: string;
  readonly shardKeyFile?: string;
  readonly shardCaFile?: string;
}

/** Shards that one root starts beside itself. */
export const SHARDS_MAX = 256;
export const FAN_OUT = 10;

export function addMemberTls(command: Command): Command {
  return command
    .optionsGroup('Shards on other machines (all three or none):')
    .option('--shard-cert-file <file>', 'certificate of this member, for system:kube-scheduler')
    .option('--shard-key-file <file>', 'its key')
    .option('--shard-ca-file <file>', "the cluster's authority, which vouches for all members");
}

/** The three files, read; undefined: none is named. */
export function memberTlsOf(command: Command, flags: MemberFlags): MemberTls | undefined {
  const { shardCertFile: cert, shardKeyFile: key, shardCaFile: ca } = flags;
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  if (cert === undefined || key === undefined || ca === undefined) {
    command.error('error: --shard-cert-file, --shard-key-file and --shard-ca-file go together');
  }
  return {
    cert: readNamed('--shard-cert-file', cert),
    key: readNamed('--shard-key-file', key),
    ca: readNamed('--shard-ca-file', ca),
  };
}

/** What all members must agree about: whatever has a say in a decision. */
export interface ConfigurationTerms {
  readonly version: string;
  readonly configHash: string;
  readonly configText: string;
}

export function termsOf(
  version: string,
  { complete }: SchedulerConfiguration,
  plugins: readonly string[],
  emulatedVersion: EmulatedVersion,
): ConfigurationTerms {
  const { profiles, percentageOfNodesToScore } = complete as Record<string, unknown>;
  const digests = plugins.map((file) => digestOf(readFileSync(file)));
  const decisive = { emulatedVersion, percentageOfNodesToScore, profiles, plugins: digests };
  const configText = JSON.stringify(decisive);
  return { version, configText, configHash: digestOf(configText) };
}

function digestOf(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}
