/** Fields of a pod's spec in the order of upstream's struct, as far as writes here add any. */
export const POD_SPEC_ORDER = [
  'volumes',
  'initContainers',
  'containers',
  'ephemeralContainers',
  'restartPolicy',
  'terminationGracePeriodSeconds',
  'activeDeadlineSeconds',
  'dnsPolicy',
  'nodeSelector',
  'serviceAccountName',
  'serviceAccount',
  'automountServiceAccountToken',
  'nodeName',
  'hostNetwork',
  'hostPID',
  'hostIPC',
  'shareProcessNamespace',
  'securityContext',
  'imagePullSecrets',
  'hostname',
  'subdomain',
  'affinity',
  'schedulerName',
  'tolerations',
  'hostAliases',
  'priorityClassName',
  'priority',
  'dnsConfig',
  'readinessGates',
  'runtimeClassName',
  'enableServiceLinks',
  'preemptionPolicy',
] as const;

const NODE_NAME = POD_SPEC_ORDER.indexOf('nodeName');

export const BEFORE_NODE_NAME: readonly string[] = POD_SPEC_ORDER.slice(0, NODE_NAME);
export const AFTER_NODE_NAME: ReadonlySet<string> = new Set(POD_SPEC_ORDER.slice(NODE_NAME + 1));
