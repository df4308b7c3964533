/** The apps group and its elder sister, the replication controller. */

import { ownMember } from '@megaplane/base/members';
import {
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
} from '../../meta/fielderrors.ts';
import { goForm, selectorForm, sortedMap } from '../../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import { isNumber, isObject, type JsonObject } from '../../json/json-value.ts';
import { escapedJson } from '../../json/quoting.ts';
import { checkClaimSpec } from '../pod/validation-claims.ts';
import {
  checkAnnotations,
  LABEL_NAME,
  WHOLE_SUBDOMAIN_NAME,
} from '../field/validation-metadata.ts';
import { checkNotes, checkPodTemplate } from '../pod/validation-pods.ts';
import {
  checkDnsLabel,
  checkLabels,
  checkIntOrPercent,
  checkSelector,
  eachObject,
  immutable,
  isSame,
  nonNegative,
  type Findings,
} from '../field/validation-rules.ts';
import {
  checkCounts,
  DAEMON_SET_COUNTS,
  DEPLOYMENT_COUNTS,
  REPLICA_SET_COUNTS,
  STATEFUL_SET_COUNTS,
} from './validation-workload-status.ts';
import type { RuleTable } from '../field/rule-table.ts';

const MISMATCH = '`selector` does not match template `labels`';
const STATEFUL_TEXT =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', " +
  "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and " +
  "'minReadySeconds' are forbidden";

export const WORKLOAD_RULES: RuleTable = {
  'deployments.apps': {
    create: checkDeployment,
    change: keepSelector,
    subresources: { status: checkCounts.bind(null, DEPLOYMENT_COUNTS) },
  },
  'replicasets.apps': {
    create: checkReplicaSet,
    change: keepSelector,
    subresources: { status: checkCounts.bind(null, REPLICA_SET_COUNTS) },
  },
  'daemonsets.apps': {
    create: checkDaemonSet,
    update: (found, next, previous) => {
      keepSelector(found, next, previous);
      checkDaemonSet(found, next);
    },
    subresources: { status: checkCounts.bind(null, DAEMON_SET_COUNTS) },
  },
  'statefulsets.apps': {
    name: LABEL_NAME,
    create: (found, set) => checkStatefulSet(found, set, true),
    update: (found, next, previous) => {
      checkStatefulSet(found, next, false);
      changeStatefulSet(found, next, previous);
    },
    subresources: { status: checkCounts.bind(null, STATEFUL_SET_COUNTS) },
  },
  'controllerrevisions.apps': {
    create: (found, revision) => checkRevision(found, revision, true),
    update: (found, next, previous) => {
      checkRevision(found, next, false);
      if (isSame(next['data'], previous['data'])) return;
      // what is raw in Go is printed as the JSON that it is
      const data = printed(escapedJson(next['data'] ?? null));
      found.push(invalidValue('data', data, 'field is immutable'));
    },
  },
  replicationcontrollers: {
    subresources: { status: checkCounts.bind(null, REPLICA_SET_COUNTS) },
    name: WHOLE_SUBDOMAIN_NAME,
    create: checkReplicationController,
  },
};

function specOf(object: JsonObject): JsonObject {
  return objectAt(object, 'spec') ?? {};
}

function keepSelector(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [specOf(next)['selector'], specOf(previous)['selector']];
  immutable(found, 'spec.selector', selectorForm(after), selectorForm(before));
}

/** True if a `LabelSelector` matches; an unreadable one matches nothing. */
export function selectorMatches(selector: JsonObject, labels: JsonObject): boolean {
  const wanted = Object.entries(objectAt(selector, 'matchLabels') ?? {});
  if (wanted.some(([key, value]) => ownMember(labels, key) !== value)) return false;
  return listAt(selector, 'matchExpressions').every((requirement) => {
    const key = stringAt(requirement, 'key');
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    const isIn = value !== undefined && listAt(requirement, 'values').includes(value);
    const operator = stringAt(requirement, 'operator');
    if (operator === 'In') return isIn;
    if (operator === 'NotIn') return !isIn;
    return operator === 'Exists' ? value !== undefined : value === undefined;
  });
}

/** What a kind of workload says of its selector. */
interface SelectorTexts {
  readonly empty: string;
  /** Of a selector that cannot be read; the template is not looked at then. */
  readonly unreadable: string;
}

/** The selector, which must be there and readable, and the template that it must match. */
function checkSelected(
  found: Findings,
  spec: JsonObject,
  texts: SelectorTexts,
  checkTemplate: () => void,
): void {
  const selector = objectAt(spec, 'selector');
  if (selector === undefined) found.push(required('spec.selector'));
  const before = found.length;
  checkSelector(found, 'spec.selector', selector);
  const isReadable = found.length === before;
  if (selector !== undefined && isEmptySelector(selector)) {
    found.push(invalidValue('spec.selector', {}, texts.empty));
  } else if (!isReadable) {
    found.push(invalidValue('spec.selector', selectorForm(selector), texts.unreadable));
    return;
  } else checkMatch(found, spec, selector);
  checkTemplate();
}

function isEmptySelector(selector: JsonObject): boolean {
  const labels = Object.keys(objectAt(selector, 'matchLabels') ?? {});
  return labels.length + listAt(selector, 'matchExpressions').length === 0;
}

/** No selector at all matches nothing. */
function checkMatch(found: Findings, spec: JsonObject, selector: JsonObject | undefined): void {
  checkTemplateLabels(found, spec, (labels) => {
    return selector !== undefined && selectorMatches(selector, labels);
  });
}

function checkTemplateLabels(
  found: Findings,
  spec: JsonObject,
  isMatch: (labels: JsonObject) => boolean,
): void {
  const labels = objectAt(spec, 'template', 'metadata', 'labels');
  if (isMatch(labels ?? {})) return;
  const value = labels === undefined ? printed('null') : sortedMap(labels);
  found.push(invalidValue('spec.template.metadata.labels', value, MISMATCH));
}

const REPLICA_TEXTS: SelectorTexts = {
  empty: 'empty selector is invalid for deployment',
  unreadable: 'invalid label selector',
};
const STATEFUL_TEXTS: SelectorTexts = {
  empty: 'empty selector is invalid for statefulset',
  unreadable: '',
};

/** A template, and that its pods live as long as the workload wants them to. */
function checkTemplate(found: Findings, spec: JsonObject, kind: string): void {
  checkPodTemplate(found, 'spec.template', objectAt(spec, 'template') ?? {});
  checkLifetime(found, spec, kind);
}

function checkLifetime(found: Findings, spec: JsonObject, kind: string): void {
  const template = objectAt(spec, 'template') ?? {};
  const policy = stringAt(template, 'spec', 'restartPolicy');
  if (policy !== 'Always') {
    found.push(notSupported('spec.template.spec.restartPolicy', policy, ['Always']));
  }
  if (objectAt(template, 'spec')?.['activeDeadlineSeconds'] === undefined) return;
  const text = `activeDeadlineSeconds in ${kind} is not Supported`;
  found.push(forbiddenField('spec.template.spec.activeDeadlineSeconds', text));
}

function checkDeployment(found: Findings, deployment: JsonObject): void {
  const spec = specOf(deployment);
  nonNegative(found, 'spec.replicas', spec['replicas']);
  checkSelected(found, spec, REPLICA_TEXTS, () => checkTemplate(found, spec, 'ReplicaSet'));
  checkDeploymentStrategy(found, objectAt(spec, 'strategy') ?? {});
  nonNegative(found, 'spec.minReadySeconds', spec['minReadySeconds']);
  nonNegative(found, 'spec.revisionHistoryLimit', spec['revisionHistoryLimit']);
  const deadline = spec['progressDeadlineSeconds'];
  nonNegative(found, 'spec.progressDeadlineSeconds', deadline);
  if (!isNumber(deadline) || deadline > numberAt(spec, 'minReadySeconds')) return;
  const text = 'must be greater than minReadySeconds';
  found.push(invalidValue('spec.progressDeadlineSeconds', deadline, text));
}

function checkDeploymentStrategy(found: Findings, strategy: JsonObject): void {
  const path = 'spec.strategy.rollingUpdate';
  const type = stringAt(strategy, 'type');
  const rolling = objectAt(strategy, 'rollingUpdate');
  if (type === 'Recreate') {
    if (rolling === undefined) return;
    const text = "may not be specified when strategy `type` is 'Recreate'";
    found.push(forbiddenField(path, text));
  } else if (type === 'RollingUpdate') {
    if (rolling === undefined) {
      found.push(required(path, 'this should be defaulted and never be nil'));
    } else checkRollout(found, path, rolling, '`maxSurge`');
  } else {
    const value = goForm('apps.v1.DeploymentStrategy', strategy);
    found.push(notSupported('spec.strategy', value, ['Recreate', 'RollingUpdate']));
  }
}

/** A rollout needs room on one side: pods that may be missing, or pods beyond the number. */
function checkRollout(found: Findings, path: string, rolling: JsonObject, surge: string): void {
  const missing = rolling['maxUnavailable'];
  const before = found.length;
  const unavailable = checkIntOrPercent(found, `${path}.maxUnavailable`, missing);
  const extra = checkIntOrPercent(found, `${path}.maxSurge`, rolling['maxSurge'], Infinity);
  if (unavailable !== 0 || extra !== 0 || found.length > before) return;
  found.push(invalidValue(`${path}.maxUnavailable`, missing, `may not be 0 when ${surge} is 0`));
}

function checkReplicaSet(found: Findings, set: JsonObject): void {
  const spec = specOf(set);
  nonNegative(found, 'spec.replicas', spec['replicas']);
  nonNegative(found, 'spec.minReadySeconds', spec['minReadySeconds']);
  checkSelected(found, spec, REPLICA_TEXTS, () => checkTemplate(found, spec, 'ReplicaSet'));
}

function checkDaemonSet(found: Findings, set: JsonObject): void {
  const spec = specOf(set);
  const selector = objectAt(spec, 'selector');
  const before = found.length;
  checkSelector(found, 'spec.selector', selector);
  const isEmpty = selector !== undefined && isEmptySelector(selector);
  if (found.length === before && !isEmpty) checkMatch(found, spec, selector);
  if (isEmpty) {
    const text = 'empty selector is invalid for daemonset';
    found.push(invalidValue('spec.selector', {}, text));
  }
  checkTemplate(found, spec, 'DaemonSet');
  nonNegative(found, 'spec.minReadySeconds', spec['minReadySeconds']);
  const strategy = objectAt(spec, 'updateStrategy') ?? {};
  const path = 'spec.updateStrategy';
  if (strategy['type'] === 'RollingUpdate') {
    const rolling = objectAt(strategy, 'rollingUpdate');
    if (rolling === undefined) found.push(required(`${path}.rollingUpdate`));
    else checkDaemonRollout(found, `${path}.rollingUpdate`, rolling);
  } else if (strategy['type'] !== 'OnDelete') {
    const value = goForm('apps.v1.DaemonSetUpdateStrategy', strategy);
    found.push(notSupported(path, value, ['RollingUpdate', 'OnDelete']));
  }
  nonNegative(found, 'spec.revisionHistoryLimit', spec['revisionHistoryLimit']);
}

/** A node runs the old pod or the new one; only one of the two numbers may be set. */
function checkDaemonRollout(found: Findings, path: string, rolling: JsonObject): void {
  const unavailable = checkIntOrPercent(found, `${path}.maxUnavailable`, rolling['maxUnavailable']);
  const surge = checkIntOrPercent(found, `${path}.maxSurge`, rolling['maxSurge']);
  if (unavailable !== 0 && surge !== 0) {
    const text = 'may not be set when maxUnavailable is non-zero';
    found.push(invalidValue(`${path}.maxSurge`, rolling['maxSurge'], text));
  } else if (unavailable === 0 && surge === 0) {
    found.push(required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  }
}

/** What cannot change is not looked at again. */
function checkStatefulSet(found: Findings, set: JsonObject, isNew: boolean): void {
  const spec = specOf(set);
  checkStatefulPolicies(found, spec);
  nonNegative(found, 'spec.replicas', spec['replicas']);
  nonNegative(found, 'spec.minReadySeconds', spec['minReadySeconds']);
  const ordinals = objectAt(spec, 'ordinals');
  nonNegative(found, 'spec.ordinals.start', ordinals?.['start']);
  const claims = isNew ? listAt(spec, 'volumeClaimTemplates') : [];
  eachObject(claims, 'spec.volumeClaimTemplates', (claim, at) => {
    checkClaimSpec(found, `${at}.spec`, objectAt(claim, 'spec') ?? {});
  });
  const service = stringAt(spec, 'serviceName');
  if (isNew && service !== '') checkDnsLabel(found, 'spec.serviceName', service);
  const whole = asPodsHaveIt(spec);
  checkSelected(found, spec, STATEFUL_TEXTS, () => {
    checkPodTemplate(found, 'spec.template', objectAt(whole, 'template') ?? {});
    // upstream looks at them once more, without their member in the path
    const metadata = objectAt(whole, 'template', 'metadata');
    checkLabels(found, 'spec.template.labels', objectAt(metadata, 'labels'));
    const annotations = objectAt(metadata, 'annotations');
    checkAnnotations(found, 'spec.template.annotations', annotations);
    const podSpec = objectAt(whole, 'template', 'spec') ?? {};
    checkNotes(found, 'spec.template.annotations', annotations, podSpec);
  });
  checkLifetime(found, spec, 'StatefulSet');
}

/**
 * The template as pods will have it: with volumes made from the claim templates, which containers
 * may mount, and without names, which each pod gets its own of.
 */
function asPodsHaveIt(spec: JsonObject): JsonObject {
  const template = objectAt(spec, 'template') ?? {};
  const podSpec = objectAt(template, 'spec') ?? {};
  const claims = listAt(spec, 'volumeClaimTemplates');
  const names = [...new Set(claims.map((claim) => stringAt(claim, 'metadata', 'name')))];
  const own = listAt(podSpec, 'volumes').filter((item) => !names.includes(stringAt(item, 'name')));
  const made = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const { hostname: _hostname, subdomain: _subdomain, ...rest } = podSpec;
  return { ...spec, template: { ...template, spec: { ...rest, volumes: [...made, ...own] } } };
}

function checkStatefulPolicies(found: Findings, spec: JsonObject): void {
  const policy = stringAt(spec, 'podManagementPolicy');
  if (policy === '') found.push(required('spec.podManagementPolicy'));
  else if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    const text = "must be 'OrderedReady' or 'Parallel'";
    found.push(invalidValue('spec.podManagementPolicy', policy, text));
  }
  const strategy = objectAt(spec, 'updateStrategy') ?? {};
  const rolling = objectAt(strategy, 'rollingUpdate');
  const path = 'spec.updateStrategy';
  if (strategy['type'] === 'RollingUpdate') {
    nonNegative(found, `${path}.rollingUpdate.partition`, rolling?.['partition']);
  } else if (strategy['type'] === 'OnDelete') {
    const text = "only allowed for updateStrategy 'RollingUpdate'";
    const value = goForm('apps.v1.RollingUpdateStatefulSetStrategy', rolling);
    if (rolling !== undefined) found.push(invalidValue(`${path}.rollingUpdate`, value, text));
  } else if (stringAt(strategy, 'type') === '') found.push(required(path));
  else {
    const value = goForm('apps.v1.StatefulSetUpdateStrategy', strategy);
    found.push(invalidValue(path, value, "must be 'RollingUpdate' or 'OnDelete'"));
  }
  const retention = objectAt(spec, 'persistentVolumeClaimRetentionPolicy') ?? {};
  for (const field of ['whenDeleted', 'whenScaled']) {
    const value = stringAt(retention, field);
    if (value === 'Retain' || value === 'Delete') continue;
    const at = `spec.persistentVolumeClaimRetentionPolicy.${field}`;
    found.push(notSupported(at, value, ['Retain', 'Delete']));
  }
}

const STATEFUL_FIELDS = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

function changeStatefulSet(found: Findings, next: JsonObject, previous: JsonObject): void {
  const frozen = (set: JsonObject): JsonObject => {
    const spec = { ...specOf(set) };
    for (const field of STATEFUL_FIELDS) delete spec[field];
    return spec;
  };
  if (!isSame(frozen(next), frozen(previous))) found.push(forbiddenField('spec', STATEFUL_TEXT));
}

function checkRevision(found: Findings, revision: JsonObject, isNew: boolean): void {
  nonNegative(found, 'revision', revision['revision']);
  const data = revision['data'];
  // an update cannot change it, whatever it is
  if (!isNew) return;
  if (data === undefined || data === null) found.push(required('data', 'data is mandatory'));
  else if (!isObject(data)) found.push(required('data', 'data must be a valid JSON object'));
}

function checkReplicationController(found: Findings, controller: JsonObject): void {
  const spec = specOf(controller);
  nonNegative(found, 'spec.minReadySeconds', spec['minReadySeconds']);
  const selector = objectAt(spec, 'selector') ?? {};
  if (Object.keys(selector).length === 0) found.push(required('spec.selector'));
  nonNegative(found, 'spec.replicas', spec['replicas']);
  if (objectAt(spec, 'template') === undefined) {
    found.push(required('spec.template'));
    return;
  }
  checkTemplateLabels(found, spec, (labels) =>
    Object.entries(selector).every(([key, value]) => ownMember(labels, key) === value),
  );
  checkTemplate(found, spec, 'ReplicationController');
}
