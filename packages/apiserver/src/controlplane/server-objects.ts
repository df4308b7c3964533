/** Objects that tell of the API server itself: how it is reached, and since when it is there. */
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';

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
  /** Whether what the Service leads to is made elsewhere, or by nobody. */
  readonly leavesEndpoints?: boolean;
}

/** Says that the slice is not to be copied from the Endpoints by a controller. */
export const SKIP_MIRROR = { 'endpointslice.kubernetes.io/skip-mirror': 'true' } as const;

/** Of a day in `2026-01-31T10:00:00Z`. */
const DAY_LENGTH = 10;

/** The Service `kubernetes` and what it leads to. They follow the server when it moves. */
export function serverObjects(facts: BootstrapFacts): JsonObject[] {
  if (facts.leavesEndpoints === true) return [service(facts)];
  const endpoints = endpointsOf([facts.address], facts.port);
  return [service(facts), endpoints, sliceOf(endpoints)];
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

/** How servers of these addresses are reached; all have the same port. */
export function endpointsOf(addresses: readonly string[], port: number): JsonObject {
  const ips = addresses.map((ip) => ({ ip }));
  return {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { ...SKIP_MIRROR } },
    subsets: [{ addresses: ips, ports: endpointPorts(port) }],
  };
}

export function endpointPorts(port: number): JsonValue[] {
  return [{ name: 'https', port, protocol: 'TCP' }];
}

/** The same as a slice: of one family, which is IPv6 where all addresses are. */
export function sliceOf(endpoints: JsonObject): JsonObject {
  const [subset] = listAt(endpoints, 'subsets');
  const ready = listAt(subset, 'addresses');
  const unready = listAt(subset, 'notReadyAddresses');
  const families = new Set(
    [...ready, ...unready].map((address) => family(stringAt(address, 'ip'))),
  );
  const addressType = families.has('IPv6') && families.size === 1 ? 'IPv6' : 'IPv4';
  const pick = (addresses: readonly JsonValue[], isReady: boolean): JsonObject[] =>
    addresses
      .map((address) => stringAt(address, 'ip'))
      .filter((ip) => family(ip) === addressType)
      .map((ip) => ({ addresses: [ip], conditions: { ready: isReady } }));
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'kubernetes' },
    },
    addressType,
    endpoints: [...pick(ready, true), ...pick(unready, false)],
    ports: [...listAt(subset, 'ports')],
  };
}

function family(address: string): string {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}
