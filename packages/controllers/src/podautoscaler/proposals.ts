/** What one metric of an autoscaler asks for. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { Quantity } from '@megaplane/machinery/quantity';
import {
  foreignProposal,
  isForeign,
  type Given,
  type Proposal,
} from './custom-and-external-metrics.ts';
import type { MetricsSource } from './metrics-source.ts';
import { countReplicas, targetOf, usesOf } from './replica-count.ts';
import { toleranceOf } from './scaling-rules.ts';

export async function proposalOf(
  source: MetricsSource,
  given: Given,
  metric: JsonObject,
): Promise<Proposal> {
  const type = stringAt(metric, 'type');
  if (isForeign(type)) return foreignProposal(source, given, type, metric);
  const isContainer = type === 'ContainerResource';
  if (type !== 'Resource' && !isContainer) {
    const text = `unknown metric source type "${type}"`;
    return { ok: false, reason: 'InvalidMetricSourceType', text, whole: text };
  }
  const field = isContainer ? 'containerResource' : 'resource';
  const found = await resourceProposal(source, given, objectAt(metric, field) ?? {}, field);
  if (found.ok) return found;
  const resource = stringAt(metric, field, 'name');
  const container = stringAt(metric, field, 'container');
  const words = isContainer ? `${container} container` : `${resource} resource`;
  const reason = isContainer ? 'FailedGetContainerResourceMetric' : 'FailedGetResourceMetric';
  const whole = `failed to get ${words} metric value: ${found.text}`;
  return { ok: false, reason, text: found.text, whole };
}

async function resourceProposal(
  source: MetricsSource,
  given: Given,
  metric: JsonObject,
  field: 'resource' | 'containerResource',
): Promise<Proposal> {
  const resource = stringAt(metric, 'name');
  const container = stringAt(metric, 'container');
  const target = targetOf(metric);
  const fail = (text: string): Proposal => ({ ok: false, reason: '', text, whole: text });
  if (typeof target === 'string') return fail(target);
  const prefix = `failed to get ${resource} ${'average' in target ? 'usage' : 'utilization'}`;
  const metrics = await source.metrics(given.namespace, resource, given.selector);
  if (!metrics.ok) return fail(`${prefix}: ${metrics.text}`);
  const uses = usesOf(metrics.value, resource, container);
  const pods = await source.pods(given.namespace, given.selector);
  if (!pods.ok) return fail(`${prefix}: ${pods.text}`);
  const tolerance = toleranceOf(given.autoscaler, given.rules.tolerance);
  const { current, nowMs } = given;
  const question = { resource, container, current, tolerance, rules: given.rules, target, nowMs };
  const counted = countReplicas(question, pods.value, uses);
  if (!counted.ok) return fail(`${prefix}: ${counted.text}`);
  const averageValue = averageText(resource, counted.average);
  const isShare = counted.utilization !== undefined;
  const words = field === 'resource' || !isShare ? 'resource' : 'container resource';
  const shown: JsonObject = { averageValue };
  if (isShare) shown['averageUtilization'] = counted.utilization;
  return {
    ok: true,
    replicas: counted.replicas,
    metric: `${resource} ${words}${isShare ? ' utilization (percentage of request)' : ''}`,
    status: {
      type: field === 'resource' ? 'Resource' : 'ContainerResource',
      [field]: { name: resource, ...(container === '' ? {} : { container }), current: shown },
    },
  };
}

/** A use of so many thousandths: memory in powers of 1024, whole bytes from 1,024 on. */
function averageText(resource: string, millis: number): string {
  const isBytes = resource === 'memory' && millis >= 1_024_000;
  const format = isBytes ? 'BinarySI' : 'DecimalSI';
  const shown = isBytes ? Math.ceil(millis / 1000) * 1000 : millis;
  return new Quantity(BigInt(shown), -3, format).toString();
}
