/**
 * The Pod Security Standards: what pods of the levels `baseline` and `restricted` must not do, with
 * the words in which upstream says it. Checks stand in upstream's order: those of `baseline` by
 * their identifiers, then those of `restricted`.
 */
import { ownMember } from '@megaplane/base/members';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

export type Level = 'privileged' | 'baseline' | 'restricted';

/** A pod, or the template of one. */
export interface PodShape {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
}

interface Check {
  readonly level: Level;
  /** From this version on a stricter one stands for it at the level `restricted`. */
  readonly replacedSince?: number;
  /** First minor version of the standard that has it. */
  readonly since: number;
  /** What is wrong: `reason (detail)`; '' where nothing is. */
  readonly judge: (pod: PodShape, minor: number) => string;
}

const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

function containersOf({ spec }: PodShape): readonly JsonValue[] {
  return CONTAINERS.flatMap((field) => listAt(spec, field));
}

function nameOf(container: JsonValue): string {
  return stringAt(container, 'name');
}

function quoted(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(', ');
}

function plural(one: string, many: string, count: number): string {
  return count === 1 ? one : many;
}

function those(names: readonly string[]): string {
  return `${plural('container', 'containers', names.length)} ${quoted(names)}`;
}

function sortedSet(values: readonly string[]): string[] {
  return Array.from(new Set(values)).toSorted();
}

function contextOf(value: JsonValue): JsonObject {
  return objectAt(value, 'securityContext') ?? {};
}

/** Windows has none of what these checks are about, so says the standard since 1.25. */
function isWindows({ spec }: PodShape, minor: number): boolean {
  return minor >= 25 && stringAt(spec, 'os', 'name') === 'windows';
}

/** Pods with users of their own may be root and unmask /proc, so says the standard since 1.35. */
function hasOwnUsers({ spec }: PodShape, minor: number): boolean {
  return minor >= 35 && spec['hostUsers'] === false;
}

function escalation(pod: PodShape, minor: number): string {
  if (isWindows(pod, minor)) return '';
  const bad = containersOf(pod).filter(
    (one) => contextOf(one)['allowPrivilegeEscalation'] !== false,
  );
  if (bad.length === 0) return '';
  const what = 'must set securityContext.allowPrivilegeEscalation=false';
  return `allowPrivilegeEscalation != false (${those(bad.map(nameOf))} ${what})`;
}

const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';

function appArmor(pod: PodShape): string {
  const typeOf = (value: JsonValue): string =>
    stringAt(contextOf(value), 'appArmorProfile', 'type');
  const isBad = (type: string): boolean => !['', 'RuntimeDefault', 'Localhost'].includes(type);
  const { setters, values } = badSetters(pod, typeOf, isBad);
  const annotations = Object.entries(objectAt(pod.metadata, 'annotations') ?? {})
    .filter(([key, value]) => {
      const text = typeof value === 'string' ? value : '';
      const isFine = ['', 'runtime/default'].includes(text) || text.startsWith('localhost/');
      return key.startsWith(APP_ARMOR) && !isFine;
    })
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .toSorted();
  if (annotations.length > 0) setters.push(plural('annotation', 'annotations', annotations.length));
  if (setters.length === 0) return '';
  const all = [...values, ...annotations];
  const reason = plural('forbidden AppArmor profile', 'forbidden AppArmor profiles', all.length);
  // upstream puts quotes around them without escaping what is inside
  const list = all.map((value) => `"${value}"`).join(', ');
  return `${reason} (${setters.join(' and ')} must not set AppArmor profile type to ${list})`;
}

/** Who sets a value that is not allowed: the pod, and containers; and which values these are. */
function badSetters(
  { spec, metadata }: PodShape,
  valueOf: (holder: JsonValue) => string,
  isBad: (value: string) => boolean,
): { readonly setters: string[]; readonly values: string[] } {
  const setters: string[] = [];
  const values: string[] = [];
  if (isBad(valueOf(spec))) {
    setters.push('pod');
    values.push(valueOf(spec));
  }
  const bad = containersOf({ spec, metadata }).filter((one) => isBad(valueOf(one)));
  if (bad.length > 0) setters.push(those(bad.map(nameOf)));
  return { setters, values: sortedSet([...values, ...bad.map(valueOf)]) };
}

const DEFAULT_CAPABILITIES: ReadonlySet<string> = new Set(
  (
    'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID ' +
    'SETPCAP SETUID SYS_CHROOT'
  ).split(' '),
);

function addedBeyond(pod: PodShape, allowed: ReadonlySet<string>): string {
  const bad: string[] = [];
  const found: string[] = [];
  for (const container of containersOf(pod)) {
    const added = listAt(contextOf(container), 'capabilities', 'add').filter(
      (one) => typeof one === 'string' && !allowed.has(one),
    );
    if (added.length === 0) continue;
    bad.push(nameOf(container));
    found.push(...added.map(String));
  }
  if (bad.length === 0) return '';
  const list = quoted(sortedSet(found));
  return `${those(bad)} must not include ${list} in securityContext.capabilities.add`;
}

function capabilities(pod: PodShape): string {
  const detail = addedBeyond(pod, DEFAULT_CAPABILITIES);
  return detail === '' ? '' : `non-default capabilities (${detail})`;
}

function fewCapabilities(pod: PodShape, minor: number): string {
  if (isWindows(pod, minor)) return '';
  const keeping = containersOf(pod).filter(
    (one) => !listAt(contextOf(one), 'capabilities', 'drop').includes('ALL'),
  );
  const details: string[] = [];
  if (keeping.length > 0) {
    details.push(
      `${those(keeping.map(nameOf))} must set securityContext.capabilities.drop=["ALL"]`,
    );
  }
  const added = addedBeyond(pod, new Set(['NET_BIND_SERVICE']));
  if (added !== '') details.push(added);
  return details.length === 0 ? '' : `unrestricted capabilities (${details.join('; ')})`;
}

function hostNamespaces({ spec }: PodShape): string {
  const used = ['hostNetwork', 'hostPID', 'hostIPC'].filter((field) => spec[field] === true);
  if (used.length === 0) return '';
  return `host namespaces (${used.map((field) => `${field}=true`).join(', ')})`;
}

function hostPaths({ spec }: PodShape): string {
  const bad = listAt(spec, 'volumes').filter((one) => objectAt(one, 'hostPath') !== undefined);
  if (bad.length === 0) return '';
  const word = plural('volume', 'volumes', bad.length);
  return `hostPath volumes (${word} ${quoted(bad.map(nameOf))})`;
}

function hostPorts(pod: PodShape): string {
  const bad: string[] = [];
  const ports: string[] = [];
  for (const container of containersOf(pod)) {
    const own = listAt(container, 'ports').filter((port) => numberAt(port, 'hostPort') !== 0);
    if (own.length === 0) continue;
    bad.push(nameOf(container));
    ports.push(...own.map((port) => String(numberAt(port, 'hostPort'))));
  }
  if (bad.length === 0) return '';
  const list = sortedSet(ports);
  const verb = plural('uses', 'use', bad.length);
  const noun = plural('hostPort', 'hostPorts', list.length);
  return `hostPort (${those(bad)} ${verb} ${noun} ${list.join(', ')})`;
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'];
const HOOKS = ['postStart', 'preStop'];

function probeHosts(pod: PodShape): string {
  const bad: string[] = [];
  const hosts: string[] = [];
  for (const container of containersOf(pod)) {
    const handlers = [
      ...PROBES.map((field) => objectAt(container, field)),
      ...HOOKS.map((field) => objectAt(container, 'lifecycle', field)),
    ];
    const own = handlers.flatMap((handler) =>
      ['httpGet', 'tcpSocket'].map((field) => stringAt(handler, field, 'host')),
    );
    const named = own.filter((host) => host !== '');
    if (named.length === 0) continue;
    bad.push(nameOf(container));
    hosts.push(...named);
  }
  if (bad.length === 0) return '';
  const list = sortedSet(hosts);
  const verb = plural('uses', 'use', bad.length);
  const noun = plural('host', 'hosts', list.length);
  const what = `${verb} probe or lifecycle ${noun} ${quoted(list)}`;
  return `probe or lifecycle host (${those(bad)} ${what})`;
}

function privileged(pod: PodShape): string {
  const bad = containersOf(pod).filter((one) => contextOf(one)['privileged'] === true);
  if (bad.length === 0) return '';
  return `privileged (${those(bad.map(nameOf))} must not set securityContext.privileged=true)`;
}

function maskedProc(pod: PodShape, minor: number): string {
  return hasOwnUsers(pod, minor) ? '' : procMount(pod);
}

function procMount(pod: PodShape): string {
  const mountOf = (one: JsonValue): string => stringAt(contextOf(one), 'procMount');
  const bad = containersOf(pod).filter((one) => !['', 'Default'].includes(mountOf(one)));
  if (bad.length === 0) return '';
  const values = quoted(sortedSet(bad.map(mountOf)));
  const what = `must not set securityContext.procMount to ${values}`;
  return `procMount (${those(bad.map(nameOf))} ${what})`;
}

const VOLUME_TYPES: ReadonlySet<string> = new Set(
  'configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret'.split(
    ' ',
  ),
);

function volumes({ spec }: PodShape): string {
  const bad: string[] = [];
  const types: string[] = [];
  for (const volume of listAt(spec, 'volumes')) {
    const type =
      Object.keys(isObject(volume) ? volume : {}).find((field) => field !== 'name') ?? '';
    if (VOLUME_TYPES.has(type)) continue;
    bad.push(nameOf(volume));
    types.push(type === '' ? 'unknown' : type);
  }
  if (bad.length === 0) return '';
  const noun = plural('volume', 'volumes', bad.length);
  const verb = plural('uses', 'use', bad.length);
  const list = sortedSet(types);
  const what = plural('restricted volume type', 'restricted volume types', list.length);
  return `restricted volume types (${noun} ${quoted(bad)} ${verb} ${what} ${quoted(list)})`;
}

function nonRoot(pod: PodShape, minor: number): string {
  if (hasOwnUsers(pod, minor)) return '';
  const { spec } = pod;
  const own = contextOf(spec)['runAsNonRoot'];
  const containers = containersOf(pod);
  const refusing = containers.filter((one) => contextOf(one)['runAsNonRoot'] === false);
  const setters = own === false ? ['pod'] : [];
  if (refusing.length > 0) setters.push(those(refusing.map(nameOf)));
  if (setters.length > 0) {
    const what = 'must not set securityContext.runAsNonRoot=false';
    return `runAsNonRoot != true (${setters.join(' and ')} ${what})`;
  }
  if (own === true) return '';
  const silent = containers.filter((one) => contextOf(one)['runAsNonRoot'] !== true);
  if (silent.length === 0) return '';
  const what = 'must set securityContext.runAsNonRoot=true';
  return `runAsNonRoot != true (pod or ${those(silent.map(nameOf))} ${what})`;
}

function rootUser(pod: PodShape, minor: number): string {
  if (hasOwnUsers(pod, minor)) return '';
  const setters = contextOf(pod.spec)['runAsUser'] === 0 ? ['pod'] : [];
  const bad = containersOf(pod).filter((one) => contextOf(one)['runAsUser'] === 0);
  if (bad.length > 0) setters.push(those(bad.map(nameOf)));
  return setters.length === 0
    ? ''
    : `runAsUser=0 (${setters.join(' and ')} must not set runAsUser=0)`;
}

const SELINUX_TYPES: ReadonlySet<string> = new Set([
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]);

function seLinux(pod: PodShape, minor: number): string {
  const optionsOf = (holder: JsonValue): JsonObject =>
    objectAt(contextOf(holder), 'seLinuxOptions') ?? {};
  const isBadType = (type: string): boolean =>
    !SELINUX_TYPES.has(type) || (type === 'container_engine_t' && minor < 31);
  const isBad = (holder: JsonValue): boolean => {
    const options = optionsOf(holder);
    const isSet = stringAt(options, 'user') !== '' || stringAt(options, 'role') !== '';
    return isSet || isBadType(stringAt(options, 'type'));
  };
  const bad = containersOf(pod).filter(isBad);
  const isPodBad = isBad(pod.spec);
  if (bad.length === 0 && !isPodBad) return '';
  const setters = isPodBad ? ['pod'] : [];
  if (bad.length > 0) setters.push(those(bad.map(nameOf)));
  const holders = [...(isPodBad ? [pod.spec] : []), ...bad].map(optionsOf);
  const types = sortedSet(holders.map((options) => stringAt(options, 'type')).filter(isBadType));
  const data: string[] = [];
  if (types.length > 0) data.push(`${plural('type', 'types', types.length)} ${quoted(types)}`);
  for (const field of ['user', 'role']) {
    if (holders.some((options) => stringAt(options, field) !== '')) {
      data.push(`${field} may not be set`);
    }
  }
  const what = `set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`;
  return `seLinuxOptions (${setters.join(' and ')} ${what})`;
}

const SECCOMP_FINE = ['RuntimeDefault', 'Localhost'];

function seccompType(holder: JsonValue): string {
  return stringAt(contextOf(holder), 'seccompProfile', 'type');
}

const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';

/** Before 1.19 annotations said it. */
function seccompAnnotations(pod: PodShape): string {
  const annotations = objectAt(pod.metadata, 'annotations') ?? {};
  const keys = [SECCOMP_POD, ...containersOf(pod).map((one) => SECCOMP_CONTAINER + nameOf(one))];
  const bad = keys.flatMap((key) => {
    const value = ownMember(annotations, key);
    if (typeof value !== 'string') return [];
    const isFine = ['runtime/default', 'docker/default'].includes(value);
    return isFine || value.startsWith('localhost/') ? [] : [`${key}=${JSON.stringify(value)}`];
  });
  if (bad.length === 0) return '';
  const list = sortedSet(bad);
  const word = plural('annotation', 'annotations', list.length);
  return `seccompProfile (forbidden ${word} ${list.join(', ')})`;
}

function seccomp(pod: PodShape, minor: number): string {
  if (minor < 19) return seccompAnnotations(pod);
  const isBad = (type: string): boolean => type !== '' && !SECCOMP_FINE.includes(type);
  const { setters, values } = badSetters(pod, seccompType, isBad);
  if (setters.length === 0) return '';
  const what = `must not set securityContext.seccompProfile.type to ${quoted(values)}`;
  return `seccompProfile (${setters.join(' and ')} ${what})`;
}

function seccompSet(pod: PodShape, minor: number): string {
  if (isWindows(pod, minor)) return '';
  const explicit = seccomp(pod, minor);
  if (explicit !== '' || SECCOMP_FINE.includes(seccompType(pod.spec))) return explicit;
  const silent = containersOf(pod).filter((one) => seccompType(one) === '');
  if (silent.length === 0) return '';
  const what = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"';
  return `seccompProfile (pod or ${those(silent.map(nameOf))} ${what})`;
}

/** Sysctls that are safe, and the minor version from which on the standard says so. */
const SYSCTLS: Readonly<Record<string, number>> = {
  'kernel.shm_rmid_forced': 0,
  'net.ipv4.ip_local_port_range': 0,
  'net.ipv4.ip_unprivileged_port_start': 0,
  'net.ipv4.tcp_syncookies': 0,
  'net.ipv4.ping_group_range': 0,
  'net.ipv4.ip_local_reserved_ports': 27,
  'net.ipv4.tcp_keepalive_time': 29,
  'net.ipv4.tcp_fin_timeout': 29,
  'net.ipv4.tcp_keepalive_intvl': 29,
  'net.ipv4.tcp_keepalive_probes': 29,
  'net.ipv4.tcp_rmem': 32,
  'net.ipv4.tcp_wmem': 32,
};

function sysctls({ spec }: PodShape, minor: number): string {
  const bad = listAt(contextOf(spec), 'sysctls')
    .map(nameOf)
    .filter((name) => minor < (ownMember(SYSCTLS, name) ?? Infinity));
  return bad.length === 0 ? '' : `forbidden sysctls (${bad.join(', ')})`;
}

function hostProcess(pod: PodShape): string {
  const isHost = (holder: JsonValue): boolean =>
    objectAt(contextOf(holder), 'windowsOptions')?.['hostProcess'] === true;
  const setters = isHost(pod.spec) ? ['pod'] : [];
  const bad = containersOf(pod).filter(isHost);
  if (bad.length > 0) setters.push(those(bad.map(nameOf)));
  if (setters.length === 0) return '';
  const what = 'must not set securityContext.windowsOptions.hostProcess=true';
  return `hostProcess (${setters.join(' and ')} ${what})`;
}

const CHECKS: readonly Check[] = [
  { level: 'baseline', since: 0, judge: appArmor },
  { level: 'baseline', since: 0, replacedSince: 22, judge: capabilities },
  { level: 'baseline', since: 0, judge: hostNamespaces },
  { level: 'baseline', since: 0, replacedSince: 0, judge: hostPaths },
  { level: 'baseline', since: 0, judge: hostPorts },
  { level: 'baseline', since: 34, judge: probeHosts },
  { level: 'baseline', since: 0, judge: privileged },
  { level: 'baseline', since: 0, replacedSince: 35, judge: maskedProc },
  { level: 'baseline', since: 0, judge: seLinux },
  { level: 'baseline', since: 0, replacedSince: 19, judge: seccomp },
  { level: 'baseline', since: 0, judge: sysctls },
  { level: 'baseline', since: 0, judge: hostProcess },
  { level: 'restricted', since: 8, judge: escalation },
  { level: 'restricted', since: 22, judge: fewCapabilities },
  { level: 'restricted', since: 35, judge: procMount },
  { level: 'restricted', since: 0, judge: volumes },
  { level: 'restricted', since: 0, judge: nonRoot },
  { level: 'restricted', since: 23, judge: rootUser },
  { level: 'restricted', since: 19, judge: seccompSet },
];

/** Everything that is wrong with a pod at a level, separated by commas; '' where it may run. */
export function violationsOf(pod: PodShape, level: Level, minor: number): string {
  if (level === 'privileged') return '';
  const isRestricted = level === 'restricted';
  const found: string[] = [];
  for (const check of CHECKS) {
    if (check.since > minor) continue;
    if (isRestricted && minor >= (check.replacedSince ?? Infinity)) continue;
    if (!isRestricted && check.level === 'restricted') continue;
    const text = check.judge(pod, minor);
    if (text !== '') found.push(text);
  }
  return found.join(', ');
}
