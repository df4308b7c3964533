/**
 * HorizontalPodAutoscalers of autoscaling/v1, as upstream converts them to and from v2: v1 has one
 * percentage of CPU, and keeps whatever else v2 says in annotations.
 */
import { putMember, putMembers } from '@megaplane/base/members';
import { applyDefaults } from '@megaplane/machinery/defaulting';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { escapedJson } from '@megaplane/machinery/quoting';
import { refit } from '@megaplane/machinery/request-body';
import { findTypeOfKind } from '@megaplane/machinery/schema';

const PREFIX = 'autoscaling.alpha.kubernetes.io/';
const KIND = 'HorizontalPodAutoscaler';
const STORED_VERSION = 'autoscaling/v2';
/** Annotations that say what v1 has no fields for; the last two are of a version that is gone. */
const SAID = [
  'metrics',
  'current-metrics',
  'conditions',
  'behavior',
  'scale-down-tolerance',
  'scale-up-tolerance',
].map((name) => PREFIX + name);
/** Per cent of what pods ask for, where v1 says nothing of metrics. */
const CPU_PERCENT = 80;
const ZERO = '0';

type Fields = Record<string, JsonValue | undefined>;

/** Without the fields that are undefined. */
function present(fields: Fields): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) putMember(kept, name, value);
  return kept;
}

/** How one kind of metric looks in v1, by what v2 says of it and the other way about. */
interface MetricForm {
  readonly toV1: (source: JsonObject) => JsonObject;
  readonly toV2: (source: JsonObject) => JsonObject;
}

const part = (from: JsonObject, field: string): JsonObject => objectAt(from, field) ?? {};

function reference(from: JsonObject): JsonObject {
  const { apiVersion } = from;
  return present({ kind: stringAt(from, 'kind'), name: stringAt(from, 'name'), apiVersion });
}

function metricOf(source: JsonObject, selector: 'selector' | 'metricSelector'): JsonObject {
  return present({ name: stringAt(source, 'metricName'), selector: source[selector] });
}

const targetOf = (type: string, fields: Fields): JsonObject => present({ type, ...fields });

function usageTarget(source: JsonObject): JsonObject {
  const averageUtilization = source['targetAverageUtilization'];
  const type = averageUtilization === undefined ? 'AverageValue' : 'Utilization';
  return targetOf(type, { averageValue: source['targetAverageValue'], averageUtilization });
}

function objectTarget(source: JsonObject): JsonObject {
  const averageValue = source['averageValue'];
  const value = source['targetValue'] ?? ZERO;
  if (averageValue === undefined) return targetOf('Value', { value });
  // v1 cannot leave the value out, and 0 would be refused
  const isZero = value === ZERO || value === 0;
  return targetOf('AverageValue', { value: isZero ? undefined : value, averageValue });
}

const SPECS: Readonly<Record<string, MetricForm>> = {
  object: {
    toV1: (source) => {
      const { value = ZERO, averageValue } = part(source, 'target');
      const { name = '', selector } = part(source, 'metric');
      const target = reference(part(source, 'describedObject'));
      return present({ target, metricName: name, targetValue: value, selector, averageValue });
    },
    toV2: (source) => ({
      describedObject: reference(part(source, 'target')),
      target: objectTarget(source),
      metric: metricOf(source, 'selector'),
    }),
  },
  pods: {
    toV1: (source) => {
      const { name = '', selector } = part(source, 'metric');
      const targetAverageValue = part(source, 'target')['averageValue'] ?? ZERO;
      return present({ metricName: name, targetAverageValue, selector });
    },
    toV2: (source) => ({
      metric: metricOf(source, 'selector'),
      target: targetOf('AverageValue', { averageValue: source['targetAverageValue'] ?? ZERO }),
    }),
  },
  resource: {
    toV1: (source) => present({ name: source['name'] ?? '', ...usageOfTarget(source) }),
    toV2: (source) => ({ name: source['name'] ?? '', target: usageTarget(source) }),
  },
  containerResource: {
    toV1: (source) =>
      present({
        name: source['name'] ?? '',
        ...usageOfTarget(source),
        container: source['container'] ?? '',
      }),
    toV2: (source) => ({
      name: source['name'] ?? '',
      target: usageTarget(source),
      container: source['container'] ?? '',
    }),
  },
  external: {
    toV1: (source) => {
      const { name = '', selector } = part(source, 'metric');
      const { value, averageValue } = part(source, 'target');
      return present({
        metricName: name,
        metricSelector: selector,
        targetValue: value,
        targetAverageValue: averageValue,
      });
    },
    toV2: (source) => {
      const { targetValue: value, targetAverageValue: averageValue } = source;
      const type = value === undefined ? 'AverageValue' : 'Value';
      const metric = metricOf(source, 'metricSelector');
      return { metric, target: targetOf(type, { value, averageValue }) };
    },
  },
};

function usageOfTarget(source: JsonObject): Fields {
  const { averageUtilization, averageValue } = part(source, 'target');
  return { targetAverageUtilization: averageUtilization, targetAverageValue: averageValue };
}

const STATUSES: Readonly<Record<string, MetricForm>> = {
  object: {
    toV1: (source) => {
      const { value = ZERO, averageValue } = part(source, 'current');
      const { name = '', selector } = part(source, 'metric');
      const target = reference(part(source, 'describedObject'));
      return present({ target, metricName: name, currentValue: value, selector, averageValue });
    },
    toV2: (source) => ({
      metric: metricOf(source, 'selector'),
      current: present({
        value: source['currentValue'] ?? ZERO,
        averageValue: source['averageValue'],
      }),
      describedObject: reference(part(source, 'target')),
    }),
  },
  pods: {
    toV1: (source) => {
      const { name = '', selector } = part(source, 'metric');
      const currentAverageValue = part(source, 'current')['averageValue'] ?? ZERO;
      return present({ metricName: name, currentAverageValue, selector });
    },
    toV2: (source) => ({
      metric: metricOf(source, 'selector'),
      current: { averageValue: source['currentAverageValue'] ?? ZERO },
    }),
  },
  resource: {
    toV1: (source) => present({ name: source['name'] ?? '', ...usageOfCurrent(source) }),
    toV2: (source) => ({ name: source['name'] ?? '', current: usageCurrent(source) }),
  },
  containerResource: {
    toV1: (source) =>
      present({
        name: source['name'] ?? '',
        ...usageOfCurrent(source),
        container: source['container'] ?? '',
      }),
    toV2: (source) => ({
      name: source['name'] ?? '',
      current: usageCurrent(source),
      container: source['container'] ?? '',
    }),
  },
  external: {
    toV1: (source) => {
      const { name = '', selector } = part(source, 'metric');
      const { value = ZERO, averageValue } = part(source, 'current');
      return present({
        metricName: name,
        metricSelector: selector,
        currentValue: value,
        currentAverageValue: averageValue,
      });
    },
    toV2: (source) => ({
      metric: metricOf(source, 'metricSelector'),
      current: present({
        value: source['currentValue'] ?? ZERO,
        averageValue: source['currentAverageValue'],
      }),
    }),
  },
};

function usageOfCurrent(source: JsonObject): Fields {
  const { averageUtilization, averageValue = ZERO } = part(source, 'current');
  return { currentAverageUtilization: averageUtilization, currentAverageValue: averageValue };
}

function usageCurrent(source: JsonObject): JsonObject {
  return present({
    averageValue: source['currentAverageValue'] ?? ZERO,
    averageUtilization: source['currentAverageUtilization'],
  });
}

function converted(
  metric: JsonValue,
  forms: Readonly<Record<string, MetricForm>>,
  to: keyof MetricForm,
): JsonObject {
  const result: JsonObject = { type: stringAt(metric, 'type') };
  for (const [field, form] of Object.entries(forms)) {
    const source = objectAt(metric, field);
    if (source !== undefined) putMember(result, field, form[to](source));
  }
  return result;
}

/** The utilization of CPU that a metric of v2 wants; undefined where it is about something else. */
function cpuTarget(metric: JsonValue): JsonValue | undefined {
  if (stringAt(metric, 'type') !== 'Resource') return undefined;
  const resource = objectAt(metric, 'resource');
  if (stringAt(resource, 'name') !== 'cpu') return undefined;
  return objectAt(resource, 'target')?.['averageUtilization'];
}

function cpuMetric(averageUtilization: JsonValue): JsonObject {
  const target = { type: 'Utilization', averageUtilization };
  return { type: 'Resource', resource: { name: 'cpu', target } };
}

const list = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value : [];

/** An autoscaler of v2 as v1 shows it. */
export function scalerToV1(scaler: JsonObject): JsonObject {
  const { metrics, behavior, ...spec } = objectAt(scaler, 'spec') ?? {};
  const status = objectAt(scaler, 'status');
  const {
    currentMetrics,
    conditions,
    currentReplicas = 0,
    desiredReplicas = 0,
    ...reported
  } = status ?? {};
  const percentage = list(metrics)
    .map(cpuTarget)
    .find((one) => one !== undefined);
  const others = list(metrics).filter((metric) => cpuTarget(metric) === undefined);
  const current = list(currentMetrics);
  const said: Record<string, JsonValue | undefined> = {
    metrics: some(others.map((metric) => converted(metric, SPECS, 'toV1'))),
    'current-metrics': some(current.map((metric) => converted(metric, STATUSES, 'toV1'))),
    behavior: isObject(behavior) ? goBehavior(behavior) : undefined,
    conditions: some(list(conditions).map(goCondition)),
  };
  const annotations = withoutSaid(scaler);
  for (const [name, value] of Object.entries(said)) {
    if (value !== undefined) annotations[PREFIX + name] = escapedJson(value);
  }
  const cpu = current.flatMap((metric) => {
    const own = stringAt(metric, 'type') === 'Resource' ? objectAt(metric, 'resource') : undefined;
    const used = objectAt(own, 'current')?.['averageUtilization'];
    return stringAt(own, 'name') === 'cpu' && used !== undefined ? [used] : [];
  });
  const used = cpu.at(-1);
  return {
    ...scaler,
    metadata: annotated(scaler, annotations),
    spec: present({ ...spec, targetCPUUtilizationPercentage: percentage }),
    ...(status === undefined
      ? {}
      : {
          status: present({
            ...reported,
            currentReplicas,
            desiredReplicas,
            currentCPUUtilizationPercentage: used,
          }),
        }),
  };
}

function some(values: JsonValue[]): JsonValue[] | undefined {
  return values.length === 0 ? undefined : values;
}

function goCondition(condition: JsonValue): JsonValue {
  const {
    type = '',
    status = '',
    lastTransitionTime = null,
    reason,
    message,
  } = isObject(condition) ? condition : {};
  return present({ type, status, lastTransitionTime, reason, message });
}

/** Upstream writes its internal type there, which has fields without names of their own. */
function goBehavior(behavior: JsonObject): JsonValue {
  const rules = (field: string): JsonValue => {
    const own = objectAt(behavior, field);
    if (own === undefined) return null;
    const policies = own['policies'];
    return {
      StabilizationWindowSeconds: own['stabilizationWindowSeconds'] ?? null,
      SelectPolicy: own['selectPolicy'] ?? null,
      Policies: Array.isArray(policies)
        ? policies.map((one) => ({
            Type: objectAt(one)?.['type'] ?? '',
            Value: objectAt(one)?.['value'] ?? 0,
            PeriodSeconds: objectAt(one)?.['periodSeconds'] ?? 0,
          }))
        : null,
      Tolerance: own['tolerance'] ?? null,
    };
  };
  return { ScaleUp: rules('scaleUp'), ScaleDown: rules('scaleDown') };
}

/** An autoscaler of v1 as v2 has it, without the defaults of v2. */
export function scalerToV2(scaler: JsonObject): JsonObject {
  const said = objectAt(scaler, 'metadata', 'annotations') ?? {};
  const { targetCPUUtilizationPercentage: percentage, ...spec } = objectAt(scaler, 'spec') ?? {};
  const status = objectAt(scaler, 'status');
  const { currentCPUUtilizationPercentage: used, ...reported } = status ?? {};
  const cpu = percentage === undefined ? [] : [cpuMetric(percentage)];
  const metrics = [...saidList(said, 'metrics', SPECS), ...cpu];
  const behavior = saidBehavior(said);
  const current = { averageUtilization: used ?? null };
  const ownMetrics: JsonValue[] =
    used === undefined ? [] : [{ type: 'Resource', resource: { name: 'cpu', current } }];
  const isSaid = `${PREFIX}current-metrics` in said;
  const currentMetrics = isSaid ? saidList(said, 'current-metrics', STATUSES) : ownMetrics;
  const conditions = saidConditions(said);
  const whole = {
    ...scaler,
    apiVersion: STORED_VERSION,
    metadata: annotated(scaler, withoutSaid(scaler)),
    spec: present({
      ...spec,
      metrics: metrics.length === 0 ? [cpuMetric(CPU_PERCENT)] : metrics,
      behavior,
    }),
    ...(status === undefined
      ? {}
      : { status: present({ ...reported, currentMetrics: some(currentMetrics), conditions }) }),
  };
  return fitted(whole) ?? whole;
}

/** In the form of v2, quantities as they are written; null where it has no such form. */
function fitted(scaler: JsonObject): JsonObject | null {
  const type = findTypeOfKind(STORED_VERSION, KIND);
  if (type === undefined) return null;
  // owners of fields are packed, which is no form of metadata
  const { metadata, ...rest } = scaler;
  const body = refit(type, rest, false);
  if (!body.ok) return null;
  return metadata === undefined ? body.object : { ...body.object, metadata };
}

/** What an annotation says, read; undefined where it is missing or no JSON. */
function saidValue(said: JsonObject, name: string): JsonValue | undefined {
  const text = said[PREFIX + name];
  if (typeof text !== 'string') return undefined;
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Metrics of an annotation; what is no such list is left out as a whole. */
function saidList(
  said: JsonObject,
  name: string,
  forms: Readonly<Record<string, MetricForm>>,
): JsonObject[] {
  const metrics = list(saidValue(said, name)).map((metric) => converted(metric, forms, 'toV2'));
  const isSpec = forms === SPECS;
  const probe = isSpec ? { spec: { metrics } } : { status: { currentMetrics: metrics } };
  return fitted({ apiVersion: STORED_VERSION, kind: KIND, ...probe }) === null ? [] : metrics;
}

function saidConditions(said: JsonObject): JsonValue | undefined {
  const conditions = saidValue(said, 'conditions');
  if (!Array.isArray(conditions)) return undefined;
  const probe = { apiVersion: STORED_VERSION, kind: KIND, status: { conditions } };
  return fitted(probe) === null ? undefined : conditions;
}

/** Go reads names of fields without regard to case. */
const FIELDS = new Map(
  [
    'scaleUp',
    'scaleDown',
    'stabilizationWindowSeconds',
    'selectPolicy',
    'policies',
    'tolerance',
    'type',
    'value',
    'periodSeconds',
  ].map((name) => [name.toLowerCase(), name]),
);

function recased(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(recased);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== null);
  return Object.fromEntries(
    entries.map(([name, one]) => [FIELDS.get(name.toLowerCase()) ?? name, recased(one ?? null)]),
  );
}

function saidBehavior(said: JsonObject): JsonValue | undefined {
  const value = saidValue(said, 'behavior');
  const behavior = isObject(value) ? recased(value) : undefined;
  if (!isObject(behavior) || !('scaleUp' in behavior || 'scaleDown' in behavior)) return undefined;
  const probe = { apiVersion: STORED_VERSION, kind: KIND, spec: { behavior } };
  return fitted(probe) === null ? undefined : behavior;
}

function withoutSaid(scaler: JsonObject): JsonObject {
  const annotations = { ...objectAt(scaler, 'metadata', 'annotations') };
  for (const name of SAID) delete annotations[name];
  return annotations;
}

/** The metadata with these annotations in the place of its own. */
function annotated(scaler: JsonObject, annotations: JsonObject): JsonObject {
  const metadata = objectAt(scaler, 'metadata') ?? {};
  const isNone = Object.keys(annotations).length === 0;
  if (metadata['annotations'] === undefined) {
    return isNone ? metadata : { ...metadata, annotations };
  }
  const { annotations: _, ...rest } = metadata;
  return isNone ? rest : { ...metadata, annotations };
}

/**
 * What a write of an autoscaler becomes before anybody looks at it, in place: as if it had been
 * read, since upstream works on one form of all versions.
 */
export function settleScaler(scaler: JsonObject): void {
  if (scaler['apiVersion'] === STORED_VERSION) {
    scaler['metadata'] = annotated(scaler, withoutSaid(scaler));
  } else {
    putMembers(scaler, scalerToV1(scalerToV2(scaler)));
    scaler['apiVersion'] = 'autoscaling/v1';
  }
}

/** An autoscaler of v1 as it is stored. */
export function storedScaler(scaler: JsonObject): JsonObject {
  const stored = scalerToV2(scaler);
  applyDefaults(stored);
  return stored;
}
