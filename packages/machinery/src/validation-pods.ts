/** The spec of pods and of the templates that pods are made from. */

import { duplicate, forbiddenField, invalidValue, required } from './fielderrors.ts';
import { listAt, objectAt, stringAt } from './json.ts';
import type { JsonObject, JsonValue } from './json-value.ts';
import { dnsSubdomainErrors, labelValueErrors, qualifiedNameErrors, rangeText } from './names.ts';
import { checkAffinity } from './validation-affinity.ts';
import {
  checkContainers,
  checkInitContainers,
  checkResources,
  type PodScope,
} from './validation-containers.ts';
import {
  checkDnsLabel,
  checkLabels,
  checkSelector,
  eachObject,
  invalidEach,
  oneOf,
  positive,
  type Findings,
} from './validation-rules.ts';
import { checkIdentity, checkVolumes } from './validation-volumes.ts';

const INT32_MAX = 2147483647;
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** `isTemplate`: some checks hold only for pods themselves. */
export function checkPodSpec(
  found: Findings,
  path: string,
  spec: JsonObject,
  isTemplate: boolean,
): void {
  if (spec['terminationGracePeriodSeconds'] === undefined) {
    found.push(required(`${path}.terminationGracePeriodSeconds`));
  }
  const volumes = checkVolumes(found, `${path}.volumes`, listAt(spec, 'volumes'));
  const scope: PodScope = { volumes };
  const containers = listAt(spec, 'containers');
  checkContainers(found, `${path}.containers`, containers, scope);
  const initContainers = listAt(spec, 'initContainers');
  checkInitContainers(found, `${path}.initContainers`, initContainers, containers, scope);
  checkResources(found, `${path}.resources`, objectAt(spec, 'resources'));
  if (spec['hostNetwork'] === true) checkHostNetwork(found, path, containers, isTemplate);
  const policies = ['Always', 'OnFailure', 'Never'];
  oneOf(found, `${path}.restartPolicy`, spec['restartPolicy'], policies);
  oneOf(found, `${path}.dnsPolicy`, spec['dnsPolicy'], DNS_POLICIES);
  checkLabels(found, `${path}.nodeSelector`, objectAt(spec, 'nodeSelector'));
  checkIdentity(found, `${path}.securityContext`, objectAt(spec, 'securityContext'));
  checkAffinity(found, `${path}.affinity`, objectAt(spec, 'affinity'));
  checkDnsConfig(found, `${path}.dnsConfig`, spec);
  checkGates(found, path, spec);
  checkSpread(found, `${path}.topologySpreadConstraints`, spec);
  checkNames(found, path, spec);
  const deadline = spec['activeDeadlineSeconds'];
  if (typeof deadline === 'number' && (deadline < 1 || deadline > INT32_MAX)) {
    found.push(invalidValue(`${path}.activeDeadlineSeconds`, deadline, rangeText(1, INT32_MAX)));
  }
  checkTolerations(found, `${path}.tolerations`, listAt(spec, 'tolerations'));
  const preemption = ['PreemptLowerPriority', 'Never'];
  oneOf(found, `${path}.preemptionPolicy`, spec['preemptionPolicy'], preemption, true);
  oneOf(found, `${path}.os.name`, objectAt(spec, 'os')?.['name'], ['linux', 'windows'], true);
}

function checkNames(found: Findings, path: string, spec: JsonObject): void {
  for (const field of ['serviceAccountName', 'nodeName']) {
    const name = stringAt(spec, field);
    if (name !== '') invalidEach(found, `${path}.${field}`, name, dnsSubdomainErrors(name));
  }
  for (const field of ['hostname', 'subdomain']) {
    const name = stringAt(spec, field);
    if (name !== '') checkDnsLabel(found, `${path}.${field}`, name);
  }
  for (const field of ['priorityClassName', 'runtimeClassName']) {
    const name = stringAt(spec, field);
    if (name !== '') invalidEach(found, `${path}.${field}`, name, dnsSubdomainErrors(name));
  }
}

function checkHostNetwork(
  found: Findings,
  path: string,
  containers: readonly JsonValue[],
  isTemplate: boolean,
): void {
  eachObject(containers, `${path}.containers`, (container, at) => {
    eachObject(listAt(container, 'ports'), `${at}.ports`, (port, portPath) => {
      const hostPort = port['hostPort'] ?? 0;
      if ((isTemplate && hostPort === 0) || hostPort === port['containerPort']) return;
      const text = 'must match `containerPort` when `hostNetwork` is true';
      found.push(invalidValue(`${portPath}.hostPort`, hostPort, text));
    });
  });
}

function checkDnsConfig(found: Findings, path: string, spec: JsonObject): void {
  if (spec['dnsPolicy'] !== 'None') return;
  const config = objectAt(spec, 'dnsConfig');
  const text = 'when `dnsPolicy` is None';
  if (config === undefined) found.push(required(path, `must provide \`dnsConfig\` ${text}`));
  else if (listAt(config, 'nameservers').length === 0) {
    const detail = `must provide at least one DNS nameserver ${text}`;
    found.push(required(`${path}.nameservers`, detail));
  }
}

function checkGates(found: Findings, path: string, spec: JsonObject): void {
  const gates = new Set<string>();
  eachObject(listAt(spec, 'schedulingGates'), `${path}.schedulingGates`, (gate, at) => {
    const name = stringAt(gate, 'name');
    invalidEach(found, at, name, qualifiedNameErrors(name));
    if (gates.has(name)) found.push(duplicate(at, name));
    gates.add(name);
  });
  eachObject(listAt(spec, 'readinessGates'), `${path}.readinessGates`, (gate, at) => {
    const type = stringAt(gate, 'conditionType');
    invalidEach(found, `${at}.conditionType`, type, qualifiedNameErrors(type));
  });
}

function checkSpread(found: Findings, path: string, spec: JsonObject): void {
  const seen = new Set<string>();
  eachObject(listAt(spec, 'topologySpreadConstraints'), path, (constraint, at) => {
    positive(found, `${at}.maxSkew`, constraint['maxSkew']);
    const key = stringAt(constraint, 'topologyKey');
    if (key === '') found.push(required(`${at}.topologyKey`, 'can not be empty'));
    else invalidEach(found, `${at}.topologyKey`, key, qualifiedNameErrors(key));
    const actions = ['DoNotSchedule', 'ScheduleAnyway'];
    const action = constraint['whenUnsatisfiable'];
    oneOf(found, `${at}.whenUnsatisfiable`, action ?? '', actions);
    const pair = `{${key}, ${stringAt(constraint, 'whenUnsatisfiable')}}`;
    if (seen.has(pair)) {
      found.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    }
    seen.add(pair);
    const minDomains = constraint['minDomains'];
    if (minDomains !== undefined) {
      positive(found, `${at}.minDomains`, minDomains);
      if (action !== 'DoNotSchedule') {
        const text = 'can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ';
        const detail = text + stringAt(constraint, 'whenUnsatisfiable');
        found.push(invalidValue(`${at}.minDomains`, minDomains, detail));
      }
    }
    checkSelector(found, `${at}.labelSelector`, objectAt(constraint, 'labelSelector'));
  });
}

export function checkTolerations(
  found: Findings,
  path: string,
  tolerations: readonly JsonValue[],
): void {
  eachObject(tolerations, path, (toleration, at) => {
    const key = stringAt(toleration, 'key');
    const operator = stringAt(toleration, 'operator');
    const value = stringAt(toleration, 'value');
    const effect = stringAt(toleration, 'effect');
    if (key !== '') invalidEach(found, `${at}.key`, key, qualifiedNameErrors(key));
    if (key === '' && operator !== 'Exists') {
      const text =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      found.push(invalidValue(`${at}.operator`, operator, text));
    }
    if (toleration['tolerationSeconds'] !== undefined && effect !== 'NoExecute') {
      const text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      found.push(invalidValue(`${at}.effect`, effect, text));
    }
    if (operator === 'Exists') {
      const text = "value must be empty when `operator` is 'Exists'";
      if (value !== '') found.push(invalidValue(`${at}.operator`, value, text));
    } else if (operator === '' || operator === 'Equal') {
      const texts = labelValueErrors(value);
      if (texts.length > 0) found.push(invalidValue(`${at}.operator`, value, texts.join(';')));
    } else oneOf(found, `${at}.operator`, operator, ['Equal', 'Exists']);
    oneOf(found, `${at}.effect`, effect, TAINT_EFFECTS, true);
  });
}

/** Taints of nodes: unique by key and effect. */
export function checkTaints(found: Findings, path: string, taints: readonly JsonValue[]): void {
  const seen = new Set<string>();
  eachObject(taints, path, (taint, at) => {
    const key = stringAt(taint, 'key');
    invalidEach(found, `${at}.key`, key, qualifiedNameErrors(key));
    const value = stringAt(taint, 'value');
    const texts = labelValueErrors(value);
    if (texts.length > 0) found.push(invalidValue(`${at}.value`, value, texts.join(';')));
    oneOf(found, `${at}.effect`, taint['effect'], TAINT_EFFECTS);
    const pair = `${stringAt(taint, 'effect')}\n${key}`;
    if (seen.has(pair)) {
      const error = duplicate(at, taint);
      const detail = 'taints must be unique by key and effect pair';
      found.push({ ...error, body: `${error.body}: ${detail}` });
    }
    seen.add(pair);
  });
}

/** A pod template: its labels and annotations are a pod's, its spec too. */
export function checkPodTemplate(found: Findings, path: string, template: JsonObject): void {
  checkLabels(found, `${path}.labels`, objectAt(template, 'metadata', 'labels'));
  checkPodSpec(found, `${path}.spec`, objectAt(template, 'spec') ?? {}, true);
  if (listAt(template, 'spec', 'ephemeralContainers').length > 0) {
    const text = 'ephemeral containers not allowed in pod template';
    found.push(forbiddenField(`${path}.spec.ephemeralContainers`, text));
  }
}
