/** What keeps a shard from doing too much at once: section 4.10. */
import type { Action } from './row.ts';

export interface Rails {
  /** Of a cluster's Configured machines, given up in one cycle; 0 or less: all. */
  readonly reclaimCapFraction: number;
  /** Nothing is carried out. */
  readonly paused: boolean;
  /** The same, for those who only want to see. */
  readonly dryRun: boolean;
  /** Of all kinds; 0: no limit. */
  readonly maxActionsPerCycle: number;
}

export interface Railed {
  readonly actions: readonly Action[];
  /** Reclaims kept back by the cap. */
  readonly withheld: readonly Action[];
  /** How many were cut by the limit. */
  readonly deferred: number;
  /** Why nothing is carried out; then nothing is kept back either. */
  readonly suppressed: 'paused' | 'dryRun' | undefined;
}

/**
 * Lays the rails around a cycle's actions: `before` and `after` the reclaims.
 * `configuredIn` counts the Configured machines of a cluster.
 */
export function railed(
  rails: Rails,
  { before, reclaims, after }: Readonly<Record<'before' | 'reclaims' | 'after', readonly Action[]>>,
  configuredIn: (cluster: string) => number,
): Railed {
  if (rails.paused || rails.dryRun) {
    const suppressed = rails.paused ? 'paused' : 'dryRun';
    return { actions: [...before, ...reclaims, ...after], withheld: [], deferred: 0, suppressed };
  }
  const withheld: Action[] = [];
  const kept = new Map<string, number>();
  const capped = reclaims.filter((action) => {
    const count = kept.get(action.cluster) ?? 0;
    const cap = capOf(rails.reclaimCapFraction, configuredIn(action.cluster));
    if (count >= cap) withheld.push(action);
    else kept.set(action.cluster, count + 1);
    return count < cap;
  });
  const all = [...before, ...capped, ...after];
  const limit = rails.maxActionsPerCycle > 0 ? rails.maxActionsPerCycle : all.length;
  const actions = all.slice(0, limit);
  return { actions, withheld, deferred: all.length - actions.length, suppressed: undefined };
}

function capOf(fraction: number, configured: number): number {
  return fraction <= 0 ? Infinity : Math.max(1, Math.floor(fraction * configured));
}
