/** The node of a pod by full evaluation, of which shards look at the nodes. */
import type { Random } from '@megaplane/base/random';
import type { Asking } from '../extenders/extender-rounds.ts';
import type { ClusterView } from '../view/cluster-view.ts';
import type { CycleMeter } from '../framework/cycle-meter.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Nominator } from './topology/nominator.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import { summedTry, type ShardPort, type Tried } from '../sharding/scatter/summed-try.ts';
import { SpotView } from '../view/spot-view.ts';

/** Fewer nodes than this are looked at faster than shards are asked. */
export const SCATTERED_NODES_MIN = 500;

export interface ScatterOptions {
  readonly nodes: NodeTable;
  readonly view: ClusterView;
  readonly nominator: Nominator;
  readonly random: Random;
}

/** `isGone`: whether the pod is no longer there, or no longer to be decided about. */
export function* scatteredPick(
  { nodes, view, nominator, random }: ScatterOptions,
  port: ShardPort,
  id: number,
  profile: Profile,
  meter: CycleMeter,
  isGone: () => boolean,
): Asking<Tried> {
  if (!port.isReady) yield { kind: 'shards', round: null };
  if (!port.isReady || isGone()) return { how: 'unavailable' };
  const waiting = new Map(
    [...nominator.nodes].flatMap((node) => nominator.on(node)).map((pod) => [pod.key, pod]),
  );
  const scale = { nodes: nodes.count, seed: random.below(2 ** 32) };
  const spot = new SpotView(view, nodes);
  const asked = [view.podAt(id), spot, profile, nominator, meter] as const;
  return yield* summedTry(port, scale, [...waiting.values()], ...asked);
}
