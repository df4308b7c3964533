/**
 * What any provider must do, as checks that run against one that is there: each takes a machine
 * that is free, and leaves it as it found it where the provider lets it. A check that finds no
 * machine for itself is incomplete, and so is the certification.
 */
import { CHECKS } from './certify-checks.ts';
import { Bench, type ProviderCalls, type CertifyOptions, Incomplete } from './certify-bench.ts';

export interface Verdict {
  readonly area: string;
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'incomplete';
  readonly why: string;
}

/** Runs all checks of a profile, one after the other; one that fails ends none of the others. */
export async function certify(
  calls: ProviderCalls,
  options: CertifyOptions,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const bench = new Bench(calls, options);
  for (const check of CHECKS) {
    if (check.profiles !== undefined && !check.profiles.includes(options.profile)) continue;
    const { area, name } = check;
    try {
      await check.run(bench);
      verdicts.push({ area, name, outcome: 'passed', why: '' });
    } catch (error) {
      const outcome = error instanceof Incomplete ? 'incomplete' : 'failed';
      verdicts.push({ area, name, outcome, why: (error as Error).message });
    }
  }
  return verdicts;
}
