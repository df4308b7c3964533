/** Answers that go on, as `apiserver_longrunning_requests` tells of them. */
import type { Exchange } from '@megaplane/wire/exchange';
import { printFamily } from '../metrics/metric-families.ts';
import type { RequestLabels } from '../request/request-labels.ts';

const NAME = 'apiserver_longrunning_requests';

interface Lasting {
  readonly exchange: Pick<Exchange, 'closed'>;
  readonly gauge: { count: number };
  readonly sinceMs: number;
  readonly ended: Ended | null;
}

/** Told how long it took. */
type Ended = (ms: number) => void;

export class LastingRequests {
  #open: Lasting[] = [];
  readonly #gauges = new Map<string, { count: number }>();

  add(
    exchange: Pick<Exchange, 'closed'>,
    { common, component }: RequestLabels,
    sinceMs: number,
    ended: Ended | null,
  ): void {
    const labels = `component="${component}",${common}`;
    let gauge = this.#gauges.get(labels);
    if (gauge === undefined) this.#gauges.set(labels, (gauge = { count: 0 }));
    gauge.count++;
    this.#open.push({ exchange, gauge, sinceMs, ended });
  }

  /** About once a second: finds those that have ended. */
  tick(nowMs: number): void {
    const open = this.#open;
    for (let index = 0; index < open.length;) {
      const one = open[index];
      if (one === undefined || !one.exchange.closed) {
        index++;
        continue;
      }
      one.gauge.count--;
      one.ended?.(Math.max(0, nowMs - one.sinceMs));
      const last = open.pop();
      if (last !== undefined && last !== one) open[index] = last;
    }
  }

  print(lines: string[]): void {
    printFamily(lines, NAME);
    for (const [labels, { count }] of this.#gauges) lines.push(`${NAME}{${labels}} ${count}`);
  }
}
