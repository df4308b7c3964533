/** Horizontal pod autoscalers. */

import { ownMember } from '@megaplane/base/members';
import { forbiddenField, invalidValue, notSupported, required } from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { pathSegmentErrors } from '../../meta/names.ts';
import { parseQuantity, Quantity } from '../../meta/quantity.ts';
import { checkContainerResource } from '../field/resource-names.ts';
import {
  checkDnsLabel,
  eachObject,
  invalidEach,
  nonNegativeAmount,
  positive,
  type Findings,
} from '../field/validation-rules.ts';

const WINDOW_SECONDS_MAX = 3600;
const PERIOD_SECONDS_MAX = 1800;
const SELECTIONS = ['Disabled', 'Max', 'Min'];
const POLICY_TYPES = ['Percent', 'Pods'];
const METRIC_TYPES = ['ContainerResource', 'External', 'Object', 'Pods', 'Resource'];
const TARGET_TYPES = ['Utilization', 'Value', 'AverageValue'];
const NO_SOURCE = 'must populate information for the given metric source';
const ONE_SOURCE = 'must populate the given metric source only';

export function checkAutoscaler(found: Findings, autoscaler: JsonObject): void {
  const spec = objectAt(autoscaler, 'spec') ?? {};
  const min = spec['minReplicas'];
  const max = numberAt(spec, 'maxReplicas');
  if (typeof min === 'number' && min < 1) {
    found.push(invalidValue('spec.minReplicas', min, 'must be greater than or equal to 1'));
  }
  const path = 'spec.maxReplicas';
  if (max === 0) found.push(required(path, 'must be set and greater than 0'));
  else if (max < 0) found.push(invalidValue(path, max, 'must be greater than or equal to 1'));
  if (typeof min === 'number' && max < min) {
    found.push(invalidValue(path, max, 'must be greater than or equal to `minReplicas`'));
  }
  const target = objectAt(spec, 'scaleTargetRef');
  const isCoreAllowed = stringAt(target, 'kind') === 'ReplicationController';
  checkReference(found, 'spec.scaleTargetRef', target, isCoreAllowed);
  checkMetrics(found, 'spec.metrics', spec);
  for (const field of ['scaleUp', 'scaleDown']) {
    const rules = objectAt(spec, 'behavior', field);
    if (rules !== undefined) checkScaling(found, `spec.behavior.${field}`, rules);
  }
}

/** The group without a name is open to what metrics are of, and to the one kind there to scale. */
function checkReference(
  found: Findings,
  path: string,
  reference: JsonObject | undefined,
  isCoreAllowed: boolean,
): void {
  for (const field of ['kind', 'name']) checkSegment(found, `${path}.${field}`, reference, field);
  const version = stringAt(reference, 'apiVersion');
  const parts = version.split('/');
  const at = `${path}.apiVersion`;
  if (parts.length > 2) {
    found.push(invalidValue(at, version, `unexpected GroupVersion string: ${version}`));
  } else if (!isCoreAllowed && (parts.length < 2 || parts[0] === '')) {
    found.push(invalidValue(at, version, 'apiVersion must specify API group'));
  }
}

function checkSegment(
  found: Findings,
  path: string,
  owner: JsonObject | undefined,
  field: string,
  detail?: string,
): void {
  const value = stringAt(owner, field);
  if (value === '') found.push(required(path, detail));
  else invalidEach(found, path, value, pathSegmentErrors(value));
}

function checkScaling(found: Findings, path: string, rules: JsonObject): void {
  const window = rules['stabilizationWindowSeconds'];
  const at = `${path}.stabilizationWindowSeconds`;
  if (typeof window === 'number' && window < 0) {
    found.push(invalidValue(at, window, 'must be greater than or equal to zero'));
  }
  if (typeof window === 'number' && window > WINDOW_SECONDS_MAX) {
    found.push(invalidValue(at, window, `must be less than or equal to ${WINDOW_SECONDS_MAX}`));
  }
  const selection = rules['selectPolicy'];
  if (typeof selection === 'string' && !SELECTIONS.includes(selection)) {
    found.push(notSupported(`${path}.selectPolicy`, selection, SELECTIONS));
  }
  const policies = listAt(rules, 'policies');
  if (policies.length === 0) {
    found.push(required(`${path}.policies`, 'must specify at least one Policy'));
  }
  eachObject(policies, `${path}.policies`, (policy, item) => {
    const type = stringAt(policy, 'type');
    if (!POLICY_TYPES.includes(type)) {
      found.push(notSupported(`${item}.type`, type, POLICY_TYPES));
    }
    positive(found, `${item}.value`, policy['value'], 'must be greater than zero');
    const period = numberAt(policy, 'periodSeconds');
    positive(found, `${item}.periodSeconds`, period, 'must be greater than zero');
    if (period <= PERIOD_SECONDS_MAX) return;
    const text = `must be less than or equal to ${PERIOD_SECONDS_MAX}`;
    found.push(invalidValue(`${item}.periodSeconds`, period, text));
  });
  nonNegativeAmount(found, `${path}.tolerance`, rules['tolerance']);
}

function checkMetrics(found: Findings, path: string, spec: JsonObject): void {
  const metrics = listAt(spec, 'metrics');
  eachObject(metrics, path, (metric, at) => checkMetric(found, at, metric));
  if (spec['minReplicas'] !== 0) return;
  const isOutside = metrics.some((metric) =>
    ['Object', 'External'].includes(stringAt(metric, 'type')),
  );
  if (isOutside) return;
  const text =
    'must specify at least one Object or External metric to support scaling to zero replicas';
  found.push(forbiddenField(path, text));
}

type SourceCheck = (found: Findings, path: string, source: JsonObject) => void;

/** In upstream's order: only the first that is there is looked into. */
const SOURCES: readonly (readonly [field: string, type: string, check: SourceCheck])[] = [
  ['object', 'Object', checkObjectSource],
  ['external', 'External', checkExternalSource],
  ['pods', 'Pods', checkPodsSource],
  ['resource', 'Resource', checkResourceSource],
  ['containerResource', 'ContainerResource', checkContainerSource],
];

function checkMetric(found: Findings, path: string, metric: JsonObject): void {
  const type = stringAt(metric, 'type');
  if (type === '') found.push(required(`${path}.type`, 'must specify a metric source type'));
  const isKnown = METRIC_TYPES.includes(type);
  const unknown = notSupported(`${path}.type`, type, METRIC_TYPES);
  if (!isKnown) found.push(unknown);
  const present = SOURCES.filter(([field]) => objectAt(metric, field) !== undefined);
  const [first] = present;
  if (first !== undefined) {
    const [field, , check] = first;
    check(found, `${path}.${field}`, objectAt(metric, field) ?? {});
  }
  const wanted = SOURCES.find((source) => source[1] === type)?.[0];
  if (wanted === undefined) found.push(unknown);
  else if (ownMember(metric, wanted) === undefined)
    found.push(required(`${path}.${wanted}`, NO_SOURCE));
  if (present.length === 1) return;
  for (const [field] of present) {
    if (field !== wanted) found.push(forbiddenField(`${path}.${field}`, ONE_SOURCE));
  }
}

function checkIdentifier(found: Findings, path: string, source: JsonObject): void {
  const detail = 'must specify a metric name';
  checkSegment(found, `${path}.metric.name`, objectAt(source, 'metric'), 'name', detail);
}

function checkObjectSource(found: Findings, path: string, source: JsonObject): void {
  checkReference(found, `${path}.describedObject`, objectAt(source, 'describedObject'), true);
  checkIdentifier(found, path, source);
  const target = checkTarget(found, path, source);
  if (target['value'] !== undefined || target['averageValue'] !== undefined) return;
  const text = 'must set either a target value or averageValue';
  found.push(required(`${path}.target.averageValue`, text));
}

function checkExternalSource(found: Findings, path: string, source: JsonObject): void {
  checkIdentifier(found, path, source);
  const target = checkTarget(found, path, source);
  const hasValue = target['value'] !== undefined;
  if (hasValue !== (target['averageValue'] !== undefined)) return;
  if (hasValue) {
    const text = 'may not set both a target value for metric and a per-pod target';
    found.push(forbiddenField(`${path}.target.value`, text));
  } else {
    const text = 'must set either a target value for metric or a per-pod target';
    found.push(required(`${path}.target.averageValue`, text));
  }
}

function checkPodsSource(found: Findings, path: string, source: JsonObject): void {
  checkIdentifier(found, path, source);
  if (checkTarget(found, path, source)['averageValue'] !== undefined) return;
  const text = 'must specify a positive target averageValue';
  found.push(required(`${path}.target.averageValue`, text));
}

function checkResourceSource(found: Findings, path: string, source: JsonObject): void {
  if (stringAt(source, 'name') === '') {
    found.push(required(`${path}.name`, 'must specify a resource name'));
  }
  checkUtilization(found, path, source);
}

function checkContainerSource(found: Findings, path: string, source: JsonObject): void {
  const name = stringAt(source, 'name');
  if (name === '') found.push(required(`${path}.name`, 'must specify a resource name'));
  else checkContainerResource(found, `${path}.name`, name);
  const container = stringAt(source, 'container');
  if (container === '') found.push(required(`${path}.container`, 'must specify a container'));
  else checkDnsLabel(found, `${path}.container`, container);
  checkUtilization(found, path, source);
}

function checkUtilization(found: Findings, path: string, source: JsonObject): void {
  const target = checkTarget(found, path, source);
  const hasUtilization = target['averageUtilization'] !== undefined;
  if (hasUtilization !== (target['averageValue'] !== undefined)) return;
  if (hasUtilization) {
    const text = 'may not set both a target raw value and a target utilization';
    found.push(forbiddenField(`${path}.target.averageValue`, text));
  } else {
    const text = 'must set either a target raw value or a target utilization';
    found.push(required(`${path}.target.averageUtilization`, text));
  }
}

/** Gives the target of a source. */
function checkTarget(found: Findings, owner: string, source: JsonObject): JsonObject {
  const target = objectAt(source, 'target') ?? {};
  const path = `${owner}.target`;
  const type = stringAt(target, 'type');
  if (type === '') found.push(required(`${path}.type`, 'must specify a metric target type'));
  if (!TARGET_TYPES.includes(type)) {
    const text = 'must be either Utilization, Value, or AverageValue';
    found.push(invalidValue(`${path}.type`, type, text));
  }
  for (const field of ['value', 'averageValue']) {
    if (isPositive(target[field])) continue;
    found.push(invalidValue(`${path}.${field}`, target[field], 'must be positive'));
  }
  const utilization = target['averageUtilization'];
  if (typeof utilization === 'number' && utilization < 1) {
    const text = 'must be greater than 0';
    found.push(invalidValue(`${path}.averageUtilization`, utilization, text));
  }
  return target;
}

function isPositive(value: JsonValue | undefined): boolean {
  const amount = typeof value === 'string' ? parseQuantity(value) : undefined;
  return !(amount instanceof Quantity) || amount.sign > 0;
}
