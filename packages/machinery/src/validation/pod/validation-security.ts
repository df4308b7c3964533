/** Security contexts of pods and containers. */

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
import { rangeText } from '../../meta/names.ts';
import { checkDescendingPath } from '../field/validation-paths.ts';
import { checkWindowsOptions } from './validation-os.ts';
import { eachObject, oneOf, oneOfSet, type Findings } from '../field/validation-rules.ts';

const ID_MAX = 2147483647;
const PROFILES = ['Localhost', 'RuntimeDefault', 'Unconfined'];
const PROFILE_BYTES_MAX = 4095;

/** The number of a user or a group. */
export function checkId(found: Findings, path: string, id: JsonValue | undefined): void {
  if (!isNumber(id) || (id >= 0 && id <= ID_MAX)) return;
  found.push(invalidValue(path, id, rangeText(0, ID_MAX)));
}

/** The context that all containers of a pod share, of the spec at `owner`. */
export function checkPodSecurity(found: Findings, owner: string, spec: JsonObject): void {
  const context = objectAt(spec, 'securityContext');
  const path = `${owner}.securityContext`;
  if (spec['shareProcessNamespace'] === true && spec['hostPID'] === true) {
    const text = 'ShareProcessNamespace and HostPID cannot both be enabled';
    found.push(invalidValue(`${path}.shareProcessNamespace`, true, text));
  }
  if (context === undefined) return;
  for (const field of ['fsGroup', 'runAsUser', 'runAsGroup']) {
    checkId(found, `${path}.${field}`, context[field]);
  }
  for (const [index, id] of listAt(context, 'supplementalGroups').entries()) {
    checkId(found, `${path}.supplementalGroups[${index}]`, id);
  }
  const changes = ['Always', 'OnRootMismatch'];
  oneOfSet(found, `${path}.fsGroupChangePolicy`, context['fsGroupChangePolicy'], changes);
  checkProfiles(found, path, context);
  const groups = ['Merge', 'Strict'];
  const policy = context['supplementalGroupsPolicy'];
  oneOfSet(found, `${path}.supplementalGroupsPolicy`, policy, groups);
  const change = context['seLinuxChangePolicy'];
  if (typeof change === 'string' && change !== 'Recursive') {
    found.push(notSupported(`${path}.seLinuxChangePolicy`, change, ['Recursive']));
  }
  checkSysctls(found, `${path}.sysctls`, listAt(context, 'sysctls'), spec);
  checkWindowsOptions(found, `${path}.windowsOptions`, objectAt(context, 'windowsOptions'));
}

const SYSCTL_BYTES_MAX = 253;
const SYSCTL_FORMAT = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$';
/** Settings of the namespace that processes talk in. */
const OF_PROCESSES = /^kernel\.(shm|msg|sem)|^fs\.mqueue\./;
const SYSCTL = new RegExp(SYSCTL_FORMAT);

function checkSysctls(
  found: Findings,
  path: string,
  sysctls: readonly JsonValue[],
  spec: JsonObject,
): void {
  const names = new Set<string>();
  eachObject(sysctls, path, (sysctl, at) => {
    const name = stringAt(sysctl, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else if (name.length > SYSCTL_BYTES_MAX || !SYSCTL.test(name)) {
      const text =
        `must have at most ${SYSCTL_BYTES_MAX} characters and match regex ` + SYSCTL_FORMAT;
      found.push(invalidValue(`${at}.name`, name, text));
    } else if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    const dotted = name.replaceAll('/', '.');
    const shared =
      spec['hostIPC'] === true && OF_PROCESSES.test(dotted)
        ? 'hostIPC'
        : spec['hostNetwork'] === true && dotted.startsWith('net.')
          ? 'hostNetwork'
          : '';
    if (shared === '') return;
    const text = `may not be specified when '${shared}' is true`;
    found.push(invalidValue(`${at}.name`, name, text));
  });
}

let isPrivilegeAllowed = true;

/** `--allow-privileged` of the API server, for the process. */
export function applyPrivilegedPods(isAllowed: boolean): void {
  isPrivilegeAllowed = isAllowed;
}

/** A container's own context. */
export function checkContainerSecurity(
  found: Findings,
  path: string,
  context: JsonObject | undefined,
  sharesUsers: boolean,
): void {
  if (context === undefined) return;
  for (const field of ['runAsUser', 'runAsGroup']) {
    checkId(found, `${path}.${field}`, context[field]);
  }
  oneOfSet(found, `${path}.procMount`, context['procMount'], ['Default', 'Unmasked']);
  if (sharesUsers && context['procMount'] === 'Unmasked') {
    const text = '`hostUsers` must be false to use `Unmasked`';
    found.push(invalidValue(`${path}.procMount`, 'Unmasked', text));
  }
  if (!isPrivilegeAllowed && context['privileged'] === true) {
    found.push(forbiddenField(`${path}.privileged`, 'disallowed by cluster policy'));
  }
  checkProfiles(found, path, context);
  checkWindowsOptions(found, `${path}.windowsOptions`, objectAt(context, 'windowsOptions'));
  if (context['allowPrivilegeEscalation'] !== false) return;
  if (context['privileged'] === true) {
    const text = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true';
    found.push(invalidValue(path, goForm('core.v1.SecurityContext', context), text));
  }
  if (listAt(context, 'capabilities', 'add').includes('CAP_SYS_ADMIN')) {
    const text =
      'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN';
    found.push(invalidValue(path, goForm('core.v1.SecurityContext', context), text));
  }
}

function checkProfiles(found: Findings, path: string, context: JsonObject): void {
  const seccomp = objectAt(context, 'seccompProfile');
  if (seccomp !== undefined) checkSeccomp(found, `${path}.seccompProfile`, seccomp);
  const appArmor = objectAt(context, 'appArmorProfile');
  if (appArmor !== undefined) checkAppArmor(found, `${path}.appArmorProfile`, appArmor);
}

function checkSeccomp(found: Findings, path: string, profile: JsonObject): void {
  const type = stringAt(profile, 'type');
  const at = `${path}.localhostProfile`;
  if (type === '')
    found.push(required(`${path}.type`, 'type is required when seccompProfile is set'));
  else oneOf(found, `${path}.type`, type, PROFILES);
  const file = profile['localhostProfile'];
  if (type === 'Localhost') {
    if (typeof file !== 'string') {
      found.push(required(at, 'must be set when seccomp type is Localhost'));
    } else checkDescendingPath(found, at, file);
  } else if (file !== undefined) {
    const value = goForm('core.v1.SeccompProfile', profile);
    found.push(invalidValue(at, value, 'can only be set when seccomp type is Localhost'));
  }
}

/** A profile of AppArmor by itself. */
export function checkAppArmor(found: Findings, path: string, profile: JsonObject): void {
  const type = stringAt(profile, 'type');
  const at = `${path}.localhostProfile`;
  const file = profile['localhostProfile'];
  if (type === 'Localhost') {
    const text = 'must be set when AppArmor type is Localhost';
    if (typeof file !== 'string' || file.trim() === '') found.push(required(at, text));
    else if (file !== file.trim()) {
      found.push(invalidValue(at, file, 'must not be padded with whitespace'));
    } else if (Buffer.byteLength(file) > PROFILE_BYTES_MAX) {
      found.push(tooLong(at, PROFILE_BYTES_MAX));
    }
  } else if (type === '') {
    found.push(required(`${path}.type`, 'type is required when appArmorProfile is set'));
  } else if (!PROFILES.includes(type)) oneOf(found, `${path}.type`, type, PROFILES);
  else if (file !== undefined) {
    found.push(invalidValue(at, file, 'can only be set when AppArmor type is Localhost'));
  }
}
