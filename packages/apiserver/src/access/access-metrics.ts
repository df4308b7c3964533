/**
 * Who came with which credential, and what was decided, under the names of upstream's
 * `endpoints/filters/metrics.go` and `authentication/request/x509`.
 */

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

type Attempt = 'success' | 'failure' | 'error';
type Outcome = 'allowed' | 'denied' | 'no-opinion';

export class AccessMetrics {
  readonly #attempts = { success: 0, failure: 0, error: 0 } satisfies Record<Attempt, number>;
  readonly #users = new Map<string, number>();
  readonly #decisions = { allowed: 0, denied: 0, 'no-opinion': 0 } satisfies Record<
    Outcome,
    number
  >;
  readonly #expiring = new Float64Array(EXPIRY_BOUNDS_S.length + 1);
  #expirySum = 0;
  #certificates = 0;

  /** A credential was looked at; `user` is who it stands for where it does. */
  countAttempt(result: Attempt, user: string): void {
    this.#attempts[result]++;
    if (result !== 'success') return;
    const name = NAMED.has(user) ? user : user.includes('@') ? 'email_id' : 'other';
    this.#users.set(name, (this.#users.get(name) ?? 0) + 1);
  }

  countDecision(outcome: Outcome): void {
    this.#decisions[outcome]++;
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
      lines.push(`# TYPE ${name} counter`);
      for (const [value, count] of of) {
        if (count > 0) lines.push(`${name}{${label}="${value}"} ${count}`);
      }
    };
    counters('authentication_attempts', 'result', Object.entries(this.#attempts));
    counters('authenticated_user_requests', 'username', this.#users);
    counters('authorization_attempts_total', 'result', Object.entries(this.#decisions));
    const name = 'apiserver_client_certificate_expiration_seconds';
    lines.push(`# TYPE ${name} histogram`);
    let below = 0;
    for (const [index, bound] of EXPIRY_BOUNDS_S.entries()) {
      below += this.#expiring[index] ?? 0;
      lines.push(`${name}_bucket{le="${bound}"} ${below}`);
    }
    lines.push(`${name}_bucket{le="+Inf"} ${this.#certificates}`);
    lines.push(`${name}_sum ${this.#expirySum}`, `${name}_count ${this.#certificates}`);
  }
}
