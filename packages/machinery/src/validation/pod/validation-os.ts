/** What pods of one operating system cannot have, and what namespaces of users do not go with. */
import { ownMember } from '@megaplane/base/members';
import { forbiddenField, invalidValue, typedText } from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors } from '../../meta/names.ts';
import { invalidEach, type Findings } from '../field/validation-rules.ts';

const NO_WINDOWS = 'cannot be set for a windows pod';
const USERS = 'when `hostUsers` is false';
const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

function eachContainer(
  path: string,
  spec: JsonObject,
  visit: (container: JsonValue, path: string) => void,
): void {
  for (const field of CONTAINERS) {
    for (const [index, container] of listAt(spec, field).entries()) {
      visit(container, `${path}.${field}[${index}]`);
    }
  }
}

/** A pod that says it is for Linux. */
export function checkLinux(found: Findings, path: string, spec: JsonObject): void {
  const text = 'windows options cannot be set for a linux pod';
  const field = 'securityContext.windowsOptions';
  if (objectAt(spec, 'securityContext', 'windowsOptions') !== undefined) {
    found.push(forbiddenField(`${path}.${field}`, text));
  }
  eachContainer(path, spec, (container, at) => {
    if (objectAt(container, 'securityContext', 'windowsOptions') === undefined) return;
    found.push(forbiddenField(`${at}.${field}`, text));
  });
}

/** In upstream's order; those without a context are fields of the pod itself. */
const POD_FIELDS: readonly (readonly [field: string, isOfContext: boolean])[] = [
  ['appArmorProfile', true],
  ['seLinuxOptions', true],
  ['hostUsers', false],
  ['hostPID', false],
  ['hostIPC', false],
  ['seccompProfile', true],
  ['fsGroup', true],
  ['fsGroupChangePolicy', true],
  ['sysctls', true],
  ['shareProcessNamespace', false],
  ['runAsUser', true],
  ['runAsGroup', true],
  ['supplementalGroups', true],
  ['supplementalGroupsPolicy', true],
  ['seLinuxChangePolicy', true],
];
const CONTAINER_FIELDS = [
  ...['appArmorProfile', 'seLinuxOptions', 'seccompProfile', 'capabilities'],
  ...['readOnlyRootFilesystem', 'privileged', 'allowPrivilegeEscalation', 'procMount'],
  ...['runAsUser', 'runAsGroup'],
];

/** A pod that says it is for Windows. */
export function checkWindows(found: Findings, path: string, spec: JsonObject): void {
  const context = objectAt(spec, 'securityContext');
  for (const [field, isOfContext] of POD_FIELDS) {
    const value = isOfContext ? ownMember(context, field) : ownMember(spec, field);
    const isPlain = field === 'hostPID' || field === 'hostIPC';
    const isEmpty = Array.isArray(value) && value.length === 0;
    if (value === undefined || isEmpty || (isPlain && value === false)) continue;
    const at = isOfContext ? `${path}.securityContext` : path;
    found.push(forbiddenField(`${at}.${field}`, NO_WINDOWS));
  }
  eachContainer(path, spec, (container, at) => {
    const own = objectAt(container, 'securityContext');
    for (const field of CONTAINER_FIELDS) {
      if (own?.[field] === undefined) continue;
      found.push(forbiddenField(`${at}.securityContext.${field}`, NO_WINDOWS));
    }
  });
}

/** Processes of the host itself: all containers or none, and on the host's network. */
export function checkHostProcesses(found: Findings, path: string, spec: JsonObject): void {
  const options = ['securityContext', 'windowsOptions'];
  const ofPod = objectAt(spec, ...options)?.['hostProcess'];
  let [count, hosts] = [0, 0];
  eachContainer(path, spec, (container, at) => {
    count++;
    const own = objectAt(container, ...options)?.['hostProcess'];
    if (typeof own === 'boolean' && typeof ofPod === 'boolean' && own !== ofPod) {
      const text = `pod hostProcess value must be identical if both are specified, was ${ofPod}`;
      found.push(invalidValue(`${at}.${options.join('.')}.hostProcess`, own, text));
    }
    if ((own ?? ofPod) === true) hosts++;
  });
  if (hosts === 0) return;
  if (hosts < count) {
    const text =
      'If pod contains any hostProcess containers then all containers must be HostProcess ' +
      'containers';
    found.push(invalidValue(path, '', text));
  }
  if (spec['hostNetwork'] === true) return;
  const text = 'hostNetwork must be true if pod contains any hostProcess containers';
  found.push(invalidValue(`${path}.hostNetwork`, false, text));
}

/** A pod with users of its own shares nothing else with the host. */
export function checkUserNamespace(found: Findings, path: string, spec: JsonObject): void {
  if (spec['hostUsers'] !== false) return;
  for (const [field, shown] of [
    ['hostNetwork', 'hostNetwork'],
    ['hostPID', 'HostPID'],
    ['hostIPC', 'HostIPC'],
  ] as const) {
    if (spec[field] === true) found.push(forbiddenField(`${path}.${shown}`, USERS));
  }
  eachContainer(path, spec, (container, at) => {
    if (listAt(container, 'volumeDevices').length === 0) return;
    found.push(forbiddenField(`${at}.volumeDevices`, USERS));
  });
}

const CREDENTIAL_KIB_MAX = 64;
const DOMAIN_LENGTH_MAX = 256;
const USER_LENGTH_MAX = 104;
// oxlint-disable-next-line no-control-regex -- upstream refuses exactly these
const CONTROL = /[\x00-\x1f\x7f]/;
const NET_BIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DOMAIN =
  /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** As whom a Windows container runs. */
export function checkWindowsOptions(
  found: Findings,
  path: string,
  options: JsonObject | undefined,
): void {
  const name = options?.['gmsaCredentialSpecName'];
  if (typeof name === 'string') {
    const texts = dnsSubdomainErrors(name);
    invalidEach(found, `${path}.gmsaCredentialSpecName`, typedText(name), texts);
  }
  const credential = options?.['gmsaCredentialSpec'];
  if (credential === '') {
    const text = 'gmsaCredentialSpec cannot be an empty string';
    found.push(invalidValue(`${path}.gmsaCredentialSpec`, '', text));
  } else if (stringAt(options, 'gmsaCredentialSpec').length > CREDENTIAL_KIB_MAX * 1024) {
    const text = `gmsaCredentialSpec size must be under ${CREDENTIAL_KIB_MAX} KiB`;
    found.push(invalidValue(`${path}.gmsaCredentialSpec`, credential ?? '', text));
  }
  const user = options?.['runAsUserName'];
  if (typeof user !== 'string') return;
  for (const text of userFaults(user)) {
    found.push(invalidValue(`${path}.runAsUserName`, typedText(user), `runAsUserName${text}`));
  }
}

function userFaults(name: string): string[] {
  if (name === '') return [' cannot be an empty string'];
  if (CONTROL.test(name)) return [' cannot contain control characters'];
  const parts = name.split('\\');
  if (parts.length > 2) return [' cannot contain more than one backslash'];
  const domain = parts.length === 2 ? (parts[0] ?? '') : null;
  const user = parts.at(-1) ?? '';
  const faults: string[] = [];
  if (domain !== null && domain.length >= DOMAIN_LENGTH_MAX) {
    faults.push(`'s Domain length must be under ${DOMAIN_LENGTH_MAX} characters`);
  }
  if (domain !== null && !NET_BIOS.test(domain) && !DOMAIN.test(domain)) {
    faults.push("'s Domain doesn't match the NetBios nor the DNS format");
  }
  if (user === '') faults.push("'s User cannot be empty");
  else if (user.length > USER_LENGTH_MAX) {
    faults.push(`'s User length must not be longer than ${USER_LENGTH_MAX} characters`);
  }
  if (/^[. ]+$/.test(user)) faults.push("'s User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    faults.push(`'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]`);
  }
  return faults;
}
