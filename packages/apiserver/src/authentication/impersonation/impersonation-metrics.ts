/** How often and by which mode requests act as somebody else, under upstream's names. */

/** Upper bounds of the buckets: a millisecond, doubled fourteen times. */
const BUCKETS_S: readonly number[] = Array.from({ length: 15 }, (_, index) => 2 ** index / 1000);

/** What upstream's metrics call what came of it. */
type Outcome = 'allowed' | 'denied';

interface Series {
  count: number;
  sumMs: number;
  readonly buckets: number[];
}

export class ImpersonationMetrics {
  readonly #attempts = new Map<string, Series>();
  readonly #questions = new Map<string, Series>();

  /** A request acts as somebody else by a mode, or may not by any (''). */
  attempted(mode: string, outcome: Outcome, ms: number): void {
    observe(this.#attempts, mode, outcome, ms);
  }

  /** An authorizer was asked. */
  asked(mode: string, outcome: Outcome, ms: number): void {
    observe(this.#questions, mode, outcome, ms);
  }

  render(lines: string[]): void {
    print(lines, 'attempts', 'impersonation attempts', this.#attempts);
    const asked = 'authorization checks made by the impersonation handler';
    print(lines, 'authorization_attempts', asked, this.#questions);
  }
}

function observe(all: Map<string, Series>, mode: string, outcome: Outcome, ms: number): void {
  const labels = `decision="${outcome}",mode="${mode}"`;
  let own = all.get(labels);
  if (own === undefined) {
    own = { count: 0, sumMs: 0, buckets: BUCKETS_S.map(() => 0) };
    all.set(labels, own);
  }
  own.count++;
  own.sumMs += ms;
  for (const [index, bound] of BUCKETS_S.entries()) {
    if (ms <= bound * 1000) own.buckets[index] = (own.buckets[index] ?? 0) + 1;
  }
}

function print(lines: string[], name: string, what: string, all: Map<string, Series>): void {
  const prefix = `apiserver_impersonation_${name}`;
  const [total, duration] = [`${prefix}_total`, `${prefix}_duration_seconds`];
  if (all.size === 0) return;
  lines.push(
    `# HELP ${total} [ALPHA] Total number of ${what} split by mode and decision.`,
    `# TYPE ${total} counter`,
    ...[...all].map(([labels, { count }]) => `${total}{${labels}} ${count}`),
    `# HELP ${duration} [ALPHA] Latency of ${what} in seconds split by mode and decision.`,
    `# TYPE ${duration} histogram`,
  );
  for (const [labels, { count, sumMs, buckets }] of all) {
    for (const [index, bound] of BUCKETS_S.entries()) {
      lines.push(`${duration}_bucket{${labels},le="${bound}"} ${buckets[index] ?? 0}`);
    }
    lines.push(
      `${duration}_bucket{${labels},le="+Inf"} ${count}`,
      `${duration}_sum{${labels}} ${sumMs / 1000}`,
      `${duration}_count{${labels}} ${count}`,
    );
  }
}
