/**
 * What is wrong with an object that somebody wants to store: upstream's checks with their texts and
 * field paths.
 *
 * Objects must be in normal form with defaults filled in. Rules hang on storages (`pods`,
 * `deployments.apps`) in the tables of `validation-*.ts`; a kind without an entry has its metadata
 * checked, and its name as a subdomain. /
 */

import { ownMember } from '@megaplane/base/members';
import type { FieldError } from '../meta/fielderrors.ts';
import { objectAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { isStored, type Resource } from '../scheme/kinds.ts';
import { API_SERVICE_RULES } from './validation-apiservices.ts';
import { ADMISSION_RULES } from './validation-admission.ts';
import { DEFINITION_RULES } from '../apiextensions/definition.ts';
import { DEVICE_RULES } from './device/device-rules.ts';
import { BATCH_RULES } from './workload/validation-batch.ts';
import { CERTIFICATE_RULES } from './validation-certificates.ts';
import { CLUSTER_RULES } from './validation-cluster.ts';
import { withoutKnown } from './pod/validation-containers.ts';
import { CORE_RULES } from './validation-core.ts';
import {
  checkMetadata,
  checkMetadataUpdate,
  SEGMENT_NAME,
  SUBDOMAIN_NAME,
} from './field/validation-metadata.ts';
import { EVENT_RULES } from './validation-events.ts';
import { FLOW_RULES } from './validation-flows.ts';
import { LIMIT_RULES } from './validation-limits.ts';
import { NETWORK_CONFIG_RULES } from './network/validation-network-config.ts';
import { NETWORK_POLICY_RULES } from './network/validation-network-policies.ts';
import { POD_RULES } from './pod/validation-pod-update.ts';
import type { Findings } from './field/validation-rules.ts';
import { SCHEDULING_RULES } from './workload/validation-scheduling.ts';
import { SERVICE_RULES } from './network/validation-services.ts';
import { STORAGE_RULES } from './validation-storage.ts';
import { WORKLOAD_RULES } from './workload/validation-workloads.ts';
import type { KindRules, RuleTable } from './field/rule-table.ts';

/**
 * How upstream's validation of an update looks at metadata besides the check of all kinds: as at
 * what changes, as at that of a new object (then its kind's rules follow at once), or both in an
 * order. Causes list a finding as often. `kept` is where what must not change is looked at, the end
 * where it is not named.
 */
type MetadataLooks = readonly ('change' | 'whole' | 'kept')[];
const NONE: MetadataLooks = [];
const CHANGE: MetadataLooks = ['change'];
const WHOLE: MetadataLooks = ['whole'];
const CHANGE_WHOLE: MetadataLooks = ['change', 'whole'];
const CHANGE_KEPT_WHOLE: MetadataLooks = ['change', 'kept', 'whole'];
const WHOLE_CHANGE: MetadataLooks = ['whole', 'change'];

/** Kinds without an entry are looked at as at what changes. */
const LOOKS: Readonly<Record<string, MetadataLooks>> = {
  configmaps: CHANGE_KEPT_WHOLE,
  secrets: CHANGE_KEPT_WHOLE,
  serviceaccounts: CHANGE_WHOLE,
  endpoints: CHANGE_WHOLE,
  pods: CHANGE_WHOLE,
  services: ['change', 'kept'],
  persistentvolumeclaims: CHANGE_WHOLE,
  'ingresses.networking.k8s.io': CHANGE_WHOLE,
  'ingressclasses.networking.k8s.io': CHANGE_KEPT_WHOLE,
  'controllerrevisions.apps': CHANGE_WHOLE,
  'volumeattributesclasses.storage.k8s.io': CHANGE_KEPT_WHOLE,
  nodes: WHOLE_CHANGE,
  namespaces: WHOLE_CHANGE,
  'jobs.batch': WHOLE_CHANGE,
  'roles.rbac.authorization.k8s.io': WHOLE_CHANGE,
  'clusterroles.rbac.authorization.k8s.io': WHOLE_CHANGE,
  'rolebindings.rbac.authorization.k8s.io': WHOLE_CHANGE,
  'clusterrolebindings.rbac.authorization.k8s.io': WHOLE_CHANGE,
  'storageclasses.storage.k8s.io': WHOLE_CHANGE,
  'csistoragecapacities.storage.k8s.io': WHOLE_CHANGE,
  'runtimeclasses.node.k8s.io': WHOLE_CHANGE,
  'ipaddresses.networking.k8s.io': WHOLE_CHANGE,
  'certificatesigningrequests.certificates.k8s.io': WHOLE_CHANGE,
  'resourceclaims.resource.k8s.io': WHOLE_CHANGE,
  'deviceclasses.resource.k8s.io': WHOLE_CHANGE,
  'resourceclaimtemplates.resource.k8s.io': WHOLE_CHANGE,
  'csinodes.storage.k8s.io': WHOLE,
  'volumeattachments.storage.k8s.io': WHOLE,
  'endpointslices.discovery.k8s.io': WHOLE,
  'flowschemas.flowcontrol.apiserver.k8s.io': WHOLE,
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': WHOLE,
  'validatingwebhookconfigurations.admissionregistration.k8s.io': WHOLE,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': WHOLE,
  'validatingadmissionpolicies.admissionregistration.k8s.io': WHOLE,
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': WHOLE,
  'mutatingadmissionpolicies.admissionregistration.k8s.io': WHOLE,
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': WHOLE,
  limitranges: WHOLE,
  persistentvolumes: ['whole', 'whole'],
  'poddisruptionbudgets.policy': NONE,
  'apiservices.apiregistration.k8s.io': CHANGE_WHOLE,
};
/** The same of subresources. */
const SUBRESOURCE_LOOKS: Readonly<Record<string, MetadataLooks>> = {
  'cronjobs.batch/status': NONE,
  'poddisruptionbudgets.policy/status': NONE,
  'volumeattachments.storage.k8s.io/status': NONE,
  'validatingadmissionpolicies.admissionregistration.k8s.io/status': NONE,
  'certificatesigningrequests.certificates.k8s.io/status': WHOLE_CHANGE,
  'certificatesigningrequests.certificates.k8s.io/approval': WHOLE_CHANGE,
};

const RULES: RuleTable = {
  ...CORE_RULES,
  ...EVENT_RULES,
  ...FLOW_RULES,
  ...LIMIT_RULES,
  ...NETWORK_CONFIG_RULES,
  ...NETWORK_POLICY_RULES,
  ...POD_RULES,
  ...SERVICE_RULES,
  ...WORKLOAD_RULES,
  ...BATCH_RULES,
  ...CERTIFICATE_RULES,
  ...CLUSTER_RULES,
  ...STORAGE_RULES,
  ...ADMISSION_RULES,
  ...API_SERVICE_RULES,
  ...DEFINITION_RULES,
  ...DEVICE_RULES,
  ...SCHEDULING_RULES,
};
const PLAIN: KindRules = {};

/** What is wrong with a new object; its name is final. Reviews and bindings are not judged here. */
export function validateCreate(resource: Resource, object: JsonObject): FieldError[] {
  if (!isStored(resource)) return [];
  const rules = ownMember(RULES, resource.storage.name) ?? PLAIN;
  const metadata = objectAt(object, 'metadata') ?? {};
  const found: Findings = [];
  const nameRule = rules.name ?? SUBDOMAIN_NAME;
  if (rules.skipsMetadata !== true) {
    checkMetadata(found, metadata, resource.namespaced, nameRule, rules.isForeign !== true);
  }
  rules.create?.(found, object);
  // Upstream's generic check comes only after the kind's own has passed.
  if (found.length === 0) {
    checkMetadata(found, metadata, resource.namespaced, SEGMENT_NAME, false);
  }
  return found;
}

/**
 * What is wrong with a change; `subresource` is '' for the object itself. System fields of metadata
 * (uid, creation time, deletion) must have been carried over before, as far as the client left them
 * out. /
 */
export function validateUpdate(
  resource: Resource,
  next: JsonObject,
  previous: JsonObject,
  subresource: string,
): FieldError[] {
  const found = updateFaults(resource, next, previous, subresource);
  return found.length === 0 ? found : withoutKnown(found, podSpecOf(previous));
}

/** The spec of a pod, or of those that are made by a template. */
function podSpecOf(object: JsonObject): JsonObject | undefined {
  return (
    objectAt(object, 'spec', 'jobTemplate', 'spec', 'template', 'spec') ??
    objectAt(object, 'spec', 'template', 'spec') ??
    objectAt(object, 'template', 'spec') ??
    objectAt(object, 'spec')
  );
}

function updateFaults(
  resource: Resource,
  next: JsonObject,
  previous: JsonObject,
  subresource: string,
): FieldError[] {
  const rules = ownMember(RULES, resource.storage.name) ?? PLAIN;
  const nextMetadata = objectAt(next, 'metadata') ?? {};
  const previousMetadata = objectAt(previous, 'metadata') ?? {};
  const found: Findings = [];
  const isCore = rules.isForeign !== true;
  const asChange = (): void => checkMetadataUpdate(found, nextMetadata, previousMetadata, isCore);
  // Twice for all kinds, once or more by the kind itself.
  checkMetadata(found, nextMetadata, resource.namespaced, SEGMENT_NAME, false);
  checkMetadataUpdate(found, nextMetadata, previousMetadata, false);
  const asWhole = (): void => {
    const nameRule = rules.name ?? SUBDOMAIN_NAME;
    checkMetadata(found, nextMetadata, resource.namespaced, nameRule, isCore);
  };
  if (subresource !== '') {
    for (const look of ownMember(SUBRESOURCE_LOOKS, `${resource.storage.name}/${subresource}`) ??
      CHANGE) {
      if (look === 'change') asChange();
      else asWhole();
    }
    ownMember(rules.subresources, subresource)?.(found, next, previous);
    return found;
  }
  // events of the core group are looked at as they always were
  const isOldEvent = resource.storage.name === 'events' && resource.group === '';
  const looks = isOldEvent ? NONE : (ownMember(LOOKS, resource.storage.name) ?? CHANGE);
  const judge = rules.update === undefined ? rules.create : undefined;
  const change = rules.update ?? rules.change;
  for (const look of looks) {
    if (look === 'change') asChange();
    if (look === 'kept') change?.(found, next, previous);
    if (look !== 'whole') continue;
    asWhole();
    judge?.(found, next);
  }
  if (!looks.includes('whole')) judge?.(found, next);
  if (!looks.includes('kept')) change?.(found, next, previous);
  return found;
}
