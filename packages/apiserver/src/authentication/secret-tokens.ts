/**
 * Tokens that lie in Secrets: which day each was last used is written at its Secret, and one that
 * is marked as no longer valid is refused. The cleaner of legacy tokens goes by these labels.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';

const LAST_USED = 'kubernetes.io/legacy-token-last-used';
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
const DAY_MS = 86_400_000;

const row = emptyRow();

/** Notes the use of the token in a Secret, once a day; false where it is refused. */
export function useSecretToken(world: World, secret: JsonObject): boolean {
  const isValid = stringAt(secret, 'metadata', 'labels', INVALID_SINCE) === '';
  const nowMs = world.edge.nowMs();
  const used = stringAt(secret, 'metadata', 'labels', LAST_USED);
  // another server's clock may be a day ahead
  if (used === dayOf(nowMs) || used === dayOf(nowMs + DAY_MS)) return isValid;
  world.edge.defer(() => noteUse(world, secret, dayOf(nowMs)));
  return isValid;
}

/** Whoever wrote in between is not overwritten: the next use is noted. */
function noteUse(world: World, { metadata }: JsonObject, day: string): void {
  const served = findServed('', 'v1', 'secrets');
  const [namespace, name] = [stringAt(metadata, 'namespace'), stringAt(metadata, 'name')];
  if (served === undefined) return;
  const key = keyOf(served, namespace, name);
  if (!world.storage.get(key, row)) return;
  const stored = decodeRow(served, row, row.modRevision);
  const labels = objectAt(stored, 'metadata', 'labels');
  if (stringAt(stored, 'metadata', 'uid') !== stringAt(metadata, 'uid')) return;
  if (stringAt(labels, LAST_USED) === day) return;
  const next = { ...objectAt(stored, 'metadata'), labels: { ...labels, [LAST_USED]: day } };
  const value = encodeCanonical({ ...stored, metadata: next });
  world.storage.put(key, value, row.modRevision, () => {});
}

function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, '2026-01-31'.length);
}
