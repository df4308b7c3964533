/**
 * What a pod needs its node to read: Secrets, ConfigMaps, claims, its service account. The rule is
 * that of upstream's node authorizer (`plugin/pkg/auth/authorizer/node/graph.go`).
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

/** Kinds of objects that a node may read because of its pods. */
export type Referred =
  | 'configmaps'
  | 'persistentvolumeclaims'
  | 'persistentvolumes'
  | 'pods'
  | 'resourceclaims'
  | 'secrets'
  | 'serviceaccounts';

/** One object as a key of a set. */
export function referenceOf(kind: Referred, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

/** A pod that a node made for itself must not open anything to that node. */
const MIRROR = 'kubernetes.io/config.mirror';
/** Members of volume sources that name a Secret: by a reference, or by a plain name. */
const SECRET_REFERENCES = ['secretRef', 'nodePublishSecretRef'] as const;

/** Adds everything that a pod refers to, the pod itself among them. */
export function addPodReferences(pod: JsonObject, found: Set<string>): void {
  const namespace = stringAt(pod, 'metadata', 'namespace');
  const add = (kind: Referred, name: string): void => {
    if (name !== '') found.add(referenceOf(kind, namespace, name));
  };
  const podName = stringAt(pod, 'metadata', 'name');
  add('pods', podName);
  if (objectAt(pod, 'metadata', 'annotations')?.[MIRROR] !== undefined) return;
  add('serviceaccounts', stringAt(pod, 'spec', 'serviceAccountName'));
  for (const one of listAt(pod, 'spec', 'imagePullSecrets')) add('secrets', stringAt(one, 'name'));
  for (const list of ['containers', 'initContainers', 'ephemeralContainers']) {
    for (const container of listAt(pod, 'spec', list)) addContainer(container, add);
  }
  for (const volume of listAt(pod, 'spec', 'volumes')) addVolume(volume, podName, add);
  addClaims(pod, add);
}

type Add = (kind: Referred, name: string) => void;

function addContainer(container: JsonValue, add: Add): void {
  for (const one of listAt(container, 'env')) {
    add('secrets', stringAt(one, 'valueFrom', 'secretKeyRef', 'name'));
    add('configmaps', stringAt(one, 'valueFrom', 'configMapKeyRef', 'name'));
  }
  for (const one of listAt(container, 'envFrom')) {
    add('secrets', stringAt(one, 'secretRef', 'name'));
    add('configmaps', stringAt(one, 'configMapRef', 'name'));
  }
}

function addVolume(volume: JsonValue, podName: string, add: Add): void {
  if (!isObject(volume)) return;
  add('configmaps', stringAt(volume, 'configMap', 'name'));
  add('persistentvolumeclaims', stringAt(volume, 'persistentVolumeClaim', 'claimName'));
  if (objectAt(volume, 'ephemeral') !== undefined) {
    add('persistentvolumeclaims', `${podName}-${stringAt(volume, 'name')}`);
  }
  for (const source of listAt(volume, 'projected', 'sources')) {
    add('secrets', stringAt(source, 'secret', 'name'));
    add('configmaps', stringAt(source, 'configMap', 'name'));
  }
  for (const source of Object.values(volume)) {
    // `secret` itself and the Azure file share name theirs so
    add('secrets', stringAt(source, 'secretName'));
    for (const member of SECRET_REFERENCES) add('secrets', stringAt(source, member, 'name'));
  }
}

function addClaims(pod: JsonObject, add: Add): void {
  for (const one of listAt(pod, 'spec', 'resourceClaims')) {
    add('resourceclaims', stringAt(one, 'resourceClaimName'));
  }
  for (const one of listAt(pod, 'status', 'resourceClaimStatuses')) {
    add('resourceclaims', stringAt(one, 'resourceClaimName'));
  }
  add(
    'resourceclaims',
    stringAt(pod, 'status', 'extendedResourceClaimStatus', 'resourceClaimName'),
  );
}

/** Secrets that only controllers of the volume's driver read. */
const CONTROLLER_REFERENCES: ReadonlySet<string> = new Set([
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
]);

/** Secrets that a volume names for its node; those without a namespace are in that of the claim. */
export function volumeSecrets(
  volume: JsonObject,
  namespace: string,
): readonly { readonly namespace: string; readonly name: string }[] {
  const found: { namespace: string; name: string }[] = [];
  for (const source of Object.values(objectAt(volume, 'spec') ?? {})) {
    if (!isObject(source)) continue;
    const own = stringAt(source, 'secretNamespace');
    const plain = stringAt(source, 'secretName');
    if (plain !== '') found.push({ namespace: own === '' ? namespace : own, name: plain });
    for (const [member, reference] of Object.entries(source)) {
      if (!/secretref$/i.test(member) || CONTROLLER_REFERENCES.has(member)) continue;
      const name = stringAt(reference, 'name');
      const there = stringAt(reference, 'namespace');
      if (name !== '') found.push({ namespace: there === '' ? namespace : there, name });
    }
  }
  return found;
}
