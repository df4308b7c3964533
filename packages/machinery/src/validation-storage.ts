/** The storage group. */

import { forbiddenField, required } from './fielderrors.ts';
import { objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json-value.ts';
import { dnsSubdomainErrors } from './names.ts';
import type { RuleTable } from './validation.ts';
import { immutable, invalidEach, oneOf, type Findings } from './validation-rules.ts';

export const STORAGE_RULES: RuleTable = {
  'storageclasses.storage.k8s.io': { create: checkStorageClass, update: keepStorageClass },
  'volumeattachments.storage.k8s.io': {
    create: checkAttachment,
    change: (found, next, previous) => immutable(found, 'spec', next['spec'], previous['spec']),
  },
};

function checkStorageClass(found: Findings, storageClass: JsonObject): void {
  const provisioner = stringAt(storageClass, 'provisioner');
  if (provisioner === '') found.push(required('provisioner'));
  oneOf(found, 'reclaimPolicy', storageClass['reclaimPolicy'], ['Delete', 'Retain']);
  const modes = ['Immediate', 'WaitForFirstConsumer'];
  oneOf(found, 'volumeBindingMode', storageClass['volumeBindingMode'], modes);
}

function keepStorageClass(found: Findings, next: JsonObject, previous: JsonObject): void {
  for (const field of ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode']) {
    immutable(found, field, next[field], previous[field]);
  }
}

function checkAttachment(found: Findings, attachment: JsonObject): void {
  const spec = objectAt(attachment, 'spec') ?? {};
  if (stringAt(spec, 'attacher') === '') found.push(required('spec.attacher'));
  const source = objectAt(spec, 'source') ?? {};
  const name = source['persistentVolumeName'];
  const text = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
  const hasInline = source['inlineVolumeSpec'] !== undefined;
  if (name === undefined && !hasInline) found.push(required('spec.source', text));
  else if (name !== undefined && hasInline) found.push(forbiddenField('spec.source', text));
  else if (name === '') {
    const detail = 'must specify non empty persistentVolumeName';
    found.push(required('spec.source.persistentVolumeName', detail));
  }
  const node = stringAt(spec, 'nodeName');
  if (node === '') found.push(required('spec.nodeName'));
  else invalidEach(found, 'spec.nodeName', node, dnsSubdomainErrors(node));
}
