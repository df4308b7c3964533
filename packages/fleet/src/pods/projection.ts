/**
 * From a pod to the CapacityRequest that stands for it as long as it lives: the rule. A request
 * asks for what the pod needs of a machine, whether or not the pod is placed already.
 */
import { isObject } from '@megaplane/machinery/json-value';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseQuantity } from '@megaplane/machinery/quantity';
import { byUtf8 } from '../contract/text-order.ts';
import { API_VERSION, OWNER_LABEL } from '../contract/api.ts';
import { podResources } from './pod-resources.ts';

export const INTERRUPTION_ANNOTATION = 'bigfleet.lucy.sh/interruption-penalty';
export const RECLAMATION_ANNOTATION = 'bigfleet.lucy.sh/reclamation-penalty';
const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';

/** Penalties of pods that say nothing themselves, as quantities, by the name of their class. */
export type ClassPenalties = ReadonlyMap<string, ClassPenalty>;
export interface ClassPenalty {
  readonly interruptionPenalty?: string;
  readonly reclamationPenalty?: string;
}

/** A pod in this phase runs no more, and needs nothing. */
export function isTerminal(phase: string): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** The request to be created for `pod`, without a status; undefined if there must be none. */
export function projectPod(pod: JsonObject, classes: ClassPenalties): JsonObject | undefined {
  if (isTerminal(stringAt(pod, 'status', 'phase'))) return undefined;
  const name = stringAt(pod, 'metadata', 'name');
  const uid = stringAt(pod, 'metadata', 'uid');
  return {
    apiVersion: API_VERSION,
    kind: 'CapacityRequest',
    metadata: {
      generateName: `cr-pod-${name}-`,
      namespace: stringAt(pod, 'metadata', 'namespace'),
      labels: { [OWNER_LABEL]: uid },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }],
    },
    spec: projectSpec(pod, classes),
  };
}

/** The spec of that request. */
export function projectSpec(pod: JsonObject, classes: ClassPenalties): JsonObject {
  const spec: JsonObject = { priority: numberAt(pod, 'spec', 'priority') };
  const requirements = requirementsOf(pod);
  if (requirements.length > 0) spec['requirements'] = requirements;
  spec['resources'] = Object.fromEntries(
    [...podResources(pod)].map(([name, quantity]) => [name, quantity.toString()]),
  );
  const penalties = classes.get(stringAt(pod, 'spec', 'priorityClassName'));
  const interruption =
    annotated(pod, INTERRUPTION_ANNOTATION) ?? quantityText(penalties?.interruptionPenalty);
  if (interruption !== undefined) spec['interruptionPenalty'] = interruption;
  const reclamation =
    annotated(pod, RECLAMATION_ANNOTATION) ?? quantityText(penalties?.reclamationPenalty);
  if (reclamation !== undefined) spec['reclamationPenalty'] = reclamation;
  const spread = spreadOf(pod);
  if (spread.length > 0) spec['topologySpread'] = spread;
  const coLocation = coLocationOf(pod);
  if (coLocation !== undefined) spec['coLocation'] = coLocation;
  return spec;
}

/**
 * The first term of the required node affinity in its order, then the node selector by key. A pod
 * that has neither may run on any machine, and machines are what has an instance type.
 */
function requirementsOf(pod: JsonObject): JsonObject[] {
  const required = objectAt(
    pod,
    ...['spec', 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution'],
  );
  const selector = objectAt(pod, 'spec', 'nodeSelector') ?? {};
  const keys = Object.keys(selector).sort(byUtf8);
  if (required === undefined && keys.length === 0) {
    return [{ key: INSTANCE_TYPE, operator: 'Exists' }];
  }
  const requirements: JsonObject[] = [];
  const [term] = listAt(required, 'nodeSelectorTerms');
  for (const expression of listAt(term, 'matchExpressions')) {
    const values = listAt(expression, 'values');
    const requirement: JsonObject = {
      key: stringAt(expression, 'key'),
      operator: stringAt(expression, 'operator'),
    };
    if (values.length > 0) requirement['values'] = [...values];
    requirements.push(requirement);
  }
  for (const key of keys) {
    requirements.push({ key, operator: 'In', values: [stringAt(selector, key)] });
  }
  return requirements;
}

/** Constraints that may be broken are left out: they buy no machine. */
function spreadOf(pod: JsonObject): JsonObject[] {
  const spread: JsonObject[] = [];
  for (const constraint of listAt(pod, 'spec', 'topologySpreadConstraints')) {
    const whenUnsatisfiable = stringAt(constraint, 'whenUnsatisfiable');
    if (whenUnsatisfiable !== 'DoNotSchedule') continue;
    const topologyKey = stringAt(constraint, 'topologyKey');
    spread.push({ topologyKey, maxSkew: numberAt(constraint, 'maxSkew'), whenUnsatisfiable });
  }
  return spread;
}

/** The first required term of pod affinity; namespaces and such have no words on a request. */
function coLocationOf(pod: JsonObject): JsonObject | undefined {
  const [term] = listAt(
    pod,
    ...['spec', 'affinity', 'podAffinity', 'requiredDuringSchedulingIgnoredDuringExecution'],
  );
  if (!isObject(term)) return undefined;
  const coLocation: JsonObject = { topologyKey: stringAt(term, 'topologyKey') };
  const labelSelector = objectAt(term, 'labelSelector');
  if (labelSelector !== undefined) coLocation['labelSelector'] = labelSelector;
  return coLocation;
}

function annotated(pod: JsonObject, annotation: string): string | undefined {
  return quantityText(valueAt(pod, 'metadata', 'annotations', annotation));
}

/** A quantity as the API server would store it; undefined for what is none. */
function quantityText(value: JsonValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const quantity = parseQuantity(value);
  return typeof quantity === 'string' ? undefined : quantity.toString();
}
