/** What the server counts, and `/metrics` in Prometheus' text format with upstream's names. */
import type { Call } from './call.ts';
import type { RequestInfo } from './request-info.ts';
import type { World } from './world.ts';
import { allServed } from './served.ts';
import { rangeOf } from './served.ts';
import { effectiveVerb } from './resource-route.ts';
import { renderShards } from './watch/shard-metrics.ts';

/** Combinations of labels that are counted apart; paths come from clients and have no end. */
const SERIES_MAX = 4096;
const OTHERS =
  'component="apiserver",dry_run="",group="",resource="other",scope="",' +
  'subresource="",verb="other",version=""';

const BUCKETS_S = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
] as const;

const VERBS: Readonly<Record<string, string>> = {
  create: 'POST',
  update: 'PUT',
  get: 'GET',
  head: 'GET',
};
const CONNECTED: ReadonlySet<string> = new Set(['attach', 'exec', 'portforward', 'proxy']);

/** As upstream has them: what was done to what, by verbs of HTTP where they say it. */
function labelsOf(call: Call): string {
  const { info } = call;
  const verb = info.isResource ? effectiveVerb(call) : info.verb;
  const said = CONNECTED.has(info.subresource) ? 'CONNECT' : (VERBS[verb] ?? verb.toUpperCase());
  const scope =
    info.name !== '' || verb === 'create'
      ? 'resource'
      : info.namespace !== ''
        ? 'namespace'
        : 'cluster';
  return (
    `component="apiserver",dry_run="${call.query.has('dryRun') ? 'All' : ''}",` +
    `group="${info.group}",resource="${info.isResource ? info.resource : ''}",` +
    `scope="${info.isResource ? scope : ''}",subresource="${info.subresource}",` +
    `verb="${said}",version="${info.version}"`
  );
}

interface Series {
  count: number;
  sumMs: number;
  /** Requests by the first bucket that they fall into. */
  readonly buckets: Float64Array;
}

/** Requests that were alike: what is compared, and where they are counted. */
interface Alike {
  readonly code: number;
  readonly info: RequestInfo;
  readonly series: Series;
  readonly requests: Counter;
}

interface Counter {
  count: number;
}

/** Kinds of requests that come again and again, found without putting their labels together. */
const ALIKE_MAX = 8;

function isAlike(one: Alike, call: Call): boolean {
  const { info } = call;
  const like = one.info;
  return (
    one.code === call.code &&
    like.verb === info.verb &&
    like.resource === info.resource &&
    like.subresource === info.subresource &&
    like.group === info.group &&
    like.version === info.version &&
    (like.name === '') === (info.name === '') &&
    (like.namespace === '') === (info.namespace === '')
  );
}

export class Metrics {
  readonly #requests = new Map<string, Counter>();
  readonly #durations = new Map<string, Series>();
  readonly #sources: ((lines: string[]) => void)[] = [];
  readonly #alike: Alike[] = [];
  #nextAlike = 0;
  #renewals = 0;

  /** Adds lines that a part of the server counts for itself. */
  addSource(source: (lines: string[]) => void): void {
    this.#sources.push(source);
  }

  /** A lease was renewed on the short way. */
  countRenewal(): void {
    this.#renewals++;
  }

  /** A request was answered, after so long; of one that lasts, its head has left. */
  count(call: Call, ms: number): void {
    const { series, requests } = this.#countersOf(call);
    requests.count++;
    series.count++;
    series.sumMs += ms;
    let bucket = 0;
    while (bucket < BUCKETS_S.length && ms > (BUCKETS_S[bucket] ?? 0) * 1000) bucket++;
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  }

  #countersOf(call: Call): { readonly series: Series; readonly requests: Counter } {
    // what a query says is part of the labels
    if (!call.info.isResource || !call.query.isEmpty) return this.#find(call);
    for (const one of this.#alike) if (isAlike(one, call)) return one;
    const found = this.#find(call);
    this.#alike[this.#nextAlike++ % ALIKE_MAX] = { code: call.code, info: call.info, ...found };
    return found;
  }

  #find(call: Call): { readonly series: Series; readonly requests: Counter } {
    const own = labelsOf(call);
    const isKnown = this.#durations.has(own) || this.#durations.size < SERIES_MAX;
    const labels = isKnown ? own : OTHERS;
    const key = `code="${call.code}",${labels}`;
    let requests = this.#requests.get(key);
    if (requests === undefined) this.#requests.set(key, (requests = { count: 0 }));
    let series = this.#durations.get(labels);
    if (series === undefined) {
      series = { count: 0, sumMs: 0, buckets: new Float64Array(BUCKETS_S.length + 1) };
      this.#durations.set(labels, series);
    }
    return { series, requests };
  }

  /** Everything as text. */
  render(world: World): string {
    const lines: string[] = [
      '# HELP apiserver_request_total Requests by verb, resource and code.',
      '# TYPE apiserver_request_total counter',
    ];
    for (const [labels, { count }] of this.#requests) {
      lines.push(`apiserver_request_total{${labels}} ${count}`);
    }
    lines.push(
      'apiserver_request_total{code="200",component="apiserver",dry_run="",' +
        'group="coordination.k8s.io",resource="leases",scope="resource",' +
        `subresource="",verb="PUT",version="v1"} ${this.#renewals}`,
      '# HELP apiserver_request_duration_seconds Time to answer.',
      '# TYPE apiserver_request_duration_seconds histogram',
    );
    for (const [labels, series] of this.#durations) {
      const name = 'apiserver_request_duration_seconds';
      let below = 0;
      for (const [index, bound] of BUCKETS_S.entries()) {
        below += series.buckets[index] ?? 0;
        lines.push(`${name}_bucket{${labels},le="${bound}"} ${below}`);
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
  const revisions = [
    '# HELP apiserver_watch_cache_resource_version Revision up to which reads are served.',
    '# TYPE apiserver_watch_cache_resource_version gauge',
  ];
  for (const served of allServed()) {
    if (!served.stored || seen.has(served.prefix)) continue;
    seen.add(served.prefix);
    const { start, end } = rangeOf(served, '');
    const { group, resource } = served.resource;
    const home = world.at(served).storage;
    const count = home.count(start, end);
    revisions.push(
      `apiserver_watch_cache_resource_version{group="${group}",resource="${resource}"} ` +
        `${home.publishedRevision % 1e15}`,
    );
    lines.push(`apiserver_storage_objects{group="${group}",resource="${resource}"} ${count}`);
  }
  lines.push(
    ...revisions,
    '# HELP apiserver_longrunning_requests Open watches by resource.',
    '# TYPE apiserver_longrunning_requests gauge',
  );
  const kinds = new Map(allServed().map(({ prefix, resource }) => [prefix, resource]));
  for (const [prefix, hub] of world.hubs) {
    const { group = '', resource = '', version = '' } = kinds.get(prefix) ?? {};
    const labels = `component="apiserver",group="${group}",resource="${resource}",scope="cluster"`;
    const name = `apiserver_longrunning_requests{${labels},subresource="",verb="WATCH"`;
    lines.push(`${name},version="${version}"} ${hub.size}`);
  }
  lines.push(
    '# HELP apiserver_watch_cache_events_dispatched_total Events handed to watches.',
    '# TYPE apiserver_watch_cache_events_dispatched_total counter',
  );
  for (const [prefix, hub] of world.hubs) {
    const { group = '', resource = '' } = kinds.get(prefix) ?? {};
    const labels = `group="${group}",resource="${resource}"`;
    lines.push(`apiserver_watch_cache_events_dispatched_total{${labels}} ${hub.dispatched}`);
  }
}
