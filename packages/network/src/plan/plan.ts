/**
 * The plan of addresses of a cluster: the prefix of node `i` is the base plus `i`.
 *
 *   base             | number of the node | pods of the node
 *   base.length bits | indexBits          | 128 - nodeLength bits
 *
 * There is no allocator and no state: a prefix follows from a number, and a number from an address,
 * by a shift. The first address of a prefix is nobody's, the second is the node's bridge.
 */
import {
  addressText,
  holds,
  indexIn,
  overlaps,
  parsePrefix,
  pieceOf,
  prefixText,
  sizeOf,
  type Prefix,
} from './prefix.ts';
import type { Provider } from './providers.ts';

/** Numbers of nodes are exact, and tables of marks for them stay small. */
export const INDEX_BITS_MAX = 24;
export const NODES_MAX: number = 2 ** INDEX_BITS_MAX;
/** A node has addresses for its bridge and for some pods. */
const POD_BITS_MIN = 4;
/** kube-apiserver takes ranges of Services of /64 and longer; shorter ones are of no use. */
const SERVICE_LENGTH_MIN = 64;
const SERVICE_LENGTH_MAX = 124;
/** What is taken where nothing is said: 2^20 Services. */
export const SERVICES_DEFAULT = 'fd00:64:ff::/108';
/** Length of the prefix of a node where nothing is said: what all providers give at least. */
export const NODE_LENGTH_DEFAULT = 96;

export interface PlanRequest {
  readonly base: string;
  readonly nodes: number;
  readonly nodeLength?: number;
  readonly services?: string;
  readonly provider: Provider;
}

export interface Plan {
  readonly base: Prefix;
  readonly nodes: number;
  readonly nodeLength: number;
  /** Bits that number the nodes, and how many nodes they number. */
  readonly indexBits: number;
  readonly nodesMax: number;
  readonly services: Prefix;
  readonly provider: Provider;
  /** What is possible and perhaps not meant. */
  readonly warnings: readonly string[];
}

/** The least bits that number so many nodes: 0 for one. */
export function bitsFor(nodes: number): number {
  return nodes <= 1 ? 0 : 32 - Math.clz32(nodes - 1);
}

/** Checks what was asked for. A list of texts says all that is wrong with it. */
export function makePlan(request: PlanRequest): Plan | readonly string[] {
  const { nodes, provider } = request;
  const nodeLength = request.nodeLength ?? NODE_LENGTH_DEFAULT;
  const base = parsePrefix(request.base);
  const services = parsePrefix(request.services ?? SERVICES_DEFAULT);
  const faults: string[] = [];
  if (typeof base === 'string') faults.push(`--base: ${base}`);
  if (typeof services === 'string') faults.push(`--services: ${services}`);
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > NODES_MAX) {
    faults.push(`--nodes: a number from 1 to ${NODES_MAX} is needed`);
  }
  if (typeof base === 'string' || typeof services === 'string' || faults.length > 0) return faults;
  faults.push(...baseFaults(base, nodes, nodeLength), ...serviceFaults(base, services));
  faults.push(...providerFaults(provider, base, nodes, nodeLength));
  if (faults.length > 0) return faults;
  const indexBits = Math.min(nodeLength - base.length, INDEX_BITS_MAX);
  const nodesMax = 2 ** indexBits;
  const warnings = warningsOf(base, nodeLength, nodes);
  return { base, nodes, nodeLength, indexBits, nodesMax, services, provider, warnings };
}

function baseFaults(base: Prefix, nodes: number, nodeLength: number): string[] {
  if (base.bits !== 128) return ['--base: the plan is one of IPv6; of IPv4 there is not enough'];
  if (nodeLength > 128 - POD_BITS_MIN) {
    return [
      `--node-prefix: /${nodeLength} leaves no room for pods: at most /${128 - POD_BITS_MIN}`,
    ];
  }
  const needed = bitsFor(nodes);
  if (base.length + needed <= nodeLength) return [];
  const most = nodeLength - needed;
  const what = `${prefixText(base)} is too small for ${nodes} nodes of /${nodeLength}`;
  if (most < 0) return [`--base: ${what}: no prefix is large enough`];
  return [`--base: ${what}: a /${most} or larger is needed`];
}

function serviceFaults(base: Prefix, services: Prefix): string[] {
  const faults: string[] = [];
  if (services.bits !== 128)
    return ['--services: the plan is one of IPv6: a range of it is needed'];
  if (services.length < SERVICE_LENGTH_MIN || services.length > SERVICE_LENGTH_MAX) {
    faults.push(`--services: from /${SERVICE_LENGTH_MIN} to /${SERVICE_LENGTH_MAX}`);
  }
  if (overlaps(base, services)) {
    const both = `${prefixText(base)} and ${prefixText(services)}`;
    faults.push(`--services: ${both} overlap: addresses of Services must be no pod's`);
  }
  return faults;
}

function providerFaults(
  { name, given, subnet }: Provider,
  base: Prefix,
  nodes: number,
  nodeLength: number,
): string[] {
  const faults: string[] = [];
  if (nodeLength < given) {
    faults.push(`--provider ${name}: a machine gets a /${given}: /${nodeLength} is more than that`);
  }
  if (subnet === 0 || base.length < subnet) return faults;
  const each = given - base.length;
  if (each < 0)
    return [`--provider ${name}: ${prefixText(base)} is less than one machine's /${given}`];
  if (each < bitsFor(nodes)) {
    const most = 2 ** each;
    const count = Math.ceil(nodes / most);
    faults.push(
      `--provider ${name}: ${prefixText(base)} holds ${most} prefixes of /${given}: ` +
        `${nodes} nodes need ${count} subnets, so a base of /${base.length - bitsFor(count)}`,
    );
  }
  return faults;
}

function warningsOf(base: Prefix, nodeLength: number, nodes: number): string[] {
  const warnings: string[] = [];
  const spare = nodeLength - base.length - bitsFor(nodes);
  if (spare === 0 && 2 ** bitsFor(nodes) === nodes) {
    warnings.push('The base is full: a further node needs another one.');
  }
  const known = parsePrefix('2001:db8::/32');
  if (typeof known !== 'string' && holds(known, base)) {
    warnings.push('2001:db8::/32 is for documents: no router carries it.');
  }
  const global = parsePrefix('2000::/3');
  if (typeof global !== 'string' && !holds(global, base)) {
    warnings.push(
      'The base is not routed by the internet: pods reach it by NAT64 or a proxy only.',
    );
  }
  if (nodeLength > 64 && nodeLength % 16 !== 0) {
    warnings.push(`/${nodeLength} does not end at a group: addresses are harder to read.`);
  }
  return warnings;
}

/** The prefix of pods of a node. */
export function podPrefix({ base, nodeLength }: Plan, index: number): Prefix {
  return pieceOf(base, nodeLength, index);
}

/** The address of a node's bridge, which is the gateway of its pods. */
export function gatewayOf(prefix: Prefix): string {
  return addressText(prefix.base + 1n, prefix.bits);
}

/** The number of the node that has an address; -1: none of the plan. */
export function nodeOf({ base, nodeLength, nodes }: Plan, address: bigint): number {
  const index = indexIn(base, nodeLength, address);
  return index < nodes ? index : -1;
}

/** Addresses for pods of a node: not the first one, and not that of the bridge. */
export function podsPerNode(plan: Plan): bigint {
  return sizeOf(podPrefix(plan, 0)) - 2n;
}
