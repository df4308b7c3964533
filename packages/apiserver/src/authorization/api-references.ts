/**
 * Whether a pod refers to anything else in the API: a node that mirrors a pod from its disk must
 * not open anything to itself by it (upstream's `pkg/api/pod/util.go`, `HasAPIObjectReference`).
 */
import { ownMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { quoted } from '@megaplane/machinery/quoting';
import { addPodReferences } from './pod-references.ts';

/** What kinds of volumes need of the API; '' where a node has all that they need. */
const VOLUMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    (
      'awsElasticBlockStore azureDisk cephfs cinder downwardAPI emptyDir fc flexVolume flocker ' +
      'gcePersistentDisk gitRepo hostPath image iscsi nfs photonPersistentDisk portworxVolume ' +
      'quobyte rbd scaleIO storageos vsphereVolume'
    )
      .split(' ')
      .map((name) => [name, '']),
  ),
  configMap: 'configmaps (via configmap volumes)',
  secret: 'secrets (via secret volumes)',
  csi: 'csidrivers (via CSI volumes)',
  glusterfs: 'endpoints (via glusterFS volumes)',
  persistentVolumeClaim: 'persistentvolumeclaims',
  ephemeral: 'persistentvolumeclaims (via ephemeral volumes)',
  azureFile: 'secrets (via azureFile volumes)',
};

const SOURCES: Readonly<Record<string, string>> = {
  configMap: 'configmaps (via projected volumes)',
  secret: 'secrets (via projected volumes)',
  serviceAccountToken: 'serviceaccounts (via projected volumes)',
  clusterTrustBundle: 'clustertrustbundles',
  podCertificate: 'podcertificates',
  downwardAPI: '',
};

/** What the pod refers to, `unknown ...` where that cannot be told, '' where it does not. */
export function apiReference(pod: JsonObject): string {
  if (stringAt(pod, 'spec', 'serviceAccountName') !== '') return 'serviceaccounts';
  const found = new Set<string>();
  addPodReferences({ spec: objectAt(pod, 'spec') ?? {} }, found);
  for (const kind of ['secrets', 'configmaps']) {
    if ([...found].some((text) => text.startsWith(`${kind}/`))) return kind;
  }
  if (listAt(pod, 'spec', 'resourceClaims').length > 0) return 'resourceclaims';
  for (const volume of listAt(pod, 'spec', 'volumes')) {
    const name = volumeReference(volume);
    if (name !== '') return name;
  }
  return '';
}

function volumeReference(volume: JsonValue): string {
  const name = quoted(stringAt(volume, 'name'));
  if (objectAt(volume, 'projected') === undefined) {
    return lookUp(VOLUMES, volume) ?? `unknown volume type for volume  ${name}`;
  }
  for (const source of listAt(volume, 'projected', 'sources')) {
    const found = lookUp(SOURCES, source) ?? `unknown source for projected volume ${name}`;
    if (found !== '') return found;
  }
  return '';
}

function lookUp(table: Readonly<Record<string, string>>, source: JsonValue): string | undefined {
  const kind = Object.keys(table).find((one) => objectAt(source, one) !== undefined);
  return kind === undefined ? undefined : ownMember(table, kind);
}
