/**
 * kwok's Metric: pages in Prometheus' text format below `/metrics`, one sample for a node, each of
 * its pods, or each container of those, with values and labels in CEL.
 */
import { labelValue } from '@megaplane/base/visible-text';
import type { Program } from '@megaplane/machinery/cel/program';
import { listAt } from '@megaplane/machinery/json';
import { isObject } from '@megaplane/machinery/json-value';
import { METADATA, type Field } from '../yaml/yaml-fields.ts';
import type { Usage, UsageSubject } from './usage.ts';

interface MetricBucket {
  readonly le: number;
  readonly value: Program;
  readonly isHidden: boolean;
}

export interface MetricConfig {
  readonly name: string;
  readonly help: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly dimension: 'node' | 'pod' | 'container';
  readonly labels: readonly { readonly name: string; readonly value: Program }[];
  /** Null for histograms. */
  readonly value: Program | null;
  readonly buckets: readonly MetricBucket[];
}

export interface MetricPage {
  readonly name: string;
  /** Begins with `/metrics`; may hold `{nodeName}`. */
  readonly path: string;
  /** Of paths that ask for it; the node is its first group. */
  readonly pattern: RegExp;
  readonly metrics: readonly MetricConfig[];
}

/** What stands in a page's path for the name of the node that it is about. */
export const PATH_NODE = '{nodeName}';
/** From this power of ten on Go's shortest `g` writes an exponent. */
const EXPONENT_POWER = 6;

const KINDS = ['counter', 'gauge', 'histogram'] as const;
const DIMENSIONS = ['node', 'pod', 'container'] as const;
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * Whose page a path asks for, or null for another page. Of a page without a node in its path kwok
 * takes the page's own name for one.
 */
export function nodeOfPage({ name, pattern }: MetricPage, asked: string): string | null {
  const match = pattern.exec(asked);
  return match === null ? null : decodeURIComponent(match[1] ?? name);
}

/** Reads a document of the kind Metric; throws a FileError. */
export function readMetricPage(document: Field, usage: Usage): MetricPage {
  const top = document.members(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
  const name = top('metadata').members(METADATA)('name').text();
  const spec = top('spec').members(['path', 'metrics']);
  const path = spec('path').text();
  if (!path.startsWith('/metrics/')) throw spec('path').error('must begin with /metrics/');
  const metrics = spec('metrics')
    .items()
    .map((item) => readMetric(item, usage));
  const parts = path.split(PATH_NODE).map((part) => RegExp.escape(part));
  const pattern = new RegExp(`^${parts.join('([^/]+)')}$`);
  return { name, path, pattern, metrics };
}

function readMetric(field: Field, usage: Usage): MetricConfig {
  const part = field.members(
    ['name', 'help', 'kind', 'dimension', 'labels', 'value', 'buckets'].concat('disable'),
  );
  const name = part('name').text();
  if (!METRIC_NAME.test(name)) throw part('name').error('is no name of a metric');
  const kind = part('kind').oneOf(KINDS);
  const isHistogram = kind === 'histogram';
  return {
    name,
    help: part('help').text(''),
    kind,
    dimension: part('dimension').isAbsent ? 'node' : part('dimension').oneOf(DIMENSIONS),
    labels: part('labels')
      .items()
      .map((item) => {
        const label = item.members(['name', 'value']);
        const own = label('name').text();
        if (!LABEL_NAME.test(own)) throw label('name').error('is no name of a label');
        return { name: own, value: usage.compile(label('value')) };
      }),
    value: isHistogram ? null : usage.compile(part('value')),
    buckets: part('buckets')
      .items()
      .map((item) => {
        const bucket = item.members(['le', 'value', 'hidden']);
        const le = bucket('le').decimal();
        const isHidden = bucket('hidden').flag();
        return { le, value: usage.compile(bucket('value')), isHidden };
      })
      .toSorted((left, right) => left.le - right.le),
  };
}

/** What one look at a metric gives: of a histogram several lines. */
interface Samples {
  readonly labels: readonly (readonly [string, string])[];
  readonly lines: readonly string[];
}

interface Family {
  readonly head: string;
  readonly metrics: Samples[];
}

/** The page of a node; `onError` hears of samples that could not be had. */
export function renderPage(
  page: MetricPage,
  usage: Usage,
  node: UsageSubject,
  onError: (text: string) => void,
): string {
  const families = new Map<string, Family>();
  for (const metric of page.metrics) {
    const { name, help, kind } = metric;
    const head = `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${kind}`;
    const family = families.get(name) ?? { head, metrics: [] };
    families.set(name, family);
    for (const subject of subjectsOf(metric, node)) {
      const samples = samplesOf(metric, usage, subject);
      if (samples instanceof Error) onError(`metric ${name}: ${samples.message}`);
      else family.metrics.push(samples);
    }
  }
  return [...families]
    .filter(([, { metrics }]) => metrics.length > 0)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([, { head, metrics }]) => {
      const lines = metrics.toSorted(byLabels).flatMap((one) => one.lines);
      return `${head}\n${lines.join('\n')}\n`;
    })
    .join('');
}

/** In the order of Prometheus' library: fewer labels first, then by their values. */
function byLabels(left: Samples, right: Samples): number {
  if (left.labels.length !== right.labels.length) return left.labels.length - right.labels.length;
  for (const [index, [, value]] of left.labels.entries()) {
    const other = right.labels[index]?.[1] ?? '';
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
}

function* subjectsOf({ dimension }: MetricConfig, node: UsageSubject): Generator<UsageSubject> {
  if (dimension === 'node') {
    yield node;
    return;
  }
  for (const pod of node.pods) {
    if (dimension === 'pod') yield { ...node, pod };
    else {
      for (const container of listAt(pod, 'spec', 'containers')) {
        if (isObject(container)) yield { ...node, pod, container };
      }
    }
  }
}

function samplesOf(metric: MetricConfig, usage: Usage, subject: UsageSubject): Samples | Error {
  const labels: [string, string][] = [];
  for (const { name, value } of metric.labels) {
    const text = usage.text(value, subject);
    if (text instanceof Error) return text;
    labels.push([name, text]);
  }
  labels.sort(([left], [right]) => (left < right ? -1 : 1));
  if (metric.value === null) return histogram(metric, usage, subject, labels);
  const value = usage.number(metric.value, subject);
  if (value instanceof Error) return value;
  return { labels, lines: [`${metric.name}${labelText(labels)} ${goNumber(value)}`] };
}

/** A hidden bucket counts in the next one that is shown. */
function histogram(
  metric: MetricConfig,
  usage: Usage,
  subject: UsageSubject,
  labels: readonly [string, string][],
): Samples | Error {
  const lines: string[] = [];
  let count = 0;
  let sum = 0;
  for (const { le, value, isHidden } of metric.buckets) {
    const found = usage.number(value, subject);
    if (found instanceof Error) return found;
    count += Math.max(0, Math.trunc(found));
    sum += le * Math.max(0, Math.trunc(found));
    if (isHidden || le === Infinity) continue;
    lines.push(`${metric.name}_bucket${labelText([...labels, ['le', goNumber(le)]])} ${count}`);
  }
  lines.push(
    `${metric.name}_bucket${labelText([...labels, ['le', '+Inf']])} ${count}`,
    `${metric.name}_sum${labelText(labels)} ${goNumber(sum)}`,
    `${metric.name}_count${labelText(labels)} ${count}`,
  );
  return { labels, lines };
}

function labelText(labels: readonly (readonly [string, string])[]): string {
  if (labels.length === 0) return '';
  return `{${labels.map(([name, value]) => `${name}="${labelValue(value)}"`).join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** A number as Go's formatting with `g` has it. */
function goNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const [, digits = '', exponent = '0'] = /^(.*)e([+-]\d+)$/.exec(value.toExponential()) ?? [];
  const power = Number(exponent);
  if (power >= -4 && power < EXPONENT_POWER) return String(value);
  const sign = power < 0 ? '-' : '+';
  return `${digits}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}
