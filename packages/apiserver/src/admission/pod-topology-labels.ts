/**
 * PodTopologyLabels: a pod that is bound carries the zone and region of its node. One that is
 * created on its node does not: so it is in what was recorded from real clusters.
 */
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { AdmissionPlugin, Admitted } from './admission.ts';
import { decodeRow } from '../encoder.ts';
import { findServed, keyOf } from '../served.ts';
import { emptyRow } from '../storage.ts';

const LABELS = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];
const row = emptyRow();

export const podTopologyLabels: AdmissionPlugin = {
  name: 'PodTopologyLabels',
  handles: ({ resource }, operation, subresource) => {
    const { name } = resource.storage;
    if (operation !== 'CREATE') return false;
    if (name === 'bindings') return subresource === '';
    return name === 'pods' && subresource === 'binding';
  },
  mutate: (write) => {
    const { object } = write;
    const node = object === null ? '' : stringAt(object, 'target', 'name');
    if (object !== null && node !== '') label(write, object, node);
    return null;
  },
};

function label({ world }: Admitted, object: JsonObject, node: string): void {
  const served = findServed('', 'v1', 'nodes');
  if (served === undefined || !world.storage.get(keyOf(served, '', node), row)) return;
  // nodes of one zone need not say so, and then need not be parsed
  if (!row.bytes.subarray(row.start, row.end).includes('topology.kubernetes.io/')) return;
  const found = objectAt(decodeRow(served, row, row.modRevision), 'metadata', 'labels') ?? {};
  const metadata = objectAt(object, 'metadata') ?? {};
  const labels: JsonObject = { ...objectAt(metadata, 'labels') };
  for (const name of LABELS) if (found[name] !== undefined) labels[name] = found[name];
  if (Object.keys(labels).length > 0) object['metadata'] = { ...metadata, labels };
}
