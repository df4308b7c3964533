/** Files of one volume that take each other's place. */
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';

interface SourcedPath {
  readonly path: string;
  readonly source: string;
}

/** Warnings of paths within a volume that are equal, or below one another. */
export function* overlapWarnings(volumes: readonly JsonValue[]): Iterable<string> {
  for (const volume of volumes) {
    const name = quoted(stringAt(volume, 'name'));
    for (const [field, sources] of [
      ['configMap', `ConfigMap ${quoted(stringAt(volume, 'configMap', 'name'))}`],
      ['secret', `Secret ${quoted(stringAt(volume, 'secret', 'secretName'))}`],
      ['downwardAPI', 'DownwardAPI'],
    ] as const) {
      const paths = itemPaths(objectAt(volume, field), '');
      for (const body of overlaps(paths)) {
        yield `volume ${name} (${sources}): overlapping paths: ${body}`;
      }
    }
    const paths: SourcedPath[] = [];
    for (const source of listAt(volume, 'projected', 'sources')) {
      const own = projectedPaths(source);
      if (own === undefined) yield `volume ${name} (Projected) has no sources provided`;
      else paths.push(...own);
    }
    for (const body of overlaps(paths)) {
      yield `volume ${name} (Projected): overlapping paths: ${body}`;
    }
  }
}

function itemPaths(mapping: JsonObject | undefined, source: string): SourcedPath[] {
  return listAt(mapping, 'items').map((item) => ({ path: stringAt(item, 'path'), source }));
}

const NAMED = [
  ['configMap', 'ConfigMap'],
  ['secret', 'Secret'],
] as const;
const CERTIFICATE_PATHS = [
  ['certificateChainPath', 'PodCertificate chain'],
  ['keyPath', 'PodCertificate key'],
  ['credentialBundlePath', 'PodCertificate credential bundle'],
] as const;

/** Paths of one source of a projected volume; undefined where it names none. */
function projectedPaths(source: JsonValue): SourcedPath[] | undefined {
  if (Object.keys(objectAt(source) ?? {}).length === 0) return undefined;
  for (const [field, kind] of NAMED) {
    const own = objectAt(source, field);
    if (own?.['items'] === undefined) continue;
    return itemPaths(own, `${kind} ${quoted(stringAt(own, 'name'))}`);
  }
  const downward = objectAt(source, 'downwardAPI');
  if (downward?.['items'] !== undefined) return itemPaths(downward, 'DownwardAPI');
  const token = objectAt(source, 'serviceAccountToken');
  if (token !== undefined) {
    return [{ path: stringAt(token, 'path'), source: 'ServiceAccountToken' }];
  }
  const bundle = objectAt(source, 'clusterTrustBundle');
  if (bundle !== undefined) {
    const name = stringAt(bundle, bundle['name'] === undefined ? 'signerName' : 'name');
    const path = stringAt(bundle, 'path');
    return [{ path, source: `ClusterTrustBundle ${quoted(name)}` }];
  }
  const certificate = objectAt(source, 'podCertificate');
  const paths = CERTIFICATE_PATHS.map(([field, source]) => ({
    path: stringAt(certificate, field),
    source,
  }));
  return paths.filter(({ path }) => path !== '');
}

function* overlaps(paths: readonly SourcedPath[]): Iterable<string> {
  const seen: SourcedPath[] = [];
  for (const { path, source } of paths) {
    const one = { path: path.replace(/\/+$/, ''), source };
    for (const other of seen) {
      if (isOverlap(one.path, other.path)) yield `${printedPath(one)} with ${printedPath(other)}`;
    }
    seen.push(one);
  }
}

function isOverlap(one: string, other: string): boolean {
  if (one === '' || other === '') return false;
  return `${other}/`.startsWith(`${one}/`) || `${one}/`.startsWith(`${other}/`);
}

function printedPath({ path, source }: SourcedPath): string {
  return source === '' ? quoted(path) : `${quoted(path)} (${source})`;
}
