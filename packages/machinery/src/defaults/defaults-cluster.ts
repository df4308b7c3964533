/**
 * Defaults of the groups that configure a cluster: admission, access, network, storage, fairness.
 */

import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import type { DefaultRules } from './default-rules.ts';

const WEBHOOK = {
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  namespaceSelector: {},
  objectSelector: {},
  timeoutSeconds: 10,
};
const MATCH = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };
const RBAC = 'rbac.authorization.k8s.io';
const SERVICE_PORT = { values: { port: 443 } };

export const ADMISSION_DEFAULTS: DefaultRules = {
  'admissionregistration.v1.ValidatingWebhook': { values: WEBHOOK },
  'admissionregistration.v1.MutatingWebhook': {
    values: { ...WEBHOOK, reinvocationPolicy: 'Never' },
  },
  'admissionregistration.v1.RuleWithOperations': { values: { scope: '*' } },
  'admissionregistration.v1.NamedRuleWithOperations': { values: { scope: '*' } },
  'admissionregistration.v1.ServiceReference': SERVICE_PORT,
  'admissionregistration.v1.ValidatingAdmissionPolicySpec': { values: { failurePolicy: 'Fail' } },
  'admissionregistration.v1.MutatingAdmissionPolicySpec': { values: { failurePolicy: 'Fail' } },
  'admissionregistration.v1.MatchResources': { values: MATCH },
  'apiextensions.v1.CustomResourceDefinition': { step: rememberStoredVersion },
  'apiextensions.v1.CustomResourceDefinitionSpec': { values: { conversion: { strategy: 'None' } } },
  'apiextensions.v1.ServiceReference': SERVICE_PORT,
  'apiregistration.v1.ServiceReference': SERVICE_PORT,
  'authentication.v1.TokenRequestSpec': { values: { expirationSeconds: 3600 } },
  'discovery.v1.EndpointPort': { values: { name: '', protocol: 'TCP' } },
  'flowcontrol.v1.FlowSchemaSpec': { values: { matchingPrecedence: 1000 } },
  'flowcontrol.v1.ExemptPriorityLevelConfiguration': {
    values: { nominalConcurrencyShares: 0, lendablePercent: 0 },
  },
  'flowcontrol.v1.LimitedPriorityLevelConfiguration': {
    values: { nominalConcurrencyShares: 30, lendablePercent: 0 },
  },
  'flowcontrol.v1.QueuingConfiguration': {
    values: { queues: 64, handSize: 8, queueLengthLimit: 50 },
  },
  'networking.v1.NetworkPolicyPort': { values: { protocol: 'TCP' } },
  'networking.v1.NetworkPolicySpec': { step: defaultPolicyTypes },
  'networking.v1.IngressClassParametersReference': { values: { scope: 'Cluster' } },
  'rbac.v1.RoleRef': { values: { apiGroup: RBAC } },
  'rbac.v1.Subject': {
    step: (subject) => {
      const kind = stringAt(subject, 'kind');
      if (kind === 'User' || kind === 'Group') subject['apiGroup'] ??= RBAC;
    },
  },
  'resource.v1.ExactDeviceRequest': { step: countDevices },
  // with a class it is what v1 has in `exactly`
  'resource.v1beta1.DeviceRequest': {
    step: (request) => {
      if (stringAt(request, 'deviceClassName') !== '') countDevices(request);
    },
  },
  'resource.v1.DeviceSubRequest': { step: countDevices },
  'resource.v1alpha3.ResourcePoolStatusRequestSpec': { values: { limit: 100 } },
  'resource.v1.DeviceToleration': { values: { operator: 'Equal' } },
  'scheduling.v1.PriorityClass': { values: { preemptionPolicy: 'PreemptLowerPriority' } },
  'storage.v1.StorageClass': {
    values: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
  },
  'storage.v1.CSIDriverSpec': {
    values: {
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent'],
      requiresRepublish: false,
      seLinuxMount: false,
    },
  },
};

function rememberStoredVersion(definition: JsonObject): void {
  const names = objectAt(definition, 'spec', 'names');
  const kind = stringAt(names, 'kind');
  if (names !== undefined && kind !== '') {
    names['singular'] ??= kind.toLowerCase();
    names['listKind'] ??= `${kind}List`;
  }
  const status = objectAt(definition, 'status') ?? {};
  if (listAt(status, 'storedVersions').length > 0) return;
  for (const version of listAt(definition, 'spec', 'versions')) {
    if (objectAt(version)?.['storage'] !== true) continue;
    status['storedVersions'] = [stringAt(version, 'name')];
    break;
  }
  definition['status'] = status;
}

function defaultPolicyTypes(spec: JsonObject): void {
  if (listAt(spec, 'policyTypes').length > 0) return;
  spec['policyTypes'] = listAt(spec, 'egress').length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
}

function countDevices(request: JsonObject): void {
  request['allocationMode'] ??= 'ExactCount';
  if (request['allocationMode'] === 'ExactCount') request['count'] ??= 1;
}
