/**
 * Metrics that the custom and the external metrics API answer: of pods, of another object, and of
 * things outside the cluster. Calculations and texts are those of upstream's autoscaler.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { milliValueOf, Quantity } from '@megaplane/machinery/quantity';
import { labelSelectorOf, selectorText } from '@megaplane/machinery/selectors';
import type { MetricsSource, Read } from './metrics-source.ts';
import { countReplicas, type PodUse } from './replica-count.ts';
import { isWithin, toleranceOf } from './scaling-rules.ts';
import type { AutoscalerRules } from '../framework/autoscaler-rules.ts';

const FOREIGN = ['Object', 'Pods', 'External'] as const;
type Foreign = (typeof FOREIGN)[number];
const REPLICAS_MAX = 2 ** 31 - 1;
const INT64_MAX = 2n ** 63n - 1n;
const INT64_LIMIT = 2 ** 63;

export function isForeign(type: string): type is Foreign {
  return FOREIGN.some((one) => one === type);
}

/** `text` is what the condition says, `whole` what is said of all metrics together. */
export async function foreignProposal(
  source: MetricsSource,
  given: Given,
  type: Foreign,
  metric: JsonObject,
): Promise<Proposal> {
  const own = objectAt(metric, type.toLowerCase()) ?? {};
  const name = stringAt(own, 'metric', 'name');
  const selector = labelSelectorOf(objectAt(own, 'metric', 'selector'));
  const words = type === 'External' ? `${name} external` : type.toLowerCase();
  const fail: Fail = (text, detail = text) => {
    const whole = `failed to get ${words} metric value: ${detail}`;
    return { ok: false, reason: `FailedGet${type}Metric`, text, whole };
  };
  if ('error' in selector) return fail(selector.error);
  const asked = { source, given, own, name, selector: selectorText(selector.value), fail };
  if (type === 'Pods') return podsProposal(asked);
  if (type === 'Object') return objectProposal(asked);
  return externalProposal(asked);
}

type Fail = (text: string, detail?: string) => Proposal & { readonly ok: false };

interface Asked {
  readonly source: MetricsSource;
  readonly given: Given;
  /** The part of the metric that is for its type. */
  readonly own: JsonObject;
  readonly name: string;
  readonly selector: string;
  readonly fail: Fail;
}

async function podsProposal({ source, given, own, ...asked }: Asked): Promise<Proposal> {
  const { name, selector, fail } = asked;
  const { namespace, current, nowMs } = given;
  const labels = new URLSearchParams();
  if (given.selector !== '') labels.set('labelSelector', given.selector);
  if (selector !== '') labels.set('metricLabelSelector', selector);
  const path = `namespaces/${namespace}/pods/*/${name}?${labels.toString()}`;
  const items = await customItems(source, path, 'pods.custom.metrics.k8s.io *');
  if (!items.ok) return fail(`unable to get metric ${name}: ${items.text}`);
  const uses = new Map<string, PodUse>();
  for (const item of items.value) {
    const value = valueOf(item);
    uses.set(stringAt(item, 'describedObject', 'name'), { value, atMs: 0, windowMs: 0 });
  }
  const pods = await source.pods(namespace, given.selector);
  if (!pods.ok) return fail(pods.text);
  const target = { average: milliValueOf(stringAt(own, 'target', 'averageValue')) };
  const tolerance = toleranceOf(given.autoscaler, given.rules.tolerance);
  const question = {
    resource: '',
    container: '',
    current,
    tolerance,
    rules: given.rules,
    target,
    nowMs,
  };
  const counted = countReplicas(question, pods.value, uses);
  if (!counted.ok) return fail(counted.text);
  const shown = { averageValue: millisText(counted.average) };
  return {
    ok: true,
    replicas: counted.replicas,
    metric: `pods metric ${name}`,
    status: { type: 'Pods', pods: { metric: identifier(own), current: shown } },
  };
}

async function objectProposal(asked: Asked): Promise<Proposal> {
  const { given, own, name, fail } = asked;
  const described = objectAt(own, 'describedObject') ?? {};
  const kind = stringAt(described, 'kind');
  const goal = goalOf(own);
  if (goal === undefined) return fail(missingGoal('object'));
  const { isAverage } = goal;
  const found = await objectUse(asked, described);
  if (!found.ok) {
    const where = `${kind} on ${given.namespace} ${stringAt(described, 'name')}`;
    const text = `unable to get metric ${name}: ${where}/${found.text}`;
    return fail(text, isAverage ? `failed to get ${name} object metric: ${text}` : text);
  }
  const sized = await sizeFor(asked, found.value, goal);
  if (!sized.ok) return fail(sized.text);
  const metric = isAverage ? externalName(own) : `${kind} metric ${name}`;
  const status = { describedObject: described, metric: identifier(own), current: sized.shown };
  return { ok: true, replicas: sized.replicas, metric, status: { type: 'Object', object: status } };
}

/** The one value of an object's metric, in thousandths. */
async function objectUse(
  { source, given, name, selector }: Asked,
  described: JsonObject,
): Promise<Read<number>> {
  const { namespace } = given;
  const resource = await source.resourceOf(described);
  const kind = stringAt(described, 'kind');
  const isNamespace = kind === 'Namespace' && resource.ok && resource.value.group === '';
  const version = await source.customVersion();
  const prefix = 'unable to fetch metrics from custom metrics API';
  if (!version.ok) return { ok: false, text: `${prefix}: ${version.text}` };
  if (!resource.ok) {
    const [group = '', rest] = stringAt(described, 'apiVersion').split('/');
    const known = rest === undefined ? kind : `${kind}.${group}`;
    return {
      ok: false,
      text: `${prefix}: unable to map kind ${known} to resource: ${resource.text}`,
    };
  }
  const { group, plural } = resource.value;
  const type = isNamespace ? 'metrics' : plural + (group === '' ? '' : `.${group}`);
  const object = isNamespace ? '' : `${stringAt(described, 'name')}/`;
  const labels = selector === '' ? '' : `?metricLabelSelector=${encodeURIComponent(selector)}`;
  const path = `namespaces/${namespace}/${type}/${object}${name}${labels}`;
  const shown = isNamespace ? name : stringAt(described, 'name');
  const items = await customItems(source, path, `${type}.custom.metrics.k8s.io ${shown}`);
  if (!items.ok && !items.text.startsWith('no metrics returned')) return items;
  const [item, ...others] = items.ok ? items.value : [];
  if (item !== undefined && others.length === 0) {
    return { ok: true, value: valueOf(item) };
  }
  const count = items.ok ? items.value.length : 0;
  const why = `the custom metrics API server returned ${count} results`;
  return { ok: false, text: `${prefix}: ${why} when we asked for exactly one` };
}

async function externalProposal(asked: Asked): Promise<Proposal> {
  const { source, given, own, name, selector, fail } = asked;
  const goal = goalOf({ target: { ...objectAt(own, 'target'), type: '' } });
  if (goal === undefined) return fail(missingGoal('external'));
  const { isAverage } = goal;
  const refuse = (text: string): Proposal => {
    const what = isAverage ? `${name} external metric` : `external metric ${name}`;
    return fail(text, `failed to get ${what}: ${text}`);
  };
  const labels = selector === '' ? '' : `?labelSelector=${encodeURIComponent(selector)}`;
  const root = '/apis/external.metrics.k8s.io/v1beta1';
  const path = `${root}/namespaces/${given.namespace}/${name}${labels}`;
  const items = await source.readItems('external', path, `${name}.external.metrics.k8s.io`);
  if (!items.ok) {
    const printed = printedSelector(objectAt(own, 'metric', 'selector'));
    const which = `${given.namespace}/${name}/${printed}`;
    return refuse(`unable to get external metric ${which}: ${items.text}`);
  }
  const use = items.value.reduce((sum, item) => sum + valueOf(item), 0);
  const sized = await sizeFor(asked, use, goal);
  if (!sized.ok) return refuse(sized.text);
  const status = { metric: identifier(own), current: sized.shown };
  const metric = externalName(own);
  return {
    ok: true,
    replicas: sized.replicas,
    metric,
    status: { type: 'External', external: status },
  };
}

/** What one item says, in thousandths: 0 where 64 bits do not hold it, as upstream reads it. */
function valueOf(item: JsonObject): number {
  const value = milliValueOf(stringAt(item, 'value'));
  return Math.abs(value) < INT64_LIMIT ? value : 0;
}

async function customItems(
  source: MetricsSource,
  path: string,
  what: string,
): Promise<Read<JsonObject[]>> {
  const version = await source.customVersion();
  if (version.ok) return source.readItems('custom', `/apis/${version.value}/${path}`, what);
  const text = `unable to fetch metrics from custom metrics API: ${version.text}`;
  return { ok: false, text };
}

interface Goal {
  readonly isAverage: boolean;
  readonly value: number;
}

/** An average where one is given and the type, where there is one, does not say otherwise. */
function goalOf(own: JsonObject): Goal | undefined {
  const type = stringAt(own, 'target', 'type');
  const average = stringAt(own, 'target', 'averageValue');
  const value = stringAt(own, 'target', 'value');
  if (average !== '' && (type === '' || type === 'AverageValue')) {
    return { isAverage: true, value: milliValueOf(average) };
  }
  if (value === '' || (type !== '' && type !== 'Value')) return undefined;
  return { isAverage: false, value: milliValueOf(value) };
}

function missingGoal(what: string): string {
  const neither = 'neither a value target nor an average value target was set';
  return `invalid ${what} metric source: ${neither}`;
}

type Sized =
  | { readonly ok: true; readonly replicas: number; readonly shown: JsonObject }
  | { readonly ok: false; readonly text: string };

/** The size for a use of all pods together. */
async function sizeFor({ source, given }: Asked, use: number, goal: Goal): Promise<Sized> {
  const { current, running } = given;
  const tolerance = toleranceOf(given.autoscaler, given.rules.tolerance);
  if (goal.isAverage) {
    const ratio = use / (goal.value * running);
    const replicas = isWithin(tolerance, ratio) ? running : bounded(use / goal.value);
    return { ok: true, replicas, shown: { averageValue: millisText(Math.ceil(use / running)) } };
  }
  const shown = { value: millisText(use) };
  const ratio = use / goal.value;
  if (current === 0) return { ok: true, replicas: bounded(ratio), shown };
  if (isWithin(tolerance, ratio)) return { ok: true, replicas: current, shown };
  const pods = await source.pods(given.namespace, given.selector);
  if (!pods.ok) return { ok: false, text: `unable to calculate ready pods: ${pods.text}` };
  if (pods.value.length === 0) {
    const why = 'no pods returned by selector while calculating replica count';
    return { ok: false, text: `unable to calculate ready pods: ${why}` };
  }
  return { ok: true, replicas: bounded(ratio * pods.value.filter(isReady).length), shown };
}

function isReady(pod: JsonObject): boolean {
  if (stringAt(pod, 'status', 'phase') !== 'Running') return false;
  const ready = (one: JsonValue): boolean =>
    stringAt(one, 'type') === 'Ready' && stringAt(one, 'status') === 'True';
  return listAt(pod, 'status', 'conditions').some(ready);
}

const bounded = (replicas: number): number => Math.min(Math.ceil(replicas), REPLICAS_MAX);

/** Thousandths in 64 bits: too many are the most, and what is no number the least, as in Go. */
function millisText(millis: number): string {
  let whole = -INT64_MAX - 1n;
  if (Number.isFinite(millis)) {
    const exact = BigInt(Math.trunc(millis));
    whole = exact > INT64_MAX ? INT64_MAX : exact;
  }
  return new Quantity(whole, -3, 'DecimalSI').toString();
}

function identifier(own: JsonObject): JsonObject {
  const selector = valueAt(own, 'metric', 'selector');
  const name = stringAt(own, 'metric', 'name');
  return selector === undefined ? { name } : { name, selector };
}

function externalName(own: JsonObject): string {
  const printed = printedSelector(objectAt(own, 'metric', 'selector'));
  return `external metric ${stringAt(own, 'metric', 'name')}(${printed})`;
}

/** A selector as Go prints it. */
function printedSelector(selector: JsonObject | undefined): string {
  if (selector === undefined) return 'nil';
  const labels = Object.entries(objectAt(selector, 'matchLabels') ?? {})
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : ''},`)
    .join('');
  const expressions = listAt(selector, 'matchExpressions')
    .map((one) => {
      const values = listAt(one, 'values')
        .filter((value) => typeof value === 'string')
        .join(' ');
      const key = stringAt(one, 'key');
      const operator = stringAt(one, 'operator');
      return `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values}],},`;
    })
    .join('');
  const list = `[]LabelSelectorRequirement{${expressions}}`;
  return `&LabelSelector{MatchLabels:map[string]string{${labels}},MatchExpressions:${list},}`;
}

export interface Given {
  readonly autoscaler: JsonObject;
  readonly namespace: string;
  readonly selector: string;
  /** Replicas that the target is asked for. */
  readonly current: number;
  /** Replicas that the target says it has. */
  readonly running: number;
  readonly rules: AutoscalerRules;
  readonly nowMs: number;
}

/** `text` is what the event says, `whole` what the error of all metrics quotes. */
export type Proposal =
  | {
      readonly ok: true;
      readonly replicas: number;
      readonly metric: string;
      readonly status: JsonObject;
    }
  | { readonly ok: false; readonly reason: string; readonly text: string; readonly whole: string };
