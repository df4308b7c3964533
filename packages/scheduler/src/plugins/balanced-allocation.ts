import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { scoreEach, SKIP, type Plugin, type PreScoreOutcome } from '../plugin.ts';
import { amountIn, isScalar } from '../resources.ts';

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
    const squares = fractions.reduce((sum, fraction) => sum + (fraction - mean) ** 2, 0);
    deviation = Math.sqrt(squares / fractions.length);
  }
  return Math.trunc((1 - deviation) * 100);
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

  preScore({ requests }: PodInfo): PreScoreOutcome {
    const wanted = this.#names.map((name) => amountIn(requests, name));
    if (wanted.every((amount) => amount === 0)) return SKIP;
    const none = wanted.map(() => 0);
    return scoreEach((node) => {
      const after = balanceScore(this.#fractions(node, wanted, wanted));
      if (!this.#isChangeScored) return after;
      const before = balanceScore(this.#fractions(node, wanted, none));
      return 50 + Math.trunc((50 + after - before) / 2);
    });
  }

  #fractions(node: NodeInfo, wanted: readonly number[], added: readonly number[]): number[] {
    const fractions: number[] = [];
    for (const [index, name] of this.#names.entries()) {
      const capacity = amountIn(node.allocatable, name);
      if (capacity === 0 || (wanted[index] === 0 && isScalar(name))) continue;
      const used = amountIn(node.requested, name) + (added[index] ?? 0);
      fractions.push(Math.min(1, used / capacity));
    }
    return fractions;
  }
}
