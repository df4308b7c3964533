/** What the server writes into the specification of a new pod. */

import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { equals } from '@megaplane/machinery/json';
import { APPARMOR, appArmorOf } from '@megaplane/machinery/validation-pod-annotations';

const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/**
 * Terms with `matchLabelKeys` and `mismatchLabelKeys` say by which of the pod's own labels others
 * are selected: whoever places pods reads selectors alone, so the values are written into them
 * (KEP-3633, KEP-3243). A term without a selector matches nothing, and stays.
 */
export function fillLabelKeys(pod: JsonObject): void {
  const spec = objectAt(pod, 'spec');
  const labels = objectAt(pod, 'metadata', 'labels');
  if (spec === undefined || labels === undefined) return;
  for (const kind of ['podAffinity', 'podAntiAffinity']) {
    const affinity = objectAt(spec, 'affinity', kind);
    if (affinity === undefined) continue;
    for (const term of listAt(affinity, REQUIRED)) fillTerm(term, labels);
    for (const weighted of listAt(affinity, PREFERRED)) {
      fillTerm(objectAt(weighted, 'podAffinityTerm'), labels);
    }
  }
  for (const constraint of listAt(spec, 'topologySpreadConstraints')) fillTerm(constraint, labels);
}

function fillTerm(term: JsonValue | undefined, labels: JsonObject): void {
  const selector = objectAt(term, 'labelSelector');
  if (!isObject(term) || selector === undefined) return;
  const added = [
    ...expressionsOf(listAt(term, 'matchLabelKeys'), 'In', labels),
    ...expressionsOf(listAt(term, 'mismatchLabelKeys'), 'NotIn', labels),
  ];
  if (added.length === 0) return;
  const matchExpressions = [...listAt(selector, 'matchExpressions'), ...added];
  term['labelSelector'] = { ...selector, matchExpressions };
}

function expressionsOf(
  keys: readonly JsonValue[],
  operator: string,
  labels: JsonObject,
): JsonObject[] {
  return keys.flatMap((key) => {
    const value = typeof key === 'string' && Object.hasOwn(labels, key) ? labels[key] : undefined;
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}

/**
 * Profiles of AppArmor that only annotations name are written into the fields (KEP-24); where one
 * names nothing, or adds something, the client is told that annotations are on their way out.
 */
export function fillAppArmor(pod: JsonObject, warn: (text: string) => void): void {
  const annotations = objectAt(pod, 'metadata', 'annotations');
  const spec = objectAt(pod, 'spec');
  if (annotations === undefined || stringAt(spec, 'os', 'name') === 'windows') return;
  const shared = objectAt(spec, 'securityContext', 'appArmorProfile');
  for (const container of CONTAINERS.flatMap((field) => [...listAt(spec, field)])) {
    const key = `${APPARMOR}${stringAt(container, 'name')}`;
    const context = objectAt(container, 'securityContext');
    const isTold = Object.hasOwn(annotations, key);
    if (!isTold || !isObject(container) || context?.['appArmorProfile'] !== undefined) continue;
    const profile = appArmorOf(stringAt(annotations, key));
    if (profile !== undefined) {
      if (shared !== undefined && equals(profile, shared)) continue;
      container['securityContext'] = { ...context, appArmorProfile: profile };
    }
    const text = 'deprecated since v1.30; use the "appArmorProfile" field instead';
    warn(`metadata.annotations[${key}]: ${text}`);
  }
}
