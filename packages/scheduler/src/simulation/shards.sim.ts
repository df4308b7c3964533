/**
 * Shards and relays of a scheduler in a world that goes wrong: frames are late, links break,
 * members die, come again and hang.
 */
import type { Random } from '@megaplane/base/random';
import type { CoreOptions } from '../core/core-options.ts';
import type { SchedulerCore } from '../core/scheduler-core.ts';
import type { UserPlugin } from '../framework/runtime/user-plugin.ts';
import { HandTree } from '../sharding/hand-tree.sim.ts';
import { ShardHost } from '../sharding/shard-host.ts';
import type { World } from './world.sim.ts';

const NAMES_MAX = 5;
/** One hop takes so long at most, and so long at most where somebody hangs. */
const HOP_MS = 5;
const HANG_MS = 12_000;

/** Has a say about every pod, so that each is evaluated in full. */
const OWN: UserPlugin = {
  name: 'Own',
  points: ['score'],
  create: () => ({
    name: 'Own',
    preScore: () => ({
      kind: 'run',
      scorer: { score: ({ pods }) => 50 - Math.min(50, pods.length) },
    }),
  }),
};

/** A machine that asks its shards about every pod. */
export const SHARDED: Partial<CoreOptions> = {
  plugins: [OWN],
  profiles: [{ plugins: { multiPoint: { enabled: [{ name: 'Own', weight: 1 }] } } }],
  scatteredNodesMin: 1,
};

export class SimulatedShards {
  readonly host: ShardHost;
  readonly tree: HandTree;
  readonly #world: World;
  readonly #luck: Random;
  readonly #arriveMs = new Map<string, number>();
  #serial = 0;

  /** `later`: as the process does things, which sleeps now and then. */
  constructor(
    world: World,
    core: SchedulerCore,
    luck: Random,
    later: (delayMs: number, run: () => void) => void,
  ) {
    this.#world = world;
    this.#luck = luck;
    const profiles = new Map([...core.profiles].map(([name, { profile }]) => [name, profile]));
    this.tree = new HandTree(
      profiles,
      (link, run) => this.#deliver(link, run),
      () => {
        world.isAwaited = true;
        this.host.membersChanged();
      },
    );
    this.host = new ShardHost({
      gathering: this.tree.gathering,
      tables: core,
      clock: {
        nowMs: () => world.nowMs,
        after: (delayMs, run) => {
          let isCancelled = false;
          later(delayMs, () => {
            world.isAwaited = true;
            if (!isCancelled) run();
          });
          return () => void (isCancelled = true);
        },
      },
      onTrouble: () => {},
    });
    core.placement.shards = this.host;
    for (let i = 0; i < 2; i++) this.tree.addRelay(`relay-${this.#serial++}`);
    for (let i = 0; i < 3; i++) this.#add(`s${i}`);
  }

  /** In the order of each link, as a connection has it. */
  #deliver(link: string, run: () => void): void {
    const world = this.#world;
    const hangs = !world.isCalm && this.#luck.below(400) === 0;
    const slowMs = this.#luck.below(hangs ? HANG_MS : HOP_MS);
    const arriveMs = Math.max(world.nowMs + slowMs, this.#arriveMs.get(link) ?? 0);
    this.#arriveMs.set(link, arriveMs);
    world.at(arriveMs - world.nowMs, () => {
      world.isAwaited = true;
      run();
    });
  }

  #add(name: string): void {
    const relay = this.#luck.below(4) === 0 ? '' : (this.#world.pick(this.tree.relays) ?? '');
    this.tree.addShard(name, relay);
  }

  /** A member dies, hangs up, or comes. */
  disturb(): void {
    const { tree } = this;
    const dice = this.#luck.below(10);
    const shard = this.#world.pick(tree.shards);
    const relay = this.#world.pick(tree.relays);
    if (dice < 3 && shard !== undefined) tree.cut(shard);
    else if (dice < 4 && relay !== undefined) tree.cutRelay(relay);
    else if (dice < 5 && tree.relays.length < 3) tree.addRelay(`relay-${this.#serial++}`);
    else {
      const name = `s${this.#luck.below(NAMES_MAX)}`;
      if (!tree.shards.includes(name)) this.#add(name);
    }
  }
}
