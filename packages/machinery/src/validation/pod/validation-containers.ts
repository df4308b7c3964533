/** Containers of pods and of templates. */

import {
  duplicate,
  fieldNotFound,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  type FieldError,
} from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import { isNumber, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import {
  configKeyErrors,
  dnsSubdomainErrors,
  envNameErrors,
  portNameErrors,
  portNumberErrors,
} from '../../meta/names.ts';
import { checkFieldReference, checkResourceReference, ENV_FIELDS } from './downward-api.ts';
import { checkResources } from './validation-resources.ts';
import { checkContainerSecurity } from './validation-security.ts';
import {
  checkDnsLabel,
  eachObject,
  invalidEach,
  nonNegative,
  oneOf,
  type Findings,
} from '../field/validation-rules.ts';
import { checkBacksteps, checkDescendingPath } from '../field/validation-paths.ts';

const TAKEN = 'must not already exist';
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'];
const PROBE_COUNTS = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
];
export const PROBES: readonly string[] = ['livenessProbe', 'readinessProbe', 'startupProbe'];
const INIT_ONLY_SIDECAR = 'may not be set for init containers without restartPolicy=Always';

/** What the containers of one pod may refer to. */
export interface PodScope {
  readonly volumes: ReadonlyMap<string, JsonObject>;
  readonly claims: ReadonlySet<string>;
  /** How long its containers may take to stop; null where that is wrong by itself. */
  readonly graceSeconds: number | null;
  /** What is done about containers that end. */
  readonly restartPolicy: string;
  /** Its users are those of the host. */
  readonly sharesUsers: boolean;
}

export function checkContainers(
  found: Findings,
  path: string,
  containers: readonly JsonValue[],
  scope: PodScope,
): void {
  if (containers.length === 0) {
    found.push(required(path));
    return;
  }
  const names = new Set<string>();
  eachObject(containers, path, (container, at) => {
    checkContainer(found, at, container, scope);
    const name = stringAt(container, 'name');
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    checkLifecycle(found, `${at}.lifecycle`, objectAt(container, 'lifecycle'), scope);
    for (const probe of PROBES) checkProbe(found, `${at}.${probe}`, probe, container);
    checkRestarts(found, at, container);
  });
  checkHostPorts(found, path, containers);
}

const RESTART_POLICIES = ['Always', 'Never', 'OnFailure'];
const RESTART_ACTIONS = ['Restart', 'RestartAllContainers'];

/** A container's own policy of restarts, and the rules that go with it. */
function checkRestarts(found: Findings, path: string, container: JsonObject, isInit = false): void {
  const rules = listAt(container, 'restartPolicyRules');
  const policy = container['restartPolicy'];
  if (policy === undefined) {
    if (rules.length === 0) return;
    const text = 'must specify restartPolicy when restart rules are used';
    found.push(required(`${path}.restartPolicy`, text));
    if (isInit) return;
  } else if (typeof policy !== 'string' || !RESTART_POLICIES.includes(policy)) {
    found.push(notSupported(`${path}.restartPolicy`, policy ?? '', RESTART_POLICIES));
  }
  eachObject(rules, `${path}.restartPolicyRules`, (rule, at) => {
    const action = stringAt(rule, 'action');
    if (!RESTART_ACTIONS.includes(action)) {
      found.push(notSupported(`${at}.action`, action, RESTART_ACTIONS));
    }
    const codes = objectAt(rule, 'exitCodes');
    if (codes === undefined) found.push(required(`${at}.exitCodes`, 'must be specified'));
    else {
      const operator = stringAt(codes, 'operator');
      if (operator === 'In' || operator === 'NotIn') return;
      found.push(notSupported(`${at}.exitCodes.operator`, operator, ['In', 'NotIn']));
    }
  });
}

/** Init containers share the names of the others and have no probes, unless they keep running. */
export function checkInitContainers(
  found: Findings,
  path: string,
  containers: readonly JsonValue[],
  regular: readonly JsonValue[],
  scope: PodScope,
): void {
  const names = new Set(regular.map((container) => stringAt(container, 'name')));
  eachObject(containers, path, (container, at) => {
    checkContainer(found, at, container, scope);
    const name = stringAt(container, 'name');
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    else if (name !== '') names.add(name);
    checkRestarts(found, at, container, true);
    checkHostPorts(found, path, [container]);
    const isSidecar = container['restartPolicy'] === 'Always';
    if (isSidecar) {
      checkLifecycle(found, `${at}.lifecycle`, objectAt(container, 'lifecycle'), scope);
    }
    for (const field of ['lifecycle', ...PROBES]) {
      if (container[field] === undefined) continue;
      if (!isSidecar) found.push(forbiddenField(`${at}.${field}`, INIT_ONLY_SIDECAR));
      else if (field !== 'lifecycle') checkProbe(found, `${at}.${field}`, field, container);
    }
    for (const index of restartedAlone(container)) {
      const place = `${at}.resizePolicy[${index}].restartPolicy`;
      found.push(invalidValue(place, 'RestartContainer', ALONE));
    }
  });
}

const ALONE = "must not be set to 'RestartContainer' for non-sidecar initContainers";

/** Which policies of an init container would start it again, though it runs to its end. */
function restartedAlone(container: JsonValue): readonly number[] {
  if (stringAt(container, 'restartPolicy') === 'Always') return [];
  return listAt(container, 'resizePolicy').flatMap((policy, index) =>
    stringAt(policy, 'restartPolicy') === 'RestartContainer' ? [index] : [],
  );
}

/** What was let in before it was forbidden may stay: the faults that are left of those found. */
export function withoutKnown(found: Findings, previousSpec: JsonObject | undefined): Findings {
  const isAlone = ({ body }: FieldError): boolean => body.endsWith(ALONE);
  if (!found.some(isAlone)) return found;
  const isKnown = listAt(previousSpec, 'initContainers').some(
    (container) => restartedAlone(container).length > 0,
  );
  return isKnown ? found.filter((one) => !isAlone(one)) : found;
}

/** What holds for containers of all kinds. */
export function checkContainer(
  found: Findings,
  path: string,
  container: JsonObject,
  scope: PodScope,
): void {
  const name = stringAt(container, 'name');
  if (name === '') found.push(required(`${path}.name`));
  else checkDnsLabel(found, `${path}.name`, name);
  if (stringAt(container, 'image') === '') found.push(required(`${path}.image`));
  const messages = ['File', 'FallbackToLogsOnError'];
  const policy = container['terminationMessagePolicy'];
  oneOf(found, `${path}.terminationMessagePolicy`, policy, messages);
  checkPorts(found, `${path}.ports`, listAt(container, 'ports'));
  checkEnv(found, `${path}.env`, listAt(container, 'env'));
  checkEnvFrom(found, `${path}.envFrom`, listAt(container, 'envFrom'));
  checkMounts(found, `${path}.volumeMounts`, container, scope);
  oneOf(found, `${path}.imagePullPolicy`, container['imagePullPolicy'], PULL_POLICIES);
  checkDevices(found, `${path}.volumeDevices`, container, scope);
  checkResources(found, `${path}.resources`, objectAt(container, 'resources'));
  const claims = listAt(container, 'resources', 'claims');
  checkResourceClaims(found, `${path}.resources.claims`, claims, scope);
  checkResizing(found, `${path}.resizePolicy`, container, scope.restartPolicy);
  const security = objectAt(container, 'securityContext');
  checkContainerSecurity(found, `${path}.securityContext`, security, scope.sharesUsers);
}

const RESIZED = ['cpu', 'memory'];
const RESIZINGS = ['NotRequired', 'RestartContainer'];

/** What becomes of a container whose amounts change. */
function checkResizing(
  found: Findings,
  path: string,
  container: JsonObject,
  restartPolicy: string,
): void {
  const names = new Set<string>();
  for (const [index, policy] of listAt(container, 'resizePolicy').entries()) {
    const name = stringAt(policy, 'resourceName');
    if (names.has(name)) found.push(duplicate(`${path}[${index}]`, name));
    names.add(name);
    oneOf(found, path, name, RESIZED);
    const restart = stringAt(policy, 'restartPolicy');
    oneOf(found, path, restart, RESIZINGS);
    if (restartPolicy !== 'Never' || restart === 'NotRequired') continue;
    const text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
    found.push(invalidValue(path, restart, text));
  }
}

function checkDevices(found: Findings, path: string, container: JsonObject, scope: PodScope): void {
  const mounts = listAt(container, 'volumeMounts');
  const names = new Set<string>();
  const paths = new Set<string>();
  const blame = (at: string, value: string, text: string): void => {
    found.push(invalidValue(at, value, text));
  };
  eachObject(listAt(container, 'volumeDevices'), path, (device, at) => {
    const name = stringAt(device, 'name');
    const file = stringAt(device, 'devicePath');
    if (name === '') found.push(required(`${at}.name`));
    if (names.has(name)) blame(`${at}.name`, name, 'must be unique');
    const volume = scope.volumes.get(name);
    if (volume === undefined) found.push(fieldNotFound(`${at}.name`, name));
    else if (volume['persistentVolumeClaim'] === undefined && volume['ephemeral'] === undefined) {
      const kinds = 'PersistentVolumeClaim or Ephemeral';
      blame(`${at}.name`, name, `can only use volume source type of ${kinds} for block mode`);
    }
    if (file === '') found.push(required(`${at}.devicePath`));
    if (paths.has(file)) blame(`${at}.devicePath`, file, 'must be unique');
    const isUp = file.split('/').includes('..');
    if (isUp) blame(`${at}.devicePath`, file, "can not contain backsteps ('..')");
    else paths.add(file);
    if (mounts.some((mount) => stringAt(mount, 'name') === name)) {
      blame(`${at}.name`, name, `${TAKEN} in volumeMounts`);
    }
    if (mounts.some((mount) => stringAt(mount, 'mountPath') === file)) {
      blame(`${at}.devicePath`, file, `${TAKEN} as a path in volumeMounts`);
    }
    if (name !== '') names.add(name);
  });
}

export function checkResourceClaims(
  found: Findings,
  path: string,
  claims: readonly JsonValue[],
  scope: PodScope,
): void {
  const seen: string[] = [];
  eachObject(claims, path, (claim, at) => {
    const name = stringAt(claim, 'name');
    if (name === '') {
      found.push(required(at));
      return;
    }
    checkRequestOfClaim(found, at, name, stringAt(claim, 'request'), seen);
    if (scope.claims.has(name)) return;
    const known = [...scope.claims].toSorted().join(', ');
    const which = known === '' ? ' which is empty' : `: ${known}`;
    const error = fieldNotFound(at, name);
    const detail = `must be one of the names in pod.spec.resourceClaims${which}`;
    found.push({ ...error, body: `${error.body}: ${detail}` });
  });
}

/** A claim is named as a whole once, or request by request. */
function checkRequestOfClaim(
  found: Findings,
  path: string,
  name: string,
  request: string,
  seen: string[],
): void {
  if (seen.includes(name)) {
    found.push(duplicate(path, name));
    return;
  }
  const key = request === '' ? name : `${name}/${request}`;
  if (request !== '') checkDnsLabel(found, `${path}.request`, request);
  if (seen.includes(key)) found.push(duplicate(path, key));
  else if (request === '') {
    for (const one of seen) if (one.startsWith(`${name}/`)) found.push(duplicate(path, name));
  }
  seen.push(key);
}

function checkPorts(found: Findings, path: string, ports: readonly JsonValue[]): void {
  const names = new Set<string>();
  eachObject(ports, path, (port, at) => {
    const name = stringAt(port, 'name');
    const texts = name === '' ? [] : portNameErrors(name);
    invalidEach(found, `${at}.name`, name, texts);
    if (name !== '' && texts.length === 0 && names.has(name)) {
      found.push(duplicate(`${at}.name`, name));
    }
    names.add(name);
    const containerPort = port['containerPort'];
    if (typeof containerPort !== 'number' || containerPort === 0) {
      found.push(required(`${at}.containerPort`));
    } else {
      invalidEach(found, `${at}.containerPort`, containerPort, portNumberErrors(containerPort));
    }
    const hostPort = port['hostPort'];
    if (typeof hostPort === 'number' && hostPort !== 0) {
      invalidEach(found, `${at}.hostPort`, hostPort, portNumberErrors(hostPort));
    }
    oneOf(found, `${at}.protocol`, port['protocol'], PROTOCOLS);
  });
}

/** One port of a node, protocol and address can be had once in a pod. */
function checkHostPorts(found: Findings, path: string, containers: readonly JsonValue[]): void {
  const taken = new Set<string>();
  eachObject(containers, path, (container, at) => {
    eachObject(listAt(container, 'ports'), `${at}.ports`, (port, portPath) => {
      const hostPort = port['hostPort'];
      if (typeof hostPort !== 'number' || hostPort === 0) return;
      const text = `${stringAt(port, 'protocol')}/${stringAt(port, 'hostIP')}/${hostPort}`;
      if (taken.has(text)) found.push(duplicate(`${portPath}.hostPort`, text));
      taken.add(text);
    });
  });
}

const ENV_SOURCES = [
  'fieldRef',
  'resourceFieldRef',
  'configMapKeyRef',
  'secretKeyRef',
  'fileKeyRef',
];

function checkEnv(found: Findings, path: string, variables: readonly JsonValue[]): void {
  eachObject(variables, path, (variable, at) => {
    const name = stringAt(variable, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else invalidEach(found, `${at}.name`, name, envNameErrors(name));
    const source = objectAt(variable, 'valueFrom');
    if (source === undefined) return;
    const from = `${at}.valueFrom`;
    const field = objectAt(source, 'fieldRef');
    if (field !== undefined) checkFieldReference(found, `${from}.fieldRef`, field, ENV_FIELDS);
    const resource = objectAt(source, 'resourceFieldRef');
    if (resource !== undefined) {
      checkResourceReference(found, `${from}.resourceFieldRef`, resource, false);
    }
    checkKeyReference(found, `${from}.configMapKeyRef`, objectAt(source, 'configMapKeyRef'));
    checkKeyReference(found, `${from}.secretKeyRef`, objectAt(source, 'secretKeyRef'));
    const file = objectAt(source, 'fileKeyRef');
    if (file !== undefined) checkFileReference(found, `${from}.fileKeyRef`, file);
    const count = ENV_SOURCES.filter((field) => source[field] !== undefined).length;
    if (count === 0) {
      const list = '`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`';
      found.push(invalidValue(from, '', `must specify one of: ${list} or \`fileKeyRef\``));
    } else if (stringAt(variable, 'value') !== '') {
      found.push(invalidValue(from, '', 'may not be specified when `value` is not empty'));
    } else if (count > 1) {
      const text = 'may not have more than one field specified at a time';
      found.push(invalidValue(from, '', text));
    }
  });
}

function checkKeyReference(found: Findings, path: string, reference: JsonObject | undefined): void {
  if (reference === undefined) return;
  const name = stringAt(reference, 'name');
  invalidEach(found, `${path}.name`, name, dnsSubdomainErrors(name));
  const key = stringAt(reference, 'key');
  if (key === '') found.push(required(`${path}.key`));
  else invalidEach(found, `${path}.key`, key, configKeyErrors(key));
}

/** A variable from a file in a volume that containers write. */
function checkFileReference(found: Findings, path: string, reference: JsonObject): void {
  const key = stringAt(reference, 'key');
  if (key === '') found.push(required(`${path}.key`));
  else invalidEach(found, `${path}.key`, key, envNameErrors(key));
  const name = stringAt(reference, 'volumeName');
  if (name === '') found.push(required(`${path}.volumeName`));
  else checkDnsLabel(found, `${path}.volumeName`, name);
  const file = stringAt(reference, 'path');
  if (file === '') found.push(required(`${path}.path`));
  else checkBacksteps(found, `${path}.path`, file);
}

/** Volumes that variables come from: empty ones, which containers fill. */
export function checkFileVolumes(found: Findings, path: string, spec: JsonObject): void {
  const volumes = listAt(spec, 'volumes');
  for (const field of ['initContainers', 'containers', 'ephemeralContainers']) {
    eachObject(listAt(spec, field), `${path}.${field}`, (container, owner) => {
      eachObject(listAt(container, 'env'), `${owner}.env`, (variable, at) => {
        const file = objectAt(variable, 'valueFrom', 'fileKeyRef');
        if (file === undefined) return;
        const name = stringAt(file, 'volumeName');
        const where = `${at}.valueFrom.fileKeyRef.volumeName`;
        const volume = volumes.findLast((one) => stringAt(one, 'name') === name);
        if (volume === undefined) found.push(fieldNotFound(where, name));
        else if (objectAt(volume, 'emptyDir') === undefined) {
          found.push(invalidValue(where, name, 'referenced volume must be of type emptyDir'));
        }
      });
    });
  }
}

function checkEnvFrom(found: Findings, path: string, sources: readonly JsonValue[]): void {
  eachObject(sources, path, (source, at) => {
    const prefix = stringAt(source, 'prefix');
    if (prefix !== '') invalidEach(found, `${at}.prefix`, prefix, envNameErrors(prefix));
    const present = ['configMapRef', 'secretRef'].filter((field) => source[field] !== undefined);
    for (const field of present) {
      const name = stringAt(source, field, 'name');
      if (name === '') found.push(required(`${at}.${field}.name`));
      else invalidEach(found, `${at}.${field}.name`, name, dnsSubdomainErrors(name));
    }
    if (present.length === 0) {
      const text = 'must specify one of: `configMapRef` or `secretRef`';
      found.push(invalidValue(path, '', text));
    } else if (present.length > 1) {
      const text = 'may not have more than one field specified at a time';
      found.push(invalidValue(path, '', text));
    }
  });
}

function checkMounts(found: Findings, path: string, container: JsonObject, scope: PodScope): void {
  const paths = new Set<string>();
  const devices = listAt(container, 'volumeDevices');
  eachObject(listAt(container, 'volumeMounts'), path, (mount, at) => {
    const name = stringAt(mount, 'name');
    if (name === '') found.push(required(`${at}.name`));
    if (!scope.volumes.has(name)) found.push(fieldNotFound(`${at}.name`, name));
    const mountPath = stringAt(mount, 'mountPath');
    if (mountPath === '') found.push(required(`${at}.mountPath`));
    if (paths.has(mountPath)) {
      found.push(invalidValue(`${at}.mountPath`, mountPath, 'must be unique'));
    }
    paths.add(mountPath);
    if (devices.some((device) => stringAt(device, 'name') === name)) {
      found.push(invalidValue(`${at}.name`, name, `${TAKEN} in volumeDevices`));
    }
    if (devices.some((device) => stringAt(device, 'devicePath') === mountPath)) {
      found.push(invalidValue(`${at}.mountPath`, mountPath, `${TAKEN} as a path in volumeDevices`));
    }
    checkDescendingPath(found, `${path}.subPath`, stringAt(mount, 'subPath'));
    checkDescendingPath(found, `${path}.subPathExpr`, stringAt(mount, 'subPathExpr'));
    if (stringAt(mount, 'subPathExpr') !== '' && stringAt(mount, 'subPath') !== '') {
      const text = 'subPathExpr and subPath are mutually exclusive';
      found.push(invalidValue(`${at}.subPathExpr`, stringAt(mount, 'subPathExpr'), text));
    }
    checkPropagation(found, `${path}.mountPropagation`, mount['mountPropagation'], container);
    checkRecursion(found, `${path}.recursiveReadOnly`, mount);
  });
}

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];

function checkPropagation(
  found: Findings,
  path: string,
  mode: JsonValue | undefined,
  container: JsonObject,
): void {
  if (typeof mode !== 'string') return;
  if (!PROPAGATIONS.includes(mode)) found.push(notSupported(path, mode, PROPAGATIONS));
  const isPrivileged = objectAt(container, 'securityContext')?.['privileged'] === true;
  if (mode !== 'Bidirectional' || isPrivileged) return;
  const text = 'Bidirectional mount propagation is available only to privileged containers';
  found.push(forbiddenField(path, text));
}

const RECURSIONS = ['Disabled', 'Enabled', 'IfPossible'];

function checkRecursion(found: Findings, path: string, mount: JsonObject): void {
  const mode = mount['recursiveReadOnly'];
  if (typeof mode !== 'string' || mode === 'Disabled') return;
  if (!RECURSIONS.includes(mode)) {
    found.push(notSupported(path, mode, RECURSIONS));
    return;
  }
  if (mount['readOnly'] !== true) {
    found.push(forbiddenField(path, 'may only be specified when readOnly is true'));
  }
  if ((mount['mountPropagation'] ?? 'None') === 'None') return;
  const text = 'may only be specified when mountPropagation is None or not specified';
  found.push(forbiddenField(path, text));
}

function checkLifecycle(
  found: Findings,
  path: string,
  lifecycle: JsonObject | undefined,
  { graceSeconds }: PodScope,
): void {
  for (const field of ['postStart', 'preStop']) {
    const handler = objectAt(lifecycle, field);
    if (handler === undefined) continue;
    checkHandler(found, `${path}.${field}`, handler);
    const sleep = objectAt(handler, 'sleep');
    if (sleep === undefined || graceSeconds === null || Object.keys(handler).length > 1) continue;
    const seconds = numberAt(sleep, 'seconds');
    if (seconds >= 0 && seconds <= graceSeconds) continue;
    const most = `terminationGracePeriodSeconds (${graceSeconds})`;
    const text = `must be non-negative and less than ${most}`;
    found.push(invalidValue(`${path}.${field}.sleep`, seconds, text));
  }
}

function checkProbe(found: Findings, path: string, kind: string, container: JsonObject): void {
  const probe = objectAt(container, kind);
  if (probe === undefined) return;
  checkHandler(found, path, probe);
  for (const field of PROBE_COUNTS) nonNegative(found, `${path}.${field}`, probe[field]);
  const grace = probe['terminationGracePeriodSeconds'];
  if (isNumber(grace) && grace <= 0) {
    const text = 'must be greater than 0';
    found.push(invalidValue(`${path}.terminationGracePeriodSeconds`, grace, text));
  }
  if (kind === 'readinessProbe') {
    if (grace !== undefined) {
      const text = 'must not be set for readinessProbes';
      found.push(invalidValue(`${path}.terminationGracePeriodSeconds`, grace, text));
    }
  } else if (probe['successThreshold'] !== 1) {
    found.push(invalidValue(`${path}.successThreshold`, probe['successThreshold'], 'must be 1'));
  }
}

function checkHandler(found: Findings, path: string, handler: JsonObject): void {
  const present = HANDLERS.filter((field) => handler[field] !== undefined);
  for (const [index, field] of present.entries()) {
    const at = `${path}.${field}`;
    if (index > 0) found.push(forbiddenField(at, 'may not specify more than 1 handler type'));
    else if (field === 'exec') {
      if (listAt(handler, 'exec', 'command').length === 0) found.push(required(`${at}.command`));
    } else if (field === 'httpGet') checkHttpGet(found, at, objectAt(handler, 'httpGet') ?? {});
    else if (field === 'tcpSocket') checkPort(found, `${at}.port`, handler, 'tcpSocket');
    else if (field === 'grpc') checkPort(found, `${at}.port`, handler, 'grpc');
  }
  if (present.length === 0) found.push(required(path, 'must specify a handler type'));
}

function checkHttpGet(found: Findings, path: string, action: JsonObject): void {
  if (stringAt(action, 'path') === '') found.push(required(`${path}.path`));
  checkPortReference(found, `${path}.port`, action['port']);
  oneOf(found, `${path}.scheme`, action['scheme'], ['HTTP', 'HTTPS']);
  for (const header of listAt(action, 'httpHeaders')) {
    const name = stringAt(header, 'name');
    if (/^[-A-Za-z0-9]+$/.test(name)) continue;
    const text =
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. " +
      "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
    found.push(invalidValue(`${path}.httpHeaders`, name, text));
  }
}

function checkPort(found: Findings, path: string, handler: JsonObject, field: string): void {
  checkPortReference(found, path, objectAt(handler, field)?.['port']);
}

/** A port by number or by name. */
export function checkPortReference(
  found: Findings,
  path: string,
  port: JsonValue | undefined,
): void {
  if (typeof port === 'string') invalidEach(found, path, port, portNameErrors(port));
  else {
    const number = typeof port === 'number' ? port : 0;
    invalidEach(found, path, number, portNumberErrors(number));
  }
}

/** Images of pods, though not of templates, may not have space around them. */
export function checkImageSpaces(
  found: Findings,
  path: string,
  containers: readonly JsonValue[],
): void {
  eachObject(containers, path, (container, at) => {
    checkImageSpace(found, at, container);
  });
}

/** The same of one container. */
export function checkImageSpace(found: Findings, path: string, container: JsonObject): void {
  const image = stringAt(container, 'image');
  if (image === image.trim()) return;
  const text = 'must not have leading or trailing whitespace';
  found.push(invalidValue(`${path}.image`, image, text));
}
