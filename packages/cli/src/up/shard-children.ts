// shell: the shards and relays of a scheduler as its children
import { Child, type ChildPlan } from './children.ts';

export interface ShardTreeOptions {
  /** The root's port. */
  readonly root: { readonly host: string; readonly port: number };
  readonly shards: number;
  /** Children of the root and of each relay at most. */
  readonly fanOut: number;
  /** Flags of shards by which the root decides, too. */
  readonly decisive: readonly string[];
  /** Flags of all members. */
  readonly common: readonly string[];
  readonly say: (text: string) => void;
}

/** A place in the tree: shards have no children. */
export interface TreePlan {
  readonly name: string;
  readonly children: readonly TreePlan[];
}

const HEAP_MIB_MAX = 4096;

/**
 * Who is whose parent: shards at the root as long as these are few, else behind as few levels of
 * relays as there can be, evenly.
 */
export function treeOf(shards: number, fanOut: number): readonly TreePlan[] {
  let level: TreePlan[] = Array.from({ length: shards }, (_, i) => ({
    name: `shard-${i}`,
    children: [],
  }));
  for (let depth = 0; level.length > fanOut; depth++) {
    const relays = Math.ceil(level.length / fanOut);
    level = Array.from({ length: relays }, (_, i) => ({
      name: `relay-${depth}-${i}`,
      children: level.filter((_one, index) => index % relays === i),
    }));
  }
  return level;
}

/** Starts all of them; resolves when each has joined. Throws with what the first one said. */
export async function startShards(options: ShardTreeOptions): Promise<{
  stop(): Promise<void>;
}> {
  const children: Child[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()));
  };
  const grow = async (plans: readonly TreePlan[], parent: string): Promise<void> => {
    await Promise.all(
      plans.map(async (plan) => {
        const isRelay = plan.children.length > 0;
        const child = childOf(memberPlan(plan.name, isRelay, parent, options), options.say);
        children.push(child);
        const listens = await child.start();
        if (!isRelay) return;
        const address = addressIn(listens);
        // where its shards look for it when it has died and comes again
        child.replan(memberPlan(plan.name, isRelay, parent, options, address));
        await grow(plan.children, address);
      }),
    );
  };
  const { host, port } = options.root;
  try {
    await grow(treeOf(options.shards, options.fanOut), `${host}:${port}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

function childOf(plan: ChildPlan, say: (text: string) => void): Child {
  const log = { write: (line: string) => say(`${plan.name}: ${line}`), end: () => {} };
  return new Child(plan, log, say);
}

function memberPlan(
  name: string,
  isRelay: boolean,
  parent: string,
  { decisive, common }: ShardTreeOptions,
  address = '127.0.0.1:0',
): ChildPlan {
  const own = isRelay ? ['relay', '--listen-address', address] : ['shard', ...decisive];
  return {
    name,
    runtimeFlags: [`--max-old-space-size=${HEAP_MIB_MAX}`, '--max-semi-space-size=16'],
    args: ['scheduler', ...own, '--join', parent, '--name', name, ...common],
  };
}

/** Of a relay's ready line. */
function addressIn(listens: string): string {
  const found = /^relay \S+ on (\S+:\d+);/.exec(listens)?.[1];
  if (found === undefined) throw new Error(`a relay does not say where it listens: ${listens}`);
  return found;
}
