/**
 * What any provider must do, as checks that run against one that is there: each takes a machine
 * that is free, and leaves it as it found it where the provider lets it. A check that finds no
 * machine for itself is incomplete, and so is the certification.
 */
import { Bench } from './certify-bench.ts';
import type { CertifyOptions, CertifyProfile, ProviderCalls } from './certify-bench.ts';
import { CHECKS } from './certify-checks.ts';
import { Incomplete } from './certify-words.ts';

export interface Verdict {
  /** As the published catalogue numbers it. */
  readonly id: string;
  readonly area: string;
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'incomplete';
  readonly why: string;
}

/** Checks of these need nothing but the six calls. */
const BLACK_BOX: readonly CertifyProfile[] = ['core', 'cloud', 'bare-metal'];

/** Runs all checks of a profile, one after the other; one that fails ends none of the others. */
export async function certify(
  calls: ProviderCalls,
  options: CertifyOptions,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const bench = new Bench(calls, options);
  for (const check of CHECKS) {
    const { id, area, name, profiles = BLACK_BOX } = check;
    if (!profiles.includes(options.profile)) continue;
    try {
      await check.run(bench);
      verdicts.push({ id, area, name, outcome: 'passed', why: '' });
    } catch (error) {
      const outcome = error instanceof Incomplete ? 'incomplete' : 'failed';
      verdicts.push({ id, area, name, outcome, why: (error as Error).message });
    }
  }
  return verdicts;
}
