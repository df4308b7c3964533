/** Objects that tell of the API server itself: how it is reached, and since when it is there. */
import type { JsonObject } from '@megaplane/machinery/json-value';

/** What the objects tell. */
export interface BootstrapFacts {
  /** First address of the service range. */
  readonly serviceAddress: string;
  /** Address and port that the server listens on. */
  readonly address: string;
  readonly port: number;
  /** The range itself, such as `10.96.0.0/16`, or one of each family; absent: nothing tells. */
  readonly serviceRanges?: readonly string[];
  /** When the server started, `2026-01-31T10:00:00Z`. */
  readonly startedAt?: string;
}

/** Of a day in `2026-01-31T10:00:00Z`. */
const DAY_LENGTH = 10;

/** The Service `kubernetes` and what it leads to. They follow the server when it moves. */
export function serverObjects(facts: BootstrapFacts): JsonObject[] {
  return [service(facts), endpoints(facts), slice(facts)];
}

/** What other programs read to work with this server. Made where it is missing. */
export function clusterObjects(facts: BootstrapFacts): JsonObject[] {
  const { serviceRanges, startedAt } = facts;
  const objects: JsonObject[] = [];
  if (serviceRanges !== undefined) objects.push(serviceCidr(serviceRanges, startedAt ?? ''));
  if (startedAt !== undefined) {
    const name = 'kube-apiserver-legacy-service-account-token-tracking';
    objects.push(systemMap(name, { since: startedAt.slice(0, DAY_LENGTH) }));
  }
  return objects;
}

function systemMap(name: string, data: JsonObject): JsonObject {
  return {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name, namespace: 'kube-system' },
    data,
  };
}

function serviceCidr(ranges: readonly string[], lastTransitionTime: string): JsonObject {
  return {
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    metadata: { name: 'kubernetes' },
    spec: { cidrs: [...ranges] },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: '',
          message: 'Kubernetes default Service CIDR is ready',
          lastTransitionTime,
        },
      ],
    },
  };
}

function service({ serviceAddress, port }: BootstrapFacts): JsonObject {
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { component: 'apiserver', provider: 'kubernetes' },
    },
    spec: {
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: port }],
      clusterIP: serviceAddress,
      clusterIPs: [serviceAddress],
      type: 'ClusterIP',
      sessionAffinity: 'None',
      ipFamilies: [family(serviceAddress)],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
    },
    status: { loadBalancer: {} },
  };
}

function endpoints({ address, port }: BootstrapFacts): JsonObject {
  return {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    },
    subsets: [{ addresses: [{ ip: address }], ports: [{ name: 'https', port, protocol: 'TCP' }] }],
  };
}

function slice({ address, port }: BootstrapFacts): JsonObject {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'kubernetes' },
    },
    addressType: family(address),
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  };
}

function family(address: string): string {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}
