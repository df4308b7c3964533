// shell: shards and relays in this process, each at the end of a connection of its own
import type { Profile } from '../framework/runtime/profile.ts';
import type { Gathering } from './gathering.ts';
import { acceptChildren, joinAsRelay, joinAsShard, type Children, type Link } from './links.ts';
import { Share } from './share.ts';

export interface TreeOptions {
  /** Shards, at least 1. */
  readonly shards: number;
  /** Levels of relays between them and the root. */
  readonly relayLevels: number;
  /** Children of the root and of each relay. */
  readonly fanOut: number;
  readonly profiles: ReadonlyMap<string, Profile>;
}

export interface Tree {
  readonly root: Gathering;
  close(): Promise<void>;
}

const HOST = '127.0.0.1';
const TERMS = { version: 'in process', configHash: '' };

/** Starts them; resolves when the root has all shards. */
export async function startTree(options: TreeOptions): Promise<Tree> {
  const links: Link[] = [];
  const ports: Children[] = [];
  const close = async (): Promise<void> => {
    for (const link of links) link.close();
    await Promise.all(ports.map((port) => port.close()));
  };
  /** A port that resolves once it leads to so many shards. */
  const open = async (count: number): Promise<{ port: Children; full: Promise<void> }> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const port = await acceptChildren({
      ...{ host: HOST, port: 0, terms: TERMS },
      onChange: () => {
        if (port.gathering.members.length === count) resolve();
      },
    });
    ports.push(port);
    return { port, full: promise };
  };
  const joining = (port: Children, members: readonly string[], fail: (why: string) => void) => ({
    ...{ host: HOST, port: port.address.port },
    hello: { ...TERMS, members },
    onEnd: fail,
  });
  const { promise: failure, reject } = Promise.withResolvers<never>();
  const fail = (why: string): void => reject(new Error(`a shard could not join: ${why}`));
  const grow = async (members: readonly string[], levels: number): Promise<Children> => {
    const { port, full } = await open(members.length);
    for (const group of groups(members, levels === 0 ? members.length : options.fanOut)) {
      if (levels === 0) {
        for (const name of group) {
          links.push(joinAsShard(joining(port, [name], fail), new Share(name, options.profiles)));
        }
      } else {
        const relay = await grow(group, levels - 1);
        links.push(joinAsRelay(joining(port, group, fail), relay.gathering));
      }
    }
    await Promise.race([full, failure]);
    return port;
  };
  const names = Array.from({ length: options.shards }, (_, i) => `shard-${i}`);
  try {
    const root = await grow(names, options.relayLevels);
    failure.catch(() => {});
    return { root: root.gathering, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Shares out members over at most so many children. */
function groups(members: readonly string[], children: number): string[][] {
  const found: string[][] = [];
  for (const [index, member] of members.entries()) (found[index % children] ??= []).push(member);
  return found;
}
