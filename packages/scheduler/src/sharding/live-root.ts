// shell: the port at which shards join a live scheduler
import { afterMs } from '@megaplane/base/deferred';
import { systemClock } from '@megaplane/base/system-clock';
import type { SchedulerCore } from '../core/scheduler-core.ts';
import { acceptChildren, type Children, type Terms } from './links.ts';
import { listenTlsOf, unsafeWay, type MemberTls } from './member-tls.ts';
import { ShardHost } from './shard-host.ts';

export interface LiveRootOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls?: MemberTls | undefined;
  readonly terms: Terms;
  /** A round that takes longer is given up, and the root decides. */
  readonly roundMsMax?: number | undefined;
}

export interface LiveRoot {
  readonly host: ShardHost;
  readonly address: Children['address'];
  /** Resolves once so many shards are there. */
  joined(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Takes shards in. `mayLead`: whether this process decides. Throws where the port is taken. */
export async function openLiveRoot(
  options: LiveRootOptions,
  core: SchedulerCore,
  mayLead: () => boolean,
  onTrouble: (message: string) => void,
): Promise<LiveRoot> {
  const { host: bound, port, tls, terms, roundMsMax } = options;
  const why = unsafeWay('--shards-address', bound, tls);
  if (why !== '') throw new Error(why);
  const waiting = new Set<() => void>();
  const children = await acceptChildren({
    ...{ host: bound, port, terms },
    ...(tls === undefined ? {} : { tls: listenTlsOf(tls) }),
    onChange: () => {
      host.membersChanged();
      for (const look of waiting) look();
    },
    refusal: () => (mayLead() ? '' : 'this scheduler does not lead'),
  });
  const host = new ShardHost({
    gathering: children.gathering,
    tables: core,
    clock: {
      nowMs: () => systemClock.monotonicMs(),
      after: (delayMs, run) => {
        const timer = afterMs(delayMs, run);
        return () => clearTimeout(timer);
      },
    },
    ...(roundMsMax === undefined ? {} : { roundMsMax }),
    onTrouble,
  });
  core.placement.shards = host;
  return {
    host,
    address: children.address,
    joined: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (host.size < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    close: () => children.close(),
  };
}
