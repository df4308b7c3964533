/**
 * What annotations of pods say in place of fields: profiles of AppArmor and seccomp, the mark of a
 * mirror pod, tolerations, the cost of a deletion.
 */

import { ownMember } from '@megaplane/base/members';
import { forbiddenField, invalidValue } from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import { parseJson } from '../../json/json-text.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { syntaxError } from '../../json/json-syntax.ts';
import { quoted } from '../../json/quoting.ts';
import { checkDescendingPath } from '../field/validation-paths.ts';
import type { Findings } from '../field/validation-rules.ts';
import { checkAppArmor } from './validation-security.ts';

export const MIRROR = 'kubernetes.io/config.mirror';
export const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';
export const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
export const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
const LOCALHOST = 'localhost/';
const RUNTIME = 'runtime/default';
const DOCKER = 'docker/default';
const UNCONFINED = 'unconfined';
const INT32_MAX = 2147483647;
/** Upstream's: a minus may lead any digits, else only a lone zero may begin the number. */
const COST = /^(-\d+|0|[1-9]\d*)$/;
const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

export type CheckTolerations = (
  found: Findings,
  path: string,
  tolerations: readonly JsonValue[],
) => void;

/** Annotations of a pod or of a template, at `path`. */
export function checkPodAnnotations(
  found: Findings,
  path: string,
  annotations: JsonObject | undefined,
  spec: JsonObject,
): void {
  if (annotations === undefined) return;
  if (Object.hasOwn(annotations, MIRROR) && stringAt(spec, 'nodeName') === '') {
    const text = 'must set spec.nodeName if mirror pod annotation is set';
    found.push(invalidValue(`${path}[${MIRROR}]`, stringAt(annotations, MIRROR), text));
  }
  const cost = annotations[DELETION_COST];
  if (typeof cost === 'string' && !isCost(cost)) {
    found.push(invalidValue(`${path}[${DELETION_COST}]`, cost, 'must be a 32bit integer'));
  }
  for (const key of Object.keys(annotations).sort()) {
    const profile = stringAt(annotations, key);
    // upstream's path names the key as if it were a field
    if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER)) {
      checkSeccomp(found, `${path}.${key}`, profile);
    }
    if (!key.startsWith(APPARMOR)) continue;
    const name = key.slice(APPARMOR.length);
    const isThere = CONTAINERS.some((field) =>
      listAt(spec, field).some((container) => stringAt(container, 'name') === name),
    );
    if (!isThere) found.push(invalidValue(`${path}[${key}]`, name, 'container not found'));
    const isKnown = profile === '' || profile === RUNTIME || profile === UNCONFINED;
    if (isKnown || profile.startsWith(LOCALHOST)) continue;
    const text = `invalid AppArmor profile name: ${quoted(profile)}`;
    found.push(invalidValue(`${path}[${key}]`, profile, text));
  }
}

function isCost(text: string): boolean {
  const value = Number(text);
  return COST.test(text) && value <= INT32_MAX && value >= -INT32_MAX - 1;
}

function checkSeccomp(found: Findings, path: string, profile: string): void {
  if (profile === RUNTIME || profile === DOCKER || profile === UNCONFINED) return;
  if (profile.startsWith(LOCALHOST)) {
    checkDescendingPath(found, path, profile.slice(LOCALHOST.length));
  } else found.push(invalidValue(path, profile, 'must be a valid seccomp profile'));
}

const TOLERATIONS = 'scheduler.alpha.kubernetes.io/tolerations';

/** Tolerations by annotation count for nobody any more, and are checked still. */
export function checkTolerationNote(
  found: Findings,
  path: string,
  annotations: JsonObject | undefined,
  check: CheckTolerations,
): void {
  const text = stringAt(annotations, TOLERATIONS);
  if (text === '') return;
  const failure = syntaxError(text);
  if (failure !== '') {
    found.push(invalidValue(path, TOLERATIONS, failure));
    return;
  }
  const value = parseJson(text);
  const fault = unmarshalFault(value);
  if (fault !== '') found.push(invalidValue(path, TOLERATIONS, fault));
  else if (Array.isArray(value)) check(found, `${path}.${TOLERATIONS}`, value);
}

/** The names of Go's fields, which JSON may write in any case. */
const TOLERATION = ['Key', 'Operator', 'Value', 'Effect', 'TolerationSeconds'] as const;

/** What Go's decoder says of tolerations of another type than they have; '' where it is content. */
function unmarshalFault(value: JsonValue): string {
  const told = (found: JsonValue, into: string): string =>
    `json: cannot unmarshal ${goKind(found)} into Go ${into}`;
  if (value === null) return '';
  if (!Array.isArray(value)) return told(value, 'value of type []core.Toleration');
  for (const item of value) {
    if (item === null) continue;
    if (!isObject(item)) return told(item, 'value of type core.Toleration');
    for (const [name, found] of Object.entries(item)) {
      const field = TOLERATION.find((one) => one.toLowerCase() === name.toLowerCase());
      const type = field === 'TolerationSeconds' ? 'number' : 'string';
      if (field === undefined || found === undefined || found === null) continue;
      if (typeof found === type) continue;
      const shown = field === 'TolerationSeconds' ? 'int64' : TOLERATION_TYPES[field];
      return told(found, `struct field Toleration.${field} of type ${shown}`);
    }
  }
  return '';
}

const TOLERATION_TYPES = {
  ...{ Key: 'string', Value: 'string' },
  ...{ Operator: 'core.TolerationOperator', Effect: 'core.TaintEffect' },
} as const;

function goKind(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** What marks a mirror, and what confines a container, stays as it was. */
export function changePodAnnotations(
  found: Findings,
  next: JsonObject,
  previous: JsonObject,
): void {
  const path = 'metadata.annotations';
  const after = objectAt(next, 'metadata', 'annotations') ?? {};
  const before = objectAt(previous, 'metadata', 'annotations') ?? {};
  for (const key of Object.keys({ ...before, ...after })) {
    const what = key === MIRROR ? 'mirror pod annotation' : 'AppArmor annotations';
    if (key !== MIRROR && !key.startsWith(APPARMOR)) continue;
    if (!Object.hasOwn(before, key)) {
      found.push(forbiddenField(`${path}[${key}]`, `may not add ${what}`));
    } else if (before[key] !== ownMember(after, key)) {
      found.push(forbiddenField(`${path}[${key}]`, `may not remove or update ${what}`));
    }
  }
}

/** A pod's annotations and fields, of a spec at `path`, name the same profiles. */
export function checkSameProfiles(
  found: Findings,
  path: string,
  annotations: JsonObject | undefined,
  spec: JsonObject,
): void {
  if (annotations === undefined) return;
  const context = objectAt(spec, 'securityContext');
  const seccomp = objectAt(context, 'seccompProfile');
  const at = `${path}.securityContext`;
  sameProfile(found, `${at}.seccompProfile`, annotations[SECCOMP_POD], seccomp, 'seccomp');
  for (const field of CONTAINERS) {
    for (const [index, container] of listAt(spec, field).entries()) {
      const key = `${SECCOMP_CONTAINER}${stringAt(container, 'name')}`;
      const own = objectAt(container, 'securityContext', 'seccompProfile');
      const where = `${path}.${field}[${index}].securityContext.seccompProfile`;
      sameProfile(found, where, ownMember(annotations, key), own, 'seccomp');
    }
  }
  if (stringAt(spec, 'os', 'name') === 'windows') return;
  const shared = objectAt(context, 'appArmorProfile');
  for (const field of CONTAINERS) {
    for (const [index, container] of listAt(spec, field).entries()) {
      const key = `${APPARMOR}${stringAt(container, 'name')}`;
      const own = objectAt(container, 'securityContext', 'appArmorProfile') ?? shared;
      const where = `${path}.${field}[${index}].securityContext.appArmorProfile`;
      sameProfile(found, where, ownMember(annotations, key), own, 'apparmor');
    }
  }
}

function sameProfile(
  found: Findings,
  path: string,
  told: JsonValue | undefined,
  profile: JsonObject | undefined,
  what: 'seccomp' | 'apparmor',
): void {
  if (typeof told !== 'string' || profile === undefined) return;
  const names: Readonly<Record<string, readonly string[]>> = {
    Unconfined: [UNCONFINED],
    RuntimeDefault: what === 'seccomp' ? [RUNTIME, DOCKER] : [RUNTIME],
  };
  const type = stringAt(profile, 'type');
  if (type === 'Localhost' && told.startsWith(LOCALHOST)) {
    if (profile['localhostProfile'] === told.slice(LOCALHOST.length)) return;
    const text = `${what} profile in annotation and field must match`;
    found.push(forbiddenField(`${path}.localhostProfile`, text));
    return;
  }
  if (type !== 'Localhost' && ownMember(names, type)?.includes(told) !== false) return;
  const text = `${what} type in annotation and field must match`;
  found.push(forbiddenField(`${path}.type`, text));
}

/** The profile that an annotation of AppArmor names; undefined where it names none. */
export function appArmorOf(annotation: string): JsonObject | undefined {
  if (annotation === UNCONFINED) return { type: 'Unconfined' };
  if (annotation === RUNTIME) return { type: 'RuntimeDefault' };
  if (!annotation.startsWith(LOCALHOST) || annotation === LOCALHOST) return undefined;
  const profile = { type: 'Localhost', localhostProfile: annotation.slice(LOCALHOST.length) };
  const faults: Findings = [];
  checkAppArmor(faults, '', profile);
  return faults.length === 0 ? profile : undefined;
}
