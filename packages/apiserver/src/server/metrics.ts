/** What the server counts, and `/metrics` in Prometheus' text format with upstream's names. */
import { labelValue } from '@megaplane/base/visible-text';
import { ownMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { AnswerSizes, Call } from '../request/call.ts';
import { Histogram } from '../metrics/histogram.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { World } from '../lister/world.ts';
import { rangeOf } from '../storage/served.ts';
import { GIT_VERSION, MIN_COMPATIBLE, MINOR_VERSION, VERSION } from '../release.ts';
import { printFamily } from '../metrics/metric-families.ts';
import { isLongRunning } from '../request/long-running.ts';
import { effectiveVerb } from '../request/request-terms.ts';
import { LastingRequests } from './lasting-requests.ts';
import {
  isApply,
  labelsOf,
  unroutedLabelsOf,
  type RequestLabels,
} from '../request/request-labels.ts';
import { BodySizes, type BodySize } from '../request/body-sizes.ts';
import { renderShards } from '../watchcache/shard-metrics.ts';
import { renderWatches } from '../watchcache/watch-counts.ts';

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

const LEASE_UPDATE = { group: 'coordination.k8s.io', resource: 'leases', verb: 'update' } as const;

const BUCKETS_S = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
] as const;

/** Below it, upstream's histogram of service levels tells nothing apart. */
const SLI_FROM_S = 0.05;

const SIZE_BOUNDS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9] as const;

interface Series extends AnswerSizes {
  readonly labels: RequestLabels;
  /** Upstream's service levels are not about watches. */
  readonly isWatch: boolean;
  /** Bytes of answers to reads; null until there is one. */
  sizes: Histogram | null;
  /** Bytes of bodies of writes; shared by all series of a resource and verb, null before one. */
  bodies: BodySize | null;
  count: number;
  sumMs: number;
  /** Requests by the first bucket that they fall into. */
  readonly buckets: Float64Array;
  /** What to add to the buckets to have them without the time of others; null: nothing. */
  shifts: Float64Array | null;
  othersMs: number;
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

interface Counters {
  readonly series: Series;
  readonly requests: Counter;
}

/** What of a request its counters depend on beside its labels. */
interface Counted {
  readonly code: number;
  readonly isWatch: boolean;
}

const TOO_MANY = 429;
const NOT_ALLOWED = 405;

function bucketOf(ms: number): number {
  let bucket = 0;
  while (bucket < BUCKETS_S.length && ms > (BUCKETS_S[bucket] ?? 0) * 1000) bucket++;
  return bucket;
}

function observe({ series, requests }: Counters, ms: number, othersMs: number): void {
  requests.count++;
  series.count++;
  series.sumMs += ms;
  const bucket = bucketOf(ms);
  series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  if (othersMs === 0) return;
  const own = bucketOf(ms - othersMs);
  const shifts = (series.shifts ??= new Float64Array(BUCKETS_S.length + 1));
  shifts[bucket] = (shifts[bucket] ?? 0) - 1;
  shifts[own] = (shifts[own] ?? 0) + 1;
  series.othersMs += Math.min(ms, othersMs);
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
  /** Answers that go on. */
  readonly lasting: LastingRequests = new LastingRequests();
  readonly #deprecated = new Set<string>();
  readonly #sources: ((lines: string[]) => void)[] = [];
  readonly #alike: Alike[] = [];
  #nextAlike = 0;
  #renewals = 0;
  #renewedBytes = 0;
  readonly #bodies = new BodySizes();

  /** Adds lines that a part of the server counts for itself. */
  addSource(source: (lines: string[]) => void): void {
    this.#sources.push(source);
  }

  /** Counts from nothing, as after a start: what `DELETE /metrics` asks for. */
  reset(): void {
    this.#requests.clear();
    this.#durations.clear();
    this.#terminated.clear();
    this.#deprecated.clear();
    this.#alike.length = 0;
    this.#nextAlike = 0;
    this.#renewals = 0;
    this.#renewedBytes = 0;
    this.#bodies.reset();
  }

  /** A lease was renewed on the short way, in no time to speak of. */
  countRenewal(bodyBytes: number): void {
    this.#renewedBytes += bodyBytes;
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

  /** A request was answered, after so long. */
  count(call: Call, ms: number): void {
    if (isTerminated(call)) this.#countTerminated(call);
    if (call.code === TOO_MANY && call.refusal === null) {
      const counted = { code: call.code, isWatch: false };
      this.#counters(unroutedLabelsOf(call), counted).requests.count++;
      return;
    }
    const counters = this.#countersOf(call);
    if (counters === null) return;
    observe(counters, ms, call.othersMs);
    const { series } = counters;
    if (this.#bodies.counts(call) && !isLongRunning(call)) {
      series.bodies ??= this.#bodies.of(call.info);
      series.bodies.observe(call.body.length);
    }
    const isRead = SIZED.has(call.info.verb) && series.labels.dryRun === '';
    if (isRead && !isLongRunning(call)) call.sizes = series;
    if (call.annotations?.['k8s.io/deprecated'] === 'true') this.#countDeprecated(call);
  }

  /** The head of an answer has left that goes on; watches count when they have ended. */
  begin(call: Call, ms: number): void {
    const isWatch = effectiveVerb(call) === 'watch';
    const counters = isWatch ? this.#countersOf(call) : null;
    if (!isWatch) this.count(call, ms);
    const { exchange, nowMs } = call;
    this.lasting.add(exchange, unroutedLabelsOf(call), nowMs, (tookMs) => {
      if (counters !== null) observe(counters, tookMs, 0);
    });
  }

  #countTerminated(call: Call): void {
    const { common, component } = unroutedLabelsOf(call, labelValue(call.info.path));
    const key = `code="${call.code}",component="${component}",${common}`;
    const counter = this.#terminated.get(key);
    if (counter !== undefined) counter.count++;
    else if (this.#terminated.size < SERIES_MAX) this.#terminated.set(key, { count: 1 });
  }

  /** Null for what upstream's routes never see: refusals before them, what is not there. */
  #countersOf(call: Call): Counters | null {
    if (!call.isRouted || call.code === NOT_ALLOWED) return null;
    // what a query says is part of the labels
    if (!call.info.isResource || !call.query.isEmpty) return this.#find(call);
    for (const one of this.#alike) if (isAlike(one, call)) return one;
    const found = this.#find(call);
    if (found === null) return null;
    const { code, info } = call;
    this.#alike[this.#nextAlike++ % ALIKE_MAX] = { code, info, isApply: isApply(call), ...found };
    return found;
  }

  #find(call: Call): Counters | null {
    const labels = labelsOf(call);
    const isWatch = effectiveVerb(call) === 'watch';
    return labels === null ? null : this.#counters(labels, { code: call.code, isWatch });
  }

  #counters(own: RequestLabels, { code, isWatch }: Counted): Counters {
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
        isWatch,
        count: 0,
        sumMs: 0,
        buckets: new Float64Array(BUCKETS_S.length + 1),
        shifts: null,
        othersMs: 0,
        sizes: null,
        bodies: null,
        addSize,
      };
      this.#durations.set(key, series);
    }
    return { series, requests };
  }

  /** What the short way counted for itself goes where all others are. */
  #takeRenewals(): void {
    if (this.#renewals === 0) return;
    const { series, requests } = this.#counters(RENEWALS, { code: 200, isWatch: false });
    requests.count += this.#renewals;
    series.count += this.#renewals;
    series.buckets[0] = (series.buckets[0] ?? 0) + this.#renewals;
    this.#bodies.of(LEASE_UPDATE).observeSmall(this.#renewals, this.#renewedBytes);
    this.#renewals = 0;
    this.#renewedBytes = 0;
  }

  /** Everything as text. */
  render(world: World): string {
    this.#takeRenewals();
    this.lasting.tick(world.edge.nowMs());
    const lines: string[] = [];
    printFamily(lines, 'apiserver_request_total');
    for (const [labels, { count }] of this.#requests) {
      // a watch that has not ended yet
      if (count > 0) lines.push(`apiserver_request_total{${labels}} ${count}`);
    }
    printFamily(lines, 'apiserver_request_terminations_total');
    for (const [labels, { count }] of this.#terminated) {
      lines.push(`apiserver_request_terminations_total{${labels}} ${count}`);
    }
    printFamily(lines, 'apiserver_requested_deprecated_apis');
    for (const labels of this.#deprecated) {
      lines.push(`apiserver_requested_deprecated_apis{${labels}} 1`);
    }
    this.#renderDurations(lines);
    this.#bodies.print(lines);
    this.lasting.print(lines);
    renderStorage(world, lines);
    renderShards(world.hubs, lines);
    renderWatches(world.hubs, world.kinds.all(), lines);
    world.lists.print(lines, world.kinds.all());
    printFamily(lines, 'version_info');
    lines.push(COMPATIBILITY);
    printFamily(lines, 'kubernetes_build_info');
    lines.push(BUILD);
    for (const source of this.#sources) source(lines);
    return `${lines.join('\n')}\n`;
  }

  #renderDurations(lines: string[]): void {
    const name = 'apiserver_request_duration_seconds';
    printFamily(lines, name);
    for (const [labels, series] of this.#durations) renderSeries(lines, name, labels, series);
    const sizes = 'apiserver_response_sizes';
    printFamily(lines, sizes);
    for (const { labels, sizes: own } of this.#durations.values()) {
      own?.print(lines, sizes, `component="${labels.component}",${labels.common}`);
    }
    const slis = 'apiserver_request_sli_duration_seconds';
    printFamily(lines, slis);
    for (const series of this.#durations.values()) {
      const { common, component, dryRun } = series.labels;
      if (dryRun !== '' || series.isWatch) continue;
      renderLevels(lines, slis, `component="${component}",${common}`, series);
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

function renderSeries(lines: string[], name: string, labels: string, series: Series): void {
  const { count, sumMs, buckets } = series;
  // one that was only ever refused before its route
  if (count === 0) return;
  let below = 0;
  for (const [index, bound] of BUCKETS_S.entries()) {
    below += buckets[index] ?? 0;
    lines.push(`${name}_bucket{${labels},le="${bound}"} ${below}`);
  }
  lines.push(`${name}_bucket{${labels},le="+Inf"} ${count}`);
  lines.push(`${name}_sum{${labels}} ${sumMs / 1000}`, `${name}_count{${labels}} ${count}`);
}

/** The same without what others took, which is what service levels are about. */
function renderLevels(lines: string[], name: string, labels: string, series: Series): void {
  const { count, sumMs, othersMs, buckets, shifts } = series;
  if (count === 0) return;
  let below = 0;
  for (const [index, bound] of BUCKETS_S.entries()) {
    below += (buckets[index] ?? 0) + (shifts?.[index] ?? 0);
    if (bound >= SLI_FROM_S) lines.push(`${name}_bucket{${labels},le="${bound}"} ${below}`);
  }
  lines.push(`${name}_bucket{${labels},le="+Inf"} ${count}`);
  lines.push(`${name}_sum{${labels}} ${(sumMs - othersMs) / 1000}`);
  lines.push(`${name}_count{${labels}} ${count}`);
}

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
  ].map(([label = '', name = '']) => [label, ownMember(VERSION, name) ?? '']),
);
/** Of what is spoken, and what it can be taken for. */
const COMPATIBILITY =
  `version_info{binary="${GIT_VERSION.slice(1)}",component="kube",` +
  `emulation="${MINOR_VERSION}",min_compat="${MIN_COMPATIBLE}"} 1`;
const BUILD = `kubernetes_build_info{${Object.entries(BUILD_FACTS)
  .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  .join()}} 1`;

function renderStorage(world: World, lines: string[]): void {
  const objects: string[] = [];
  const counts: string[] = [];
  const revisions: string[] = [];
  const seen = new Set<string>();
  const all = world.kinds.all();
  for (const served of all) {
    if (!served.stored || seen.has(served.prefix)) continue;
    seen.add(served.prefix);
    const { start, end } = rangeOf(served, '');
    const { group, resource } = served.resource;
    const home = world.at(served).storage;
    const count = home.count(start, end);
    const labels = `group="${group}",resource="${resource}"`;
    const revision = home.publishedRevision % 1e15;
    revisions.push(`apiserver_watch_cache_resource_version{${labels}} ${revision}`);
    counts.push(`apiserver_resource_objects{${labels}} ${count}`);
    const whole = group === '' ? resource : `${resource}.${group}`;
    objects.push(`apiserver_storage_objects{resource="${whole}"} ${count}`);
  }
  const dispatched: string[] = [];
  const kinds = new Map(all.map(({ prefix, resource }) => [prefix, resource]));
  for (const [prefix, hub] of world.hubs) {
    const { group = '', resource = '' } = kinds.get(prefix) ?? {};
    const labels = `group="${group}",resource="${resource}"`;
    dispatched.push(`apiserver_watch_cache_events_dispatched_total{${labels}} ${hub.dispatched}`);
  }
  for (const [name, own] of [
    ['apiserver_storage_objects', objects],
    ['apiserver_resource_objects', counts],
    ['apiserver_watch_cache_resource_version', revisions],
    ['apiserver_watch_cache_events_dispatched_total', dispatched],
  ] as const) {
    printFamily(lines, name);
    lines.push(...own);
  }
}
