/** What this server asks of others over HTTP, under the names of client-go's `rest_client_*`. */
import { Histogram } from '../metrics/histogram.ts';
import { printFamily } from '../metrics/metric-families.ts';
import type { WebhookResponse } from './webhook-call.ts';

const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60] as const;
/** Hosts that are told apart; configurations name them, and those may be many. */
const SERIES_MAX = 1000;

export class ClientRequests {
  readonly #totals = new Map<string, number>();
  readonly #durations = new Map<string, Histogram>();

  count(host: string, response: WebhookResponse, ms: number): void {
    const code = response.ok ? String(response.status) : '<error>';
    const labels = `code="${code}",host="${host}",method="POST"`;
    const before = this.#totals.get(labels);
    if (before === undefined && this.#totals.size >= SERIES_MAX) return;
    this.#totals.set(labels, (before ?? 0) + 1);
    let own = this.#durations.get(host);
    if (own === undefined) this.#durations.set(host, (own = new Histogram(SECONDS)));
    own.observe(ms / 1000);
  }

  print(lines: string[]): void {
    printFamily(lines, 'rest_client_requests_total');
    for (const [labels, count] of this.#totals) {
      lines.push(`rest_client_requests_total{${labels}} ${count}`);
    }
    const name = 'rest_client_request_duration_seconds';
    printFamily(lines, name);
    for (const [host, own] of this.#durations) own.print(lines, name, `host="${host}",verb="POST"`);
  }
}
