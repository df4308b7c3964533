/** Names of the fleet's own part of the Kubernetes API. */

const GROUP = 'bigfleet.lucy.sh';
const VERSION = 'v1alpha1';
export const API_VERSION: string = `${GROUP}/${VERSION}`;

/** Labels of nodes that machines have fields for. */
export const INSTANCE_TYPE_KEY = 'node.kubernetes.io/instance-type';
export const ZONE_KEY = 'topology.kubernetes.io/zone';

/** Label of a request: the UID of the pod for which it was made. */
export const OWNER_LABEL: string = `${GROUP}/owned-by-pod`;

/** Requests of all namespaces, and of one. */
export const REQUESTS_PATH: string = `/apis/${API_VERSION}/capacityrequests`;

export function requestsPathIn(namespace: string): string {
  return `/apis/${API_VERSION}/namespaces/${namespace}/capacityrequests`;
}

export const UPCOMING_NODES_PATH: string = `/apis/${API_VERSION}/upcomingnodes`;
export const AVAILABLE_CAPACITIES_PATH: string = `/apis/${API_VERSION}/availablecapacities`;
