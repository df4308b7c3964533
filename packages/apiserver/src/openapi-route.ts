/** `/openapi/v3`: an index and a document per group and version; `/openapi/v2`: one for all. */
import type { Call } from './call.ts';
import { AnswerBody } from './answer-body.ts';
import { parseAccept } from './negotiation.ts';
import type { OpenApiDocument, OpenApiDocuments } from './openapi-documents.ts';
import { OPENAPI_V2_ANSWER, OPENAPI_V2_PROTOBUF } from './openapi-protobuf.ts';

const YEAR_MS: number = 365 * 24 * 3600 * 1000;
const JSON_NAMES: ReadonlySet<string> = new Set(['application/json', '*/*', 'application/*']);

/** Answers a path under /openapi. */
export function answerOpenApi(documents: OpenApiDocuments, call: Call, path: string): void {
  if (path === '/openapi/v2') {
    answerVersion2(documents, call);
    return;
  }
  if (path === '/openapi/v3') {
    const text = documents.index;
    call.send(200, 'text/plain; charset=utf-8', text);
    return;
  }
  const name = path.slice('/openapi/v3/'.length);
  if (!path.startsWith('/openapi/v3/')) {
    call.sendText(404, '404 page not found\n');
    return;
  }
  if (!documents.has(name)) {
    call.send(404, null, null);
    return;
  }
  answerDocument(documents, call, name);
}

function answerDocument(documents: OpenApiDocuments, call: Call, name: string): void {
  if (!acceptsJson(call)) {
    call.send(406, null, null);
    return;
  }
  const hash = documents.hashOf(name);
  const asked = call.query.text('hash');
  if (asked !== '' && asked !== hash) {
    call.code = 301;
    const location = `/openapi/v3/${name}?hash=${hash}`;
    const headers = call.headers('location', location, 'vary', 'Accept');
    call.exchange.respond(301, 'application/json', null, headers);
    return;
  }
  if (asked === '') {
    sendTagged(documents, call, name, 'application/json');
    return;
  }
  const expires = new Date(call.nowMs + YEAR_MS).toUTCString();
  const headers = ['audit-id', call.auditId, 'cache-control', 'public, immutable'];
  headers.push(...call.flowFields);
  headers.push('expires', expires, 'etag', `"${hash}"`, 'vary', 'Accept');
  documents.whenBuilt(name, (document) => send(call, document, 'application/json', headers));
}

function answerVersion2(documents: OpenApiDocuments, call: Call): void {
  const accept = call.exchange.header('accept') ?? '';
  const first = parseAccept(accept)[0]?.type;
  const isProtobuf = first === OPENAPI_V2_PROTOBUF || first === OPENAPI_V2_ANSWER;
  if (isProtobuf) sendTagged(documents, call, 'v2 protobuf', OPENAPI_V2_ANSWER);
  else if (acceptsJson(call)) sendTagged(documents, call, 'v2', 'application/json');
  else call.send(406, null, null);
}

function acceptsJson(call: Call): boolean {
  const accept = call.exchange.header('accept') ?? '';
  return accept === '' || parseAccept(accept).some(({ type }) => JSON_NAMES.has(type));
}

function sendTagged(documents: OpenApiDocuments, call: Call, name: string, type: string): void {
  const headers = tagged(call, documents.hashOf(name));
  if (headers !== null)
    documents.whenBuilt(name, (document) => send(call, document, type, headers));
}

/** Headers of an answer with the tag; null where the client has it, who was told so. */
function tagged(call: Call, hash: string): string[] | null {
  const { path } = call.info;
  const etag = `"${hash}"`;
  // upstream compresses the one document of version 2 by a layer of its own, which says so
  const packed = path === '/openapi/v2' ? ['vary', 'Accept-Encoding'] : [];
  const headers = call.headers('etag', etag, ...packed, 'vary', 'Accept');
  if (call.exchange.header('if-none-match') !== etag) return headers;
  call.code = 304;
  call.exchange.respond(304, null, null, headers);
  return null;
}

function send(call: Call, document: OpenApiDocument, type: string, headers: string[]): void {
  const { exchange } = call;
  if (exchange.closed) return;
  const [only, second] = document.chunks;
  if (second === undefined) {
    call.code = 200;
    exchange.respond(200, type, only ?? '', headers);
    return;
  }
  const body = new AnswerBody(call, type, headers);
  let index = 0;
  const pump = (): void => {
    while (!exchange.closed && body.writable() > 0) {
      const chunk = document.chunks[index];
      if (chunk === undefined) {
        exchange.onWritable = () => {};
        body.end();
        return;
      }
      index++;
      body.write(chunk);
    }
  };
  exchange.onWritable = pump;
  pump();
}
