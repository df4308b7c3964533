/** What is told to who makes a pod, or a template of pods, that is let through. */
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';
import {
  APPARMOR,
  appArmorOf,
  SECCOMP_CONTAINER,
  SECCOMP_POD,
} from '../validation/pod/validation-pod-annotations.ts';
import { isSame } from '../validation/field/validation-rules.ts';
import {
  fractionWarnings,
  ipWarnings,
  nodeLabelWarning,
  nodeTermWarnings,
} from './field-warnings.ts';
import { overlapWarnings } from './path-overlaps.ts';
import { portWarnings } from './port-warnings.ts';

const SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead';
const ANNOTATIONS: readonly (readonly [string, string])[] = [
  [
    'scheduler.alpha.kubernetes.io/critical-pod',
    'non-functional in v1.16+; use the "priorityClassName" field instead',
  ],
  ['security.alpha.kubernetes.io/sysctls', SYSCTLS],
  ['security.alpha.kubernetes.io/unsafe-sysctls', SYSCTLS],
];
const SECCOMP_TEXT = 'non-functional in v1.27+; use the "seccompProfile" field instead';
const RECENT = 'deprecated in v1.28, non-functional in v1.31+';
const OLDER = 'deprecated in v1.22, non-functional in v1.25+';
/** Volumes that nothing serves any more; upstream's words and order. */
const VOLUMES: readonly (readonly [field: string, text: string, shown?: string])[] = [
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'deprecated in v1.11, and disabled by default in v1.33+'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', OLDER],
  ['storageos', OLDER, 'storageOS'],
  ['quobyte', OLDER],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
];
const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;
const BYTES = ['memory', 'ephemeral-storage'] as const;

/** Each container of a pod with its path below `path`, as upstream visits them. */
function* eachContainer(path: string, spec: JsonObject): Iterable<readonly [JsonValue, string]> {
  for (const field of CONTAINERS) {
    for (const [index, container] of listAt(spec, field).entries()) {
      yield [container, `${path}.${field}[${index}]`];
    }
  }
}

/** Of a pod (`path` is '') or of a template at `path`. */
export function* podWarnings(path: string, pod: JsonObject | undefined): Iterable<string> {
  const spec = objectAt(pod, 'spec');
  if (spec === undefined) return;
  const prefix = path === '' ? '' : `${path}.`;
  const at = `${prefix}spec`;
  const annotations = objectAt(pod, 'metadata', 'annotations') ?? {};
  const note = `${prefix}metadata.annotations`;
  yield* placementWarnings(at, spec);
  for (const [key, text] of ANNOTATIONS) {
    if (Object.hasOwn(annotations, key)) yield `${note}[${key}]: ${text}`;
  }
  yield* volumeWarnings(at, spec);
  yield* nameWarnings(at, spec);
  const overhead = objectAt(spec, 'overhead');
  for (const name of BYTES) yield* fractionWarnings(`${at}.overhead[${name}]`, overhead?.[name]);
  if (Object.hasOwn(annotations, SECCOMP_POD)) {
    if (objectAt(spec, 'securityContext', 'seccompProfile') === undefined) {
      yield `${note}[${SECCOMP_POD}]: ${SECCOMP_TEXT}`;
    }
  }
  for (const [container, where] of eachContainer(at, spec)) {
    yield* profileWarnings(note, annotations, container, path === '' ? undefined : spec);
    for (const field of ['limits', 'requests']) {
      // upstream goes by resource first, and by field within it
      yield* fractionWarnings(
        `${where}.resources.${field}[memory]`,
        objectAt(container, 'resources', field)?.['memory'],
      );
    }
    for (const field of ['limits', 'requests']) {
      yield* fractionWarnings(
        `${where}.resources.${field}[ephemeral-storage]`,
        objectAt(container, 'resources', field)?.['ephemeral-storage'],
      );
    }
    yield* variableWarnings(where, listAt(container, 'env'));
  }
  yield* portWarnings(Array.from(eachContainer(at, spec)));
  if (numberAt(spec, 'terminationGracePeriodSeconds') < 0) {
    const text = 'must be >= 0; negative values are invalid and will be treated as 1';
    yield `${at}.terminationGracePeriodSeconds: ${text}`;
  }
  yield* affinityWarnings(at, spec);
  for (const [index, server] of listAt(spec, 'dnsConfig', 'nameservers').entries()) {
    yield* ipWarnings(`${at}.dnsConfig.nameservers[${index}]`, server);
  }
  for (const [index, alias] of listAt(spec, 'hostAliases').entries()) {
    yield* ipWarnings(`${at}.hostAliases[${index}].ip`, stringAt(alias, 'ip'));
  }
}

function* placementWarnings(at: string, spec: JsonObject): Iterable<string> {
  for (const key of Object.keys(objectAt(spec, 'nodeSelector') ?? {})) {
    const text = nodeLabelWarning(key);
    if (text !== undefined) yield `${at}.nodeSelector[${key}]: ${text}`;
  }
  const path = `${at}.affinity.nodeAffinity`;
  const affinity = objectAt(spec, 'affinity', 'nodeAffinity');
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  for (const [index, term] of listAt(affinity, required, 'nodeSelectorTerms').entries()) {
    yield* nodeTermWarnings(`${path}.${required}.nodeSelectorTerms[${index}]`, term, false);
  }
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  for (const [index, term] of listAt(affinity, preferred).entries()) {
    const where = `${path}.${preferred}[${index}].preference`;
    yield* nodeTermWarnings(where, objectAt(term, 'preference'), true);
  }
  for (const [index, spread] of listAt(spec, 'topologySpreadConstraints').entries()) {
    const where = `${at}.topologySpreadConstraints[${index}]`;
    const key = stringAt(spread, 'topologyKey');
    const text = nodeLabelWarning(key);
    if (text !== undefined) yield `${where}.topologyKey: ${key} is ${text}`;
    if (objectAt(spread, 'labelSelector') === undefined) yield noSelector(where);
  }
}

function noSelector(path: string): string {
  return `${path}.labelSelector: a null labelSelector results in matching no pod`;
}

function* affinityWarnings(at: string, spec: JsonObject): Iterable<string> {
  for (const kind of ['podAffinity', 'podAntiAffinity']) {
    const path = `${at}.affinity.${kind}`;
    const affinity = objectAt(spec, 'affinity', kind);
    const required = 'requiredDuringSchedulingIgnoredDuringExecution';
    for (const [index, term] of listAt(affinity, required).entries()) {
      if (objectAt(term, 'labelSelector') === undefined) {
        yield noSelector(`${path}.${required}[${index}]`);
      }
    }
    const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
    for (const [index, term] of listAt(affinity, preferred).entries()) {
      if (objectAt(term, 'podAffinityTerm', 'labelSelector') === undefined) {
        yield noSelector(`${path}.${preferred}[${index}].podAffinityTerm`);
      }
    }
  }
}

function* volumeWarnings(at: string, spec: JsonObject): Iterable<string> {
  const volumes = listAt(spec, 'volumes');
  for (const [index, volume] of volumes.entries()) {
    const path = `${at}.volumes[${index}]`;
    for (const [field, text, shown] of VOLUMES) {
      if (objectAt(volume, field) !== undefined) yield `${path}.${shown ?? field}: ${text}`;
    }
    const claim = objectAt(volume, 'ephemeral', 'volumeClaimTemplate', 'spec');
    yield* claimSpecWarnings(`${path}.ephemeral.volumeClaimTemplate.spec`, claim);
    for (const field of ['cephfs', 'rbd']) {
      if (objectAt(volume, field) !== undefined) yield `${path}.${field}: ${RECENT}`;
    }
  }
  yield* overlapWarnings(volumes);
}

/** Of the specification of a claim at `path`. */
export function* claimSpecWarnings(path: string, spec: JsonObject | undefined): Iterable<string> {
  for (const field of ['requests', 'limits']) {
    const amount = objectAt(spec, 'resources', field)?.['storage'];
    yield* fractionWarnings(`${path}.resources.${field}[storage]`, amount);
  }
}

function* nameWarnings(at: string, spec: JsonObject): Iterable<string> {
  const addresses = new Set<string>();
  for (const [index, alias] of listAt(spec, 'hostAliases').entries()) {
    const ip = stringAt(alias, 'ip');
    if (addresses.has(ip)) yield `${at}.hostAliases[${index}].ip: duplicate ip ${quoted(ip)}`;
    addresses.add(ip);
  }
  const secrets = listAt(spec, 'imagePullSecrets').map((secret) => stringAt(secret, 'name'));
  for (const [index, name] of secrets.entries()) {
    if (secrets.indexOf(name) === index) continue;
    yield `${at}.imagePullSecrets[${index}].name: duplicate name ${quoted(name)}`;
  }
  for (const [index, name] of secrets.entries()) {
    if (name === '') yield `${at}.imagePullSecrets[${index}].name: invalid empty name ""`;
  }
}

/** Profiles by annotation, where no field says the same; AppArmor's only in templates. */
function* profileWarnings(
  path: string,
  annotations: JsonObject,
  container: JsonValue,
  template: JsonObject | undefined,
): Iterable<string> {
  const context = objectAt(container, 'securityContext');
  const name = stringAt(container, 'name');
  const seccomp = `${SECCOMP_CONTAINER}${name}`;
  if (Object.hasOwn(annotations, seccomp) && context?.['seccompProfile'] === undefined) {
    yield `${path}[${seccomp}]: ${SECCOMP_TEXT}`;
  }
  const key = `${APPARMOR}${name}`;
  if (template === undefined || !Object.hasOwn(annotations, key)) return;
  if (context?.['appArmorProfile'] !== undefined) return;
  const profile = objectAt(template, 'securityContext', 'appArmorProfile');
  const told = appArmorOf(stringAt(annotations, key));
  if (profile !== undefined && told !== undefined && isSame(profile, told)) return;
  yield `${path}[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`;
}

/** Variables of one name, unless the later one builds on the earlier. */
function* variableWarnings(path: string, variables: readonly JsonValue[]): Iterable<string> {
  const names = new Set<string>();
  for (const [index, variable] of variables.entries()) {
    const name = stringAt(variable, 'name');
    if (!names.has(name)) {
      names.add(name);
      continue;
    }
    const value = stringAt(variable, 'value');
    const reference = `$(${name})`;
    const builds = value !== reference && value.includes(reference);
    if (builds && objectAt(variable, 'valueFrom') === undefined) continue;
    const text = `hides previous definition of ${quoted(name)}`;
    yield `${path}.env[${index}]: ${text}, which may be dropped when using apply`;
  }
}
