/** Features of kubelets that a pod cannot run without. */
import type { PodObject } from './objects.ts';

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
