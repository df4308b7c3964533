/** What a shard is started with. */
import type { FleetTlsFiles } from '../contract/tls-files.ts';
import type { ShardOptions } from '../engine/shard.ts';
import type { ProviderAddress } from './provider-link.ts';

export interface RunShardOptions {
  readonly shardId: string;
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  /** `host:port` of metrics and health. */
  readonly metricsAddress: string;
  /** `isSecure`: over TLS, with the shard's own certificate. */
  readonly providers: readonly (ProviderAddress & { readonly isSecure: boolean })[];
  readonly tls?: FleetTlsFiles;
  /** To whom the shard reports; without one it has all machines. */
  readonly coordinators?: RunShardOptions['providers'];
  /** Between two reports. */
  readonly reportMs?: number;
  /** Where operators reach the shard, for its coordinator; default: where it listens. */
  readonly advertised?: string;
  readonly engine: ShardOptions;
  readonly cycleMs: number;
  readonly joinMs: number;
  readonly concurrency: number;
  readonly isIncremental: boolean;
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void;
}
