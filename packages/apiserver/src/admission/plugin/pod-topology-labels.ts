/**
 * PodTopologyLabels: a pod that is bound carries the zone and region of its node. One that is
 * created on its node does not: so it is in what was recorded from real clusters.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { findFirst, MemberCursor, pathOf, stringValue } from '@megaplane/machinery/scan';
import { findServed, keyOf } from '../../storage/served.ts';
import { emptyRow, type Row } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const LABELS = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'].map((name) => {
  return { name, key: Buffer.from(name) };
});
const NODE_LABELS = pathOf('metadata', 'labels');
const row = emptyRow();
const cursor = new MemberCursor();

export const podTopologyLabels: AdmissionPlugin = {
  name: 'PodTopologyLabels',
  handles: ({ resource }, operation, subresource) => {
    const { name } = resource.storage;
    if (operation !== 'CREATE') return false;
    if (name === 'bindings') return subresource === '';
    return name === 'pods' && subresource === 'binding';
  },
  repeats: () => true,
  mutate: (write) => {
    const { object } = write;
    const node = object === null ? '' : stringAt(object, 'target', 'name');
    if (object !== null && node !== '') label(write, object, node);
    return null;
  },
};

function label({ world }: Admitted, object: JsonObject, node: string): void {
  const found = topologyLabelsOf(world, node);
  if (found === null) return;
  const metadata = objectAt(object, 'metadata') ?? {};
  const labels: JsonObject = { ...objectAt(metadata, 'labels') };
  for (const { name } of LABELS) {
    const value = ownMember(found, name);
    if (value !== undefined) putMember(labels, name, value);
  }
  object['metadata'] = { ...metadata, labels };
}

/** Labels that a node gives its pods; null where there are none. */
export function topologyLabelsOf(
  world: World,
  node: string,
): Readonly<Record<string, string>> | null {
  const served = findServed('', 'v1', 'nodes');
  if (served === undefined || !world.storage.get(keyOf(served, '', node), row)) return null;
  return topologyOf(row);
}

/** The zone and region of a stored node, found without parsing it; null where it has neither. */
function topologyOf({ bytes, start, end }: Row): Readonly<Record<string, string>> | null {
  const at = findFirst(bytes, start, end, NODE_LABELS);
  if (at < 0 || !cursor.open(bytes, at, end)) return null;
  let found: Record<string, string> | null = null;
  while (cursor.next()) {
    for (const { name, key } of LABELS) {
      if (!cursor.is(key)) continue;
      found ??= {};
      putMember(found, name, stringValue(bytes, cursor.valueStart, cursor.valueEnd));
    }
  }
  return found;
}
