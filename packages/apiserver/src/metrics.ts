/** What the server counts, and `/metrics` in Prometheus' text format with upstream's names. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { AnswerSizes, Call } from './call.ts';
import { Histogram } from './histogram.ts';
import type { RequestInfo } from './request-info.ts';
import type { World } from './world.ts';
import { allServed } from './served.ts';
import { rangeOf } from './served.ts';
import { VERSION } from './release.ts';
import { isApply, labelsOf, type RequestLabels } from './request-labels.ts';
import { renderShards } from './watch/shard-metrics.ts';
import { renderWatches } from './watch/watch-counts.ts';

/** Combinations of labels that are counted apart; paths come from clients and have no end. */
const SERIES_MAX = 4096;
const OTHERS: RequestLabels = {
  common: 'group="",resource="other",scope="",subresource="",verb="other",version=""',
  component: 'apiserver',
  dryRun: '',
};
/** How leases are renewed on the short way. */
const RENEWALS: RequestLabels = {
  common:
    'group="coordination.k8s.io",resource="leases",scope="resource",subresource="",' +
    'verb="PUT",version="v1"',
  component: 'apiserver',
  dryRun: '',
};

const BUCKETS_S = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
] as const;

/** Below it, upstream's histogram of service levels tells nothing apart. */
const SLI_FROM_S = 0.05;

const SIZE_BOUNDS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9] as const;

interface Series extends AnswerSizes {
  readonly labels: RequestLabels;
  /** Bytes of answers to reads; null until there is one. */
  sizes: Histogram | null;
  count: number;
  sumMs: number;
  /** Requests by the first bucket that they fall into. */
  readonly buckets: Float64Array;
}

/** Requests that were alike: what is compared, and where they are counted. */
interface Alike {
  readonly code: number;
  readonly info: RequestInfo;
  readonly isApply: boolean;
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
    (info.verb !== 'patch' || one.isApply === isApply(call)) &&
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
  readonly #terminated = new Map<string, Counter>();
  readonly #deprecated = new Set<string>();
  readonly #sources: ((lines: string[]) => void)[] = [];
  readonly #alike: Alike[] = [];
  #nextAlike = 0;
  #renewals = 0;

  /** Adds lines that a part of the server counts for itself. */
  addSource(source: (lines: string[]) => void): void {
    this.#sources.push(source);
  }

  /** A lease was renewed on the short way, in no time to speak of. */
  countRenewal(): void {
    this.#renewals++;
  }

  /** Somebody asked for what upstream has deprecated. */
  #countDeprecated({ info }: Call): void {
    const { group, resource, subresource, version } = info;
    this.#deprecated.add(
      `group="${group}",removed_release="",resource="${resource}",` +
        `subresource="${subresource}",version="${version}"`,
    );
  }

  /** A request was answered, after so long; of one that lasts, its head has left. */
  count(call: Call, ms: number): void {
    const { series, requests } = this.#countersOf(call);
    requests.count++;
    series.count++;
    series.sumMs += ms;
    const isRead = SIZED.has(call.info.verb) && series.labels.dryRun === '';
    if (isRead) call.sizes = series;
    let bucket = 0;
    while (bucket < BUCKETS_S.length && ms > (BUCKETS_S[bucket] ?? 0) * 1000) bucket++;
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
    if (call.annotations?.['k8s.io/deprecated'] === 'true') this.#countDeprecated(call);
    if (isTerminated(call)) this.#countTerminated(call, series.labels.common);
  }

  #countTerminated({ code, info }: Call, common: string): void {
    const component = info.isResource ? 'component="apiserver",' : 'component="",';
    const key = `code="${code}",${component}${common}`;
    const counter = this.#terminated.get(key);
    if (counter === undefined) this.#terminated.set(key, { count: 1 });
    else counter.count++;
  }

  #countersOf(call: Call): { readonly series: Series; readonly requests: Counter } {
    // what a query says is part of the labels
    if (!call.info.isResource || !call.query.isEmpty) return this.#find(call);
    for (const one of this.#alike) if (isAlike(one, call)) return one;
    const found = this.#find(call);
    const { code, info } = call;
    this.#alike[this.#nextAlike++ % ALIKE_MAX] = { code, info, isApply: isApply(call), ...found };
    return found;
  }

  #find(call: Call): { readonly series: Series; readonly requests: Counter } {
    return this.#counters(labelsOf(call), call.code);
  }

  #counters(own: RequestLabels, code: number): { series: Series; requests: Counter } {
    const isKnown = this.#durations.has(keyOf(own)) || this.#durations.size < SERIES_MAX;
    const labels = isKnown ? own : OTHERS;
    const key = keyOf(labels);
    const coded = `code="${code}",${key}`;
    let requests = this.#requests.get(coded);
    if (requests === undefined) this.#requests.set(coded, (requests = { count: 0 }));
    let series = this.#durations.get(key);
    if (series === undefined) {
      series = {
        labels,
        count: 0,
        sumMs: 0,
        buckets: new Float64Array(BUCKETS_S.length + 1),
        sizes: null,
        addSize,
      };
      this.#durations.set(key, series);
    }
    return { series, requests };
  }

  /** What the short way counted for itself goes where all others are. */
  #takeRenewals(): void {
    if (this.#renewals === 0) return;
    const { series, requests } = this.#counters(RENEWALS, 200);
    requests.count += this.#renewals;
    series.count += this.#renewals;
    series.buckets[0] = (series.buckets[0] ?? 0) + this.#renewals;
    this.#renewals = 0;
  }

  /** Everything as text. */
  render(world: World): string {
    this.#takeRenewals();
    const lines: string[] = [
      '# HELP apiserver_request_total Requests by verb, resource and code.',
      '# TYPE apiserver_request_total counter',
    ];
    for (const [labels, { count }] of this.#requests) {
      lines.push(`apiserver_request_total{${labels}} ${count}`);
    }
    lines.push(
      '# HELP apiserver_request_terminations_total Requests refused or cut in self-defence.',
      '# TYPE apiserver_request_terminations_total counter',
    );
    for (const [labels, { count }] of this.#terminated) {
      lines.push(`apiserver_request_terminations_total{${labels}} ${count}`);
    }
    lines.push('# TYPE apiserver_requested_deprecated_apis gauge');
    for (const labels of this.#deprecated) {
      lines.push(`apiserver_requested_deprecated_apis{${labels}} 1`);
    }
    this.#renderDurations(lines);
    renderStorage(world, lines);
    renderShards(world, lines);
    renderWatches(world, lines);
    lines.push(BUILD_TYPE, BUILD);
    for (const source of this.#sources) source(lines);
    return `${lines.join('\n')}\n`;
  }

  #renderDurations(lines: string[]): void {
    const name = 'apiserver_request_duration_seconds';
    lines.push(`# HELP ${name} Time to answer.`, `# TYPE ${name} histogram`);
    for (const [labels, series] of this.#durations) renderSeries(lines, name, labels, series, 0);
    const sizes = 'apiserver_response_sizes';
    lines.push(`# HELP ${sizes} Bytes of answers to reads.`, `# TYPE ${sizes} histogram`);
    for (const { labels, sizes: own } of this.#durations.values()) {
      own?.print(lines, sizes, `component="${labels.component}",${labels.common}`);
    }
    const slis = 'apiserver_request_sli_duration_seconds';
    lines.push(`# HELP ${slis} Time to answer, but for dry runs.`, `# TYPE ${slis} histogram`);
    for (const series of this.#durations.values()) {
      const { common, component, dryRun } = series.labels;
      if (dryRun !== '') continue;
      renderSeries(lines, slis, `component="${component}",${common}`, series, SLI_FROM_S);
    }
  }
}

/** Reads whose answers are measured. */
const SIZED: ReadonlySet<string> = new Set(['get', 'list']);

function addSize(this: Series, bytes: number): void {
  this.sizes ??= new Histogram(SIZE_BOUNDS);
  this.sizes.observe(bytes);
}

function keyOf({ common, component, dryRun }: RequestLabels): string {
  return `component="${component}",dry_run="${dryRun}",${common}`;
}

/** Refused for the server's sake, in plain text; or cut when its time was over. */
function isTerminated({ code, refusal }: Call): boolean {
  if (code === 429) return refusal === null;
  return code === 504 && refusal?.reason === 'Timeout';
}

function renderSeries(
  lines: string[],
  name: string,
  labels: string,
  series: Series,
  fromS: number,
): void {
  let below = 0;
  for (const [index, bound] of BUCKETS_S.entries()) {
    below += series.buckets[index] ?? 0;
    if (bound >= fromS) lines.push(`${name}_bucket{${labels},le="${bound}"} ${below}`);
  }
  lines.push(`${name}_bucket{${labels},le="+Inf"} ${series.count}`);
  lines.push(`${name}_sum{${labels}} ${series.sumMs / 1000}`);
  lines.push(`${name}_count{${labels}} ${series.count}`);
}

const BUILD_TYPE = '# TYPE kubernetes_build_info gauge';
const BUILD_FACTS: JsonObject = Object.fromEntries(
  [
    ['build_date', 'buildDate'],
    ['compiler', 'compiler'],
    ['git_commit', 'gitCommit'],
    ['git_tree_state', 'gitTreeState'],
    ['git_version', 'gitVersion'],
    ['go_version', 'goVersion'],
    ['major', 'major'],
    ['minor', 'minor'],
    ['platform', 'platform'],
  ].map(([label = '', name = '']) => [label, VERSION[name] ?? '']),
);
const BUILD = `kubernetes_build_info{${Object.entries(BUILD_FACTS)
  .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  .join()}} 1`;

function renderStorage(world: World, lines: string[]): void {
  lines.push(
    '# HELP apiserver_storage_objects Stored objects by resource and group.',
    '# TYPE apiserver_storage_objects gauge',
  );
  const counts = [
    '# HELP apiserver_resource_objects Stored objects by resource.',
    '# TYPE apiserver_resource_objects gauge',
  ];
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
    counts.push(`apiserver_resource_objects{group="${group}",resource="${resource}"} ${count}`);
    const whole = group === '' ? resource : `${resource}.${group}`;
    lines.push(`apiserver_storage_objects{resource="${whole}"} ${count}`);
  }
  lines.push(
    ...counts,
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
