/**
 * Which requests for a kubelet's serving certificate are approved without a person.
 *
 * Upstream's controller approves none, for whoever holds such a certificate is taken for its names.
 * With `--approve-kubelet-serving` those are whose names are all the node's own: the kubelet of a
 * node asks for itself, and for nothing but what its Node tells as names and addresses.
 */
import { isIP } from 'node:net';
import type { Client } from '@megaplane/client/client';
import type { CertificateRequest } from '@megaplane/machinery/certificate-request';
import { ipText, parseIp } from '@megaplane/machinery/ip-address';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { KUBELET_SERVING, objection } from './signers.ts';

const NODES = '/api/v1/nodes';
const NODE_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';

/** Left to a person, approved, or not yet known: the Node may tell more later. */
export type ServingVerdict = 'refused' | 'approved' | 'later';

/** Judges a request; `request` is a text where it cannot be read. */
export async function judgeServing(
  client: Client,
  object: JsonObject,
  request: CertificateRequest | string,
  usages: readonly string[],
): Promise<ServingVerdict> {
  if (typeof request === 'string' || objection(KUBELET_SERVING, request, usages) !== '') {
    return 'refused';
  }
  const asker = stringAt(object, 'spec', 'username');
  const isNode = listAt(object, 'spec', 'groups').includes(NODES_GROUP);
  if (!isNode || asker !== request.commonName || !asker.startsWith(NODE_PREFIX)) return 'refused';
  const name = asker.slice(NODE_PREFIX.length);
  const answer = await client.request({
    method: 'GET',
    path: `${NODES}/${encodeURIComponent(name)}`,
  });
  // the kubelet asks before its Node is there
  if (!answer.ok) return 'later';
  return strangers(answer.object, name, request).length === 0 ? 'approved' : 'later';
}

/** Names of the request that are not the node's. */
export function strangers(node: JsonObject, name: string, request: CertificateRequest): string[] {
  const own = new Set<string>([name.toLowerCase()]);
  for (const one of listAt(node, 'status', 'addresses').filter(isObject)) {
    const address = stringAt(one, 'address');
    own.add(isIP(address) === 0 ? address.toLowerCase() : canonical(address));
  }
  const asked = [
    ...request.dnsNames.map((one) => one.toLowerCase()),
    ...request.addressBytes.map(addressText),
  ];
  return asked.filter((one) => !own.has(one));
}

function canonical(address: string): string {
  const ip = parseIp(address);
  return ip === undefined ? address : ipText(ip);
}

/** As a Node tells it; bytes that are no address are nobody's. */
function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return `an address of ${bytes.length} bytes`;
  const groups: string[] = [];
  for (let at = 0; at < 16; at += 2) {
    groups.push((((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16));
  }
  return canonical(groups.join(':'));
}
