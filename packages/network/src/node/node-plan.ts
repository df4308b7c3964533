/**
 * What makes a machine a node of the network, as a list of steps: settings of the kernel, a bridge,
 * routes and files. The steps are data, so they can be shown without being done.
 */
import { conflist, CONFLIST_FILE, type PodNetworkFacts } from './conflist.ts';
import { NDP_PLUGIN, ndpPlugin } from './ndp-plugin.ts';
import { addressText, prefixText, type Prefix } from '../plan/prefix.ts';
import { INPUT_FILE_MODE, PROGRAM_FILE_MODE } from './steps.ts';
import type { Step } from './steps.ts';

export interface NodeNetworkRequest extends PodNetworkFacts {
  readonly configDir: string;
  readonly pluginDir: string;
  /** Neighbours that the kernel keeps; of a segment with a million nodes a part is spoken to. */
  readonly neighbours: number;
  /** Prefixes of other nodes and the node that has each, where no router knows it. */
  readonly routes: readonly { readonly prefix: Prefix; readonly via: string }[];
}

/** Of the neighbour proxy: solicitations that wait; none does with a delay of 0. */
const PROXY_QUEUE = 1024;
const INOTIFY_INSTANCES = 1_048_576;
const INOTIFY_WATCHES = 16_777_216;
const NAT_TABLE = 'megaplane_nat';

/** Settings of the kernel by their paths below /proc/sys, in order. */
export function settingsOf(request: NodeNetworkRequest): Step[] {
  const { uplink, mode, neighbours, prefix4 } = request;
  const set = (path: string, value: number, isOptional = false): Step => ({
    kind: 'setting',
    path,
    value: `${value}`,
    isOptional,
  });
  const six = 'net/ipv6';
  const steps = [
    set(`${six}/conf/all/forwarding`, 1),
    // a router hears no router advertisements unless it is told to: its own route would run out
    set(`${six}/conf/${uplink}/accept_ra`, 2, true),
  ];
  if (mode === 'proxy') {
    steps.push(
      set(`${six}/conf/all/proxy_ndp`, 1),
      set(`${six}/conf/${uplink}/proxy_ndp`, 1),
      // the kernel waits up to 0.8 s before it answers for another, lest two do: here one does
      set(`${six}/neigh/${uplink}/proxy_delay`, 0),
      set(`${six}/neigh/${uplink}/proxy_qlen`, PROXY_QUEUE),
    );
  }
  if (prefix4 !== undefined) steps.push(set('net/ipv4/ip_forward', 1));
  return [
    ...steps,
    set(`${six}/neigh/default/gc_thresh3`, neighbours, true),
    set(`${six}/neigh/default/gc_thresh2`, Math.floor(neighbours / 2), true),
    set(`${six}/neigh/default/gc_thresh1`, Math.floor(neighbours / 4), true),
    set('fs/inotify/max_user_instances', INOTIFY_INSTANCES, true),
    set('fs/inotify/max_user_watches', INOTIFY_WATCHES, true),
  ];
}

/** All steps, in the order in which they are done; they are undone the other way round. */
export function stepsOf(request: NodeNetworkRequest): Step[] {
  const { bridge, prefix, prefix4, configDir, pluginDir, mode, stateDir, mtu } = request;
  const gateway = (one: Prefix): string => `${addressText(one.base + 1n, one.bits)}/${one.length}`;
  const steps = settingsOf(request);
  steps.push({ kind: 'bridge', name: bridge, mtu });
  // no other node can have the address: nobody needs to be asked
  steps.push({ kind: 'address', device: bridge, address: gateway(prefix), isSix: true });
  if (prefix4 !== undefined) {
    steps.push({ kind: 'address', device: bridge, address: gateway(prefix4), isSix: false });
    steps.push({ kind: 'nftables', table: NAT_TABLE, family: 'ip', rules: natRules(request) });
  }
  for (const { prefix: other, via } of request.routes) {
    steps.push({ kind: 'route', prefix: prefixText(other), via, device: request.uplink });
  }
  if (mode === 'proxy') {
    const file = `${pluginDir}/${NDP_PLUGIN}`;
    steps.push({ kind: 'file', path: file, text: ndpPlugin(), mode: PROGRAM_FILE_MODE });
    steps.push({ kind: 'directory', path: stateDir });
  }
  const path = `${configDir}/${CONFLIST_FILE}`;
  // last: a runtime that sees it starts pods
  steps.push({ kind: 'file', path, text: conflist(request), mode: INPUT_FILE_MODE });
  return steps;
}

/** Pods go out to IPv4 under the address of the node, and keep their own among each other. */
function natRules({ prefix4, uplink, bridge }: NodeNetworkRequest): string {
  const pods = prefix4 === undefined ? '' : prefixText(prefix4);
  return `table ip ${NAT_TABLE} {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${pods} oifname "${uplink}" iifname "${bridge}" masquerade
  }
}
`;
}
