import { deviceCounts } from '../../dynamicresources/device-counts.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { scoreEach, SKIP, type Plugin, type PreScoreOutcome } from '../plugin.ts';
import { amountIn, isScalar } from '../../api/resources.ts';
import type { Snapshot } from '../snapshot.ts';

export interface BalancedAllocationArgs {
  readonly resources?: readonly { readonly name: string }[];
}

const DEFAULT_RESOURCES = [{ name: 'cpu' }, { name: 'memory' }];

/** How even the fractions in use are, from 0 to 100, in the very float operations of upstream. */
export function balanceScore(fractions: readonly number[]): number {
  let deviation = 0;
  const [first = 0, second = 0] = fractions;
  if (fractions.length === 2) {
    deviation = Math.abs(first - second) / 2;
  } else if (fractions.length > 2) {
    const mean = fractions.reduce((sum, fraction) => sum + fraction, 0) / fractions.length;
    const squares = fractions.reduce((sum, fraction) => sum + square(fraction - mean), 0);
    deviation = Math.sqrt(squares / fractions.length);
  }
  return Math.trunc((1 - deviation) * 100);
}

interface Use {
  readonly used: number;
  readonly added: number;
  readonly capacity: number;
}

function part(used: number, capacity: number): number {
  return Math.min(1, used / capacity);
}

/** Rounded once, as a product is; a power may be rounded otherwise. */
function square(number: number): number {
  return number * number;
}

export class BalancedAllocation implements Plugin {
  readonly name = 'NodeResourcesBalancedAllocation';
  readonly #names: readonly string[];
  readonly #isChangeScored: boolean;

  /** `isChangeScored`: as since 1.36, what the pod does to the balance, not the balance itself. */
  constructor({ resources }: BalancedAllocationArgs, isChangeScored: boolean) {
    this.#names = (resources ?? DEFAULT_RESOURCES).map(({ name }) => name);
    this.#isChangeScored = isChangeScored;
  }

  preScore(pod: PodInfo, snapshot: Snapshot): PreScoreOutcome {
    const isIdle = this.#names.every((name) => amountIn(pod.requests, name) === 0);
    return isIdle ? SKIP : this.scoreAnyway(pod, snapshot);
  }

  /** Pods that ask for nothing are left out in the preparation only. */
  scoreAnyway({ requests }: PodInfo, snapshot: Snapshot): PreScoreOutcome {
    const wanted = this.#names.map((name) => amountIn(requests, name));
    const counts = deviceCounts(
      this.#names.filter((_, index) => wanted[index] !== 0),
      snapshot,
    );
    return scoreEach((node) => {
      const uses = this.#uses(node, wanted, counts);
      const after = balanceScore(
        uses.map(({ used, added, capacity }) => part(used + added, capacity)),
      );
      if (!this.#isChangeScored) return after;
      const before = balanceScore(uses.map(({ used, capacity }) => part(used, capacity)));
      return 50 + Math.trunc((50 + after - before) / 2);
    });
  }

  /** Of the resources that the node has, and the pod asks for where that matters. */
  #uses(node: NodeInfo, wanted: readonly number[], counts: ReturnType<typeof deviceCounts>): Use[] {
    const uses: Use[] = [];
    for (const [index, name] of this.#names.entries()) {
      const added = wanted[index] ?? 0;
      if (added === 0 && isScalar(name)) continue;
      const devices = counts?.(name, node);
      const byDevices = devices !== undefined && devices.capacity > 0;
      const capacity = byDevices ? devices.capacity : amountIn(node.allocatable, name);
      if (capacity === 0) continue;
      uses.push({
        used: byDevices ? devices.taken : amountIn(node.requested, name),
        added,
        capacity,
      });
    }
    return uses;
  }
}
