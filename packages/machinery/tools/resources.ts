/** Turns `resources.json` and the names beside it into the table of `src/kinds.ts`. */

import {
  CATEGORIES,
  CONDITIONAL_UPDATE,
  CREATED_BY_PUT,
  GROUP_PRIORITIES,
  SAME_STORAGE,
  SHORT_NAMES,
  STORAGE_PATHS,
  STORAGE_VERSIONS,
} from './resource-names.ts';

export interface ResourceEntry {
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly kinds: readonly string[];
}

interface Parts {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string | undefined;
}

function partsOf(path: string): Parts {
  const [group = '', version = '', resource = '', subresource] = path.split('/');
  return { group, version, resource, subresource };
}

/** HTTP actions as OpenAPI names them -> verbs as discovery names them, sorted. */
function verbsOf(entry: ResourceEntry, isSubresource: boolean): string[] {
  const verbs = new Set<string>();
  for (const action of entry.verbs) {
    if (action === 'post') verbs.add('create');
    else if (action === 'put') verbs.add('update');
    else if (action === 'connect') verbs.add('create').add('get');
    else verbs.add(action);
  }
  if (!isSubresource && verbs.has('list') && verbs.has('delete')) verbs.add('watch');
  return [...verbs].toSorted();
}

const PROXY_VERBS = ['create', 'delete', 'get', 'patch', 'update'];

function qualified(resource: string, group: string): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** GA before beta before alpha, higher numbers first; kube-aware as discovery orders versions. */
export function compareVersions(left: string, right: string): number {
  return rank(right) - rank(left);
}

function rank(version: string): number {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (match === null) return 0;
  const stage = match[2] === undefined ? 2 : match[2] === 'beta' ? 1 : 0;
  return stage * 1e6 + Number(match[1]) * 1e3 + Number(match[3] ?? 0);
}

function kindParts(reference: string): { group: string; version: string; kind: string } {
  const [group = '', version = '', kind = ''] = reference.split('/');
  return { group, version, kind };
}

/** One line a resource, in discovery order; columns as `src/kinds.ts` reads them. */
export function resourceTable(entries: Readonly<Record<string, ResourceEntry>>): string {
  const paths = Object.keys(entries).map((path) => ({ path, ...partsOf(path) }));
  const resources = paths.filter((parts) => parts.subresource === undefined);
  resources.sort(
    (left, right) =>
      (GROUP_PRIORITIES[right.group] ?? 0) - (GROUP_PRIORITIES[left.group] ?? 0) ||
      (left.group < right.group ? -1 : left.group > right.group ? 1 : 0) ||
      compareVersions(left.version, right.version) ||
      (left.resource < right.resource ? -1 : 1),
  );
  const lines: string[] = [];
  for (const parts of resources) {
    const entry = entries[parts.path];
    if (entry === undefined) continue;
    lines.push(resourceLine(parts, entry, entries, resources));
  }
  return lines.join('\n');
}

function resourceLine(
  parts: Parts & { path: string },
  entry: ResourceEntry,
  entries: Readonly<Record<string, ResourceEntry>>,
  resources: readonly Parts[],
): string {
  const name = qualified(parts.resource, parts.group);
  const kind = kindParts(entry.kinds[0] ?? '').kind;
  const subresources: string[] = [];
  for (const path of Object.keys(entries).toSorted()) {
    if (!path.startsWith(`${parts.path}/`)) continue;
    const sub = partsOf(path).subresource ?? '';
    const subEntry = entries[path];
    if (subEntry === undefined) continue;
    const verbs = sub === 'proxy' ? PROXY_VERBS : verbsOf(subEntry, true);
    subresources.push(`${sub}=${subEntry.kinds[0] ?? ''}=${verbs.join(',')}`);
  }
  const storedAs = SAME_STORAGE[name] ?? name;
  const versions = resources
    .filter((other) => other.resource === parts.resource && other.group === parts.group)
    .map((other) => other.version)
    .toSorted(compareVersions);
  const storedVersion = STORAGE_VERSIONS[name] ?? versions[0] ?? parts.version;
  const flags =
    (entry.namespaced ? 'n' : '') +
    (/^v\d+$/.test(parts.version) ? 's' : '') +
    (CREATED_BY_PUT.includes(name) ? 'c' : '') +
    (CONDITIONAL_UPDATE.includes(name) ? 'u' : '');
  return [
    parts.group,
    parts.version,
    parts.resource,
    kind,
    flags,
    (SHORT_NAMES[name] ?? []).join(','),
    (CATEGORIES[name] ?? []).join(','),
    verbsOf(entry, false).join(','),
    subresources.join(';'),
    STORAGE_PATHS[storedAs] ?? parts.resource,
    storedAs === name ? storedVersion : 'v1',
    storedAs,
  ].join('|');
}
