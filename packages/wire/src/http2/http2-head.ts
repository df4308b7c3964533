// data plane
/** What the fields of an HTTP/2 message mean, and whether they may stand together (RFC 9113 8). */
import { FIRST_COUNTS } from '../http/exchange.ts';
import type { GrpcRoute, GrpcRefusal } from '../http/grpc.ts';

/** A request's head. Shared by all requests with the same block: never changed. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** The fields without pseudo-fields, `[name, value, ...]`. */
  readonly fields: readonly string[];
  /** content-length, -1 without. */
  readonly bodyBytes: number;
  readonly expectsContinue: boolean;
  /** content-type is one of gRPC. */
  readonly grpc: boolean;
  /** The gRPC method by `path`, and why it is not called at all; filled in by the server. */
  route: GrpcRoute | null;
  refusal: GrpcRefusal | null;
}

/** Value of a field by its lower-case name, as `Exchange.header` says. */
export function fieldValue(fields: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== name) continue;
    if (found === undefined) found = fields[i + 1]!;
    else if (FIRST_COUNTS.has(name)) break;
    else found += (name === 'cookie' ? '; ' : ', ') + fields[i + 1]!;
  }
  return found;
}

function isGrpc(type: string): boolean {
  if (!type.startsWith('application/grpc')) return false;
  return type.length === 16 || type[16] === '+' || type[16] === ';';
}

/** A whole number without sign, -1 for anything else. */
export function parseLength(text: string): number {
  if (text.length === 0 || text.length > 15) return -1;
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** True for fields that belong to one connection and may not stand in HTTP/2 (8.2.2). */
function isConnectionField(name: string, value: string): boolean {
  switch (name) {
    case 'connection':
    case 'keep-alive':
    case 'proxy-connection':
    case 'transfer-encoding':
    case 'upgrade':
      return true;
    case 'te':
      return value !== 'trailers';
    default:
      return false;
  }
}

/**
 * The request in decoded fields, or null: malformed, a stream error. Where the fields behind the
 * pseudo-fields are those of `before`, the request before it, they need not be looked at again.
 */
export function readRequestHead(
  all: readonly string[],
  before: RequestHead | null = null,
): RequestHead | null {
  let method: string | null = null;
  let path: string | null = null;
  let scheme: string | null = null;
  let authority: string | null = null;
  let at = 0;
  for (; at < all.length && all[at]!.charCodeAt(0) === 58; at += 2) {
    const value = all[at + 1]!;
    switch (all[at]!) {
      case ':method':
        if (method !== null) return null;
        method = value;
        break;
      case ':path':
        if (path !== null || value === '') return null;
        path = value;
        break;
      case ':scheme':
        if (scheme !== null) return null;
        scheme = value;
        break;
      case ':authority':
        if (authority !== null) return null;
        authority = value;
        break;
      default:
        return null;
    }
  }
  const known = before !== null && endsWith(all, at, before.fields) ? before : readFields(all, at);
  if (known === null) return null;
  if (method === null) return null;
  if (method === 'CONNECT') {
    if (path !== null || scheme !== null || authority === null) return null;
    path = '';
  } else if (path === null || scheme === null) {
    return null;
  } else if (path.charCodeAt(0) !== 47 && path !== '*') {
    return null;
  }
  authority ??= firstValue(known.fields, 'host') ?? '';
  const { fields, bodyBytes, expectsContinue, grpc } = known;
  const route = null;
  const refusal = null;
  return { method, path, authority, fields, bodyBytes, expectsContinue, grpc, route, refusal };
}

function firstValue(fields: readonly string[], name: string): string | undefined {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return fields[i + 1];
  return undefined;
}

function endsWith(all: readonly string[], at: number, fields: readonly string[]): boolean {
  if (all.length - at !== fields.length) return false;
  for (let i = 0; i < fields.length; i++) if (all[at + i] !== fields[i]) return false;
  return true;
}

type FieldsRead = Pick<RequestHead, 'fields' | 'bodyBytes' | 'expectsContinue' | 'grpc'>;

/** The fields from `at` on; null if one may not stand here. */
function readFields(all: readonly string[], at: number): FieldsRead | null {
  let bodyBytes = -1;
  let expectsContinue = false;
  let grpc = false;
  const fields = all.slice(at);
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!;
    const value = fields[i + 1]!;
    if (name.charCodeAt(0) === 58 || isConnectionField(name, value)) return null;
    if (name === 'content-length') {
      const length = parseLength(value);
      if (length < 0 || (bodyBytes >= 0 && bodyBytes !== length)) return null;
      bodyBytes = length;
    } else if (name === 'content-type') {
      grpc = isGrpc(value);
    } else if (name === 'expect') {
      expectsContinue = value.toLowerCase() === '100-continue';
    }
  }
  return { fields, bodyBytes, expectsContinue, grpc };
}

/** Status of a response's fields (which follow the one pseudo-field), or -1: malformed. */
export function readStatus(all: readonly string[]): number {
  if (all[0] !== ':status') return -1;
  const text = all[1]!;
  const status = text.length === 3 ? parseLength(text) : -1;
  if (status < 100) return -1;
  for (let i = 2; i < all.length; i += 2) {
    if (all[i]!.charCodeAt(0) === 58 || isConnectionField(all[i]!, all[i + 1]!)) return -1;
  }
  return status;
}

/** True if `fields` may stand after a body. */
export function areTrailers(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]!.charCodeAt(0) === 58 || isConnectionField(fields[i]!, fields[i + 1]!)) {
      return false;
    }
  }
  return true;
}
