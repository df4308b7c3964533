/**
 * Fields that a write by one way never changes, whatever it says: of the object itself its status,
 * of the status everything else. Nobody comes to own them by such a write (upstream's reset
 * fields).
 */
import { ownMember } from '@megaplane/base/members';
import { FieldSet, type FieldPath } from '@megaplane/machinery/apply/field-set';
import type { Served } from '../storage/served.ts';

const NOTHING = new FieldSet();
const STATUS: FieldPath = ['f:status'];
const SPEC: FieldPath = ['f:spec'];
const METADATA: FieldPath = ['f:metadata'];

/** Kinds whose status is written without any metadata. */
const BARE_STATUS: ReadonlySet<string> = new Set([
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'storageversions.internal.apiserver.k8s.io',
  'flowschemas.flowcontrol.apiserver.k8s.io',
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
  'servicecidrs.networking.k8s.io',
  'devicetaintrules.resource.k8s.io',
  'resourceclaims.resource.k8s.io',
  'resourcepoolstatusrequests.resource.k8s.io',
  'podgroups.scheduling.k8s.io',
  'volumeattachments.storage.k8s.io',
  'storageversionmigrations.storagemigration.k8s.io',
  'apiservices.apiregistration.k8s.io',
]);

/** Whether an update of the status leaves the metadata as it is. */
export function keepsMetadata({ custom, resource }: Served): boolean {
  return custom !== null || BARE_STATUS.has(resource.storage.name);
}

/** What single kinds have beyond the rule. */
const OWN: Readonly<Record<string, readonly FieldPath[]>> = {
  'deployments.apps/status': [['f:metadata', 'f:labels']],
  'pods/status': [
    ['f:metadata', 'f:deletionTimestamp'],
    ['f:metadata', 'f:ownerReferences'],
  ],
  'certificatesigningrequests.certificates.k8s.io/': [SPEC],
  'certificatesigningrequests.certificates.k8s.io/status': [['f:status', 'f:conditions']],
  'certificatesigningrequests.certificates.k8s.io/approval': [SPEC, ['f:status', 'f:certificate']],
};

/** By resource and subresource ('' is the object itself). */
export function resetFields(served: Served, subresource: string): FieldSet {
  const { name } = served.resource.storage;
  const paths: FieldPath[] = [...(ownMember(OWN, `${name}/${subresource}`) ?? [])];
  if (served.custom !== null && subresource === 'status') {
    // all that is not the status
    return FieldSet.of(SPEC, METADATA);
  }
  if (subresource === 'status') {
    paths.push(SPEC);
    if (BARE_STATUS.has(name)) paths.push(METADATA);
  } else if (subresource !== 'approval' && served.hasStatus) paths.push(STATUS);
  return paths.length === 0 ? NOTHING : FieldSet.of(...paths);
}
