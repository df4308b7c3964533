/** What the server counts, and `/metrics` in Prometheus' text format with upstream's names. */
import type { Call } from './call.ts';
import type { World } from './world.ts';
import { allServed } from './served.ts';
import { rangeOf } from './served.ts';
import { effectiveVerb } from './resource-route.ts';
import { renderShards } from './watch/shard-metrics.ts';

/** Combinations of labels that are counted apart; paths come from clients and have no end. */
const SERIES_MAX = 4096;
const OTHERS = 'group="",resource="other",subresource="",verb="other",version=""';

const BUCKETS_S = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 60] as const;

interface Series {
  count: number;
  sumMs: number;
  readonly buckets: Float64Array;
}

export class Metrics {
  readonly #requests = new Map<string, number>();
  readonly #durations = new Map<string, Series>();
  readonly #sources: ((lines: string[]) => void)[] = [];
  #renewals = 0;

  /** Adds lines that a part of the server counts for itself. */
  addSource(source: (lines: string[]) => void): void {
    this.#sources.push(source);
  }

  /** A lease was renewed on the short way. */
  countRenewal(): void {
    this.#renewals++;
  }

  /** A request was handed over; answers that come later count with their code as of now. */
  count(call: Call, startMs: number): void {
    const { info } = call;
    const verb = info.isResource ? effectiveVerb(call).toUpperCase() : info.verb.toUpperCase();
    const own =
      `group="${info.group}",resource="${info.isResource ? info.resource : ''}",` +
      `subresource="${info.subresource}",verb="${verb}",version="${info.version}"`;
    const isKnown = this.#durations.has(own) || this.#durations.size < SERIES_MAX;
    const labels = isKnown ? own : OTHERS;
    const key = `code="${call.code}",${labels}`;
    this.#requests.set(key, (this.#requests.get(key) ?? 0) + 1);
    let series = this.#durations.get(labels);
    if (series === undefined) {
      series = { count: 0, sumMs: 0, buckets: new Float64Array(BUCKETS_S.length) };
      this.#durations.set(labels, series);
    }
    const ms = Math.max(0, call.nowMs - startMs);
    series.count++;
    series.sumMs += ms;
    for (const [index, bound] of BUCKETS_S.entries()) {
      if (ms <= bound * 1000) series.buckets[index] = (series.buckets[index] ?? 0) + 1;
    }
  }

  /** Everything as text. */
  render(world: World): string {
    const lines: string[] = [
      '# HELP apiserver_request_total Requests by verb, resource and code.',
      '# TYPE apiserver_request_total counter',
    ];
    for (const [labels, count] of this.#requests) {
      lines.push(`apiserver_request_total{${labels}} ${count}`);
    }
    lines.push(
      'apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",' +
        `subresource="",verb="PUT",version="v1"} ${this.#renewals}`,
      '# HELP apiserver_request_duration_seconds Time to answer.',
      '# TYPE apiserver_request_duration_seconds histogram',
    );
    for (const [labels, series] of this.#durations) {
      const name = 'apiserver_request_duration_seconds';
      for (const [index, bound] of BUCKETS_S.entries()) {
        lines.push(`${name}_bucket{${labels},le="${bound}"} ${series.buckets[index] ?? 0}`);
      }
      lines.push(`${name}_bucket{${labels},le="+Inf"} ${series.count}`);
      lines.push(`${name}_sum{${labels}} ${series.sumMs / 1000}`);
      lines.push(`${name}_count{${labels}} ${series.count}`);
    }
    renderStorage(world, lines);
    renderShards(world, lines);
    for (const source of this.#sources) source(lines);
    return `${lines.join('\n')}\n`;
  }
}

function renderStorage(world: World, lines: string[]): void {
  lines.push(
    '# HELP apiserver_storage_objects Stored objects by resource.',
    '# TYPE apiserver_storage_objects gauge',
  );
  const seen = new Set<string>();
  for (const served of allServed()) {
    if (!served.stored || seen.has(served.prefix)) continue;
    seen.add(served.prefix);
    const { start, end } = rangeOf(served, '');
    const { group, resource } = served.resource;
    const count = world.storage.count(start, end);
    lines.push(`apiserver_storage_objects{group="${group}",resource="${resource}"} ${count}`);
  }
  lines.push(
    '# HELP apiserver_longrunning_requests Open watches by storage prefix.',
    '# TYPE apiserver_longrunning_requests gauge',
  );
  for (const [prefix, hub] of world.hubs) {
    lines.push(`apiserver_longrunning_requests{prefix="${prefix}",verb="WATCH"} ${hub.size}`);
  }
  lines.push(
    '# HELP apiserver_watch_cache_events_dispatched_total Events handed to watches.',
    '# TYPE apiserver_watch_cache_events_dispatched_total counter',
  );
  for (const [prefix, hub] of world.hubs) {
    const labels = `prefix="${prefix}"`;
    lines.push(`apiserver_watch_cache_events_dispatched_total{${labels}} ${hub.dispatched}`);
  }
}
