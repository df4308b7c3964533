/** The spec of pods and of the templates that pods are made from. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import { isNumber, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import {
  dnsSubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
  rangeText,
  searchNameErrors,
} from '../../meta/names.ts';
import { checkAffinity, checkLabelKeys } from './validation-affinity.ts';
import {
  checkContainers,
  checkFileVolumes,
  checkInitContainers,
  checkResourceClaims,
  type PodScope,
} from './validation-containers.ts';
import { checkEphemeralContainers } from './validation-ephemeral.ts';
import {
  checkDnsLabel,
  checkLabels,
  checkSelector,
  eachObject,
  invalidEach,
  oneOf,
  oneOfSet,
  positive,
  type Findings,
} from '../field/validation-rules.ts';
import { checkIp } from '../field/validation-addresses.ts';
import { checkAnnotations } from '../field/validation-metadata.ts';
import {
  checkPodAnnotations,
  checkSameProfiles,
  checkTolerationNote,
} from './validation-pod-annotations.ts';
import { checkPodResources, checkPodSums, checkResources } from './validation-resources.ts';
import { checkPodSecurity } from './validation-security.ts';
import {
  checkHostProcesses,
  checkLinux,
  checkUserNamespace,
  checkWindows,
} from './validation-os.ts';
import { checkVolumes } from './pod-volumes.ts';

const INT32_MAX = 2147483647;
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** Tokens are those of an account. */
function checkTokens(found: Findings, path: string, spec: JsonObject): void {
  eachObject(listAt(spec, 'volumes'), `${path}.volumes`, (volume, at) => {
    const sources = listAt(volume, 'projected', 'sources');
    eachObject(sources, `${at}.projected.sources`, (source, item) => {
      if (objectAt(source, 'serviceAccountToken') === undefined) return;
      const text = 'must not be specified when serviceAccountName is not set';
      found.push(forbiddenField(`${item}.serviceAccountToken`, text));
    });
  });
}

/** `isTemplate`: some checks hold only for pods themselves. */
export function checkPodSpec(
  found: Findings,
  path: string,
  spec: JsonObject,
  isTemplate: boolean,
  podName = '',
): void {
  const grace = spec['terminationGracePeriodSeconds'];
  if (grace === undefined) found.push(required(`${path}.terminationGracePeriodSeconds`));
  const place = { podName, isTemplate };
  const volumes = checkVolumes(found, `${path}.volumes`, listAt(spec, 'volumes'), place);
  if (!isTemplate && stringAt(spec, 'serviceAccountName') === '') checkTokens(found, path, spec);
  const claims = listAt(spec, 'resourceClaims').map((claim) => stringAt(claim, 'name'));
  const scope: PodScope = {
    volumes,
    claims: new Set(claims.filter((name) => name !== '')),
    graceSeconds: isNumber(grace) ? Number(grace) : null,
    restartPolicy: stringAt(spec, 'restartPolicy'),
    sharesUsers: spec['hostUsers'] !== false,
  };
  checkClaims(found, `${path}.resourceClaims`, listAt(spec, 'resourceClaims'));
  const containers = listAt(spec, 'containers');
  checkContainers(found, `${path}.containers`, containers, scope);
  const initContainers = listAt(spec, 'initContainers');
  checkInitContainers(found, `${path}.initContainers`, initContainers, containers, scope);
  const ephemeral = listAt(spec, 'ephemeralContainers');
  const others = [...containers, ...initContainers];
  checkEphemeralContainers(found, `${path}.ephemeralContainers`, ephemeral, others, scope);
  checkWholeResources(found, path, spec, scope);
  if (spec['hostNetwork'] === true) checkHostNetwork(found, path, containers, isTemplate);
  const policies = ['Always', 'OnFailure', 'Never'];
  oneOf(found, `${path}.restartPolicy`, spec['restartPolicy'], policies);
  oneOf(found, `${path}.dnsPolicy`, spec['dnsPolicy'], DNS_POLICIES);
  checkLabels(found, `${path}.nodeSelector`, objectAt(spec, 'nodeSelector'));
  checkPodSecurity(found, path, spec);
  checkAffinity(found, `${path}.affinity`, objectAt(spec, 'affinity'));
  checkDnsConfig(found, `${path}.dnsConfig`, spec);
  checkGates(found, path, spec);
  checkSpread(found, `${path}.topologySpreadConstraints`, spec);
  checkHostProcesses(found, path, spec);
  checkUserNamespace(found, path, spec);
  checkHostName(found, path, spec);
  checkSchedulingGroup(found, path, spec);
  checkNames(found, path, spec, ['serviceAccountName', 'nodeName']);
  const deadline = spec['activeDeadlineSeconds'];
  if (isNumber(deadline) && (deadline < 1 || deadline > INT32_MAX)) {
    found.push(invalidValue(`${path}.activeDeadlineSeconds`, deadline, rangeText(1, INT32_MAX)));
  }
  for (const field of ['hostname', 'subdomain']) {
    const name = stringAt(spec, field);
    if (name !== '') checkDnsLabel(found, `${path}.${field}`, name);
  }
  checkTolerations(found, `${path}.tolerations`, listAt(spec, 'tolerations'));
  checkHosts(found, path, spec);
  checkNames(found, path, spec, ['priorityClassName', 'runtimeClassName']);
  const preemption = ['PreemptLowerPriority', 'Never'];
  const policy = spec['preemptionPolicy'];
  if (policy === '') found.push(required(`${path}.preemptionPolicy`));
  else oneOfSet(found, `${path}.preemptionPolicy`, policy, preemption);
  const overhead = objectAt(spec, 'overhead');
  if (overhead !== undefined) checkResources(found, `${path}.overhead`, { limits: overhead });
  checkSystem(found, path, spec);
  checkFileVolumes(found, path, spec);
}

function checkSystem(found: Findings, path: string, spec: JsonObject): void {
  const system = objectAt(spec, 'os');
  if (system === undefined) return;
  const name = stringAt(system, 'name');
  if (name === '') found.push(required(`${path}.os.name`));
  else if (name === 'linux') checkLinux(found, path, spec);
  else if (name === 'windows') checkWindows(found, path, spec);
  else oneOf(found, `${path}.os`, name, ['linux', 'windows']);
}

/** What the pod as a whole may use; Windows cannot say. */
function checkWholeResources(
  found: Findings,
  path: string,
  spec: JsonObject,
  scope: PodScope,
): void {
  const at = `${path}.resources`;
  const resources = objectAt(spec, 'resources');
  if (resources === undefined) return;
  if (stringAt(spec, 'os', 'name') === 'windows') {
    found.push(forbiddenField(at, 'may not be set for a windows pod'));
    return;
  }
  checkPodResources(found, at, resources);
  checkResourceClaims(found, `${at}.claims`, listAt(resources, 'claims'), scope);
  checkPodSums(found, at, spec);
}

function checkNames(
  found: Findings,
  path: string,
  spec: JsonObject,
  fields: readonly string[],
): void {
  for (const field of fields) {
    const name = ownMember(spec, field);
    // an empty class of the runtime is one that is named, an empty priority is none
    if (typeof name !== 'string' || (name === '' && field !== 'runtimeClassName')) continue;
    invalidEach(found, `${path}.${field}`, name, dnsSubdomainErrors(name));
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
  const config = objectAt(spec, 'dnsConfig');
  const servers = listAt(config, 'nameservers');
  if (spec['dnsPolicy'] === 'None' && servers.length === 0) {
    const text = 'when `dnsPolicy` is None';
    if (config === undefined) found.push(required(path, `must provide \`dnsConfig\` ${text}`));
    else {
      const detail = `must provide at least one DNS nameserver ${text}`;
      found.push(required(`${path}.nameservers`, detail));
    }
    return;
  }
  if (servers.length > 3) {
    const text = 'must not have more than 3 nameservers';
    found.push(invalidValue(`${path}.nameservers`, [...servers], text));
  }
  for (const [index, server] of servers.entries()) {
    checkIp(found, `${path}.nameservers[${index}]`, server);
  }
  for (const [index, search] of listAt(config, 'searches').entries()) {
    const name = typeof search === 'string' ? search : '';
    if (name === '.') continue;
    const at = `${path}.searches[${index}]`;
    invalidEach(found, at, name.replace(/\.$/, ''), searchNameErrors(name.replace(/\.$/, '')));
  }
  eachObject(listAt(config, 'options'), `${path}.options`, (option, at) => {
    if (stringAt(option, 'name') === '') found.push(required(at, 'must not be empty'));
  });
}

function checkHosts(found: Findings, path: string, spec: JsonObject): void {
  eachObject(listAt(spec, 'hostAliases'), `${path}.hostAliases`, (alias, at) => {
    checkIp(found, `${at}.ip`, alias['ip']);
    for (const [index, host] of listAt(alias, 'hostnames').entries()) {
      const name = typeof host === 'string' ? host : '';
      invalidEach(found, `${at}.hostnames[${index}]`, name, dnsSubdomainErrors(name));
    }
  });
}

function checkHostName(found: Findings, path: string, spec: JsonObject): void {
  const name = spec['hostnameOverride'];
  if (typeof name !== 'string') return;
  const at = `${path}.hostnameOverride`;
  if (spec['setHostnameAsFQDN'] === true) {
    found.push(forbiddenField(at, 'may not be specified when setHostnameAsFQDN is true'));
  }
  if (spec['hostNetwork'] === true) {
    found.push(forbiddenField(at, 'may not be specified when hostNetwork is true'));
  }
  if (name.length > 64) found.push(tooLong(at, 64));
  invalidEach(found, at, name, dnsSubdomainErrors(name));
}

function checkSchedulingGroup(found: Findings, path: string, spec: JsonObject): void {
  const group = objectAt(spec, 'schedulingGroup');
  if (group === undefined) return;
  const at = `${path}.schedulingGroup.podGroupName`;
  const name = group['podGroupName'];
  if (typeof name === 'string') invalidEach(found, at, name, dnsSubdomainErrors(name));
  else found.push(invalidValue(at, null, 'must specify one of: `podGroupName`'));
}

/** Claims to devices: named, and from one source. */
function checkClaims(found: Findings, path: string, claims: readonly JsonValue[]): void {
  const names = new Set<string>();
  eachObject(claims, path, (claim, at) => {
    const name = stringAt(claim, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    else checkDnsLabel(found, `${at}.name`, name);
    names.add(name);
    const fields = ['resourceClaimName', 'resourceClaimTemplateName'];
    const present = fields.filter((field) => claim[field] !== undefined);
    const value = goForm('core.v1.PodResourceClaim', claim);
    if (present.length === 2) {
      const text =
        'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
      found.push(invalidValue(at, value, text));
    } else if (present.length === 0) {
      const text = 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`';
      found.push(invalidValue(at, value, text));
    }
    for (const field of present) {
      const target = stringAt(claim, field);
      invalidEach(found, `${at}.${field}`, target, dnsSubdomainErrors(target));
    }
  });
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
  const constraints = listAt(spec, 'topologySpreadConstraints');
  eachObject(constraints, path, (constraint, at, index) => {
    positive(found, `${at}.maxSkew`, constraint['maxSkew']);
    const key = stringAt(constraint, 'topologyKey');
    if (key === '') found.push(required(`${at}.topologyKey`, 'can not be empty'));
    const actions = ['DoNotSchedule', 'ScheduleAnyway'];
    const action = constraint['whenUnsatisfiable'];
    if (typeof action !== 'string' || !actions.includes(action)) {
      found.push(notSupported(`${at}.whenUnsatisfiable`, action ?? '', actions));
    }
    // The earlier of two equal ones is blamed.
    const pair = pairOf(constraint);
    if (constraints.slice(index + 1).some((other) => pairOf(other) === pair)) {
      found.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    }
    const minDomains = constraint['minDomains'];
    if (minDomains !== undefined) {
      positive(found, `${at}.minDomains`, minDomains);
      if (action !== 'DoNotSchedule') {
        const text = 'can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ';
        const detail = text + stringAt(constraint, 'whenUnsatisfiable');
        found.push(invalidValue(`${at}.minDomains`, minDomains, detail));
      }
    }
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy']) {
      oneOfSet(found, `${at}.${field}`, constraint[field], ['Honor', 'Ignore']);
    }
    checkLabelKeys(found, at, constraint);
    checkSelector(found, `${at}.labelSelector`, objectAt(constraint, 'labelSelector'));
  });
}

function pairOf(constraint: JsonValue): string {
  return `{${stringAt(constraint, 'topologyKey')}, ${stringAt(constraint, 'whenUnsatisfiable')}}`;
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
    } else {
      const isComparing = operator === 'Lt' || operator === 'Gt';
      // known, and off: upstream names them as supported all the same
      const known = ['Equal', 'Exists', ...(isComparing ? ['Lt', 'Gt'] : [])];
      found.push(notSupported(`${at}.operator`, operator, known));
    }
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
      const error = duplicate(at, goForm('core.v1.Taint', taint));
      const detail = 'taints must be unique by key and effect pair';
      found.push({ ...error, body: `${error.body}: ${detail}` });
    }
    seen.add(pair);
  });
}

/** Annotations of a pod or a template that mean something. */
export function checkNotes(
  found: Findings,
  path: string,
  annotations: JsonObject | undefined,
  spec: JsonObject,
): void {
  checkTolerationNote(found, path, annotations, checkTolerations);
  checkPodAnnotations(found, path, annotations, spec);
}

/** A pod template: its labels and annotations are a pod's, its spec too. */
export function checkPodTemplate(found: Findings, path: string, template: JsonObject): void {
  checkLabels(found, `${path}.labels`, objectAt(template, 'metadata', 'labels'));
  checkAnnotations(found, `${path}.annotations`, objectAt(template, 'metadata', 'annotations'));
  const spec = objectAt(template, 'spec') ?? {};
  const annotations = objectAt(template, 'metadata', 'annotations');
  checkNotes(found, `${path}.annotations`, annotations, spec);
  checkPodSpec(found, `${path}.spec`, spec, true);
  checkSameProfiles(found, `${path}.spec`, annotations, spec);
  if (listAt(template, 'spec', 'ephemeralContainers').length > 0) {
    const text = 'ephemeral containers not allowed in pod template';
    found.push(forbiddenField(`${path}.spec.ephemeralContainers`, text));
  }
}
