/** Statuses that kubelets report of themselves and of their pods, as NodeRestriction wants them. */
import { findFirst, pathOf, stringValue } from '@megaplane/machinery/scan';
import { nodeNameOfUser } from '../../authorization/node-identity.ts';
import { keyOf } from '../../storage/served.ts';
import { emptyRow } from '../../storage/storage.ts';
import type { RepeatedRequest } from '../admission-plugin.ts';

const NODE_NAME = pathOf('spec', 'nodeName');
/** What a body holds that changes more than metadata and status, or may. */
const BEYOND: readonly string[] = ['"spec"', '"$patch"', '"$retainKeys"', String.raw`\u`];
const row = emptyRow();

/**
 * Whether a node reports its own status, or that of a pod which runs on it. All else that the
 * plugin asks of such a write follows from the body and from the metadata and status that are
 * stored, whichever node it is.
 */
export function isOwnStatus({ world, served, call }: RepeatedRequest): boolean {
  const node = nodeNameOfUser(call.identity);
  const { subresource, namespace, name } = call.info;
  if (node === '' || subresource !== 'status') return false;
  const storage = served.resource.storage.name;
  if (storage === 'nodes') {
    const isPatch = call.exchange.method === 'PATCH';
    return isPatch && name === node && BEYOND.every((text) => !call.body.includes(text));
  }
  if (storage !== 'pods' || !world.storage.get(keyOf(served, namespace, name), row)) return false;
  const { bytes, start, end } = row;
  return stringValue(bytes, findFirst(bytes, start, end, NODE_NAME), end) === node;
}
