/**
 * Priorities of the APIServices of built-in groups, as upstream's (pkg/controlplane,
 * `DefaultGenericAPIServicePriorities` and those of the core control plane): clients list groups
 * and prefer versions by them, and an aggregated server may be put between two of them.
 */
import { ownMember } from '@megaplane/base/members';

/** Priority of a group, and of its versions where they are not those of `VERSIONS`. */
const GROUPS: Readonly<Record<string, readonly [number, Readonly<Record<string, number>>]>> = {
  '': [18_000, { v1: 1 }],
  apps: [17_800, {}],
  'events.k8s.io': [17_750, { v1beta1: 5 }],
  'authentication.k8s.io': [17_700, {}],
  'authorization.k8s.io': [17_600, {}],
  autoscaling: [17_500, { v2: 30, v2beta2: 1 }],
  batch: [17_400, {}],
  'certificates.k8s.io': [17_300, {}],
  'networking.k8s.io': [17_200, {}],
  policy: [17_100, {}],
  'rbac.authorization.k8s.io': [17_000, {}],
  'storage.k8s.io': [16_800, {}],
  'apiextensions.k8s.io': [16_700, {}],
  'admissionregistration.k8s.io': [16_700, { v1beta1: 12, v1alpha1: 9 }],
  'scheduling.k8s.io': [16_600, { v1alpha2: 2 }],
  'coordination.k8s.io': [16_500, { v1beta1: 13, v1alpha2: 12 }],
  'node.k8s.io': [16_300, {}],
  'discovery.k8s.io': [16_200, { v1beta1: 12 }],
  'resource.k8s.io': [16_200, { v1: 21, v1beta2: 15 }],
  'flowcontrol.apiserver.k8s.io': [16_100, { v1: 21, v1beta3: 18, v1beta2: 15, v1beta1: 12 }],
  'internal.apiserver.k8s.io': [16_000, { v1alpha1: 9 }],
  'storagemigration.k8s.io': [15_800, {}],
};
const VERSIONS: Readonly<Record<string, number>> = { v1: 15, v2: 15, v1beta1: 9, v2beta1: 9 };
/** Groups and versions that upstream does not name. */
const OTHER_GROUP = 15_000;
const OTHER_VERSION = 1;

/** `groupPriorityMinimum` and `versionPriority` of a built-in group and version. */
export function prioritiesOf(group: string, version: string): readonly [number, number] {
  const [minimum, versions] = ownMember(GROUPS, group) ?? [OTHER_GROUP, {}];
  return [minimum, ownMember(versions, version) ?? ownMember(VERSIONS, version) ?? OTHER_VERSION];
}
