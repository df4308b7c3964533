/**
 * Metrics that the custom and the external metrics API answer, which are not read here. Where a
 * cluster does not serve such an API, as most do not, the texts are those of upstream's autoscaler,
 * with the words of an object's metric in the order in which it prints them.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { MetricsSource } from './metrics-source.ts';
import type { Proposal } from './proposals.ts';

const CUSTOM = 'custom.metrics.k8s.io';
const EXTERNAL = 'external.metrics.k8s.io';
const FOREIGN = ['Object', 'Pods', 'External'] as const;
type Foreign = (typeof FOREIGN)[number];

export function isForeign(type: string): type is Foreign {
  return FOREIGN.some((one) => one === type);
}

/** `text` is what the condition says, `whole` what is said of all metrics together. */
export async function refuseForeign(
  source: MetricsSource,
  namespace: string,
  type: Foreign,
  metric: JsonObject,
): Promise<Proposal> {
  const field = type.toLowerCase();
  const own = objectAt(metric, field) ?? {};
  const name = stringAt(own, 'metric', 'name');
  const isAverage = stringAt(own, 'target', 'type') === 'AverageValue';
  const why = await unserved(source, type, name);
  const reason = `FailedGet${type}Metric`;
  if (type === 'Pods') {
    const text = `unable to get metric ${name}: ${why}`;
    return { ok: false, reason, text, whole: `failed to get pods metric value: ${text}` };
  }
  if (type === 'Object') {
    const described = objectAt(own, 'describedObject');
    const kind = stringAt(described, 'kind');
    const object = stringAt(described, 'name');
    const text = `unable to get metric ${name}: ${kind} on ${namespace} ${object}/${why}`;
    const detail = isAverage ? `failed to get ${name} object metric: ${text}` : text;
    return { ok: false, reason, text, whole: `failed to get object metric value: ${detail}` };
  }
  const selector = selectorText(objectAt(own, 'metric', 'selector'));
  const text = `unable to get external metric ${namespace}/${name}/${selector}: ${why}`;
  const words = isAverage ? `${name} external metric` : `external metric ${name}`;
  const detail = `failed to get ${words}: ${text}`;
  return {
    ok: false,
    reason,
    text,
    whole: `failed to get ${name} external metric value: ${detail}`,
  };
}

async function unserved(source: MetricsSource, type: Foreign, name: string): Promise<string> {
  const group = type === 'External' ? EXTERNAL : CUSTOM;
  const api = type === 'External' ? 'external' : 'custom';
  const prefix = `unable to fetch metrics from ${api} metrics API`;
  if (await source.isServed(group)) return `${prefix}: ${group} is not read by these controllers`;
  if (type !== 'External') return `${prefix}: no custom metrics API (${group}) registered`;
  return `${prefix}: the server could not find the requested resource (get ${name}.${group})`;
}

/** A selector as Go prints it. */
function selectorText(selector: JsonObject | undefined): string {
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
