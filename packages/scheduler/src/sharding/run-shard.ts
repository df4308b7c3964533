// shell: one shard, or one relay, as a process
import { serveHttp } from '@megaplane/client/http-endpoint';
import { Exposition } from '@megaplane/client/exposition';
import { processMetrics } from '@megaplane/client/process-metrics';
import type { Profile } from '../framework/runtime/profile.ts';
import { KeptLink, type ParentAddress } from './kept-link.ts';
import { acceptChildren, joinAsRelay, joinAsShard, type Terms } from './links.ts';
import { LiveShare } from './live-share.ts';
import { connectTlsOf, listenTlsOf, unsafeWay, type MemberTls } from './member-tls.ts';

interface MemberOptions {
  /** Of this member: no other may have it. */
  readonly name: string;
  readonly parents: readonly ParentAddress[];
  readonly tls?: MemberTls;
  readonly version: string;
  /** `host:port` of /metrics. */
  readonly metricsAddress: string;
  /** How long a parent that was never reached is asked. */
  readonly joinMsMax: number;
  readonly onTrouble: (message: string) => void;
}

export interface ShardOptions extends MemberOptions {
  readonly profiles: ReadonlyMap<string, Profile>;
  /** Of the configuration. */
  readonly terms: Terms;
}

export interface RelayOptions extends MemberOptions {
  readonly listen: ParentAddress;
}

export interface MemberService {
  readonly listens: string;
  /** Where children join; of shards none do. */
  readonly address?: ParentAddress;
  readonly failure: Promise<Error>;
  stop(): Promise<void>;
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

function checkWays({ parents, tls }: MemberOptions): void {
  for (const { host } of parents) {
    const why = unsafeWay('--join', host, tls);
    if (why !== '') throw new Error(why);
  }
}

/** Distinguishes this process from all others of its name. */
function incarnation(): string {
  return crypto.randomUUID();
}

/** Starts a shard; resolves when a root has taken it in. Throws where none does. */
export async function runShard(options: ShardOptions): Promise<MemberService> {
  checkWays(options);
  const { name, parents, tls, profiles, terms, metricsAddress, joinMsMax, onTrouble } = options;
  let share = new LiveShare(profiles);
  const hello = { ...terms, members: [name], incarnations: [incarnation()] };
  const endpoint = await serveHttp(metricsAddress, ({ path }) =>
    path === '/metrics' ? page(shardText(name, share)) : null,
  );
  const link = new KeptLink({
    ...{ parents, onTrouble, patienceMs: joinMsMax },
    ...(tls === undefined ? {} : { tls: connectTlsOf(tls) }),
    hello: () => hello,
    open: (join) => {
      // whoever takes it in tells it everything anew
      share = new LiveShare(profiles);
      return joinAsShard(join, share);
    },
  });
  const close = async (): Promise<void> => {
    link.close();
    await endpoint.close();
  };
  const error = await Promise.race([link.joined, link.failure]);
  if (error instanceof Error) {
    await close();
    throw error;
  }
  const listens = `shard ${name}; metrics ${endpoint.url}/metrics`;
  return { listens, failure: link.failure, stop: close };
}

/** Starts a relay; resolves when it listens. It joins a root with its first shard. */
export async function runRelay(options: RelayOptions): Promise<MemberService> {
  checkWays(options);
  const { name, parents, tls, version, listen, metricsAddress, joinMsMax, onTrouble } = options;
  const why = unsafeWay('--listen-address', listen.host, tls);
  if (why !== '') throw new Error(why);
  let link: KeptLink | null = null;
  const { promise: failure, resolve: fail } = Promise.withResolvers<Error>();
  const children = await acceptChildren({
    ...listen,
    ...(tls === undefined ? {} : { tls: listenTlsOf(tls) }),
    terms: { version, configHash: '' },
    onChange: () => {
      if (link !== null) link.update();
      else if (children.gathering.size > 0) link = join();
    },
  });
  const { gathering, address } = children;
  const join = (): KeptLink => {
    const made = new KeptLink({
      ...{ parents, onTrouble, patienceMs: joinMsMax },
      ...(tls === undefined ? {} : { tls: connectTlsOf(tls) }),
      hello: () => {
        const { configHash = '', configText } = gathering.anyHello ?? {};
        const { members } = gathering;
        const incarnations = members.map((member) => gathering.incarnationOf(member));
        const text = configText === undefined ? {} : { configText };
        return { version, configHash, members, incarnations, ...text };
      },
      open: (options) => joinAsRelay(options, gathering),
    });
    void made.failure.then(fail);
    return made;
  };
  const endpoint = await serveHttp(metricsAddress, ({ path }) =>
    path === '/metrics' ? page(relayText(name, children.gathering)) : null,
  );
  return {
    listens: `relay ${name} on ${address.host}:${address.port}; metrics ${endpoint.url}/metrics`,
    address,
    failure,
    stop: async () => {
      link?.close();
      await children.close();
      await endpoint.close();
    },
  };
}

function page(text: string): { readonly contentType: string; readonly text: string } {
  return { contentType: METRICS_TYPE, text: text + processMetrics() };
}

/** Beside each the name that it has in the founding experiment (`distscheduler_*`). */
function shardText(member: string, { tables, counts }: LiveShare): string {
  const out = new Exposition();
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): void => {
    out.family(`megaplane_scheduler_shard_${name}`, type, help);
    out.value({ shard: member }, value);
  };
  one('nodes', 'gauge', 'Nodes of the shard.', tables.size);
  one('pods', 'gauge', 'Pods on them.', tables.podCount);
  one('epoch', 'gauge', 'Epoch of the members that nodes are shared out over.', tables.epoch);
  one('rounds_total', 'counter', 'Rounds that were answered.', counts.rounds);
  one('round_seconds_total', 'counter', 'Time that this took.', counts.seconds);
  one('tries_total', 'counter', 'Pods that were looked at.', counts.tries);
  one('changes_total', 'counter', 'Changes that the root told of.', counts.changes);
  one('looks_total', 'counter', 'Nodes that were looked at, by pod.', counts.looks);
  return out.toString();
}

function relayText(member: string, { size, members, counts }: GatheringFacts): string {
  const out = new Exposition();
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): void => {
    out.family(`megaplane_scheduler_relay_${name}`, type, help);
    out.value({ relay: member }, value);
  };
  one('children', 'gauge', 'Shards and relays below.', size);
  one('shards', 'gauge', 'Shards that it leads to.', members.length);
  one('sent_bytes_total', 'counter', 'Octets passed on to children.', counts.sentBytes);
  one('read_bytes_total', 'counter', 'Octets of their answers.', counts.readBytes);
  one('rounds_total', 'counter', 'Rounds that were passed on.', counts.rounds);
  one('round_seconds_total', 'counter', 'From a round to the last answer.', counts.seconds);
  return out.toString();
}

interface GatheringFacts {
  readonly size: number;
  readonly members: readonly string[];
  readonly counts: {
    readonly sentBytes: number;
    readonly readBytes: number;
    readonly rounds: number;
    readonly seconds: number;
  };
}
