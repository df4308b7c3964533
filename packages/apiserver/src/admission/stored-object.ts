/** One object by its name, for plugins that look something up. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { pathSegmentErrors } from '@megaplane/machinery/names';
import { decodeRow } from '../encoder.ts';
import { findServed, keyOf } from '../served.ts';
import { emptyRow } from '../storage.ts';
import type { World } from '../world.ts';

const row = emptyRow();

/** What upstream's client says of a name that it cannot ask for; '' where it can. */
export function pathNameFault(name: string): string {
  if (name === '') return 'resource name may not be empty';
  const faults = pathSegmentErrors(name);
  if (faults.length === 0) return '';
  return `invalid resource name ${JSON.stringify(name)}: [${faults.join(' ')}]`;
}

/** The object in version v1 of its group, or null. */
export function readStoredObject(
  world: World,
  group: string,
  plural: string,
  namespace: string,
  name: string,
): JsonObject | null {
  const served = findServed(group, 'v1', plural);
  if (served === undefined || !world.storage.get(keyOf(served, namespace, name), row)) return null;
  return decodeRow(served, row, row.modRevision);
}
