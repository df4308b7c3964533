/** PodSecurity: namespaces say by their labels what pods in them may do. */
import { ownMember } from '@megaplane/base/members';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { aggregate, fieldErrorText, type FieldError } from '@megaplane/machinery/fielderrors';
import { invalid, type Status } from '@megaplane/machinery/status';
import type { Call } from '../../request/call.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { followChanges } from '../../storage/follow.ts';
import { findServed, rangeOf } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import { violationsOf, type PodShape } from './pod-security-checks.ts';
import { PodSecurityCounts, type Judged } from './pod-security-counts.ts';
import {
  compareLevels,
  exemptWarning,
  isFullyPrivileged,
  isSame,
  minorOf,
  OPEN_SETTINGS,
  OPEN,
  policiesOf,
  policyText,
  type PodSecuritySettings,
  type Policies,
  type Policy,
} from './pod-security-policy.ts';
import { refuse } from '../../registry/rest/refusal.ts';
import { readNamespace } from '../../lister/stored-namespaces.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin, Request } from '../admission-plugin.ts';

const PREFIX = 'pod-security.kubernetes.io/';
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
/** Ways into the spec of a pod beside the pod itself. */
const SUBRESOURCES: ReadonlySet<string> = new Set(['', 'ephemeralcontainers', 'resize']);

function judge(pod: PodShape, policy: Policy): string {
  return violationsOf(pod, policy.level, minorOf(policy));
}

function shapeOf(holder: JsonObject): PodShape {
  return {
    metadata: objectAt(holder, 'metadata') ?? {},
    spec: objectAt(holder, 'spec') ?? {},
  };
}

/** Namespaces whose policies are known; beyond it all are forgotten. */
const NAMESPACES_MAX = 100_000;

interface NamespaceView {
  readonly policies: Policies;
  readonly faults: readonly FieldError[];
}

/** Policies by namespace, forgotten when any namespace changes. */
class KnownPolicies {
  readonly #defaults: Policies;
  readonly #worlds = new WeakMap<World, Map<string, NamespaceView | null>>();

  constructor(defaults: Policies) {
    this.#defaults = defaults;
  }

  /** Null where nothing is to be checked. */
  of(world: World, namespace: string): NamespaceView | null {
    let own = this.#worlds.get(world);
    if (own === undefined) {
      const made = new Map<string, NamespaceView | null>();
      own = made;
      this.#worlds.set(world, made);
      const served = findServed('', 'v1', 'namespaces');
      if (served !== undefined) {
        followChanges(world.storage, rangeOf(served, ''), () => made.clear());
      }
    }
    let view = own.get(namespace);
    if (view === undefined) {
      const labels = objectAt(readNamespace(world, namespace) ?? {}, 'metadata', 'labels') ?? {};
      const found = policiesOf(labels, this.#defaults);
      view = found.faults.length === 0 && isFullyPrivileged(found.policies) ? null : found;
      if (own.size >= NAMESPACES_MAX) own.clear();
      own.set(namespace, view);
    }
    return view;
  }
}

/** The plugin as its configuration wants it. */
export function podSecurity(
  settings: PodSecuritySettings = OPEN_SETTINGS,
  counts: PodSecurityCounts = new PodSecurityCounts(),
): AdmissionPlugin {
  const known = new KnownPolicies(settings.defaults);
  return {
    name: 'PodSecurity',
    repeats: ({ world, call }) => {
      const view = known.of(world, call.info.namespace);
      return view === null || !mayOnlyBeNoted(view.policies);
    },
    repeated: (request) => countRepeated(request, settings, known, counts),
    handles: ({ resource }, operation, subresource) => {
      const { name } = resource.storage;
      if (operation !== 'CREATE' && operation !== 'UPDATE') return false;
      if (name === 'pods') return SUBRESOURCES.has(subresource);
      return (
        subresource === '' && (name === 'namespaces' || ownMember(TEMPLATES, name) !== undefined)
      );
    },
    validate: (write) => {
      const { served, object, world, call } = write;
      const { name } = served.resource.storage;
      if (object === null) return null;
      if (name === 'namespaces') return checkNamespace(write, object, settings);
      const { namespace } = call.info;
      const why = exemptionOf(call, settings);
      if (why !== '') return exempt(write, why, counts);
      const view = known.of(world, namespace);
      const isPod = name === 'pods';
      if (view === null) {
        if (!isPod) return null;
        counts.evaluated('allow', 'enforce', OPEN, judgedOf(write));
        if (call.record !== null) call.annotate(`${PREFIX}enforce-policy`, policyText(OPEN));
        return null;
      }
      const holder = isPod ? object : objectAt(object, ...(ownMember(TEMPLATES, name) ?? []));
      if (holder === undefined || (isPod && isInsignificant(write))) return null;
      if (settings.runtimeClasses.has(stringAt(holder, 'spec', 'runtimeClassName'))) {
        return exempt(write, 'runtimeClass', counts);
      }
      return checkPod(write, shapeOf(holder), view, isPod ? 'pod' : 'template', counts);
    },
  };
}

/** Pods may break what is only noted: writes of which nobody is told, and that count. */
function mayOnlyBeNoted({ enforce, audit, warn }: Policies): boolean {
  return audit.level !== 'privileged' && !isSame(audit, enforce) && !isSame(audit, warn);
}

/** A write that was taken as admitted: it passed what is enforced, and nothing was to be told. */
function countRepeated(
  { world, call, served }: Request,
  settings: PodSecuritySettings,
  known: KnownPolicies,
  counts: PodSecurityCounts,
): void {
  const kind = served.resource.storage.name;
  if (kind !== 'pods') return;
  const isNew = call.exchange.method === 'POST';
  const { namespace, subresource } = call.info;
  const write = { operation: isNew ? 'CREATE' : 'UPDATE', kind, subresource };
  if (exemptionOf(call, settings) !== '') {
    counts.exempted(write);
    return;
  }
  const view = known.of(world, namespace);
  // of what is repeated, updates change nothing that is judged
  if (view === null || isNew) {
    counts.evaluated('allow', 'enforce', view?.policies.enforce ?? OPEN, write);
  }
}

function judgedOf({ operation, served, subresource, call }: Admitted): Judged | null {
  if (call.isRehearsal) return null;
  return { operation, kind: served.resource.storage.name, subresource };
}

/** Why whoever asks, or where they ask, is not judged; '' where it is. */
function exemptionOf(call: Call, settings: PodSecuritySettings): string {
  if (settings.namespaces.has(call.info.namespace)) return 'namespace';
  return settings.usernames.has(call.identity.user) ? 'user' : '';
}

function exempt(write: Admitted, why: string, counts: PodSecurityCounts): null {
  counts.exempted(judgedOf(write));
  write.call.annotate(`${PREFIX}exempt`, why);
  return null;
}

function imageOf(container: JsonValue | undefined): string {
  return stringAt(container, 'image');
}

/** Of what may change in a pod, images alone are looked at again. */
function isInsignificant({ operation, object, previous }: Admitted): boolean {
  if (operation !== 'UPDATE') return false;
  const lists = (field: string): readonly [readonly JsonValue[], readonly JsonValue[]] => [
    listAt(previous, 'spec', field),
    listAt(object, 'spec', field),
  ];
  const areFixed = ['containers', 'initContainers'].every((field) => {
    const [before, after] = lists(field);
    return (
      before.length === after.length &&
      after.every((one, index) => imageOf(one) === imageOf(before[index]))
    );
  });
  const [before, after] = lists('ephemeralContainers');
  return (
    areFixed &&
    after.every((one) => {
      const old = before.find((other) => stringAt(other, 'name') === stringAt(one, 'name'));
      return old !== undefined && imageOf(old) === imageOf(one);
    })
  );
}

function checkPod(
  write: Admitted,
  pod: PodShape,
  { policies, faults }: NamespaceView,
  sort: 'pod' | 'template',
  counts: PodSecurityCounts,
): Status | null {
  const { call } = write;
  const { enforce, audit, warn } = policies;
  const isEnforced = sort === 'pod';
  const judged = judgedOf(write);
  if (faults.length > 0) {
    const text = aggregate(faults.map(fieldErrorText));
    call.annotate(`${PREFIX}error`, `Failed to parse policy: ${text}`);
    counts.unclear(judged);
  }
  const violations = isEnforced ? judge(pod, enforce) : '';
  if (isEnforced) {
    call.annotate(`${PREFIX}enforce-policy`, policyText(enforce));
    counts.evaluated(violations === '' ? 'allow' : 'deny', 'enforce', enforce, judged);
  }
  const would = (policy: Policy, why: string): string =>
    `would violate PodSecurity "${policyText(policy)}": ${why}`;
  const noted = judge(pod, audit);
  if (noted !== '') {
    call.annotate(`${PREFIX}audit-violations`, would(audit, noted));
    counts.evaluated('deny', 'audit', audit, judged);
  }
  if (violations !== '') {
    const text = `violates PodSecurity "${policyText(enforce)}": ${violations}`;
    return refuse(write, text);
  }
  const warned = judge(pod, warn);
  if (warned !== '') {
    call.warn(would(warn, warned));
    counts.evaluated('deny', 'warn', warn, judged);
  }
  return null;
}

function checkNamespace(
  write: Admitted,
  namespace: JsonObject,
  settings: PodSecuritySettings,
): Status | null {
  const { defaults } = settings;
  const name = stringAt(namespace, 'metadata', 'name');
  const labels = objectAt(namespace, 'metadata', 'labels') ?? {};
  const { policies, faults } = policiesOf(labels, defaults);
  const ignored = (): void => {
    const text = exemptWarning(name, labels, policies, defaults);
    if (text !== '') write.call.warn(text);
  };
  const isExempt = settings.namespaces.has(name);
  const texts = (all: readonly FieldError[]): JsonValue => all.map(fieldErrorText);
  if (write.previous === null) {
    if (faults.length > 0) return invalid({ group: '', name: 'Namespace' }, name, faults);
    if (isExempt) ignored();
    return null;
  }
  const before = policiesOf(objectAt(write.previous, 'metadata', 'labels') ?? {}, defaults);
  if (faults.length > 0 && !equals(texts(faults), texts(before.faults))) {
    return invalid({ group: '', name: 'Namespace' }, name, faults);
  }
  const [next, previous] = [policies.enforce, before.policies.enforce];
  const isRelaxed =
    next.version === previous.version && compareLevels(next.level, previous.level) < 1;
  if (isSame(next, previous) || next.level === 'privileged' || isRelaxed) return null;
  if (isExempt) ignored();
  else warnOfExisting(write, name, next, settings);
  return null;
}

/** Pods that run already are left alone; who tightens a level hears which would not start again. */
function warnOfExisting(
  { world, call }: Admitted,
  namespace: string,
  policy: Policy,
  { runtimeClasses }: PodSecuritySettings,
): void {
  const served = findServed('', 'v1', 'pods');
  if (served === undefined) return;
  const { start, end } = rangeOf(served, namespace);
  const byText = new Map<string, string[]>();
  let seen = 0;
  world.storage.page(start, end, 0, (one) => {
    const pod = decodeRow(served, one, one.modRevision);
    if (runtimeClasses.has(stringAt(pod, 'spec', 'runtimeClassName'))) return true;
    const text = reasonsOf(judge(shapeOf(pod), policy));
    if (text !== '') {
      const names = byText.get(text) ?? [];
      names.push(stringAt(pod, 'metadata', 'name'));
      byText.set(text, names);
    }
    return ++seen < EXISTING_MAX;
  });
  if (byText.size === 0) return;
  call.warn(
    `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity ` +
      `enforce level ${JSON.stringify(policyText(policy))}`,
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
