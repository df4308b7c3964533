/**
 * Who came with which credential, and what was decided, under the names of upstream's
 * `endpoints/filters/metrics.go` and `authentication/request/x509`.
 */
import { labelValue } from '@megaplane/base/visible-text';
import { edgeText } from '@megaplane/base/text-format';
import { Histogram } from '../metrics/histogram.ts';
import { printFamily } from '../metrics/metric-families.ts';

/** Names that are few and known; all others would be series without end. */
const NAMED: ReadonlySet<string> = new Set([
  'admin',
  'client',
  'kube_proxy',
  'kubelet',
  'system:serviceaccount:kube-system:default',
]);

/** Seconds until certificates expire. */
const EXPIRY_BOUNDS_S = [
  0, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800, 2_592_000, 7_776_000,
  15_552_000, 31_104_000,
] as const;

/** Seconds that finding out who asks, and deciding, may take. */
const SECONDS = Array.from({ length: 15 }, (_, power) => 0.001 * 2 ** power);

type Attempt = 'success' | 'failure' | 'error';
type Outcome = 'allowed' | 'denied' | 'no-opinion' | 'error';

export class AccessMetrics {
  readonly #attempts = { success: 0, failure: 0, error: 0 } satisfies Record<Attempt, number>;
  readonly #users = new Map<string, number>();
  readonly #decisions = { allowed: 0, denied: 0, 'no-opinion': 0, error: 0 } satisfies Record<
    Outcome,
    number
  >;
  readonly #identifying = new Map<Attempt, Histogram>();
  readonly #deciding = new Map<Outcome, Histogram>();
  readonly #expiring = new Float64Array(EXPIRY_BOUNDS_S.length + 1);
  #expirySum = 0;
  #certificates = 0;

  /**
   * A credential was looked at; `user` is who it stands for where it does. `ms` is how long others
   * were asked; what needs nobody else is done in less than can be told apart.
   */
  countAttempt(result: Attempt, user: string, ms: number): void {
    this.#attempts[result]++;
    if (ms > 0) observe(this.#identifying, result, ms);
    if (result !== 'success') return;
    const name = NAMED.has(user) ? user : user.includes('@') ? 'email_id' : 'other';
    this.#users.set(name, (this.#users.get(name) ?? 0) + 1);
  }

  /** `ms`: as above. */
  countDecision(outcome: Outcome, ms: number): void {
    this.#decisions[outcome]++;
    if (ms > 0) observe(this.#deciding, outcome, ms);
  }

  /** Somebody came with a certificate that is good for so long. */
  countCertificate(leftMs: number): void {
    const seconds = leftMs / 1000;
    let bucket = 0;
    while (bucket < EXPIRY_BOUNDS_S.length && seconds > (EXPIRY_BOUNDS_S[bucket] ?? 0)) bucket++;
    this.#expiring[bucket] = (this.#expiring[bucket] ?? 0) + 1;
    this.#expirySum += seconds;
    this.#certificates++;
  }

  print(lines: string[]): void {
    const counters = (name: string, label: string, of: Iterable<[string, number]>): void => {
      printFamily(lines, name);
      for (const [value, count] of of) {
        if (count > 0) lines.push(`${name}{${label}="${labelValue(value)}"} ${count}`);
      }
    };
    counters('authentication_attempts', 'result', Object.entries(this.#attempts));
    counters('authenticated_user_requests', 'username', this.#users);
    counters('authorization_attempts_total', 'result', Object.entries(this.#decisions));
    durations(lines, 'authentication_duration_seconds', this.#attempts, this.#identifying);
    durations(lines, 'authorization_duration_seconds', this.#decisions, this.#deciding);
    const name = 'apiserver_client_certificate_expiration_seconds';
    printFamily(lines, name);
    let below = 0;
    for (const [index, bound] of EXPIRY_BOUNDS_S.entries()) {
      below += this.#expiring[index] ?? 0;
      lines.push(`${name}_bucket{le="${edgeText(bound)}"} ${below}`);
    }
    lines.push(`${name}_bucket{le="+Inf"} ${this.#certificates}`);
    lines.push(`${name}_sum ${this.#expirySum}`, `${name}_count ${this.#certificates}`);
  }
}

function observe<Result>(by: Map<Result, Histogram>, result: Result, ms: number): void {
  let own = by.get(result);
  if (own === undefined) by.set(result, (own = new Histogram(SECONDS)));
  own.observe(ms / 1000);
}

/** All that were counted; those that nobody was asked for took no time. */
function durations<Result extends string>(
  lines: string[],
  name: string,
  counts: Readonly<Record<Result, number>>,
  measured: ReadonlyMap<Result, Histogram>,
): void {
  printFamily(lines, name);
  for (const [result, count] of Object.entries<number>(counts) as [Result, number][]) {
    if (count === 0) continue;
    const whole = measured.get(result)?.copy() ?? new Histogram(SECONDS);
    const atOnce = count - whole.count;
    if (atOnce > 0) whole.observe(0, atOnce);
    whole.print(lines, name, `result="${result}"`);
  }
}
