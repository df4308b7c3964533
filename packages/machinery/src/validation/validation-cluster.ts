/** Kinds that configure a cluster: access, leases, disruption, priorities, storage, admission. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  notSupportedText,
  required,
} from '../meta/fielderrors.ts';
import { goForm } from '../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { dnsLabelErrors, dnsSubdomainErrors, pathSegmentErrors } from '../meta/names.ts';
import { checkIngress, checkIngressStatus, createIngress } from './network/validation-ingresses.ts';
import { checkConditions } from './field/validation-conditions.ts';
import { checkResources } from './pod/validation-resources.ts';
import { checkSlice } from './network/validation-slices.ts';
import { checkAutoscaler } from './workload/validation-scaling.ts';
import { SEGMENT_NAME } from './field/validation-metadata.ts';
import { checkTolerations } from './pod/validation-pods.ts';
import {
  checkIntOrPercent,
  checkSelector,
  eachObject,
  immutable,
  invalidEach,
  isSame,
  oneOfSet,
  type Findings,
  checkLabels,
  nonNegative,
} from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

const RBAC = 'rbac.authorization.k8s.io';
const USER_PRIORITY_MAX = 1000000000;
const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2000000000,
  'system-node-critical': 2000001000,
};

export const CLUSTER_RULES: RuleTable = {
  'roles.rbac.authorization.k8s.io': {
    name: SEGMENT_NAME,
    create: (found, role) => checkPolicyRules(found, role, true),
  },
  'clusterroles.rbac.authorization.k8s.io': { name: SEGMENT_NAME, create: checkClusterRole },
  'rolebindings.rbac.authorization.k8s.io': {
    name: SEGMENT_NAME,
    create: (found, binding) => checkBinding(found, binding, true),
    change: keepRoleRef,
  },
  'clusterrolebindings.rbac.authorization.k8s.io': {
    name: SEGMENT_NAME,
    create: (found, binding) => checkBinding(found, binding, false),
    change: keepRoleRef,
  },
  'leases.coordination.k8s.io': { create: checkLease, isForeign: true },
  'poddisruptionbudgets.policy': {
    skipsMetadata: true,
    create: checkBudget,
    subresources: { status: (found, next) => checkBudgetStatus(found, next) },
  },
  'priorityclasses.scheduling.k8s.io': {
    create: checkPriority,
    update: keepPriority,
  },
  'runtimeclasses.node.k8s.io': {
    create: checkRuntimeClass,
    isForeign: true,
    change: (found, next, previous) => {
      immutable(found, 'handler', next['handler'], previous['handler']);
    },
  },
  'endpointslices.discovery.k8s.io': {
    create: checkSlice,
    update: (found, next, previous) => {
      checkSlice(found, next, previous);
      immutable(found, 'addressType', next['addressType'], previous['addressType']);
    },
  },
  'horizontalpodautoscalers.autoscaling': {
    create: checkAutoscaler,
    subresources: {
      status: (found, next) => {
        for (const field of ['currentReplicas', 'desiredReplicas']) {
          nonNegative(found, `status.${field}`, objectAt(next, 'status')?.[field]);
        }
      },
    },
  },
  'ingresses.networking.k8s.io': {
    create: createIngress,
    update: checkIngress,
    subresources: { status: checkIngressStatus },
  },
};

function checkPolicyRules(found: Findings, role: JsonObject, isNamespaced: boolean): void {
  eachObject(listAt(role, 'rules'), 'rules', (rule, at) => {
    const urls = listAt(rule, 'nonResourceURLs');
    if (listAt(rule, 'verbs').length === 0) {
      found.push(required(`${at}.verbs`, 'verbs must contain at least one value'));
    }
    const counts = ['apiGroups', 'resources', 'resourceNames'].map(
      (field) => listAt(rule, field).length,
    );
    if (urls.length > 0) {
      const path = `${at}.nonResourceURLs`;
      if (isNamespaced) {
        const text = 'namespaced rules cannot apply to non-resource URLs';
        found.push(invalidValue(path, [...urls], text));
      }
      if (counts.some((count) => count > 0)) {
        const text = 'rules cannot apply to both regular resources and non-resource URLs';
        found.push(invalidValue(path, [...urls], text));
      }
      return;
    }
    if (counts[0] === 0) {
      const text = 'resource rules must supply at least one api group';
      found.push(required(`${at}.apiGroups`, text));
    }
    if (counts[1] === 0) {
      const text = 'resource rules must supply at least one resource';
      found.push(required(`${at}.resources`, text));
    }
  });
}

function checkClusterRole(found: Findings, role: JsonObject): void {
  checkPolicyRules(found, role, false);
  const aggregation = objectAt(role, 'aggregationRule');
  if (aggregation === undefined) return;
  const path = 'aggregationRule.clusterRoleSelectors';
  const selectors = listAt(aggregation, 'clusterRoleSelectors');
  if (selectors.length === 0) {
    const text = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
    found.push(required(path, text));
  }
  eachObject(selectors, path, (selector, at) => {
    const before = found.length;
    checkSelector(found, at, selector);
    // what is wrong in it is told first, and then that it is
    if (found.length > before) found.push(invalidValue(at, null, 'invalid label selector.'));
  });
}

function checkBinding(found: Findings, binding: JsonObject, isNamespaced: boolean): void {
  const group = stringAt(binding, 'roleRef', 'apiGroup');
  if (group !== RBAC) found.push(notSupportedText('roleRef.apiGroup', group, [RBAC]));
  const kinds = isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  const kind = stringAt(binding, 'roleRef', 'kind');
  if (!kinds.includes(kind)) found.push(notSupportedText('roleRef.kind', kind, kinds));
  const name = stringAt(binding, 'roleRef', 'name');
  if (name === '') found.push(required('roleRef.name'));
  else invalidEach(found, 'roleRef.name', name, pathSegmentErrors(name));
  eachObject(listAt(binding, 'subjects'), 'subjects', (subject, at) => {
    checkSubject(found, at, subject, isNamespaced);
  });
}

function checkSubject(
  found: Findings,
  path: string,
  subject: JsonObject,
  isNamespaced: boolean,
): void {
  const name = stringAt(subject, 'name');
  const group = stringAt(subject, 'apiGroup');
  const kind = stringAt(subject, 'kind');
  if (name === '') found.push(required(`${path}.name`));
  if (kind === 'ServiceAccount') {
    if (name !== '') invalidEach(found, `${path}.name`, name, dnsSubdomainErrors(name));
    if (group !== '') found.push(notSupportedText(`${path}.apiGroup`, group, ['']));
    if (!isNamespaced && stringAt(subject, 'namespace') === '') {
      found.push(required(`${path}.namespace`));
    }
  } else if (kind === 'User' || kind === 'Group') {
    if (group !== RBAC) found.push(notSupportedText(`${path}.apiGroup`, group, [RBAC]));
  } else {
    found.push(notSupportedText(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group']));
  }
}

function keepRoleRef(found: Findings, next: JsonObject, previous: JsonObject): void {
  if (isSame(next['roleRef'], previous['roleRef'])) return;
  const { apiGroup, kind, name } = objectAt(next, 'roleRef') ?? {};
  const value = { APIGroup: apiGroup ?? '', Kind: kind ?? '', Name: name ?? '' };
  found.push(invalidValue('roleRef', value, 'cannot change roleRef'));
}

function checkLease(found: Findings, lease: JsonObject): void {
  const spec = objectAt(lease, 'spec') ?? {};
  const duration = spec['leaseDurationSeconds'];
  if (typeof duration === 'number' && duration <= 0) {
    found.push(invalidValue('spec.leaseDurationSeconds', duration, 'must be greater than 0'));
  }
  const transitions = spec['leaseTransitions'];
  if (typeof transitions === 'number' && transitions < 0) {
    const text = 'must be greater than or equal to 0';
    found.push(invalidValue('spec.leaseTransitions', transitions, text));
  }
}

function checkBudget(found: Findings, budget: JsonObject): void {
  const spec = objectAt(budget, 'spec') ?? {};
  if (spec['minAvailable'] !== undefined && spec['maxUnavailable'] !== undefined) {
    const text = 'minAvailable and maxUnavailable cannot be both set';
    found.push(invalidValue('spec', goForm('policy.v1.PodDisruptionBudgetSpec', spec), text));
  }
  checkIntOrPercent(found, 'spec.minAvailable', spec['minAvailable']);
  checkIntOrPercent(found, 'spec.maxUnavailable', spec['maxUnavailable']);
  checkSelector(found, 'spec.selector', objectAt(spec, 'selector'));
  const policies = ['AlwaysAllow', 'IfHealthyBudget'];
  const policy = spec['unhealthyPodEvictionPolicy'];
  if (policy === undefined || (typeof policy === 'string' && policies.includes(policy))) return;
  found.push(notSupported('spec.unhealthyPodEvictionPolicy', policy, policies));
}

const BUDGET_COUNTS = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'];

function checkBudgetStatus(found: Findings, budget: JsonObject): void {
  const status = objectAt(budget, 'status');
  checkConditions(found, 'status.conditions', listAt(status, 'conditions'));
  for (const field of BUDGET_COUNTS) {
    nonNegative(found, `status.${field}`, status?.[field]);
  }
}

function checkPriority(found: Findings, priority: JsonObject): void {
  const name = stringAt(priority, 'metadata', 'name');
  const value = numberAt(priority, 'value');
  if (name.startsWith('system-')) {
    if (ownMember(SYSTEM_PRIORITIES, name) !== value) {
      const text =
        "priority class names with 'system-' prefix are reserved for system use only. error: " +
        `${name} is not a known system priority class`;
      found.push(forbiddenField('metadata.name', text));
    }
  } else if (value > USER_PRIORITY_MAX) {
    const text = `maximum allowed value of a user defined priority is ${USER_PRIORITY_MAX}`;
    found.push(forbiddenField('value', text));
  }
  const policies = ['PreemptLowerPriority', 'Never'];
  const policy = priority['preemptionPolicy'];
  if (policy === '') found.push(required('preemptionPolicy'));
  else oneOfSet(found, 'preemptionPolicy', policy, policies);
}

function keepPriority(found: Findings, next: JsonObject, previous: JsonObject): void {
  if (numberAt(next, 'value') !== numberAt(previous, 'value')) {
    found.push(forbiddenField('value', 'may not be changed in an update.'));
  }
  immutable(found, 'preemptionPolicy', next['preemptionPolicy'], previous['preemptionPolicy']);
}

function checkRuntimeClass(found: Findings, runtimeClass: JsonObject): void {
  const handler = stringAt(runtimeClass, 'handler');
  if (handler === '') found.push(required('handler'));
  else invalidEach(found, 'handler', handler, dnsLabelErrors(handler));
  const overhead = objectAt(runtimeClass, 'overhead', 'podFixed');
  if (overhead !== undefined) checkResources(found, 'overhead', { limits: overhead });
  const scheduling = objectAt(runtimeClass, 'scheduling');
  if (scheduling === undefined) return;
  checkLabels(found, 'scheduling.nodeSelector', objectAt(scheduling, 'nodeSelector'));
  const tolerations = listAt(scheduling, 'tolerations');
  // the path is upstream's, with its member twice
  checkTolerations(found, 'scheduling.tolerations', tolerations);
  const seen = new Set<string>();
  for (const [index, toleration] of tolerations.entries()) {
    const fields = ['key', 'operator', 'value', 'effect'].map((name) => stringAt(toleration, name));
    const key = JSON.stringify(fields);
    if (seen.has(key)) {
      const value = goForm('core.v1.Toleration', toleration);
      found.push(duplicate(`scheduling.tolerations[${index}]`, value));
    }
    seen.add(key);
  }
}
