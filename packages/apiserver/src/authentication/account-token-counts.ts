/** Which tokens of service accounts come, under upstream's names. */
import { printFamily } from '../metrics/metric-families.ts';

/**
 * A use of a token: of one that ends, of one that should have been renewed, and of one of a Secret
 * that somebody made, or a controller.
 */
export type TokenUse = 'valid' | 'stale' | 'manual' | 'auto';

const CACHE = 'authentication_token_cache';

export class AccountTokenCounts {
  readonly #uses: Record<TokenUse, number> = { valid: 0, stale: 0, manual: 0, auto: 0 };
  readonly #looks = { hit: 0, miss: 0 };
  readonly #fetched = { ok: 0, error: 0 };

  used(use: TokenUse): void {
    this.#uses[use]++;
  }

  /** It was known from before. */
  hit(): void {
    this.#looks.hit++;
  }

  /** It was read anew. */
  missed(outcome: 'ok' | 'error'): void {
    this.#looks.miss++;
    this.#fetched[outcome]++;
  }

  print(lines: string[]): void {
    const { valid, stale, manual, auto } = this.#uses;
    for (const [name, count] of [
      ['valid_tokens', valid],
      ['stale_tokens', stale],
      ['legacy_tokens', manual + auto],
      ['legacy_manual_token_uses', manual],
      ['legacy_auto_token_uses', auto],
    ] as const) {
      const family = `serviceaccount_${name}_total`;
      printFamily(lines, family);
      lines.push(`${family} ${count}`);
    }
    for (const [name, counts] of [
      [`${CACHE}_request_total`, this.#looks],
      [`${CACHE}_fetch_total`, this.#fetched],
    ] as const) {
      printFamily(lines, name);
      for (const [status, count] of Object.entries(counts)) {
        if (count > 0) lines.push(`${name}{status="${status}"} ${count}`);
      }
    }
  }
}
