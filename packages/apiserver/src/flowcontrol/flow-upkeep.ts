/**
 * Keeps the standard flow schemas and priority levels as they should be: makes those that are
 * missing, brings back specs that nobody has claimed, removes those that are standard no more.
 * At the start and once a minute, as kube-apiserver does.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { applyDefaults } from '@megaplane/machinery/defaulting';
import { equals, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ensure } from '../registry/rest/missing-objects.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf, rangeOf, type Served } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import { AUTO_UPDATE, GROUP, standardObjects, type StandardObject } from './flow-objects.ts';

const KINDS = ['prioritylevelconfigurations', 'flowschemas'] as const;
const row = emptyRow();

/** Calls `done` when everything was looked at. */
export function upkeepFlows(world: World, done: () => void = () => {}): void {
  const standards = standardObjects();
  let left = standards.length;
  for (const one of standards) {
    keep(world, one, () => {
      left--;
      if (left === 0) done();
    });
  }
  for (const plural of KINDS) removeUnwanted(world, plural, standards);
}

function keep(world: World, { object, isMandatory }: StandardObject, done: () => void): void {
  const plural = object['kind'] === 'FlowSchema' ? 'flowschemas' : 'prioritylevelconfigurations';
  const served = findServed(GROUP, 'v1', plural);
  if (served === undefined) {
    done();
    return;
  }
  const key = keyOf(served, '', stringAt(object, 'metadata', 'name'));
  if (!world.storage.get(key, row)) {
    ensure(world, object, () => done());
    return;
  }
  const stored = decodeRow(served, row, row.modRevision);
  const isOurs = isMandatory || isUnclaimed(stored);
  const wanted = structuredClone(object);
  applyDefaults(wanted);
  const hasOtherSpec = isOurs && !equals(wanted['spec'] ?? {}, stored['spec'] ?? {});
  const annotations = objectAt(stored, 'metadata', 'annotations') ?? {};
  const hasOtherAnnotation = boolOf(annotations[AUTO_UPDATE]) !== isOurs;
  if (!hasOtherSpec && !hasOtherAnnotation) {
    done();
    return;
  }
  const metadata: JsonObject = {
    ...objectAt(stored, 'metadata'),
    annotations: { ...annotations, [AUTO_UPDATE]: String(isOurs) },
  };
  if (hasOtherSpec) metadata['generation'] = numberAt(stored, 'metadata', 'generation') + 1;
  const spec = (hasOtherSpec ? wanted['spec'] : stored['spec']) ?? {};
  // whoever wrote in between is looked at a minute later
  const next = encodeCanonical({ ...stored, metadata, spec });
  world.storage.put(key, next, row.modRevision, () => done());
}

/** Go's ParseBool, as far as people write it. */
function boolOf(value: unknown): boolean | null {
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (['true', 't', '1'].includes(text)) return true;
  return ['false', 'f', '0'].includes(text) ? false : null;
}

/** The spec may be brought back: nobody has said otherwise, in words or by changing it. */
function isUnclaimed(stored: JsonObject): boolean {
  const said = boolOf(objectAt(stored, 'metadata', 'annotations')?.[AUTO_UPDATE]);
  return said ?? numberAt(stored, 'metadata', 'generation') === 1;
}

function removeUnwanted(
  world: World,
  plural: (typeof KINDS)[number],
  standards: readonly StandardObject[],
): void {
  const served = findServed(GROUP, 'v1', plural);
  if (served === undefined) return;
  const kind = served.resource.kind;
  const names = new Set(
    standards
      .filter(({ object }) => object['kind'] === kind)
      .map(({ object }) => stringAt(object, 'metadata', 'name')),
  );
  for (const { name, revision } of claimedByUs(world, served)) {
    if (!names.has(name)) world.storage.delete(keyOf(served, '', name), revision, () => {});
  }
}

function claimedByUs(world: World, served: Served): { name: string; revision: number }[] {
  const { start, end } = rangeOf(served, '');
  const found: { name: string; revision: number }[] = [];
  world.storage.page(start, end, 0, (one) => {
    const object = decodeRow(served, one, one.modRevision);
    const annotation = objectAt(object, 'metadata', 'annotations')?.[AUTO_UPDATE];
    if (boolOf(annotation) === true) {
      found.push({ name: stringAt(object, 'metadata', 'name'), revision: one.modRevision });
    }
    return true;
  });
  return found;
}
