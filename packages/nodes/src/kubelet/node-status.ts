/**
 * What a kubelet says of its node: conditions, and where the node lacks them its address, the port
 * of its kubelet and its capacity. Nodes that others have made are filled in as kwok's stage
 * node-initialize does it.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { addressText } from '../columns/addresses.ts';
import { healthyConditions, NODE_ADDRESS_BASE, NODE_INFO } from './node-object.ts';

/** Where the kubelets of all simulated nodes are reached. */
export interface KubeletEndpoint {
  readonly port: number;
  /** Address of type Hostname of every node; '': the node's own name. */
  readonly hostname: string;
  /** InternalIP of nodes that have none; '': one by the name of the node. */
  readonly nodeIp: string;
}

/** What the Node does not say yet. */
export interface NodeLacks {
  readonly address: boolean;
  readonly capacity: boolean;
  readonly port: boolean;
}

/** What kwok's stage gives to nodes without any. */
const CAPACITY: JsonObject = { cpu: '1k', memory: '1Ti', pods: '1M' };
/** Addresses of nodes that others made lie in the upper half of the nodes' network. */
const NAMED_BASE: number = NODE_ADDRESS_BASE - 1 + 2 ** 22;
const NAMED_COUNT: number = 2 ** 22 - 2;

/** An address that a node of this name always has; two names may share one. */
export function addressOfName(name: string): string {
  let hash = 2_166_136_261;
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 16_777_619) >>> 0;
  }
  return addressText(NAMED_BASE + 1 + (hash % NAMED_COUNT));
}

/** The address that a node of this name is given when it has none. */
export function addressOfNode(name: string, { nodeIp }: KubeletEndpoint): string {
  return nodeIp === '' ? addressOfName(name) : nodeIp;
}

/** A strategic merge patch of the status of a node, ready or not, at `now` (RFC 3339). */
export function statusPatch(
  name: string,
  now: string,
  lacks: NodeLacks,
  endpoint: KubeletEndpoint,
  isReady: boolean = true,
): JsonObject {
  const { port, hostname } = endpoint;
  const addresses: JsonValue[] = [];
  if (lacks.address) {
    addresses.push({ type: 'InternalIP', address: addressOfNode(name, endpoint) });
  }
  if (lacks.address || (lacks.port && hostname !== '')) {
    addresses.push({ type: 'Hostname', address: hostname === '' ? name : hostname });
  }
  return {
    status: {
      conditions: isReady ? healthyConditions(now) : [unready(now)],
      ...(lacks.capacity || lacks.address ? { nodeInfo: NODE_INFO } : {}),
      ...(port > 0 ? { daemonEndpoints: { kubeletEndpoint: { Port: port } } } : {}),
      ...(addresses.length > 0 ? { addresses } : {}),
      ...(lacks.capacity ? { capacity: CAPACITY, allocatable: CAPACITY } : {}),
      ...(lacks.capacity ? { phase: 'Running' } : {}),
    },
  };
}

/** What a kubelet says whose container runtime does not answer. */
function unready(now: string): JsonObject {
  return {
    type: 'Ready',
    status: 'False',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
    reason: 'KubeletNotReady',
    message: '[container runtime is down]',
  };
}
