/** `/openapi/v3`: an index and a document per group and version; `/openapi/v2`: one for all. */
import type { Call } from '../request/call.ts';
import { isWorthIt, whenCompressed } from '../serializer/compressed-document.ts';
import { parseAccept } from '../request/negotiation.ts';
import type { OpenApiDocument, OpenApiDocuments, OpenApiForm } from './openapi-documents.ts';
import { OPENAPI_V3_OLD_NAME, OPENAPI_V3_PROTOBUF } from './openapi-protobuf-3.ts';
import { OPENAPI_V2_ANSWER, OPENAPI_V2_PROTOBUF } from './openapi-protobuf.ts';

const YEAR_MS: number = 365 * 24 * 3600 * 1000;

/** Pieces of a document that are handed to the wire at once. */
const PIECE_BYTES: number = 64 * 1024;

/** What goes before a document. */
interface Answer {
  readonly type: string;
  readonly headers: readonly string[];
}

/** Form and media type of an answer. */
interface Offered {
  readonly form: OpenApiForm;
  readonly type: string;
}

const JSON_FORM: Offered = { form: 'json', type: 'application/json' };
const V2_FORM: Offered = { form: 'protobuf', type: OPENAPI_V2_ANSWER };
const V3_FORM: Offered = { form: 'protobuf', type: OPENAPI_V3_PROTOBUF };
const JSON_NAMES: readonly (readonly [string, Offered])[] = [
  ['application/json', JSON_FORM],
  ['application/*', JSON_FORM],
  ['*/*', JSON_FORM],
  ['*/json', JSON_FORM],
];
const V2_OFFER: ReadonlyMap<string, Offered> = new Map([
  ...JSON_NAMES,
  [OPENAPI_V2_PROTOBUF, V2_FORM],
  [OPENAPI_V2_ANSWER, V2_FORM],
]);
const V3_OFFER: ReadonlyMap<string, Offered> = new Map([
  ...JSON_NAMES,
  [OPENAPI_V3_PROTOBUF, V3_FORM],
  [OPENAPI_V3_OLD_NAME, V3_FORM],
]);

/** Answers a path under /openapi. */
export function answerOpenApi(documents: OpenApiDocuments, call: Call, path: string): void {
  if (path === '/openapi/v2') {
    answerDocument(documents, call, 'v2', V2_OFFER);
    return;
  }
  if (path === '/openapi/v3') {
    answerIndex(documents, call);
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
  answerDocument(documents, call, name, V3_OFFER);
}

function answerIndex(documents: OpenApiDocuments, call: Call): void {
  const { text, hash } = documents.index;
  const headers = call.headers('etag', `"${hash}"`);
  if (isKnown(call, hash)) {
    answerKnown(call, headers);
    return;
  }
  call.code = 200;
  call.exchange.respond(200, 'text/plain; charset=utf-8', text, headers);
}

function answerDocument(
  documents: OpenApiDocuments,
  call: Call,
  name: string,
  offer: ReadonlyMap<string, Offered>,
): void {
  const offered = offeredOf(call, offer);
  if (offered === undefined) {
    call.code = 406;
    call.exchange.respond(406, null, null, call.headers('vary', 'Accept'));
    return;
  }
  const hash = documents.hashOf(name);
  const asked = name === 'v2' ? '' : call.query.text('hash');
  if (asked !== '' && asked !== hash) {
    call.code = 301;
    const location = `/openapi/v3/${name}?hash=${hash}`;
    const headers = call.headers('location', location, 'etag', `"${hash}"`, 'vary', 'Accept');
    call.exchange.respond(301, offered.type, null, headers);
    return;
  }
  const headers = headersOf(call, name, hash, asked !== '');
  if (isKnown(call, hash)) answerKnown(call, headers);
  else {
    documents.whenBuilt(name, offered.form, (document) => {
      send(call, name, document, { type: offered.type, headers });
    });
  }
}

function offeredOf(call: Call, offer: ReadonlyMap<string, Offered>): Offered | undefined {
  const accept = call.exchange.header('accept') ?? '';
  if (accept === '') return JSON_FORM;
  for (const { type } of parseAccept(accept)) {
    const offered = offer.get(type);
    if (offered !== undefined) return offered;
  }
  return undefined;
}

/** A document that was asked for by its hash never changes. */
function headersOf(call: Call, name: string, hash: string, isLasting: boolean): string[] {
  const etag = `"${hash}"`;
  if (isLasting) {
    // clients that are not told when it was sent ask for it again each time
    const [date, expires] = [0, YEAR_MS].map((ms) => new Date(call.nowMs + ms).toUTCString());
    const headers = ['audit-id', call.auditId, 'cache-control', 'public, immutable'];
    const times = ['date', date ?? '', 'expires', expires ?? ''];
    return [...headers, ...call.flowFields, ...times, 'etag', etag, 'vary', 'Accept'];
  }
  // upstream compresses the one document of version 2 by a layer of its own, which says so
  const packed = name === 'v2' ? ['vary', 'Accept-Encoding'] : [];
  return call.headers('etag', etag, ...packed, 'vary', 'Accept');
}

/** True where the client has it, by RFC 9110 section 13.1.2, which compares weakly. */
function isKnown(call: Call, hash: string): boolean {
  const { method } = call.exchange;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const tags = (call.exchange.header('if-none-match') ?? '').split(',');
  return tags.some((tag) => {
    const bare = tag.trim().replace(/^W\//, '');
    return bare === '*' || bare === `"${hash}"`;
  });
}

function answerKnown(call: Call, headers: string[]): void {
  call.code = 304;
  call.exchange.respond(304, null, null, headers);
}

/** Of these documents upstream compresses that of version 2 alone. */
function send(call: Call, name: string, document: OpenApiDocument, answer: Answer): void {
  const { chunks } = document;
  const { type, headers } = answer;
  if (name !== 'v2' || !takesGzip(call) || !isWorthIt(chunks)) {
    sendChunks(call, chunks, type, headers);
    return;
  }
  whenCompressed(document, chunks, (packed) => {
    if (packed === null) sendChunks(call, chunks, type, headers);
    else sendChunks(call, [packed], type, [...headers, 'content-encoding', 'gzip']);
  });
}

/** Whether the client takes gzip, which a weight of 0 says it does not (RFC 9110, 12.5.3). */
function takesGzip({ exchange }: Call): boolean {
  const codings = (exchange.header('accept-encoding') ?? '').split(',');
  return codings.some((coding) => {
    const [name = '', weight = ''] = coding.split(';');
    return name.trim() === 'gzip' && !/^\s*q\s*=\s*0(?:\.0*)?\s*$/.test(weight);
  });
}

/** Sends a document in pieces, as the client takes them. */
function sendChunks(
  call: Call,
  chunks: readonly Buffer[],
  type: string,
  headers: readonly string[],
): void {
  const { exchange } = call;
  if (exchange.closed) return;
  const [only, second] = chunks;
  if (second === undefined && (only?.length ?? 0) <= PIECE_BYTES) {
    call.code = 200;
    exchange.respond(200, type, only ?? '', headers);
    return;
  }
  const serialized = call.timed('serialize-response-object', () => {});
  call.isLasting = true;
  exchange.onClose = () => call.done();
  call.code = 200;
  exchange.open(200, type, headers);
  const pieces = piecesOf(chunks);
  const pump = (): void => {
    while (!exchange.closed && exchange.writable() > 0) {
      const next = pieces.next();
      if (next.done !== true) {
        exchange.write(next.value);
        continue;
      }
      exchange.onWritable = null;
      exchange.end();
      serialized();
      call.done();
    }
  };
  exchange.onWritable = pump;
  pump();
}

function* piecesOf(chunks: readonly Buffer[]): Generator<Buffer, void> {
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES)
      yield chunk.subarray(at, at + PIECE_BYTES);
  }
}
