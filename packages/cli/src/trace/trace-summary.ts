/** Counts, sizes and latencies of calls by shape and prefix. */
import { LatencyHistogram } from '@megaplane/base/histogram';

/** Shapes that are told apart; what comes beyond is counted together. */
export const SHAPES_MAX = 500;
const OTHERS = '(others)';

/** One call that has ended, or the part of a watch that has. */
export interface TracedCall {
  readonly shape: string;
  readonly prefix: string;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly ms: number;
  /** Events that a watch told. */
  readonly events: number;
  /** Of gRPC; 0: well. */
  readonly status: number;
}

interface Row {
  readonly shape: string;
  readonly prefix: string;
  count: number;
  failed: number;
  events: number;
  requestBytes: number;
  responseBytes: number;
  readonly us: LatencyHistogram;
}

export class TraceSummary {
  readonly #rows: Map<string, Row> = new Map();

  add(call: TracedCall): void {
    const row = this.#rowOf(call);
    row.count++;
    if (call.status !== 0) row.failed++;
    row.events += call.events;
    row.requestBytes += call.requestBytes;
    row.responseBytes += call.responseBytes;
    row.us.record(Math.max(0, call.ms * 1000));
  }

  /** What a watch has told meanwhile: no call, but work. */
  addEvents(shape: string, prefix: string, events: number, bytes: number): void {
    const row = this.#rowOf({ shape, prefix });
    row.events += events;
    row.responseBytes += bytes;
  }

  /** The busiest first, as objects. */
  rows(): readonly Record<string, string | number>[] {
    return [...this.#rows.values()]
      .toSorted((a, b) => b.count + b.events - (a.count + a.events))
      .map(({ shape, prefix, count, failed, events, requestBytes, responseBytes, us }) => ({
        shape,
        prefix,
        count,
        failed,
        events,
        requestBytes: Math.round(requestBytes / Math.max(1, count)),
        responseBytes: Math.round(responseBytes / Math.max(1, count + events)),
        p50Ms: count === 0 ? 0 : us.quantile(0.5) / 1000,
        p99Ms: count === 0 ? 0 : us.quantile(0.99) / 1000,
        maxMs: count === 0 ? 0 : us.quantile(1) / 1000,
      }));
  }

  /** A table in Markdown. */
  table(): string {
    const head = [
      'call',
      'prefix',
      'count',
      'failed',
      'events',
      'asked B',
      'told B',
      'p50 ms',
      'p99 ms',
    ];
    const lines = this.rows().map((row) =>
      [
        row['shape'],
        row['prefix'],
        row['count'],
        row['failed'],
        row['events'],
        row['requestBytes'],
        row['responseBytes'],
        Number(row['p50Ms']).toFixed(2),
        Number(row['p99Ms']).toFixed(2),
      ].join(' | '),
    );
    const rule = head.map(() => '---').join('|');
    return [`| ${head.join(' | ')} |`, `|${rule}|`, ...lines.map((line) => `| ${line} |`), ''].join(
      '\n',
    );
  }

  #rowOf({ shape, prefix }: { readonly shape: string; readonly prefix: string }): Row {
    const key = `${shape}\n${prefix}`;
    const found = this.#rows.get(key);
    if (found !== undefined) return found;
    if (this.#rows.size >= SHAPES_MAX && shape !== OTHERS) {
      return this.#rowOf({ shape: OTHERS, prefix: '' });
    }
    const row: Row = {
      ...{ shape, prefix, count: 0, failed: 0, events: 0, requestBytes: 0, responseBytes: 0 },
      us: new LatencyHistogram(),
    };
    this.#rows.set(key, row);
    return row;
  }
}
