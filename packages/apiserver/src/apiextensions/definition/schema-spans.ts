// data plane
/** Where the schemas stand in the bytes of a CustomResourceDefinition. */
import { MemberCursor, skipSpace, skipValue } from '@megaplane/machinery/scan';

/** Offsets of one value, `[start, end)`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const BRACKET_OPEN = 0x5b;
const BRACE_OPEN = 0x7b;
const COMMA = 0x2c;

const SPEC = Buffer.from('spec');
const VERSIONS = Buffer.from('versions');
const SCHEMA = Buffer.from('schema');

const root = new MemberCursor();
const inner = new MemberCursor();

/**
 * The value of `schema` of every version in `spec.versions` that has one, in their order. Bytes
 * that are no such definition give none.
 */
export function schemaSpans(bytes: Buffer, start: number, end: number): Span[] {
  const spans: Span[] = [];
  const spec = memberOf(root, bytes, start, end, SPEC);
  if (spec < 0) return spans;
  const versions = memberOf(root, bytes, spec, end, VERSIONS);
  if (versions < 0 || bytes[versions] !== BRACKET_OPEN) return spans;
  let at = skipSpace(bytes, versions + 1, end);
  while (at < end && bytes[at] === BRACE_OPEN) {
    const after = takeSchema(bytes, at, end, spans);
    if (after < 0) break;
    at = skipSpace(bytes, after, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
  }
  return spans;
}

/** The bytes of a definition without its schemas, with those put where others are in it. */
export function withSchemas(bytes: Buffer, schemas: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (const [index, span] of schemaSpans(bytes, 0, bytes.length).entries()) {
    parts.push(
      bytes.subarray(at, span.start),
      schemas[index] ?? bytes.subarray(span.start, span.end),
    );
    at = span.end;
  }
  parts.push(bytes.subarray(at));
  return Buffer.concat(parts);
}

/** Adds the schema of the version at `start`, in one walk; gives the offset after it, or -1. */
function takeSchema(bytes: Buffer, start: number, end: number, spans: Span[]): number {
  if (!inner.open(bytes, start, end)) return -1;
  let isEmpty = true;
  while (inner.nextKey()) {
    isEmpty = false;
    const isSchema = inner.is(SCHEMA);
    if (!inner.skip()) return -1;
    if (isSchema) spans.push({ start: inner.valueStart, end: inner.valueEnd });
  }
  if (isEmpty || !inner.isClosed) return skipValue(bytes, start, end);
  return skipSpace(bytes, inner.valueEnd, end) + 1;
}

/** Where the value of a member of the object at `start` begins, or -1. */
function memberOf(
  cursor: MemberCursor,
  bytes: Buffer,
  start: number,
  end: number,
  name: Uint8Array,
): number {
  if (!cursor.open(bytes, start, end)) return -1;
  while (cursor.nextKey()) {
    if (cursor.is(name)) return cursor.valueStart;
    if (!cursor.skip()) return -1;
  }
  return -1;
}
