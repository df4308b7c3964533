/** What webhooks cost and say, under upstream's names. */
import { printFamily } from '../../metrics/metric-families.ts';
import type { Status } from '@megaplane/machinery/status';
import type { Reviewed } from './webhook-review.ts';

/** Upstream's word for mutating and for validating webhooks. */
export type WebhookType = 'admit' | 'validating';

/** Combinations of labels that are counted apart; further ones are counted together. */
const SERIES_MAX = 2000;
const BUCKETS_S = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25] as const;

interface Durations {
  count: number;
  sumMs: number;
  readonly buckets: number[];
}

export class WebhookMetrics {
  readonly #durations = new Map<string, Durations>();
  readonly #requests = new Map<string, number>();
  readonly #rejections = new Map<string, number>();
  readonly #failOpen = new Map<string, number>();

  count(
    type: WebhookType,
    name: string,
    operation: string,
    called: Called,
    code: number,
    ms: number,
    why: string,
  ): void {
    const isDenied = called.kind === 'answered' && !called.review.allowed;
    const rejected = isDenied || called.kind === 'refused';
    const head = `name="${name}",operation="${operation}"`;
    const labels = `${head},rejected="${rejected}",type="${type}"`;
    this.#observe(labels, ms);
    add(this.#requests, `code="${code}",${labels}`);
    if (why === 'ignored') add(this.#failOpen, `name="${name}",type="${type}"`);
    if (!rejected) return;
    const error = isDenied ? 'no_error' : 'calling_webhook_error';
    const sent = called.kind === 'answered' ? called.review.status['code'] : 0;
    const rejection = typeof sent === 'number' ? sent : 0;
    add(
      this.#rejections,
      `error_type="${error}",${head},rejection_code="${rejection}",type="${type}"`,
    );
  }

  #observe(labels: string, ms: number): void {
    let own = this.#durations.get(labels);
    if (own === undefined) {
      if (this.#durations.size >= SERIES_MAX) return;
      own = { count: 0, sumMs: 0, buckets: BUCKETS_S.map(() => 0) };
      this.#durations.set(labels, own);
    }
    own.count++;
    own.sumMs += ms;
    for (const [index, bound] of BUCKETS_S.entries()) {
      if (ms <= bound * 1000) own.buckets[index] = (own.buckets[index] ?? 0) + 1;
    }
  }

  /** Appends everything in Prometheus' text format. */
  render(lines: string[]): void {
    const prefix = 'apiserver_admission_webhook';
    const name = `${prefix}_admission_duration_seconds`;
    printFamily(lines, name);
    for (const [labels, own] of this.#durations) {
      for (const [index, bound] of BUCKETS_S.entries()) {
        lines.push(`${name}_bucket{${labels},le="${bound}"} ${own.buckets[index] ?? 0}`);
      }
      lines.push(
        `${name}_bucket{${labels},le="+Inf"} ${own.count}`,
        `${name}_sum{${labels}} ${own.sumMs / 1000}`,
        `${name}_count{${labels}} ${own.count}`,
      );
    }
    for (const [suffix, counts] of [
      ['request_total', this.#requests],
      ['rejection_count', this.#rejections],
      ['fail_open_count', this.#failOpen],
    ] as const) {
      printFamily(lines, `${prefix}_${suffix}`);
      for (const [labels, count] of counts) lines.push(`${prefix}_${suffix}{${labels}} ${count}`);
    }
  }
}

function add(counts: Map<string, number>, labels: string): void {
  const own = counts.get(labels);
  if (own === undefined && counts.size >= SERIES_MAX) return;
  counts.set(labels, (own ?? 0) + 1);
}

/** How a call ended: with an answer, not called at all, or failed (and what that means). */
export type Called =
  | { readonly kind: 'answered'; readonly review: Reviewed }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'refused'; readonly status: Status };
