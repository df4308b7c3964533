/**
 * `/openapi/v3`: an index and a document per group and version; `/openapi/v2`: one for all. Each
 * document is built when it is first asked for. In the index, the hash of a document that was not
 * built yet is that of what it is made from (tables and release), which changes when it would.
 */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { groups, type Resource } from '@megaplane/machinery/kinds';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import type { Call } from './call.ts';
import { parseAccept } from './negotiation.ts';
import { addPaths } from './openapi-paths.ts';
import { encodeOpenApiV2, OPENAPI_V2_ANSWER, OPENAPI_V2_PROTOBUF } from './openapi-protobuf.ts';
import { addSchemas, VERSION_2, VERSION_3, type Dialect } from './openapi-schemas.ts';
import { GIT_VERSION } from './release.ts';

const YEAR_MS: number = 365 * 24 * 3600 * 1000;
const JSON_NAMES: ReadonlySet<string> = new Set(['application/json', '*/*', 'application/*']);

const documents = new Map<string, Buffer>();

/** Answers a path under /openapi. */
export function answerOpenApi(call: Call, path: string): void {
  if (path === '/openapi/v2') {
    answerVersion2(call);
    return;
  }
  if (path === '/openapi/v3') {
    const text = JSON.stringify({ paths: index() });
    sendTagged(call, text, hashOf(text), 'text/plain; charset=utf-8');
    return;
  }
  const name = path.slice('/openapi/v3/'.length);
  if (!path.startsWith('/openapi/v3/') || !isDocument(name)) {
    call.sendText(404, '404 page not found\n');
    return;
  }
  answerDocument(call, name);
}

function answerDocument(call: Call, name: string): void {
  if (!acceptsJson(call)) {
    call.send(406, null, null);
    return;
  }
  const hash = nameHash(name);
  const asked = call.query.text('hash');
  if (asked !== '' && asked !== hash) {
    call.code = 301;
    const location = `/openapi/v3/${name}?hash=${hash}`;
    call.exchange.respond(301, null, null, call.headers('location', location));
    return;
  }
  const bytes = document(name);
  if (asked === '') {
    sendTagged(call, bytes, hash, 'application/json');
    return;
  }
  const expires = new Date(call.nowMs + YEAR_MS).toUTCString();
  const headers = ['audit-id', call.auditId, 'cache-control', 'public, immutable'];
  headers.push(...call.flowFields);
  headers.push('expires', expires, 'etag', `"${hash}"`, 'vary', 'Accept');
  call.code = 200;
  call.exchange.respond(200, 'application/json', bytes, headers);
}

function answerVersion2(call: Call): void {
  const accept = call.exchange.header('accept') ?? '';
  if (parseAccept(accept)[0]?.type === OPENAPI_V2_PROTOBUF) {
    sendTagged(call, document('v2 protobuf'), nameHash('v2 protobuf'), OPENAPI_V2_ANSWER);
    return;
  }
  if (!acceptsJson(call)) {
    call.send(406, null, null);
    return;
  }
  const bytes = document('v2');
  sendTagged(call, bytes, nameHash('v2'), 'application/json');
}

function acceptsJson(call: Call): boolean {
  const accept = call.exchange.header('accept') ?? '';
  return accept === '' || parseAccept(accept).some(({ type }) => JSON_NAMES.has(type));
}

function sendTagged(call: Call, bytes: Buffer | string, hash: string, type: string): void {
  const etag = `"${hash}"`;
  const headers = call.headers('etag', etag, 'vary', 'Accept');
  const isSame = call.exchange.header('if-none-match') === etag;
  call.code = isSame ? 304 : 200;
  if (isSame) call.exchange.respond(304, null, null, headers);
  else call.exchange.respond(200, type, bytes, headers);
}

function index(): JsonObject {
  const paths: JsonObject = {};
  for (const name of documentNames()) {
    paths[name] = { serverRelativeURL: `/openapi/v3/${name}?hash=${nameHash(name)}` };
  }
  return paths;
}

function documentNames(): string[] {
  const names = ['.well-known/openid-configuration', 'api', 'apis', 'version'];
  for (const group of groups()) {
    if (group.name !== '') names.push(`apis/${group.name}`);
    for (const { version } of group.versions) {
      names.push(group.name === '' ? `api/${version}` : `apis/${group.name}/${version}`);
    }
  }
  return names.sort();
}

function isDocument(name: string): boolean {
  return documentNames().includes(name);
}

function nameHash(name: string): string {
  return hashOf(`${GIT_VERSION} ${name}`);
}

function hashOf(text: string): string {
  return createHash('sha512').update(text).digest('hex').toUpperCase();
}

function document(name: string): Buffer {
  let bytes = documents.get(name);
  if (bytes === undefined) {
    documents.set(name, (bytes = build(name)));
  }
  return bytes;
}

function build(name: string): Buffer {
  if (name === 'v2 protobuf') return encodeOpenApiV2(version2());
  const object = name === 'v2' ? version2() : version3(resourcesOf(name));
  return Buffer.from(JSON.stringify(object));
}

function resourcesOf(name: string): readonly Resource[] {
  for (const group of groups()) {
    for (const { version, resources } of group.versions) {
      const own = group.name === '' ? `api/${version}` : `apis/${group.name}/${version}`;
      if (own === name) return resources;
    }
  }
  return [];
}

const INFO: JsonObject = { title: 'Kubernetes', version: GIT_VERSION };

function version3(resources: readonly Resource[]): JsonObject {
  const { paths, schemas } = contents(resources, VERSION_3);
  return { openapi: '3.0.0', info: INFO, paths, components: { schemas } };
}

function version2(): JsonObject {
  const all = groups().flatMap((group) => group.versions.flatMap(({ resources }) => resources));
  const { paths, schemas } = contents(all, VERSION_2);
  return { swagger: '2.0', info: INFO, paths, definitions: schemas };
}

function contents(
  resources: readonly Resource[],
  dialect: Dialect,
): { paths: JsonObject; schemas: JsonObject } {
  const paths: JsonObject = {};
  const schemas: JsonObject = {};
  for (const resource of resources) {
    addPaths(paths, resource, dialect);
    const kinds = [resource, ...resource.subresources.values()];
    for (const { group, version, kind } of kinds) {
      const type = findTypeOfKind(group === '' ? version : `${group}/${version}`, kind);
      if (type !== undefined) addSchemas(schemas, type, dialect);
    }
    const list = findTypeOfKind(resource.apiVersion, resource.listKind);
    if (list !== undefined) addSchemas(schemas, list, dialect);
  }
  return { paths, schemas };
}
