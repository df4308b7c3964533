/** Namespaces as they are stored, and as the server makes them. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { fromStored } from '../storage/conversion.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from './world.ts';

const row = emptyRow();

/** A namespace as stored, or null. */
export function readNamespace(world: World, name: string): JsonObject | null {
  const served = findServed('', 'v1', 'namespaces');
  if (served === undefined || !world.storage.get(keyOf(served, '', name), row)) return null;
  return fromStored(decodeRow(served, row, row.modRevision), served.resource);
}

/** A namespace as one is made that nobody says anything of. */
export function newNamespace(name: string): JsonObject {
  return {
    kind: 'Namespace',
    apiVersion: 'v1',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  };
}
