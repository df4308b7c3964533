/** PodSecurity: namespaces say by their labels what pods in them may do. */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { invalid, type Status } from '@megaplane/machinery/status';
import type { AdmissionPlugin, Admitted } from './admission.ts';
import { decodeRow } from '../encoder.ts';
import { readNamespace } from '../namespaces.ts';
import { followChanges } from '../follow.ts';
import { findServed, rangeOf } from '../served.ts';
import type { World } from '../world.ts';
import { violationsOf, type Level, type PodShape } from './pod-security-checks.ts';
import { refuse } from './refusal.ts';

const PREFIX = 'pod-security.kubernetes.io/';
const LEVELS: readonly string[] = ['privileged', 'baseline', 'restricted'];
/** The minor version that `latest` stands for. */
const LATEST = 36;
/** Pods that a change of a namespace's level is checked against. */
const EXISTING_MAX = 3000;

/** Where pods stand in other kinds. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  replicationcontrollers: ['spec', 'template'],
  podtemplates: ['template'],
  'replicasets.apps': ['spec', 'template'],
  'deployments.apps': ['spec', 'template'],
  'statefulsets.apps': ['spec', 'template'],
  'daemonsets.apps': ['spec', 'template'],
  'jobs.batch': ['spec', 'template'],
  'cronjobs.batch': ['spec', 'jobTemplate', 'spec', 'template'],
};

interface Policy {
  readonly level: Level;
  readonly version: string;
}

type Mode = 'enforce' | 'audit' | 'warn';

/** The policy of a namespace for a mode; a level that is none counts as the strictest. */
function policyOf(labels: JsonObject, mode: Mode): Policy {
  const level = stringAt(labels, PREFIX + mode);
  const version = stringAt(labels, `${PREFIX}${mode}-version`);
  const isKnown = LEVELS.includes(level);
  return {
    level: level === '' ? 'privileged' : isKnown ? (level as Level) : 'restricted',
    version: /^v1\.\d+$/.test(version) ? version : 'latest',
  };
}

function minorOf({ version }: Policy): number {
  return version === 'latest' ? LATEST : Number(version.slice(3));
}

function judge(pod: PodShape, policy: Policy): string {
  return violationsOf(pod, policy.level, minorOf(policy));
}

function nameOf({ level, version }: Policy): string {
  return `"${level}:${version}"`;
}

function shapeOf(holder: JsonObject): PodShape {
  return {
    metadata: objectAt(holder, 'metadata') ?? {},
    spec: objectAt(holder, 'spec') ?? {},
  };
}

/** Namespaces whose labels are known; beyond it all are forgotten. */
const NAMESPACES_MAX = 100_000;

/** Labels by namespace, forgotten when any namespace changes. */
const known = new WeakMap<World, Map<string, JsonObject | null>>();

/** Labels of the namespace, or null where it says nothing of pods. */
function labelsOf(world: World, namespace: string): JsonObject | null {
  let own = known.get(world);
  if (own === undefined) {
    const made = new Map<string, JsonObject | null>();
    own = made;
    known.set(world, made);
    const served = findServed('', 'v1', 'namespaces');
    if (served !== undefined) {
      followChanges(world.storage, rangeOf(served, ''), () => made.clear());
    }
  }
  let labels = own.get(namespace);
  if (labels === undefined) {
    const all = objectAt(readNamespace(world, namespace) ?? {}, 'metadata', 'labels') ?? {};
    labels = Object.keys(all).some((name) => name.startsWith(PREFIX)) ? all : null;
    if (own.size >= NAMESPACES_MAX) own.clear();
    own.set(namespace, labels);
  }
  return labels;
}

export const podSecurity: AdmissionPlugin = {
  name: 'PodSecurity',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) => {
    const { name } = resource.storage;
    if (operation !== 'CREATE' && operation !== 'UPDATE') return false;
    if (name === 'pods') {
      return subresource === 'ephemeralcontainers' || subresource === '';
    }
    return subresource === '' && (name === 'namespaces' || TEMPLATES[name] !== undefined);
  },
  validate: (write) => {
    const { served, object, world, call } = write;
    const { name } = served.resource.storage;
    if (object === null) return null;
    if (name === 'namespaces') return checkNamespace(write, object);
    const labels = labelsOf(world, call.info.namespace);
    if (labels === null) return null;
    if (name === 'pods') {
      return isInsignificant(write) ? null : checkPod(write, shapeOf(object), labels);
    }
    const template = objectAt(object, ...(TEMPLATES[name] ?? []));
    if (template !== undefined) warn(write, shapeOf(template), labels);
    return null;
  },
};

/** Of what may change in a pod, images alone are looked at again. */
function isInsignificant({ operation, subresource, object, previous }: Admitted): boolean {
  if (operation !== 'UPDATE' || subresource !== '') return false;
  return ['containers', 'initContainers', 'ephemeralContainers'].every((field) => {
    const before = listAt(previous ?? {}, 'spec', field);
    const after = listAt(object ?? {}, 'spec', field);
    const image = (one: JsonValue | undefined): string => stringAt(one, 'image');
    return (
      before.length === after.length && after.every((one, at) => image(one) === image(before[at]))
    );
  });
}

function checkPod(write: Admitted, pod: PodShape, labels: JsonObject): Status | null {
  const enforced = policyOf(labels, 'enforce');
  const violations = judge(pod, enforced);
  write.call.annotate(`${PREFIX}enforce-policy`, `${enforced.level}:${enforced.version}`);
  if (violations !== '')
    return refuse(write, `violates PodSecurity ${nameOf(enforced)}: ${violations}`);
  warn(write, pod, labels);
  return null;
}

function warn({ call }: Admitted, pod: PodShape, labels: JsonObject): void {
  const audited = policyOf(labels, 'audit');
  const noted = judge(pod, audited);
  if (noted !== '') {
    const text = `would violate PodSecurity ${nameOf(audited)}: ${noted}`;
    call.annotate(`${PREFIX}audit-violations`, text);
  }
  const policy = policyOf(labels, 'warn');
  const violations = judge(pod, policy);
  if (violations !== '') call.warn(`would violate PodSecurity ${nameOf(policy)}: ${violations}`);
}

function checkNamespace(write: Admitted, namespace: JsonObject): Status | null {
  const labels = objectAt(namespace, 'metadata', 'labels') ?? {};
  const before = objectAt(write.previous ?? {}, 'metadata', 'labels') ?? {};
  const faults = (['enforce', 'audit', 'warn'] as const).flatMap((mode) => {
    const level = stringAt(labels, PREFIX + mode);
    const version = stringAt(labels, `${PREFIX}${mode}-version`);
    const found = [];
    if (level !== '' && !LEVELS.includes(level) && level !== before[PREFIX + mode]) {
      const text = `must be one of ${LEVELS.join(', ')}`;
      found.push(invalidValue(`metadata.labels[${PREFIX}${mode}]`, level, text));
    }
    const isFine = version === '' || version === 'latest' || /^v1\.\d+$/.test(version);
    if (!isFine && version !== before[`${PREFIX}${mode}-version`]) {
      const text = 'must be "latest" or "v1.x"';
      found.push(invalidValue(`metadata.labels[${PREFIX}${mode}-version]`, version, text));
    }
    return found;
  });
  const name = stringAt(namespace, 'metadata', 'name');
  if (faults.length > 0) return invalid({ group: '', name: 'Namespace' }, name, faults);
  const next = policyOf(labels, 'enforce');
  const previous = policyOf(before, 'enforce');
  const isStricter = LEVELS.indexOf(next.level) > LEVELS.indexOf(previous.level);
  const isOther = next.level === previous.level && next.version !== previous.version;
  const isChanged = isStricter || (isOther && next.level !== 'privileged');
  if (write.previous !== null && isChanged) warnOfExisting(write, name, next);
  return null;
}

/** Pods that run already are left alone; who tightens a level hears which would not start again. */
function warnOfExisting({ world, call }: Admitted, namespace: string, policy: Policy): void {
  const served = findServed('', 'v1', 'pods');
  if (served === undefined) return;
  const { start, end } = rangeOf(served, namespace);
  const byText = new Map<string, string[]>();
  let seen = 0;
  world.storage.page(start, end, 0, (one) => {
    const pod = decodeRow(served, one, one.modRevision);
    const text = reasonsOf(judge(shapeOf(pod), policy));
    if (text !== '') {
      const names = byText.get(text) ?? [];
      names.push(stringAt(pod, 'metadata', 'name'));
      byText.set(text, names);
    }
    return ++seen < EXISTING_MAX;
  });
  if (byText.size === 0) return;
  const level = `${policy.level}:${policy.version}`;
  call.warn(
    `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity ` +
      `enforce level ${JSON.stringify(level)}`,
  );
  const lines = Array.from(byText, ([text, names]) => {
    const [first = '', ...others] = names.toSorted();
    if (others.length === 0) return `${first}: ${text}`;
    const word = others.length === 1 ? 'pod' : 'pods';
    return `${first} (and ${others.length} other ${word}): ${text}`;
  });
  for (const line of lines.toSorted()) call.warn(line);
}

/** Reasons without their details. */
function reasonsOf(violations: string): string {
  return violations.replaceAll(/ \((?:[^()"]|"[^"]*")*\)/g, '');
}
