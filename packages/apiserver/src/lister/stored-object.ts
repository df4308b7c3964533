/** One object by its name, for plugins that look something up. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { pathSegmentErrors } from '@megaplane/machinery/names';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from './world.ts';

const row = emptyRow();

/** What upstream's client says of a name that it cannot ask for; '' where it can. */
export function pathNameFault(name: string): string {
  if (name === '') return 'resource name may not be empty';
  const faults = pathSegmentErrors(name);
  if (faults.length === 0) return '';
  return `invalid resource name ${JSON.stringify(name)}: [${faults.join(' ')}]`;
}

/** An object that was looked at, as it was then. */
export interface Seen {
  readonly key: Buffer;
  readonly revision: number;
}

/** The object in version v1 of its group, or null. What is there is added to `seen`. */
export function readStoredObject(
  world: World,
  group: string,
  plural: string,
  namespace: string,
  name: string,
  seen: Seen[] | null = null,
): JsonObject | null {
  const served = findServed(group, 'v1', plural);
  if (served === undefined) return null;
  const key = keyOf(served, namespace, name);
  if (!world.storage.get(key, row)) return null;
  seen?.push({ key, revision: row.modRevision });
  return decodeRow(served, row, row.modRevision);
}

/** True as long as nothing of it has changed. */
export function isAsSeen(world: World, seen: readonly Seen[]): boolean {
  for (const { key, revision } of seen) {
    if (!world.storage.get(key, row) || row.modRevision !== revision) return false;
  }
  return true;
}
