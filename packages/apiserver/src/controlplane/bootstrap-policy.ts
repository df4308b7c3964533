/**
 * The roles and bindings that every cluster begins with, and their upkeep at each start: what a
 * role lacks of its rules or a binding of its subjects is added again, unless an administrator has
 * set `rbac.authorization.kubernetes.io/autoupdate` to `false`. What was added to them stays. A
 * binding to another role is made anew as a whole, as nobody can change the role of a binding.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { findKind } from '@megaplane/machinery/kinds';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf, servedOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import { BOOTSTRAP_POLICY } from '../tables/bootstrap-policy.ts';
import type { World } from '../lister/world.ts';
import { ensure } from '../registry/rest/missing-objects.ts';

const GROUP = 'rbac.authorization.k8s.io';
const AUTOUPDATE = 'rbac.authorization.kubernetes.io/autoupdate';
const LABELS = { 'kubernetes.io/bootstrapping': 'rbac-defaults' } as const;

/** `[kind, name, namespace, labels, labels of roles that it gathers, rules]`. */
type RoleLine = readonly [string, string, string, string[], string[], RuleLine[]];
/** `[verbs, groups, resources, names of objects, paths]`. */
type RuleLine = readonly [string[], string[], string[], string[], string[]];
/** `[kind, name, namespace, kind of the role, its name, subjects]`. */
type BindingLine = readonly [string, string, string, string, string, SubjectLine[]];
type SubjectLine = readonly [kind: string, name: string, namespace: string];

const SCHEDULING = 'scheduling.k8s.io';
const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];
const GROUP_RULES: Readonly<Record<string, readonly RuleLine[]>> = {
  'system:aggregate-to-view': [
    [READ, [SCHEDULING], ['podgroups', 'podgroups/status', 'workloads'], [], []],
  ],
  'system:aggregate-to-edit': [[WRITE, [SCHEDULING], ['podgroups', 'workloads'], [], []]],
  'system:kube-scheduler': [
    [READ, [SCHEDULING], ['podgroups'], [], []],
    [['patch', 'update'], [SCHEDULING], ['podgroups/status'], [], []],
  ],
};

const row = emptyRow();

/** All of them as objects, without defaults. */
export function bootstrapPolicy(): JsonObject[] {
  return BOOTSTRAP_POLICY.trim()
    .split('\n')
    .map((line) => {
      const read = parseJson(line) as unknown as RoleLine | BindingLine;
      return isBinding(read) ? bindingOf(read) : roleOf(withGroups(read));
    });
}

/** With rights to groups of pods where those are served: upstream's gate GenericWorkload. */
function withGroups(line: RoleLine): RoleLine {
  const added = ownMember(GROUP_RULES, line[1]);
  if (added === undefined || findServed(SCHEDULING, 'v1alpha2', 'podgroups') === undefined) {
    return line;
  }
  const [kind, name, namespace, labels, gathered, rules] = line;
  return [kind, name, namespace, labels, gathered, [...rules, ...added]];
}

function isBinding(line: RoleLine | BindingLine): line is BindingLine {
  return line[0].endsWith('Binding');
}

function roleOf([kind, name, namespace, labels, gathered, rules]: RoleLine): JsonObject {
  const own = Object.fromEntries(labels.map((label) => [label, 'true']));
  const gathers = gathered.map((label) => ({ matchLabels: { [label]: 'true' } }));
  return {
    kind,
    apiVersion: `${GROUP}/v1`,
    metadata: metadataOf(name, namespace, own),
    ...(gathers.length === 0 ? {} : { aggregationRule: { clusterRoleSelectors: gathers } }),
    rules: gathers.length > 0 ? null : rules.map(ruleOf),
  };
}

function ruleOf([
  verbs,
  apiGroups,
  resources,
  resourceNames,
  nonResourceURLs,
]: RuleLine): JsonObject {
  return {
    verbs,
    ...(apiGroups.length === 0 ? {} : { apiGroups }),
    ...(resources.length === 0 ? {} : { resources }),
    ...(resourceNames.length === 0 ? {} : { resourceNames }),
    ...(nonResourceURLs.length === 0 ? {} : { nonResourceURLs }),
  };
}

function bindingOf([kind, name, namespace, role, roleName, subjects]: BindingLine): JsonObject {
  return {
    kind,
    apiVersion: `${GROUP}/v1`,
    metadata: metadataOf(name, namespace, {}),
    ...(subjects.length === 0 ? {} : { subjects: subjects.map(subjectOf) }),
    roleRef: { apiGroup: GROUP, kind: role, name: roleName },
  };
}

function subjectOf([kind, name, namespace]: SubjectLine): JsonObject {
  if (kind === 'ServiceAccount') return { kind, name, namespace };
  return { kind, apiGroup: GROUP, name };
}

function metadataOf(name: string, namespace: string, labels: JsonObject): JsonObject {
  return {
    name,
    ...(namespace === '' ? {} : { namespace }),
    labels: { ...LABELS, ...labels },
    annotations: { [AUTOUPDATE]: 'true' },
  };
}

/** Gives the objects that are there back what they have lost. */
export function upkeepPolicy(world: World): void {
  for (const wanted of bootstrapPolicy()) {
    const resource = findKind(stringAt(wanted, 'apiVersion'), stringAt(wanted, 'kind'));
    if (resource === undefined) continue;
    const served = servedOf(resource);
    const namespace = stringAt(wanted, 'metadata', 'namespace');
    const key = keyOf(served, namespace, stringAt(wanted, 'metadata', 'name'));
    if (!world.storage.get(key, row)) continue;
    const revision = row.modRevision;
    const object = decodeRow(served, row, revision);
    if (stringAt(object, 'metadata', 'annotations', AUTOUPDATE) === 'false') continue;
    if (!equals(object['roleRef'], wanted['roleRef'])) {
      world.storage.delete(key, revision, ({ kind }) => {
        if (kind === 'done') ensure(world, wanted);
      });
      continue;
    }
    const mended = mend(object, wanted);
    // whoever writes in between is seen at the next start
    if (mended !== null) world.storage.put(key, encodeCanonical(mended), revision, () => {});
  }
}

/** The object with what it lacks of `wanted`; null where that is nothing. */
function mend(object: JsonObject, wanted: JsonObject): JsonObject | null {
  const rules = listAt(wanted, 'rules').filter((rule) => !isCovered(rule, listAt(object, 'rules')));
  const present = new Set(listAt(object, 'subjects').map((one) => JSON.stringify(sorted(one))));
  const subjects = listAt(wanted, 'subjects').filter(
    (one) => !present.has(JSON.stringify(sorted(one))),
  );
  const metadata = objectAt(object, 'metadata') ?? {};
  const labels = { ...objectAt(metadata, 'labels') };
  const annotations = { ...objectAt(metadata, 'annotations') };
  const isMarked =
    fill(labels, objectAt(wanted, 'metadata', 'labels')) +
    fill(annotations, objectAt(wanted, 'metadata', 'annotations'));
  const gathers = wanted['aggregationRule'];
  const isGathering = gathers === undefined || object['aggregationRule'] !== undefined;
  if (rules.length + subjects.length + isMarked === 0 && isGathering) return null;
  return {
    ...object,
    metadata: { ...metadata, labels, annotations },
    ...(isGathering || gathers === undefined ? {} : { aggregationRule: gathers }),
    ...(rules.length === 0 ? {} : { rules: [...listAt(object, 'rules'), ...rules] }),
    ...(subjects.length === 0 ? {} : { subjects: [...listAt(object, 'subjects'), ...subjects] }),
  };
}

/** Adds members that are missing; gives how many that were. */
function fill(target: JsonObject, wanted: JsonObject | undefined): number {
  let added = 0;
  for (const [name, value] of Object.entries(wanted ?? {})) {
    if (ownMember(target, name) !== undefined) continue;
    putMember(target, name, value);
    added++;
  }
  return added;
}

const PARTS = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const;

/** One of the rules grants all that `rule` does. */
function isCovered(rule: JsonValue, rules: readonly JsonValue[]): boolean {
  return rules.some((one) =>
    PARTS.every((part) => {
      const [needed, has] = [rule, one].map((of) => (isObject(of) ? listAt(of, part) : []));
      if (needed === undefined || has === undefined) return false;
      // no names: all objects
      if (part === 'resourceNames' && has.length === 0) return true;
      if (part === 'resourceNames' && needed.length === 0) return false;
      return has.includes('*') || needed.every((value) => has.includes(value));
    }),
  );
}

function sorted(value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
