/** Requests for paths that are no resources: discovery, version, health, metrics, OpenAPI. */
import { generic } from '@megaplane/machinery/status';
import type { Call } from './call.ts';
import { wantsCompressed, whenCompressed } from './compressed-document.ts';
import { wantsAggregated, type Document } from './discovery.ts';
import { JSON_TYPE } from './negotiation.ts';
import { answerDump, DUMPS_PATH } from './fairness/flow-dumps.ts';
import { answerOpenApi } from './openapi-route.ts';
import { VERSION } from './release.ts';
import type { ServerParts } from './server.ts';

const ISSUER_PATH = '/.well-known/openid-configuration';
const KEYS_PATH = '/openid/v1/jwks';

/** Answers; the caller has authorized the request. */
export function answerPath(parts: ServerParts, call: Call): void {
  const path = call.info.path.replace(/(.)\/$/, '$1');
  const [, first = '', second = '', third, fourth] = path.split('/');
  if (path.startsWith(DUMPS_PATH)) {
    if (parts.fairness === null || !answerDump(parts.fairness, call)) notFound(call);
    return;
  }
  if (['healthz', 'livez', 'readyz'].includes(first)) {
    if (!parts.health.answer(call, path)) notFound(call);
    return;
  }
  if (!isKnown(path, first)) {
    notFound(call);
    return;
  }
  if (call.exchange.method !== 'GET') {
    call.fail(generic('MethodNotAllowed'));
    return;
  }
  if (path === ISSUER_PATH || path === KEYS_PATH) answerIssuer(parts, call, path);
  else if (path === '/') call.sendObject(200, { paths: parts.discovery.rootPaths() });
  else if (path === '/version') call.sendObject(200, VERSION);
  else if (path === '/metrics') {
    call.send(200, 'text/plain; version=0.0.4; charset=utf-8', parts.metrics.render(parts.world));
  } else if (first === 'openapi') answerDocuments(parts, call, path);
  else if (first === 'api') answerCore(parts, call, second);
  else if (fourth === undefined) answerGroups(parts, call, second, third);
  else notFound(call);
}

function isKnown(path: string, first: string): boolean {
  return (
    ['/', '/version', '/metrics', ISSUER_PATH, KEYS_PATH].includes(path) ||
    ['api', 'apis', 'openapi'].includes(first)
  );
}

/** Documents of API servers behind this one are theirs. */
function answerDocuments({ remotes, openapi }: ServerParts, call: Call, path: string): void {
  const remote = remotes.publisherOf(path.slice('/openapi/v3/'.length));
  if (remote === undefined) answerOpenApi(openapi, call, path);
  else remotes.pass(call, remote);
}

/** Who signs the tokens of service accounts, for those who verify them by themselves. */
function answerIssuer(parts: ServerParts, call: Call, path: string): void {
  const signer = parts.world.services?.signer ?? null;
  if (signer === null) notFound(call);
  else if (path === KEYS_PATH) {
    call.send(200, 'application/jwk-set+json', JSON.stringify(signer.keySet()));
  } else call.send(200, JSON_TYPE, JSON.stringify(signer.discovery(parts.address)));
}

function answerCore(parts: ServerParts, call: Call, version: string): void {
  if (version === '') {
    const isAggregated = wantsAggregated(call.exchange.header('accept') ?? '');
    const { discovery } = parts;
    sendDocument(call, isAggregated ? discovery.aggregated(true) : discovery.coreVersions());
    return;
  }
  const list = parts.discovery.resourceList('', version);
  if (list === null) call.fail(generic('NotFound'));
  else sendDocument(call, list);
}

function answerGroups(
  { discovery }: ServerParts,
  call: Call,
  group: string,
  version: string | undefined,
): void {
  if (group === '') {
    const isAggregated = wantsAggregated(call.exchange.header('accept') ?? '');
    sendDocument(call, isAggregated ? discovery.aggregated(false) : discovery.groupList());
    return;
  }
  const document =
    version === undefined ? discovery.groupDocument(group) : discovery.resourceList(group, version);
  if (document !== null) sendDocument(call, document);
  else if (discovery.hasGroup(group)) call.fail(generic('NotFound'));
  else notFound(call);
}

function notFound(call: Call): void {
  call.sendText(404, '404 page not found\n');
}

/** Sends a kept document, or 304 where the client has it. */
export function sendDocument(call: Call, document: Document): void {
  const isAggregated = document.contentType.includes('as=');
  if (!isAggregated) {
    call.send(200, document.contentType, document.bytes);
    return;
  }
  const headers = ['audit-id', call.auditId, 'etag', document.etag, 'vary', 'Accept'];
  headers.push(...call.flowFields, 'cache-control', 'public');
  const isSame = call.exchange.header('if-none-match') === document.etag;
  if (isSame) {
    call.code = 304;
    call.exchange.respond(304, null, null, headers);
    return;
  }
  const { bytes, contentType } = document;
  if (!wantsCompressed(call, bytes)) {
    call.code = 200;
    call.exchange.respond(200, contentType, bytes, headers);
    return;
  }
  headers.push('vary', 'Accept-Encoding', 'content-encoding', 'gzip');
  whenCompressed(bytes, (compressed) => {
    if (call.exchange.closed) return;
    call.code = 200;
    call.exchange.respond(200, contentType, compressed, headers);
  });
}
