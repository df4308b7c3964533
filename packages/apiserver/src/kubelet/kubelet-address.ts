/** Where a node's kubelet listens: the rules of upstream's NodeConnectionInfoGetter. */
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  failed,
  notFound,
  success,
  unclassified,
  type Qualified,
  type Result,
} from '@megaplane/machinery/status';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import type { KubeletFlags } from '../webhook/target.ts';

const row = emptyRow();
/** Simulated nodes have it: their kubelets are one port, reached by its name, not at addresses. */
const SIMULATED_LABEL = 'megaplane.dev/simulated';

export interface KubeletAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * The address of the kubelet of a node, by name. Of a node that there is not, upstream's storage
 * says that it is none of the resource that was asked for: `pods "node-1" not found`.
 */
export function kubeletOf(
  world: World,
  name: string,
  { addressTypes, port }: KubeletFlags,
  asked: Qualified,
): Result<KubeletAddress> {
  const served = findServed('', 'v1', 'nodes');
  if (served === undefined || !world.storage.get(keyOf(served, '', name), row)) {
    return failed(notFound(asked, name));
  }
  const node = decodeRow(served, row, row.modRevision);
  const isSimulated = labelOf(node, SIMULATED_LABEL) === 'true';
  const host = preferredAddress(node, isSimulated ? ['Hostname', ...addressTypes] : addressTypes);
  if (host === null) {
    const known = listAt(node, 'status', 'addresses').map((one) => JSON.stringify(one));
    const text = `no preferred addresses found; known addresses: [${known.join(' ')}]`;
    return failed(unclassified(text));
  }
  const own = numberAt(node, 'status', 'daemonEndpoints', 'kubeletEndpoint', 'Port');
  return success({ host, port: own > 0 ? own : port });
}

function preferredAddress(node: JsonObject, types: readonly string[]): string | null {
  const addresses = listAt(node, 'status', 'addresses');
  for (const type of types) {
    for (const one of addresses) {
      const address = stringAt(one, 'address');
      if (stringAt(one, 'type') === type && address !== '') return address;
    }
    // the last resort of upstream for names: the label that every kubelet sets
    const label = type === 'Hostname' ? labelOf(node, 'kubernetes.io/hostname') : '';
    if (label !== '') return label;
  }
  return null;
}

function labelOf(node: JsonObject, label: string): string {
  return stringAt(node, 'metadata', 'labels', label);
}
