/**
 * How many replicas a metric asks for, by upstream's calculation: pods without metrics and pods
 * that are not ready count so that the answer errs towards no change.
 */
import { assert } from '@megaplane/base/assert';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { podAmounts } from '@megaplane/machinery/quota/pod-resources';
import { milliValueOf } from '@megaplane/machinery/quantity';
import { parseDuration, parseTime } from '@megaplane/machinery/times';
import type { AutoscalerRules } from '../framework/autoscaler-rules.ts';
import { isWithin, type Tolerance } from './scaling-rules.ts';

/** What the metrics API says of one pod; `value` in thousandths. */
export interface PodUse {
  readonly value: number;
  readonly atMs: number;
  readonly windowMs: number;
}

export interface Question {
  readonly resource: string;
  /** One container of each pod; '' for all of them. */
  readonly container: string;
  readonly current: number;
  readonly tolerance: Tolerance;
  readonly rules: AutoscalerRules;
  /** Percent of the request, or thousandths per pod. */
  readonly target: { readonly utilization: number } | { readonly average: number };
  readonly nowMs: number;
}

export type Counted =
  | {
      readonly ok: true;
      readonly replicas: number;
      /** Per pod, in thousandths. */
      readonly average: number;
      readonly utilization: number | undefined;
    }
  | { readonly ok: false; readonly text: string };

interface Groups {
  ready: number;
  readonly unready: Set<string>;
  readonly missing: Set<string>;
  readonly ignored: Set<string>;
}

export function countReplicas(
  question: Question,
  pods: readonly JsonObject[],
  given: ReadonlyMap<string, PodUse>,
): Counted {
  if (pods.length === 0) {
    return failed('no pods returned by selector while calculating replica count');
  }
  const groups = groupPods(question, pods, given);
  const use = new Map([...given].map(([name, { value }]) => [name, value]));
  for (const name of [...groups.ignored, ...groups.unready]) use.delete(name);
  if (use.size === 0) {
    return failed('did not receive metrics for targeted pods (pods might be unready)');
  }
  const requests = new Map<string, number>();
  if ('utilization' in question.target) {
    const missing = addRequests(question, pods, requests);
    if (missing !== '') return failed(missing);
  }
  const measure = measureOf(question, use, requests);
  if (typeof measure === 'string') return failed(measure);
  const { ratio, average, utilization } = measure;
  assert(groups.ready + groups.unready.size <= pods.length, 'each pod is in one group');
  const keep = (replicas: number): Counted => ({ ok: true, replicas, average, utilization });
  const { current, tolerance } = question;
  const growsUnready = groups.unready.size > 0 && ratio > 1;
  if (!growsUnready && groups.missing.size === 0) {
    return keep(isWithin(tolerance, ratio) ? current : Math.ceil(ratio * groups.ready));
  }
  if (ratio !== 1) {
    for (const name of groups.missing)
      use.set(name, ratio > 1 ? 0 : full(question, requests, name));
  }
  if (growsUnready) for (const name of groups.unready) use.set(name, 0);
  const again = measureOf(question, use, requests);
  if (typeof again === 'string') return failed(again);
  const turned = (ratio < 1 && again.ratio > 1) || (ratio > 1 && again.ratio < 1);
  if (isWithin(tolerance, again.ratio) || turned) return keep(current);
  const replicas = Math.ceil(again.ratio * use.size);
  const isBackwards =
    (again.ratio < 1 && replicas > current) || (again.ratio > 1 && replicas < current);
  return keep(isBackwards ? current : replicas);
}

function failed(text: string): Counted {
  return { ok: false, text };
}

/** What a pod without metrics counts as when the others use little. */
function full(question: Question, requests: ReadonlyMap<string, number>, name: string): number {
  const { target } = question;
  if ('average' in target) return target.average;
  return Math.trunc(((requests.get(name) ?? 0) * Math.max(100, target.utilization)) / 100);
}

function groupPods(
  { resource, rules, nowMs }: Question,
  pods: readonly JsonObject[],
  use: ReadonlyMap<string, PodUse>,
): Groups {
  const groups = { ready: 0, unready: new Set<string>(), missing: new Set<string>() };
  const ignored = new Set<string>();
  for (const pod of pods) {
    const name = stringAt(pod, 'metadata', 'name');
    const phase = stringAt(pod, 'status', 'phase');
    const metric = use.get(name);
    if (stringAt(pod, 'metadata', 'deletionTimestamp') !== '' || phase === 'Failed') {
      ignored.add(name);
    } else if (phase === 'Pending') groups.unready.add(name);
    else if (metric === undefined) groups.missing.add(name);
    else if (resource === 'cpu' && isUnready(pod, metric, rules, nowMs)) groups.unready.add(name);
    else groups.ready++;
  }
  return { ...groups, ignored };
}

function isUnready(
  pod: JsonObject,
  metric: PodUse,
  rules: AutoscalerRules,
  nowMs: number,
): boolean {
  const condition = listAt(pod, 'status', 'conditions').find(
    (one) => stringAt(one, 'type') === 'Ready',
  );
  const startMs = timeMs(stringAt(pod, 'status', 'startTime'));
  if (condition === undefined || startMs === undefined) return true;
  const isFalse = stringAt(condition, 'status') === 'False';
  const changedMs = timeMs(stringAt(condition, 'lastTransitionTime')) ?? 0;
  if (startMs + rules.cpuInitializationMs > nowMs) {
    return isFalse || metric.atMs < changedMs + metric.windowMs;
  }
  return isFalse && startMs + rules.initialReadinessMs > changedMs;
}

function timeMs(text: string): number | undefined {
  const time = parseTime(text);
  return time === undefined ? undefined : time.seconds * 1000;
}

/** Requests by pod, in thousandths; the text says which pod or container has none. */
function addRequests(
  { resource, container }: Question,
  pods: readonly JsonObject[],
  requests: Map<string, number>,
): string {
  for (const pod of pods) {
    const isWhole = container === '' && asksAsWhole(pod);
    const request = isWhole ? wholeRequest(pod, resource) : ownRequest(pod, resource, container);
    if (typeof request === 'string') return request;
    requests.set(stringAt(pod, 'metadata', 'name'), request);
  }
  return '';
}

/** True if resources are asked for by the pod itself, which may be these alone. */
function asksAsWhole(pod: JsonObject): boolean {
  const asked = Object.keys(objectAt(pod, 'spec', 'resources', 'requests') ?? {});
  return asked.some((name) => ['cpu', 'memory'].includes(name) || name.startsWith('hugepages-'));
}

function wholeRequest(pod: JsonObject, resource: string): number | string {
  const amount = podAmounts(pod, 'requests').get(resource);
  if (amount !== undefined) return amount.milliValue;
  return `missing pod-level request for ${resource} in Pod ${stringAt(pod, 'metadata', 'name')}`;
}

/** What the containers ask for, or the one that is named. */
function ownRequest(pod: JsonObject, resource: string, container: string): number | string {
  const name = stringAt(pod, 'metadata', 'name');
  const sidecars = listAt(pod, 'spec', 'initContainers').filter(
    (one) => stringAt(one, 'restartPolicy') === 'Always',
  );
  const all = [...listAt(pod, 'spec', 'containers'), ...sidecars];
  const named = all.filter((one) => container === '' || stringAt(one, 'name') === container);
  if (named.length === 0 && container !== '') {
    return `container ${container} not found in Pod ${name}`;
  }
  let sum = 0;
  for (const one of named) {
    const request = stringAt(one, 'resources', 'requests', resource);
    if (request === '') {
      return `missing request for ${resource} in container ${stringAt(one, 'name')} of Pod ${name}`;
    }
    sum += milliValueOf(request);
  }
  return sum;
}

interface Measure {
  readonly ratio: number;
  readonly average: number;
  readonly utilization: number | undefined;
}

function measureOf(
  { target }: Question,
  use: ReadonlyMap<string, number>,
  requests: ReadonlyMap<string, number>,
): Measure | string {
  let total = 0;
  let requested = 0;
  let count = 0;
  for (const [name, value] of use) {
    const request = requests.get(name);
    if ('utilization' in target && request === undefined) continue;
    total += value;
    requested += request ?? 0;
    count++;
  }
  if ('average' in target) {
    assert(count > 0, 'a mean is that of some pods');
    const average = Math.trunc(total / count);
    return { ratio: average / target.average, average, utilization: undefined };
  }
  if (requested === 0) return 'no metrics returned matched known pods';
  const utilization = Math.trunc((total * 100) / requested);
  const average = Math.trunc(total / count);
  return { ratio: utilization / target.utilization, average, utilization };
}

/** The use of one resource by pod, from a PodMetricsList; pods that do not tell it are left out. */
export function usesOf(
  items: readonly JsonObject[],
  resource: string,
  container: string,
): Map<string, PodUse> {
  const uses = new Map<string, PodUse>();
  for (const item of items) {
    const name = stringAt(item, 'metadata', 'name');
    const all = listAt(item, 'containers');
    const chosen =
      container === '' ? all : all.filter((one) => stringAt(one, 'name') === container);
    if (chosen.length === 0) continue;
    const values = chosen.map((one) => stringAt(one, 'usage', resource));
    if (values.includes('')) continue;
    const value = values.reduce((sum, text) => sum + milliValueOf(text), 0);
    const atMs = timeMs(stringAt(item, 'timestamp')) ?? 0;
    uses.set(name, { value, atMs, windowMs: (parseDuration(stringAt(item, 'window')) ?? 0) / 1e6 });
  }
  return uses;
}

/** What a target of a metric says, or the text of what is wrong with it. */
export function targetOf(metric: JsonObject): Question['target'] | string {
  const average = stringAt(metric, 'target', 'averageValue');
  if (average !== '') return { average: milliValueOf(average) };
  const utilization = numberAt(metric, 'target', 'averageUtilization');
  if (utilization > 0) return { utilization };
  return (
    'invalid resource metric source: neither an average utilization target nor an average ' +
    'value (usage) target was set'
  );
}
