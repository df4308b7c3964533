import type { PodObject } from '../../api/objects.ts';
import { filterEach, SKIP, unresolvable, type Plugin } from '../plugin.ts';

const REJECTION = unresolvable("node(s) didn't match Pod's required features");

/**
 * What a pod asks of its kubelet that not every kubelet can, by the names under which nodes tell it
 * in `status.declaredFeatures` (1.36, k8s.io/component-helpers/nodedeclaredfeatures).
 */
export function requiredFeatures({ spec }: PodObject): string[] {
  const features: string[] = [];
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  const restartsAll = containers.some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
  );
  if (restartsAll) features.push('RestartAllContainersOnContainerExits');
  if (spec.hostNetwork === true && spec.hostUsers === false) {
    features.push('UserNamespacesHostNetworkSupport');
  }
  return features;
}

/** Keeps pods off nodes whose kubelet does not tell that it can do what they ask for. */
export const nodeDeclaredFeatures: Plugin = {
  name: 'NodeDeclaredFeatures',
  preFilter({ pod }) {
    const required = requiredFeatures(pod);
    if (required.length === 0) return SKIP;
    return filterEach(({ node }) => {
      const declared = node.status?.declaredFeatures ?? [];
      return required.every((feature) => declared.includes(feature)) ? null : REJECTION;
    });
  },
};
