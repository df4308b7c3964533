/**
 * What runtimes and programs of a node are told of its network: the list of CNI plugins, and the
 * configurations of kube-proxy, kubelet and CoreDNS that fit it.
 */
import { NDP_PLUGIN } from './ndp-plugin.ts';
import { addressText, prefixText, sizeOf, type Prefix } from '../plan/prefix.ts';
import type { NodeMode } from '../plan/providers.ts';

/** Name of the network in CNI's words; host-local keeps its leases under it. */
export const NETWORK_NAME = 'megaplane';
/** Runtimes take the first list by name. */
export const CONFLIST_FILE = '10-megaplane.conflist';

export interface PodNetworkFacts {
  readonly bridge: string;
  readonly uplink: string;
  readonly mode: NodeMode;
  readonly prefix: Prefix;
  /** Of IPv4, behind the address of the node; undefined: pods have IPv6 only. */
  readonly prefix4?: Prefix | undefined;
  /** Addresses of the node itself, which no pod may get. */
  readonly own: readonly bigint[];
  readonly stateDir: string;
  /** Where host-local keeps which addresses are given. */
  readonly leaseDir: string;
  readonly mtu: number;
}

/** Of a host-local range: a part of the prefix without the node's own addresses. */
interface Range {
  readonly subnet: string;
  readonly gateway: string;
  readonly rangeStart: string;
  readonly rangeEnd?: string;
}

/** The largest free part behind the gateway: host-local knows a start and an end. */
export function rangeOf(prefix: Prefix, own: readonly bigint[]): Range {
  const { base, bits } = prefix;
  const gateway = base + 1n;
  const last = base + sizeOf(prefix) - (bits === 32 ? 2n : 1n);
  const taken = own
    .filter((one) => one > gateway && one <= last)
    .toSorted((a, b) => (a < b ? -1 : 1));
  let [start, end] = [gateway + 1n, last];
  let from = gateway + 1n;
  let best = 0n;
  for (const one of [...taken, last + 1n]) {
    if (one - from > best) [best, start, end] = [one - from, from, one - 1n];
    from = one + 1n;
  }
  return {
    subnet: prefixText(prefix),
    gateway: addressText(gateway, bits),
    rangeStart: addressText(start, bits),
    ...(end === last ? {} : { rangeEnd: addressText(end, bits) }),
  };
}

/**
 * The list of plugins. The bridge takes no interface of the node: frames of pods never leave it
 * with MAC addresses of their own. `isDefaultGateway` makes the default route, so `ipam` has none:
 * both together fail for IPv6.
 */
export function conflist(facts: PodNetworkFacts): string {
  const { bridge, uplink, mode, prefix, prefix4, own, stateDir, leaseDir, mtu } = facts;
  const ranges = [[rangeOf(prefix, own)]];
  if (prefix4 !== undefined) ranges.push([rangeOf(prefix4, [])]);
  const plugins: object[] = [
    {
      type: 'bridge',
      bridge,
      ...{ isGateway: true, isDefaultGateway: true, hairpinMode: true, promiscMode: false },
      ...(mtu > 0 ? { mtu } : {}),
      ipam: { type: 'host-local', dataDir: leaseDir, ranges },
    },
    { type: 'portmap', capabilities: { portMappings: true }, snat: true },
  ];
  if (mode === 'proxy') plugins.push({ type: NDP_PLUGIN, uplink, stateDir });
  const list = { cniVersion: '1.0.0', name: NETWORK_NAME, plugins };
  return `${JSON.stringify(list, null, 2)}\n`;
}

/**
 * kube-proxy by nftables, for which pods are what comes from the bridge. By names of interfaces
 * (`veth`) it would take packets of pods for those of strangers and put the node's address in.
 */
export function kubeProxyConfig(bridge: string, node: string): string {
  return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: ${JSON.stringify(node)}
detectLocalMode: BridgeInterface
detectLocal:
  bridgeInterface: ${bridge}
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig
conntrack:
  maxPerCore: 0
`;
}

/** The parts of a KubeletConfiguration that the network decides. */
export function kubeletNetworkConfig(clusterDns: readonly string[], domain: string): string {
  return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
clusterDomain: ${domain}
clusterDNS: [${clusterDns.map((one) => JSON.stringify(one)).join(', ')}]
maxPods: 65535
serverTLSBootstrap: true
rotateCertificates: true
`;
}

/** CoreDNS for Services, and the node's resolver, or one with DNS64, for all else. */
export function corefile(domain: string, forward: string): string {
  return `.:53 {
    errors
    health { lameduck 5s }
    ready
    kubernetes ${domain} in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . ${forward}
    cache 30
    loop
    reload
    loadbalance
}
`;
}
