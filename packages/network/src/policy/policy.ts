/**
 * A firewall for a node whose size does not grow with the cluster.
 *
 * A million prefixes cannot be rules: but all of them lie in the base of the plan, so one prefix
 * says "of this cluster". What is told apart beyond that is told by ports, and by TLS. Packets that
 * claim a pod's address are believed only where that pod is.
 */
import { prefixText, type Prefix } from '../plan/prefix.ts';

export interface PolicyRequest {
  /** Prefixes of all nodes' pods. */
  readonly base: Prefix;
  /** Those of this node's pods. */
  readonly pods: Prefix;
  readonly services: Prefix;
  /** Addresses of the nodes themselves, and of the control plane. */
  readonly nodes: readonly Prefix[];
  readonly controlPlane: readonly Prefix[];
  /** Who may log in. */
  readonly admins: readonly Prefix[];
  readonly uplink: string;
  readonly bridge: string;
  /** Ports of pods that anybody may reach. */
  readonly publicPorts: readonly number[];
  /** Ports of the node that nodes and pods of the cluster may reach, beside the kubelet's. */
  readonly nodePorts: readonly number[];
  /** Ports of this machine that anybody may reach: those of an API server. */
  readonly ownPublicPorts: readonly number[];
}

export const POLICY_TABLE = 'megaplane_policy';
export const KUBELET_PORT = 10_250;
const SSH_PORT = 22;

/** The rules as `nft -f` takes them; applied again they take the place of those before. */
export function policyRules(request: PolicyRequest): string {
  const { base, pods, uplink, bridge } = request;
  const all = prefixText(base);
  const own = prefixText(pods);
  const lines = [
    `table inet ${POLICY_TABLE} {}`,
    `delete table inet ${POLICY_TABLE}`,
    `table inet ${POLICY_TABLE} {`,
    ...setOf('nodes', request.nodes),
    ...setOf('control_plane', request.controlPlane),
    ...setOf('admins', request.admins),
    '  chain spoofed {',
    '    type filter hook prerouting priority raw; policy accept;',
    `    iifname "${bridge}" ip6 saddr != { ${own}, fe80::/10, :: } counter drop`,
    `    iifname "${uplink}" ip6 saddr ${own} counter drop`,
    '  }',
    '  chain input {',
    '    type filter hook input priority filter; policy drop;',
    '    iifname "lo" accept',
    '    ct state established,related accept',
    '    ct state invalid drop',
    `    icmpv6 type { ${ND_TYPES} } accept`,
    '    icmpv6 type echo-request limit rate 100/second accept',
    '    icmp type echo-request limit rate 100/second accept',
    ...port(`ip6 saddr @control_plane tcp dport ${KUBELET_PORT}`, request.controlPlane),
    ...port(`ip6 saddr @admins tcp dport ${SSH_PORT}`, request.admins),
    ...ports(`ip6 saddr ${all}`, request.nodePorts),
    ...(request.nodes.length > 0 ? ports('ip6 saddr @nodes', request.nodePorts) : []),
    ...ports('', request.ownPublicPorts),
    // what a node asks of its own pods comes back by the bridge; pods may ask it for names
    `    iifname "${bridge}" ip6 saddr ${own} meta l4proto { tcp, udp } th dport 53 accept`,
    '    counter drop',
    '  }',
    '  chain forward {',
    '    type filter hook forward priority filter; policy drop;',
    '    ct state established,related accept',
    '    ct state invalid drop',
    `    icmpv6 type { ${ERROR_TYPES} } accept`,
    `    ip6 saddr ${all} ip6 daddr ${own} accept`,
    ...(request.nodes.length > 0 ? [`    ip6 saddr @nodes ip6 daddr ${own} accept`] : []),
    ...ports(`ip6 daddr ${own}`, request.publicPorts),
    `    iifname "${bridge}" ip6 saddr ${own} accept`,
    `    iifname "${bridge}" meta nfproto ipv4 accept`,
    '    counter drop',
    '  }',
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

const ERROR_TYPES = 'packet-too-big, time-exceeded, parameter-problem, destination-unreachable';
const ND_TYPES = [
  'nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert, nd-router-solicit',
  'mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report',
  ERROR_TYPES,
].join(', ');

function setOf(name: string, prefixes: readonly Prefix[]): string[] {
  if (prefixes.length === 0) return [];
  return [
    `  set ${name} {`,
    '    type ipv6_addr; flags interval; auto-merge',
    `    elements = { ${prefixes.map(prefixText).join(', ')} }`,
    '  }',
  ];
}

function port(match: string, prefixes: readonly Prefix[]): string[] {
  return prefixes.length === 0 ? [] : [`    ${match} accept`];
}

function ports(match: string, numbers: readonly number[]): string[] {
  if (numbers.length === 0) return [];
  const list = `{ ${numbers.join(', ')} }`;
  return [
    `    ${match}${match === '' ? '' : ' '}meta l4proto { tcp, udp } th dport ${list} accept`,
  ];
}
