/** Requests for paths that are no resources: discovery, version, health, metrics, OpenAPI. */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { generic, nothingAcceptable } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import { isWorthIt, whenCompressed } from '../serializer/compressed-document.ts';
import { asksForGzip, PACKED_FIELDS } from '../request/gzip-member.ts';
import { answerFlags } from '../debug/log-flag.ts';
import { answerProfiling } from '../debug/profiling.ts';
import { answerFlagz, answerStatusz } from '../debug/zpages.ts';
import {
  aggregatedEncoding,
  keptForm,
  makeForm,
  type Encoding,
  type Document,
} from '../discovery/discovery-forms.ts';
import {
  JSON_TYPE,
  negotiate,
  parseAccept,
  REVIEW_OFFER,
  UNROUTED_OFFER,
  type Offer,
} from '../request/negotiation.ts';
import { answerDump, DUMPS_PATH } from '../flowcontrol/flow-dumps.ts';
import { answerOpenApi } from '../openapi/openapi-route.ts';
import { VERSION } from '../release.ts';
import { isGroupServed } from '../storage/served.ts';
import type { ServerParts } from './server-parts.ts';

const ISSUER_PATH = '/.well-known/openid-configuration';
const KEYS_PATH = '/openid/v1/jwks';

/** Served by the router of resources' documents, to which slashes at the end are nothing. */
const ROUTED = /^\/(api|apis|version|\.well-known\/openid-configuration|openid\/v1\/jwks)\b/;

/** Answers; the caller has authorized the request. */
export function answerPath(parts: ServerParts, call: Call): void {
  const { info, exchange } = call;
  const path = ROUTED.test(info.path) ? info.path.replace(/(.)\/+$/, '$1') : info.path;
  const [, first = '', second = '', third, fourth] = path.split('/');
  if (path.startsWith(DUMPS_PATH)) {
    if (parts.fairness === null || !answerDump(parts.fairness, call)) notFound(call);
    return;
  }
  if (['healthz', 'livez', 'readyz'].includes(first)) {
    if (path.endsWith('/') || !parts.health.answer(call, path)) notFound(call);
    return;
  }
  if (answerDebugging(parts, call, path) || answerPlain(parts, call, path)) return;
  // a group has a name
  if (!ROUTED.test(path) || info.path.startsWith('/apis//')) {
    notFound(call);
    return;
  }
  if (first === 'api' && !['', 'v1'].includes(second)) {
    call.fail(generic('NotFound'));
    return;
  }
  const isGroups = first === 'apis' && fourth === undefined && third === undefined;
  // what tells of custom resources looks at no method
  const isCustom = first === 'apis' && fourth === undefined && !isGroupServed(second);
  if (exchange.method !== 'GET' && !isGroups && !isCustom) {
    const isKnown = first !== 'apis' || parts.discovery.groupDocument(second) !== null;
    if (isKnown) call.fail(generic('MethodNotAllowed'));
    else notFound(call);
    return;
  }
  if (path === ISSUER_PATH || path === KEYS_PATH) answerIssuer(parts, call, path);
  else if (path === '/version') answerVersion(call);
  else if (first === 'api') answerCore(parts, call, second);
  else if (first === 'apis' && fourth === undefined) answerGroups(parts, call, second, third);
  else if (first === 'apis') notFound(call);
  else call.fail(generic('NotFound'));
}

/** Paths for looking into the server, which answer whichever method asks. */
function answerDebugging(parts: ServerParts, call: Call, path: string): boolean {
  const { process: facts, health, world } = parts;
  const draw = (n: number): number => world.edge.below(n);
  if (path === '/flagz') answerFlagz(facts, call, draw);
  else if (path === '/statusz') answerStatusz(facts, call, draw, pathsOf(parts));
  else if (path === '/metrics/slis') call.send(200, METRICS_TYPE, health.render(facts.startedMs));
  else if (/^\/debug\/flags(\/|$)/.test(path)) answerFlags(facts, call);
  else if (/^\/debug\/pprof(\/|$)/.test(path)) answerProfiling(facts.profiler, call);
  else return false;
  return true;
}

function pathsOf({ discovery, health }: ServerParts): string[] {
  return discovery.rootPaths(health.paths());
}

/** Paths that answer whichever method asks. */
function answerPlain(parts: ServerParts, call: Call, path: string): boolean {
  if (path === '/' || path === '/index.html') {
    call.send(200, JSON_TYPE, JSON.stringify({ paths: pathsOf(parts) }, null, 2));
  } else if (path === '/metrics') {
    answerMetrics(parts, call);
  } else if (path.startsWith('/openapi/')) answerDocuments(parts, call, path);
  else return false;
  return true;
}

function answerMetrics({ metrics, world }: ServerParts, call: Call): void {
  if (call.exchange.method === 'DELETE') {
    metrics.reset();
    call.send(200, 'text/plain; charset=utf-8', 'metrics reset\n');
  } else call.send(200, METRICS_TYPE, metrics.render(world));
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';

/** The routers of these look at types alone, and know no others. */
function takes(call: Call, type: string): boolean {
  const accept = call.exchange.header('accept') ?? '';
  const isTaken =
    accept === '' || parseAccept(accept).some((one) => one.type === type || one.type === '*/*');
  if (!isTaken) call.fail(nothingAcceptable([type]));
  return isTaken;
}

function answerVersion(call: Call): void {
  if (takes(call, JSON_TYPE)) call.send(200, JSON_TYPE, JSON.stringify(VERSION, null, 2));
}

/** Documents of API servers behind this one are theirs. */
function answerDocuments({ remotes, openapi }: ServerParts, call: Call, path: string): void {
  const remote = remotes.publisherOf(path.slice('/openapi/v3/'.length));
  if (remote === undefined) answerOpenApi(openapi, call, path);
  else remotes.pass(call, remote);
}

/** Who signs the tokens of service accounts, for those who verify them by themselves. */
function answerIssuer(parts: ServerParts, call: Call, path: string): void {
  const signer = parts.services.signer;
  if (signer === null) notFound(call);
  else if (path === KEYS_PATH) sendKept(call, KEYS_TYPE, JSON.stringify(signer.keySet()));
  else sendKept(call, JSON_TYPE, JSON.stringify(signer.discovery(parts.address)));
}

const KEYS_TYPE = 'application/jwk-set+json';

/** What verifiers may keep for an hour. */
function sendKept(call: Call, type: string, text: string): void {
  if (!takes(call, type)) return;
  const headers = ['audit-id', call.auditId, 'cache-control', 'public, max-age=3600'];
  call.code = 200;
  call.exchange.respond(200, type, text, [...headers, ...call.flowFields]);
}

function answerCore(parts: ServerParts, call: Call, version: string): void {
  if (version === '') {
    const encoding = aggregatedEncoding(call.exchange.header('accept') ?? '');
    const { discovery } = parts;
    if (encoding === null) sendDocument(call, discovery.coreVersions());
    else sendAggregated(parts, call, discovery.aggregated(true), encoding);
    return;
  }
  const list = parts.discovery.resourceList('', version);
  if (list === null) call.fail(generic('NotFound'));
  else sendDocument(call, list);
}

function answerGroups(
  parts: ServerParts,
  call: Call,
  group: string,
  version: string | undefined,
): void {
  const { discovery } = parts;
  if (group === '') {
    const encoding = aggregatedEncoding(call.exchange.header('accept') ?? '');
    if (encoding === null) sendDocument(call, discovery.groupList(), UNROUTED_OFFER);
    else sendAggregated(parts, call, discovery.aggregated(false), encoding);
    return;
  }
  const document =
    version === undefined ? discovery.groupDocument(group) : discovery.resourceList(group, version);
  const offer = version === undefined ? UNROUTED_OFFER : REVIEW_OFFER;
  if (document !== null) sendDocument(call, document, offer);
  else if (isGroupServed(group)) call.fail(generic('NotFound'));
  else notFound(call);
}

/** Other encodings than JSON of many groups are made in several turns. */
function sendAggregated(
  { world: { edge } }: ServerParts,
  call: Call,
  document: Document,
  encoding: Encoding,
): void {
  // who has the document is told so without a form of it
  const isKnown = call.exchange.header('if-none-match') === document.etag;
  const send = (): void => {
    const form = isKnown ? document : keptForm(document, encoding);
    if (form !== undefined && !call.exchange.closed) sendDocument(call, form);
  };
  if (isKnown || keptForm(document, encoding) !== undefined) {
    send();
    return;
  }
  const steps = makeForm(document, encoding);
  if (edge.walk !== undefined) {
    edge.walk(steps, () => call.keepBody(), send);
    return;
  }
  while (steps.next().done !== true);
  send();
}

function notFound(call: Call): void {
  call.sendText(404, '404 page not found\n');
}

/** A document in the encoding that the client asks for; what is kept is JSON. */
function sendPlain(call: Call, document: Document, offer: Offer): void {
  const accept = call.exchange.header('accept') ?? '';
  const media = negotiate(accept, offer, call.isPretty);
  if (!media.ok) {
    call.fail(media.status);
    return;
  }
  call.media = media.value;
  if (media.value.encoding === 'json' && !media.value.pretty) {
    call.send(200, document.contentType, document.bytes);
    return;
  }
  const object = parseJson(document.bytes.toString('utf8')) as JsonObject;
  // The list of versions does not say what it is; its envelope does.
  const isNamed = media.value.encoding !== 'protobuf' || object['apiVersion'] !== undefined;
  call.sendObject(200, isNamed ? object : { apiVersion: 'v1', ...object });
}

/** Sends a kept document, or 304 where the client has it. */
export function sendDocument(call: Call, document: Document, offer: Offer = REVIEW_OFFER): void {
  const isAggregated = document.contentType.includes('as=');
  if (!isAggregated) {
    sendPlain(call, document, offer);
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
  const respond = (body: Buffer, more: readonly string[]): void => {
    if (call.exchange.closed) return;
    call.code = 200;
    call.exchange.respond(200, contentType, body, [...headers, ...more]);
  };
  if (!asksForGzip(call.exchange) || !isWorthIt([bytes])) {
    respond(bytes, []);
    return;
  }
  whenCompressed(document, [bytes], (packed) => {
    if (packed === null) respond(bytes, []);
    else respond(packed, PACKED_FIELDS);
  });
}
