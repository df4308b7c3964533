// shell: reports of a shard to its coordinator, and the file with what it was told
/**
 * Reports go out at once, and then each interval, to whichever coordinator leads: one that does not
 * is left for the next. Nothing waits for an answer; without one the shard goes on as it was.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { unawaited } from '@megaplane/base/deferred';
import { parseNested } from '@megaplane/base/nested-json';
import { makePrivateDirectory, replacePrivately } from '@megaplane/base/private-file';
import { systemTimers } from '@megaplane/client/system-timers';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { callUnary, MESSAGE_BYTES_MAX } from '../contract/calls.ts';
import { Coordinator } from '../contract/tables/coordinator.ts';
import type { ShardReport } from '../contract/tables/coordinator.ts';
import { Coordination } from './coordination.ts';
import type { Reported } from './coordination.ts';
import type { Domains } from './domains.ts';
import type { ProviderAddress } from './provider-link.ts';

const CALL_MS_MAX = 10_000;
/** There are acknowledgements to give, or nobody answered: sooner than an interval. */
const SOON_MS = 1000;
const FILE = 'assigned';

export interface CoordinatorLinkOptions {
  readonly addresses: readonly (ProviderAddress & { readonly isSecure: boolean })[];
  readonly tls: () => ConnectTls | undefined;
  readonly shardId: string;
  readonly epoch: bigint;
  readonly address: string;
  readonly dataDir: string;
  /** As they were kept; they change with what is told. */
  readonly domains: Domains;
  /** The highest term that was heard. */
  readonly term: bigint;
  readonly intervalMs: number;
  readonly reported: () => Reported;
  /** The shard has other domains now. */
  readonly changed: () => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

export class CoordinatorLink {
  readonly #options: CoordinatorLinkOptions;
  readonly #coordination: Coordination;
  #at = 0;
  #isFailing = false;
  #cancel: (() => void) | null = null;
  #isStopped = false;

  constructor(options: CoordinatorLinkOptions) {
    this.#options = options;
    const { shardId, epoch, address, domains, term } = options;
    this.#coordination = new Coordination({ shardId, epoch, address, domains, term });
  }

  start(): void {
    this.#in(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #in(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancel = systemTimers.after(delayMs, () => {
      unawaited(this.#turn().then((nextMs) => this.#in(nextMs)));
    });
  }

  async #turn(): Promise<number> {
    const { addresses, intervalMs, log, reported } = this.#options;
    const report = this.#coordination.report(reported(), systemTimers.wallMs());
    for (let tries = 0; tries < addresses.length; tries++) {
      const why = await this.#send(report);
      if (why === '') {
        if (this.#isFailing) log('info', 'a coordinator answers again');
        this.#isFailing = false;
        return this.#coordination.waiting > 0 ? Math.min(SOON_MS, intervalMs) : intervalMs;
      }
      if (!this.#isFailing && tries === addresses.length - 1) {
        log('warn', `no coordinator takes reports, all else goes on: ${why}`);
        this.#isFailing = true;
      }
      this.#at = (this.#at + 1) % addresses.length;
    }
    return Math.min(SOON_MS, intervalMs);
  }

  /** Why it was not taken; '' if it was. */
  async #send(report: ShardReport): Promise<string> {
    const { addresses, tls, log, changed, domains } = this.#options;
    const address = addresses[this.#at];
    if (address === undefined) return 'there is none';
    const { host, port } = address;
    const own = address.isSecure ? tls() : undefined;
    const connection = connect({ host, port, ...(own === undefined ? {} : { tls: own }) });
    const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
    try {
      const { reportShard } = Coordinator.method;
      const answer = await callUnary(client, reportShard, report, CALL_MS_MAX);
      if (this.#isStopped) return '';
      const before = domains.version;
      if (this.#coordination.acknowledged(report, answer)) this.#keep();
      if (domains.version !== before) {
        log('info', `the coordinator assigns ${domains.size} domains`);
        changed();
      }
      return '';
    } catch (error) {
      return `${host}:${port}: ${(error as Error).message}`;
    } finally {
      connection.destroy();
    }
  }

  #keep(): void {
    const { term } = this.#coordination;
    const kept = { term: String(term), domains: [...this.#options.domains.pairs()] };
    replacePrivately(join(this.#options.dataDir, FILE), `${JSON.stringify(kept)}\n`);
  }
}

/** What a coordinator told last. Throws an `Error` for people where the file is something else. */
export function readAssigned(dataDir: string): {
  readonly term: bigint;
  readonly pairs: readonly (readonly [string, string])[];
} {
  makePrivateDirectory(dataDir);
  const file = join(dataDir, FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { term: 0n, pairs: [] };
    throw error;
  }
  try {
    const read = parseNested(text) as { term: string; domains: [string, string][] };
    const pairs = read.domains.map(([key, value]): [string, string] => {
      if (typeof key !== 'string' || typeof value !== 'string') throw new Error('no texts');
      return [key, value];
    });
    return { term: BigInt(read.term), pairs };
  } catch (error) {
    const how = 'remove it, and the shard takes every machine until its coordinator speaks';
    throw new Error(`${file} does not hold assigned domains: ${how}`, { cause: error });
  }
}
