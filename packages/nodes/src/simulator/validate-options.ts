/**
 * What is wrong with the flags is said before the server is asked for anything: it may be down, and
 * whoever waits for it would not hear that he waits in vain.
 */
import { isIP } from 'node:net';
import { parseCalls } from '../fidelity/calls.ts';
import { parsePart } from '../client/membership.ts';
import { Disregard, selectorOf } from '../client/node-filter.ts';
import { commonCidr, commonNetworks, plannedNetworks } from '../pod/pod-addresses.ts';
import { listenAddress } from '../server/kubelet-port.ts';
import { PORT_KINDS } from '../server/port-config.ts';
import type { NodesOptions } from './nodes-options.ts';

export type ValidatedOptions = Pick<
  NodesOptions,
  | 'cidr'
  | 'create'
  | 'shard'
  | 'fidelity'
  | 'kubeletCalls'
  | 'labelSelector'
  | 'annotationSelector'
  | 'disregardAnnotations'
  | 'disregardLabels'
  | 'enableCrds'
  | 'endpoint'
  | 'serverAddress'
>;

/** Throws an Error that names the flag. */
export function validateOptions(options: ValidatedOptions): void {
  const { cidr, shard, fidelity, kubeletCalls } = options;
  const plan = plannedNetworks(cidr);
  if (plan !== undefined && options.create > plan.nodesMax) {
    throw new Error(
      `--cidr: ${cidr} has networks for ${plan.nodesMax} nodes, not for ${options.create}`,
    );
  }
  if (commonNetworks(commonCidr(cidr)) === undefined) {
    const wanted = 'an IPv4 network of /8 to /30, one of IPv6, or one of each';
    throw new Error(`--cidr: ${cidr} is not ${wanted}, such as 10.0.0.0/9,fd00::/64`);
  }
  const part = shard === '' || shard === 'auto' ? null : parsePart(shard);
  if (part instanceof Error) throw part;
  parseCalls('--kubelet-calls', kubeletCalls);
  if (kubeletCalls !== '' && fidelity !== 'kubelet') {
    throw new Error('--kubelet-calls: only with --fidelity kubelet');
  }
  selectorOf('manage-nodes-with-label-selector', options.labelSelector);
  selectorOf('manage-nodes-with-annotation-selector', options.annotationSelector);
  // its constructor reads them
  void new Disregard(options.disregardAnnotations, options.disregardLabels);
  for (const kind of options.enableCrds) {
    if (kind === 'Stage' || Object.hasOwn(PORT_KINDS, kind)) continue;
    const known = ['Stage', ...Object.keys(PORT_KINDS)].join(', ');
    throw new Error(`--enable-crds: ${kind} is none of ${known}`);
  }
  const { nodeIp } = options.endpoint;
  if (nodeIp !== '' && isIP(nodeIp) === 0) throw new Error(`--node-ip: ${nodeIp} is no address`);
  listenAddress(options.serverAddress);
}
