/**
 * Discovery: which groups, versions and resources there are. The documents depend on the tables
 * alone, so each is built when it is first asked for and kept as bytes.
 */
import { createHash } from 'node:crypto';
import { groups, type Group, type Resource } from '@megaplane/machinery/kinds';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { parseAccept } from './negotiation.ts';

/** A document with its entity tag, or null where there is none at the path. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly etag: string;
}

const AGGREGATED_TYPE = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

const kept = new Map<string, Document>();

function keep(name: string, contentType: string, build: () => JsonObject): Document {
  let document = kept.get(name);
  if (document === undefined) {
    const bytes = Buffer.from(`${JSON.stringify(build())}\n`);
    const hash = createHash('sha512').update(bytes).digest('hex').toUpperCase();
    document = { contentType, bytes, etag: `"${hash}"` };
    kept.set(name, document);
  }
  return document;
}

/** True where the Accept header prefers the aggregated document over the plain one. */
export function wantsAggregated(accept: string): boolean {
  for (const { type, parameters } of parseAccept(accept)) {
    if (type !== 'application/json' && type !== '*/*') continue;
    const as = parameters.get('as');
    if (as === undefined) return false;
    const isList = as === 'APIGroupDiscoveryList' && parameters.get('g') === 'apidiscovery.k8s.io';
    if (isList && parameters.get('v') === 'v2') return true;
  }
  return false;
}

/** The aggregated list of the core group (`/api`) or of all others (`/apis`). */
export function aggregatedDocument(isCore: boolean): Document {
  return keep(`aggregated ${isCore}`, AGGREGATED_TYPE, () => ({
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups()
      .filter((group) => (group.name === '') === isCore)
      .map(aggregatedGroup),
  }));
}

function aggregatedGroup(group: Group): JsonObject {
  return {
    metadata: group.name === '' ? {} : { name: group.name },
    versions: group.versions.map(({ version, resources }) => ({
      version,
      resources: resources.map(aggregatedResource),
      freshness: 'Current',
    })),
  };
}

function aggregatedResource(resource: Resource): JsonObject {
  const subresources: JsonValue[] = [];
  for (const one of resource.subresources.values()) {
    const isOwn = one.group === resource.group && one.version === resource.version;
    subresources.push({
      subresource: one.name,
      responseKind: {
        group: isOwn ? '' : one.group,
        version: isOwn ? '' : one.version,
        kind: one.kind,
      },
      verbs: [...one.verbs],
    });
  }
  return {
    resource: resource.resource,
    responseKind: { group: '', version: '', kind: resource.kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singular,
    verbs: [...resource.verbs],
    ...(resource.shortNames.length > 0 ? { shortNames: [...resource.shortNames] } : {}),
    ...(resource.categories.length > 0 ? { categories: [...resource.categories] } : {}),
    ...(subresources.length > 0 ? { subresources } : {}),
  };
}

/** `/api`: the versions of the core group. */
export function coreVersions(serverAddress: string): Document {
  return keep('versions', 'application/json', () => ({
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  }));
}

/** `/apis`: all groups but the core one. */
export function groupList(): Document {
  return keep('groups', 'application/json', () => ({
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups()
      .filter((group) => group.name !== '')
      .map(legacyGroup),
  }));
}

function legacyGroup(group: Group): JsonObject {
  const versions = group.versions.map(({ version }) => ({
    groupVersion: `${group.name}/${version}`,
    version,
  }));
  return { name: group.name, versions, preferredVersion: versions[0] ?? null };
}

/** `/apis/{group}`; null where there is no such group. */
export function groupDocument(name: string): Document | null {
  const group = groups().find((one) => one.name === name);
  if (group === undefined || name === '') return null;
  return keep(`group ${name}`, 'application/json', () => ({
    kind: 'APIGroup',
    apiVersion: 'v1',
    ...legacyGroup(group),
  }));
}

/** `/api/v1` and `/apis/{group}/{version}`; null where there is no such version. */
export function resourceList(groupName: string, version: string): Document | null {
  const group = groups().find((one) => one.name === groupName);
  const found = group?.versions.find((one) => one.version === version);
  if (found === undefined) return null;
  const groupVersion = groupName === '' ? version : `${groupName}/${version}`;
  return keep(`resources ${groupVersion}`, 'application/json', () => ({
    kind: 'APIResourceList',
    ...(groupName === '' ? {} : { apiVersion: 'v1' }),
    groupVersion,
    resources: found.resources.flatMap(legacyResource),
  }));
}

function legacyResource(resource: Resource): JsonObject[] {
  const { namespaced } = resource;
  const storedAs = `${resource.storage.apiVersion}/${resource.kind}`.replace(/^v1\//, '/v1/');
  const hash = createHash('sha256').update(storedAs).digest().subarray(0, 8).toString('base64');
  const entries: JsonObject[] = [
    {
      name: resource.resource,
      singularName: resource.singular,
      namespaced,
      kind: resource.kind,
      verbs: [...resource.verbs],
      ...(resource.shortNames.length > 0 ? { shortNames: [...resource.shortNames] } : {}),
      ...(resource.categories.length > 0 ? { categories: [...resource.categories] } : {}),
      storageVersionHash: hash,
    },
  ];
  for (const one of resource.subresources.values()) {
    const isOwn = one.group === resource.group && one.version === resource.version;
    entries.push({
      name: `${resource.resource}/${one.name}`,
      singularName: '',
      namespaced,
      ...(isOwn ? {} : { group: one.group, version: one.version }),
      kind: one.kind,
      verbs: [...one.verbs],
    });
  }
  return entries;
}

/** Every path that `GET /` lists. */
export function rootPaths(): string[] {
  const paths = new Set<string>(['/.well-known/openid-configuration', '/api', '/apis', '/apis/']);
  for (const group of groups()) {
    const base = group.name === '' ? '/api' : `/apis/${group.name}`;
    paths.add(base);
    for (const { version } of group.versions) paths.add(`${base}/${version}`);
  }
  for (const path of ['/healthz', '/livez', '/readyz', '/metrics', '/openid/v1/jwks', '/version']) {
    paths.add(path);
  }
  paths.add('/openapi/v2').add('/openapi/v3').add('/openapi/v3/');
  return [...paths].sort();
}
